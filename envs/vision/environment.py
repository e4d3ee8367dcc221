"""What every vision task shares: a picture beside the text, the variants of an instance, and the blind floor.

Shapes: H rows and W columns of pixels.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from tetrathlon.envs.arguments import whole
from tetrathlon.envs.language.environment import LanguageEnv
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.vision.drawing import Drawing, drawing_of
from tetrathlon.envs.vision.task import View, VisionTask
from tetrathlon.envs.vision.variants import Variant, variant_of

UNSEEN = "unseen"
"""The answer where what is asked cannot be seen."""
_UNSEEN_SAID = f"If that cannot be seen, the answer is {UNSEEN}."
_BLANK = 127
_SMALLEST, _LARGEST = 16, 4096


class VisionEnv(LanguageEnv):
    """A task about a picture.

    What an episode is comes from the other base of a subclass: a single answer, or turns with tools.

    Args:
        size: Pixels of the side of the picture; None: the task's own.
        variant: How each instance is shown, unless a reset's option ``variant`` says otherwise; see
            :data:`~tetrathlon.envs.vision.variants.Variant`.
        **kwargs: Those of the other base.

    Raises:
        ValueError: An argument is none of those, or ``shots`` are asked for: worked examples hold no pictures.
    """

    reset_options: ClassVar[tuple[str, ...]] = ("index", "task", "variant")
    default_size: ClassVar[int] = 64
    """Pixels of the side of the picture."""
    least_size: ClassVar[int] = _SMALLEST
    """Below which nothing can be told apart."""

    def __init__(self, *, size: int | None = None, variant: Variant = "full", **kwargs: Any) -> None:
        if kwargs.get("shots"):
            raise ValueError(f"worked examples hold no pictures; shots must be 0, got {kwargs['shots']!r}")
        super().__init__(**kwargs)
        self.size = whole("size (pixels)", self.default_size if size is None else size, self.least_size, _LARGEST)
        self.variant = variant_of("variant", variant)
        self.observation_space = spaces.Dict(
            {
                "image": spaces.Box(0, 255, (self.size, self.size, 3), np.uint8),
                "text": self.observation_space,
            }
        )
        closing = self._format.pattern.split("%s")
        lines = (self.instructions(), _UNSEEN_SAID, self._format.request)
        self.words = (*self.words, *(f"\n{line}" for line in lines if line), UNSEEN, *filter(None, closing))
        self._shown: Variant = self.variant
        self._drawn: tuple[Task | None, Variant, Drawing] | None = None

    @cached_property
    @abstractmethod
    def blind_floor(self) -> float:
        """How often the best policy is right that does not look: exact, for whole pictures and these arguments."""

    @abstractmethod
    def blind_answer(self, question: str) -> str:
        """Return the answer of a policy that does not look and is right as often as any such policy can be.

        Args:
            question: All that it knows of the instance: the question, in a prompt or by itself.
        """

    def instructions(self) -> str:
        """Return what the prompt says about how to write the answer: a line, the same for each instance."""
        return ""

    def blind_action(self, prompt: str) -> str:
        """Return the completion of a policy that does not look, and is right as often as any such policy can be."""
        return self._format.write(self.blind_answer(prompt))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; see :meth:`LanguageEnv.reset`.

        Args:
            seed: As there.
            options: As there, and ``{"variant": name}``: how the instance is shown in this episode.

        Raises:
            ValueError: As there, or there is no such variant.
        """
        shown = (options or {}).get("variant")
        self._shown = self.variant if shown is None else variant_of("options['variant']", shown)
        return super().reset(seed=seed, options=options)

    def check_task(self, task: Task) -> None:
        """See :meth:`LanguageEnv.check_task`.

        Raises:
            TypeError: ``task`` is no ``VisionTask``.
        """
        if not isinstance(task, VisionTask):
            raise TypeError(f"{type(self).__name__} plays a VisionTask, got {type(task).__name__}")

    def start_info(self, task: Task) -> dict[str, Any]:
        """See :meth:`LanguageEnv.start_info`."""
        told = {"variant": self._shown, "has_image": self._shown != "no_image", "blind_floor": self.blind_floor}
        return {**super().start_info(task), **told}

    def observed(self, text: str) -> Any:
        """See :meth:`LanguageEnv.observed`: the picture and the text; a grey picture where there is none to see."""
        return {"image": self.picture(), "text": text}

    def picture(self) -> np.ndarray:
        """Return a copy of what is shown, uint8 [H, W, 3]."""
        if self._task is None or self._shown == "no_image":
            return np.full((self.size, self.size, 3), _BLANK, np.uint8)
        return self.drawing.picture.copy()

    @property
    def view(self) -> View:
        """What is shown, and what is right."""
        assert isinstance(self._task, VisionTask)
        return self._task.seen_as(self._shown)

    @property
    def drawing(self) -> Drawing:
        """What is shown, drawn."""
        drawn = self._drawn
        if drawn is None or drawn[0] is not self._task or drawn[1] != self._shown:
            self._drawn = drawn = (self._task, self._shown, drawing_of(self.view.scene))
        return drawn[2]

    def places(self, answer: str) -> list[tuple[float, ...]]:
        """Return where in the picture an answer says that something is, for whoever looks at an episode.

        Returns:
            Boxes (x1, y1, x2, y2) and points (x, y) in pixels; none where answers say no places.
        """
        return []

    def evidence(self) -> dict[str, Any]:
        """Return what must be seen for the answer, for whoever looks at an episode and not for its agent.

        Returns:
            ``answer`` (str), ``boxes`` (a list of [x1, y1, x2, y2] in pixels of the picture) and ``mask`` (bool
            [H, W]). What is covered is where it would be seen.
        """
        assert isinstance(self._task, VisionTask)
        view = self.view
        bare = drawing_of(self._task.view.scene) if view.is_hidden else self.drawing
        boxes = [box for tag in view.evidence if (box := bare.box(tag)) is not None]
        answer = UNSEEN if view.is_hidden else view.answer
        return {"answer": answer, "boxes": [list(box) for box in boxes], "mask": bare.mask(view.evidence)}

    def get_state(self) -> dict[str, Any]:
        """Return the exact state, randomness included."""
        return {**super().get_state(), "variant": self._shown}  # type: ignore[misc]

    def set_state(self, state: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Restore what :meth:`get_state` returned; see there."""
        self._check_state(state, "variant")
        self._shown = variant_of("state['variant']", state["variant"])
        return super().set_state(state)  # type: ignore[misc]

    def _write_question(self, task: Task) -> str:
        lines = (task.question, self.instructions(), _UNSEEN_SAID, self._format.request)
        return "\n".join(filter(None, lines))
