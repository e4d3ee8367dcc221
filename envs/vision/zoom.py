"""Look closer: read a number that is too small to be read in the picture that is shown first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from PIL import Image

from tetrathlon.envs.arguments import share, whole
from tetrathlon.envs.language.chance import Chance
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.tools.calls import write_call
from tetrathlon.envs.tools.environment import ToolEnv
from tetrathlon.envs.tools.play import Play
from tetrathlon.envs.tools.results import Result
from tetrathlon.envs.tools.task import ToolTask
from tetrathlon.envs.tools.world import World
from tetrathlon.envs.vision.bandit import is_unseen
from tetrathlon.envs.vision.drawing import Drawing
from tetrathlon.envs.vision.environment import UNSEEN, VisionEnv
from tetrathlon.envs.vision.layout import grown, scattered
from tetrathlon.envs.vision.scene import Bounds, Color, Mark, Rectangle, Scene, Text
from tetrathlon.envs.vision.task import View, VisionTask
from tetrathlon.envs.vision.texts import same_text
from tetrathlon.envs.vision.things import COLORS, GROUNDS, SHAPES, Kind, near_miss
from tetrathlon.envs.vision.zoom_lens import Lens

_MOST_LAYOUTS = 1_000
_LARGEST_PICTURE = 4096
_PLATE: Color = (200, 200, 200)
_INK: Color = (90, 90, 90)
_NUMBER = "number 0"
"""The tag of what is asked for."""
_DIGIT_HEIGHT, _DIGIT_WIDTH = 0.73, 0.64
"""Of DejaVu Sans, as shares of the size of the font."""
_LEGIBLE = 8.0
"""Pixels of height from which a digit counts as legible."""
_LEAST_FONT = 8
_COMFORT = 2.0
"""How many times larger than legible the expert has it."""


class Zoom(VisionEnv, ToolEnv):
    """Read a tiny number on one of many things, by looking closer.

    ## Description
    A large picture is shown small. In it are things of several shapes and colours, each with a number on a grey plate;
    the question names one of them. Its digits are less than 3 pixels high in the picture that is shown first, and
    under its noise they cannot be read: who knows the place, the font and the colours exactly, and compares what he
    sees with all numbers, is right in about one of twenty instances (with the arguments' default values). ``crop``
    shows a part of the large picture in the place of the first. In the twin the number is another.

    ## Observation Space
    `Dict`: ``image``, uint8 [size, size, 3], what is shown now, and ``text``: the question, then results of calls.
    ``info["has_image"]`` is True where the observation brings a picture: at the reset, and after a turn whose call of
    ``crop`` was good. After other turns ``image`` is what was shown before, and a policy that keeps its conversation
    has seen it. In the variant ``no_image`` there is never a picture, and ``crop`` fails.

    ## Action Space
    `UnicodeText`: a call of ``crop(box)``, or the answer. The box is always in pixels of the picture that was shown
    first, 0 to ``size``, whatever is shown now; what is outside is cut off. The smallest square that holds it is shown,
    moved into the picture where it is beyond an edge, and at most 16 times larger than at first.

    ## Rewards
    1 for exactly the number, else 0; where it is covered, ``unseen`` is right and nothing else is. With
    ``evidence_weight`` w, another w, once, when for the first time all of the plate is shown with digits at least 8
    pixels high, as ``reward_terms["progress"]``. With ``step_cost`` c, each turn costs c, the last one too.

    ## Starting State
    The numbers are drawn first, all different and each uniform among those of ``digits`` digits; so who does not look
    is right once in as many times as there are such numbers. Then the kinds, then the places.

    ## Episode End
    See ``ToolEnv``.

    ## Arguments
    * ``scale``: how many times larger the large picture is, 4 to 16; ``size`` times ``scale`` is up to 4096; default 4.
    * ``digits``: of a number, 2 to 6; default 3.
    * ``font``: pixels of the size of the font in the first picture, 1 to 4: digits are 0.73 times as high; times
      ``scale`` it must be 8 or more; default 2.5.
    * ``noise``: standard deviation of the noise over each picture that is shown, of 255, 0 to 40; the same for the same
      part of the picture. Without it who compares exactly can read what nobody else can; default 14.
    * ``others``: how many other things there are at most, from 1; default 5.
    * ``colors``, ``shapes``: how many of each there are; 2 or more; default 4 and 3.
    * ``diameter``: pixels of a thing in the first picture at most, at 256 pixels of the side; things are three quarters
      of it at least, and never smaller than their plates; default 40.
    * ``evidence_weight``, from 0 to less than 1, and ``step_cost``, from 0 to less than 1: see above; default 0.
    * Those of ``VisionEnv`` and ``ToolEnv``, but ``evidence_weight`` is its ``progress_weight``; ``size`` is 256 and
      ``max_parallel`` 1: of several crops in one turn only the last is shown.

    ## Version History
    * v0: first version.

    Raises:
        ValueError: An argument is out of its range, or the things find no place.
    """

    default_size: ClassVar[int] = 256
    least_size: ClassVar[int] = 64
    default_max_tokens: ClassVar[int] = 128
    default_max_turns: ClassVar[int] = 6
    default_max_calls: ClassVar[int] = 6
    knows_progress: ClassVar[bool] = True
    system: ClassVar[str] = "Look closer with the tool until you can read what is asked; do not guess."
    words: Sequence[str] = (
        '<tool_call>{"name": "crop", "arguments": {"box": [',
        "]}}</tool_call>",
        *("What number is on the ", *COLORS),
        *(f" {shape}" for shape in SHAPES),
    )

    def __init__(
        self,
        *,
        scale: int = 4,
        digits: int = 3,
        font: float = 2.5,
        noise: float = 14.0,
        others: int = 5,
        colors: int = 4,
        shapes: int = 3,
        diameter: int = 40,
        evidence_weight: float = 0.0,
        step_cost: float = 0.0,
        max_parallel: int = 1,
        **kwargs: Any,
    ) -> None:
        self.scale = whole("scale", scale, 4, 16)
        self.digits = whole("digits", digits, 2, 6)
        self.font = _number("font (pixels)", font, 1.0, 4.0)
        self.noise = _number("noise", noise, 0.0, 40.0)
        self.others = whole("others", others, 1, 20)
        self.colors = whole("colors", colors, 2, len(COLORS))
        self.shapes = whole("shapes", shapes, 2, len(SHAPES))
        self.diameter = whole("diameter (pixels at 256 of the side)", diameter, 8, 128)
        self.evidence_weight = share("evidence_weight", evidence_weight)
        self.step_cost = share("step_cost", step_cost)
        self._last: tuple[tuple[Drawing, tuple[int, int, int], int], np.ndarray] | None = None
        super().__init__(progress_weight=self.evidence_weight, max_parallel=max_parallel, **kwargs)
        if self.size * self.scale > _LARGEST_PICTURE:
            raise ValueError(
                f"the large picture may have sides of {_LARGEST_PICTURE} pixels, got size {self.size} times scale "
                f"{self.scale}"
            )
        if self.font * self.scale < _LEAST_FONT:
            raise ValueError(
                f"in the large picture a font of {_LEAST_FONT} pixels can be read, got font {self.font:g} times scale "
                f"{self.scale}"
            )
        if (max(self._plate) / self.scale + 2) * self.enlarged > self.size:
            raise ValueError(
                f"a number of {self.digits} digits cannot be shown whole and large enough to be read on {self.size} "
                "pixels; make digits fewer, or size or font larger"
            )

    @cached_property
    def blind_floor(self) -> float:
        """See :meth:`VisionEnv.blind_floor`: the number is uniform, whatever thing it is on."""
        return 1 / len(self._numbers)

    def blind_answer(self, question: str) -> str:
        """See :meth:`VisionEnv.blind_answer`."""
        return str(self._numbers[0])

    def instructions(self) -> str:
        """See :meth:`VisionEnv.instructions`: what is shown, and in which pixels boxes are."""
        return (
            f"A large picture is shown small. The tool crop shows a part of it larger; its box is in pixels of this "
            f"first picture, which is {self.size} wide and {self.size} high."
        )

    def generate(self, rng: np.random.Generator) -> VisionTask:
        """Draw the numbers, the kinds, and places for all."""
        chance = Chance(rng)
        n = 1 + chance.between(1, self.others)
        numbers: list[str] = []
        while len(numbers) <= n:  # one for each thing, and the last for the twin
            if (number := str(chance.pick(self._numbers))) not in numbers:
                numbers.append(number)
        kind = Kind(chance.pick(list(COLORS)[: self.colors]), chance.pick(SHAPES[: self.shapes]))
        kinds = [kind, *(near_miss(chance, kind, self.colors, self.shapes) for _ in range(n - 1))]
        ground = chance.pick(GROUNDS)
        noise_seed = chance.below(2**31)
        plate = self._plate
        largest = max(self.diameter * self.size // 256, math.ceil(max(plate) / self.scale) + 2)
        for _ in range(_MOST_LAYOUTS):
            sides = [
                max(chance.between(largest - largest // 4, largest), math.ceil(max(plate) / self.scale)) for _ in kinds
            ]
            boxes = scattered(chance, [(side, side) for side in sides], (0, 0, self.size, self.size), gap=2.0)
            if boxes is not None:
                break
        else:
            raise ValueError(f"{n} things of diameter {largest} find no place; allow fewer (others) or smaller ones")
        large = [_times(box, self.scale) for box in boxes]
        plates = [_middle(box, plate) for box in large]

        def view(number: str) -> View:
            told = [number, *numbers[1:n]]
            things = [kind.mark(box, f"thing {i}") for i, (kind, box) in enumerate(zip(kinds, large, strict=True))]
            marks = (*things, *(mark for i in range(n) for mark in self._sign(plates[i], told[i], f"number {i}")))
            side = self.size * self.scale
            scene = Scene(width=side, height=side, background=ground, marks=marks)
            return View(scene, number, (_NUMBER,), {"plate": plates[0], "noise_seed": noise_seed})

        area = (0, 0, self.size * self.scale, self.size * self.scale)
        covers = [grown(plates[i], 1, area) for i in (0, chance.between(1, n - 1))]
        return VisionTask(f"What number is on the {kind}?", view(numbers[0]), view(numbers[n]), covers[:1], covers[1:])

    def open(self, task: ToolTask) -> World:
        """See :meth:`ToolEnv.open`."""
        return Lens(self.size, self.scale, has_picture=self._shown != "no_image")

    def is_right(self, task: ToolTask, answer: str | None, world: World) -> bool:
        """Tell whether ``answer`` is the number, or says that it cannot be seen where that is so."""
        view = self._seen(task)
        return answer is not None and (is_unseen(answer) if view.is_hidden else same_text(answer, view.answer))

    def write_answer(self, task: Task) -> str:
        """See :meth:`LanguageEnv.write_answer`."""
        view = self._seen(task)
        return UNSEEN if view.is_hidden else view.answer

    def progress(self, play: Play) -> float:
        """Return 1 where the number is shown large enough to be read, else 0."""
        assert isinstance(play.world, Lens)
        return float(play.world.shows(self._seen(play.task).data["plate"], self.enlarged))

    def expert(self, play: Play) -> str:
        """Look at the plate, or answer: once it was seen, and where there is no other turn."""
        is_last = play.turns + 1 >= self.max_turns or play.calls >= self.max_calls
        if play.progress or is_last or self._shown == "no_image":
            return self._write_solution(play.task)
        x1, y1, x2, y2 = (edge / self.scale for edge in self._seen(play.task).data["plate"])
        reach = max(x2 - x1, y2 - y1, self.size / (_COMFORT * self.enlarged)) / 2
        x, y = (x1 + x2) / 2, (y1 + y2) / 2
        box = (math.floor(x - reach), math.floor(y - reach), math.ceil(x + reach), math.ceil(y + reach))
        return write_call("crop", {"box": [min(max(edge, 0), self.size) for edge in box]})

    @property
    def enlarged(self) -> float:
        """How many times larger than at first a number must be shown so as to be legible."""
        return _LEGIBLE / (_DIGIT_HEIGHT * self.font)

    def picture(self) -> np.ndarray:
        """Return what is shown now, uint8 [size, size, 3]."""
        if self._task is None or self._play is None or self._shown == "no_image":
            return super().picture()
        assert isinstance(self._play.world, Lens)
        key = (self.drawing, self._play.world.window, self.view.data["noise_seed"])
        if self._last is None or self._last[0] != key:
            self._last = (key, self._looked(*key))
        return self._last[1].copy()

    def _looked(self, drawing: Drawing, window: tuple[int, int, int], noise_seed: int) -> np.ndarray:
        """Return a part of the large picture as it is shown."""
        left, top, side = window
        large = drawing.picture
        if side == len(large):
            shown = np.asarray(Image.fromarray(large).reduce(self.scale))
        else:
            part = Image.fromarray(large[top : top + side, left : left + side])
            shown = np.asarray(part.resize((self.size, self.size), Image.Resampling.BICUBIC))
        if not self.noise:
            return shown
        rng = np.random.default_rng([noise_seed, left, top, side])
        grain = rng.normal(0.0, self.noise, (self.size, self.size, 1))
        return np.clip(np.rint(shown + grain), 0, 255).astype(np.uint8)

    def evidence(self) -> dict[str, Any]:
        """See :meth:`VisionEnv.evidence`; boxes and mask are in pixels of the picture that was shown first."""
        told = super().evidence()
        blocks = told["mask"].reshape(self.size, self.scale, self.size, self.scale)
        boxes = [[edge / self.scale for edge in box] for box in told["boxes"]]
        return {**told, "boxes": boxes, "mask": blocks.any(axis=(1, 3))}

    @cached_property
    def _numbers(self) -> range:
        return range(10 ** (self.digits - 1), 10**self.digits)

    @property
    def _plate(self) -> tuple[int, int]:
        """Width and height of a plate, pixels of the large picture, both even."""
        font = self.font * self.scale
        return 2 * math.ceil((self.digits * _DIGIT_WIDTH + 0.8) * font / 2), 2 * math.ceil(0.75 * font)

    def _sign(self, plate: Bounds, number: str, tag: str) -> list[Mark]:
        at = ((plate[0] + plate[2]) / 2, (plate[1] + plate[3]) / 2)
        text = Text(text=number, at=at, size=self.font * self.scale, color=_INK, tag=tag)
        return [Rectangle(box=plate, color=_PLATE, tag=tag), text]

    def _seen(self, task: Task) -> View:
        assert isinstance(task, VisionTask)
        return task.seen_as(self._shown)

    def _write_question(self, task: Task) -> str:
        if self.brief:
            return task.question
        budget = f"You have {self.max_turns} turns and {self.max_calls} calls."
        return f"{super()._write_question(task)}\n{budget}"

    def _pay(self, play: Play, results: list[Result]) -> float:
        super()._pay(play, results)
        terms: dict[str, float] = play.info["reward_terms"]
        play.info["has_image"] = any(not result.error for result in results)
        if self.step_cost:
            terms["turn"], play.info["scores"]["turn"] = -self.step_cost, 1.0
        return float(sum(terms.values()))


def _number(name: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}")
    return float(value)


def _times(box: Bounds, scale: int) -> Bounds:
    x1, y1, x2, y2 = (edge * scale for edge in box)
    return (x1, y1, x2, y2)


def _middle(box: Bounds, size: tuple[int, int]) -> Bounds:
    """Return a box of ``size`` in the middle of another, whole pixels."""
    x, y = (box[0] + box[2]) // 2 - size[0] // 2, (box[1] + box[3]) // 2 - size[1] // 2
    return (x, y, x + size[0], y + size[1])
