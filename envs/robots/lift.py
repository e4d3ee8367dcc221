"""Picking an object up."""

from __future__ import annotations

import numpy as np

from tetrathlon.envs.robots import grasp
from tetrathlon.envs.robots.environment import RobotEnv, RobotVectorEnv
from tetrathlon.envs.robots.instruction import Wordings
from tetrathlon.envs.robots.steering import length
from tetrathlon.envs.robots.task import Situation

HEIGHT = 0.08
"""Metres that the object has to be lifted."""
_MORE = 0.015  # metres that the expert lifts beyond
_SLOW = 0.2  # metres a second: what is faster was thrown, or falls
_FAR = 0.4  # metres between hand and object from where coming nearer counts


class Lifting(grasp.GraspTask):
    """The object has to be in the gripper, above where it lay."""

    name = "PickAndLift"
    verb = 2
    wordings = Wordings(
        verbs=(
            "pick up",
            "lift",
            "raise",
            "lift up",
            "grasp and lift",
            "grab and raise",
            "hold up",
            "grasp and raise",
        )
    )
    seconds = 5.0

    def success(self, now: Situation) -> np.ndarray:
        """See :meth:`Task.success`."""
        return (_height(now) > HEIGHT) & grasp.around_it(now) & (length(now.velocity) < _SLOW)

    def progress(self, now: Situation) -> np.ndarray:
        """See :meth:`Task.progress`; a third is for coming near, the rest for the height."""
        near = 1.0 - np.clip(length(now.hand - now.thing) / _FAR, 0.0, 1.0)
        return (near + 2.0 * np.clip(_height(now) / HEIGHT, 0.0, 1.0)) / 3.0

    def expert(self, now: Situation) -> np.ndarray:
        """See :meth:`Task.expert`."""
        goal, grip = grasp.take(now)
        held = grasp.holds(now)
        up = now.hand + np.array([0.0, 0.0, 1.0]) * (HEIGHT + _MORE - _height(now))[:, None]
        return now.robot.move(now.world, np.where(held[:, None], up, goal), np.where(held, grasp.CLOSED, grip))


def _height(now: Situation) -> np.ndarray:
    return now.thing[:, 2] - now.start[now.rows, now.target, 2]


class PickAndLift(RobotEnv):
    """Pick up the object that is meant.

    ## Description
    Three objects of different colours (a cube, a cylinder, a brick) lie on a table before an arm with a gripper. The
    instruction names one: ``pick up the red cube``.

    ## Observation Space
    As of ``tetrathlon/PushToZone-v0`` with ``robot="arm"``; there is no zone.

    ## Action Space
    `Box(-1, 1, (4,), float32)`: how far the hand moves along x, y and z, 3 cm at 1, 20 times a second, and the gripper
    (-1 open, +1 closed). With ``chunk=K`` an action is K of them, [K, 4].

    ## Rewards
    1 when the object is 8 cm above where it lay, between the fingers, and hardly moves (less than 0.2 m/s). With
    ``reward="dense"`` also progress: a third of it for coming near, two thirds for the height.

    ## Starting State
    Positions are drawn at random, so that the open fingers have room around the object, and belong to the train or to
    the test split. In the test split other colours are asked for, in other words.

    ## Episode End
    Terminated: success. Truncated: 5 seconds, or the simulation diverged.

    Args:
        **kwargs: See :class:`~tetrathlon.envs.robots.vector.MujocoVectorEnv`.

    ## Version History
    * v0: first version.
    """

    task = Lifting


class PickAndLiftVector(RobotVectorEnv):
    """N copies of :class:`PickAndLift` that step as one."""

    single = PickAndLift
