"""Instructions on how a reply is laid out: lists, sections, a table, two replies in one."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Self

import numpy as np

from tetrathlon.envs.text.instructions.data_formats import draw_columns, draw_rows
from tetrathlon.envs.text.instructions.draft import Draft, Line
from tetrathlon.envs.text.instructions.instruction import Count, Instruction, Scene, pick
from tetrathlon.envs.text.instructions.units import SENTENCE_MARKS, folded, is_filled, tokens

_BULLET = re.compile(r"^[*-][ \t]++(.+)", re.MULTILINE)
_NUMBER = re.compile(r"^([0-9]{1,6})\.[ \t]++(.+)", re.MULTILINE)
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_HEADING = re.compile(r"[ \t]*(#{1,6})(?!#)")
_RULE_CELL = re.compile(r":?-+:?")
_UNESCAPED_PIPE = re.compile(r"(?<!\\)\|")
_DIVIDER = "******"
_LEAST_DIFFERENCE = 0.2
_HEADINGS = (
    ("Introduction", "Main Part", "Conclusion"),
    ("Causes", "Effects"),
    ("Past", "Present", "Future"),
    ("Advantages", "Drawbacks"),
    ("Summary", "Details", "Examples", "Outlook"),
    ("Question", "Answer"),
)


@dataclass(frozen=True)
class Bullets(Instruction):
    """The number of bullet points."""

    kind = "bullets"
    is_layout = True
    count: Count
    """Allowed numbers."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls(Count.draw(rng, 2, 7, "exact exact least"))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return f'Write {self.count.of("bullet point")}: lines that begin with "* " or "- ", without a blank before it.'

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        return self.count.holds(sum(is_filled(match[1]) for match in _BULLET.finditer(text)))

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        draft.body = [[Line("* ") for _ in range(self.count.least or 1)]]


@dataclass(frozen=True)
class NumberedList(Instruction):
    """A list numbered from 1."""

    kind = "numbered_list"
    is_layout = True
    size: int
    """The last number."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls(int(rng.integers(2, 8)))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return (
            f"Write a list with the numbers 1 to {self.size} in this order, each once: every point is a line that "
            'begins with its number, a dot and a blank, like "1. ".'
        )

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        found = [match[1] for match in _NUMBER.finditer(text) if is_filled(match[2])]
        return found == [str(n + 1) for n in range(self.size)]

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        draft.body = [[Line(f"{number + 1}. ") for number in range(self.size)]]


@dataclass(frozen=True)
class Sections(Instruction):
    """Sections under given headings."""

    kind = "sections"
    is_layout = True
    is_english = True
    headings: tuple[str, ...]
    """The headings in order."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls(pick(rng, _HEADINGS))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        listed = ", ".join(f'"## {heading}"' for heading in self.headings)
        return (
            f"Write sections under these headings, each on a line of its own, in this order and no others: {listed}. "
            "Every section has text under its heading. Only a title in the first line and headings with ### or more "
            "may stand beside them."
        )

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        found: list[str] = []
        filled: list[bool] = []
        for number, line in enumerate(text.split("\n")):
            level = len(match[1]) if (match := _HEADING.match(line)) else 0
            if level == 2 and line.startswith("## "):
                found.append(line[3:].strip())
                filled.append(False)
            elif level == 2 or (level == 1 and number > 0):
                return False
            elif filled and not level and is_filled(line):
                filled[-1] = True
        return tuple(found) == self.headings and all(filled)

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        draft.body = [[Line(f"## {heading}", is_open=False), Line()] for heading in self.headings]


