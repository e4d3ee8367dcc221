"""An arm with seven joints and a parallel gripper, whose hand is moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np

from tetrathlon.envs.robots.robot import Robot

if TYPE_CHECKING:
    from tetrathlon.envs.robots.world import World

_JOINTS = 7
_BASE = (-0.56, 0.0, 0.0)
# Offsets and turns (quaternions) from link to link, and the joints' ranges in radians: the Denavit-Hartenberg
# parameters of Franka Emika's Panda (its control documentation, "Robot and interface specifications").
_LINKS: tuple[tuple[tuple[float, float, float], tuple[float, float, float, float], tuple[float, float]], ...] = (
    ((0, 0, 0.333), (1, 0, 0, 0), (-2.8973, 2.8973)),
    ((0, 0, 0), (1, -1, 0, 0), (-1.7628, 1.7628)),
    ((0, -0.316, 0), (1, 1, 0, 0), (-2.8973, 2.8973)),
    ((0.0825, 0, 0), (1, 1, 0, 0), (-3.0718, -0.0698)),
    ((-0.0825, 0.384, 0), (1, -1, 0, 0), (-2.8973, 2.8973)),
    ((0, 0, 0), (1, 1, 0, 0), (-0.0175, 3.7525)),
    ((0.088, 0, 0), (1, 1, 0, 0), (-2.8973, 2.8973)),
)
# What a link looks like: from where to where, and how thick.
_CAPSULES: tuple[tuple[tuple[float, ...], float], ...] = (
    ((0, 0, -0.2, 0, 0, 0), 0.06),
    ((0, 0, 0, 0, -0.12, 0), 0.06),
    ((0, 0, -0.15, 0.0825, 0, 0), 0.055),
    ((0, 0, 0, -0.0825, 0.1, 0), 0.055),
    ((0, 0, -0.26, 0, 0.06, 0), 0.05),
    ((0, 0, 0, 0.088, 0, 0), 0.045),
    ((0, 0, 0, 0, 0, 0.07), 0.04),
)
_HOME = np.array([0.0, 0.1, 0.0, -2.3, 0.0, 2.4, 0.785])
_DOWN = np.array([0.0, 1.0, 0.0, 0.0])  # the hand's turn (quaternion) when its fingers point down, along y
_OPEN = 0.04  # metres of each finger
_FINGER = 0.0584  # metres from the hand to its fingers' roots
_TIP = 0.1234  # metres from the hand to the point between the fingertips
_DAMPING = 0.05  # of the inverse kinematics
_POSTURE = 0.1  # how much of the way back to the posture of rest, in directions that leave the hand where it is
_LEAD = 0.06


class Arm(Robot):
    """Seven joints like those of a Panda; an action moves the hand along x, y and z and sets the gripper.

    The hand always points down. The gripper's number is how far it is closed: -1 open, +1 closed.
    """

    name = "arm"
    actions = ("x", "y", "z", "gripper")
    root = "link1"
    camera = "front"
    reach = 0.03
    timestep = 0.005
    low = np.array([-0.2, -0.26, 0.008])
    high = np.array([0.16, 0.26, 0.22])
    feelings = (
        *("hand x", "hand y", "hand z", "commanded x", "commanded y", "commanded z", "gripper opening"),
        *(f"joint {number}" for number in range(1, _JOINTS + 1)),
    )

    def add(self, spec: mujoco.MjSpec) -> None:
        """See :meth:`Robot.add`."""
        spec.worldbody.add_body(name="command", mocap=True)
        body = spec.worldbody
        base = spec.worldbody.add_body(name="base", pos=_BASE)
        base.add_geom(
            type=mujoco.mjtGeom.mjGEOM_CYLINDER,
            size=[0.07, 0.07, 0],
            pos=[0, 0, 0.07],
            rgba=[0.85, 0.85, 0.87, 1],
            **_AIR,
        )
        body = base
        for number, ((offset, turn, limits), (ends, thick)) in enumerate(zip(_LINKS, _CAPSULES, strict=True), 1):
            body = body.add_body(name=f"link{number}", pos=offset, quat=turn, gravcomp=1.0)
            body.add_joint(
                name=f"joint{number}",
                type=mujoco.mjtJoint.mjJNT_HINGE,
                axis=[0, 0, 1],
                range=limits,
                limited=mujoco.mjtLimited.mjLIMITED_TRUE,
                armature=0.1,
                damping=1.0,
            )
            body.add_geom(
                type=mujoco.mjtGeom.mjGEOM_CAPSULE,
                fromto=ends,
                size=[thick, 0, 0],
                mass=2.0 if number < 5 else 1.0,
                rgba=[0.93, 0.93, 0.95, 1] if number % 2 else [0.75, 0.77, 0.8, 1],
                **_AIR,
            )
        hand = body.add_body(name="hand", pos=[0, 0, 0.107], quat=[0.9238795, 0, 0, -0.3826834], gravcomp=1.0)
        hand.add_geom(
            name="palm",
            type=mujoco.mjtGeom.mjGEOM_BOX,
            size=[0.02, 0.1, 0.03],
            pos=[0, 0, 0.03],
            mass=0.5,
            rgba=[0.3, 0.3, 0.33, 1],
        )
        hand.add_site(name="hand", pos=[0, 0, _TIP])
        hand.add_camera(name="wrist", pos=[0.07, 0, 0.0], quat=[0, 0.7071068, 0.7071068, 0], fovy=75)
        for number, side in enumerate((1, -1)):
            finger = hand.add_body(name=f"finger{number}", pos=[0, 0, _FINGER], gravcomp=1.0)
            finger.add_joint(
                name=f"finger{number}",
                type=mujoco.mjtJoint.mjJNT_SLIDE,
                axis=[0, side, 0],
                range=[0, _OPEN],
                limited=mujoco.mjtLimited.mjLIMITED_TRUE,
                armature=0.1,
                damping=5.0,
            )
            finger.add_geom(
                type=mujoco.mjtGeom.mjGEOM_BOX,
                size=[0.011, 0.006, 0.03],
                pos=[0, side * 0.006, 0.036],
                mass=0.05,
                rgba=[0.2, 0.2, 0.22, 1],
                friction=[1.5, 0.02, 0.001],
                condim=4,
                priority=1,
                solref=[0.01, 1],  # stiffer than the default, so that what is held stays where it is held
            )
        for number in range(1, _JOINTS + 1):
            actuator = spec.add_actuator(
                name=f"joint{number}", trntype=mujoco.mjtTrn.mjTRN_JOINT, target=f"joint{number}"
            )
            actuator.set_to_position(kp=1000, kv=120)  # soft enough that a full step tears nothing from the fingers
        for number in range(2):
            actuator = spec.add_actuator(
                name=f"finger{number}", trntype=mujoco.mjtTrn.mjTRN_JOINT, target=f"finger{number}"
            )
            actuator.set_to_position(kp=500, kv=30)
            actuator.forcerange = [-20, 20]
            actuator.forcelimited = mujoco.mjtLimited.mjLIMITED_TRUE

    def find(self, model: mujoco.MjModel) -> None:
        """See :meth:`Robot.find`."""
        self._qpos = int(model.joint("joint1").qposadr[0])
        self._dof = int(model.joint("joint1").dofadr[0])
        self._fingers = int(model.joint("finger0").qposadr[0])
        self._finger_dof = int(model.joint("finger0").dofadr[0])
        self._body = int(model.body("hand").id)
        self._site = int(model.site("hand").id)
        self._mocap = int(model.body("command").mocapid[0])
        self._low = np.array([limits[0] for *_, limits in _LINKS])
        self._high = np.array([limits[1] for *_, limits in _LINKS])
        self._model = model

    def place(self, world: World, i: int, hand: np.ndarray) -> None:
        """See :meth:`Robot.place`."""
        data = mujoco.MjData(self._model)
        joints = data.qpos[self._qpos : self._qpos + _JOINTS]
        joints[:] = _HOME
        jacobian = np.zeros((2, 3, self._model.nv))
        for _ in range(100):
            mujoco.mj_kinematics(self._model, data)
            mujoco.mj_comPos(self._model, data)
            mujoco.mj_jacSite(self._model, data, jacobian[0], jacobian[1], self._site)
            error = _pose_error(hand[None], data.site_xpos[self._site][None], data.xquat[self._body][None])
            if np.abs(error).max() < 1e-6:
                break
            step = jacobian[..., self._dof : self._dof + _JOINTS].reshape(1, 6, _JOINTS)
            joints += _solve(step, error, _HOME[None])[0]  # from the posture of rest: none to go back to
            np.clip(joints, self._low, self._high, out=joints)
        world.qpos[i, self._qpos : self._qpos + _JOINTS] = joints
        world.qpos[i, self._fingers : self._fingers + 2] = _OPEN
        world.ctrl[i, :_JOINTS] = joints
        world.ctrl[i, _JOINTS:] = _OPEN
        world.mocap_pos[i, self._mocap] = hand

    def command(self, world: World, ids: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Robot.command`."""
        at = self.hand(world)[ids]
        asked = world.mocap_pos[ids, self._mocap] + self.reach * actions[:, :3]
        bounded = np.clip(asked, self.low, self.high)
        goal = np.clip(bounded, at - _LEAD, at + _LEAD)
        world.mocap_pos[ids, self._mocap] = goal
        error = _pose_error(goal, at, world.body_quat(self._body)[ids])
        linear, angular = world.batch.jac(self._body, at, ids)
        arm = slice(self._dof, self._dof + _JOINTS)
        jacobian = np.ascontiguousarray(np.concatenate([linear[:, :, arm], angular[:, :, arm]], axis=1))
        joints = world.qpos[ids, self._qpos : self._qpos + _JOINTS]
        world.ctrl[ids, :_JOINTS] = np.clip(joints + _solve(jacobian, error, joints), self._low, self._high)
        world.ctrl[ids, _JOINTS:] = _OPEN * (1.0 - actions[:, 3:]) / 2
        return (asked != bounded).any(axis=-1)

    def hand(self, world: World) -> np.ndarray:
        """See :meth:`Robot.hand`; the point between the fingertips."""
        return world.site(self._site)

    def commanded(self, world: World) -> np.ndarray:
        """See :meth:`Robot.commanded`."""
        return world.mocap_pos[:, self._mocap]

    def opening(self, world: World) -> np.ndarray:
        """Return how far the fingers are apart, in metres, [N]."""
        return world.qpos[:, self._fingers] + world.qpos[:, self._fingers + 1]

    def opening_speed(self, world: World) -> np.ndarray:
        """Return how fast they part, in metres a second, [N]."""
        return world.qvel[:, self._finger_dof] + world.qvel[:, self._finger_dof + 1]

    def feel(self, world: World) -> np.ndarray:
        """See :meth:`Robot.feel`; metres and radians."""
        joints = world.qpos[:, self._qpos : self._qpos + _JOINTS]
        return np.concatenate([self.hand(world), self.commanded(world), self.opening(world)[:, None], joints], axis=1)

    def at_limit(self, world: World) -> np.ndarray:
        """See :meth:`Robot.at_limit`."""
        joints = world.qpos[:, self._qpos : self._qpos + _JOINTS]
        margin = 0.01 * (self._high - self._low)
        return ((joints < self._low + margin) | (joints > self._high - margin)).any(axis=-1)

    def move(self, world: World, goal: np.ndarray, grip: np.ndarray | None = None) -> np.ndarray:
        """See :meth:`Robot.move`."""
        closed = np.ones(world.n) if grip is None else grip
        return np.concatenate([self.steps_to(world, goal), closed[:, None]], axis=1)


