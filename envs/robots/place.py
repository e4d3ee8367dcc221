"""Putting an object on a plate or into a bin."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from tetrathlon.envs.robots import grasp
from tetrathlon.envs.robots.environment import RobotEnv, RobotVectorEnv
from tetrathlon.envs.robots.instruction import Wordings
from tetrathlon.envs.robots.scene import BIN_FLOOR, BIN_HALF, PLATE_HEIGHT, ZONE_RADIUS
from tetrathlon.envs.robots.steering import length
from tetrathlon.envs.robots.task import Situation

CLEAR = 0.042
"""Metres from the object's centre up to the fingertips when it has been let go: more than half of any object."""
_RESTING = 0.02  # metres that what rests, even on its side, is higher than when it stands
_SLOW = 0.05  # metres a second
_CARRY = 0.14  # metres above the table at which the hand carries
_FAR = 0.4  # metres between hand and object from where coming nearer counts


class Placing(grasp.GraspTask):
    """The object has to rest in the place, and the gripper to have let it go.

    Attributes:
        floor: Metres above the table at which things lie there.
        drop: Metres above that at which the expert lets go.
    """

    seconds = 8.0
    floor: ClassVar[float]
    drop: ClassVar[float]

    @abstractmethod
    def inside(self, offset: np.ndarray) -> np.ndarray:
        """Return whether objects so far from a place's centre are within it, bool [N].

        Args:
            offset: x and y in metres, [N, 2].
        """

    def success(self, now: Situation) -> np.ndarray:
        """See :meth:`Task.success`."""
        let_go = now.hand[:, 2] - now.thing[:, 2] > CLEAR
        return self._down(now, _RESTING) & let_go & (length(now.velocity) < _SLOW)

    def progress(self, now: Situation) -> np.ndarray:
        """See :meth:`Task.progress`; a third is for coming near the object, the rest for its way to the place."""
        whole = length(now.start[now.rows, now.target, :2] - now.goal[:, :2])
        left = length((now.thing - now.goal)[:, :2])
        there = self._down(now, _RESTING)
        near = np.where(there, 1.0, 1.0 - np.clip(length(now.hand - now.thing) / _FAR, 0.0, 1.0))
        way = np.where(there, 1.0, np.clip(1.0 - left / whole, 0.0, 1.0))
        return (near + 2.0 * way) / 3.0

    def _down(self, now: Situation, above: float) -> np.ndarray:
        """Return whether the object is in the place, at most so far above its floor, bool [N]."""
        return self.inside((now.thing - now.goal)[:, :2]) & (self._height(now) < above)

    def _height(self, now: Situation) -> np.ndarray:
        """Return how far above the place's floor the object stands, [N]."""
        return now.thing[:, 2] - now.half_height - self.floor

    def expert(self, now: Situation) -> np.ndarray:
        """See :meth:`Task.expert`: take it, carry it over the place, lower it, open, and go up."""
        hand, offset = now.hand, now.goal - now.thing
        goal, grip = grasp.take(now)
        high = hand[:, 2] > _CARRY - 0.02
        over = length(offset[:, :2]) < np.where(high, 0.01, 0.025)
        carried = hand + offset * np.where(over | high, 1.0, 0.0)[:, None]
        carried[:, 2] = np.where(over, hand[:, 2] - self._height(now) + 0.5 * self.drop, _CARRY)
        left = hand.copy()
        left[:, 2] = np.where(grasp.is_open(now), _CARRY, hand[:, 2])
        held, there = grasp.holds(now), self._down(now, self.drop)
        goal = np.where(held[:, None], carried, goal)
        goal = np.where(there[:, None], left, goal)
        return now.robot.move(now.world, goal, np.where(there, grasp.OPEN, np.where(held, grasp.CLOSED, grip)))