@dataclass(frozen=True)
class NamedSections(Instruction):
    """A number of sections, each under a name and its number."""

    kind = "named_sections"
    is_layout = True
    is_english = True
    name: str
    """What a section is called."""
    count: Count
    """Allowed numbers."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        number = int(rng.integers(2, 6))
        return cls(pick(rng, ("Section", "Day", "Part")), Count(number, number))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return (
            f"Write {self.count.of('section')}. Each begins with a line that holds its name and number, counted from 1:"
            f' "{self.name} 1", "{self.name} 2" and so on. Every section has text under that line.'
        )

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        heading = re.compile(
            rf"[#*_ ]{{0,8}}+{re.escape(self.name)} ([0-9]{{1,6}})(?:[ \t]*+(?:[:.)*_#–—-].*)?|(?P<loose> .*))",
            re.IGNORECASE,
        )
        filled: list[bool] = []
        for line in text.split("\n"):
            match = heading.fullmatch(line.rstrip())
            is_next = match is not None and int(match[1]) == len(filled) + 1
            if match and match["loose"] and not (is_next and match["loose"][-1] not in SENTENCE_MARKS):
                match = None  # "Day 1 was nice." is text
            if match and is_next:
                filled.append(False)
            elif match:
                return False
            elif filled and is_filled(line):
                filled[-1] = True
        return self.count.holds(len(filled)) and all(filled)

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        draft.body = [
            [Line(f"{self.name} {number + 1}", is_open=False), Line()] for number in range(self.count.least or 1)
        ]


@dataclass(frozen=True)
class TwoReplies(Instruction):
    """Two different replies with a line of asterisks between."""

    kind = "two_replies"
    conflicts = frozenset({"quoted", "repeat_request"})
    is_layout = True

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls()

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return (
            f"Give two different replies: at least a fifth of the words must differ. Between them stands one line that "
            f"holds only {_DIVIDER}."
        )

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        parts: list[list[str]] = [[]]
        for line in folded(text).split("\n"):
            if line.strip() == _DIVIDER:
                parts.append([])
            else:
                parts[-1] += tokens(line)
        if len(parts) != 2 or not all(parts):
            return False
        shared = (Counter(parts[0]) & Counter(parts[1])).total()
        return shared <= (1 - _LEAST_DIFFERENCE) * max(map(len, parts))

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        draft.body = [[Line()], [Line(_DIVIDER, is_open=False)], [Line()]]


@dataclass(frozen=True)
class Table(Instruction):
    """A Markdown table."""

    kind = "table"
    is_layout = True
    is_english = True
    columns: tuple[str, ...]
    """Names of the columns in order."""
    size: int
    """Number of rows under the header."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls(draw_columns(rng), int(rng.integers(2, 7)))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return (
            f"Include one Markdown table with the columns {', '.join(self.columns)}, named so and in this order, and "
            f"exactly {self.size} rows under its header. Every line of it begins and ends with |, the line under the "
            "header is | --- | for every column, every other cell holds a letter or a digit, a blank line follows, and "
            "there is no code fence around it."
        )

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        lines = [line.strip() for line in text.split("\n")]
        rows = [line for line in lines if line.startswith("|")]
        if len(rows) != self.size + 2:
            return False
        start = lines.index(rows[0])
        end = start + len(rows)
        if lines[start:end] != rows or any(lines[end : end + 1]):  # Markdown takes a line right below for a row
            return False
        if sum(_FENCE.match(line) is not None for line in lines[:start]) % 2:
            return False
        cells = [[cell.strip() for cell in _UNESCAPED_PIPE.split(row[1:-1])] for row in rows]
        closed = all(len(row) > 1 and row.endswith("|") and not row.endswith("\\|") for row in rows)
        same = all(len(row) == len(self.columns) for row in cells)
        filled = all(is_filled(cell) for row in cells[2:] for cell in row)
        is_named = tuple(cells[0]) == self.columns and all(map(_RULE_CELL.fullmatch, cells[1]))
        return closed and same and filled and is_named

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        rows = [self.columns, ("---",) * len(self.columns), *draw_rows(draft.topic, len(self.columns), self.size)]
        draft.body = [[Line()], [Line(f"| {' | '.join(row)} |", is_open=False) for row in rows]]
