"""A family of small libraries: their text with words to be drawn, and the cases that say what they do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from textwrap import dedent
from types import CodeType
from typing import Any

from tetrathlon.envs.text.coding.draft import Draw

Chooser = Callable[[Draw], Any]
"""Draws a value."""
PACKAGE = "PKG"
"""Stands for the name of the package in every text of a family."""
DO, VALUE, RAISE = "do", "value", "raise"
"""Kinds of lines of a case: a statement, an expression whose value counts, and one that has to raise."""
_KINDS = {"?": VALUE, "!": RAISE}
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Case:
    """What is done with a library, and looked at: a test without what is expected."""

    module: str
    """The module that it is about."""
    function: str
    """The function, ``Class.method`` or ``Class`` that it is about."""
    label: str
    """What distinguishes it from others about the same: words for the name of a test, or empty."""
    lines: tuple[tuple[str, str], ...]
    """The kind and the code of each line."""
    values: Mapping[str, Chooser]
    """Words in the lines that stand for drawn values, all of which begin with ``V_``."""

    @property
    def key(self) -> str:
        """What no other case of its family has."""
        return f"{self.module}.{self.function} {self.label}"

    @cached_property
    def words(self) -> frozenset[str]:
        """All words in its lines."""
        return frozenset(word for _, code in self.lines for word in _WORD.findall(code))

    @cached_property
    def codes(self) -> tuple[tuple[str, CodeType], ...]:
        """Its lines, compiled."""
        return tuple((kind, compile(code, "<case>", "exec" if kind == DO else "eval")) for kind, code in self.steps)

    @cached_property
    def steps(self) -> tuple[tuple[str, str], ...]:
        """Its lines without a word of what has to raise."""
        return tuple((DO if kind == DO else VALUE, code) for kind, code in self.lines)


def case(about: str, label: str, *texts: str, **values: Chooser) -> Case:
    """Return a case.

    Args:
        about: ``module.function``, ``module.Class.method`` or ``module.Class``.
        label: See :class:`Case`.
        *texts: Its lines; those after ``?`` are looked at, those after ``!`` have to raise, and indented ones go with
            the one before.
        **values: See :class:`Case`.
    """
    module, _, function = about.partition(".")
    lines: list[tuple[str, str]] = []
    for line in (line for text in texts for line in dedent(text).strip().splitlines()):
        if line.startswith(" "):
            lines[-1] = (DO, f"{lines[-1][1]}\n{line}")
            continue
        kind = _KINDS.get(line[:1], DO)
        lines.append((kind, line if kind == DO else line[1:].strip()))
    return Case(module, function, label, tuple(lines), values)


@dataclass(frozen=True)
class Family:
    """Libraries that differ in names and numbers.

    In all texts, words of ``words`` stand for names and phrases, and words of ``constants`` for values.
    """

    name: str
    """What they are."""
    packages: tuple[str, ...]
    """Names of the package."""
    about: str
    """What the README says of it, with its rules."""
    modules: Mapping[str, str]
    """Name -> text; each imports of those before it alone."""
    cases: tuple[Case, ...]
    """What they do."""
    words: Mapping[str, Sequence[str]]
    """Word -> what it may become; the word itself may be among them."""
    constants: Mapping[str, Chooser] = field(default_factory=dict)
    """Words for values; those of integers begin with ``N_``, others with ``K_``. No text in the code has one in it."""
    faults: tuple[tuple[str, str, str], ...] = ()
    """Faults that no operator makes: the module, a piece of it that occurs once, and what becomes of it."""


def whole(low: int, high: int) -> Chooser:
    """Return what draws an integer from ``low`` to ``high``."""
    return lambda draw: draw.between(low, high)


def of(*options: Any) -> Chooser:
    """Return what draws one of ``options``."""
    return lambda draw: draw.pick(options)


def wholes(shortest: int, longest: int, low: int, high: int) -> Chooser:
    """Return what draws a list of so many integers from ``low`` to ``high``."""
    return lambda draw: draw.wholes(shortest, longest, low, high)


def some(count: int, *options: Any) -> Chooser:
    """Return what draws a list of ``count`` different ones of ``options``."""
    return lambda draw: draw.some(options, count)


def name(shortest: int = 3, longest: int = 6) -> Chooser:
    """Return what draws a word of small letters."""
    return lambda draw: draw.word("abdegiklmnoprstuvz", shortest, longest)


def names(count: int) -> Chooser:
    """Return what draws a list of ``count`` different words."""

    def chosen(draw: Draw) -> list[str]:
        found: dict[str, None] = {}
        while len(found) < count:
            found[draw.word("abdegiklmnoprstuvz", 3, 6)] = None
        return list(found)

    return chosen


def sentence(fewest: int, most: int) -> Chooser:
    """Return what draws words with blanks between them."""
    return lambda draw: " ".join(draw.words(fewest, most, "abdegiklmnoprstuvz", 1, 7))
