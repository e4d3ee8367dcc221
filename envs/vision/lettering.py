"""How much room texts take in a picture, before they are put there."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

from tetrathlon.envs.vision.drawing import Drawing
from tetrathlon.envs.vision.scene import Bounds, Face, Scene, Spot, Text

_ROOM = 1.25
"""Font sizes that a character takes at most, across and down."""
_LARGE = 200
"""Half of the side of a picture that is drawn as the largest ones are, pixels."""


@lru_cache(maxsize=4096)
def ink(text: str, size: float, side: int, face: Face = "DejaVuSans") -> Bounds:
    """Return the box around what is painted of a text, as seen from its middle (the anchor ``mm``), pixels.

    Args:
        text: Of at least one sign that shows.
        size: Of the font, pixels.
        side: Of the picture, pixels: larger pictures are drawn in fewer samples a pixel, and a font of fewer samples
            has signs of other widths.
        face: The font.
    """
    half = max(math.ceil(_ROOM * size * (len(text) + 1) / 2), min(math.ceil(side / 2), _LARGE))
    mark = Text(text=text, at=(half, half), size=size, face=face, color=(0, 0, 0), tag="text")
    box = Drawing(Scene(width=2 * half, height=2 * half, marks=(mark,))).box("text")
    assert box is not None
    return (box[0] - half, box[1] - half, box[2] - half, box[3] - half)


def room(texts: Iterable[str], size: float, side: int, face: Face = "DejaVuSans") -> Bounds:
    """Return the box that holds the ink of each of several texts, as :func:`ink` does."""
    boxes = [ink(text, size, side, face) for text in texts]
    return (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )


def turned(spot: Spot, about: Spot, angle: float) -> Spot:
    """Return where a spot comes to lie by a turn, in degrees counterclockwise."""
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    x, y = spot[0] - about[0], spot[1] - about[1]
    return (round(about[0] + x * cos + y * sin, 4), round(about[1] - x * sin + y * cos, 4))


def turned_box(box: Bounds, about: Spot, angle: float) -> Bounds:
    """Return the upright box around a box that was turned, in degrees counterclockwise."""
    x1, y1, x2, y2 = box
    spots = [turned(spot, about, angle) for spot in ((x1, y1), (x2, y1), (x2, y2), (x1, y2))]
    return (
        min(x for x, _ in spots),
        min(y for _, y in spots),
        max(x for x, _ in spots),
        max(y for _, y in spots),
    )
