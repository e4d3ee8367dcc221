"""A chart as data, and what a drawing of one must tell."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from tetrathlon.envs.vision.chart.scale import Scale
from tetrathlon.envs.vision.lettering import ink, room
from tetrathlon.envs.vision.scene import Bounds, Color, Rectangle, Scene, Text
from tetrathlon.envs.vision.task import COVER_TAG

INK: Color = (30, 30, 30)
"""Of axes and of what is written."""
AXIS = "axis"
"""Tag of the ticks and the numbers of the one scale of a chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """What a chart shows and how; S series of N values."""

    size: int
    """Pixels of the side of the picture."""
    scale: Scale
    names: tuple[str, ...]
    """Of the values of a series, [N]."""
    colors: tuple[str, ...]
    """Of the series, by their names, [S]."""
    values: tuple[tuple[int, ...], ...]
    """Places on the scale, [S][N]."""
    series: int
    """Of the value that is asked for."""
    item: int
    """Which value of its series."""
    ground: Color
    """The background."""
    labelled: int
    """Each so many ticks has a number."""
    unit: str = ""
    """Written beside the scale."""
    has_grid: bool = True
    """Whether lines lead from the numbers across the chart."""
    style: int = 0
    """One of the looks that a kind of chart has."""

    @property
    def place(self) -> int:
        """The place of the value that is asked for."""
        return self.values[self.series][self.item]

    @property
    def font(self) -> int:
        """The size of what is written, pixels."""
        return max(self.size // 12, 8)

    @property
    def line(self) -> int:
        """The width of axes, pixels."""
        return max(self.size // 128, 1)

    def with_place(self, place: int) -> Plot:
        """Return the chart with another value where it is asked for."""
        values = [list(row) for row in self.values]
        values[self.series][self.item] = place
        return replace(self, values=tuple(map(tuple, values)))

    def as_data(self) -> list[Any]:
        """Return all of it as plain data."""
        scale = [self.scale.ticks, self.scale.step, self.scale.start, self.scale.base]
        shown = [list(self.names), list(self.colors), [list(row) for row in self.values], self.series, self.item]
        look = [self.size, list(self.ground), self.labelled, self.unit, self.has_grid, self.style]
        return [scale, shown, look]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotScene(Scene):
    """A picture of a chart, perhaps with something covered."""

    kind: str
    """How the chart is drawn."""
    plot: Plot
    """What it shows."""

    def as_data(self) -> list[Any]:
        """See :meth:`Scene.as_data`: the chart decides the picture, and it is less than its marks are."""
        covers = [list(mark.box) for mark in self.marks if isinstance(mark, Rectangle) and mark.tag == COVER_TAG]
        return [self.kind, self.plot.as_data(), covers]


class Figure(ABC):
    """A chart, laid out: all that does not depend on its values.

    Args:
        plot: What is shown.

    Raises:
        ValueError: There is no room for it.
    """

    def __init__(self, plot: Plot) -> None:
        self.plot = plot

    @abstractmethod
    def scene(self, plot: Plot) -> PlotScene:
        """Return the picture of the chart with the values of ``plot``."""

    @abstractmethod
    def subject(self) -> str:
        """Return what the question calls the value."""

    @abstractmethod
    def evidence(self) -> tuple[str, ...]:
        """Return the tags of what must be seen."""

    @abstractmethod
    def cover(self) -> Bounds:
        """Return the box that hides the value that is asked for, whatever it is."""

    @abstractmethod
    def decoys(self) -> list[Bounds]:
        """Return boxes of the same size that hide nothing of the evidence; at least one."""


def letters(
    plot: Plot,
    text: str,
    *,
    right: float | None = None,
    left: float | None = None,
    x: float = 0.0,
    y: float,
    tag: str,
) -> Text:
    """Return a text whose ink ends, begins, or has its middle where it is said.

    Args:
        plot: Where it is written.
        text: What is written.
        right: Where its ink ends.
        left: Where its ink begins.
        x: Where the middle of its ink is, else.
        y: Where the middle of its ink is, down.
        tag: Of the mark.
    """
    x1, y1, x2, y2 = ink(text, plot.font, plot.size)
    at = right - x2 if right is not None else left - x1 if left is not None else x - (x1 + x2) / 2
    middle = (round(at, 4), round(y - (y1 + y2) / 2, 4))
    return Text(text=text, size=plot.font, at=middle, color=INK, tag=tag)


def room_of(plot: Plot, texts: Iterable[str]) -> tuple[float, float]:
    """Return the width and the height of the box that holds each of several texts."""
    x1, y1, x2, y2 = room(texts, plot.font, plot.size)
    return x2 - x1, y2 - y1


def numbers(plot: Plot) -> list[tuple[int, str]]:
    """Return the ticks that have a number, counted from 0, and the numbers."""
    return [(tick, plot.scale.written(10 * tick)) for tick in range(0, plot.scale.ticks + 1, plot.labelled)]


def too_small(plot: Plot, what: str) -> ValueError:
    """Return the error that says that there is no room."""
    return ValueError(f"a chart of {plot.size} pixels has no room for {what}; make size larger")
