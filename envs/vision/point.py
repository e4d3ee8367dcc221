"""Point at one thing among others."""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np

from tetrathlon.envs.arguments import share, whole
from tetrathlon.envs.language.chance import Chance
from tetrathlon.envs.vision.bandit import VisionBandit
from tetrathlon.envs.vision.coordinates import convention
from tetrathlon.envs.vision.drawing import Drawing
from tetrathlon.envs.vision.layout import covering
from tetrathlon.envs.vision.reading import read_point
from tetrathlon.envs.vision.scene import Bounds, Color, Scene
from tetrathlon.envs.vision.task import View, VisionTask
from tetrathlon.envs.vision.things import COLORS, GROUNDS, SHAPES, Kind, near_miss, shaped

_COORDINATES = ("px", "unit", "k1000", "yxyx", "cell")
_MOST_LAYOUTS = 1_000
_COLUMNS = "ABCDEFGH"
_TARGET = "thing 0"
_LEAST_DIAMETER = 4
_LARGEST_CELL = 1024


class Point(VisionBandit):
    """Point at the thing that is asked for.

    ## Description
    The picture is a grid of cells without lines, and some cells hold a thing each. The question names one by colour
    and shape; others share its colour or its shape, and no other has both. In the twin the thing has changed places
    with another one.

    ## Observation Space
    `Dict`: ``image``, uint8 [size, size, 3], and ``text``: ``Point at the red circle.``, how to write a point, what to
    answer where the thing cannot be seen, and the format.

    ## Action Space
    `UnicodeText`: the completion. Its answer is a point in the form of ``coordinates``, or with ``coordinates="cell"``
    the name of a cell: a letter for its column, A on the left, and a number for its row, 1 at the top.

    ## Rewards
    1 if the pixel of the point shows the thing (not merely the box around it), or if the cell is the thing's; else 0.
    Where the thing is covered, ``unseen`` is right.

    ## Starting State
    The kind, the cells and the place of each thing within its cell are uniform.

    ## Episode End
    Terminated after one step.

    ## Arguments
    * ``coordinates``: ``"px"``, ``"unit"``, ``"k1000"``, ``"yxyx"`` (y first) or ``"cell"``; default ``"px"``.
    * ``cells``: how many there are along each side, 2 to 8; default 4.
    * ``others``: how many other things there are at most, from 1; default 5.
    * ``colors``, ``shapes``: how many of each there are; 2 or more; default 4 and 3.
    * ``diameter``: of a thing, as a share of the cell, at most; from three quarters of it to all of it; default 0.75.
    * ``fade``: by which share colours are those of the background; default 0.
    * Those of ``VisionEnv`` and ``TextBandit``; ``size`` is 64.

    ## Version History
    * v0: first version.

    Raises:
        ValueError: An argument is out of its range, or cells are too small or too large.
    """

    words = (
        *("Point at the ", *COLORS),
        *(f" {shape}" for shape in SHAPES),
        *(f"{column}{row}" for column in _COLUMNS for row in range(1, len(_COLUMNS) + 1)),
    )

    def __init__(
        self,
        *,
        coordinates: str = "px",
        cells: int = 4,
        others: int = 5,
        colors: int = 4,
        shapes: int = 3,
        diameter: float = 0.75,
        fade: float = 0.0,
        **kwargs: Any,
    ) -> None:
        if coordinates not in _COORDINATES:
            raise ValueError(f"coordinates must be one of {', '.join(map(repr, _COORDINATES))}, got {coordinates!r}")
        self.coordinates = coordinates
        self._convention = None if coordinates == "cell" else convention(coordinates)
        self.cells = whole("cells", cells, 2, len(_COLUMNS))
        self.others = whole("others (cells that are left)", others, 1, self.cells**2 - 1)
        self.colors = whole("colors", colors, 2, len(COLORS))
        self.shapes = whole("shapes", shapes, 2, len(SHAPES))
        self.diameter = share("diameter (share of a cell)", diameter, last=True)
        self.fade = share("fade", fade)
        super().__init__(**kwargs)
        self.cell = self.size // self.cells
        if self.cell > _LARGEST_CELL:
            raise ValueError(
                f"cells of {self.cell} pixels are larger than {_LARGEST_CELL}; make size {self.size} smaller, or cells "
                f"{self.cells} more"
            )
        largest = int(self.cell * self.diameter)
        if largest < _LEAST_DIAMETER:
            raise ValueError(
                f"things of {largest} pixels are too small to be told apart; make size {self.size} or diameter "
                f"{self.diameter:g} larger, or cells {self.cells} fewer"
            )
        self._diameters = range(max(largest - largest // 4, _LEAST_DIAMETER), largest + 1)

    @cached_property
    def blind_floor(self) -> float:
        """See :meth:`VisionEnv.blind_floor`.

        The chance of a cell; for a point, times the chance that a thing of the shape that is asked for is at the best
        pixel of the cell, over all diameters and places.
        """
        cell = 1 / self.cells**2
        if self._convention is None:
            return cell
        return float(cell * np.mean([_hits(shape, self._diameters, self.cell).max() for shape in self._shapes]))

    def blind_answer(self, question: str) -> str:
        """See :meth:`VisionEnv.blind_answer`: in the first cell, the likeliest pixel of such things."""
        if self._convention is None:
            return "A1"
        shape = next(shape for shape in self._shapes if shape in question)
        y, x = np.unravel_index(_hits(shape, self._diameters, self.cell).argmax(), (self.cell, self.cell))
        return self._written(float(x) + 0.5, float(y) + 0.5)

    def generate(self, rng: np.random.Generator) -> VisionTask:
        """Draw the kinds, their cells, and their places in them."""
        chance = Chance(rng)
        kind = Kind(chance.pick(list(COLORS)[: self.colors]), chance.pick(self._shapes))
        cells = chance.some(range(self.cells**2), 1 + chance.between(1, self.others))
        kinds = [kind, *(near_miss(chance, kind, self.colors, self.shapes) for _ in cells[1:])]
        for _ in range(_MOST_LAYOUTS):
            if (laid := self._laid(chance, kinds, cells)) is not None:
                return laid
        raise ValueError(f"nothing else is left to be covered: make diameter {self.diameter:g} smaller")

    def matches(self, view: View, answer: str) -> bool:
        """Tell whether ``answer`` is a point on the thing, or its cell."""
        if self._convention is None:
            return answer.strip().upper() == view.answer
        read = read_point(answer, self._convention, (self.size, self.size))
        if not read.is_read:
            return False
        x, y = read.pixels[0]
        if not (0 <= x < self.size and 0 <= y < self.size):
            return False
        return bool(self.drawing.mask(view.evidence)[int(y), int(x)])

    def places(self, answer: str) -> list[tuple[float, ...]]:
        """See :meth:`VisionEnv.places`."""
        if self._convention is None:
            return []
        return [(float(x), float(y)) for x, y in read_point(answer, self._convention, (self.size, self.size)).pixels]

    @property
    def _shapes(self) -> tuple[str, ...]:
        return SHAPES[: self.shapes]

    def instructions(self) -> str:
        """See :meth:`VisionEnv.instructions`."""
        if self._convention is None:
            return (
                f"The picture has {self.cells} columns, A to {_COLUMNS[self.cells - 1]} from the left, and as many "
                "rows, 1 at the top. Name the cell, as in A1."
            )
        return self._convention.point_says((self.size, self.size))

    def _laid(self, chance: Chance, kinds: list[Kind], cells: list[int]) -> VisionTask | None:
        boxes = [self._place(chance, cell) for cell in cells]
        hidden = covering(chance, boxes[:1], (0, 0, self.size, self.size))
        if hidden is None:
            return None
        ground = chance.pick(GROUNDS)
        with_other = chance.between(1, len(cells) - 1)

        def view(order: list[int]) -> View:
            marks = tuple(
                kinds[i].mark(box, f"thing {i}", self._color(kinds[i], ground))
                for i, box in zip(order, boxes, strict=True)
            )
            scene = Scene(width=self.size, height=self.size, background=ground, marks=marks)
            at = order.index(0)
            return View(scene, self._answer(cells[at], kinds[0].shape, boxes[at]), (_TARGET,))

        swapped = list(range(len(cells)))
        swapped[0], swapped[with_other] = with_other, 0
        return VisionTask(f"Point at the {kinds[0]}.", view(list(range(len(cells)))), view(swapped), *hidden)

    def _place(self, chance: Chance, cell: int) -> Bounds:
        """Draw where in a cell a thing is."""
        row, column = divmod(cell, self.cells)
        diameter = chance.between(self._diameters[0], self._diameters[-1])
        x = column * self.cell + chance.between(0, self.cell - diameter)
        y = row * self.cell + chance.between(0, self.cell - diameter)
        return (x, y, x + diameter, y + diameter)

    def _color(self, kind: Kind, ground: Color) -> Color:
        own = COLORS[kind.color]
        mixed = [round(a + self.fade * (b - a)) for a, b in zip(own, ground, strict=True)]
        return (mixed[0], mixed[1], mixed[2])

    def _answer(self, cell: int, shape: str, box: Bounds) -> str:
        """Return the cell, or the pixel of the thing that is nearest to the middle of all of them."""
        if self._convention is None:
            return f"{_COLUMNS[cell % self.cells]}{cell // self.cells + 1}"
        pixels = np.argwhere(_mask(shape, int(box[2] - box[0])))
        y, x = pixels[np.square(pixels - pixels.mean(axis=0)).sum(axis=1).argmin()]
        return self._written(box[0] + float(x) + 0.5, box[1] + float(y) + 0.5)

    def _written(self, x: float, y: float) -> str:
        assert self._convention is not None
        return f"[{', '.join(f'{value:g}' for value in self._convention.from_px((x, y), (self.size, self.size)))}]"


@cache
def _mask(shape: str, diameter: int) -> np.ndarray:
    """Return which pixels of its box a thing shows at, bool [diameter, diameter]; its corners are whole pixels."""
    mark = shaped(shape, (0, 0, diameter, diameter), (0, 0, 0), _TARGET)
    return Drawing(Scene(width=diameter, height=diameter, marks=(mark,))).mask((_TARGET,))


@cache
def _hits(shape: str, diameters: range, cell: int) -> np.ndarray:
    """Return the chance that a thing of a shape is at each pixel of its cell, float [cell, cell]."""
    chances = np.zeros((cell, cell))
    for diameter in diameters:
        places = cell - diameter + 1
        counts = np.zeros((cell + 1, cell + 1), np.int64)  # of the mask's pixels left of and above each corner
        counts[1 : diameter + 1, 1 : diameter + 1] = _mask(shape, diameter)
        counts = counts.cumsum(axis=0).cumsum(axis=1)
        counts[places + 1 :] -= counts[1:-places].copy()
        counts[:, places + 1 :] -= counts[:, 1:-places].copy()
        chances += counts[1:, 1:] / places**2
    return chances / len(diameters)
