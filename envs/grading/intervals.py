"""Intervals that several inequalities make together."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tetrathlon.envs.grading.values import Infinity, Set, Tuple, Value


def intersection(intervals: Sequence[Tuple]) -> Value | None:
    """Return what is in all of ``intervals``; None where their ends are no rational numbers."""
    ends = [_place(end) for interval in intervals for end in interval.items]
    if None in ends:
        return None
    places = [place for place in ends if place is not None]
    lows = [(place, each.brackets[0], each.items[0]) for place, each in zip(places[::2], intervals, strict=True)]
    highs = [(place, each.brackets[1], each.items[1]) for place, each in zip(places[1::2], intervals, strict=True)]
    low = max(lows, key=lambda end: (end[0], end[1] == "("))
    high = min(highs, key=lambda end: (end[0], end[1] == "]"))
    brackets = low[1] + high[1]
    if low[0] < high[0]:
        return Tuple((low[2], high[2]), brackets)
    return Set(frozenset({low[2]} if low[0] == high[0] and brackets == "[]" else ()))


def _place(end: Value) -> tuple[int, Fraction] | None:
    """Return what sorts an end of an interval."""
    if isinstance(end, Infinity):
        return end.sign, Fraction(0)
    return (0, end) if isinstance(end, Fraction) else None
