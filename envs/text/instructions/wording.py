"""Instructions on words, letters, case and language."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from tetrathlon.envs.text.instructions.draft import Draft, phrases
from tetrathlon.envs.text.instructions.instruction import Count, Instruction, Scene, pick, pick_some
from tetrathlon.envs.text.instructions.units import folded, has_capital, has_small, occurrences, words
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
_COMMA = re.compile(
    "[,\u201a\u055d\u060c\u07f8\u1363\u1802\u1808\u2e32\u2e34\u2e41\u2e49\u2e4c\u3001\ua4f9\ua4fe\ua60d\ua6f5]"
)
"""Commas of all scripts; in the form NFKC those in full width and upright ones are among them."""
_MOST_CODE = 0.2
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
        # No other sign stands for a letter that is asked for, and none hides one that is too many.
        pairs = (text, self.word), (folded(text), folded(self.word))
        return all(self.count.holds(occurrences(form, word)) for form, word in pairs)

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
        text = folded(text)
        return not any(occurrences(text, folded(word)) for word in self.forbidden)

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
        if self.count.most == 0:
            return f'Do not use the letter "{self.letter}" at all, neither capital nor small.'
        return f'Use the letter "{self.letter}", capital or small, {self.count.of("time")} in all.'

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        pairs = (text, self.letter), (folded(text), folded(self.letter))
        return all(self.count.holds(form.lower().count(letter.lower())) for form, letter in pairs)

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
        return has_small(text) and not has_capital(text)

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
        return has_capital(text) and not has_small(text)

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
            start = len(draft.request) if text.startswith(draft.request) else 0
            missing = wanted - sum(map(_is_capital, words(text)))

            def change(match: re.Match[str]) -> str:
                nonlocal missing
                if missing <= 0 or match.group() == draft.topic:
                    return match.group()
                missing -= 1
                return match.group().upper()

            return text[:start] + re.sub(r"(?<=[^\W\d_] )[^\W\d_]{3,}(?= [^\W\d_])", change, text[start:])

        draft.finish.insert(0, raise_words)


def _is_capital(word: str) -> bool:
    return sum(map(str.isalpha, word)) > 1 and has_capital(word) and not has_small(word)


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
        return not _COMMA.search(text) and not _COMMA.search(folded(text))

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
        return (
            "Use exactly one of these sentences, once, with its full stop, in capital or small letters, and none of "
            f"the others in any form: {listed}"
        )

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        text = " ".join(folded(text).lower().split())
        options = [" ".join(option.lower().split()) for option in self.options]
        # My answer is yes. My answer is no! -- the second one is no less an answer for its other mark.
        said = sum(occurrences(text, option.rstrip(".!?")) for option in options)
        return said == 1 and sum(map(text.count, options)) == 1

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
        return cls(pick(rng, cls.codes(scene.languages, scene.kinds)))

    @staticmethod
    def codes(languages: Sequence[str], kinds: Collection[str]) -> list[str]:
        """Return those of ``languages`` in which the other ``kinds`` mean something: not all have case or blanks."""
        if not (_CASES | {"words", "sentences"}).intersection(kinds):
            return list(languages)
        return [code for code in languages if LANGUAGES[code].scripts[0] in ("Latin", "Cyrillic", "Greek")]

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return (
            f"Write in {LANGUAGES[self.code].name}; no other language is allowed, and at most a fifth may be code or "
            "addresses."
        )

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`; where more than a fifth of the letters is code, the code is judged too."""
        return is_in(text, self.code, may_cut=_MOST_CODE) is True

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
