"""Read a value off a chart."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tetrathlon.envs.arguments import flag, some_of, whole
from tetrathlon.envs.language.chance import Chance
from tetrathlon.envs.vision.bandit import VisionBandit
from tetrathlon.envs.vision.chart.gauge import Gauges
from tetrathlon.envs.vision.chart.library import STYLES, Library, LibraryDrawing, LibraryScene
from tetrathlon.envs.vision.chart.panel import Bars, Lines
from tetrathlon.envs.vision.chart.plot import Figure, Plot
from tetrathlon.envs.vision.chart.scale import PARTS, Scale, blind, number_in
from tetrathlon.envs.vision.drawing import Drawing
from tetrathlon.envs.vision.task import View, VisionTask
from tetrathlon.envs.vision.things import GROUNDS

KINDS = ("bars", "lines", "gauge", "matplotlib")
_NAMES = "ABCDEFGHJKLMNPRSTUVXYZ"
_GAUGES = 2
_COLORS = ("red", "blue", "green", "purple", "orange", "black")
"""Those that are seen well as thin lines."""
_LARGEST = 10**6
_UNIT = re.compile(r"[^\W\d_]{1,6}|%|°C")
_HALF_TICK = PARTS // 2


class Chart(VisionBandit):
    """Read the value of a bar, a point or a needle off a chart.

    ## Description
    The picture is a chart with named values and a scale: bars, lines through points, two gauges, or bars and lines
    as matplotlib draws them. In the twin the value that is asked for is another, more than a tick away, and all else
    is the same.

    ## Observation Space
    `Dict`: ``image``, uint8 [size, size, 3], and ``text``: ``What is the value of bar B?``, how near is near enough,
    what to answer where the value cannot be seen, and the format.

    ## Action Space
    `UnicodeText`: the completion.

    ## Rewards
    1 if the final answer is one number at most half a tick from the value, else 0; a year off by two is wrong where
    ticks are years. Where the value is covered, ``unseen`` is right.

    ## Starting State
    The value is drawn first, uniform over the tenths of ticks of the scale but its start; so on one scale of T ticks
    who does not look is right 11 times in 10 T. No other value in the picture would be near enough.

    ## Episode End
    Terminated after one step.

    ## Arguments
    * ``kinds``: some of ``bars``, ``lines``, ``gauge`` and ``matplotlib``, one of which is drawn; default the first
      three. matplotlib takes some 50 ms a picture.
    * ``items``: bars or points of a series, 2 to 8, with lines from 4; default 4. Of gauges there are two.
    * ``series``: bars of each name, or lines, in as many colours, 1 to 3; default 1.
    * ``ticks``: of the scale, from its start to its end, 3 to 20; default 10.
    * ``labelled``: each so many ticks has a number, 1 to ``ticks``; default 2.
    * ``steps``: what a tick may be worth, one of them drawn, 1 to 1,000,000; default 10 alone.
    * ``start``: where the scale begins, -1,000,000 to 1,000,000; default 0.
    * ``log``: None, or how many times the last each tick is, 2 to 10: the scale is logarithmic and begins at 1, and
      half a tick is half of the way on it; default None.
    * ``unit``: letters, ``%`` or ``°C``: written beside the scale, asked for, and allowed behind the number.
    * ``grid``: whether lines lead from the numbers across bars and lines; default True.
    * Those of ``VisionEnv`` and ``TextBandit``; ``size`` is 96.

    ## Version History
    * v0: first version.

    Raises:
        ValueError: An argument is out of its range, or there is no room for the chart.
    """

    default_size = 96
    words = (
        *("What is the value of ", "bar ", "point ", "gauge ", " bar at ", " point at ", "the "),
        *("Give one number; it may be half a tick off.", *_COLORS),
    )

    def __init__(
        self,
        *,
        kinds: Sequence[str] | None = ("bars", "lines", "gauge"),
        items: int = 4,
        series: int = 1,
        ticks: int = 10,
        labelled: int = 2,
        steps: Sequence[int] = (10,),
        start: int = 0,
        log: int | None = None,
        unit: str = "",
        grid: bool = True,
        **kwargs: Any,
    ) -> None:
        self.kinds = some_of("kinds", kinds, KINDS)
        draws_lines = not {"lines", "matplotlib"}.isdisjoint(self.kinds)
        self.items = whole("items (from 4 with lines)", items, 4 if draws_lines else 2, 8)
        self.series = whole("series", series, 1, 3)
        self.ticks = whole("ticks", ticks, 3, 20)
        self.labelled = whole("labelled (ticks)", labelled, 1, self.ticks)
        start = whole("start", start, -_LARGEST, _LARGEST)
        self.scales = _scales(self.ticks, steps, start, log)
        if not isinstance(unit, str) or (unit and not _UNIT.fullmatch(unit)):
            raise ValueError(f"unit must be up to 6 letters, '%' or '°C', got {unit!r}")
        self.unit = unit
        self.grid = flag("grid", grid)
        super().__init__(**kwargs)
        for kind in self.kinds:
            for scale in self.scales:
                for library_kind in ("bars", "lines") if kind == "matplotlib" else (kind,):
                    _figure(kind, library_kind, self._plot(kind, scale))

    @cached_property
    def blind_floor(self) -> float:
        """See :meth:`VisionEnv.blind_floor`: the number that is near enough to most values, whatever the chart."""
        return self._blind[1]

    def blind_answer(self, question: str) -> str:
        """See :meth:`VisionEnv.blind_answer`."""
        return self._blind[0]

    def instructions(self) -> str:
        """See :meth:`VisionEnv.instructions`."""
        return "Give one number; it may be half a tick off."

    def generate(self, rng: np.random.Generator) -> VisionTask:
        """Draw a value and another, the chart, and the values around it."""
        chance = Chance(rng)
        scale = chance.pick(self.scales)
        place = chance.between(1, scale.places)
        # Round the scale, so that the other is uniform too, and more than a tick away, so that no number is near both.
        other = (place - 1 + chance.between(PARTS + 1, scale.places - PARTS - 1)) % scale.places + 1
        kind = chance.pick(self.kinds)
        library_kind = chance.pick(("bars", "lines")) if kind == "matplotlib" else kind
        plot = self._plot(kind, scale, chance, (place, other))
        figure = _figure(kind, library_kind, plot)

        def view(at: int) -> View:
            shown = plot.with_place(at)
            return View(figure.scene(shown), scale.written(at), figure.evidence(), {"scale": scale, "place": at})

        unit = f" in {self.unit}" if self.unit else ""
        question = f"What is the value of {figure.subject()}{unit}?"
        return VisionTask(question, view(place), view(other), [figure.cover()], [chance.pick(figure.decoys())])

    def matches(self, view: View, answer: str) -> bool:
        """Tell whether ``answer`` is one number at most half a tick from the value."""
        number = number_in(answer, self.unit)
        return number is not None and view.data["scale"].accepts(view.data["place"], number)

    @property
    def drawing(self) -> Drawing:
        """See :meth:`VisionEnv.drawing`."""
        drawn = super().drawing
        if isinstance(drawn.scene, LibraryScene) and not isinstance(drawn, LibraryDrawing):
            drawn = LibraryDrawing(drawn.scene)
            self._drawn = (self._task, self._shown, drawn)
        return drawn

    @cached_property
    def _blind(self) -> tuple[str, float]:
        return blind(self.scales)

    def _plot(self, kind: str, scale: Scale, chance: Chance | None = None, places: tuple[int, int] = (1, 1)) -> Plot:
        """Draw a chart whose value is the first of ``places``, and others near neither; None: any, to try its room."""
        n = _GAUGES if kind == "gauge" else self.items
        series = 1 if kind == "gauge" else self.series
        shared: dict[str, Any] = {
            "size": self.size,
            "scale": scale,
            "labelled": self.labelled,
            "unit": self.unit,
            "has_grid": self.grid,
        }
        if chance is None:
            return Plot(
                names=tuple(_NAMES[:n]),
                colors=_COLORS[:series],
                values=((1,) * n,) * series,
                series=0,
                item=0,
                ground=GROUNDS[0],
                **shared,
            )
        around = [
            place for place in range(1, scale.places + 1) if all(abs(place - taken) > _HALF_TICK for taken in places)
        ]
        values = tuple(tuple(chance.pick(around) for _ in range(n)) for _ in range(series))
        return Plot(
            names=tuple(chance.some(_NAMES, n)),
            colors=tuple(chance.some(_COLORS, series)),
            values=values,
            series=chance.below(series),
            item=chance.below(n),
            ground=chance.pick(GROUNDS),
            style=chance.below(STYLES),
            **shared,
        ).with_place(places[0])


def _scales(ticks: int, steps: Any, start: int, log: int | None) -> tuple[Scale, ...]:
    if log is not None:
        return (Scale(ticks, base=whole("log (None, or the base)", log, 2, 10)),)
    if isinstance(steps, str | Mapping) or not isinstance(steps, Sequence) or not steps:
        raise ValueError(f"steps must be a list of integers, got {steps!r}")
    worth = [whole("steps (each of them)", step, 1, _LARGEST) for step in steps]
    if len(set(worth)) < len(worth):
        raise ValueError(f"steps must differ from each other, got {steps!r}")
    return tuple(Scale(ticks, step, start) for step in worth)


def _figure(kind: str, library_kind: str, plot: Plot) -> Figure:
    if kind == "matplotlib":
        return Library(plot, library_kind)
    makers: dict[str, Callable[[Plot], Figure]] = {"bars": Bars, "lines": Lines, "gauge": Gauges}
    return makers[kind](plot)
