"""Charts with an upright scale on the left: bars, and lines through points."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import ClassVar

from tetrathlon.envs.vision.chart.plot import AXIS, INK, Figure, Plot, PlotScene, letters, numbers, room_of, too_small
from tetrathlon.envs.vision.scene import Bounds, Color, Ellipse, Line, Mark, Rectangle, Spot
from tetrathlon.envs.vision.things import COLORS

_GRID_SHARE = 0.15
_LEAST_TICK = 2.5
"""Pixels between ticks."""


class Panel(Figure):
    """Where the scale is, and how it is drawn.

    Args:
        plot: See :class:`Figure`.
        below: Pixels between the lower end of the scale and the names.

    Attributes:
        left: Where the scale is; whole pixels, like the others.
        top: Its upper end.
        right: The end of the picture that may be drawn on.
        bottom: Its lower end.
    """

    kind: ClassVar[str]
    """See :class:`PlotScene`."""

    def __init__(self, plot: Plot, below: int) -> None:
        super().__init__(plot)
        self.ticks = 2 * plot.line + 1
        width, high = room_of(plot, [text for _, text in numbers(plot)])
        height, names_high = math.ceil(high), room_of(plot, plot.names)[1]
        self.left = math.ceil(width) + self.ticks + 3
        self.top = height // 2 + 2 + (height + 4 if plot.unit else 0)
        self.right = plot.size - 2
        self.bottom = plot.size - math.ceil(names_high) - below - 2
        self.names_at = self.bottom + below + names_high / 2
        if self.right - self.left < plot.size // 3:
            raise too_small(plot, f"numbers such as {numbers(plot)[-1][1]}")
        a_tick = (self.bottom - self.top) / plot.scale.ticks
        if a_tick < _LEAST_TICK:
            raise too_small(plot, f"{plot.scale.ticks} ticks")
        if a_tick * plot.labelled < height + 1:
            raise too_small(plot, f"a number at each {plot.labelled} ticks (labelled)")

    def y(self, place: float) -> float:
        """Return where a place of the scale is."""
        return round(self.bottom - (self.bottom - self.top) * place / self.plot.scale.places, 4)

    @abstractmethod
    def x(self, item: int) -> float:
        """Return where the name of an item is."""

    @abstractmethod
    def values(self, plot: Plot) -> list[Mark]:
        """Return the marks of the values of ``plot``."""

    def scene(self, plot: Plot) -> PlotScene:
        """See :meth:`Figure.scene`."""
        return PlotScene(
            width=plot.size,
            height=plot.size,
            background=plot.ground,
            marks=(*self._frame, *self.values(plot)),
            kind=self.kind,
            plot=plot,
        )

    @cached_property
    def _frame(self) -> list[Mark]:
        """What does not depend on the values."""
        plot, line = self.plot, self.plot.line
        grid: Color = tuple(round(g + _GRID_SHARE * (i - g)) for g, i in zip(plot.ground, INK, strict=True))  # type: ignore[assignment]
        labelled = numbers(plot)
        marks: list[Mark] = []

        def across(x1: float, x2: float, y: float, color: Color, tag: str) -> Mark:
            return Rectangle(box=(x1, y - line / 2, x2, y + line / 2), color=color, tag=tag)

        if plot.has_grid:
            marks += [across(self.left, self.right, self.y(10 * tick), grid, "grid") for tick, _ in labelled[1:]]
        marks.append(
            Rectangle(box=(self.left - line, self.bottom, self.right, self.bottom + line), color=INK, tag="base")
        )
        marks.append(Rectangle(box=(self.left - line, self.top, self.left, self.bottom), color=INK, tag=AXIS))
        has_number = {tick for tick, _ in labelled}
        for tick in range(plot.scale.ticks + 1):
            length = self.ticks if tick in has_number else self.ticks - line
            marks.append(across(self.left - length, self.left, self.y(10 * tick), INK, AXIS))
        for tick, text in labelled:
            end = self.left - self.ticks - 1
            marks.append(letters(plot, text, right=end, y=self.y(10 * tick), tag=AXIS))
        if plot.unit:
            marks.append(letters(plot, plot.unit, left=1, y=1 + room_of(plot, [plot.unit])[1] / 2, tag=AXIS))
        for i, name in enumerate(plot.names):
            marks.append(letters(plot, name, x=self.x(i), y=self.names_at, tag=f"name {i}"))
        return marks

    def _named(self, thing: str) -> str:
        plot = self.plot
        if len(plot.colors) == 1:
            return f"{thing} {plot.names[plot.item]}"
        return f"the {plot.colors[plot.series]} {thing} at {plot.names[plot.item]}"


class Bars(Panel):
    """Bars from the lower end of the scale, those of an item side by side."""

    kind = "bars"

    def __init__(self, plot: Plot) -> None:
        super().__init__(plot, below=plot.line + 2)
        n, series = len(plot.names), len(plot.colors)
        self.slot = (self.right - self.left - 1) // n
        self.pad = max(self.slot // 5, 1)
        self.width = (self.slot - 2 * self.pad - series + 1) // series
        if self.width < 2:
            raise too_small(plot, f"{n} times {series} bars")

    def x(self, item: int) -> float:
        """See :meth:`Panel.x`."""
        used = len(self.plot.colors) * (self.width + 1) - 1
        return self.start(0, item) + used / 2

    def start(self, series: int, item: int) -> int:
        """Return where a bar begins, from the left."""
        return self.left + 1 + item * self.slot + self.pad + series * (self.width + 1)

    def column(self, series: int, item: int) -> Bounds:
        """Return all that a bar may fill."""
        x = self.start(series, item)
        return (x, self.top - 1, x + self.width, self.bottom)

    def values(self, plot: Plot) -> list[Mark]:
        """See :meth:`Panel.values`."""
        marks: list[Mark] = []
        for s, row in enumerate(plot.values):
            for i, place in enumerate(row):
                x = self.start(s, i)
                box = (x, self.y(place), x + self.width, self.bottom)
                marks.append(Rectangle(box=box, color=COLORS[plot.colors[s]], tag=f"value {s} {i}"))
        return marks

    def subject(self) -> str:
        """See :meth:`Figure.subject`."""
        return self._named("bar")

    def evidence(self) -> tuple[str, ...]:
        """See :meth:`Figure.evidence`."""
        return (f"value {self.plot.series} {self.plot.item}", f"name {self.plot.item}", AXIS)

    def cover(self) -> Bounds:
        """See :meth:`Figure.cover`: the column of the bar, from end to end of the scale."""
        return self.column(self.plot.series, self.plot.item)

    def decoys(self) -> list[Bounds]:
        """See :meth:`Figure.decoys`: the columns of the others."""
        asked = (self.plot.series, self.plot.item)
        every = [(s, i) for s in range(len(self.plot.colors)) for i in range(len(self.plot.names))]
        return [self.column(*each) for each in every if each != asked]


class Lines(Panel):
    """Points, those of a series with lines between them."""

    kind = "lines"

    def __init__(self, plot: Plot) -> None:
        self.radius = max(plot.size / 40, 2.0)
        self.stroke = max(plot.size / 80, 1.0)
        self.reach = math.ceil(self.radius) + 1
        super().__init__(plot, below=self.reach + 2)
        self.edge = math.ceil(self.stroke / 2) + 1
        """Pixels by which a line may lie beside the middle of a point that it leads to."""
        self.apart = (self.right - self.left - 2 * self.edge - 2) // (len(plot.names) + 1)
        if self.apart < 2 * self.radius + self.edge:
            raise too_small(plot, f"{len(plot.names)} points")

    def x(self, item: int) -> float:
        """See :meth:`Panel.x`."""
        return self.left + 1 + self.edge + self.apart * (item + 1)

    def spot(self, item: int, place: int) -> Spot:
        """Return where a point is."""
        return (self.x(item), self.y(place))

    def values(self, plot: Plot) -> list[Mark]:
        """See :meth:`Panel.values`: the series that is asked about is on top."""
        marks: list[Mark] = []
        order = [s for s in range(len(plot.colors)) if s != plot.series]
        for s in (*order, plot.series):
            color = COLORS[plot.colors[s]]
            spots = [self.spot(i, place) for i, place in enumerate(plot.values[s])]
            marks.append(Line(points=tuple(spots), width=self.stroke, color=color, tag=f"line {s}"))
            for i, (x, y) in enumerate(spots):
                box = (x - self.radius, y - self.radius, x + self.radius, y + self.radius)
                marks.append(Ellipse(box=box, color=color, tag=f"value {s} {i}"))
        return marks

    def subject(self) -> str:
        """See :meth:`Figure.subject`."""
        return self._named("point")

    def evidence(self) -> tuple[str, ...]:
        """See :meth:`Figure.evidence`."""
        return (f"value {self.plot.series} {self.plot.item}", f"name {self.plot.item}", AXIS)

    def cover(self) -> Bounds:
        """See :meth:`Figure.cover`: up to the neighbours, since the lines from them lead to the point."""
        return self._around(self.plot.item)

    def decoys(self) -> list[Bounds]:
        """See :meth:`Figure.decoys`: around points that are no neighbours."""
        return [self._around(i) for i in range(len(self.plot.names)) if abs(i - self.plot.item) > 1]

    def _around(self, item: int) -> Bounds:
        x, reach = self.x(item), self.apart + self.edge
        return (x - reach, self.top - self.reach, x + reach, self.bottom + self.reach)
