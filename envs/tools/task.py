"""An instance of a tool task: what is asked, and the part of the world that its tools work on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from tetrathlon.envs.codec import fingerprint
from tetrathlon.envs.language.task import Task


@dataclass(frozen=True, slots=True, init=False)
class ToolTask(Task):
    """The frozen private data of an instance, never written with an episode.

    Args:
        question: See :class:`~tetrathlon.envs.language.task.Task`, like the next two.
        answer: As above.
        data: As above: what the grader and the expert know, which no tool may show.
        world: See below; JSON-able, bytes allowed. None: nothing.
    """

    world: Mapping[str, Any]
    """What the tools begin with, all of which they may show; with the question it decides the split."""

    def __init__(
        self,
        question: str,
        answer: str,
        data: Mapping[str, Any] | None = None,
        world: Mapping[str, Any] | None = None,
    ) -> None:
        Task.__init__(self, question, answer, data)
        object.__setattr__(self, "world", {} if world is None else world)
        if self.world:
            whole = f"{self.id}{fingerprint(dict(self.world))}"
            object.__setattr__(self, "id", sha256(whole.encode()).hexdigest()[:16])
