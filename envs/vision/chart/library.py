"""Charts that matplotlib draws: its own picture, and where in it things are, as its artists say.

Bars and points are where our own charts have them, so that the same boxes cover them; all else is matplotlib's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any

import numpy as np
from PIL import Image

from tetrathlon.envs.vision.chart.panel import Bars, Lines, Panel
from tetrathlon.envs.vision.chart.plot import AXIS, INK, Figure, Plot, PlotScene, numbers
from tetrathlon.envs.vision.drawing import Drawing
from tetrathlon.envs.vision.scene import Bounds, Color, Ellipse, Mark, Rectangle
from tetrathlon.envs.vision.things import COLORS

STYLES = 8
"""Looks: three choices of two."""
_KINDS: dict[str, Callable[[Plot], Panel]] = {"bars": Bars, "lines": Lines}
_PREFIX = "matplotlib "
_PER_INCH = 72
"""Pixels, so that a point is one."""
_lock = Lock()


@dataclass(frozen=True, slots=True)
class Rendered:
    """What matplotlib made."""

    picture: np.ndarray
    """uint8 [H, W, 3]."""
    regions: dict[str, tuple[Mark, ...]]
    """By tag, what its artists cover."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region(Mark):
    """Where a chart of matplotlib shows something; it is asked only when that is looked at."""

    kind: str
    plot: Plot

    def paint(self, canvas: Image.Image, ink: int, scale: int) -> None:
        """See :meth:`Mark.paint`."""
        for mark in rendered(self.kind, self.plot).regions[self.tag]:
            mark.paint(canvas, ink, scale)


class LibraryScene(PlotScene):
    """A picture of matplotlib's, and marks on top of it; its first marks say what is where and are not seen."""

    __slots__ = ()

    @property
    def panel(self) -> str:
        """``bars`` or ``lines``."""
        return self.kind.removeprefix(_PREFIX)


class LibraryDrawing(Drawing):
    """A :class:`LibraryScene`, drawn."""

    @cached_property
    def picture(self) -> np.ndarray:
        """The picture, uint8 [H, W, 3], not to be changed."""
        scene = self.scene
        assert isinstance(scene, LibraryScene)
        made = rendered(scene.panel, scene.plot).picture.copy()
        for mark in scene.marks:
            if not isinstance(mark, Region):
                made[self.mask([mark.tag])] = mark.color
        made.flags.writeable = False
        return made


class Library(Figure):
    """A chart of matplotlib.

    Args:
        plot: What is shown.
        kind: ``bars`` or ``lines``.
    """

    def __init__(self, plot: Plot, kind: str) -> None:
        super().__init__(plot)
        self.kind = kind
        self.panel = _KINDS[kind](plot)

    def scene(self, plot: Plot) -> PlotScene:
        """See :meth:`Figure.scene`."""
        values = [f"value {s} {i}" for s in range(len(plot.colors)) for i in range(len(plot.names))]
        names = [f"name {i}" for i in range(len(plot.names))]
        marks = tuple(Region(kind=self.kind, plot=plot, tag=tag, color=INK) for tag in (AXIS, *names, *values))
        return LibraryScene(
            width=plot.size, height=plot.size, background=plot.ground, marks=marks, kind=_PREFIX + self.kind, plot=plot
        )

    def subject(self) -> str:
        """See :meth:`Figure.subject`."""
        return self.panel.subject()

    def evidence(self) -> tuple[str, ...]:
        """See :meth:`Figure.evidence`."""
        return self.panel.evidence()

    def cover(self) -> Bounds:
        """See :meth:`Figure.cover`."""
        return self.panel.cover()

    def decoys(self) -> list[Bounds]:
        """See :meth:`Figure.decoys`."""
        return self.panel.decoys()


@lru_cache(maxsize=8)
def rendered(kind: str, plot: Plot) -> Rendered:
    """Return what matplotlib draws of a chart, whatever settings it has been given.

    Args:
        kind: ``bars`` or ``lines``.
        plot: What is shown.
    """
    import matplotlib

    defaults: dict[Any, Any] = dict(matplotlib.rcParamsDefault)
    for name in ("backend", "interactive", "toolbar", "timezone"):
        defaults.pop(name, None)
    defaults["path.snap"] = False  # what is drawn is where its artist says, not at the next whole pixel
    # Its settings belong to the whole process; they are set for a moment, by one thread at a time.
    with _lock, matplotlib.rc_context(defaults):
        return _drawn(_KINDS[kind](plot), plot)


