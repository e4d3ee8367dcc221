"""Plain data between processes: what a function is called with, and what it returns, as bounded JSON.

The programs in the sandbox carry the source of this module with them, so it imports the standard library only.
A value has one encoding: the entries of sets and dicts are sorted by theirs.
"""

from __future__ import annotations

import json
import math
import re
from itertools import accumulate
from typing import Any

MOST_DEPTH = 40
MOST_PARTS = 100_000
LONGEST_JSON = 1_000_000
TOLERANCE = 1e-6
_SAFE_INTEGER = 2**53
_MOST_JSON_DEPTH = 4 * MOST_DEPTH
_MARKS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
"""Brackets, and texts; one that is not closed goes to the end, so every quote fits and nothing is read twice."""
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}


class DataError(ValueError):
    """A value is no plain data, or too large."""


class KindError(DataError):
    """A value is of a type that is no plain data."""


def encode(value: Any) -> Any:
    """Return ``value`` as JSON data.

    None, bool, int, float, complex, str, bytes, list, tuple, dict, set and frozenset are plain data; an instance of
    a subclass (a named tuple, a ``Counter``) goes as its base.

    Raises:
        KindError: A part of it is of another type.
        DataError: It is too deep or has too many parts.
    """
    left = [MOST_PARTS]

    def walk(part: Any, depth: int) -> Any:
        left[0] -= 1
        if depth > MOST_DEPTH:
            raise DataError(f"a value nested deeper than {MOST_DEPTH}")
        if left[0] < 0:
            raise DataError(f"a value of more than {MOST_PARTS} parts")
        if part is None or part is True or part is False:
            return part
        if isinstance(part, str):
            return str.__str__(part)
        if isinstance(part, int):
            return int(part) if -_SAFE_INTEGER < part < _SAFE_INTEGER else {"i": hex(part)}
        if isinstance(part, float):
            return {"f": float.__repr__(part)}
        if isinstance(part, complex):
            return {"c": [float.__repr__(part.real), float.__repr__(part.imag)]}
        if isinstance(part, bytes):
            return {"b": part.hex()}
        if isinstance(part, list):
            return [walk(item, depth + 1) for item in part]
        if isinstance(part, tuple):
            return {"t": [walk(item, depth + 1) for item in part]}
        if isinstance(part, dict):
            pairs = [[walk(key, depth + 1), walk(item, depth + 1)] for key, item in part.items()]
            return {"d": sorted(pairs, key=lambda pair: write(pair[0]))}
        if isinstance(part, set | frozenset):
            items = [walk(item, depth + 1) for item in part]
            return {"s" if isinstance(part, set) else "z": sorted(items, key=write)}
        raise KindError(f"a value of the type {type(part).__name__}")

    return walk(value, 0)


def decode(coded: Any) -> Any:
    """Return the value that ``coded`` is the encoding of; only ever called on what one's own side may spend."""
    if isinstance(coded, list):
        return [decode(item) for item in coded]
    if not isinstance(coded, dict):
        return coded
    ((kind, inside),) = coded.items()
    if kind == "i":
        return int(inside, 16)
    if kind == "f":
        return float(inside)
    if kind == "c":
        return complex(float(inside[0]), float(inside[1]))
    if kind == "b":
        return bytes.fromhex(inside)
    if kind == "d":
        return {decode(key): decode(item) for key, item in inside}
    return {"t": tuple, "s": set, "z": frozenset}[kind](decode(item) for item in inside)


def write(coded: Any) -> str:
    """Return ``coded`` as one line of ASCII."""
    return json.dumps(coded, separators=(",", ":"), sort_keys=True)


def read(line: str) -> Any:
    """Return the JSON data of ``line``, a message of a program that may be hostile.

    Raises:
        DataError: It is none, too long or too deep.
    """
    if len(line) > LONGEST_JSON:
        raise DataError(f"a message of more than {LONGEST_JSON} characters")
    if max(accumulate(_STEPS.get(mark, 0) for mark in _MARKS.findall(line)), default=0) > _MOST_JSON_DEPTH:
        raise DataError("a message that is nested too deep")
    try:
        return json.loads(line)
    except ValueError:
        raise DataError("a message that is no JSON") from None


def same(coded: Any, expected: Any) -> bool:
    """Tell whether ``coded``, of whatever origin, is the encoding of a value that equals ``expected``.

    Types count: True is not 1, a tuple is no list, and where an int is expected 1.0 is wrong. Where a float is
    expected an int will do, and floats within 1e-6, absolute or relative, are equal; NaN equals nothing. Keys of
    dicts and members of sets are compared exactly. Nothing is built of ``coded``, so its size costs nothing.
    """
    if expected is None or isinstance(expected, bool):
        return coded is expected
    if isinstance(expected, str):
        return isinstance(coded, str) and coded == expected
    if isinstance(expected, float):
        number = _number(coded)
        if number is None or not math.isfinite(expected):
            return number == expected
        return abs(number - expected) <= TOLERANCE * max(1.0, abs(expected))
    if isinstance(expected, list):
        return isinstance(coded, list) and _same_items(coded, expected)
    if isinstance(expected, tuple):
        inside = _inside(coded, "t")
        return inside is not None and _same_items(inside, expected)
    if isinstance(expected, dict):
        inside = _inside(coded, "d")
        if inside is None or len(inside) != len(expected):
            return False
        pairs = {write(pair[0]): pair[1] for pair in inside if isinstance(pair, list) and len(pair) == 2}
        wanted = {write(encode(key)): item for key, item in expected.items()}
        return pairs.keys() == wanted.keys() and all(same(pairs[key], item) for key, item in wanted.items())
    return write(coded) == write(encode(expected))  # as text: in Python 1 == True


def _inside(coded: Any, kind: str) -> list[Any] | None:
    inside = coded.get(kind) if isinstance(coded, dict) and len(coded) == 1 else None
    return inside if isinstance(inside, list) else None


def _same_items(coded: list[Any], expected: Any) -> bool:
    return len(coded) == len(expected) and all(map(same, coded, expected))


def _number(coded: Any) -> float | None:
    if type(coded) is int and abs(coded) < _SAFE_INTEGER:
        return float(coded)
    written = coded.get("f") if isinstance(coded, dict) else None
    if not isinstance(written, str) or len(written) > 40:
        return None
    try:
        return float(written)
    except ValueError:
        return None
