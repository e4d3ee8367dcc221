"""Where things are put in a picture so that they do not touch, and what is covered of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tetrathlon.envs.language.chance import Chance
from tetrathlon.envs.vision.scene import Bounds

_TRIES = 60
"""Places that are tried for one thing before all is given up."""


def scattered(
    chance: Chance,
    sizes: Sequence[tuple[float, float]],
    area: Bounds,
    *,
    gap: float = 1.0,
    taken: Sequence[Bounds] = (),
) -> list[Bounds] | None:
    """Return boxes at drawn places, whole pixels apart, of which no two touch.

    Args:
        chance: Where the places come from.
        sizes: Width and height of each box, in their order.
        area: Within which they are.
        gap: Pixels between any two.
        taken: Boxes that they keep away from, too.

    Returns:
        The boxes, or None where no place was found for one of them.
    """
    left, top, right, bottom = area
    placed: list[Bounds] = []
    for width, height in sizes:
        across, down = math.floor(right - left - width), math.floor(bottom - top - height)
        if across < 0 or down < 0:
            return None
        for _ in range(_TRIES):
            x, y = left + chance.between(0, across), top + chance.between(0, down)
            box = (x, y, x + width, y + height)
            if not any(near(box, other, gap) for other in (*placed, *taken)):
                placed.append(box)
                break
        else:
            return None
    return placed


def near(one: Bounds, other: Bounds, gap: float) -> bool:
    """Tell whether less than ``gap`` pixels are between two boxes, across and down."""
    return one[0] < other[2] + gap and other[0] < one[2] + gap and one[1] < other[3] + gap and other[1] < one[3] + gap


def grown(box: Bounds, by: float, area: Bounds) -> Bounds:
    """Return a box with ``by`` pixels more on each side, whole pixels, within ``area``."""
    return (
        max(math.floor(box[0] - by), area[0]),
        max(math.floor(box[1] - by), area[1]),
        min(math.ceil(box[2] + by), area[2]),
        min(math.ceil(box[3] + by), area[3]),
    )


def covering(chance: Chance, evidence: Sequence[Bounds], area: Bounds) -> tuple[list[Bounds], list[Bounds]] | None:
    """Return boxes that cover the evidence, and as many of the same sizes that cover none of it.

    Args:
        chance: Where the places of the others come from.
        evidence: Boxes around what must be seen; where their number is the answer, this tells it.
        area: The whole picture.

    Returns:
        Both lists, or None where no place was found.
    """
    covers = [grown(box, 1, area) for box in evidence]
    decoys = scattered(chance, [(x2 - x1, y2 - y1) for x1, y1, x2, y2 in covers], area, gap=0.0, taken=covers)
    return None if decoys is None else (covers, decoys)
