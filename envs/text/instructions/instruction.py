"""An instruction that a program can check, what it is drawn from, and how it shapes the expert's draft."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self, TypeVar

import numpy as np

from tetrathlon.envs.text.instructions.draft import Draft
from tetrathlon.envs.text.instructions.units import clean, shown

Item = TypeVar("Item")


def pick(rng: np.random.Generator, items: Sequence[Item]) -> Item:
    """Draw one of ``items``."""
    return items[int(rng.integers(len(items)))]


def pick_some(rng: np.random.Generator, items: Sequence[Item], count: int) -> list[Item]:
    """Draw ``count`` different ``items``."""
    return [items[index] for index in rng.permutation(len(items))[:count].tolist()]


@dataclass(frozen=True)
class Scene:
    """What a prompt is about before its instructions are drawn."""

    topic: str
    """The topic in English."""
    request: str
    """The sentence that asks for a text about it."""
    related: Sequence[str]
    """English words that come to mind with the topic."""
    kinds: frozenset[str]
    """The kinds that were drawn together."""
    languages: Sequence[str]
    """Codes of the languages that may be asked for."""


@dataclass(frozen=True)
class Count:
    """How many of something there may be."""

    least: int | None = None
    """The fewest; None: any."""
    most: int | None = None
    """The most; None: any."""

    def holds(self, number: int) -> bool:
        """Tell whether ``number`` is allowed."""
        return (self.least is None or number >= self.least) and (self.most is None or number <= self.most)

    def __str__(self) -> str:
        if self.least == self.most:
            return f"exactly {self.least}"
        if self.least is None:
            return f"at most {self.most}"
        return f"at least {self.least}" if self.most is None else f"from {self.least} to {self.most}"

    def of(self, noun: str) -> str:
        """Return the count in words, with ``noun`` in its number."""
        last = self.most if self.most is not None else self.least
        return f"{self} {noun if last == 1 else noun + 's'}"

    @classmethod
    def draw(cls, rng: np.random.Generator, low: int, high: int, forms: str = "least most exact range") -> Count:
        """Draw one of ``forms`` with numbers from ``low`` to ``high``."""
        form, number = pick(rng, forms.split()), int(rng.integers(low, high + 1))
        if form == "range":
            return cls(number, number + max(1, (high - low) // 5))
        return cls(None if form == "most" else number, None if form == "least" else number)


@dataclass(frozen=True)
class Instruction(ABC):
    """One checkable instruction: frozen, equal by its values, picklable."""

    kind: ClassVar[str]
    """Name in ``Format(kinds=...)``."""
    conflicts: ClassVar[frozenset[str]] = frozenset()
    """Kinds that never stand beside this one; one side saying so is enough."""
    is_layout: ClassVar[bool] = False
    """Whether it decides how the reply is laid out; layouts exclude each other."""
    is_data: ClassVar[bool] = False
    """Whether the whole reply is data; then nothing is followed by a reply that is not."""
    is_english: ClassVar[bool] = False
    """Whether it brings English words along, so that it never stands beside another language."""
    least_words: ClassVar[int] = 8
    """How many words of its own a reply needs at least; the smallest of a prompt's instructions counts."""

    @classmethod
    @abstractmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """Draw an instruction of this kind that fits ``scene``."""

    @abstractmethod
    def describe(self) -> str:
        """Return what the prompt says."""

    @abstractmethod
    def holds(self, text: str) -> bool:
        """Tell whether ``text``, a reply as :meth:`check` hands it on, follows the instruction."""

    def check(self, reply: str) -> bool:
        """Tell whether ``reply``, all that is visible of it, follows the instruction; in linear time, without raising.

        Blanks around the reply never count, and a line may end in CRLF. Characters that nobody sees are left out, but
        in data, whose readers do see them.
        """
        return self.holds(clean(reply) if self.is_data else shown(reply))

    @abstractmethod
    def shape(self, draft: Draft) -> None:
        """Change the expert's ``draft`` so that what is written from it follows the instruction."""
