"""A table, a robot and what lies before it, as one MuJoCo model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import mujoco
import numpy as np

if TYPE_CHECKING:
    from tetrathlon.envs.robots.robot import Robot

Shape = Literal["cube", "cylinder", "brick", "vase"]
PlaceKind = Literal["none", "zone", "plate", "bin"]

PERIOD = 0.05
"""Seconds of one control step: 20 Hz."""
ZONE_RADIUS = 0.07
"""Metres."""
PLATE_HEIGHT = 0.006
"""Metres from the table to where things lie on a plate."""
BIN_HALF = 0.06
"""Half the inner width of a bin, in metres."""
BIN_FLOOR = 0.004
"""Metres from the table to where things lie in a bin."""
BIN_WALL = 0.004
"""Half the thickness of a bin's walls, in metres."""
_MASS = 0.1
_SENSED = (1 << mujoco.mjtConDataField.mjCONDATA_FORCE.value, 3, 1)
"""A contact sensor's parameters: the force, all contacts summed, one reading."""


@dataclass(frozen=True)
class Size:
    """Of a kind of object, in metres."""

    half: tuple[float, float, float]
    """Half extents; of a cylinder radius, radius and half height."""

    @property
    def radius(self) -> float:
        """Of the circle around it, seen from above."""
        return float(np.hypot(self.half[0], self.half[1])) if self.half[0] != self.half[1] else self.half[0] * 2**0.5


@dataclass(frozen=True)
class Layout:
    """What a scene is made of; scenes of one layout share a model."""

    robot: Robot
    """Which robot."""
    shapes: tuple[Shape, ...]
    """One object each."""
    scale: float
    """Half the width of a cube, in metres; other shapes follow."""
    places: tuple[PlaceKind, ...] = ()
    """Where things go, each at a place that differs by instance."""

    def size(self, shape: Shape) -> Size:
        """Return how large an object of ``shape`` is."""
        s = self.scale
        return Size(
            {
                "cube": (s, s, s),
                "cylinder": (s, s, s * 0.8),
                "brick": (s * 1.5, s * 0.75, s),
                "vase": (s, s, s * 1.15),
            }[shape]
        )


