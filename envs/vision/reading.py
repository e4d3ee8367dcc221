"""Boxes and points out of a final answer: strictly, in linear time, and with the reason where there are none.

What text is the final answer is told by an :class:`~tetrathlon.envs.language.formats.AnswerFormat`, as in every task.
In it a place may be written as models do:

- numbers in brackets, ``[20, 40, 100.5, 160]``, ``(0.45, 0.73)``, ``<box>(20,40),(100,160)</box>``,
  ``click(867, 789)``, or bare, where the answer is nothing else: ``867, 789``;
- by name: ``click(x=867, y=789)``, ``{"x1": 20, "y1": 40, "x2": 100, "y2": 160}``, ``<point x="867" y="789">``,
  ``<points x1="867" y1="789">``;
- in JSON, also in a code fence, on several lines, within other objects and in strings of one quote:
  ``[{"bbox_2d": [20, 40, 100, 160], "label": "cup"}]``.

Words may stand around it, and lone numbers among them (``cup 2``, ``(confidence 0.9)``); several numbers in a row may
not, since nobody could tell which of them count. A bracket that holds a number and is none of the above spoils the
whole answer, as do one that was never opened and one bad box in a list: an answer is read as a whole or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from tetrathlon.envs.vision.boxes import Size
from tetrathlon.envs.vision.coordinates import Convention, Malformed
from tetrathlon.envs.vision.literals import NUMBER, Pairs, Value, parse

LONGEST = 65_536
"""Characters of an answer."""
MOST_BOXES = 100
"""Boxes of one answer."""
REASONS = MappingProxyType(
    {
        "no_answer": "there is no final answer",
        "too_long": f"the answer has more than {LONGEST:,} characters",
        "nothing": "the answer holds no box or point",
        "syntax": "a bracket holds numbers and is no box or point in a known form",
        "number": "a number is not finite, not in plain digits, or no number",
        "length": "a box is four numbers, a point two",
        "extra": "there are numbers beside the box or point, or it is said to be unseen, too",
        "several": "there are different boxes or points where one was asked for",
        "too_many": f"there are more boxes than are looked at, {MOST_BOXES} unless the task says otherwise",
        "convention": "the numbers have names that another convention gives them",
        "range": "a number is out of the convention's range",
        "reversed": "the corners of a box are the wrong way round",
    }
)
"""Why an answer was not read, by code."""

_BOX_KEYS = frozenset(
    name + ending for name in ("bbox", "box", "bounding_box", "position") for ending in ("", "_2d", "s", "es", "s_2d")
)
_POINT_KEYS = frozenset(
    ["point", "points", "point_2d", "points_2d", "coordinate", "coordinates", "position", "start_box", "start_point"]
)
_CORNER_NAMES = (
    ("x1", "y1", "x2", "y2"),
    ("xmin", "ymin", "xmax", "ymax"),
    ("x_min", "y_min", "x_max", "y_max"),
    ("left", "top", "right", "bottom"),
)
_SIZE_NAMES = (("x", "y", "width", "height"), ("x", "y", "w", "h"))
_BEYOND_POINT = (("x", "y", "x2", "y2"), *((*"xy", side) for side in ("width", "height", "w", "h")))
_FENCE = re.compile(r"```(?:[A-Za-z][A-Za-z0-9_]{0,19})?")
_NUMBERED_TAG = re.compile(r"<(point|box|bbox)>([-+.,;\deE\s]*+)</\1>", re.ASCII | re.IGNORECASE)
_ATTRIBUTES = re.compile(r"<(points?|box|bbox)\s([^<>]*+)>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""\b([a-z]\w{0,30})\s{0,8}=\s{0,8}["']?([^\s"'<>()/]{1,64})""", re.ASCII | re.IGNORECASE)
_TWO_CORNERS = re.compile(rf"\(\s*+({NUMBER})\s*+,\s*+({NUMBER})\s*+\)\s*+,?+\s*+" * 2, re.ASCII)
_LATEX = re.compile(r"\\([\[\]()])")
_NUMBER_LIKE = r"(?<!\w)(?:\.?\d|nan\b|inf\b|infinity\b)"
_OPEN = re.compile(r"[\[({]")
_WORDS_IN_BRACKETS = re.compile(
    rf"[\[({{](?:(?!{_NUMBER_LIKE})[^\[\](){{}}])*+[\])}}]"
    r"|\([^\W\d]++(?:[ ]{1,4}[^\W\d]++)*+[ ]{1,4}[\d.]{1,12}%?+\)",  # a lone number behind words
    re.IGNORECASE,
)
_CLOSING = re.compile(r"[\]}]")
_ROW = re.compile(r"(?<![\w.])[-+]?\.?\d[\w.]*+[\s,;]++[-+]?\.?\d")
_NAMED = re.compile(r"[:=]\s*+[-+.\d]")
_UNSEEN = re.compile(r"\bunseen\b", re.IGNORECASE)
_EMPTY_LIST = re.compile(r"\[\s*+\]")


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What an answer says, or why it says nothing. An answer that is read may still be wrong."""

    pixels: NDArray[np.float64]
    """Boxes, x1, y1, x2, y2, shape [n, 4], or points, x, y, shape [n, 2], in pixels of the picture, not clipped to it;
    n is 0 where the answer is malformed."""
    reason: str = ""
    """Code of :data:`REASONS`; empty where the answer was read."""

    @property
    def is_read(self) -> bool:
        """Whether the answer is well formed."""
        return not self.reason

    @property
    def said(self) -> str:
        """What is wrong, in words; empty where nothing is."""
        return REASONS[self.reason] if self.reason else ""


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is looked for, under a convention."""

    width: int
    keys: frozenset[str]
    names: tuple[tuple[str, ...], ...]
    """Names of the numbers in the order of the convention."""
    foreign: tuple[tuple[str, ...], ...]
    """Names that belong to another convention."""


