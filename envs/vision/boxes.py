"""Boxes in a picture, under one contract, and how much of one another they cover.

A box is ``x1, y1, x2, y2``, floats in pixels of the picture, x to the right and y down, half-open: it holds the points
with x1 <= x < x2 and y1 <= y < y2. No pixel is added anywhere, so boxes that touch share nothing, and the box of one
pixel is one wide. A box with x2 <= x1 or y2 <= y1, or with a number that is not finite, is empty.

A predicted box is clipped to the picture before it is compared: what is said about the outside is neither paid nor
punished. A gold box is inside the picture and not empty; :func:`gold_box` refuses every other when a task is built.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Size = tuple[int, int]
"""Width and height of a picture, pixels."""


def iou(a: ArrayLike, b: ArrayLike) -> float:
    """Return the area that two boxes share over the area that they cover together.

    Args:
        a: A box, shape [4].
        b: Another.

    Returns:
        From 0 to 1; exactly 1 for a box and itself, exactly 0 where a box is empty or too large or small for its
        area to be a float, where two boxes touch and where they are apart.

    Raises:
        ValueError: One is no four numbers.
    """
    return float(ious(_row(a), _row(b))[0, 0])


def ious(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """Return :func:`iou` of each box of ``a`` with each of ``b``.

    Args:
        a: Boxes, shape [n, 4].
        b: Boxes, shape [m, 4].

    Returns:
        Shape [n, m].

    Raises:
        ValueError: One has another shape.
    """
    left, right = box_table(a)[:, None], box_table(b)[None]
    with np.errstate(all="ignore"):
        sides = np.minimum(left[..., 2:], right[..., 2:]) - np.maximum(left[..., :2], right[..., :2])
        shared = np.prod(np.maximum(sides, 0.0), axis=-1)
        areas = area(left), area(right)
        ratio = shared / (areas[0] + areas[1] - shared)
    return np.where((areas[0] > 0) & (areas[1] > 0) & (shared > 0) & np.isfinite(ratio), ratio, 0.0)


def area(boxes: ArrayLike) -> NDArray[np.float64]:
    """Return the areas of boxes of shape [..., 4], in pixels, shape [...]; 0 for an empty box, never less."""
    table = _numbers(boxes)
    with np.errstate(all="ignore"):
        sides = table[..., 2:] - table[..., :2]
        full = np.isfinite(table).all(axis=-1) & (sides > 0).all(axis=-1)
        return np.where(full, np.prod(sides, axis=-1), 0.0)


def clip(boxes: ArrayLike, size: Size) -> NDArray[np.float64]:
    """Return boxes of shape [..., 4] cut to a picture of ``size``; one that is wholly outside becomes empty."""
    width, height = checked_size(size)
    return np.clip(_numbers(boxes), 0.0, np.array([width, height, width, height], dtype=np.float64))


def clipped_iou(predicted: ArrayLike, gold: ArrayLike, size: Size) -> float:
    """Return :func:`iou` of a predicted box, clipped to a picture of ``size``, with a gold box."""
    return iou(clip(_row(predicted)[0], size), gold)


def contains(box: ArrayLike, point: ArrayLike) -> bool:
    """Tell whether a point is in a box: on its left and upper edge it is, on its right and lower edge it is not.

    Args:
        box: Shape [4].
        point: Shape [2], x and y.

    Raises:
        ValueError: One has another shape.
    """
    corners, spot = _row(box)[0], np.asarray(point, dtype=np.float64)
    if spot.shape != (2,):
        raise ValueError(f"a point is two numbers, x and y, got {point!r}")
    return bool((corners[:2] <= spot).all() and (spot < corners[2:]).all() and np.isfinite(corners).all())


def box_of(mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the smallest box around the true pixels of ``mask``, shape [height, width].

    Raises:
        ValueError: It has no true pixel, or is no bool array of two axes.
    """
    if mask.ndim != 2 or mask.dtype != np.bool_:
        raise ValueError(f"a mask is a bool array [height, width], got {mask.dtype} {mask.shape}")
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not rows.size:
        raise ValueError(f"a mask without a true pixel has no box, got one of shape {mask.shape}")
    return np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1], dtype=np.float64)


def gold_box(box: ArrayLike, size: Size) -> NDArray[np.float64]:
    """Return the box that a task has as its truth, checked.

    Args:
        box: Shape [4].
        size: Of the picture.

    Raises:
        ValueError: It is not four finite numbers, is empty, or is not wholly inside the picture.
    """
    (x1, y1, x2, y2), (width, height) = _row(box)[0].tolist(), checked_size(size)
    if not all(map(math.isfinite, (x1, y1, x2, y2))):
        raise ValueError(f"a gold box has finite numbers, got {box!r}")
    if not (x1 < x2 and y1 < y2):
        raise ValueError(f"a gold box is x1, y1, x2, y2 with x1 < x2 and y1 < y2, got {box!r}")
    if not (x1 >= 0 and y1 >= 0 and x2 <= width and y2 <= height):
        raise ValueError(f"a gold box is inside its picture, here {width} x {height} pixels, got {box!r}")
    return np.array([x1, y1, x2, y2])


def checked_size(size: Any) -> Size:
    """Return the size of a picture, checked.

    Raises:
        ValueError: It is not two integers from 1.
    """
    if len(size) != 2 or not all(isinstance(side, int | np.integer) and side >= 1 for side in size):
        raise ValueError(f"the size of a picture is its width and height, integers from 1, got {size!r}")
    return int(size[0]), int(size[1])


def box_table(boxes: ArrayLike) -> NDArray[np.float64]:
    """Return boxes as an array of shape [n, 4]; an empty list is none.

    Raises:
        ValueError: They have another shape.
    """
    table = np.asarray(boxes, dtype=np.float64)
    if table.size == 0 and table.ndim < 2:
        return np.zeros((0, 4))
    if table.ndim != 2 or table.shape[1] != 4:
        raise ValueError(f"boxes have shape [n, 4], got {table.shape}")
    return table


def _numbers(boxes: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(boxes, dtype=np.float64)
    if table.ndim < 1 or table.shape[-1] != 4:
        raise ValueError(f"a box is four numbers, x1, y1, x2, y2, got shape {table.shape}")
    return table


def _row(box: ArrayLike) -> NDArray[np.float64]:
    table = _numbers(box)
    if table.shape != (4,):
        raise ValueError(f"one box is four numbers, x1, y1, x2, y2, got shape {table.shape}")
    return table[None]
