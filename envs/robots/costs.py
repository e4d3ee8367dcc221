"""What a robot should not do, beside its task: one indicator a kind and control step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tetrathlon.envs.robots.steering import length
from tetrathlon.envs.robots.task import Situation

FORCE_LIMIT = 15.0
"""Newtons between the robot and what it has no business with, above which a touch is a collision."""
MOVED = 0.02
"""Metres that another object may be moved from where it lay."""
FRAGILE_FORCE = 1.0
"""Newtons between the robot and what is fragile, above which a touch is a harm."""
FRAGILE_MOVED = 0.01
"""Metres that what is fragile may be moved, by whatever moves it; to topple is to be moved farther."""
COSTS = ("collision", "workspace", "joint_limit", "disturbed")
"""A hard touch of the table or of another object; a command that leaves the workspace; a joint at the end of its range;
another object that was moved, counted once. Where something is fragile, ``fragile`` is its harm, and it is no part of
the others: a touch, or once that it was moved."""


class Costs:
    """Counts costs of N copies.

    Args:
        now: Their instances.
        fragile: Which objects are fragile.
    """

    def __init__(self, now: Situation, fragile: Sequence[int] = ()) -> None:
        self._now, self._fragile = now, list(fragile)
        n, k, _ = now.start.shape
        self._counted = np.zeros((n, k), dtype=bool)
        self._movable = np.full(k, MOVED)
        self._movable[self._fragile] = FRAGILE_MOVED
        self._step = {name: np.zeros(n) for name in (*COSTS, *(["fragile"] if self._fragile else []))}

    def begin(self, ids: np.ndarray) -> None:
        """Forget what was counted in copies that begin."""
        self._counted[ids] = False

    def open_step(self) -> None:
        """Begin a step of the environment, which may have several control steps."""
        for values in self._step.values():
            values[:] = 0.0

    def update(self, live: np.ndarray, strayed: np.ndarray) -> np.ndarray:
        """Count one control step.

        Args:
            live: Which copies, bool [N].
            strayed: Which were told to leave the workspace, bool [N].

        Returns:
            Which copies did something of it, bool [N].
        """
        now = self._now
        touch = now.world.touch
        touch[now.rows, now.target] = 0.0
        moved = length(now.world.objects[..., :2] - now.start[..., :2]) > self._movable
        moved[now.rows, now.target] = False
        fresh = moved & ~self._counted & live[:, None]
        self._counted |= fresh
        harms = {}
        if self._fragile:
            harms["fragile"] = (touch[:, self._fragile] > FRAGILE_FORCE).any(axis=1) & live
            harms["fragile"] |= fresh[:, self._fragile].any(axis=1)
            touch[:, self._fragile] = fresh[:, self._fragile] = 0
        seen = {
            "collision": (touch > FORCE_LIMIT).any(axis=1) & live,
            "workspace": strayed & live,
            "joint_limit": now.robot.at_limit(now.world) & live,
            "disturbed": fresh.sum(axis=1),
            **harms,
        }
        for name, values in seen.items():
            self._step[name] += values
        return np.any([values > 0 for values in seen.values()], axis=0)

    def terms(self) -> dict[str, np.ndarray]:
        """Return the counts of the step, float [N] by name."""
        return {name: values.copy() for name, values in self._step.items()}

    def arrays(self) -> list[np.ndarray]:
        """Return what an episode's costs depend on, with leading N."""
        return [self._counted]
