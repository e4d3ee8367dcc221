"""What a program printed, against what it should have printed."""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"[+-]?(?:\d{1,40}\.?\d{0,40}|\.\d{1,40})(?:[eE][+-]?\d{1,4})?", re.ASCII)


def same_output(actual: str, expected: str, *, tolerance: float = 1e-6) -> bool:
    """Tell whether two outputs are the same, line by line and token by token.

    Blanks at the end of a line and empty lines at the end of the output do not count, and neither does how many
    blanks stand between two tokens or before the first. What stands on which line does: ``1 2`` is not ``1`` and
    ``2`` on lines of their own. Tokens are equal as text; two decimal numbers of up to 40 digits before and after
    the point are also equal where they differ by no more than ``tolerance``, absolute or relative to the expected
    one. Two integers must be exactly equal: 10000000 is not 10000001. ``nan`` and ``inf`` are text.

    Args:
        actual: What was printed; the time taken is linear in it.
        expected: What should have been printed.
        tolerance: How far numbers may differ.

    Raises:
        ValueError: ``tolerance`` is negative or not finite.
    """
    if not 0 <= tolerance < math.inf:
        raise ValueError(f"tolerance must be a finite number from 0, got {tolerance!r}")
    # Only newlines end lines: a form feed or a line separator inside a text is a character of it.
    left, right = (text.replace("\r\n", "\n").rstrip().split("\n") for text in (actual, expected))
    if len(left) != len(right):
        return False
    return all(a == b or _same_line(a.split(), b.split(), tolerance) for a, b in zip(left, right, strict=True))


def _same_line(actual: list[str], expected: list[str], tolerance: float) -> bool:
    if len(actual) != len(expected):
        return False
    return all(a == b or _same_number(a, b, tolerance) for a, b in zip(actual, expected, strict=True))


def _same_number(actual: str, expected: str, tolerance: float) -> bool:
    if not _NUMBER.fullmatch(actual) or not _NUMBER.fullmatch(expected):
        return False
    if _is_integer(actual) and _is_integer(expected):
        return int(actual) == int(expected)
    a, b = float(actual), float(expected)
    return math.isfinite(a) and math.isfinite(b) and abs(a - b) <= tolerance * max(1.0, abs(b))


def _is_integer(token: str) -> bool:
    return token.lstrip("+-").isdigit()
