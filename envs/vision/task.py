"""An instance of a vision task: a picture, what is asked about it, what must be seen for that, and its variants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from tetrathlon.envs.codec import fingerprint
from tetrathlon.envs.tools.task import ToolTask
from tetrathlon.envs.vision.scene import Bounds, Color, Rectangle, Scene
from tetrathlon.envs.vision.variants import Variant

_COVER: Color = (127, 127, 127)
COVER_TAG = "cover"
"""The tag of what covers something."""


@dataclass(frozen=True, slots=True)
class View:
    """A picture, the right answer to what is asked about it, and where that is to be seen."""

    scene: Scene
    """What is shown."""
    answer: str
    """As the expert writes it, before any format."""
    evidence: tuple[str, ...]
    """The tags of the objects that must be seen."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What else the grader needs."""
    is_hidden: bool = False
    """Whether the evidence is covered, so that the right act is to say that it cannot be seen."""

    def covered(self, boxes: Sequence[Bounds], is_hidden: bool) -> View:
        """Return this view with ``boxes`` covered."""
        covers = [Rectangle(box=box, color=_COVER, tag=COVER_TAG) for box in boxes]
        return replace(self, scene=self.scene.with_marks(*covers), is_hidden=is_hidden)


@dataclass(frozen=True, slots=True, init=False)
class VisionTask(ToolTask):
    """The frozen private data of an instance, never written with an episode; tools may work on its picture.

    Args:
        question: See :class:`~tetrathlon.envs.language.task.Task`; the same in all variants.
        view: See below, like the others.
        twin: As above.
        covers: As above.
        decoys: As above.
    """

    view: View
    """The picture as it is; with the question it decides the split."""
    twin: View
    """The picture changed so that the answer is another."""
    covers: tuple[Bounds, ...]
    """Boxes that hide the evidence of ``view``."""
    decoys: tuple[Bounds, ...]
    """As many boxes that hide none of it; but where the edge of the picture cuts one, they have the same sizes."""

    def __init__(
        self,
        question: str,
        view: View,
        twin: View,
        covers: Sequence[Bounds],
        decoys: Sequence[Bounds],
        *,
        answer: str | None = None,
        data: Mapping[str, Any] | None = None,
        world: Mapping[str, Any] | None = None,
    ) -> None:
        ToolTask.__init__(self, question, view.answer if answer is None else answer, data, world)
        for name, value in (("view", view), ("twin", twin), ("covers", tuple(covers)), ("decoys", tuple(decoys))):
            object.__setattr__(self, name, value)
        whole = f"{self.id}{fingerprint(view.scene.as_data())}"
        object.__setattr__(self, "id", sha256(whole.encode()).hexdigest()[:16])

    def seen_as(self, variant: Variant) -> View:
        """Return what is shown in a variant; without the picture the view is that of the full one."""
        if variant == "twin":
            return self.twin
        if variant == "masked":
            return self.view.covered(self.covers, is_hidden=True)
        if variant == "distractor_masked":
            return self.view.covered(self.decoys, is_hidden=False)
        return self.view
