"""Read what stands after a label."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np

from tetrathlon.envs.arguments import flag, share, some_of, whole
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.language.chance import Chance
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.rubric import Rubric, Term
from tetrathlon.envs.vision.bandit import VisionBandit
from tetrathlon.envs.vision.layout import near, scattered
from tetrathlon.envs.vision.lettering import ink, room, turned, turned_box
from tetrathlon.envs.vision.scene import Bounds, Color, Face, Mark, Rectangle, Scene, Text
from tetrathlon.envs.vision.task import COVER_TAG, View, VisionTask
from tetrathlon.envs.vision.texts import cer, same_text
from tetrathlon.envs.vision.things import GROUNDS

_FACES: tuple[Face, ...] = get_args(Face)
_DIGITS = "0123456789"
_LETTERS = "ABCDEFGHJKLMNPQRSTVWXYZ"
"""Without I and O, which look like digits, and without U, so that none spell ``unseen``."""
_WORDS = (
    *("apple", "arm", "bag", "bell", "bird", "boat", "book", "box", "bread", "bus", "cake", "car", "cat"),
    *("chair", "clock", "coat", "corn", "cow", "cup", "desk", "dog", "door", "duck", "ear", "egg", "eye"),
    *("farm", "fish", "flag", "fork", "frog", "gate", "glass", "goat", "hand", "hat", "heart", "hen", "hill"),
    *("horse", "house", "ice", "jar", "key", "king", "knife", "lake", "lamp", "leaf", "lemon", "lion", "map"),
    *("milk", "moon", "nail", "nest", "owl", "pen", "plate", "ring", "river", "rope", "sun", "tree"),
)
_INKS: tuple[Color, ...] = ((20, 20, 20), (25, 55, 130), (140, 30, 30), (20, 90, 50))
_KINDS: Mapping[str, str] = {"digits": _DIGITS, "letters": _LETTERS, "words": ""}
_MOST_LAYOUTS = 1_000
_PLACES = 10_000
"""Places along an axis, from one end of the room to the other."""
_GAP = 1
"""Pixels between what is put side by side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Scene):
    """A picture of lines of text."""

    content: tuple[Any, ...]
    """What stands there and how it is written, without its places, which a font library has a say in."""

    def as_data(self) -> list[Any]:
        """See :meth:`Scene.as_data`: pictures of one content are in one split, wherever it stands in them."""
        covers = [list(mark.box) for mark in self.marks if isinstance(mark, Rectangle) and mark.tag == COVER_TAG]
        return [self.width, self.height, list(self.background), _listed(self.content), covers]


