"""Instructions on what a reply begins with, ends with, stands in or is marked with."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from tetrathlon.envs.text.instructions.draft import Draft, Line
from tetrathlon.envs.text.instructions.instruction import Count, Instruction, Scene, pick
from tetrathlon.envs.text.instructions.units import clean, is_filled, words

_DATA = frozenset({"json", "json_schema", "csv"})
_WHOLE = _DATA | {"table"}
_PLACEHOLDER = re.compile(r"\[([^\[\]\n]++)\]")
_HIGHLIGHT = re.compile(r"(?<![\\*])(\*{1,3})(?=[^\s*])([^*\n]++)(?<=[^\s\\])\1(?!\*)")
_ANGLES = re.compile(r"<<([^\n<>]++)>>")
_SINGLE_MARK = re.compile(r"^[^\S\n]*#(?!#)", re.MULTILINE)
_SLOTS = ("name", "date", "place", "email", "number", "address")


@dataclass(frozen=True)
class StartsWith(Instruction):
    """The first words."""

    kind = "starts_with"
    conflicts = _WHOLE | {"title", "title_in_angles", "repeat_request", "quoted"}
    is_english = True
    phrase: str
    """The words."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls(pick(rng, ("Let me begin with this", "Good question", "Here is my answer", "To tell the truth")))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return f'The reply must begin with exactly these words: "{self.phrase}"'

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        return text.startswith(self.phrase) and not text[len(self.phrase) : len(self.phrase) + 1].isalnum()

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        draft.head.insert(0, [Line(said=[f"{self.phrase}."])])


@dataclass(frozen=True)
class EndsWith(Instruction):
    """The last words."""

    kind = "ends_with"
    conflicts = _WHOLE | {"postscript", "quoted"}
    is_english = True
    phrase: str
    """The words."""
    ignores_case: bool = False
    """Whether capital and small letters are the same, and a double quotation mark may follow."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        endings = (
            "That is all I have to say.",
            "Any other questions?",
            "Thank you for reading!",
            "More on this tomorrow.",
        )
        return cls(pick(rng, endings))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return f'The reply must end with exactly these words and nothing after them: "{self.phrase}"'

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        phrase = self.phrase
        if self.ignores_case:
            text, phrase = text.rstrip('" \n').lower(), phrase.strip().rstrip('" \n').lower()
        return text.endswith(phrase) and not text[: len(text) - len(phrase)][-1:].isalnum()

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        draft.tail.append([Line(suffix=self.phrase, is_open=False)])


@dataclass(frozen=True)
class Quoted(Instruction):
    """All of the reply in double quotation marks."""

    kind = "quoted"
    conflicts = _WHOLE | {"repeat_request"}
    is_strict: bool = True
    """Whether no other double quotation mark may stand inside."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls()

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        inside = ", and use no other double quotation mark inside" if self.is_strict else ""
        return f'Put the whole reply between straight double quotation marks (one " before it, one " after it){inside}.'

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        if len(text) < 3 or text[0] != '"' or text[-1] != '"' or not is_filled(text[1:-1]):
            return False
        return not self.is_strict or text.count('"') == 2

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""

        def wrap(text: str) -> str:
            first = [*draft.head, *draft.body][0][0]
            break_before = "\n" if first.prefix or not first.is_open else ""  # a list mark or heading begins its line
            return f'"{break_before}{text}"'

        draft.finish.append(wrap)


@dataclass(frozen=True)
class Postscript(Instruction):
    """A postscript in the last line."""

    kind = "postscript"
    conflicts = _WHOLE | {"ends_with", "two_replies", "capital_words"}
    marker: str = "P.S."
    """What it begins with."""
    is_last_line: bool = True
    """Whether it must be the last line; else any line will do."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls(pick(rng, ("P.S.", "P.P.S.")))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return f"End with a postscript: the last line must begin with {self.marker} and go on with its text."

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        lines = text.split("\n")
        return any(map(self._is_postscript, lines[-1:] if self.is_last_line else lines))

    def _is_postscript(self, line: str) -> bool:
        line, stem = line.strip(' \t"*_'), self.marker.removesuffix(".")
        rest = line.removeprefix(stem)
        if rest == line:
            return False
        rest = rest.removeprefix(".").lstrip("*_")
        return rest[:1] in (" ", "\t", ":") and is_filled(rest)

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        draft.tail.append([Line(f"{self.marker} ")])


@dataclass(frozen=True)
class Placeholders(Instruction):
    """The number of placeholders in square brackets."""

    kind = "placeholders"
    conflicts = _DATA
    count: Count
    """Allowed numbers."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls(Count.draw(rng, 1, 5, "least exact"))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return f"Use {self.count.of('placeholder')} in square brackets, such as [name]."

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        return self.count.holds(sum(map(is_filled, _PLACEHOLDER.findall(text))))

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""

        def with_slot(slot: str) -> Callable[[str], str]:
            return lambda sentence: f"{sentence[:-1]} [{slot}]{sentence[-1]}"

        draft.borrow += [with_slot(_SLOTS[number % len(_SLOTS)]) for number in range(self.count.least or 0)]


@dataclass(frozen=True)
class Highlights(Instruction):
    """The number of parts between asterisks."""

    kind = "highlights"
    conflicts = _DATA
    count: Count
    """Allowed numbers."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls(Count.draw(rng, 1, 4, "least exact"))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return f"Highlight {self.count.of('part')} of the text with asterisks, like *this part* or **this part**."

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        return self.count.holds(sum(is_filled(match[2]) for match in _HIGHLIGHT.finditer(text)))

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        draft.borrow += [lambda sentence: f"*{sentence}*"] * (self.count.least or 0)


@dataclass(frozen=True)
class Title(Instruction):
    """A heading in title case in the first line."""

    kind = "title"
    conflicts = _WHOLE | {"title_in_angles", "repeat_request", "quoted"}
    is_english = True

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls()

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return (
            'Begin with a title of two words or more: the first line must be "# " and the title, in which every word '
            "that begins with a letter begins with a capital one. Text must follow, and no other line may begin with a "
            "single #."
        )

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        first, _, rest = text.partition("\n")
        title = words(first[2:])
        if first[:2] != "# " or len(title) < 2 or not is_filled(rest) or _SINGLE_MARK.search(rest):
            return False
        return not any(next(filter(str.isalnum, word)).islower() for word in title)

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        draft.head.insert(0, [Line(f"# Some Words About {draft.topic.capitalize()}", is_open=False)])


@dataclass(frozen=True)
class TitleInAngles(Instruction):
    """A title in double angular brackets."""

    kind = "title_in_angles"
    conflicts = _WHOLE | {"repeat_request"}

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls()

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return "Give the text a title in double angular brackets, such as <<poem of joy>>."

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        return any(map(is_filled, _ANGLES.findall(text)))

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        draft.head.insert(0, [Line(f"<<{draft.topic}>>", is_open=False)])


@dataclass(frozen=True)
class RepeatRequest(Instruction):
    """The request word for word, then the reply."""

    kind = "repeat_request"
    conflicts = _WHOLE | {"keyword", "letter_count"}
    is_english = True
    request: str
    """What is to be repeated."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls(scene.request)

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return (
            f'Begin by repeating this request word for word, without quotation marks: "{self.request}" Then answer it.'
        )

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        request = clean(self.request)
        rest = text.removeprefix(request)
        return rest != text and rest[:1].isspace() and any(map(str.isalpha, rest))

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        draft.head.insert(0, [Line(clean(self.request), is_open=False)])
