r"""Reads an answer as it is written into a typed value.

The writing does not count: Unicode or ASCII signs, LaTeX or plain, delimiters, bold marks, thousands separators in
groups of three. What is read is bounded before anything is computed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from tetrathlon.envs.grading.hedges import NO_UNITS, word_set
from tetrathlon.envs.grading.rationals import rational
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
_VULGAR = re.compile("[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞]")
_SIZES = re.compile(r"\\(?:left|right|[bB]igg?[lrm]?|displaystyle|textstyle|limits)(?![a-zA-Z])\s?|\\!|\{\\!\}")
_GROUP = re.compile(r"(?<=\d)(?:\{,\}|\\,|\{\\,\})(?=\d{3}(?!\d))")
_COMMA = re.compile(r"\{([,;:])\}")
_BLANKS = re.compile(r"(?:(?<!\\)\\[,;: ]|\\q?quad(?![a-zA-Z])|(?<!\\)~|\s)+")
_NAMES = {
    r"\\[dtc]frac(?![a-zA-Z])": r"\\frac",
    r"\\lbrace(?![a-zA-Z])": r"\\{",
    r"\\rbrace(?![a-zA-Z])": r"\\}",
    r"\\(?:leq|leqslant|le)(?![a-zA-Z])|≤|<=|⩽": r"\\le ",
    r"\\(?:geq|geqslant|ge)(?![a-zA-Z])|≥|>=|⩾": r"\\ge ",
    r"\\lt(?![a-zA-Z])": "<",
    r"\\gt(?![a-zA-Z])": ">",
    r"\\(?:bar|overline)(?![a-zA-Z])": r"\\overline",
    "∞": r"\\infty ",
    "π": r"\\pi ",
    "∪": r"\\cup ",
    "∈": r"\\in ",
    "∅": r"\\emptyset ",
    "√": r"\\sqrt ",
    "°": r"^\\circ ",
    "⁄": "/",
    "×": r"\\times ",
    "·": r"\\cdot ",
    "÷": "/",
}
_RENAMED = re.compile("|".join(f"({pattern})" for pattern in _NAMES))
_NEW_NAMES = [name.replace("\\\\", "\\") for name in _NAMES.values()]
_TEXT = re.compile(r"\\(?:text|textbf|textrm|textit|mbox|mathrm|operatorname)\s?\{([^{}]*)\}")
_JOINT = re.compile(
    r"\\[{}]|[(\[{)\]}]|\\(?:text|mbox|mathrm|textrm)\s?\{\s?,?\s?(?:and|or)\s?\}|,?(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])|[,;]"
)
_THOUSAND = re.compile(r"(?<=\d),\d{3}(?!\d)")
_OPENING = frozenset({"(", "[", "{", r"\{"})
_CLOSING = frozenset({")", "]", "}", r"\}"})
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
_COMMAND = re.compile(r"\\[A-Za-z]+")
_WORD = re.compile(r"[A-Za-z]{2,}")
_FUNCTIONS = word_set("sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln exp sqrt pi")
_SMALL_WORDS = word_set("no ok or if is it as at an up we us so to me my do go he in of on by be am inf nan")
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
    if len(text) < 16 and text.isascii() and text.isdigit():
        return Fraction(int(text))
    if len(text) > _LONGEST or _PROSE.search(text):
        return None
    return _read(text, points)


@lru_cache(maxsize=4096)
def _read(text: str, points: bool) -> Value | None:
    text = usual(text)
    if not text.isascii():
        text = _VULGAR.sub(lambda match: " " + unicodedata.normalize("NFKC", match[0]).replace("⁄", "/"), text)
        text = _SUPERSCRIPT.sub(lambda match: f"^{{{match[0].translate(_SUPER)}}}", text)
    bare = plain(text)
    if bare.startswith("~"):
        return None  # about 5
    value = _Reader(points).value(_clean(bare), 0)
    word = _TEXT.fullmatch(text.strip().strip("$").strip().rstrip("."))
    if word and (value is None or isinstance(value, Expression)):
        return Text(" ".join(word[1].lower().split())) if word[1].strip() else None
    return value


def _clean(text: str) -> str:
    """Return ``text`` with one spelling for each sign, and single blanks."""
    text = _GROUP.sub(",", _SIZES.sub("", text))
    text = _COMMA.sub(r"\1", text) if "{" in text else text
    text = _RENAMED.sub(lambda match: _NEW_NAMES[(match.lastindex or 1) - 1], text)
    return _BLANKS.sub(" ", text).strip()


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
            return Text(option[1].lower())
        if based := _BASED.fullmatch(text):
            return Quantity(Fraction(int(based[1])), f"base {based[2] or based[3]}")
        if _RATIO.fullmatch(text):
            return Tuple(tuple(Fraction(part) for part in text.split(":")), ":")
        if matrix := _MATRIX.fullmatch(text):
            return self.matrix(matrix[2], depth)
        parts = split(text)
        if parts is None:
            return None
        if len(parts) > 1:
            return self.several(parts, depth)
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
        return "=" in text or re.search(rf"(?<![\\A-Za-z]){re.escape(name)}(?![A-Za-z])", text) is not None

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
        if left not in _OPENING or right not in _CLOSING or not _encloses(text):
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


def _is_measured(value: Value) -> bool:
    return isinstance(value, Quantity | Text)


def _encloses(text: str) -> bool:
    """Tell whether the first bracket of ``text`` is closed by its last sign."""
    depth = 0
    for match in _JOINT.finditer(text):
        depth += (match[0] in _OPENING) - (match[0] in _CLOSING)
        if depth == 0:
            return match.end() == len(text)
    return False


def split(text: str) -> list[str] | None:
    """Return the values that ``text`` holds side by side; None where brackets or separators do not fit.

    Where a comma with a blank behind it separates, commas before three digits do not: ``1,000, 2,000``.
    """
    joints = list(_JOINT.finditer(text))
    spaced = any(_separates(text, match) for match in joints)
    parts: list[str] = []
    used: set[str] = set()
    depth = start = 0
    for match in joints:
        sign = match[0]
        if sign in _OPENING:
            depth += 1
        elif sign in _CLOSING:
            depth -= 1
            if depth < 0:
                return None
        elif depth == 0 and not (sign == "," and spaced and _THOUSAND.match(text, match.start())):
            used.add(";" if sign == ";" else ",")
            part = text[start : match.start()].strip()
            if part or not parts or sign in ",;":
                parts.append(part)
            start = match.end()
    if depth or len(used) > 1:
        return None
    if not parts:
        return [text]
    parts.append(text[start:].strip())
    if len(parts) > 2 and parts[-2] == "":  # the comma before "and"
        del parts[-2]
    return parts if all(parts) else None


def _separates(text: str, match: re.Match[str]) -> bool:
    sign = match[0]
    return sign not in _OPENING and sign not in _CLOSING and (sign != "," or text[match.end() : match.end() + 1] == " ")


def _expression(text: str) -> Value | None:
    """Return ``text`` for the prover, unless it is words or signs that mean nothing."""
    left, *more = text.split("=")
    if len(more) > 1 or (more and not (left.strip() and more[0].strip())):
        return None
    if more:
        sides = left.strip(), more[0].strip()
        if not all(isinstance(_expression(side), Expression) or _DIGITS.fullmatch(side) for side in sides):
            return None
        return Equation(*sides)
    if not _EXPRESSION.fullmatch(text) or "\\text" in text or _DIGITS.fullmatch(text):
        return None
    if len(text) > 2 and text.isalpha() and text.isascii() and text not in _FUNCTIONS:
        return None  # a word; a product of three letters has blanks or signs
    words = [word.lower() for word in _WORD.findall(_COMMAND.sub(" ", text))]
    if any(word not in _FUNCTIONS and (len(word) > 3 or word in _SMALL_WORDS or word in NO_UNITS) for word in words):
        return None
    return Expression(text)
