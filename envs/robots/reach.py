"""Reaching for an object."""

from __future__ import annotations

import numpy as np

from tetrathlon.envs.robots.arm import Arm
from tetrathlon.envs.robots.environment import RobotEnv, RobotVectorEnv
from tetrathlon.envs.robots.instruction import Wordings
from tetrathlon.envs.robots.steering import around, length
from tetrathlon.envs.robots.task import Situation, Task

ABOVE = 0.04
"""Metres above the object's upper face to which an arm's fingertips have to come."""
NEAR = 0.025
"""Metres from there, or for the pusher from touching it, that are near enough."""
_TOUCHING = 0.05  # metres between the pusher's centre and that of what it touches
_FAR = 0.5  # metres from where coming nearer counts


class Reaching(Task):
    """The hand has to come to the object: from above, or for the pusher from the side."""

    name = "Reach"
    verb = 1
    robots = ("pusher", "arm")
    wordings = Wordings(
        verbs=("reach for", "go to", "move towards", "move to", "point at", "reach", "head for", "go towards")
    )
    shapes = ("cube", "cylinder", "brick")
    seconds = 3.0

    def success(self, now: Situation) -> np.ndarray:
        """See :meth:`Task.success`."""
        return self._left(now) < NEAR

    def progress(self, now: Situation) -> np.ndarray:
        """See :meth:`Task.progress`; 0 at half a metre."""
        return 1.0 - np.clip(self._left(now) / _FAR, 0.0, 1.0)

    def _left(self, now: Situation) -> np.ndarray:
        """Return how far the hand still is, in metres, [N]."""
        if isinstance(now.robot, Arm):
            return length(self._above(now) - now.hand)
        return np.maximum(length((now.thing - now.hand)[:, :2]) - _TOUCHING, 0.0)

    def _above(self, now: Situation) -> np.ndarray:
        return now.thing + np.array([0.0, 0.0, 1.0]) * (now.half_height + ABOVE)[:, None]

    def expert(self, now: Situation) -> np.ndarray:
        """See :meth:`Task.expert`: straight there; the pusher goes around what is in the way."""
        if isinstance(now.robot, Arm):
            return now.robot.move(now.world, self._above(now))
        low, high = now.robot.low[:2], now.robot.high[:2]
        goal = now.thing.copy()
        goal[:, :2] = around(now.hand[:, :2], now.thing[:, :2], now.others[..., :2], _TOUCHING + 0.02, low, high)
        return now.robot.move(now.world, goal)


class Reach(RobotEnv):
    """Bring the hand to the object that is meant.

    ## Description
    Three objects of different colours (a cube, a cylinder, a brick) lie on a table. The instruction names one:
    ``reach for the red cube``.

    ## Observation Space
    As of ``tetrathlon/PushToZone-v0``; there is no zone.

    ## Action Space
    As of ``tetrathlon/PushToZone-v0``: `(2,)` for the pusher, `(4,)` for the arm.

    ## Rewards
    1 when the arm's fingertips are within 2.5 cm of the point 4 cm above the middle of the object's upper face, or the
    pusher's centre is within 7.5 cm of the object's: a cube touches it at 5 cm. With ``reward="dense"`` also the metres
    that the hand came nearer, twofold.

    ## Starting State
    Positions are drawn at random and belong to the train or to the test split. In the test split other colours are
    asked for, in other words.

    ## Episode End
    Terminated: success. Truncated: 3 seconds, or the simulation diverged.

    Args:
        **kwargs: See :class:`~tetrathlon.envs.robots.vector.MujocoVectorEnv`.

    ## Version History
    * v0: first version.
    """

    task = Reaching


class ReachVector(RobotVectorEnv):
    """N copies of :class:`Reach` that step as one."""

    single = Reach