_AIR = {"contype": 0, "conaffinity": 0}  # links collide with nothing: the hand is always lower


def _pose_error(goal: np.ndarray, at: np.ndarray, quat: np.ndarray) -> np.ndarray:
    """Return how far and how turned hands are from ``goal``, pointing down, [n, 6] in metres and radians."""
    # The rotation from the present turn to the wanted one: wanted * conjugate(present).
    w, x, y, z = (quat[:, k] for k in range(4))
    dw, dx, dy, dz = _DOWN
    real = dw * w + dx * x + dy * y + dz * z
    axis = np.stack(
        [
            -dw * x + dx * w - dy * z + dz * y,
            -dw * y + dx * z + dy * w - dz * x,
            -dw * z - dx * y + dy * x + dz * w,
        ],
        axis=1,
    )
    return np.concatenate([goal - at, 2.0 * np.sign(real)[:, None] * axis], axis=1)


def _solve(jacobian: np.ndarray, error: np.ndarray, joints: np.ndarray) -> np.ndarray:
    """Return joint steps [n, 7] by damped least squares, the rest of the freedom spent on the posture of rest."""
    transposed = jacobian.transpose(0, 2, 1)
    square = jacobian @ transposed + _DAMPING**2 * np.eye(6)
    home = _POSTURE * (_HOME - joints)
    wanted = error - (jacobian @ home[..., None])[..., 0]
    return home + (transposed @ np.linalg.solve(square, wanted[..., None]))[..., 0]