class PlacingOn(Placing):
    """On a plate."""

    name = "PlaceOn"
    verb = 3
    wordings = Wordings(
        verbs=("put", "place", "set", "lay"), prepositions=("on", "onto"), nouns=("plate", "dish", "saucer")
    )
    places = ("plate", "plate")
    floor = PLATE_HEIGHT
    drop = 0.01

    def inside(self, offset: np.ndarray) -> np.ndarray:
        """See :meth:`Placing.inside`."""
        return length(offset) < ZONE_RADIUS - 0.02


class PlacingIn(Placing):
    """Into a bin."""

    name = "PlaceIn"
    verb = 4
    wordings = Wordings(
        verbs=("put", "place", "drop", "throw"), prepositions=("in", "into"), nouns=("bin", "box", "crate")
    )
    places = ("bin", "bin")
    floor = BIN_FLOOR
    drop = 0.025  # the fingers stay above the walls

    def inside(self, offset: np.ndarray) -> np.ndarray:
        """See :meth:`Placing.inside`."""
        return (np.abs(offset) < BIN_HALF).all(axis=-1)


class PlaceOn(RobotEnv):
    """Put the object that is meant on the plate that is meant.

    ## Description
    Three objects of different colours (a cube, a cylinder, a brick) and two coloured plates lie on a table before an
    arm with a gripper. The instruction names one of each: ``put the red cube on the white plate``.

    ## Observation Space
    As of ``tetrathlon/PushToZone-v0`` with ``robot="arm"``; the plate is where the zone is there.

    ## Action Space
    `Box(-1, 1, (4,), float32)`: how far the hand moves along x, y and z, 3 cm at 1, 20 times a second, and the gripper
    (-1 open, +1 closed). With ``chunk=K`` an action is K of them, [K, 4].

    ## Rewards
    1 when the object lies on the plate, its centre within 5 cm of the plate's, is at rest, and the fingers are above
    it. With ``reward="dense"`` also progress: a third of it for coming near, two thirds for the object's way.

    ## Starting State
    Positions are drawn at random, so that the open fingers have room around the object, and belong to the train or to
    the test split. In the test split colours, verb and plate come in other combinations, and the words in other
    sentences.

    ## Episode End
    Terminated: success. Truncated: 8 seconds, or the simulation diverged.

    Args:
        **kwargs: See :class:`~tetrathlon.envs.robots.vector.MujocoVectorEnv`.

    ## Version History
    * v0: first version.
    """

    task = PlacingOn


class PlaceOnVector(RobotVectorEnv):
    """N copies of :class:`PlaceOn` that step as one."""

    single = PlaceOn


class PlaceIn(RobotEnv):
    """Put the object that is meant into the bin that is meant.

    ## Description
    Three objects of different colours (a cube, a cylinder, a brick) and two coloured bins, whose walls are 4 cm high,
    stand on a table before an arm with a gripper. The instruction names one of each: ``put the red cube in the white
    bin``.

    ## Observation Space
    As of ``tetrathlon/PushToZone-v0`` with ``robot="arm"``; the bin is where the zone is there.

    ## Action Space
    `Box(-1, 1, (4,), float32)`: how far the hand moves along x, y and z, 3 cm at 1, 20 times a second, and the gripper
    (-1 open, +1 closed). With ``chunk=K`` an action is K of them, [K, 4].

    ## Rewards
    1 when the object lies in the bin, is at rest, and the fingers are above it. With ``reward="dense"`` also progress:
    a third of it for coming near, two thirds for the object's way.

    ## Starting State
    Positions are drawn at random, so that the open fingers have room around the object, and belong to the train or to
    the test split. In the test split colours, verb and bin come in other combinations, and the words in other
    sentences.

    ## Episode End
    Terminated: success. Truncated: 8 seconds, or the simulation diverged.

    Args:
        **kwargs: See :class:`~tetrathlon.envs.robots.vector.MujocoVectorEnv`.

    ## Version History
    * v0: first version.
    """

    task = PlacingIn


class PlaceInVector(RobotVectorEnv):
    """N copies of :class:`PlaceIn` that step as one."""

    single = PlaceIn
