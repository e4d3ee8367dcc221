"""Boxes whose edges lie on a grid: drawn, moved, and guessed as well as they can be.

Everything here is in cells; a box is ``(x1, y1, x2, y2)``, integers from 0 to the number of cells a side.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from tetrathlon.envs.language.chance import Chance
from tetrathlon.envs.vision.boxes import ious

Cells = tuple[int, int, int, int]
"""A box, in cells."""
_HALVES = np.array(list(itertools.product((0, 1), repeat=4)), dtype=np.float64)
_ROUNDING = 1e-12
_DECIMALS = 6
_FINEST = 1e-7
_MOST_PAIRS = 12_000_000
"""Of cubes of guesses and boxes, with which a search for the best guess begins: some ten seconds."""
_SIDES_MOST = 2
"""Of windows along a side, how many one box can touch."""


@dataclass(frozen=True)
class Grid:
    """All boxes on a grid with sides of some range, each as likely as any other."""

    cells: int
    """Along a side of the picture."""
    least: int
    """Shortest side of a box, cells."""
    largest: int
    """Longest side of a box, cells."""
    aspect: float
    """Longer side over the shorter one, at most."""

    @cached_property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """Width and height, as they occur."""
        sides = range(self.least, self.largest + 1)
        return tuple((w, h) for w in sides for h in sides if max(w, h) <= self.aspect * min(w, h))

    @cached_property
    def n(self) -> int:
        """How many boxes there are."""
        return sum(math.prod(self._places(size)) for size in self.sizes)

    @property
    def windows(self) -> int:
        """How many windows of the longest side are in the picture, a cell apart."""
        return ((self.cells + 1) // (self.largest + 1)) ** 2

    def has_room(self, boxes: int) -> bool:
        """Tell whether beside so many boxes there is surely a place for another one of any size, a cell apart.

        A box touches at most two windows along each side, so four of them; the next box has a window to itself.
        """
        return self.windows > boxes * _SIDES_MOST**2

    def draw(self, chance: Chance, taken: Iterable[Cells] = ()) -> Cells:
        """Draw a box, each as likely as any other of those that touch none of ``taken``; there must be one."""
        kept = list(taken)
        while touches(box := self._numbered(chance.below(self.n)), kept):
            pass
        return box

    def elsewhere(self, chance: Chance, box: Cells, threshold: float) -> Cells:
        """Draw another box whose IoU with ``box`` is below ``threshold``.

        Where ``box`` is uniform so is the other, exactly. Its size is drawn as that of ``box`` was. Where no two boxes
        of the two sizes could be alike it may be anywhere; else it is of the size of ``box``, and moved in a circle,
        by a step that leads far enough from wherever it begins.
        """
        size = (box[2] - box[0], box[3] - box[1])
        other = self.draw(chance)
        if _likeness(size, (other[2] - other[0], other[3] - other[1])) < threshold:
            return other
        across, down = self._places(size)
        dx, dy = chance.pick(_steps(size, (across, down), threshold))
        x, y = (box[0] + dx) % across, (box[1] + dy) % down
        return (x, y, x + size[0], y + size[1])

    def window_around(self, chance: Chance, box: Cells) -> Cells:
        """Draw a window of the longest side that holds ``box``, so that it does not tell the size of it."""
        low = [
            chance.between(max(0, box[k + 2] - self.largest), min(self.cells - self.largest, box[k])) for k in (0, 1)
        ]
        return (low[0], low[1], low[0] + self.largest, low[1] + self.largest)

    def window_apart(self, chance: Chance, taken: Sequence[Cells]) -> Cells:
        """Draw a window of the longest side that touches none of ``taken``; there must be one."""
        while True:
            x, y = (chance.between(0, self.cells - self.largest) for _ in range(2))
            if not touches(window := (x, y, x + self.largest, y + self.largest), taken):
                return window

    def is_wide_enough(self, threshold: float) -> bool:
        """Tell whether the best guess can be so far from the edges that they take nothing from it."""
        return self._margin(threshold) + 1 + self.largest / threshold + (1 - threshold) * self.largest <= self.cells

    def is_searchable(self, threshold: float) -> bool:
        """Tell whether the best guess is found in seconds."""
        reach = _reach(self.largest, threshold)
        return math.comb(reach + 1, 2) * len(self.sizes) * (reach + self.largest) ** 2 <= _MOST_PAIRS

    def best(self, threshold: float) -> tuple[int, tuple[float, ...]]:
        """Return how many of the boxes one guess is right for at most, and such a guess, in cells.

        A guess is right for a box at an IoU of ``threshold`` or more. It need not lie on the grid; see :func:`_best`.
        """
        count, guess = _best(self.sizes, self.largest, threshold)
        return count, tuple(value + self._margin(threshold) for value in guess)

    def second(self) -> int:
        """Return a number of boxes that are surely left for a second one, whatever the first is."""
        return self.n - max(sum((w + v + 1) * (h + u + 1) for v, u in self.sizes) for w, h in self.sizes)

    def _margin(self, threshold: float) -> int:
        """Return how far a box that a guess is right for can reach beyond the guess."""
        return math.ceil((1 - threshold) * self.largest)

    def _places(self, size: tuple[int, int]) -> tuple[int, int]:
        return self.cells + 1 - size[0], self.cells + 1 - size[1]

    def _numbered(self, number: int) -> Cells:
        for size in self.sizes:
            across, down = self._places(size)
            if number < across * down:
                y, x = divmod(number, across)
                return (x, y, x + size[0], y + size[1])
            number -= across * down
        raise IndexError(number)


def touches(box: Cells, others: Iterable[Cells]) -> bool:
    """Tell whether a box shares a point with one of ``others``, edges included."""
    x1, y1, x2, y2 = box
    return any(x1 <= c and a <= x2 and y1 <= d and b <= y2 for a, b, c, d in others)


def _likeness(one: tuple[int, int], other: tuple[int, int]) -> float:
    """Return the largest IoU of boxes of two sizes."""
    shared = min(one[0], other[0]) * min(one[1], other[1])
    return shared / (one[0] * one[1] + other[0] * other[1] - shared)


@cache
def _steps(size: tuple[int, int], places: tuple[int, int], threshold: float) -> tuple[tuple[int, int], ...]:
    """Return the steps around a circle of places after which a box of ``size`` is unlike itself."""

    def is_far(dx: int, dy: int) -> bool:
        shared = max(size[0] - min(dx, places[0] - dx), 0) * max(size[1] - min(dy, places[1] - dy), 0)
        return shared / (2 * size[0] * size[1] - shared) < threshold

    return tuple(step for step in itertools.product(range(places[0]), range(places[1])) if is_far(*step))


@cache
def _best(sizes: tuple[tuple[int, int], ...], largest: int, threshold: float) -> tuple[int, tuple[float, ...]]:
    """Return how many boxes of a grid without end one guess is right for at most, and such a guess.

    Found by branch and bound over all guesses, with real numbers for edges. Of the guesses in a cube, the one most
    like a box has each of its edges as near to the box's as the cube allows: where that one is wrong for the box, all
    of the cube are. So a cube in which fewer boxes can be met than one guess meets already is left out; others are cut
    into sixteen. Guesses that differ by whole cells, by a mirror or by a swap of the axes meet as many boxes: only
    one of them is looked at, with its upper left corner in the first cell.
    """
    reach = _reach(largest, threshold)
    boxes = np.array(
        [(x, y, x + w, y + h) for w, h in sizes for x in range(1 - w, reach) for y in range(1 - h, reach)], np.float64
    ).T
    on_grid = [(0, 0, x, y) for x in range(1, reach + 1) for y in range(x, reach + 1)]
    count, guess = _most(np.array(on_grid, np.float64), boxes, threshold)
    corners = itertools.combinations_with_replacement(range(reach), 2)
    cubes = [(np.array((0, 0, x, y), np.float64), 1.0, np.arange(boxes.shape[1])) for x, y in corners]
    while cubes:
        low, side, left = cubes.pop()
        side /= 2
        lows = low + _HALVES * side
        inside = lows % 1.0
        lows = lows[((inside[:, :2] + inside[:, 2:]) < 1.0).all(axis=1)]  # the mirrored half is left out
        met = _meets(lows, lows + side, boxes[:, left], threshold)
        found, middle = _most(lows + side / 2, boxes[:, left], threshold)
        numbers = met.sum(axis=1)
        if side < _FINEST:  # who meets so many does so at one point alone, which may have no end of decimals
            found = int(numbers.max())
        if found > count:
            count, guess = found, middle
        cubes += [(lows[i], side, left[met[i]]) for i in np.argsort(numbers) if numbers[i] > count]
    return count, tuple(guess.tolist())


def _reach(largest: int, threshold: float) -> int:
    """Return a length of which a guess with a longer side is right for nothing."""
    return math.ceil(largest / threshold) + 1


def _most(guesses: np.ndarray, boxes: np.ndarray, threshold: float) -> tuple[int, np.ndarray]:
    """Return how many of ``boxes`` the best of some guesses meets, and that guess, which has few decimals."""
    rounded = np.round(guesses, _DECIMALS)
    numbers = (ious(rounded, boxes.T) >= threshold).sum(axis=1)
    return int(numbers.max()), rounded[numbers.argmax()]


def _meets(low: np.ndarray, high: np.ndarray, boxes: np.ndarray, threshold: float) -> np.ndarray:
    """Return bool [k, n]: whether a guess between ``low`` and ``high``, both [k, 4], is right for a box of [4, n].

    Where it is so but for rounding, too.
    """
    x1, y1, x2, y2 = np.clip(boxes, low[:, :, None], high[:, :, None]).transpose(1, 0, 2)
    width = np.maximum(np.minimum(x2, boxes[2]) - np.maximum(x1, boxes[0]), 0.0)
    height = np.maximum(np.minimum(y2, boxes[3]) - np.maximum(y1, boxes[1]), 0.0)
    areas = np.maximum(x2 - x1, 0.0) * np.maximum(y2 - y1, 0.0) + (boxes[2] - boxes[0]) * (boxes[3] - boxes[1])
    met: np.ndarray = width * height >= threshold / (1 + threshold) * areas * (1 - _ROUNDING)
    return met
