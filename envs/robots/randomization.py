"""Domain randomisation: what differs from episode to episode so that a policy does not rely on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tetrathlon.envs.robots.world import World

Level = Literal["none", "mild", "strong"]
_LONGEST_DELAY = 2


@dataclass(frozen=True)
class Ranges:
    """How far things may differ; factors are drawn log-uniformly from 1 / (1 + x) to 1 + x."""

    friction: float
    """Factor of sliding friction of objects and table."""
    mass: float
    """Factor of the objects' masses."""
    gain: float
    """Factor of the actuators' gains."""
    camera: float
    """Metres that cameras are moved along each axis at most."""
    light: float
    """Factor of the lamps' brightness; their position moves by as many metres at most."""
    colour: float
    """What is added to each part of a colour, from 0 to 1, at most."""
    delay: int
    """Control steps until an action is obeyed, at most."""


LEVELS: dict[str, Ranges] = {
    "none": Ranges(0, 0, 0, 0, 0, 0, 0),
    "mild": Ranges(0.2, 0.2, 0.1, 0.01, 0.15, 0.04, 0),
    "strong": Ranges(0.6, 0.6, 0.3, 0.04, 0.5, 0.1, _LONGEST_DELAY),
}
"""By the name of the constructor's argument."""
_PHYSICS = ("geom_friction", "body_mass", "body_inertia", "actuator_gainprm", "actuator_biasprm")
_LOOKS = ("cam_pos", "light_pos", "light_diffuse", "geom_rgba")


class Randomization:
    """Draws the randomisation of N simulations and keeps what was drawn.

    Args:
        world: The simulations.
        level: A name in :data:`LEVELS`.
    """

    def __init__(self, world: World, level: Level) -> None:
        self._world, self._ranges = world, LEVELS[level]
        self.level = level
        model, n = world.scene.model, world.n
        self._on = level != "none"
        self._plain = {name: getattr(model, name).copy() for name in (*_PHYSICS, *_LOOKS)}
        self._values = (
            {name: np.repeat(value[None], n, axis=0) for name, value in self._plain.items()} if self._on else {}
        )
        self._live = {name: world.batch.expand(name) for name in _PHYSICS} if self._on else {}
        actions = len(world.scene.layout.robot.actions)
        self._delay = np.zeros(n, dtype=np.int64)
        self._queue = np.zeros((n, _LONGEST_DELAY, actions))

    def draw(self, i: int, rng: np.random.Generator) -> None:
        """Draw for simulation ``i``; :meth:`apply` has to follow."""
        self._queue[i], self._delay[i] = 0.0, 0
        if not self._on:
            return
        ranges, scene = self._ranges, self._world.scene

        def factor(width: float, size: int | None = None) -> np.ndarray:
            return np.exp(rng.uniform(-1.0, 1.0, size) * np.log1p(width))

        values = {name: value.copy() for name, value in self._plain.items()}
        values["geom_friction"][:, 0] *= factor(ranges.friction)
        masses = factor(ranges.mass, len(scene.objects))
        values["body_mass"][scene.objects] *= masses
        values["body_inertia"][scene.objects] *= masses[:, None]
        gain = factor(ranges.gain)
        values["actuator_gainprm"][:, 0] *= gain
        values["actuator_biasprm"][:, 1:3] *= gain
        values["cam_pos"] += rng.uniform(-ranges.camera, ranges.camera, values["cam_pos"].shape)
        values["light_pos"] += rng.uniform(-ranges.light, ranges.light, values["light_pos"].shape)
        values["light_diffuse"] *= factor(ranges.light)
        values["geom_rgba"][:, :3] += rng.uniform(-ranges.colour, ranges.colour, values["geom_rgba"][:, :3].shape)
        np.clip(values["geom_rgba"], 0.0, 1.0, out=values["geom_rgba"])
        for name, value in values.items():
            self._values[name][i] = value
        self._delay[i] = rng.integers(ranges.delay + 1)

    def apply(self, ids: np.ndarray) -> None:
        """Give simulations what was drawn for them."""
        if not self._on:
            return
        for name, live in self._live.items():
            live[ids] = self._values[name][ids]
        self._world.batch.set_const(ids)

    def delayed(self, ids: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return the actions [N, A] that are obeyed now, and keep those of ``ids`` for later."""
        if not self._on:
            return actions
        line = np.concatenate([actions[:, None], self._queue], axis=1)  # newest first
        self._queue[ids] = line[ids, :-1]
        return line[np.arange(len(line)), self._delay]

    def look(self, i: int) -> dict[str, np.ndarray]:
        """Return the fields of the model that look otherwise in simulation ``i``."""
        return {name: self._values[name][i].copy() for name in _LOOKS} if self._on else {}

    def arrays(self) -> list[np.ndarray]:
        """Return all that was drawn, with leading N."""
        return [self._delay, self._queue, *self._values.values()]
