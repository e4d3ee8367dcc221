"""A function to be written: what is asked, what answers it, what it is tried on."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


class Draw:
    """Random choices out of one generator.

    Args:
        rng: Where they come from, and nothing else.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def whole(self, low: int, high: int) -> int:
        """Return an integer from ``low`` to ``high``."""
        return low + int((high - low + 1) * self.rng.random())

    def of(self, options: Sequence[T]) -> T:
        """Return one of ``options``."""
        return options[self.whole(0, len(options) - 1)]

    def some(self, options: Sequence[T], count: int) -> list[T]:
        """Return ``count`` different ones of ``options``."""
        left = list(options)
        return [left.pop(self.whole(0, len(left) - 1)) for _ in range(count)]

    def wholes(self, shortest: int, longest: int, low: int, high: int) -> list[int]:
        """Return ``shortest`` to ``longest`` integers from ``low`` to ``high``."""
        return [self.whole(low, high) for _ in range(self.whole(shortest, longest))]

    def word(self, letters: str, shortest: int, longest: int) -> str:
        """Return ``shortest`` to ``longest`` of ``letters``."""
        return "".join(self.of(letters) for _ in range(self.whole(shortest, longest)))

    def words(self, fewest: int, most: int, letters: str, shortest: int, longest: int) -> list[str]:
        """Return ``fewest`` to ``most`` words of ``letters``."""
        return [self.word(letters, shortest, longest) for _ in range(self.whole(fewest, most))]

    def grid(self, letters: str, smallest: int, largest: int) -> list[str]:
        """Return rows of one width, height and width from ``smallest`` to ``largest``."""
        width = self.whole(smallest, largest)
        return [self.word(letters, width, width) for _ in range(self.whole(smallest, largest))]


@dataclass(frozen=True)
class Draft:
    """A function to be written."""

    head: str
    """Name, parameters and types: ``total(numbers: list[int]) -> int``."""
    spec: str
    """What the function does; leaves nothing open on any arguments that are drawn."""
    body: str
    """What answers it, as source text of any indentation."""
    draw: Callable[[Draw], tuple[Any, ...]]
    """Draws arguments."""
    edges: tuple[tuple[Any, ...], ...] = ()
    """Arguments that are always among the hidden ones."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.head.partition("(")[0]

    @property
    def source(self) -> str:
        """The whole function, as an expert writes it."""
        return f"def {self.head}:\n{textwrap.indent(textwrap.dedent(self.body).strip(), '    ')}\n"

    def reference(self) -> Callable[..., Any]:
        """Return the function itself; its text is ours, no model's."""
        names: dict[str, Any] = {}
        exec(compile(self.source, f"<{self.name}>", "exec"), names)
        function: Callable[..., Any] = names[self.name]
        return function


Family = Callable[[Draw], Draft]
"""Draws a function of one kind."""
ORDERS = (("less than", "<"), ("at most", "<="), ("greater than", ">"), ("at least", ">="))
"""How one number stands to another: in words, and as an operator."""
