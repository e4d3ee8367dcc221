"""Instructions on words, letters, case and language."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

import numpy as np

from tetrathlon.envs.text.instructions.draft import Draft, phrases
from tetrathlon.envs.text.instructions.instruction import Count, Instruction, Scene, pick, pick_some
from tetrathlon.envs.text.instructions.units import occurrences, words
from tetrathlon.envs.text.languages import LANGUAGES, is_in

_DATA = frozenset({"json", "json_schema", "csv"})
_CASES = frozenset({"lowercase", "uppercase", "capital_words"})
_FIXED_TEXT = frozenset({"title", "repeat_request", "postscript", "starts_with", "ends_with", "sections", "first_word"})
_KEYWORD_SENTENCES = (
    "Think about the {} too.",
    "Someone will surely mention the {}.",
    "Here the {} plays its part.",
    "Nothing works without the {}.",
    "And then there is the {}.",
)
_RARE, _COMMON = "jqvxz", "abcdefghiklmnoprstuwy"


@dataclass(frozen=True)
class Keyword(Instruction):
    """A word and how often it comes."""

    kind = "keyword"
    conflicts = _DATA | {"table"}
    is_english = True
    word: str
    """The word, or several with blanks between."""
    count: Count
    """Allowed numbers."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls(pick(rng, scene.related[:2]), Count.draw(rng, 1, 4, "least exact"))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return (
            f'Use the word "{self.word}" {self.count.of("time")}, as a word of its own; capital or small letters make '
            "no difference."
        )

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        return self.count.holds(occurrences(text, self.word))

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        for number in range(self.count.least or 0):
            draft.musts.append(_KEYWORD_SENTENCES[number % len(_KEYWORD_SENTENCES)].format(self.word))


@dataclass(frozen=True)
class ForbiddenWords(Instruction):
    """Words that must not come."""

    kind = "forbidden_words"
    is_english = True
    forbidden: tuple[str, ...]
    """The words."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls((*scene.related[2:], pick(rng, ("very", "really", "thing", "just", "nice"))))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        listed = ", ".join(f'"{word}"' for word in self.forbidden)
        return f"Do not use any of these words, in capital or small letters: {listed}."

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        return not any(occurrences(text, word) for word in self.forbidden)

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""


@dataclass(frozen=True)
class LetterCount(Instruction):
    """A letter and how often it comes."""

    kind = "letter_count"
    is_english = True
    letter: str
    """One character."""
    count: Count
    """Allowed numbers."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        if rng.integers(2):
            return cls(pick(rng, _RARE), Count(most=int(rng.integers(0, 3))))
        return cls(pick(rng, _COMMON), Count(least=int(rng.integers(1, 7))))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return f'Use the letter "{self.letter}", capital or small, {self.count.of("time")} in all.'

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        return self.count.holds(text.lower().count(self.letter.lower()))

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""


@dataclass(frozen=True)
class Lowercase(Instruction):
    """No capital letter at all."""

    kind = "lowercase"
    conflicts = _CASES | _FIXED_TEXT

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls()

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return "Write in small letters only: there must be no capital letter anywhere."

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        return text.lower() == text and text.upper() != text

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        draft.finish.append(str.lower)


@dataclass(frozen=True)
class Uppercase(Instruction):
    """Nothing but capital letters."""

    kind = "uppercase"
    conflicts = _CASES | _FIXED_TEXT | _DATA | {"table"}

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls()

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return "WRITE IN CAPITAL LETTERS ONLY: there must be no small letter anywhere."

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        return text.upper() == text and text.lower() != text

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        draft.finish.append(str.upper)


@dataclass(frozen=True)
class CapitalWords(Instruction):
    """The number of words in capitals."""

    kind = "capital_words"
    conflicts = _CASES | _DATA
    count: Count
    """Allowed numbers."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls(Count.draw(rng, 1, 5, "least exact most"))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return (
            f"Write {self.count.of('word')} in capital letters, like THIS: whatever stands between blanks, has two "
            "letters or more and no small one counts."
        )

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        return self.count.holds(sum(map(_is_capital, words(text))))

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        wanted = self.count.least or 0

        def raise_words(text: str) -> str:
            """Write the first small words in capitals, of those that nothing else in the reply hangs on."""
            missing = wanted - sum(map(_is_capital, words(text)))

            def change(match: re.Match[str]) -> str:
                nonlocal missing
                if missing <= 0 or match.group() == draft.topic:
                    return match.group()
                missing -= 1
                return match.group().upper()

            return re.sub(r"(?<=[^\W\d_] )[^\W\d_]{3,}(?= [^\W\d_])", change, text)

        draft.finish.insert(0, raise_words)


def _is_capital(word: str) -> bool:
    letters = [letter for letter in word if letter.isalpha()]
    return len(letters) > 1 and word.upper() == word and word.lower() != word


@dataclass(frozen=True)
class NoCommas(Instruction):
    """No comma."""

    kind = "no_commas"
    conflicts = _DATA

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls()

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return "Do not use any commas."

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        return not re.search("[,،،、，﹐﹑､]", text)

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""


@dataclass(frozen=True)
class Verdict(Instruction):
    """One of several given sentences."""

    kind = "verdict"
    conflicts = _DATA | {"table"}
    is_english = True
    options: tuple[str, ...] = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
    """The sentences."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls(pick(rng, (cls.options, ("I would recommend it.", "I would not recommend it."))))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        listed = ", ".join(f'"{option}"' for option in self.options)
        return f"Use exactly one of these sentences, once, in capital or small letters: {listed}"

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        return sum(text.lower().count(option.lower()) for option in self.options) == 1

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        draft.musts.append(self.options[0])


@dataclass(frozen=True)
class InLanguage(Instruction):
    """The language of the reply."""

    kind = "language"
    conflicts = _DATA
    code: str
    """A key of ``LANGUAGES``."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        codes = [code for code in scene.languages if not scene.kinds & (_CASES | {"words", "sentences"})] or [
            code for code in scene.languages if LANGUAGES[code].scripts[0] in ("Latin", "Cyrillic", "Greek")
        ]
        return cls(pick(rng, codes))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return f"Write in {LANGUAGES[self.code].name}; no other language is allowed."

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        return is_in(text, self.code) is True

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        draft.language = self.code


def topic_in(topic: str, code: str) -> str | None:
    """Return an English ``topic`` in the language ``code``, or None where the phrase book has no word for it."""
    return phrases()["languages"][code]["topics"].get(topic)


def draw_related(rng: np.random.Generator, topic: str) -> list[str]:
    """Return the words that come to mind with ``topic``, in random order."""
    related = phrases()["topics"][topic]
    return pick_some(rng, related, len(related))
