"""What was right in an episode about a picture, drawn on it: the evidence, and where the agent said that it was."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from tetrathlon.envs.episode import Episode
from tetrathlon.envs.registry import domain_of, make

_SIDE = 320
"""Pixels of the longer side to which a small picture grows."""
_TRUTH, _SAID = (0, 170, 70), (225, 30, 60)
_ARM = 6


@dataclass(frozen=True, slots=True)
class Truth:
    """What was right, and a picture of it."""

    answer: str
    """The right answer."""
    picture: np.ndarray
    """uint8 [H, W, 3]: what was shown, with the evidence in green boxes, and boxes and points of the answer in red."""


def truth_of(episode: Episode) -> Truth | None:
    """Return what was right in an episode of a vision task of this package; None: nobody can tell.

    The instance is made anew from its seed and options.
    """
    options = episode.options or {}
    if domain_of(episode.env) != "vision" or (episode.seed is None and not {"index", "task"} & options.keys()):
        return None
    with closing(make(episode.env, **episode.kwargs)) as made:
        env = made.unwrapped
        env.reset(seed=episode.seed, options=episode.options)
        found = env.evidence()  # type: ignore[attr-defined]
        said = env.answer_in(str(episode.steps[-1].action)) if episode.steps else None  # type: ignore[attr-defined]
        places = [] if said is None else env.places(said)  # type: ignore[attr-defined]
        shown = env.picture()  # type: ignore[attr-defined]
    scale = max(1, _SIDE // max(shown.shape[:2]))
    picture = Image.fromarray(shown.repeat(scale, axis=0).repeat(scale, axis=1))
    draw = ImageDraw.Draw(picture)
    for box in found["boxes"]:
        _frame(draw, [scale * edge for edge in box], _TRUTH)
    for place in places:
        if len(place) == 4:
            _frame(draw, [scale * edge for edge in place], _SAID)
        else:
            x, y = (scale * value for value in place)
            draw.line([(x - _ARM, y), (x + _ARM, y)], fill=_SAID, width=2)
            draw.line([(x, y - _ARM), (x, y + _ARM)], fill=_SAID, width=2)
    return Truth(found["answer"], np.asarray(picture))


def _frame(draw: ImageDraw.ImageDraw, box: list[float], color: tuple[int, int, int]) -> None:
    x1, y1, x2, y2 = box
    if x1 < x2 and y1 < y2:
        draw.rectangle((x1, y1, x2 - 1, y2 - 1), outline=color, width=2)
