"""Things that are told apart by shape and colour, for pictures of many."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tetrathlon.envs.language.chance import Chance
from tetrathlon.envs.vision.scene import Bounds, Color, Ellipse, Mark, Polygon, Rectangle

COLORS: Mapping[str, Color] = {
    "red": (213, 39, 40),
    "green": (44, 150, 50),
    "blue": (31, 90, 200),
    "yellow": (240, 200, 20),
    "purple": (140, 60, 170),
    "orange": (245, 130, 20),
    "black": (25, 25, 25),
    "pink": (245, 140, 190),
}
"""By their names; of the first ones no two are alike."""
SHAPES = ("circle", "square", "triangle", "diamond", "star", "cross")
"""By their names; of the first ones no two are alike."""
GROUNDS: tuple[Color, ...] = ((255, 255, 255), (242, 242, 235), (228, 234, 242), (238, 230, 226))
"""Backgrounds that no colour is lost on."""
_STAR_INNER = 0.45
_CROSS_ARM = 1 / 3
_CUT = 0.25
"""Pixels: half a sample of the coarser drawings, a whole one of the finer."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A shape in a colour."""

    color: str
    shape: str

    def __str__(self) -> str:
        """Return its name in questions."""
        return f"{self.color} {self.shape}"

    def plural(self) -> str:
        """Return the name of several."""
        return f"{self.color} {self.shape}{'es' if self.shape == 'cross' else 's'}"

    def mark(self, box: Bounds, tag: str, color: Color | None = None) -> Mark:
        """Return one of this kind that fills ``box``.

        Args:
            box: Where.
            tag: The name of the object.
            color: Instead of the usual one.
        """
        return shaped(self.shape, box, COLORS[self.color] if color is None else color, tag)


def near_miss(chance: Chance, kind: Kind, colors: int, shapes: int) -> Kind:
    """Draw another kind; of three at least two share the colour or the shape.

    Args:
        chance: Where it comes from.
        kind: Which it is not.
        colors: How many colours there are.
        shapes: How many shapes there are.
    """
    color = chance.pick([color for color in list(COLORS)[:colors] if color != kind.color])
    shape = chance.pick([shape for shape in SHAPES[:shapes] if shape != kind.shape])
    which = chance.below(3)
    return Kind(kind.color if which == 0 else color, kind.shape if which == 1 else shape)


def shaped(shape: str, box: Bounds, color: Color, tag: str) -> Mark:
    """Return a shape that fills ``box``."""
    x1, y1, x2, y2 = box
    if shape == "circle":
        return Ellipse(box=box, color=color, tag=tag)
    if shape == "square":
        return Rectangle(box=box, color=color, tag=tag)
    # Pillow cuts corners to whole samples, up and to the left: with so much less the polygon ends where its box does.
    x1, y1 = x1 + _CUT, y1 + _CUT
    return Polygon(
        points=tuple((x1 + x * (x2 - x1), y1 + y * (y2 - y1)) for x, y in _OUTLINES[shape]), color=color, tag=tag
    )


def _star() -> list[tuple[float, float]]:
    turns = [math.pi * (i / 5 - 0.5) for i in range(10)]
    spots = [(math.cos(t) * r, math.sin(t) * r) for t, r in zip(turns, (1.0, _STAR_INNER) * 5, strict=True)]
    low, high = [min(spot[k] for spot in spots) for k in (0, 1)], [max(spot[k] for spot in spots) for k in (0, 1)]
    return [tuple(round((spot[k] - low[k]) / (high[k] - low[k]), 4) for k in (0, 1)) for spot in spots]  # type: ignore[misc]


_A, _B = _CROSS_ARM, 1 - _CROSS_ARM
_OUTLINES: Mapping[str, list[tuple[float, float]]] = {
    "triangle": [(0.5, 0), (1, 1), (0, 1)],
    "diamond": [(0.5, 0), (1, 0.5), (0.5, 1), (0, 0.5)],
    "star": _star(),
    "cross": [
        (_A, 0),
        (_B, 0),
        (_B, _A),
        (1, _A),
        (1, _B),
        (_B, _B),
        (_B, 1),
        (_A, 1),
        (_A, _B),
        (0, _B),
        (0, _A),
        (_A, _A),
    ],
}
"""Corners in a unit square."""
