"""Arguments that robot environments are made with: which there are, and which values those of a few values have."""

from __future__ import annotations

from typing import Any, get_args

from tetrathlon.envs.robots.camera import Quality
from tetrathlon.envs.robots.randomization import LEVELS
from tetrathlon.envs.robots.senses import Observation
from tetrathlon.envs.robots.task import Task
from tetrathlon.envs.splits import SPLITS

_CHOICES: dict[str, tuple[str | None, ...]] = {
    "split": SPLITS,
    "observation": get_args(Observation),
    "quality": get_args(Quality),
    "reward": ("sparse", "dense"),
    "randomization": tuple(LEVELS),
    "render_mode": (None, "rgb_array"),
}


def check_choices(task: type[Task], **given: Any) -> None:
    """Refuse a value of an argument that has only a few.

    Args:
        task: What is asked, which says what robots there are.
        **given: Arguments of :class:`~tetrathlon.envs.robots.vector.MujocoVectorEnv`.

    Raises:
        ValueError: One has no such value; the message names those that there are.
    """
    for name, value in given.items():
        known = task.robots if name == "robot" else _CHOICES[name]
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")
