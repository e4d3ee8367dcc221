r"""The right answer of a task, read once and refused where nobody could be graded on it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from tetrathlon.envs.grading import prover
from tetrathlon.envs.grading.reading import read
from tetrathlon.envs.grading.surds import Surd, surd
from tetrathlon.envs.grading.values import (
    Equation,
    Expression,
    Infinity,
    Quantity,
    Scalar,
    Set,
    Several,
    Text,
    Tuple,
    Value,
    replaced,
    same,
    scalars,
)
from tetrathlon.envs.grading.writing import plain, same_text

KINDS = ("number", "set", "tuple", "choice", "text")
PERCENTS = ("fraction", "points")
_SCALARS = (Fraction, Surd, Expression)
_COMMAND = re.compile(r"\\[A-Za-z]+")
_LETTER = re.compile(r"[A-Za-z]")
_OPTION = re.compile(r"[(\[]?([A-Za-z])[)\].:]?")


@dataclass(frozen=True, slots=True)
class Gold:
    """A right answer."""

    text: str
    """As it was given."""
    value: Value | None
    """What it is; None for texts and choices."""
    kind: str | None
    """One of ``KINDS``, or None: what the text shows."""
    percent: str
    """One of ``PERCENTS``."""


def read_gold(text: str, *, kind: str | None = None, percent: str = "fraction") -> Gold:
    r"""Read a right answer.

    Args:
        text: As the data has it.
        kind: None: what the text shows, and expressions that equal it are right. ``"number"``: only a written number
            is right (``42``, ``3/4``, ``35%``), no ``6 \cdot 7``. ``"set"`` and ``"tuple"``: several values, without
            an order or with one. ``"choice"``: the letter of an option. ``"text"``: words.
        percent: ``"fraction"``: ``35%`` is 0.35. ``"points"``: percents were asked for, ``35%`` and ``35`` are the
            same, and 0.35 is something else.

    Raises:
        ValueError: The text cannot be read as an answer of its kind, or an argument is none of those.
        gymnasium.error.DependencyNotInstalled: The text is an expression and math-verify is missing.
        tetrathlon.envs.rubric.GraderError: The text is an expression and the prover does not work.
    """
    if kind is not None and kind not in KINDS:
        raise ValueError(f"kind must be None or one of {KINDS}, got {kind!r}")
    if percent not in PERCENTS:
        raise ValueError(f"percent must be one of {PERCENTS}, got {percent!r}")
    if kind in ("text", "choice"):
        if not plain(text) or (kind == "choice" and not _OPTION.fullmatch(plain(text))):
            raise ValueError(f"the answer {text!r} cannot be read as a {kind}")
        return Gold(text, None, kind, percent)
    value = _as_kind(_settled(read(text, percent == "points")), kind)
    if value is None:
        raise ValueError(
            f"the answer {text!r} cannot be read as a {kind or 'value'}; "
            "write words as \\text{...} or give kind='text'"
        )
    found = list(scalars(value))
    if any(isinstance(scalar, Surd) for scalar in found):
        prover.require()  # answers may be what only it can compare
    is_hard = any(isinstance(scalar, Expression | Equation) for scalar in found)
    if is_hard and prover.classified(scalars(_with_letters(value))) is None:
        raise ValueError(f"the answer {text!r} cannot be read as an expression")
    return Gold(text, value, kind, percent)


def same_answer(answer: str, gold: Gold) -> bool:
    """Tell whether ``answer`` is the right one.

    Raises:
        tetrathlon.envs.rubric.GraderError: The prover does not work.
    """
    if answer == gold.text:
        return True
    value = gold.value
    if value is None:
        return _same_choice(answer, gold.text) if gold.kind == "choice" else same_text(answer, gold.text)
    given = _as_kind(_settled(read(answer, gold.percent == "points")), gold.kind)
    if given is None:
        return isinstance(value, Text) and len(value.words) > 1 and same_text(answer, value.words)
    if type(given) is Fraction and type(value) is Fraction:
        return given == value
    return same_value(given, value)


def _settled(value: Value | None) -> Value | None:
    """Return the last of two equal sides without letters (``5! = 120``), and else ``value``."""
    if not isinstance(value, Equation) or _LETTER.search(_COMMAND.sub("", value.left + value.right)):
        return value
    left, right = read(value.left), read(value.right)
    if not isinstance(left, _SCALARS) or not isinstance(right, _SCALARS):
        return value
    return right if same_value(left, right) else value


def same_value(left: Value, right: Value) -> bool:
    """Tell whether two values are the same answer, by proof where there are expressions; symmetric."""
    if same(left, right):
        return True
    both = [*scalars(left), *scalars(right)]
    if any(isinstance(scalar, Text) for scalar in both) and not all(isinstance(scalar, Text) for scalar in both):
        left, right = _with_letters(left), _with_letters(right)
        if same(left, right):
            return True
        both = [*scalars(left), *scalars(right)]
    if not any(isinstance(scalar, Expression | Equation) for scalar in both) or not prover.is_installed():
        return False
    if _shape(left) != _shape(right):
        return False
    found = prover.classified(both)
    return found is not None and same(replaced(left, found), replaced(right, found))


def _with_letters(value: Value) -> Value:
    """Return ``value`` with each lone letter as the expression that it is: ``x`` is ``1x``."""
    by: dict[Scalar, Value] = {
        scalar: (surd(scalar.words) or Expression(scalar.words)) if isinstance(scalar, Text) else scalar
        for scalar in scalars(value)
    }
    return replaced(value, by) if any(isinstance(scalar, Text) for scalar in by) else value


def _shape(value: Value) -> object:
    """Return what must agree for two values to be the same, whatever is in them: it saves most questions."""
    match value:
        case Quantity(inside, _):
            return _shape(inside)
        case Set(items) | Several(items) | Tuple(items, _):
            return type(items) is not tuple or True
        case Fraction() | Surd() | Expression():
            return "scalar"
    return type(value)


def _as_kind(value: Value | None, kind: str | None) -> Value | None:
    """Return ``value`` read as ``kind``, or None where it is of another kind."""
    if kind is None or value is None:
        return value
    if isinstance(value, Quantity):
        inside = _as_kind(value.value, kind)
        return None if inside is None else Quantity(inside, value.unit)
    if kind == "number":
        return value if isinstance(value, Fraction | Infinity) else None
    if kind == "set":
        if isinstance(value, Several):
            return Set(frozenset(value.items))
        return value if isinstance(value, Set) else Set(frozenset({value}))
    if isinstance(value, Several):
        return Tuple(value.items)
    return value if isinstance(value, Tuple) else None


def _same_choice(answer: str, gold: str) -> bool:
    letters = [_OPTION.fullmatch(plain(text)) for text in (answer[:100], gold)]
    left, right = (None if match is None else match[1].lower() for match in letters)
    return left is not None and left == right