def _drawn(panel: Panel, plot: Plot) -> Rendered:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Sheet
    from matplotlib.patches import Ellipse as Circle

    size, font, line = plot.size, plot.font, plot.line
    sheet = Sheet(figsize=(size / _PER_INCH, size / _PER_INCH), dpi=_PER_INCH, facecolor=_unit(plot.ground))
    canvas = FigureCanvasAgg(sheet)
    wide, high = panel.right - panel.left, panel.bottom - panel.top
    face = (1.0, 1.0, 1.0) if plot.style & 1 else _unit(plot.ground)
    axes = sheet.add_axes((panel.left / size, 1 - panel.bottom / size, wide / size, high / size), facecolor=face)
    if plot.scale.base is not None:
        axes.set_yscale("log", base=plot.scale.base)
        axes.minorticks_off()
    axes.set_xlim(panel.left, panel.right)  # pixels
    axes.set_ylim(plot.scale.value(0), plot.scale.value(plot.scale.places))
    written = dict(numbers(plot))
    axes.set_yticks(
        [plot.scale.value(10 * tick) for tick in range(plot.scale.ticks + 1)],
        [written.get(tick, "") for tick in range(plot.scale.ticks + 1)],
    )
    axes.set_xticks([panel.x(i) for i in range(len(plot.names))], plot.names)
    axes.tick_params(labelsize=font, width=line, length=panel.ticks - 1, pad=1, colors=_unit(INK))
    axes.tick_params(axis="x", length=0, pad=panel.names_at - panel.bottom - font * 0.36)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom") or not plot.style & 2)
        spine.set_linewidth(line)
    if plot.has_grid:
        axes.grid(axis="y", linewidth=line, alpha=0.4)
    axes.set_axisbelow(True)
    if plot.unit:
        axes.text(1 / size, 1 - 1 / size, plot.unit, transform=sheet.transFigure, fontsize=font, va="top", gid=AXIS)
    artists = _bars(axes, panel, plot) if isinstance(panel, Bars) else _lines(axes, panel, plot)
    canvas.draw()
    picture = np.ascontiguousarray(np.asarray(canvas.buffer_rgba())[..., :3])
    picture.flags.writeable = False
    renderer = canvas.get_renderer()

    def region(artist: Any) -> Mark:
        box = artist.get_window_extent(renderer)
        shape = Ellipse if isinstance(artist, Circle) else Rectangle
        return shape(box=(float(box.x0), size - float(box.y1), float(box.x1), size - float(box.y0)), color=INK)

    regions: dict[str, tuple[Mark, ...]] = {tag: (region(artist),) for tag, artist in artists.items()}
    regions |= {f"name {i}": (region(label),) for i, label in enumerate(axes.get_xticklabels())}
    ticks = Rectangle(box=(panel.left - panel.ticks, panel.top, panel.left, panel.bottom), color=INK)
    seen = [label for label in axes.get_yticklabels() if label.get_text()]
    regions[AXIS] = (ticks, *map(region, [*seen, *axes.texts]))
    return Rendered(picture, regions)


def _bars(axes: Any, panel: Bars, plot: Plot) -> dict[str, Any]:
    """Draw bars; return the artist of each."""
    artists: dict[str, Any] = {}
    low = plot.scale.value(0)
    for s, row in enumerate(plot.values):
        middles = [panel.start(s, i) + panel.width / 2 for i in range(len(row))]
        heights = [plot.scale.value(place) - low for place in row]
        bars = axes.bar(middles, heights, panel.width, bottom=low, color=_unit(COLORS[plot.colors[s]]), linewidth=0)
        artists |= {f"value {s} {i}": bar for i, bar in enumerate(bars)}
    return artists


def _lines(axes: Any, panel: Panel, plot: Plot) -> dict[str, Any]:
    """Draw lines through points; return the artist of each point."""
    from matplotlib.patches import Ellipse as Circle
    from matplotlib.patches import Rectangle as Square
    from matplotlib.transforms import IdentityTransform

    assert isinstance(panel, Lines)
    artists: dict[str, Any] = {}
    side = 2 * panel.radius
    order = [s for s in range(len(plot.colors)) if s != plot.series]
    for s in (*order, plot.series):
        color, row = _unit(COLORS[plot.colors[s]]), plot.values[s]
        spots = [panel.x(i) for i in range(len(row))], [plot.scale.value(place) for place in row]
        for piece in range(len(row) - 1):  # each alone: in one long line a point moves the antialiasing of all of it
            ends = [each[piece : piece + 2] for each in spots]
            axes.plot(*ends, color=color, linewidth=panel.stroke, solid_capstyle="round", clip_on=False)
        # Patches, since markers are moved to whole pixels.
        style: dict[str, Any] = {"color": color, "linewidth": 0, "transform": IdentityTransform(), "zorder": 3}
        for i, (x, y) in enumerate(axes.transData.transform(np.transpose(spots))):
            square = Square((x - side / 2, y - side / 2), side, side, **style)
            point = square if plot.style & 4 else Circle((x, y), side, side, **style)
            axes.add_artist(point).set_clip_on(False)
            artists[f"value {s} {i}"] = point
    return artists


def _unit(color: Color) -> tuple[float, float, float]:
    red, green, blue = color
    return (red / 255, green / 255, blue / 255)