class OCR(VisionBandit):
    """Read the number or the word that stands after a label.

    ## Description
    The picture shows lines such as ``B: 47``, and the question names a label. What stands after other labels is never
    what is asked for. In the twin another text stands in the same place, and all else is the same.

    ## Observation Space
    `Dict`: ``image``, uint8 [size, size, 3], and ``text``: ``What stands after B?``, then what to answer where that
    cannot be seen, and the format.

    ## Action Space
    `UnicodeText`: the completion.

    ## Rewards
    1 if the final answer is the text, character by character (NFC, blanks around it aside), else 0; where the text is
    covered, ``unseen`` is right. ``info["scores"]["cer"]`` is the character error rate, 0 to 1, and pays nothing.

    ## Starting State
    The text is drawn first, uniform: of d digits, the first of several not 0; of l letters; or of 64 words. So who
    does not look is right once in as many times as there are such texts.

    ## Episode End
    Terminated after one step.

    ## Arguments
    * ``kind``: ``"digits"``, ``"letters"`` (capitals without I, O and U) or ``"words"``; default ``"digits"``.
    * ``length``: digits or letters of a text, 1 to 12; default 2. Words have their own.
    * ``lines``: labels with their texts, 1 to 12; default 2.
    * ``alike``: labels are of two letters and differ in one of them; default False.
    * ``font``: its size in pixels, 8 to 64; default 12.
    * ``faces``: fonts, one of which is drawn: some of ``DejaVuSans``, ``DejaVuSans-Bold``, ``DejaVuSerif`` and
      ``DejaVuSansMono``; default the first alone.
    * ``rotation``: lines are turned by so many degrees at most, either way, 0 to 45; default 0.
    * ``noise``: standard deviation of the noise on each colour of a pixel, of 255, 0 to 100; default 0.
    * ``contrast``: how far the colour of the text is from the background's to a dark one, 0.1 to 1; default 1.
    * Those of ``VisionEnv`` and ``TextBandit``; ``size`` is 64.

    ## Version History
    * v0: first version.

    Raises:
        ValueError: An argument is out of its range, or the lines find no place.
    """

    words = ("What stands after ", *_WORDS)

    def __init__(
        self,
        *,
        kind: str = "digits",
        length: int = 2,
        lines: int = 2,
        alike: bool = False,
        font: int = 12,
        faces: Sequence[str] | None = ("DejaVuSans",),
        rotation: int = 0,
        noise: int = 0,
        contrast: float = 1.0,
        **kwargs: Any,
    ) -> None:
        if kind not in _KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, _KINDS))}, got {kind!r}")
        self.kind = kind
        self.length = whole("length (signs of a text)", length, 1, 12)
        self.lines = whole("lines", lines, 1, 12)
        self.alike = flag("alike", alike)
        self.font = whole("font (pixels)", font, 8, 64)
        self.faces = some_of("faces", faces, _FACES)
        self.rotation = whole("rotation (degrees)", rotation, 0, 45)
        self.noise = whole("noise (of 255)", noise, 0, 100)
        self.contrast = share("contrast", contrast, last=True)
        if self.contrast < 0.1:
            raise ValueError(f"contrast must be 0.1 or more, else nothing can be read, got {contrast!r}")
        super().__init__(**kwargs)

    @cached_property
    def blind_floor(self) -> float:
        """See :meth:`VisionEnv.blind_floor`: all texts are as likely."""
        return 1 / self._texts

    def blind_answer(self, question: str) -> str:
        """See :meth:`VisionEnv.blind_answer`."""
        return self._text(0)

    def make_rubric(self, format_weight: float) -> Rubric:
        """See :meth:`TextBandit.make_rubric`; the character error rate is told and pays nothing."""
        usual = super().make_rubric(format_weight)
        return Rubric(*usual.terms, Term("cer", self._grade_cer, 0.0), success=usual.success)

    def generate(self, rng: np.random.Generator) -> VisionTask:
        """Draw a text and another, the labels, and places for all."""
        chance = Chance(rng)
        true, other = self._distinct(chance, 2)
        others = [self._text(self._number(chance, (true, other))) for _ in range(self.lines - 1)]
        labels = self._labels(chance)
        asked = chance.below(self.lines)
        for _ in range(_MOST_LAYOUTS):
            if (laid := self._laid(chance, labels, asked, (self._text(true), self._text(other)), others)) is not None:
                return laid
        raise ValueError(
            f"no place was found in {self.size} pixels for {self.lines} line(s) in a font of {self.font}; make lines, "
            "length, font or rotation smaller, or size larger"
        )

    def matches(self, view: View, answer: str) -> bool:
        """Tell whether ``answer`` is the text."""
        return same_text(answer, view.answer)

    @cached_property
    def _texts(self) -> int:
        """How many texts there are."""
        if self.kind == "words":
            return len(_WORDS)
        signs = _KINDS[self.kind]
        return len(signs) ** self.length - self._first

    @property
    def _first(self) -> int:
        """The number that the first text has in the order of all strings of its length."""
        return 10 ** (self.length - 1) if self.kind == "digits" and self.length > 1 else 0

    def _text(self, number: int) -> str:
        """Return a text by its number."""
        if self.kind == "words":
            return _WORDS[number]
        signs = _KINDS[self.kind]
        number += self._first
        text = ""
        for _ in range(self.length):
            number, sign = divmod(number, len(signs))
            text = signs[sign] + text
        return text

    def _number(self, chance: Chance, taken: Sequence[int]) -> int:
        """Draw the number of a text that is none of ``taken``."""
        number = chance.below(self._texts - len(taken))
        for smaller in sorted(taken):
            number += number >= smaller
        return number

    def _distinct(self, chance: Chance, n: int) -> list[int]:
        numbers: list[int] = []
        for _ in range(n):
            numbers.append(self._number(chance, numbers))
        return numbers

    def _labels(self, chance: Chance) -> list[str]:
        if not self.alike:
            return chance.some(_LETTERS, self.lines)
        shared, is_first = chance.pick(_LETTERS), chance.chance()
        own = chance.some(_LETTERS, self.lines)
        return [shared + letter if is_first else letter + shared for letter in own]

    def _room(self, face: Face) -> Bounds:
        """Return the box that holds every text, whatever it is, as seen from its middle."""
        if self.kind == "words":
            return room(_WORDS, self.font, self.size, face)
        return room([sign * self.length for sign in _KINDS[self.kind]], self.font, self.size, face)

    def _laid(
        self, chance: Chance, labels: list[str], asked: int, texts: tuple[str, str], others: list[str]
    ) -> VisionTask | None:
        face = chance.pick([face for face in _FACES if face in self.faces])
        angle = chance.between(-self.rotation, self.rotation)
        ground, dark = chance.pick(GROUNDS), chance.pick(_INKS)
        color = tuple(round(g + self.contrast * (d - g)) for g, d in zip(ground, dark, strict=True))
        style: dict[str, Any] = {"size": self.font, "face": face, "color": color, "angle": angle}
        left, top, right, bottom = self._room(face)
        widest, gap = right - left, self.font * 0.35
        names = [ink(f"{label}:", self.font, self.size, face) for label in labels]
        top, bottom = min(top, *(name[1] for name in names)), max(bottom, *(name[3] for name in names))
        lines: list[Bounds] = []  # as seen from their middles, before they are turned
        for name in names:
            half = (name[2] - name[0] + gap + widest) / 2
            lines.append((-half, top, half, bottom))
        # No room is asked of what the text is, so that covers and places tell nothing of it.
        turned_lines = [turned_box(line, (0, 0), angle) for line in lines]
        places = [(chance.below(_PLACES), chance.below(_PLACES)) for _ in lines]
        if (middles := self._stacked(places, turned_lines)) is None:
            return None
        values = [
            turned_box((x + line[2] - widest, y + top, x + line[2], y + bottom), (x, y), angle)
            for (x, y), line in zip(middles, lines, strict=True)
        ]
        covers = [self._over(value) for value in values]
        (x, y), line = middles[asked], turned_lines[asked]
        own = (x + line[0], y + line[1], x + line[2], y + line[3])
        if (decoy := self._decoy(chance, covers, asked, own)) is None:
            return None
        seed = chance.below(2**31) if self.noise else 0

        def view(text: str) -> View:
            shown = list(others)
            shown.insert(asked, text)
            marks: list[Mark] = []
            for i, ((x, y), line) in enumerate(zip(middles, lines, strict=True)):
                start = ink(shown[i], self.font, self.size, face)[0]
                label_at = turned((x + line[0] - names[i][0], y), (x, y), angle)
                text_at = turned((x + line[2] - widest - start, y), (x, y), angle)
                marks.append(Text(text=f"{labels[i]}:", at=label_at, tag=f"label {i}", **style))
                marks.append(Text(text=shown[i], at=text_at, tag=f"text {i}", **style))
            scene = Page(
                width=self.size,
                height=self.size,
                background=ground,
                marks=tuple(marks),
                noise=self.noise,
                noise_seed=seed,
                content=(labels, shown, face, angle, color, self.font, self.noise, seed),
            )
            return View(scene, text, (f"text {asked}",))

        return VisionTask(
            f"What stands after {labels[asked]}?", view(texts[0]), view(texts[1]), [covers[asked]], [decoy]
        )

    def _stacked(self, places: Sequence[tuple[int, int]], boxes: Sequence[Bounds]) -> list[tuple[int, int]] | None:
        """Return the middles of boxes one below the other, each as far right and down in the room that it has."""
        heights = [math.ceil(box[3] - box[1]) + 2 * _GAP for box in boxes]
        slack = self.size - sum(heights)
        if slack < 0:
            return None
        above = sorted(down * (slack + 1) // _PLACES for _, down in places)
        middles = []
        y = 0
        for i, (box, height) in enumerate(zip(boxes, heights, strict=True)):
            across = self.size - math.ceil(box[2] - box[0]) - 2 * _GAP
            if across < 0:
                return None
            x = _GAP + places[i][0] * (across + 1) // _PLACES
            middles.append((x + round(-box[0]), y + above[i] + _GAP + round(-box[1])))
            y += height
        return middles

    def _over(self, box: Bounds) -> Bounds:
        """Return whole pixels that cover a box; of boxes of a size they are as many."""
        width, height = math.ceil(box[2] - box[0]) + 3, math.ceil(box[3] - box[1]) + 3
        x = max(min(math.floor(box[0]) - 1, self.size - width), 0)
        y = max(min(math.floor(box[1]) - 1, self.size - height), 0)
        return (x, y, x + width, y + height)

    def _decoy(self, chance: Chance, covers: Sequence[Bounds], asked: int, line: Bounds) -> Bounds | None:
        """Return a box over another text, or anywhere beside the line that is asked for where it is the only one."""
        if len(covers) > 1:
            decoy = chance.pick([cover for i, cover in enumerate(covers) if i != asked])
            return None if near(decoy, line, 0.0) else decoy
        x1, y1, x2, y2 = covers[0]
        found = scattered(chance, [(x2 - x1, y2 - y1)], (0, 0, self.size, self.size), gap=0.0, taken=[line])
        return None if found is None else found[0]

    def _grade_cer(self, task: Task, episode: Episode) -> float:
        answer = self.answer_in(episode.steps[-1].action)
        if answer is not None and self.is_right(task, answer):
            return 0.0
        return cer(answer, self.write_answer(task))


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, list | tuple) else value
