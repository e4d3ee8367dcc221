"""Many pictures on one, each with its caption."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

_GAP = 12
_FONT_SIZE = 15
_PAPER, _INK = "white", "#222222"


def contact_sheet(
    images: Sequence[np.ndarray | Image.Image], titles: Sequence[str], *, columns: int | None = None, side: int = 240
) -> Image.Image:
    """Return a grid of pictures with captions below them.

    Args:
        images: At least one; arrays are uint8 of shape (H, W, 3).
        titles: One an image.
        columns: Pictures in a row; None: as square a grid as can be.
        side: Pixels of a picture's longer side. Smaller pictures grow by whole factors, so that a pixel stays a square.

    Raises:
        ValueError: There is no image, not one title an image, or a number below 1.
    """
    if not images or len(images) != len(titles):
        raise ValueError(f"there must be a title for each of 1 or more images, got {len(images)} and {len(titles)}")
    columns = math.ceil(math.sqrt(len(images))) if columns is None else columns
    if columns < 1 or side < 1:
        raise ValueError(f"columns and side must be at least 1, got {columns} and {side}")
    font = ImageFont.load_default(_FONT_SIZE)
    pictures = [_fitted(image, side) for image in images]
    captions = [_wrapped(title, font, side) for title in titles]
    rows = [range(start, min(start + columns, len(images))) for start in range(0, len(images), columns)]
    line_height = round(1.3 * _FONT_SIZE)
    heights = [side + _GAP // 2 + line_height * max(len(captions[i]) for i in row) for row in rows]
    width = _GAP + (side + _GAP) * min(columns, len(images))
    sheet = Image.new("RGB", (width, _GAP + sum(heights) + _GAP * len(rows)), _PAPER)
    draw = ImageDraw.Draw(sheet)
    top = _GAP
    for row, height in zip(rows, heights, strict=True):
        for column, i in enumerate(row):
            left, picture = _GAP + column * (side + _GAP), pictures[i]
            sheet.paste(picture, (left + (side - picture.width) // 2, top + (side - picture.height) // 2))
            for number, words in enumerate(captions[i]):
                place = (left + side / 2, top + side + _GAP // 2 + number * line_height)
                draw.text(place, words, fill=_INK, font=font, anchor="ma")
        top += height + _GAP
    return sheet


def _fitted(image: np.ndarray | Image.Image, side: int) -> Image.Image:
    picture = (image if isinstance(image, Image.Image) else Image.fromarray(image)).convert("RGB")
    longer = max(picture.size)
    if longer <= side:
        factor = side // longer
        return picture.resize((factor * picture.width, factor * picture.height), Image.Resampling.NEAREST)
    picture.thumbnail((side, side), Image.Resampling.LANCZOS)
    return picture


def _wrapped(title: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, width: int) -> list[str]:
    """Break a title at its blanks into lines of at most ``width`` pixels, where its words allow it."""
    lines: list[str] = []
    for word in title.split():
        if lines and font.getlength(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines or [""]
