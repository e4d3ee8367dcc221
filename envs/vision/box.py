"""Draw the box around a thing, or around all things of a kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from tetrathlon.envs.arguments import flag, share, whole
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.language.chance import Chance
from tetrathlon.envs.language.formats import BOXED, LINES, TAG, AnswerFormat
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.rubric import Rubric, Term
from tetrathlon.envs.vision.bandit import VisionBandit
from tetrathlon.envs.vision.boxes import clipped_iou, gold_box
from tetrathlon.envs.vision.coordinates import CONVENTIONS, convention
from tetrathlon.envs.vision.drawing import Drawing
from tetrathlon.envs.vision.grid import Cells, Grid, touches
from tetrathlon.envs.vision.layout import grown
from tetrathlon.envs.vision.matching import match
from tetrathlon.envs.vision.reading import Reading, read_box, read_boxes
from tetrathlon.envs.vision.scene import Bounds, Color, Mark, Scene
from tetrathlon.envs.vision.task import View, VisionTask
from tetrathlon.envs.vision.things import COLORS, GROUNDS, SHAPES, Kind, near_miss

_MOST_THINGS = 24
_MOST_LAYOUTS = 50
_WRITTEN = 1e-6
"""By how much a box may fall short of an IoU of 1 for the digits that it is written in."""
_STRETCHED = {"circle": "ellipse", "square": "rectangle"}
"""What shapes are called where their sides may differ."""


class Box(VisionBandit):
    """Draw the box around the thing that is asked for.

    ## Description
    The picture shows things of several shapes and colours. The question names one kind, and others share its colour or
    its shape: where is it, or with ``every``, where are all of that kind. In the twin the thing is elsewhere, at times
    in another size too, so that the box of one picture is wrong for the other; with ``every`` another number of the
    things is of that kind.

    ## Observation Space
    `Dict`: ``image``, uint8 [size, size, 3], and ``text``: ``Where is the red circle?``, how to write a box in a
    picture of that size, what to answer where it cannot be seen, and the format.

    ## Action Space
    `UnicodeText`: the completion. Its answer is one box, or with ``every`` any number of boxes.

    ## Rewards
    1 if the box has an IoU of ``threshold`` or more with the true one, the smallest around all that is seen of the
    thing, else 0; ``info["scores"]["iou"]`` is the IoU. With ``every``, 1 if boxes and things can be matched one to
    one, each pair with such an IoU, so that no box is left and no thing; ``info["scores"]["score"]`` is the number of
    pairs over the number of boxes or of things, whichever is larger. Where the things are covered, ``unseen`` is right,
    and these scores are 0.

    ## Starting State
    The edges of all boxes lie on a grid of ``cells`` cells a side. The box is drawn first, each with edges on the grid
    and sides from ``least`` to ``largest`` as likely as any other; so the chance of the best constant box is exact: no
    box, on the grid or not, is right for more of them, which a branch and bound over all boxes proves. That of the twin
    is as uniform. With ``every``, the number is uniform from 1 to ``most``, and each box from all that touch none of
    those before.

    ## Episode End
    Terminated after one step.

    ## Arguments
    * ``every``: ask for all things of a kind; default False.
    * ``most``: with ``every``, how many there may be, from 2; default 3.
    * ``coordinates``: how boxes are written, ``"px"``, ``"unit"``, ``"k1000"``, ``"xywh"`` or ``"yxyx"`` (y first);
      default ``"px"``.
    * ``threshold``: the least IoU of a right box, up to 1, where no more may be missing than digits take; default 0.5.
    * ``others``: how many other things there are at most; between none and so many are tried, and those that find no
      place are left out; default 5.
    * ``colors``, ``shapes``: how many of each there are; 2 or more; default 4 and 3.
    * ``cells``: of the grid, along a side, which ``size`` is a multiple of; default 32.
    * ``least``, ``largest``: cells of a side of a thing; default 4 and 7.
    * ``aspect``: longer side over the shorter one, at most; from 1 to 4, default 1. Above 1 circles are called ellipses
      and squares rectangles.
    * ``overlap``: share of a thing asked for that other things may hide, up to 0.5; default 0, where no thing touches
      another. All four edges of it are always seen, and nothing that touches it has its colour.
    * Those of ``VisionEnv`` and ``TextBandit``; ``size`` is 64.

    ## Version History
    * v0: first version.

    Raises:
        ValueError: An argument is out of its range, or things are so large that there may be no place for them.
    """

    default_max_tokens: ClassVar[int] = 128
    formats: Mapping[str, AnswerFormat] = {"tag": TAG, "boxed": BOXED, "plain": LINES}

    def __init__(
        self,
        *,
        every: bool = False,
        most: int = 3,
        coordinates: str = "px",
        threshold: float = 0.5,
        others: int = 5,
        colors: int = 4,
        shapes: int = 3,
        cells: int = 32,
        least: int = 4,
        largest: int = 7,
        aspect: float = 1.0,
        overlap: float = 0.0,
        **kwargs: Any,
    ) -> None:
        self.every = flag("every", every)
        self.most = whole("most", most, 2, 8) if every else 1
        if coordinates not in CONVENTIONS:
            raise ValueError(f"coordinates must be one of {', '.join(map(repr, CONVENTIONS))}, got {coordinates!r}")
        self.coordinates = coordinates
        self._convention = convention(coordinates)
        self.threshold = min(share("threshold", threshold, last=True), 1 - _WRITTEN)
        self.others = whole("others", others, 0, _MOST_THINGS)
        self.colors = whole("colors", colors, 2, len(COLORS))
        self.shapes = whole("shapes", shapes, 2, len(SHAPES))
        self.cells = whole("cells", cells, 4, 128)
        self.least = whole("least (cells of a side)", least, 1, self.cells)
        self.largest = whole("largest (cells of a side, from least)", largest, self.least, self.cells)
        if isinstance(aspect, bool) or not isinstance(aspect, int | float) or not 1 <= aspect <= 4:
            raise ValueError(f"aspect must be a number from 1 to 4, got {aspect!r}")
        self.aspect = float(aspect)
        self.overlap = share("overlap", overlap)
        if self.overlap > 0.5:
            raise ValueError(f"overlap must be at most 0.5, got {overlap!r}")
        super().__init__(**kwargs)
        if self.size % self.cells:
            raise ValueError(f"size must be a multiple of the {self.cells} cells, got {self.size}")
        self._grid = Grid(self.cells, self.least, self.largest, self.aspect)
        if self.threshold == 0:
            raise ValueError(f"threshold must be a number above 0, got {threshold!r}")
        if not self._grid.has_room(self.most) or not self._grid.is_wide_enough(self.threshold):
            raise ValueError(
                f"things of {self.largest} cells are too large for {self.most} of them among {self.cells} cells and a "
                f"threshold of {self.threshold:g}; make one of largest and most smaller, or cells or threshold larger"
            )
        if not self._grid.is_searchable(self.threshold):
            raise ValueError(
                f"things of {self.least} to {self.largest} cells, aspect {self.aspect:g} and a threshold of "
                f"{self.threshold:g} leave too many boxes to find the best blind guess among; make largest, cells or "
                "aspect smaller, or threshold larger"
            )
        self.words = (*self._make_words(), *self.words)

    @cached_property
    def blind_floor(self) -> float:
        """See :meth:`VisionEnv.blind_floor`.

        Of one box, the share of all boxes that the best guess is right for. With ``every`` there is a single box in one
        of ``most`` instances. Who guesses k boxes must meet two things with two of them in one of k (k - 1) ways, the
        first with that share of all boxes, the second with as many boxes out of those that are left: a bound for k
        things, and where it is below the chance of one, which no arguments were found to change, the floor is exact.
        """
        met, _ = self._grid.best(self.threshold)
        alone = met / self._grid.n
        bounds = [k * (k - 1) * alone * met / max(self._grid.second(), 1) for k in range(2, self.most + 1)]
        return max([alone, *(min(bound, 1.0) for bound in bounds)]) / self.most

    def blind_answer(self, question: str) -> str:
        """See :meth:`VisionEnv.blind_answer`: the best box, always the same."""
        _, guess = self._grid.best(self.threshold)
        return self._written([[value * self._pixels for value in guess]], digits=15)

    def instructions(self) -> str:
        """See :meth:`VisionEnv.instructions`: how to write a box."""
        says = self._convention.box_says((self.size, self.size))
        return f"{says} Write all of them in a list, [[...], [...]]." if self.every else says

    def generate(self, rng: np.random.Generator) -> VisionTask:
        """Draw the boxes, and then what is in them and around."""
        chance = Chance(rng)
        kind = Kind(chance.pick(list(COLORS)[: self.colors]), chance.pick(SHAPES[: self.shapes]))
        if self.every:
            number = chance.between(1, self.most)
            other = chance.between(1, self.most - 1)
            other += other >= number
            boxes: list[Cells] = []
            while len(boxes) < max(number, other):
                boxes.append(self._grid.draw(chance, boxes))
            asked = (boxes[:number], boxes[:other])
        else:
            box = self._grid.draw(chance)
            asked = ([box], [self._grid.elsewhere(chance, box, self.threshold)])
        hidden = self._hidden(chance, asked[0])
        ground = chance.pick(GROUNDS)
        longer = max(asked, key=len)
        kinds = [near_miss(chance, kind, self.colors, self.shapes) for _ in longer]
        spare = list(zip(longer, kinds, strict=True)) if self.every else []
        wanted = chance.between(0, self.others)
        for attempt in range(_MOST_LAYOUTS):
            around = self._around(chance, kind, asked, wanted if attempt < _MOST_LAYOUTS - 1 else 0)
            view, twin = (self._view(kind, ground, boxes, spare[len(boxes) :], around) for boxes in asked)
            if view is not None and twin is not None:
                return VisionTask(self._question(kind), view, twin, *hidden)
        raise AssertionError("things by themselves are seen whole")

    def matches(self, view: View, answer: str) -> bool:
        """Tell whether ``answer`` is the box, or all boxes."""
        return self._score(view, answer) >= (1.0 if self.every else self.threshold)

    def make_rubric(self, format_weight: float) -> Rubric:
        """See :meth:`TextBandit.make_rubric`; how near the boxes are is told, and pays nothing."""
        terms = super().make_rubric(format_weight).terms
        return Rubric(*terms, Term("score" if self.every else "iou", self._grade_nearness, 0.0), success="correct")

    def _grade_nearness(self, task: Task, episode: Episode) -> float:
        assert isinstance(task, VisionTask)
        view, answer = task.seen_as(self._shown), self.answer_in(episode.steps[-1].action)
        return 0.0 if view.is_hidden or answer is None else self._score(view, answer)

    def places(self, answer: str) -> list[tuple[float, ...]]:
        """See :meth:`VisionEnv.places`."""
        told = self._boxes_of(answer)
        return [tuple(map(float, box)) for box in told.pixels] if told.is_read else []

    def _boxes_of(self, answer: str) -> Reading:
        return (read_boxes if self.every else read_box)(answer, self._convention, (self.size, self.size))

    def _score(self, view: View, answer: str) -> float:
        """Return the IoU of the box that an answer gives, or the score of all its boxes."""
        size, gold = (self.size, self.size), view.data["boxes"]
        told = self._boxes_of(answer)
        if not told.is_read:
            return 0.0
        if self.every:
            return match(told.pixels, gold, size, self.threshold).score
        return clipped_iou(told.pixels[0], gold[0], size)

    @property
    def _pixels(self) -> int:
        """Pixels of a cell's side."""
        return self.size // self.cells

    def _in_pixels(self, box: Cells) -> Bounds:
        x1, y1, x2, y2 = (edge * self._pixels for edge in box)
        return (x1, y1, x2, y2)

    def _question(self, kind: Kind) -> str:
        named = f"Where are all {kind.plural()}?" if self.every else f"Where is the {kind}?"
        return named.replace(kind.shape, _STRETCHED.get(kind.shape, kind.shape)) if self.aspect > 1 else named

    def _hidden(self, chance: Chance, boxes: list[Cells]) -> tuple[list[Bounds], list[Bounds]]:
        """Draw what covers the boxes, and what covers none: as many windows of one size, whatever is asked for."""
        apart = [self._grid.window_apart(chance, boxes) for _ in range(2 * self.most - len(boxes))]
        covers = [self._grid.window_around(chance, box) for box in boxes] + apart[self.most :]
        area = (0, 0, self.size, self.size)
        covered, spared = ([grown(self._in_pixels(box), 1, area) for box in some] for some in (covers, apart))
        return covered, spared[: self.most]

    def _around(
        self, chance: Chance, kind: Kind, asked: tuple[list[Cells], list[Cells]], n: int
    ) -> list[tuple[Cells, Kind, bool]]:
        """Draw other things: where, of which kind, and whether in front; those that find no place are left out."""
        mine = [*asked[0], *asked[1]]
        around: list[tuple[Cells, Kind, bool]] = []
        for _ in range(n):
            box, other = self._grid.draw(chance), near_miss(chance, kind, self.colors, self.shapes)
            is_front = chance.chance()
            if self.overlap:
                is_free = other.color != kind.color or not touches(box, mine)
            else:
                is_free = not touches(box, [*mine, *(there for there, _, _ in around)])
            if is_free:
                around.append((box, other, is_front))
        return around

    def _view(
        self,
        kind: Kind,
        ground: Color,
        boxes: list[Cells],
        spare: list[tuple[Cells, Kind]],
        around: list[tuple[Cells, Kind, bool]],
    ) -> View | None:
        """Return what is shown where ``boxes`` are asked for; None: one of them is hidden too much."""
        evidence = tuple(f"thing {i}" for i in range(len(boxes)))
        mine: list[Mark] = [kind.mark(self._in_pixels(box), tag) for box, tag in zip(boxes, evidence, strict=True)]
        back, front = (
            [other.mark(self._in_pixels(box), "other") for box, other, is_front in around if is_front == side]
            for side in (False, True)
        )
        rest = [other.mark(self._in_pixels(box), "other") for box, other in spare]
        scene = Scene(width=self.size, height=self.size, background=ground, marks=(*back, *rest, *mine, *front))
        # Without overlap nothing is over them: then what is seen of each is all of it, and no drawing need tell.
        if self.overlap and not self._is_seen(scene, mine):
            return None
        gold = [gold_box(self._in_pixels(box), (self.size, self.size)).tolist() for box in boxes]
        return View(scene, self._written(gold), evidence, {"boxes": gold})

    def _is_seen(self, scene: Scene, marks: list[Mark]) -> bool:
        """Tell whether all edges of ``marks`` are seen in a scene, and enough of each."""
        drawn, alone = Drawing(scene), Drawing(Scene(width=self.size, height=self.size, marks=tuple(marks)))
        return all(
            drawn.box(mark.tag) == alone.box(mark.tag)
            and drawn.mask([mark.tag]).sum() >= (1 - self.overlap) * alone.mask([mark.tag]).sum()
            for mark in marks
        )

    def _written(self, boxes: Sequence[Sequence[float]], digits: int = 9) -> str:
        """Return boxes in pixels as an answer gives them."""
        told = [
            f"[{', '.join(f'{value:.{digits}g}' for value in self._convention.from_px(box, (self.size, self.size)))}]"
            for box in boxes
        ]
        return f"[{', '.join(told)}]" if self.every else told[0]

    def _make_words(self) -> tuple[str, ...]:
        """Return what questions and answers are made of."""
        asked = "Where are all " if self.every else "Where is the "
        numbers = [edge * (self._convention.end or self.size) / self.cells for edge in range(self.cells + 1)]
        return (asked, *COLORS, *(f" {shape}" for shape in SHAPES), *(f"{number:.9g}" for number in numbers))
