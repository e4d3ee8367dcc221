"""Random choices out of one generator, quick to draw: most instances of language tasks are made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


class Chance:
    """Random choices.

    Args:
        rng: Where they come from, and nothing else.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def between(self, low: int, high: int) -> int:
        """Draw an integer from ``low`` to ``high``; all other choices among several are made of it."""
        return low + int((high - low + 1) * self.rng.random())

    def below(self, n: int) -> int:
        """Draw an integer from 0 to n - 1."""
        return self.between(0, n - 1)

    def chance(self, share: float = 0.5) -> bool:
        """Draw True with a chance of ``share``."""
        return bool(self.rng.random() < share)

    def pick(self, options: Sequence[T]) -> T:
        """Draw one of ``options``."""
        return options[self.below(len(options))]

    def some(self, options: Iterable[T], n: int) -> list[T]:
        """Draw n different ones of ``options``, in a drawn order."""
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in range(n)]

    def shuffled(self, options: Iterable[T]) -> list[T]:
        """Return ``options`` in a drawn order."""
        every = list(options)
        return self.some(every, len(every))