def read_box(answer: str | None, convention: Convention, size: Size) -> Reading:
    """Return the one box that an answer gives.

    The same box twice is one box; different ones are malformed. A box without area is well formed, and covers nothing.

    Args:
        answer: A final answer, of any length and content; None: there is none.
        convention: In which its numbers are.
        size: Of the picture, pixels.

    Returns:
        ``pixels`` of shape [1, 4], or [0, 4] with the reason.

    Raises:
        ValueError: ``size`` is no size; never for what is in ``answer``.
    """
    return _read(answer, convention, size, _box_kind(convention), None)


def read_boxes(answer: str | None, convention: Convention, size: Size, most: int = MOST_BOXES) -> Reading:
    """Return all boxes that an answer gives, in its order; ``[]`` gives none, and a box may come twice.

    Args:
        answer: See :func:`read_box`.
        convention: As above.
        size: As above.
        most: How many boxes are looked at; more are malformed.

    Returns:
        ``pixels`` of shape [n, 4], or [0, 4] with the reason.

    Raises:
        ValueError: See :func:`read_box`.
    """
    return _read(answer, convention, size, _box_kind(convention), most)


def read_point(answer: str | None, convention: Convention, size: Size) -> Reading:
    """Return the one point that an answer gives; a box is none, whatever its middle.

    Args:
        answer: See :func:`read_box`.
        convention: As above.
        size: As above.

    Returns:
        ``pixels`` of shape [1, 2], or [0, 2] with the reason.

    Raises:
        ValueError: See :func:`read_box`.
    """
    return _read(answer, convention, size, _Kind(2, _POINT_KEYS, (convention.point_names,), _BEYOND_POINT), None)


def _box_kind(convention: Convention) -> _Kind:
    flips = convention.order == "yxyx"
    corners = tuple((y1, x1, y2, x2) if flips else (x1, y1, x2, y2) for x1, y1, x2, y2 in _CORNER_NAMES)
    if convention.order == "xywh":
        return _Kind(4, _BOX_KEYS, _SIZE_NAMES, corners)
    return _Kind(4, _BOX_KEYS, corners, _SIZE_NAMES)


def _read(answer: str | None, convention: Convention, size: Size, kind: _Kind, most: int | None) -> Reading:
    nothing = convention.to_px(np.zeros((0, kind.width)), size)
    if answer is None:
        return Reading(nothing, "no_answer")
    if len(answer) > LONGEST:
        return Reading(nothing, "too_long")
    try:
        found = _places(answer, kind)
        if len(found) > (limit := MOST_BOXES if most is None else most):
            raise Malformed("too_many", f"{len(found)} places, more than {limit}")
        if most is None and len(found := list(dict.fromkeys(found))) > 1:
            raise Malformed("several", f"{len(found)} different places")
        if found:
            return Reading(convention.to_px(found, size))
        if most is None or not _EMPTY_LIST.search(answer):
            raise Malformed("nothing", "no place")
        return Reading(nothing)
    except Malformed as error:
        return Reading(nothing, error.reason)


