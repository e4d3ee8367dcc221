"""Instructions on how long a reply is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

import numpy as np

from tetrathlon.envs.text.instructions.draft import Draft, Line
from tetrathlon.envs.text.instructions.instruction import Count, Instruction, Scene, pick
from tetrathlon.envs.text.instructions.units import lines, paragraphs, sentences, words

_DATA = frozenset({"json", "json_schema", "csv"})


@dataclass(frozen=True)
class Words(Instruction):
    """The number of words."""

    kind = "words"
    conflicts = _DATA | {"table"}
    count: Count
    """Allowed numbers."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls(Count.draw(rng, 20, 120))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return (
            f"Write {self.count.of('word')}. Whatever stands between blanks and holds a letter or a digit is one word."
        )

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        return self.count.holds(len(words(text)))

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        draft.least_words, draft.most_words = self.count.least or 0, self.count.most


@dataclass(frozen=True)
class Sentences(Instruction):
    """The number of sentences."""

    kind = "sentences"
    conflicts = _DATA | {"table", "numbered_list", "postscript", "sections", "title", "title_in_angles"}
    count: Count
    """Allowed numbers."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls(Count.draw(rng, 2, 10))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return (
            f"Write {self.count.of('sentence')}. A sentence ends where ., ! or ? comes before a blank or the end; a "
            "last piece of text without such a mark is a sentence too."
        )

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        return self.count.holds(len(sentences(text)))

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        draft.least_sentences, draft.most_sentences = self.count.least or 0, self.count.most


@dataclass(frozen=True)
class Paragraphs(Instruction):
    """The number of paragraphs."""

    kind = "paragraphs"
    is_layout = True
    count: Count
    """Allowed numbers."""
    divider: str = ""
    """The line between paragraphs; none: a blank line."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls(Count.draw(rng, 2, 6), pick(rng, ("", "", "***")))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        between = f"a line that holds only {self.divider}" if self.divider else "blank lines"
        return f"Write {self.count.of('paragraph')}, set apart by {between}."

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        if not self.divider:
            return self.count.holds(len(paragraphs(text)))
        parts: list[list[str]] = [[]]
        for line in text.split("\n"):
            if line.strip() == self.divider:
                parts.append([])
            elif line.strip():
                parts[-1].append(line)
        return all(parts) and self.count.holds(len(parts))

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        goal = _goal(self.count)
        if not self.divider:
            draft.body = [[Line()] for _ in range(goal - len(draft.head) - len(draft.tail))]
            return
        draft.body = [[Line()]]
        for _ in range(goal - 1):
            draft.body += [[Line(self.divider, is_open=False)], [Line()]]


@dataclass(frozen=True)
class Lines(Instruction):
    """The number of lines."""

    kind = "lines"
    is_layout = True
    count: Count
    """Allowed numbers."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls(Count.draw(rng, 2, 8))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return f"Write {self.count.of('line')}; blank lines do not count."

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        return self.count.holds(len(lines(text)))

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        draft.body = [[Line() for _ in range(_goal(self.count) - len(draft.head) - len(draft.tail))]]


@dataclass(frozen=True)
class FirstWord(Instruction):
    """The number of paragraphs, and the word that one of them begins with."""

    kind = "first_word"
    is_layout = True
    is_english = True
    count: int
    """How many paragraphs."""
    number: int
    """Which of them, from 1."""
    word: str
    """Its first word."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        count = int(rng.integers(2, 6))
        return cls(count, int(rng.integers(1, count + 1)), pick(rng, ("However", "Today", "Perhaps", "Again", "Still")))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return (
            f"Write exactly {self.count} paragraph{'s' * (self.count > 1)}, set apart by blank lines. Paragraph "
            f'{self.number} begins with the word "{self.word}"; marks like #, -, * and " may stand before it.'
        )

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        found = paragraphs(text)
        if len(found) != self.count or not 0 < self.number <= self.count:
            return False
        # What a letter follows at once, or after _ - or ', is another word.
        start = rf"[\W_]*?{re.escape(self.word.lower())}(?!_*+[^\W_]|['’-][^\W_])"
        return re.match(start, found[self.number - 1].lower()) is not None

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        before = len(draft.head)
        draft.body = [[Line()] for _ in range(self.count - before - len(draft.tail))]
        if 0 <= self.number - 1 - before < len(draft.body):
            draft.body[self.number - 1 - before][0].said.append(f"{self.word} one thing is clear.")


def _goal(count: Count) -> int:
    return count.least if count.least is not None else count.most or 1
