"""Pushing an object into a zone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tetrathlon.envs.robots.arm import Arm
from tetrathlon.envs.robots.environment import RobotEnv, RobotVectorEnv
from tetrathlon.envs.robots.instruction import Wordings
from tetrathlon.envs.robots.robot import Robot
from tetrathlon.envs.robots.scene import ZONE_RADIUS, Shape
from tetrathlon.envs.robots.steering import bend, direction, length, limit, quarter_turn, ramp
from tetrathlon.envs.robots.task import Places, Situation, Task

_CLEAR = 0.02  # metres between finger and object when it goes around it
_CORRIDOR = 0.02
_LOW, _HIGH = 0.01, 0.12  # metres above the table at which an arm pushes and travels
_PACE = 0.012  # metres a step of an arm while pushing: it is heavy, and would bat things away
_FAR = 0.5  # metres between the hand and where it pushes from, from where coming nearer counts
_SLOWING = 0.045  # metres from where it goes at which a pusher slows down


class Push(Task):
    """The object's centre has to come into the zone."""

    name = "PushToZone"
    verb = 0
    robots = ("pusher", "arm")
    wordings = Wordings(
        verbs=("push", "move", "slide", "bring"), prepositions=("to", "into"), nouns=("zone", "area", "circle")
    )
    shapes: ClassVar[tuple[Shape, ...]] = ("cube", "cylinder", "brick")
    places = ("zone", "zone")
    seconds = 5.0

    def success(self, now: Situation) -> np.ndarray:
        """See :meth:`Task.success`."""
        return _distance(now) < ZONE_RADIUS

    def progress(self, now: Situation) -> np.ndarray:
        """See :meth:`Task.progress`; a third is for the hand's way to behind the object, the rest for the object's."""
        thing, goal = now.thing[:, :2], now.goal[:, :2]
        whole = length(now.start[now.rows, now.target, :2] - goal)
        left = np.maximum(_distance(now) - ZONE_RADIUS, 0.0)
        way = np.clip(1.0 - left / np.maximum(whole - ZONE_RADIUS, 1e-6), 0.0, 1.0)
        off = length(now.hand[:, :2] - self.behind(thing, direction(goal - thing)))
        near = np.where(left > 0.0, 1.0 - np.clip(off / _FAR, 0.0, 1.0), 1.0)
        return (near + 2.0 * way) / 3.0

    def fits(self, robot: Robot, objects: Places, places: Sequence[Sequence[float]], target: int, place: int) -> bool:
        """See :meth:`Task.fits`: it does not lie there yet, and nothing lies in the way."""
        start, end = np.array(objects[target][:2]), np.array(places[place])
        far = float(length(end - start))
        if far < ZONE_RADIUS + 0.04:
            return False
        ahead = (end - start) / far
        radius = self.scale * 1.7
        for k, (x, y, _) in enumerate(objects):
            if k in (target, *self.fragile):
                continue
            offset = np.array((x, y)) - start
            along, across = float(offset @ ahead), float(abs(offset @ np.array((-ahead[1], ahead[0]))))
            if -0.1 - radius < along < far + radius and across < 2 * radius + _CORRIDOR:
                return False
        behind = start - ahead * (self.reach + _CLEAR + 0.01)
        return bool((behind > robot.low[:2]).all() and (behind < robot.high[:2]).all())

    @property
    def reach(self) -> float:
        """Metres between a finger that touches the object and its centre."""
        return self.scale * 1.5 + 0.02

    def behind(self, things: np.ndarray, ahead: np.ndarray) -> np.ndarray:
        """Return where the hand is before it pushes objects [N, 2] into directions [N, 2]."""
        return things - ahead * (self.reach + _CLEAR)

    def towards(self, robot: Robot, things: np.ndarray, goals: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return where the expert pushes objects next, [N, 2].

        Args:
            robot: Who pushes.
            things: Where the objects are, [N, 2].
            goals: Where they have to go, [N, 2].
            others: Where the other objects are, [N, K - 1, 2].
        """
        return goals

    def expert(self, now: Situation) -> np.ndarray:
        """See :meth:`Task.expert`: behind the object, and on towards the zone.

        What the pusher does changes little with where things are a little elsewhere: there is a way out of each place
        where a learner that is nearly right may come to rest, and a small network can learn it.
        """
        robot, hand, thing = now.robot, now.hand, now.thing[:, :2]
        at = hand[:, :2]
        others = now.others[..., :2]
        way = self.towards(robot, thing, now.goal[:, :2], others) - thing
        ahead = direction(way)
        side = quarter_turn(ahead)
        along = ((at - thing) * ahead).sum(axis=-1, keepdims=True)
        across = ((at - thing) * side).sum(axis=-1, keepdims=True)
        behind = self.behind(thing, ahead)
        low, high = robot.low[:2], robot.high[:2]
        cramped = ((behind < low) | (behind > high)).any(axis=-1, keepdims=True)
        behind = np.clip(behind, low, high)
        commanded = robot.commanded(now.world)
        target = hand.copy()
        if isinstance(robot, Arm):
            width = np.where(cramped, 0.035, 0.014 + 0.2 * np.maximum(-along - self.reach, 0.0))
            in_line = (along < -0.6 * self.scale) & (np.abs(across) < width)
            pushing = commanded[:, :2] + _PACE * ahead - side * np.clip(across, -_PACE, _PACE)
            target[:] = self._from_above(hand, in_line, pushing, behind)
        else:
            back = limit((behind - at) / _SLOWING)
            back = bend(back, at, thing, self.reach + 0.25 * _CLEAR, soft=0.03, towards=-ahead)
            for k in range(others.shape[1]):
                back = bend(back, at, others[:, k], self.reach + 0.25 * _CLEAR, soft=0.02)
            width = np.where(cramped, 0.035, 0.012 + 0.2 * np.maximum(-along - self.reach, 0.0))
            lined_up = ramp(-np.abs(across), -2.2 * width, -width) * ramp(-along, 0.4 * self.scale, 0.9 * self.scale)
            pushing = ahead - side * np.clip(across / 0.015, -1.0, 1.0)
            step = robot.reach * limit(lined_up * pushing + (1 - lined_up) * back)
            target[:, :2] = np.clip(commanded[:, :2] + step, low, high)
        return robot.move(now.world, target)

    def _from_above(self, hand: np.ndarray, in_line: np.ndarray, pushing: np.ndarray, behind: np.ndarray) -> np.ndarray:
        """Return where an arm goes: over the table to behind the object, down, and on."""
        low = hand[:, 2:] < _LOW + 0.03
        # Wider where it is on its way down: a hand drifts a little then.
        near = length(hand[:, :2] - behind)[:, None] < np.where(hand[:, 2:] > _HIGH - 0.02, 0.02, 0.035)
        back = hand[:, :2] + 0.5 * (behind - hand[:, :2])
        height = np.where(low & in_line | near, _LOW, _HIGH)
        xy = np.where(low & in_line, pushing, np.where(low & ~near, back, behind))
        return np.concatenate([xy, height], axis=1)


def _distance(now: Situation) -> np.ndarray:
    return length((now.thing - now.goal)[:, :2])


class PushToZone(RobotEnv):
    """Push the object that is meant into the zone that is meant.

    ## Description
    Three objects of different colours (a cube, a cylinder, a brick) and two coloured zones lie on a table. The
    instruction names one object and one zone: ``push the red cube to the yellow zone``.

    ## Observation Space
    `Dict`: `image` (uint8 [S, S, 3], from above for the pusher, from the front for the arm), `state` (float32: what the
    robot feels of itself, see ``Robot.feelings``), `instruction` (text), with ``wrist_image=True`` `wrist_image`.
    With ``observation="state"`` a `Box` of float32: what the robot feels; of the object that is meant its position, the
    way to it from the hand, cosine and sine of twice its turn, and its velocity; the way from it to the zone; the ways
    from the hand to the other objects.

    ## Action Space
    `Box(-1, 1, (2,), float32)` for the pusher: how far its finger moves along x and y, 3 cm at 1, 20 times a second.
    `(4,)` for the arm: x, y and z of its hand, and the gripper (-1 open, +1 closed). With ``chunk=K`` an action is K of
    them, [K, A].

    ## Rewards
    1 when the object's centre is in the zone, which is 7 cm in radius. With ``reward="dense"`` also progress as it is
    made, up to 1: two thirds for the object's way to the zone, one for the hand's way from half a metre to behind the
    object.

    ## Starting State
    Positions are drawn at random, so that nothing lies between object and zone, and belong to the train or to the test
    split. In the test split colours, verb and zone come in other combinations, and the words in other sentences.

    ## Episode End
    Terminated: success. Truncated: 5 seconds, or the simulation diverged.

    Args:
        **kwargs: See :class:`~tetrathlon.envs.robots.vector.MujocoVectorEnv`.

    ## Version History
    * v0: first version.
    """

    task = Push


class PushToZoneVector(RobotVectorEnv):
    """N copies of :class:`PushToZone` that step as one."""

    single = PushToZone
