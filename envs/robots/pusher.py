"""A round finger that slides over the table: the quick robot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np

from tetrathlon.envs.robots.robot import Robot

if TYPE_CHECKING:
    from tetrathlon.envs.robots.world import World

_RADIUS = 0.02
_HEIGHT = 0.03
_LEAD = 0.06  # metres that the command may be ahead of the hand, so that it does not wind up against what resists


class Pusher(Robot):
    """A finger with two sliding joints; an action is how far it moves along x and y."""

    name = "pusher"
    actions = ("x", "y")
    root = "hand"
    camera = "above"
    reach = 0.03
    timestep = 0.01
    low = np.array([-0.32, -0.32, _HEIGHT])
    high = np.array([0.32, 0.32, _HEIGHT])
    feelings = ("hand x", "hand y")  # a velocity or the command would let an imitator repeat what it does already

    def add(self, spec: mujoco.MjSpec) -> None:
        """See :meth:`Robot.add`."""
        body = spec.worldbody.add_body(name="hand", pos=[0, 0, _HEIGHT])
        for axis, name in enumerate("xy"):
            body.add_joint(
                name=name,
                type=mujoco.mjtJoint.mjJNT_SLIDE,
                axis=[1 - axis, axis, 0],
                range=[-0.36, 0.36],
                limited=mujoco.mjtLimited.mjLIMITED_TRUE,
            )
        body.add_geom(
            name="finger",
            type=mujoco.mjtGeom.mjGEOM_CYLINDER,
            size=[_RADIUS, _HEIGHT * 0.9, 0],
            mass=0.5,
            rgba=[0.25, 0.25, 0.3, 1],
            friction=[0.3, 0.005, 0.0001],
        )
        body.add_site(name="hand")
        for name in "xy":
            actuator = spec.add_actuator(name=name, trntype=mujoco.mjtTrn.mjTRN_JOINT, target=name)
            actuator.set_to_position(kp=300, kv=25)
            actuator.forcerange = [-30, 30]
            actuator.forcelimited = mujoco.mjtLimited.mjLIMITED_TRUE

    def find(self, model: mujoco.MjModel) -> None:
        """See :meth:`Robot.find`."""
        self._qpos = int(model.joint("x").qposadr[0])
        self._limit = float(model.joint("x").range[1])

    def place(self, world: World, i: int, hand: np.ndarray) -> None:
        """See :meth:`Robot.place`."""
        world.qpos[i, self._qpos : self._qpos + 2] = hand[:2]
        world.ctrl[i] = hand[:2]

    def command(self, world: World, ids: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Robot.command`."""
        asked = world.ctrl[ids] + self.reach * actions
        bounded = np.clip(asked, self.low[:2], self.high[:2])
        at = world.qpos[ids, self._qpos : self._qpos + 2]
        world.ctrl[ids] = np.clip(bounded, at - _LEAD, at + _LEAD)
        return (asked != bounded).any(axis=-1)

    def hand(self, world: World) -> np.ndarray:
        """See :meth:`Robot.hand`."""
        at = np.full((world.n, 3), _HEIGHT)
        at[:, :2] = world.qpos[:, self._qpos : self._qpos + 2]
        return at

    def commanded(self, world: World) -> np.ndarray:
        """See :meth:`Robot.commanded`."""
        at = np.full((world.n, 3), _HEIGHT)
        at[:, :2] = world.ctrl
        return at

    def feel(self, world: World) -> np.ndarray:
        """See :meth:`Robot.feel`; metres."""
        return world.qpos[:, self._qpos : self._qpos + 2].copy()

    def at_limit(self, world: World) -> np.ndarray:
        """See :meth:`Robot.at_limit`."""
        return (np.abs(world.qpos[:, self._qpos : self._qpos + 2]) > 0.99 * self._limit).any(axis=-1)

    def move(self, world: World, goal: np.ndarray, grip: np.ndarray | None = None) -> np.ndarray:
        """See :meth:`Robot.move`."""
        return self.steps_to(world, goal)[:, :2]