def _places(answer: str, kind: _Kind, depth: int = 0) -> list[tuple[float, ...]]:
    """Return the places of an answer."""
    text = _LATEX.sub(r"\1", _FENCE.sub(" ", answer))
    if "<" in text:
        text = _ATTRIBUTES.sub(_attributes, _NUMBERED_TAG.sub(r" (\2) ", text))
    if kind.width == 4:
        text = _TWO_CORNERS.sub(r"(\1, \2, \3, \4) ", text)
    words, values = _split(text)
    if not values:
        if not _ROW.search(text) and not _NAMED.search(text):
            return []
        value, end = parse(f"({text.strip()})", 0)
        if end < len(text.strip()) + 2:
            raise Malformed("syntax", "a bracket was never opened")
        values = [value]
    elif _CLOSING.search(words):
        raise Malformed("syntax", "a bracket was never opened")
    elif _ROW.search(words):
        raise Malformed("extra", "several numbers in a row beside it")
    elif _UNSEEN.search(text):
        raise Malformed("extra", "two answers that exclude each other")
    return [place for value in values for place in _collect(value, kind, depth)]


def _split(text: str) -> tuple[str, list[Value]]:
    """Return the words of a text, and the values of its brackets."""
    words, values, at = [], [], 0
    while opening := _OPEN.search(text, at):
        words.append(text[at : opening.start()])
        if only_words := _WORDS_IN_BRACKETS.match(text, opening.start()):
            at = only_words.end()
        else:
            value, at = parse(text, opening.start())
            values.append(value)
    return "|".join([*words, text[at:]]), values


def _attributes(tag: re.Match[str]) -> str:
    """Return the numbers among the attributes of a tag as named values."""
    pairs = [(name.lower(), value) for name, value in _ATTRIBUTE.findall(tag[2]) if re.fullmatch(NUMBER, value)]
    named = dict(pairs)
    if tag[1].lower() == "points" and len(named) == len(pairs):
        points = [f"(x={named[x]}, y={named[y]})" for x in named if x[0] == "x" and (y := f"y{x[1:]}") in named]
        if 2 * len(points) == sum(name[0] in "xy" for name in named):
            return f" ({', '.join(points)}) "
    return f" ({', '.join(f'{name}={value}' for name, value in pairs)}) "


def _collect(value: Value, kind: _Kind, depth: int) -> Iterator[tuple[float, ...]]:
    """Yield the places in a value."""
    if isinstance(value, Pairs):
        yield from _named(value, kind, depth)
    elif not isinstance(value, list):
        raise Malformed("number" if value is None else "syntax", "no bracket where one was to be")
    elif all(isinstance(item, list | Pairs) for item in value):
        for item in value:
            yield from _collect(item, kind, depth)
    elif any(item is None or isinstance(item, str) for item in value):
        raise Malformed("number", "something in a row of numbers is none")
    else:
        numbers = tuple(item for item in value if isinstance(item, float))
        if len(numbers) != kind.width or len(value) != kind.width:
            raise Malformed("length", f"{len(numbers)} numbers, not {kind.width}")
        yield numbers


def _named(pairs: Pairs, kind: _Kind, depth: int) -> Iterator[tuple[float, ...]]:
    """Yield the places in an object: under the keys for them, by the names of the numbers, or further inside."""
    keys = [key.lower() for key, _ in pairs]
    if any(set(names) <= set(keys) for names in kind.foreign):
        raise Malformed("convention", f"named {', '.join(keys)}")
    is_known = False
    for key, (_, value) in zip(keys, pairs, strict=True):
        if key in kind.keys:
            is_known = True
            if isinstance(value, str) and depth == 0:
                yield from _places(value, kind, 1)
            else:
                yield from _collect(value, kind, depth)
    for names in kind.names:
        if set(names) <= set(keys):
            is_known = True
            if any(keys.count(name) > 1 for name in names):
                raise Malformed("several", "a number is named twice")
            numbers = [pairs[keys.index(name)][1] for name in names]
            yield from _collect(numbers, kind, depth)
    if is_known:
        return
    for _, value in pairs:
        if isinstance(value, list | Pairs):
            yield from _collect(value, kind, depth)
