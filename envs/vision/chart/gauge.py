"""Gauges: needles on half circles."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import pairwise

from tetrathlon.envs.vision.chart.plot import INK, Figure, Plot, PlotScene, letters, numbers, room_of, too_small
from tetrathlon.envs.vision.layout import near
from tetrathlon.envs.vision.scene import Bounds, Ellipse, Line, Mark, Spot
from tetrathlon.envs.vision.things import COLORS

_LEAST_TICK = 2.5
"""Pixels between ticks."""
_ARC = 48
"""Pieces of an arc."""


class Gauges(Figure):
    """One gauge above another, each with its own needle; the scale is the same and runs clockwise.

    Where numbers would touch there are fewer.
    """

    def __init__(self, plot: Plot) -> None:
        super().__init__(plot)
        width, height = room_of(plot, [text for _, text in numbers(plot)])
        self.name_height = room_of(plot, plot.names)[1]
        self.tick = 2 * plot.line + 1
        self.hub = 2 * plot.line
        self.row = plot.size / len(plot.names)
        outside = self.tick + 2
        upper = height + outside + 1
        lower = self.hub + 2 + max(self.name_height, height / 2) + 1
        self.radius = math.floor(min(self.row - upper - lower, plot.size / 2 - outside - width - 1))
        self.upper = upper
        if math.pi * self.radius / plot.scale.ticks < _LEAST_TICK:
            raise too_small(plot, f"gauges of {plot.scale.ticks} ticks with such numbers")
        fewer = (self._apart(n) for n in range(plot.labelled, plot.scale.ticks + 1))
        self.numbers = next((found for found in fewer if found is not None and len(found) > 1), {})
        if not self.numbers:
            raise too_small(plot, f"numbers such as {numbers(plot)[-1][1]} on gauges")

    def middle(self, item: int) -> tuple[int, int]:
        """Return where a needle turns."""
        return (self.plot.size // 2, math.ceil(item * self.row + self.upper + self.radius))

    def at(self, item: int, place: float, radius: float) -> Spot:
        """Return a spot on a ray from the middle of a gauge through a place of its scale."""
        turn = math.pi * (1 - place / self.plot.scale.places)
        x, y = self.middle(item)
        return (round(x + radius * math.cos(turn), 4), round(y - radius * math.sin(turn), 4))

    def scene(self, plot: Plot) -> PlotScene:
        """See :meth:`Figure.scene`."""
        needles = [mark for i in range(len(plot.names)) for mark in self._needle(plot, i)]
        return PlotScene(
            width=plot.size,
            height=plot.size,
            background=plot.ground,
            marks=(*self._frame, *needles),
            kind="gauge",
            plot=plot,
        )

    def subject(self) -> str:
        """See :meth:`Figure.subject`."""
        return f"gauge {self.plot.names[self.plot.item]}"

    def evidence(self) -> tuple[str, ...]:
        """See :meth:`Figure.evidence`."""
        item = self.plot.item
        return (f"value 0 {item}", f"name {item}", f"axis {item}")

    def cover(self) -> Bounds:
        """See :meth:`Figure.cover`: all that the needle may point at."""
        return self._dial(self.plot.item)

    def decoys(self) -> list[Bounds]:
        """See :meth:`Figure.decoys`: the other gauges."""
        return [self._dial(i) for i in range(len(self.plot.names)) if i != self.plot.item]

    def _dial(self, item: int) -> Bounds:
        x, y = self.middle(item)
        return (x - self.radius, y - self.radius, x + self.radius, y + self.hub + 1)

    @cached_property
    def _frame(self) -> list[Mark]:
        """What does not depend on the values."""
        return [mark for i in range(len(self.plot.names)) for mark in self._dial_marks(i)]

    def _dial_marks(self, item: int) -> list[Mark]:
        plot, line, axis = self.plot, self.plot.line, f"axis {item}"
        arc = tuple(self.at(item, plot.scale.places * k / _ARC, self.radius) for k in range(_ARC + 1))
        marks: list[Mark] = [Line(points=arc, width=line, color=INK, tag=axis)]
        for tick in range(plot.scale.ticks + 1):
            place = 10 * tick
            length = self.tick if tick in self.numbers else self.tick - line
            ends = (self.at(item, place, self.radius), self.at(item, place, self.radius + length))
            marks.append(Line(points=ends, width=line, color=INK, tag=axis))
        for tick, text in self.numbers.items():
            x, y = self._number_at(item, tick, text)
            marks.append(letters(plot, text, x=x, y=y, tag=axis))
        x, y = self.middle(item)
        below = y + self.hub + 2 + self.name_height / 2
        marks.append(letters(plot, plot.names[item], x=x, y=below, tag=f"name {item}"))
        if plot.unit:
            marks.append(letters(plot, plot.unit, left=x + plot.font, y=below, tag=axis))
        return marks

    def _needle(self, plot: Plot, item: int) -> list[Mark]:
        x, y = self.middle(item)
        color, tag = COLORS[plot.colors[0]], f"value 0 {item}"
        tip = self.at(item, plot.values[0][item], self.radius - plot.line - 1)
        return [
            Line(points=((x, y), tip), width=1.5 * plot.line, color=color, tag=tag),
            Ellipse(box=(x - self.hub, y - self.hub, x + self.hub, y + self.hub), color=color, tag=tag),
        ]

    def _number_at(self, item: int, tick: int, text: str) -> Spot:
        """Return where the middle of a number is, outside the ticks."""
        width, height = room_of(self.plot, [text])
        turn = math.pi * (1 - tick / self.plot.scale.ticks)
        away = _clear(self.radius + self.tick + 1, width, height, turn)
        return self.at(item, 10 * tick, away)

    def _apart(self, labelled: int) -> dict[int, str] | None:
        """Return the numbers at each ``labelled`` ticks, by their ticks; None where some would touch."""
        texts = {tick: self.plot.scale.written(10 * tick) for tick in range(0, self.plot.scale.ticks + 1, labelled)}
        boxes = []
        for tick, text in texts.items():
            x, y = self._number_at(0, tick, text)
            width, height = room_of(self.plot, [text])
            boxes.append((x - width / 2, y - height / 2, x + width / 2, y + height / 2))
        touching = any(near(one, other, self.plot.font / 2) for one, other in pairwise(boxes))
        return None if touching else texts


def _clear(radius: float, width: float, height: float, turn: float) -> float:
    """Return how far from the middle of a circle that of a box is in a direction where they just touch."""
    across, up = abs(math.cos(turn)), abs(math.sin(turn))
    if up and (away := (radius + height / 2) / up) * across <= width / 2:  # the box is above the middle of the circle
        return away
    if across and (away := (radius + width / 2) / across) * up <= height / 2:  # beside it
        return away
    half = (across * width + up * height) / 2  # a corner touches
    return half + math.sqrt(max(half**2 - (width**2 + height**2) / 4 + radius**2, 0.0))
