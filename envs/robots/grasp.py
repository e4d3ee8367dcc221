"""The gripper and the object that is meant: whether it is held, and how to come to hold it; N hands at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tetrathlon.envs.robots.arm import Arm
from tetrathlon.envs.robots.robot import Robot
from tetrathlon.envs.robots.steering import length
from tetrathlon.envs.robots.task import Places, Situation, Task

OPEN, CLOSED = -1.0, 1.0
"""The gripper's command."""
_AROUND = 0.025  # metres between the fingertips and the centre of what they are around
_NOTHING, _WIDE = 0.008, 0.076  # metres that the fingers are apart when nothing is between them, and when they are open
_STILL = 0.01  # metres a second
_TRAVEL = 0.13  # metres above the table at which an empty hand goes over what lies there
_CLOSED_HALF, _OPEN_HALF = 0.02, 0.065  # metres that an open hand needs along x and along y, from its centre


def around_it(now: Situation) -> np.ndarray:
    """Return whether the fingers are at the object, one on each side, bool [N]."""
    opening = _arm(now).opening(now.world)
    return (length(now.hand - now.thing) < _AROUND) & (opening > _NOTHING) & (opening < _WIDE)


def holds(now: Situation) -> np.ndarray:
    """Return whether the fingers have also closed as far as they can, bool [N]."""
    return around_it(now) & (np.abs(_arm(now).opening_speed(now.world)) < _STILL)


def is_open(now: Situation) -> np.ndarray:
    """Return whether nothing can be held any more, bool [N]."""
    return _arm(now).opening(now.world) > _WIDE


def take(now: Situation) -> tuple[np.ndarray, np.ndarray]:
    """Return where an empty hand goes, [N, 3], and its gripper, [N]: over the object, down around it, closed."""
    hand, thing = now.hand, now.thing
    offset = thing - hand
    across = length(offset[:, :2])
    deep = hand[:, 2] < _TRAVEL - 0.02
    at = (across < 0.008) & (np.abs(offset[:, 2]) < 0.004)
    near = across < np.where(deep, 0.02, 0.01)
    down = near & (is_open(now) | at)
    goal = thing.copy()
    goal[:, 2] = np.where(down, np.maximum(thing[:, 2], now.robot.low[2]), _TRAVEL)
    goal[:, :2] = np.where((deep & ~near)[:, None], hand[:, :2], goal[:, :2])
    return goal, np.where(at, CLOSED, OPEN)


class GraspTask(Task):
    """A task in which an object is taken: it is small and turned enough for the gripper, which has room around it."""

    shapes = ("cube", "cylinder", "brick")
    scale = 0.026  # so that the open gripper goes around it however it is turned
    turns = 0.3  # the hand keeps its own turn, and its fingers close along y

    def fits(self, robot: Robot, objects: Places, places: Sequence[Sequence[float]], target: int, place: int) -> bool:
        """See :meth:`Task.fits`: nothing stands where the fingers have to go."""
        x, y, _ = objects[target]
        radius = 1.7 * self.scale  # of the largest object
        return all(
            abs(u - x) > _CLOSED_HALF + radius or abs(v - y) > _OPEN_HALF + radius
            for k, (u, v, _) in enumerate(objects)
            if k != target
        )


def _arm(now: Situation) -> Arm:
    assert isinstance(now.robot, Arm), "only an arm has a gripper"
    return now.robot
