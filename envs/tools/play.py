"""One episode of a tool task under way."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Any

from tetrathlon.envs.episode import Step
from tetrathlon.envs.tools.task import ToolTask
from tetrathlon.envs.tools.world import World


@dataclass(slots=True)
class Play:
    """One episode of a tool task under way."""

    task: ToolTask
    """What is played."""
    world: World
    """What its tools work on."""
    observation: str = ""
    """What the agent saw last."""
    info: dict[str, Any] = field(default_factory=dict)
    """And what came with it."""
    steps: list[Step] = field(default_factory=list)
    """The turns so far: what was seen and said."""
    calls: int = 0
    """Calls that were run so far."""
    answer: str | None = None
    """The final answer, once it was given."""
    progress: float = 0.0
    """The furthest that the agent has come."""
    stop: str = ""
    """Why the episode is over; empty while it is not."""
    fault: str = ""
    """Why it has no score; empty where it has one."""

    @property
    def turns(self) -> int:
        """Turns so far."""
        return len(self.steps)

    def save(self) -> dict[str, Any]:
        """Return all that :meth:`load` needs beside the task."""
        kept = replace(self, info=copy.deepcopy(self.info), steps=copy.copy(self.steps))
        state = {name: getattr(kept, name) for name in self.__slots__ if name not in ("task", "world")}
        return {**state, "world": self.world.get_state()}

    @classmethod
    def load(cls, task: ToolTask, world: World, state: dict[str, Any]) -> Play:
        """Return the play that was saved.

        Args:
            task: Its task.
            world: A world of that task, of any state.
            state: What :meth:`save` returned; it is left as it is.
        """
        world.set_state(state["world"])
        rest = {name: value for name, value in state.items() if name != "world"}
        return cls(task, world, **{**rest, "info": copy.deepcopy(rest["info"]), "steps": copy.copy(rest["steps"])})
