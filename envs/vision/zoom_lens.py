"""What the tool of a zoom task works on: which part of the large picture is shown."""

from __future__ import annotations

import math

from tetrathlon.envs.tools.tool import ToolError, tool
from tetrathlon.envs.tools.world import World
from tetrathlon.envs.vision.scene import Bounds

NEAREST = 16
"""How many times larger than at first a part is shown at most."""


class Lens(World):
    """Shows a square part of a large picture at the size at which all of it was shown first.

    Args:
        size: Pixels of a side of what is shown.
        scale: Pixels of the large picture for one of the first.
        has_picture: Whether there is anything to look at.

    Attributes:
        window: What is shown, in pixels of the large picture: its left and its upper edge, and its side.
    """

    def __init__(self, size: int, scale: int, has_picture: bool = True) -> None:
        self.size, self.scale, self.has_picture = size, scale, has_picture
        self.window: tuple[int, int, int] = (0, 0, size * scale)

    @tool
    def crop(self, box: list[float]) -> str:
        """Show a part of the large picture, as large as the first picture: the square around a box.

        Args:
            box: [x1, y1, x2, y2], the upper left and the lower right corner, always in pixels of the first picture.
        """
        if not self.has_picture:
            raise ToolError("there is no picture")
        if len(box) != 4 or not all(map(math.isfinite, box)):
            raise ToolError(f"a box is four numbers, [x1, y1, x2, y2], got {len(box)} of them")
        x1, y1, x2, y2 = (min(max(value, 0.0), self.size) for value in box)
        if not (x1 < x2 and y1 < y2):
            raise ToolError(f"a box is [x1, y1, x2, y2] with x1 < x2 and y1 < y2, from 0 to {self.size}")
        whole = self.size * self.scale
        side = min(max(math.ceil(max(x2 - x1, y2 - y1) * self.scale), whole // NEAREST), whole)
        left, top = (
            min(max(round((low + high) / 2 * self.scale - side / 2), 0), whole - side)
            for low, high in ((x1, x2), (y1, y2))
        )
        self.window = (left, top, side)
        shown = [f"{edge / self.scale:g}" for edge in (left, left + side, top, top + side)]
        return (
            f"The picture shows x from {shown[0]} to {shown[1]} and y from {shown[2]} to {shown[3]} of the first one."
        )

    def shows(self, box: Bounds, enlarged: float) -> bool:
        """Tell whether all of a box, in pixels of the large picture, is shown, and so many times larger than first."""
        left, top, side = self.window
        is_inside = left <= box[0] and top <= box[1] and box[2] <= left + side and box[3] <= top + side
        return self.has_picture and is_inside and side * enlarged <= self.size * self.scale
