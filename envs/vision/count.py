"""Count the things of one kind in a picture."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from tetrathlon.envs.arguments import whole
from tetrathlon.envs.grading.writing import integer
from tetrathlon.envs.language.chance import Chance
from tetrathlon.envs.vision.bandit import VisionBandit
from tetrathlon.envs.vision.layout import scattered
from tetrathlon.envs.vision.scene import Bounds, Scene
from tetrathlon.envs.vision.task import View, VisionTask
from tetrathlon.envs.vision.things import COLORS, GROUNDS, SHAPES, Kind, near_miss

_MOST_LAYOUTS = 1_000
_THINGS = 24
"""Most things in a picture."""
_FILLED = 0.54
"""Share of a picture that places may take, with a pixel between them; of more, random ones leave no room."""


class Count(VisionBandit):
    """Count the things of one kind among others.

    ## Description
    The picture shows things of several shapes and colours, none of which touches another. The question names one
    kind; others share its colour or its shape. The twin has as many things, of which another number is of that kind.

    ## Observation Space
    `Dict`: ``image``, uint8 [size, size, 3], and ``text``: ``How many red circles are in the picture?``, then what to
    answer where that cannot be seen, and the format.

    ## Action Space
    `UnicodeText`: the completion.

    ## Rewards
    1 if the final answer is the number, else 0; where the things are covered, ``unseen`` is right.

    ## Starting State
    The number is drawn first, uniform from ``least`` to ``most``, so that who does not look is right once in
    ``most - least + 1`` times. Then the kinds, then the places. What is covered of a picture tells nothing of the
    number: there are ``most`` covers of one size, and as many things beside them as if the number were another.

    ## Episode End
    Terminated after one step.

    ## Arguments
    * ``least``, ``most``: how many things of the kind there may be, 1 to 12; default 1 and 6.
    * ``clutter``: how many others there are besides, at most; between none and so many are drawn; default 4.
    * ``colors``, ``shapes``: how many of each there are; 2 or more; default 4 and 3.
    * ``diameter``: pixels of a thing, at 64 pixels of the side; from three quarters of it to all of it; default 10.
    * Those of ``VisionEnv`` and ``TextBandit``; ``size`` is 64.

    ## Version History
    * v0: first version.

    Raises:
        ValueError: An argument is out of its range, or there is no room for so many things, and as much beside them.
    """

    words = ("How many ", " are in the picture?", *COLORS, *(f" {shape}" for shape in SHAPES))

    def __init__(
        self,
        *,
        least: int = 1,
        most: int = 6,
        clutter: int = 4,
        colors: int = 4,
        shapes: int = 3,
        diameter: int = 10,
        **kwargs: Any,
    ) -> None:
        self.least = whole("least", least, 1, 12)
        self.most = whole("most (above least)", most, self.least + 1, 12)
        self.clutter = whole("clutter", clutter, 0, _THINGS - 12)
        self.colors = whole("colors", colors, 2, len(COLORS))
        self.shapes = whole("shapes", shapes, 2, len(SHAPES))
        self.diameter = whole("diameter (pixels at 64 of the side)", diameter, 4, 32)
        super().__init__(**kwargs)
        places = self.most + max(self.most, self.clutter)
        if places * (self._largest + 1) ** 2 > _FILLED * (self.size + 1) ** 2:
            raise ValueError(
                f"{places} places of {self._largest} pixels, for {self.most} things and what covers them, do not fit "
                f"into a picture of {self.size}; make most, clutter or diameter smaller"
            )

    @property
    def _largest(self) -> int:
        """Pixels of the side of the largest thing, and of every place."""
        return max(self.diameter * self.size // 64, 3)

    @cached_property
    def blind_floor(self) -> float:
        """See :meth:`VisionEnv.blind_floor`: the number is uniform, whatever the kind."""
        return 1 / (self.most - self.least + 1)

    def blind_answer(self, question: str) -> str:
        """See :meth:`VisionEnv.blind_answer`."""
        return str(self.least)

    def generate(self, rng: np.random.Generator) -> VisionTask:
        """Draw a number and another, the kinds, and places for all."""
        chance = Chance(rng)
        number = chance.between(self.least, self.most)
        other = chance.between(self.least, self.most - 1)
        other += other >= number
        kind = Kind(chance.pick(list(COLORS)[: self.colors]), chance.pick(SHAPES[: self.shapes]))
        clutter = chance.between(0, self.clutter)
        for _ in range(_MOST_LAYOUTS):
            if (laid := self._laid(chance, kind, number, other, clutter)) is not None:
                return laid
        raise AssertionError("places that fill half of a picture at most are found")

    def matches(self, view: View, answer: str) -> bool:
        """Tell whether ``answer`` is the number."""
        return integer(answer) == int(view.answer)

    def _laid(self, chance: Chance, kind: Kind, number: int, other: int, clutter: int) -> VisionTask | None:
        # All places are alike, and how many there are has nothing to do with the number. The first are covered in the
        # masked picture, those after them hold what is beside the covers.
        n = self.most + max(self.most, clutter)
        places = scattered(chance, [(self._largest, self._largest)] * n, (0, 0, self.size, self.size))
        if places is None:
            return None
        used = [*places[: max(number, other)], *places[self.most : self.most + clutter]]
        boxes = [self._within(chance, place) for place in used]
        decoys = chance.some(places[number:], self.most)
        ground = chance.pick(GROUNDS)
        others = [near_miss(chance, kind, self.colors, self.shapes) for _ in boxes]

        def view(count: int) -> View:
            kinds = [kind if i < count else others[i] for i in range(len(boxes))]
            marks = tuple(k.mark(box, f"thing {i}") for i, (k, box) in enumerate(zip(kinds, boxes, strict=True)))
            evidence = tuple(f"thing {i}" for i in range(count))
            return View(Scene(width=self.size, height=self.size, background=ground, marks=marks), str(count), evidence)

        asked = f"How many {kind.plural()} are in the picture?"
        return VisionTask(asked, view(number), view(other), places[: self.most], decoys)

    def _within(self, chance: Chance, place: Bounds) -> Bounds:
        """Draw how large a thing is, and where in its place."""
        x, y, largest = round(place[0]), round(place[1]), round(place[2] - place[0])
        side = chance.between(largest - largest // 4, largest)
        x, y = (low + chance.between(0, largest - side) for low in (x, y))
        return (x, y, x + side, y + side)
