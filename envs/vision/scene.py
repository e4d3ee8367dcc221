"""What a picture shows, as data: marks of plain geometry, painted one after another.

Coordinates are pixels of the picture, x to the right and y down; boxes are ``(x1, y1, x2, y2)``, half-open.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import astuple, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from PIL import Image, ImageDraw, ImageFont

Color = tuple[int, int, int]
Spot = tuple[float, float]
Bounds = tuple[float, float, float, float]
Face = Literal["DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSansMono"]
"""Fonts that matplotlib ships."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark(ABC):
    """Something that is painted in one colour."""

    color: Color
    """Red, green and blue, 0 to 255."""
    tag: str = ""
    """Of which object it is a part; marks of one tag are one object."""

    @abstractmethod
    def paint(self, canvas: Image.Image, ink: int, scale: int) -> None:
        """Set what it covers of ``canvas``, ``scale`` samples a pixel, to ``ink``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectangle(Mark):
    """An upright rectangle, filled."""

    box: Bounds

    def paint(self, canvas: Image.Image, ink: int, scale: int) -> None:
        """See :meth:`Mark.paint`."""
        if (covered := _samples(self.box, scale)) is not None:
            ImageDraw.Draw(canvas).rectangle(covered, fill=ink)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ellipse(Mark):
    """An upright ellipse, filled."""

    box: Bounds

    def paint(self, canvas: Image.Image, ink: int, scale: int) -> None:
        """See :meth:`Mark.paint`."""
        if (covered := _samples(self.box, scale)) is not None:
            ImageDraw.Draw(canvas).ellipse(covered, fill=ink)


@dataclass(frozen=True, slots=True, kw_only=True)
class Polygon(Mark):
    """A polygon, filled."""

    points: tuple[Spot, ...]

    def paint(self, canvas: Image.Image, ink: int, scale: int) -> None:
        """See :meth:`Mark.paint`."""
        ImageDraw.Draw(canvas).polygon([(x * scale - 0.5, y * scale - 0.5) for x, y in self.points], fill=ink)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line(Mark):
    """A line through points."""

    points: tuple[Spot, ...]
    width: float = 1.0
    """Pixels."""

    def paint(self, canvas: Image.Image, ink: int, scale: int) -> None:
        """See :meth:`Mark.paint`."""
        points = [(x * scale - 0.5, y * scale - 0.5) for x, y in self.points]
        ImageDraw.Draw(canvas).line(points, fill=ink, width=max(round(self.width * scale), 1), joint="curve")


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Mark):
    """A line of text."""

    text: str
    at: Spot
    """Where its anchor is."""
    size: float = 12.0
    """Of the font, pixels."""
    angle: float = 0.0
    """Degrees counterclockwise, about ``at``; with an angle the anchor is the middle."""
    anchor: str = "mm"
    """Which part of it is at ``at``, as Pillow names it: ``mm`` the middle, ``lm`` the left end, ``rm`` the right."""
    face: Face = "DejaVuSans"

    def paint(self, canvas: Image.Image, ink: int, scale: int) -> None:
        """See :meth:`Mark.paint`."""
        font = _font(self.face, round(self.size * scale))
        x, y = self.at[0] * scale, self.at[1] * scale
        if not self.angle:
            ImageDraw.Draw(canvas).text((x, y), self.text, fill=ink, font=font, anchor=self.anchor)
            return
        left, top, right, bottom = font.getbbox(self.text, anchor="mm")
        half = int(max(-left, right, -top, bottom)) + 2  # a square about the anchor, so that it stays where it is
        stencil = Image.new("1", (2 * half, 2 * half))
        ImageDraw.Draw(stencil).text((half, half), self.text, fill=1, font=font, anchor="mm")
        canvas.paste(ink, (round(x) - half, round(y) - half), stencil.rotate(self.angle))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A picture as data."""

    width: int
    """Pixels."""
    height: int
    """Pixels."""
    background: Color = (255, 255, 255)
    """What is where no mark is."""
    marks: tuple[Mark, ...] = ()
    """In the order in which they are painted; at most 255."""
    noise: float = 0.0
    """Standard deviation of the noise over each colour of each pixel, of 255."""
    noise_seed: int = 0
    """Of the noise."""

    def __post_init__(self) -> None:
        if len(self.marks) > 255:
            raise ValueError(f"a scene has at most 255 marks, got {len(self.marks)}")

    def with_marks(self, *marks: Mark) -> Scene:
        """Return this scene with more on top."""
        return replace(self, marks=(*self.marks, *marks))

    def as_data(self) -> list[Any]:
        """Return what decides the picture, as plain data."""
        marks = [[type(mark).__name__, *_listed(astuple(mark))] for mark in self.marks]
        return [self.width, self.height, list(self.background), marks, self.noise, self.noise_seed]


def _listed(values: tuple[Any, ...]) -> list[Any]:
    return [_listed(value) if isinstance(value, tuple) else value for value in values]


def _samples(box: Bounds, scale: int) -> tuple[int, int, int, int] | None:
    """Return the first and the last sample of a half-open box, which Pillow takes as covered; None: there is none."""
    x1, y1, x2, y2 = (round(value * scale) for value in box)
    return (x1, y1, x2 - 1, y2 - 1) if x2 > x1 and y2 > y1 else None


@cache
def _font(face: str, size: int) -> ImageFont.FreeTypeFont:
    import matplotlib

    path = Path(matplotlib.get_data_path(), "fonts", "ttf", f"{face}.ttf")
    return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)