class Scene:
    """A compiled layout, and where in MuJoCo's arrays its parts are.

    Attributes:
        model: The model, shared by all of its simulations.
        substeps: Steps of the simulation in a control step.
        objects: Body of each object, [K].
        object_joint: First position of each object's free joint in ``qpos``, [K].
        object_dof: First of its velocities in ``qvel``, [K].
        object_geom: Its geom that has its colour, [K].
        places: Body of each place, [Z].
        place_mocap: Its number among the mocap bodies, [Z].
        place_geoms: Its geoms, Z lists.
        touch: Where the readings are of the force between the robot and each object, and the table last, [K + 1, 3].
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.substeps = round(PERIOD / layout.robot.timestep)
        spec = _table()
        spec.option.timestep = layout.robot.timestep
        for number, shape in enumerate(layout.shapes):
            _add_object(spec, f"object{number}", layout, shape)
        for number, kind in enumerate(layout.places):
            _add_place(spec, f"place{number}", kind)
        layout.robot.add(spec)
        names = [f"object{number}" for number in range(len(layout.shapes))]
        for name in ("table", *names):
            is_table = name == "table"
            spec.add_sensor(
                name=f"touch_{name}",
                type=mujoco.mjtSensor.mjSENS_CONTACT,
                objtype=mujoco.mjtObj.mjOBJ_XBODY,
                objname=layout.robot.root,
                reftype=mujoco.mjtObj.mjOBJ_GEOM if is_table else mujoco.mjtObj.mjOBJ_BODY,
                refname=name,
                intprm=_SENSED,
            )
        self.model: mujoco.MjModel = spec.compile()
        model = self.model
        self.objects = np.array([model.body(name).id for name in names])
        self.object_joint = np.array([model.joint(name).qposadr[0] for name in names])
        self.object_dof = np.array([model.joint(name).dofadr[0] for name in names])
        self.object_geom = np.array([model.body(name).geomadr[0] for name in names])
        self.half_heights = np.array([layout.size(shape).half[2] for shape in layout.shapes])
        places = [f"place{number}" for number in range(len(layout.places))]
        self.places = np.array([model.body(name).id for name in places], dtype=int)
        self.place_mocap = np.array([model.body(name).mocapid[0] for name in places], dtype=int)
        self.place_geoms = [
            list(range(model.body(name).geomadr[0], model.body(name).geomadr[0] + model.body(name).geomnum[0]))
            for name in places
        ]
        first = [model.sensor(f"touch_{name}").adr[0] for name in (*names, "table")]
        self.touch = np.add.outer(first, np.arange(3))
        layout.robot.find(model)


def _table() -> mujoco.MjSpec:
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = 5
    spec.visual.global_.offwidth = spec.visual.global_.offheight = 1024
    spec.visual.map.znear = 0.02
    spec.visual.headlight.ambient = [0.45, 0.45, 0.45]
    spec.visual.headlight.diffuse = [0.35, 0.35, 0.35]
    spec.visual.headlight.specular = [0, 0, 0]
    world = spec.worldbody
    world.add_light(
        name="lamp", pos=[0.3, -0.4, 1.5], dir=[-0.2, 0.27, -1], diffuse=[0.45, 0.45, 0.45], castshadow=True
    )
    world.add_geom(
        name="table",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[0.8, 0.8, 0.1],
        rgba=[0.42, 0.36, 0.32, 1],
        friction=[0.6, 0.005, 0.0001],
    )
    world.add_camera(name="above", pos=[0, 0, 0.95], fovy=42)
    world.add_camera(name="front", pos=[-0.03, -0.72, 0.72], fovy=38, xyaxes=[1, 0, 0, 0, 0.7, 0.71])
    return spec


def _add_object(spec: mujoco.MjSpec, name: str, layout: Layout, shape: Shape) -> None:
    half = layout.size(shape).half
    body = spec.worldbody.add_body(name=name, pos=[0, 0, half[2]])
    body.add_freejoint(name=name)
    surface = {"friction": [0.8, 0.005, 0.0001], "condim": 4}
    if shape == "vase":  # a belly, and above it a white neck
        belly, neck = 0.65 * half[2], 0.35 * half[2]
        round_ = {"type": mujoco.mjtGeom.mjGEOM_CYLINDER, **surface}
        body.add_geom(size=[half[0], belly, 0], pos=[0, 0, belly - half[2]], mass=0.8 * _MASS, **round_)
        white = [0.97, 0.97, 0.97, 1]
        body.add_geom(size=[half[0] / 2, neck, 0], pos=[0, 0, half[2] - neck], mass=0.2 * _MASS, rgba=white, **round_)
        return
    is_round = shape == "cylinder"
    body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_CYLINDER if is_round else mujoco.mjtGeom.mjGEOM_BOX,
        size=[half[0], half[2], 0] if is_round else half,
        mass=_MASS,
        **surface,
    )


def _add_place(spec: mujoco.MjSpec, name: str, kind: PlaceKind) -> None:
    body = spec.worldbody.add_body(name=name, mocap=True)
    if kind in ("zone", "plate"):
        thick = 0.001 if kind == "zone" else PLATE_HEIGHT
        solid = int(kind == "plate")
        body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_CYLINDER,
            size=[ZONE_RADIUS, thick / 2, 0],
            pos=[0, 0, thick / 2],
            contype=solid,
            conaffinity=solid,
        )
        return
    floor = BIN_FLOOR / 2
    body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[BIN_HALF, BIN_HALF, floor], pos=[0, 0, floor])
    wall, height = BIN_WALL, 0.02
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX,
            size=[wall if x else BIN_HALF + 2 * wall, wall if y else BIN_HALF + 2 * wall, height],
            pos=[x * (BIN_HALF + wall), y * (BIN_HALF + wall), height],
        )


def rgba(colours: Sequence[tuple[float, float, float]]) -> np.ndarray:
    """Return opaque colours as float32 [N, 4]."""
    return np.array([(*colour, 1.0) for colour in colours], dtype=np.float32).reshape(-1, 4)
