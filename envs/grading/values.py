"""Typed answers: what an answer is, whichever way it was written.

Values compare with ``==``, exactly, so equality of values is symmetric and transitive. :func:`same` adds two
readings of what was left out: a list without brackets says nothing of its order, and a number without a unit nothing
of its unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from tetrathlon.envs.grading.surds import Surd


@dataclass(frozen=True, slots=True)
class Infinity:
    """An end of the number line."""

    sign: int
    """1 or -1."""


@dataclass(frozen=True, slots=True)
class Text:
    """Words, or a letter that stands for an option or a variable."""

    words: str
    """In lower case, with single blanks."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A scalar that only the prover understands."""

    latex: str
    """What it is handed."""


@dataclass(frozen=True, slots=True)
class Equation:
    """Two sides that only the prover understands."""

    left: str
    """LaTeX."""
    right: str
    """LaTeX."""


@dataclass(frozen=True, slots=True)
class Class:
    """What the prover found to be one value, by its number within one comparison."""

    number: int
    """Equal for equal expressions."""


@dataclass(frozen=True, slots=True)
class Named:
    """One of several values that go by different names (``x = 1, y = 2``)."""

    name: str
    """As written, without blanks."""
    value: Value
    """What it is."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with its unit."""

    value: Value
    """Without the unit."""
    unit: str
    """Normalised: ``cm``, ``degree``, ``apple``."""


@dataclass(frozen=True, slots=True)
class Tuple:
    """Ordered values in round or square brackets; two of them may be an interval, which is written the same way."""

    items: tuple[Value, ...]
    """In order."""
    brackets: str = "()"
    """``()``, or for two items also ``[]``, ``(]`` or ``[)``."""


@dataclass(frozen=True, slots=True)
class Set:
    """Values in braces, in no order."""

    items: frozenset[Value]
    """Each once."""


@dataclass(frozen=True, slots=True)
class Several:
    """Values without brackets (``8 and 27``, ``8, 27``)."""

    items: tuple[Value, ...]
    """As written; the order counts only beside a tuple."""


@dataclass(frozen=True, slots=True)
class Union:
    """A union of intervals and sets."""

    parts: frozenset[Value]
    """Each once."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Values in rows and columns."""

    rows: tuple[tuple[Value, ...], ...]
    """All of one length."""


Value: TypeAlias = (
    Fraction
    | Surd
    | Infinity
    | Text
    | Expression
    | Equation
    | Class
    | Named
    | Quantity
    | Tuple
    | Set
    | Several
    | Union
    | Matrix
)
Scalar: TypeAlias = Fraction | Surd | Expression | Equation | Text


def scalars(value: Value) -> Iterator[Scalar]:
    """Yield what is in ``value`` that the prover can compare."""
    match value:
        case Fraction() | Surd() | Expression() | Equation():
            yield value
        case Text(words) if len(words) == 1:
            yield value
        case Named() | Quantity():
            yield from scalars(value.value)
        case Tuple() | Set() | Several():
            for item in value.items:
                yield from scalars(item)
        case Union():
            for part in value.parts:
                yield from scalars(part)
        case Matrix():
            for row in value.rows:
                for item in row:
                    yield from scalars(item)


def replaced(value: Value, by: Mapping[Scalar, Value]) -> Value:
    """Return ``value`` with its scalars replaced."""
    match value:
        case Fraction() | Surd() | Expression() | Equation():
            return by[value]
        case Text(words) if len(words) == 1:
            return by.get(value, value)
        case Named(name, inside):
            return Named(name, replaced(inside, by))
        case Quantity(inside, unit):
            return Quantity(replaced(inside, by), unit)
        case Tuple(items, brackets):
            return Tuple(tuple(replaced(item, by) for item in items), brackets)
        case Set(members):
            return Set(frozenset(replaced(item, by) for item in members))
        case Several(items):
            return Several(tuple(replaced(item, by) for item in items))
        case Union(parts):
            return Union(frozenset(replaced(part, by) for part in parts))
        case Matrix(rows):
            return Matrix(tuple(tuple(replaced(item, by) for item in row) for row in rows))
    return value


def same(left: Value, right: Value) -> bool:
    """Tell whether two values are the same answer; symmetric.

    It is ``==``, but that several values without brackets equal a set of the same members and a tuple of the same
    items in the same order, and that a missing unit is any unit.
    """
    match left, right:
        case Quantity(), Quantity():
            return left.unit == right.unit and same(left.value, right.value)
        case Quantity(), _:
            return same(left.value, right)
        case _, Quantity():
            return same(left, right.value)
        case Several(), Several():
            return frozenset(left.items) == frozenset(right.items)
        case Several(), Set():
            return frozenset(left.items) == right.items
        case Set(), Several():
            return left.items == frozenset(right.items)
        case Several(), Tuple(_, "()"):
            return left.items == right.items
        case Tuple(_, "()"), Several():
            return left.items == right.items
    return left == right
