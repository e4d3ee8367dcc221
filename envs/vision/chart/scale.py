"""The scale of a chart: where values are between its ticks, how they are written, and which answers are near enough.

Places are counted in tenths of a tick from the start of the scale, T ticks to its end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tetrathlon.envs.grading.writing import plain

PARTS = 10
"""Places a tick."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3}){1,6}|[0-9]{1,20})(?:\.[0-9]{1,20})?")
_LONGEST = 80
_SLACK = 1e-6
"""Of a tick: what powers and logarithms may be wrong by."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear scale, or a logarithmic one from 1, where each tick is ``base`` times the last."""

    ticks: int
    """T."""
    step: int = 1
    """What a tick is worth, where it is linear."""
    start: int = 0
    """The value where it begins, where it is linear."""
    base: int | None = None
    """None: it is linear."""

    @property
    def places(self) -> int:
        """The last place; values are drawn from the first on."""
        return self.ticks * PARTS

    def value(self, place: float) -> float:
        """Return the value of a place."""
        if self.base is not None:
            return float(self.base ** (place / PARTS))
        return self.start + self.step * place / PARTS

    def written(self, place: int) -> str:
        """Return the value of a place as text, on a logarithmic scale to three digits."""
        if self.base is not None:
            return _decimal(Fraction(f"{self.value(place):.3g}"))
        return _decimal(self.start + Fraction(self.step * place, PARTS))

    def accepts(self, place: int, number: Fraction) -> bool:
        """Tell whether a number is at most half a tick from the value of a place."""
        if self.base is None:
            return 2 * abs(number - self.start - Fraction(self.step * place, PARTS)) <= self.step
        # Beyond the scale there is nothing to read, and what a float cannot hold is not looked at.
        if not Fraction(1, self.base) <= number <= self.base ** (self.ticks + 1):
            return False
        return abs(math.log(number) / math.log(self.base) - place / PARTS) <= 0.5 + _SLACK


def blind(scales: Sequence[Scale]) -> tuple[str, float]:
    """Return the number that is near enough most often, and how often, where scales and places are uniform.

    Args:
        scales: Linear ones with as many ticks, or a logarithmic one alone.
    """
    first = scales[0]
    if first.base is not None:
        # Half a tick to either side are so many places, and the one in the middle has all of them.
        best = first.places // 2
        return f"{first.value(best):.12f}", min(PARTS + 1, first.places) / first.places
    events: list[tuple[Fraction, int]] = []
    for scale in scales:
        for place in range(1, scale.places + 1):
            value, half = scale.start + Fraction(scale.step * place, PARTS), Fraction(scale.step, 2)
            events += [(value - half, 0), (value + half, 1)]
    open_now = most = 0
    best_number = Fraction(0)
    for number, is_end in sorted(events):
        open_now += -1 if is_end else 1
        if open_now > most:
            most, best_number = open_now, number
    return _decimal(best_number), most / sum(scale.places for scale in scales)


def number_in(answer: str, unit: str = "") -> Fraction | None:
    """Return the one number that an answer is, or None.

    Args:
        answer: A final answer, of any length and content.
        unit: What may stand behind it.
    """
    if len(answer) > 4 * _LONGEST:
        return None
    text = plain(answer)
    if unit:
        text = text.removesuffix(plain(unit)).rstrip()
    if len(text) > _LONGEST or not _NUMBER.fullmatch(text):
        return None
    return Fraction(text.replace(",", ""))


def _decimal(number: Fraction) -> str:
    """Return a number that has few digits in plain digits."""
    digits = 0
    while (number * 10**digits).denominator != 1:
        digits += 1
    if not digits:
        return str(number.numerator)
    whole, rest = divmod(abs(number.numerator) * 10**digits // number.denominator, 10**digits)
    return f"{'-' if number < 0 else ''}{whole}.{rest:0{digits}d}"
