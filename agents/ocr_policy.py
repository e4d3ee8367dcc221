"""A policy that reads what is written in pictures with an OCR engine, and learns nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from PIL import Image

from tetrathlon.agents.observed import is_visual, observed
from tetrathlon.agents.policy import Acted, acted, slots_of
from tetrathlon.envs.arguments import whole
from tetrathlon.envs.language.formats import BOXED, TAG
from tetrathlon.envs.spaces import unstack
from tetrathlon.envs.vision.environment import UNSEEN

INSTALL_OCR = 'pip install "tetrathlon[ocr]"'
_QUESTION = re.compile(r"What stands after (\S{1,40})\?")
_FARTHEST = 3.0
"""Heights of a label that what stands after it may be to its right."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A text that was found in a picture."""

    text: str
    box: tuple[float, float, float, float]
    """Around it, in pixels of the picture."""


class OCRPolicy:
    """Answers what stands after a label in a picture; to anything else it says that it cannot be seen.

    The engine is RapidOCR with the weights of its package (PP-OCRv4, in ONNX); it looks at nothing but the picture, and
    the policy knows how OCR-v0 asks. What it gets right, a model that sees should: it is a baseline, not a ceiling.

    Args:
        observation_space: A dict of ``image`` and ``text``.
        action_space: Text.
        side: Pictures whose sides are less are made this large before they are read, in pixels; 32 to 2,000.
        threads: Threads of the engine.

    Raises:
        ImportError: The engine is not installed; the message says how to install it.
        TypeError: The spaces are others.
        ValueError: A number is out of its range.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        *,
        side: int = 256,
        threads: int = 1,
    ) -> None:
        if not is_visual(observation_space, action_space):
            raise TypeError(
                "OCRPolicy reads pictures with a question beside them and answers in text; got "
                f"{observation_space} and {action_space}"
            )
        self.observation_space, self.action_space = observation_space, action_space
        self.side = whole("side (pixels)", side, 32, 2_000)
        threads = whole("threads", threads, 1, 1_024)
        try:
            from rapidocr_onnxruntime import RapidOCR
        except ImportError as error:
            raise ImportError(
                f"OCRPolicy needs the package rapidocr-onnxruntime ({error}): {INSTALL_OCR}", name=error.name
            ) from error
        self._engine = RapidOCR(intra_op_num_threads=threads, inter_op_num_threads=threads)

    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        """See :meth:`Policy.act`; it draws nothing."""
        n = slots_of(observations, memory, infos)
        actions = []
        for i, observation in enumerate(unstack(self.observation_space, observations, n)):
            text, picture = observed(observation, {} if infos is None else infos[i])
            actions.append(_written(self.answer(text, picture), text))
        return acted(self.action_space, actions, forced)

    def answer(self, question: str, picture: np.ndarray | None) -> str:
        """Return what stands after the label that a question names; ``unseen`` where that is not found.

        Args:
            question: The prompt.
            picture: uint8 [H, W, 3], or None.
        """
        asked = _QUESTION.search(question)
        if asked is None or picture is None:
            return UNSEEN
        return after(asked[1], self.read(picture)) or UNSEEN

    def read(self, picture: np.ndarray) -> list[Reading]:
        """Return all texts that the engine finds in a picture, uint8 [H, W, 3]."""
        height, width = picture.shape[:2]
        larger = max(self.side / min(height, width), 1.0)
        size = (round(width * larger), round(height * larger))
        seen = np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BICUBIC)) if larger > 1 else picture
        found, _ = self._engine(np.ascontiguousarray(seen[..., ::-1]))  # blue, green, red
        readings = []
        for corners, text, _ in found or []:
            x, y = np.asarray(corners, dtype=float).T / larger
            readings.append(Reading(str(text), (float(x.min()), float(y.min()), float(x.max()), float(y.max()))))
        return readings


def after(label: str, readings: Sequence[Reading]) -> str | None:
    """Return what stands after a label: in the same text, behind a colon, or in the next one to its right.

    Args:
        label: Without its colon.
        readings: What was read.
    """
    start = re.compile(rf"\s*{re.escape(label)}\s*(?:[:：;.]\s*|\s|$)(.*)", re.DOTALL)
    for reading in readings:
        if (match := start.match(reading.text)) is None:
            continue
        if match[1].strip():
            return match[1].strip()
        right, middle = reading.box[2], (reading.box[1] + reading.box[3]) / 2
        height = reading.box[3] - reading.box[1]
        beside = [
            (other.box[0], other.text)
            for other in readings
            if other is not reading
            and other.box[1] < middle < other.box[3]
            and -height / 2 < other.box[0] - right < _FARTHEST * height
        ]
        if beside:
            return min(beside)[1].strip()
    return None


def _written(answer: str, prompt: str) -> str:
    """Return an answer in the format that a prompt asks for."""
    return next((way.write(answer) for way in (TAG, BOXED) if way.request in prompt), answer)
