r"""A rational number as it is written: ``42``, ``-0.5``, ``3/4``, ``\frac34``, ``1\frac12``, ``35\%``, ``1.5e3``."""

from __future__ import annotations

import re
from fractions import Fraction

_GROUPED = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)"
_DECIMAL = rf"(?:{_GROUPED}(?:\.\d+)?|\.\d+)"
_SIGNED = rf"[+-]?\s?{_DECIMAL}"
_TIMES = r"\s?(?:\\times|\\cdot|[*×·])\s?"
_WHOLE = r"\d+"
_OVER = (
    r"\\frac\s?(?:\{{\s?(?P<n{0}>{1})\s?\}}|(?P<n{0}s>\d))\s?(?:\{{\s?(?P<d{0}>{1})\s?\}}|(?P<d{0}s>\d))"  # \frac{1}2
)
RATIONAL = (
    rf"(?=[\d.\\])(?:(?P<whole>{_GROUPED})(?:\s?{_OVER.format(1, _WHOLE)}|\s(?P<n2>\d+)/(?P<d2>\d+))"
    rf"|{_OVER.format(3, _SIGNED)}"
    rf"|(?P<n4>{_DECIMAL})\s?/\s?(?P<d4>{_DECIMAL})"
    rf"|(?P<mantissa>{_DECIMAL})(?:[eE](?P<e1>[+-]?\d+)|{_TIMES}10\s?\^\s?(?:\{{\s?(?P<e2>[+-]?\d+)\s?\}}|(?P<e3>\d)))"
    rf"|(?P<head>\d*\.\d*)\\overline\s?\{{(?P<cycle>\d+)\}}"
    rf"|(?P<decimal>{_DECIMAL}))"
)
"""A number without a sign, in the LaTeX that ``reading.py`` makes of it."""
PERCENT = r"\s?(?:\\?%|(?:percent|per cent)(?![a-zA-Z])|\\text\s?\{\s?(?:percent|per cent|\\?%)\s?\})"
_NUMBER = re.compile(rf"(?P<sign>[+-]?)\s?{RATIONAL}(?P<percent>{PERCENT})?", re.ASCII)
_MOST_DIGITS = 400
_LARGEST_EXPONENT = 400


def rational(text: str, points: bool = False) -> Fraction | None:
    """Return the exact number that ``text`` is, or None.

    Args:
        text: A number with nothing around it.
        points: Whether ``35%`` is 35, since percents were asked for; else it is 0.35.
    """
    if len(text) > 2 * _MOST_DIGITS:
        return None
    match = _NUMBER.fullmatch(text)
    if match is None or sum(map(str.isdigit, text)) > _MOST_DIGITS:
        return None
    number = _unsigned(match.groupdict())
    if number is None:
        return None
    if match["sign"] == "-":
        number = -number
    return number / 100 if match["percent"] and not points else number


def _unsigned(part: dict[str, str | None]) -> Fraction | None:
    if part["decimal"]:
        return _decimal(part["decimal"])
    if exponent := part["e1"] or part["e2"] or part["e3"]:
        if len(exponent) > 4 or abs(int(exponent)) > _LARGEST_EXPONENT:
            return None
        return _decimal(part["mantissa"]) * Fraction(10) ** int(exponent)
    if part["cycle"]:
        head = part["head"] or "."
        places = len(head) - head.index(".") - 1
        return Fraction(head if any(map(str.isdigit, head)) else "0") + Fraction(
            int(part["cycle"]), 10**places * (10 ** len(part["cycle"]) - 1)
        )
    whole = _decimal(part["whole"]) if part["whole"] else Fraction(0)
    numerator, denominator = (
        next(text for name, text in part.items() if text and name[0] == side and name[1].isdigit()) for side in "nd"
    )
    below = _decimal(denominator)
    return whole + _decimal(numerator) / below if below else None


def _decimal(text: str | None) -> Fraction:
    assert text is not None
    whole, _, places = "".join(text.replace(",", "").split()).partition(".")
    return Fraction(int(whole + places), 10 ** len(places)) if places else Fraction(int(whole))
