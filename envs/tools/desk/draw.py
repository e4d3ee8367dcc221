"""Draws from a generator, and names of invented people, places and things."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")
_FIRST = """
Ada Amir Anna Bela Bruno Carla Chen Dora Edgar Elif Emil Fatma Finn Gita Hana Hugo Ida Igor Jan Jun Kai Lena Lars Mara
Milo Nadia Nils Olga Omar Petra Quinn Rosa Ravi Sara Sven Tara Timo Uma Vera Wim Yuki Zoe
"""
_LAST = """
Abel Adeyemi Bauer Berg Castro Cohen Dahl Diaz Eder Evans Farkas Fischer Garcia Haddad Hansen Ito Ivanov Jansen Keller
Kim Kowalski Lange Lopez Mehta Moreau Nagy Novak Okafor Olsen Patel Peters Quist Ricci Rossi Sato Silva Tanaka Torres
Ueda Varga Weber Wolff Yilmaz Zeman
"""
_STREETS = """
Acorn Alder Bakers Birch Bridge Canal Castle Cedar Chapel Church Clover Dock Elm Falcon Ferry Forge Garden Harbour Hazel
Heron High Hill King Lake Linden Maple Market Meadow Mill Moor Oak Orchard Park Pine Quarry River Rose School Spring
Station Temple Tower Valley Willow
"""
_CITIES = "Alford Bramley Carston Denby Elmsworth Farley Glenby Harwick Ilston Kelford Lorne Marby Norwold Oakham Penby"
_MAKERS = "Alto Bellis Corvo Dunlin Estrel Fjora Galan Hestia Iduna Kelpin Lumo Marlo Nordic Orla Pavo Quill Rhea Tarn"
FIRST, LAST, STREETS, CITIES, MAKERS = (tuple(some.split()) for some in (_FIRST, _LAST, _STREETS, _CITIES, _MAKERS))
THINGS: dict[str, tuple[str, ...]] = {
    "clothing": ("jacket", "shirt", "scarf", "coat", "cap"),
    "shoes": ("boots", "sandals", "slippers", "trainers"),
    "underwear": ("socks", "vest", "tights"),
    "kitchen": ("kettle", "pan", "bowl", "jug"),
    "lighting": ("lamp", "lantern", "torch"),
    "electronics": ("speaker", "clock", "radio", "headphones"),
    "cosmetics": ("soap", "balm", "perfume"),
    "travel": ("suitcase", "rucksack", "bottle"),
}
"""Category -> what is sold in it."""
COLOURS = ("black", "white", "red", "blue", "green", "yellow", "grey", "brown")
SIZES = ("small", "medium", "large")


class Draw:
    """Draws from a generator.

    Args:
        rng: What everything is drawn from.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def below(self, n: int) -> int:
        """Draw an integer from 0 to n - 1."""
        return int(n * self._rng.random())

    def between(self, low: int, high: int) -> int:
        """Draw an integer from ``low`` to ``high``."""
        return low + self.below(high - low + 1)

    def chance(self, share: float = 0.5) -> bool:
        """Draw True with a chance of ``share``."""
        return bool(self._rng.random() < share)

    def pick(self, options: Sequence[T]) -> T:
        """Draw one of ``options``."""
        return options[self.below(len(options))]

    def some(self, options: Iterable[T], n: int) -> list[T]:
        """Draw n different ones of ``options``, in a drawn order."""
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in range(n)]

    def address(self) -> dict[str, str]:
        """Draw an address."""
        street = f"{self.between(1, 180)} {self.pick(STREETS)} {self.pick(('Street', 'Lane', 'Road'))}"
        return {"street": street, "city": self.pick(CITIES), "postal_code": str(self.between(10_000, 99_999))}
