r"""Reads an answer as it is written into a typed value.

The writing does not count: Unicode or ASCII signs, LaTeX or plain, delimiters, bold marks, thousands separators in
groups of three. What is read is bounded before anything is computed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from tetrathlon.envs.grading.hedges import NO_UNITS, word_set
from tetrathlon.envs.grading.intervals import intersection
from tetrathlon.envs.grading.latex import VULGAR, cleaned
from tetrathlon.envs.grading.lists import CLOSING, OPENING, connective, encloses, sides, split, without_thousands
from tetrathlon.envs.grading.rationals import rational
from tetrathlon.envs.grading.surds import Surd, surd
from tetrathlon.envs.grading.units import split_unit
from tetrathlon.envs.grading.values import (
    Equation,
    Expression,
    Infinity,
    Matrix,
    Named,
    Quantity,
    Set,
    Several,
    Text,
    Tuple,
    Union,
    Value,
)
from tetrathlon.envs.grading.writing import plain, usual

_LONGEST = 1_000
_DEEPEST = 6
_MOST_ITEMS = 64
_SUPER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_TEXT = re.compile(r"\\(?:text|textbf|textrm|textit|mbox|mathrm|operatorname)\s?\{([^{}]*)\}")
_NAME = r"(?:[A-Za-z]|\\(?!frac|sqrt|infty|pi|sin|cos|tan|log|ln)[a-z]{2,8})(?:_(?:\w|\{\w{1,8}\}))?(?:'|\([a-z]\))?"
_ASSIGNED = re.compile(rf"({_NAME})\s?(?:=|\\in(?![a-zA-Z]))\s?(?![=])")
_RELATION = re.compile(r"\s?(\\le(?![a-zA-Z])|\\ge(?![a-zA-Z])|<|>)\s?")
_JUST_NAME = re.compile(_NAME)
_INFINITY = re.compile(r"([+-]?)\s?(?:\\infty|infinity)\s?", re.IGNORECASE)
_EMPTY = re.compile(r"\\(?:emptyset|varnothing)|\\\{\s?\\\}|\{\s?\}")
_CUP = re.compile(r"\\cup(?![a-zA-Z])|(?<=[)\]}])\s?U\s?(?=[(\[{\\])")
_MATRIX = re.compile(r"\\begin\s?\{([pb]matrix|array)\}(?:\{[clr| ]*\})?(.*)\\end\s?\{\1\}")
_BASED = re.compile(r"(\d{1,100})\s?_\s?(?:\{\s?(\d{1,2})\s?\}|(\d))", re.ASCII)
_RATIO = re.compile(r"\d{1,9}(?:\s?:\s?\d{1,9}){1,4}", re.ASCII)
_PLUS_MINUS = re.compile(r"\\pm(?![a-zA-Z])\s?|±\s?")
_OPTION = re.compile(r"\(?([A-Za-z])[).:]?")
_OPTIONS = frozenset("ABCDEFGH")
"""Letters that mean the same in either case, alone."""
_COMMAND = re.compile(r"\\[A-Za-z]+")
_LETTER = re.compile(r"[A-Za-z]")
_CROSS = re.compile(r"(?<=[\d)])\s?x\s?(?=[\d(])|\\div(?![a-zA-Z])")
_MOST_SIDES = 8
_NONSENSE = re.compile(r"n\s?/\s?a|[*/^_].*|.*[-+*/^_]", re.IGNORECASE)
_APART = re.compile(r"(?<![\\A-Za-z])([A-Za-z]{3,})(?= [A-Za-z\d])|(?<=[A-Za-z\d] )([A-Za-z]{3,})")
"""A word beside another or a number: ``5 per day`` is no product."""
_WORD = re.compile(r"[A-Za-z]{2,}")
_FUNCTIONS = word_set("sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln exp sqrt pi")
_SMALL_WORDS = word_set("no ok or if is it as at an up we us so to me my do go he in of on by be am inf nan")
_INDEX = re.compile(r"\\(?:sum|prod)\s?_\s?\{\s?[A-Za-z]\s?=")
_EXPRESSION = re.compile(r"[A-Za-z0-9\s\\{}()\[\]+\-*/^_.,!|α-ωΑ-Ω]+")
_PROSE = re.compile(r"\A[A-Za-z']{2,}+ (?!pi)[A-Za-z']{2}|[A-Za-z']++ [A-Za-z']++ [A-Za-z']++ [A-Za-z']{2}")
"""Two words to begin with, or four in a row: looked for first, since most replies are prose."""
_DIGITS = re.compile(r"[+-]?[\d.,\s]+(?:[eE][+-]?\d+)?(?:\s?/\s?[\d.,]+)?", re.ASCII)
"""What is a number, or nothing."""


def read(text: str, points: bool = False) -> Value | None:
    r"""Return the value that ``text`` is, or None where it is none, or too large to be looked at.

    Args:
        text: An answer with nothing around it but delimiters.
        points: Whether percents were asked for: then ``35\%`` and ``35`` are both 35.
    """
    digits = text[1:] if text.startswith("-") else text
    if len(digits) < 16 and digits.isascii() and digits.isdigit():
        return Fraction(int(text))
    if len(text) > _LONGEST or _PROSE.search(text):
        return None
    return _read(text, points)


@lru_cache(maxsize=4096)
def _read(text: str, points: bool) -> Value | None:
    text = usual(text)
    if not text.isascii():
        text = text.translate(VULGAR)
        text = _SUPERSCRIPT.sub(lambda match: f"^{{{match[0].translate(_SUPER)}}}", text)
    bare = plain(text)
    if bare.startswith("~"):
        return None  # about 5
    value = _Reader(points).value(cleaned(bare), 0)
    word = _TEXT.fullmatch(text.strip().strip("$").strip().rstrip("."))
    if word and (value is None or isinstance(value, Expression | Surd)):
        words = " ".join(word[1].split())
        return (_letter(words) if len(words) == 1 else Text(words.lower())) if words else None
    return value


class _Reader:
    """Reads one answer.

    Args:
        points: See :func:`read`.
    """

    def __init__(self, points: bool) -> None:
        self.points = points

    def value(self, text: str, depth: int) -> Value | None:
        if depth > _DEEPEST or not text:
            return None
        if (number := rational(text, self.points)) is not None:
            return number
        if infinity := _INFINITY.fullmatch(text):
            return Infinity(-1 if infinity[1] == "-" else 1)
        if _EMPTY.fullmatch(text):
            return Set(frozenset())
        if option := _OPTION.fullmatch(text):
            return _letter(option[1])
        if based := _BASED.fullmatch(text):
            base = based[2] or based[3]
            return Quantity(Fraction(int(based[1])), f"base {base}") if int(max(based[1])) < int(base) else None
        if _RATIO.fullmatch(text):
            return Tuple(tuple(Fraction(part) for part in text.split(":")), ":")
        if matrix := _MATRIX.fullmatch(text):
            return self.matrix(matrix[2], depth)
        text = without_thousands(text)
        parts = split(text)
        if parts is None:
            return None
        if len(parts) > 1:
            bounds = self.bounds(text, parts, depth) if _RELATION.search(text) else None
            return self.several(parts, depth) if bounds is None else bounds
        if (end := self.end(text, depth)) is not None:
            return end
        if (chain := self.inequality(text, depth)) is not None:
            return chain
        if (assigned := _ASSIGNED.match(text)) and not self.mentions(text[assigned.end() :], assigned[1]):
            return self.value(text[assigned.end() :], depth + 1)
        if _CUP.search(text):
            return self.union(text, depth)
        if (both := _PLUS_MINUS.search(text)) and not _PLUS_MINUS.search(text, both.end()):
            ends = [text[: both.start()] + sign + text[both.end() :] for sign in "+-"]
            return self.several([end.removeprefix("+").strip() for end in ends], depth)
        if (inside := self.bracketed(text, depth)) is not None:
            return inside
        if (unit := split_unit(text)) and unit[0] != text:
            quantity = self.value(unit[0].strip(), depth + 1)
            return Quantity(quantity, unit[1]) if quantity is not None and not _is_measured(quantity) else None
        return _expression(text)

    @staticmethod
    def mentions(text: str, name: str) -> bool:
        """Tell whether ``text`` has the variable ``name`` too, or a further equation."""
        return len(sides(text)) > 1 or re.search(rf"(?<![\\A-Za-z]){re.escape(name)}(?![A-Za-z])", text) is not None

    def end(self, text: str, depth: int) -> Value | None:
        """Return the last side of equal sides without letters (``2 + 3 = 5``, ``x = 10/2 = 5``)."""
        parts = sides(text)
        if len(parts) > 2 and _JUST_NAME.fullmatch(parts[0]):
            del parts[0]
        if not 2 <= len(parts) <= _MOST_SIDES:
            return None
        parts = [_CROSS.sub(lambda match: "/" if match[0][0] == "\\" else r" \times ", part) for part in parts]
        if any(_LETTER.search(_COMMAND.sub("", part)) for part in parts[:-1]):
            return None
        values = [self.value(part, depth + 1) for part in parts]
        last = values[-1].value if isinstance(values[-1], Quantity) else values[-1]
        is_chain = isinstance(last, Fraction | Surd) and all(value == last for value in values[:-1])
        return values[-1] if is_chain else None

    def bounds(self, text: str, parts: Sequence[str], depth: int) -> Value | None:
        """Read inequalities of one variable between "or" as a union, and between "and" as an intersection."""
        joint = connective(text)
        names = {_variable(part) for part in parts}
        if not joint or len(names) > 1 or "" in names:
            return None
        found = [self.inequality(part, depth + 1) for part in parts]
        intervals = [interval for interval in found if isinstance(interval, Tuple)]
        if len(intervals) < len(parts):
            return None
        return Union(frozenset(intervals)) if joint == "or" else intersection(intervals)

    def several(self, parts: Sequence[str], depth: int) -> Value | None:
        items = [self.item(part, depth) for part in parts]
        if len(items) > _MOST_ITEMS:
            return None
        values = [value for _, value in items]
        names = {name for name, _ in items}
        read: list[Value] = [value for value in values if value is not None]
        if len(read) < len(values):
            return None
        if len(names - {""}) > 1:
            read = [Named(name, value) for (name, _), value in zip(items, read, strict=True)]
        units = {value.unit for value in read if isinstance(value, Quantity)}
        if len(units) == 1 and isinstance(read[-1], Quantity):  # 5 and 6 cm
            bare = [value.value if isinstance(value, Quantity) else value for value in read]
            return Quantity(Several(tuple(bare)), units.pop())
        return Several(tuple(read))

    def item(self, text: str, depth: int) -> tuple[str, Value | None]:
        text = text.strip().strip("$").strip()
        if (assigned := _ASSIGNED.match(text)) and not self.mentions(text[assigned.end() :], assigned[1]):
            return assigned[1], self.value(text[assigned.end() :], depth + 1)
        return "", self.value(text, depth + 1)

    def inequality(self, text: str, depth: int) -> Value | None:
        r"""Read ``x > 3`` and ``1 < x \le 4`` as intervals."""
        parts = _RELATION.split(text)
        if len(parts) not in (3, 5):
            return None
        sides, signs = parts[::2], parts[1::2]
        if len(sides) == 2 and _JUST_NAME.fullmatch(sides[1]):
            sides = sides[::-1]
            signs = [{"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le"}[signs[0]]]
        name = sides[len(sides) // 2 if len(sides) == 3 else 0]
        if not _JUST_NAME.fullmatch(name):
            return None
        ends = [self.value(side, depth + 1) for side in sides if side is not name]
        if any(end is None for end in ends):
            return None
        low: Value | None
        high: Value | None
        if len(ends) == 1:
            upward = signs[0] in (">", r"\ge")
            low, high = (ends[0], Infinity(1)) if upward else (Infinity(-1), ends[0])
            closed = "e" in signs[0]
            brackets = ("[" if closed and upward else "(") + ("]" if closed and not upward else ")")
        else:
            if {sign[-1] for sign in signs} & {">"} or r"\ge" in signs:
                if any(sign in ("<", r"\le") for sign in signs):
                    return None
                ends, signs = ends[::-1], signs[::-1]
            low, high = ends
            brackets = ("[" if "e" in signs[0] else "(") + ("]" if "e" in signs[1] else ")")
        assert low is not None and high is not None
        return Tuple((low, high), brackets)

    def union(self, text: str, depth: int) -> Value | None:
        parts = [self.value(part.strip(), depth + 1) for part in _CUP.split(text)]
        if len(parts) > _MOST_ITEMS or not all(isinstance(part, Tuple | Set) for part in parts):
            return None
        return Union(frozenset(part for part in parts if part is not None))

    def bracketed(self, text: str, depth: int) -> Value | None:
        """Read a set, a tuple, an interval or a value in brackets that say nothing."""
        left = text[:2] if text.startswith("\\{") else text[0]
        right = text[-2:] if text.endswith("\\}") else text[-1]
        if left not in OPENING or right not in CLOSING or not encloses(text):
            return None
        inside = text[len(left) : -len(right)].strip()
        parts = split(inside)
        if parts is None or not inside or len(parts) > _MOST_ITEMS:
            return None
        items: list[Value] = []
        for part in parts:
            item = self.value(part.strip(), depth + 1)
            if item is None:
                return None
            items.append(item)
        if left in ("{", r"\{"):
            is_set = left == r"\{" or len(items) > 1
            return (Set(frozenset(items)) if is_set else items[0]) if right in ("}", r"\}") else None
        if right in ("}", r"\}"):
            return None
        if len(items) == 1:
            return items[0] if left == "(" and right == ")" else None
        if len(items) == 2:
            return Tuple(tuple(items), left + right)
        return Tuple(tuple(items)) if left + right in ("()", "[]") else None

    def matrix(self, text: str, depth: int) -> Value | None:
        rows = []
        for row in re.split(r"\\\\(?:\[\d{1,2}[a-z]{2}\])?", text.removesuffix(r"\\ ").removesuffix(r"\\")):
            items = [self.value(item.strip(), depth + 1) for item in row.split("&")]
            rows.append(tuple(item for item in items if item is not None))
            if len(rows[-1]) < len(items) or len(rows[-1]) != len(rows[0]):
                return None
        return Matrix(tuple(rows)) if len(rows) * len(rows[0]) <= _MOST_ITEMS else None


def _letter(name: str) -> Text:
    return Text(name.lower() if name.upper() in _OPTIONS else name)


def _variable(text: str) -> str:
    """Return the variable of an inequality, or nothing."""
    names = [side for side in _RELATION.split(text)[::2] if _JUST_NAME.fullmatch(side)]
    return names[0] if len(names) == 1 else ""


def _is_measured(value: Value) -> bool:
    return isinstance(value, Quantity | Text)


def _expression(text: str) -> Value | None:
    """Return ``text`` as a surd or for the prover, unless it is words or signs that mean nothing."""
    both = sides(text)
    if len(both) > 2 or not all(both):
        return None
    if len(both) == 2:
        if not all(isinstance(_expression(side), Expression | Surd) or _DIGITS.fullmatch(side) for side in both):
            return None
        return Equation(*both)
    if (
        _NONSENSE.fullmatch(text)
        or not _EXPRESSION.fullmatch(_INDEX.sub("", text) if "=" in text else text)
        or "\\text" in text
        or _DIGITS.fullmatch(text)
    ):
        return None
    if len(text) > 2 and text.isalpha() and text.isascii() and text not in _FUNCTIONS:
        return None  # a word; a product of three letters has blanks or signs
    if any((match[1] or match[2]).lower() not in _FUNCTIONS for match in _APART.finditer(text)):
        return None
    words = [word.lower() for word in _WORD.findall(_COMMAND.sub(" ", text))]
    if any(word not in _FUNCTIONS and (len(word) > 3 or word in _SMALL_WORDS or word in NO_UNITS) for word in words):
        return None
    return surd(text) or Expression(text)
