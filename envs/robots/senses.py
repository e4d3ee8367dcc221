"""What a robot's policy sees: pictures, what the robot feels, and the instruction; or numbers alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from tetrathlon.envs.robots.camera import Camera, Quality
from tetrathlon.envs.robots.instance import Instance
from tetrathlon.envs.robots.instruction import OBJECT_COLOURS, PLACE_COLOURS
from tetrathlon.envs.robots.randomization import Randomization
from tetrathlon.envs.robots.scene import rgba
from tetrathlon.envs.robots.task import Situation, Task
from tetrathlon.envs.spaces import UnicodeText

Observation = Literal["pixels", "state"]
_LARGEST = 10.0  # metres, radians or metres a second: beyond is only what has diverged or fallen
_LONGEST_INSTRUCTION = 200


class Senses:
    """Observes N simulations.

    Args:
        task: What is asked.
        now: The instances under way.
        randomization: What looks otherwise.
        observation: ``"pixels"`` or ``"state"``.
        image_size: Width and height of a picture.
        wrist_image: Whether there is a picture from the hand.
        quality: Of the pictures.
        goal_steps: Steps after which the instruction is no longer shown; None: it stays.
    """

    def __init__(
        self,
        task: Task,
        now: Situation,
        randomization: Randomization,
        *,
        observation: Observation,
        image_size: int,
        wrist_image: bool,
        quality: Quality,
        goal_steps: int | None,
    ) -> None:
        self._task, self._now, self._randomization = task, now, randomization
        self._observation, self._size, self._quality = observation, image_size, quality
        self._cameras = [now.robot.camera, *(["wrist"] if wrist_image else [])]
        self._goal_steps = goal_steps
        shape = (now.world.n, image_size, image_size, 3)
        self._seen = [np.zeros(shape, np.uint8) for _ in self._cameras] if observation == "pixels" else []

    def space(self) -> spaces.Space[Any]:
        """Return the space of one observation."""
        count = len(self._now.robot.feelings)
        if self._observation == "state":
            return spaces.Box(-_LARGEST, _LARGEST, (count + self._task.feature_count,), np.float32)
        picture = spaces.Box(0, 255, (self._size, self._size, 3), np.uint8)
        names = ("image", "wrist_image")[: len(self._cameras)]
        return spaces.Dict(
            {
                **dict.fromkeys(names, picture),
                "state": spaces.Box(-_LARGEST, _LARGEST, (count,), np.float32),
                "instruction": UnicodeText(_LONGEST_INSTRUCTION),
            }
        )

    def observe(self, instances: Sequence[Instance | None], steps: np.ndarray, ids: np.ndarray) -> Any:
        """Return N observations, batched.

        Args:
            instances: One a simulation; None where nothing has begun.
            steps: Control steps that were made, [N].
            ids: Of which pictures are drawn; of the others they are what they were.
        """
        feelings = self._now.robot.feel(self._now.world)
        if self._observation == "state":
            return _finite(np.concatenate([feelings, self._task.features(self._now)], axis=1))
        self.draw(instances, ids)
        seen = dict(zip(("image", "wrist_image"), (kept.copy() for kept in self._seen), strict=False))
        hidden = np.zeros(len(steps), dtype=bool) if self._goal_steps is None else steps >= self._goal_steps
        said = ("" if each is None or hidden[i] else each.instruction for i, each in enumerate(instances))
        return {**seen, "state": _finite(feelings), "instruction": tuple(said)}

    def draw(self, instances: Sequence[Instance | None], ids: np.ndarray) -> None:
        """Draw the pictures of simulations that have changed, where pictures are seen."""
        if self._seen and len(ids):
            fresh = self._pictures(instances, self._size, self._cameras, ids.tolist())
            for kept, drawn in zip(self._seen, fresh, strict=True):
                kept[ids] = drawn

    def pictures(self, instances: Sequence[Instance | None], size: int) -> np.ndarray:
        """Return what the robot's own camera sees, uint8 [N, size, size, 3]."""
        return self._pictures(instances, size, self._cameras[:1], range(len(instances)))[0]

    def _pictures(
        self, instances: Sequence[Instance | None], size: int, cameras: Sequence[str], ids: Sequence[int]
    ) -> np.ndarray:
        world = self._now.world
        camera = Camera(world.scene, size, self._quality)
        return camera.pictures(world, ids, cameras, [self._look(i, instances[i]) for i in ids])

    def _look(self, i: int, instance: Instance | None) -> dict[str, np.ndarray]:
        """Return the model's fields that look otherwise in simulation ``i``."""
        scene = self._now.world.scene
        look = self._randomization.look(i)
        colours = look.setdefault("geom_rgba", scene.model.geom_rgba.copy())
        if instance is not None:
            colours[scene.object_geom] = rgba([OBJECT_COLOURS[name] for name in instance.object_colours])
            for geoms, name in zip(scene.place_geoms, instance.place_colours, strict=True):
                colours[geoms] = rgba([PLACE_COLOURS[name]])
        return look


def _finite(values: np.ndarray) -> np.ndarray:
    """Return float32 within the space; what is not finite, which only a diverged simulation has, becomes 0."""
    return np.clip(np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0), -_LARGEST, _LARGEST).astype(np.float32)
