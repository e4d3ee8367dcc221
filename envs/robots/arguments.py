"""Arguments that robot environments are made with: which there are, and which values those of a few values have."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
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


def check_names(env: type[Any], given: Iterable[str], known: Collection[str]) -> None:
    """Refuse an argument that an environment does not have.

    Args:
        env: Its class.
        given: Names of what it is given.
        known: Names of what it takes.

    Raises:
        TypeError: One is none of those, as in any call; the message names the environment and its arguments.
    """
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise TypeError(f"{env.__name__} has no argument {name!r}{hint} (it takes {', '.join(sorted(known))})")
