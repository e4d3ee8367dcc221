"""How a task and a model agree to write places in a picture, and what a processor's resize does to them.

A convention is declared, never guessed from the numbers: ``[0, 0, 1, 1]`` is right in each of them. Nothing is mended:
what is out of range or has its corners the wrong way round is malformed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tetrathlon.envs.arguments import whole
from tetrathlon.envs.vision.boxes import Size, checked_size

_LONGEST_SIDE = 1_000_000
_LARGEST_PICTURE = 1_000_000_000_000
_STEEPEST = 200
_ORDERS = {"xyxy": ("x1", "y1", "x2", "y2"), "xywh": ("x", "y", "width", "height"), "yxyx": ("y1", "x1", "y2", "x2")}
_CORNERS = {
    "xyxy": "the upper left corner (x1, y1) and the lower right corner (x2, y2)",
    "xywh": "the upper left corner (x, y), the width and the height",
    "yxyx": "the upper left corner (y1, x1) and the lower right corner (y2, x2), y first",
}


class Malformed(ValueError):
    """What was written is no place under a convention.

    Args:
        reason: A code; see :data:`~tetrathlon.envs.vision.reading.REASONS`.
        said: The message.
    """

    def __init__(self, reason: str, said: str) -> None:
        super().__init__(said)
        self.reason = reason
        """See above."""


@dataclass(frozen=True, slots=True)
class Convention:
    """One way to write boxes and points.

    Pixels may be any finite numbers, also outside of the picture; on a grid each number is from 0 to its end.
    """

    name: str
    order: Literal["xyxy", "xywh", "yxyx"]
    """Of the numbers of a box; with ``yxyx`` a point is y, x, else it is x, y."""
    end: float | None = None
    """Number for the right and the lower edge of the picture, on a grid from 0; None: numbers are pixels."""

    @property
    def box_names(self) -> tuple[str, ...]:
        """The names of a box's four numbers in their order."""
        return _ORDERS[self.order]

    @property
    def point_names(self) -> tuple[str, ...]:
        """The names of a point's two numbers in their order."""
        return ("y", "x") if self.order == "yxyx" else ("x", "y")

    def box_says(self, size: Size) -> str:
        """Return what a prompt says about how to write a box in a picture of ``size``."""
        return f"Write a box as [{', '.join(self.box_names)}]: {_CORNERS[self.order]}, {self._units(size)}."

    def point_says(self, size: Size) -> str:
        """Return what a prompt says about how to write a point in a picture of ``size``."""
        return f"Write a point as [{', '.join(self.point_names)}], {self._units(size)}."

    def to_px(self, values: ArrayLike, size: Size) -> NDArray[np.float64]:
        """Return what was written as pixels.

        Args:
            values: Boxes of shape [..., 4] or points of shape [..., 2].
            size: Of the picture.

        Returns:
            The same shape: x1, y1, x2, y2 with x1 <= x2 and y1 <= y2, or x, y.

        Raises:
            Malformed: A number is not finite (``number``) or out of range (``range``), or a corner that is to be the
                upper left one is right of or below the other, or a width or height negative (``reversed``).
            ValueError: Another shape, or a wrong ``size``.
        """
        given = self._checked(values)
        ends = self._ends(size)
        ordered = given[..., [1, 0, 3, 2][: given.shape[-1]]] if self.order == "yxyx" else given
        pixels = ordered * np.tile(ends, given.shape[-1] // 2) / (self.end or 1.0)
        if given.shape[-1] == 4:
            if self.order == "xywh":
                with np.errstate(over="ignore"):
                    pixels = np.concatenate([pixels[..., :2], pixels[..., :2] + pixels[..., 2:]], axis=-1)
                if not np.isfinite(pixels).all():
                    raise Malformed("number", f"a box ends at a number that is not finite: {values!r}")
            if (pixels[..., 2:] < pixels[..., :2]).any():
                raise Malformed("reversed", f"a box is {', '.join(self.box_names)}, upper left first, got {values!r}")
        return pixels

    def from_px(self, pixels: ArrayLike, size: Size) -> NDArray[np.float64]:
        """Return pixels as they are written under this convention.

        Args:
            pixels: Boxes, x1, y1, x2, y2, of shape [..., 4], or points of shape [..., 2].
            size: Of the picture.

        Returns:
            The same shape.

        Raises:
            Malformed: They cannot be written so; see :meth:`to_px`.
            ValueError: Another shape, or a wrong ``size``.
        """
        given = Convention("", "xyxy")._checked(pixels)
        values = given * (self.end or 1.0) / np.tile(self._ends(size), given.shape[-1] // 2)
        if given.shape[-1] == 4 and (given[..., 2:] < given[..., :2]).any():
            raise Malformed("reversed", f"a box is x1, y1, x2, y2 with x1 <= x2 and y1 <= y2, got {pixels!r}")
        if self.order == "yxyx":
            values = values[..., [1, 0, 3, 2][: given.shape[-1]]]
        elif self.order == "xywh" and given.shape[-1] == 4:
            values = np.concatenate([values[..., :2], values[..., 2:] - values[..., :2]], axis=-1)
        return self._checked(values)

    def _ends(self, size: Size) -> NDArray[np.float64]:
        """Return where the right and the lower edge of a grid are, in pixels; without a grid 1 is 1 pixel."""
        sides = checked_size(size)
        return np.ones(2) if self.end is None else np.array(sides, dtype=np.float64)

    def _checked(self, values: ArrayLike) -> NDArray[np.float64]:
        given = np.asarray(values, dtype=np.float64)
        if given.ndim < 1 or given.shape[-1] not in (2, 4):
            raise ValueError(f"boxes have shape [..., 4] and points [..., 2], got {given.shape}")
        if not np.isfinite(given).all():
            raise Malformed("number", f"places have finite numbers, got {values!r}")
        if self.end is not None and not ((given >= 0) & (given <= self.end)).all():
            raise Malformed("range", f"{self.name} numbers are from 0 to {self.end:g}, got {values!r}")
        return given

    def _units(self, size: Size) -> str:
        width, height = checked_size(size)
        if self.end is None:
            return f"in pixels of the picture, which is {width} wide and {height} high"
        return f"as numbers from 0 (left, upper edge) to {self.end:g} (right, lower edge of the picture)"


PX = Convention("px", "xyxy")
UNIT = Convention("unit", "xyxy", 1.0)
K1000 = Convention("k1000", "xyxy", 1000.0)
XYWH = Convention("xywh", "xywh")
YXYX = Convention("yxyx", "yxyx")
CONVENTIONS = MappingProxyType({each.name: each for each in (PX, UNIT, K1000, XYWH, YXYX)})
"""By name."""


def convention(name: str) -> Convention:
    """Return the convention called ``name``.

    Raises:
        ValueError: There is none.
    """
    if name not in CONVENTIONS:
        raise ValueError(f"a convention is one of {', '.join(CONVENTIONS)}, got {name!r}")
    return CONVENTIONS[name]


@dataclass(frozen=True, slots=True)
class Resize:
    """What a processor did to a picture before the model saw it. Each axis has its own scale.

    Raises:
        ValueError: A size is not two integers from 1.
    """

    original: Size
    """Of the picture as it was given."""
    seen: Size
    """Of the picture that the model saw: what it writes in pixels is about this one."""

    def __post_init__(self) -> None:
        checked_size(self.original)
        checked_size(self.seen)

    @classmethod
    def smart(
        cls, original: Size, factor: int = 28, min_pixels: int = 56 * 56, max_pixels: int = 1280 * 28 * 28
    ) -> Resize:
        """Return the resize of a Qwen-VL processor; see :func:`smart_resize`."""
        width, height = checked_size(original)
        seen = smart_resize(height, width, factor, min_pixels, max_pixels)
        return cls((width, height), seen[::-1])

    def to_original(self, seen_px: ArrayLike) -> NDArray[np.float64]:
        """Return boxes [..., 4] or points [..., 2] in pixels of the picture that was seen in those of the original."""
        return _scaled(seen_px, self.seen, self.original)

    def to_seen(self, original_px: ArrayLike) -> NDArray[np.float64]:
        """Return boxes [..., 4] or points [..., 2] in pixels of the original in those of the picture that is seen."""
        return _scaled(original_px, self.original, self.seen)


def _scaled(pixels: ArrayLike, old: Size, new: Size) -> NDArray[np.float64]:
    given = np.asarray(pixels, dtype=np.float64)
    if given.ndim < 1 or given.shape[-1] not in (2, 4):
        raise ValueError(f"boxes have shape [..., 4] and points [..., 2], got {given.shape}")
    pairs = given.shape[-1] // 2
    with np.errstate(over="ignore"):
        return given * np.tile(np.array(new, dtype=np.float64), pairs) / np.tile(np.array(old), pairs)


def smart_resize(
    height: int, width: int, factor: int = 28, min_pixels: int = 56 * 56, max_pixels: int = 1280 * 28 * 28
) -> tuple[int, int]:
    """Return the height and width to which a Qwen-VL processor resizes a picture.

    The formula of ``smart_resize`` in ``transformers`` (models/qwen2_vl/image_processing_qwen2_vl.py, which is that of
    ``qwen_vl_utils``): each side becomes the nearest multiple of ``factor``, halves to even ones; where that has more
    than ``max_pixels`` or less than ``min_pixels``, both sides are scaled alike first and rounded down or up.

    Args:
        height: Pixels, 1 to 1,000,000.
        width: As above.
        factor: Patch size by merge size: 28 in Qwen2-VL and Qwen2.5-VL, 32 in Qwen3-VL.
        min_pixels: Least area.
        max_pixels: Largest area; a side is ``factor`` at least, also where that is more.

    Raises:
        ValueError: An argument is out of range, or one side more than 200 times the other.
    """
    height = whole("height (pixels)", height, 1, _LONGEST_SIDE)
    width = whole("width (pixels)", width, 1, _LONGEST_SIDE)
    factor = whole("factor", factor, 1, _LONGEST_SIDE)
    max_pixels = whole("max_pixels", max_pixels, 1, _LARGEST_PICTURE)
    min_pixels = whole("min_pixels (to max_pixels)", min_pixels, 1, max_pixels)
    if max(height, width) / min(height, width) > _STEEPEST:
        raise ValueError(f"one side may be {_STEEPEST} times the other at most, got {width} x {height} pixels")
    rows, columns = (round(side / factor) * factor for side in (height, width))
    if rows * columns > max_pixels:
        shrink = math.sqrt(height * width / max_pixels)
        rows, columns = (max(factor, math.floor(side / shrink / factor) * factor) for side in (height, width))
    elif rows * columns < min_pixels:
        grow = math.sqrt(min_pixels / (height * width))
        rows, columns = (math.ceil(side * grow / factor) * factor for side in (height, width))
    return rows, columns
