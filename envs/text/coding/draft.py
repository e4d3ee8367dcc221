"""A function to be written: what is asked, what answers it, what it is tried on."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tetrathlon.envs.language.chance import Chance


class Draw(Chance):
    """Random choices, of numbers and words to try a function on, too."""

    def wholes(self, shortest: int, longest: int, low: int, high: int) -> list[int]:
        """Return ``shortest`` to ``longest`` integers from ``low`` to ``high``."""
        return [self.between(low, high) for _ in range(self.between(shortest, longest))]

    def word(self, letters: str, shortest: int, longest: int) -> str:
        """Return ``shortest`` to ``longest`` of ``letters``."""
        return "".join(self.pick(letters) for _ in range(self.between(shortest, longest)))

    def words(self, fewest: int, most: int, letters: str, shortest: int, longest: int) -> list[str]:
        """Return ``fewest`` to ``most`` words of ``letters``."""
        return [self.word(letters, shortest, longest) for _ in range(self.between(fewest, most))]

    def grid(self, letters: str, smallest: int, largest: int) -> list[str]:
        """Return rows of one width, height and width from ``smallest`` to ``largest``."""
        width = self.between(smallest, largest)
        return [self.word(letters, width, width) for _ in range(self.between(smallest, largest))]


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
