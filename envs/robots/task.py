"""What is asked of a robot: instances, success, progress and an expert, for all simulations at once."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from tetrathlon.envs.arguments import flag, index_option
from tetrathlon.envs.robots.instance import Instance, arrangement_split, scatter
from tetrathlon.envs.robots.instruction import OBJECT_COLOURS, PLACE_COLOURS, Wordings, held_out, sentence
from tetrathlon.envs.robots.randomization import Randomization
from tetrathlon.envs.robots.robot import Robot
from tetrathlon.envs.robots.scene import BIN_HALF, BIN_WALL, ZONE_RADIUS, Layout, PlaceKind, Shape
from tetrathlon.envs.robots.world import World
from tetrathlon.envs.splits import SPLITS

_MOST_DRAWS = 2_000
_INDEX_STREAM = 0x0B07  # keeps random access apart from seeds
Places = Sequence[tuple[float, float, float]]
"""x and y in metres and the turn in radians of each object."""
_EDGE = 0.04  # metres from the edge of the workspace to the centre of what lies in it


class Situation:
    """The instances under way in a world, as arrays.

    Attributes:
        world: Their simulations.
        robot: Their robot.
        target: Which object each is about, [N].
        place: Which place each is about, [N].
        start: Where its objects were at the start, [N, K, 3].
        rows: 0 to N - 1.
    """

    def __init__(self, world: World) -> None:
        self.world, self.robot = world, world.scene.layout.robot
        self.target = np.zeros(world.n, dtype=int)
        self.place = np.zeros(world.n, dtype=int)
        self.start = np.zeros((world.n, len(world.scene.objects), 3))
        self.rows = np.arange(world.n)

    def put(self, i: int, instance: Instance) -> None:
        """Arrange simulation ``i``; it has to settle then."""
        world, scene = self.world, self.world.scene
        self.target[i], self.place[i] = instance.target, instance.place
        self.robot.place(world, i, np.array(instance.hand))
        for k, (x, y, turn) in enumerate(instance.objects):
            at = scene.object_joint[k]
            world.qpos[i, at : at + 7] = (x, y, scene.half_heights[k], np.cos(turn / 2), 0, 0, np.sin(turn / 2))
        for mocap, (x, y) in zip(scene.place_mocap, instance.places, strict=True):
            world.mocap_pos[i, mocap] = (x, y, 0.0)

    @property
    def hand(self) -> np.ndarray:
        """Where the hand is, [N, 3]."""
        return self.robot.hand(self.world)

    @property
    def thing(self) -> np.ndarray:
        """Where the object is that it is about, [N, 3]."""
        return self.world.objects[self.rows, self.target]

    @property
    def velocity(self) -> np.ndarray:
        """How fast that object moves, in metres a second, [N, 3]."""
        dofs = self.world.scene.object_dof[self.target]
        return self.world.qvel[self.rows[:, None], dofs[:, None] + np.arange(3)]

    @property
    def half_height(self) -> np.ndarray:
        """Half the height of that object when it stands, [N]."""
        return self.world.scene.half_heights[self.target]

    @property
    def others(self) -> np.ndarray:
        """Where the objects are that it is not about, [N, K - 1, 3]."""
        count = self.start.shape[1]
        others = (self.target[:, None] + 1 + np.arange(count - 1)) % count
        return self.world.objects[self.rows[:, None], others]

    @property
    def goal(self) -> np.ndarray:
        """Where the place is that it is about, [N, 3]."""
        return self.world.places[self.rows, self.place]


class Task(ABC):
    """A kind of task; it holds nothing of an episode.

    Attributes:
        name: What its environments are called.
        verb: Its number in the rule of what the test split holds out.
        robots: Names of those that can do it, the default first.
        wordings: How it is said.
        shapes: One object each.
        places: Where things may go.
        scale: Half the width of a cube, in metres.
        seconds: How long an episode may take, at 20 Hz.
        spread: Half the width of the square in which things lie, in metres.
        turns: How far things are turned at most, in radians.
    """

    name: ClassVar[str]
    verb: ClassVar[int]
    robots: ClassVar[tuple[str, ...]] = ("arm",)
    wordings: ClassVar[Wordings]
    shapes: ClassVar[tuple[Shape, ...]]
    places: ClassVar[tuple[PlaceKind, ...]] = ()
    scale: ClassVar[float] = 0.03
    seconds: ClassVar[float] = 5.0
    spread: ClassVar[float] = 0.24
    turns: ClassVar[float] = math.pi

    def layout(self, robot: Robot) -> Layout:
        """Return what its scene is made of."""
        return Layout(robot, self.shapes, self.scale, self.places)

    @property
    def feature_count(self) -> int:
        """How many numbers :meth:`features` gives."""
        return 11 + 3 * bool(self.places) + 3 * (len(self.shapes) - 1)

    def features(self, now: Situation) -> np.ndarray:
        """Return what a policy without eyes is told, [N, F]: the object that is meant, the place, the other objects.

        Of the object its position, the way to it from the hand, twice the turn as cosine and sine (a cube looks the
        same after half of it), and its velocity; then the way from it to the place, and those from the hand to the
        others; in metres and seconds. Ways, because a network that has to find them by itself needs several times the
        data.
        """
        world, rows = now.world, now.rows
        quats = world.object_quats[rows, now.target]
        turn = 2 * np.arctan2(quats[:, 3], quats[:, 0])
        hand, thing = now.hand, now.thing
        parts = [thing, thing - hand, np.cos(2 * turn)[:, None], np.sin(2 * turn)[:, None], now.velocity]
        if self.places:
            parts.append(now.goal - thing)
        parts.append((now.others - hand[:, None]).reshape(len(rows), -1))
        return np.concatenate(parts, axis=1)

    @abstractmethod
    def progress(self, now: Situation) -> np.ndarray:
        """Return how far each is from 0 to 1, [N]."""

    @abstractmethod
    def success(self, now: Situation) -> np.ndarray:
        """Return whether each is done, bool [N]."""

    @abstractmethod
    def expert(self, now: Situation) -> np.ndarray:
        """Return a good next action for each, [N, A]."""

    def candidates(self) -> list[int]:
        """Return which objects it may be about."""
        return [k for k in range(len(self.shapes)) if k not in self.fragile]

    @property
    def fragile(self) -> list[int]:
        """Which objects must not be touched."""
        return [k for k, shape in enumerate(self.shapes) if shape == "vase"]

    def _asked_place(self, colours: tuple[str, ...], place: int) -> str | None:
        return colours[place] if colours else None

    def chosen(
        self, rng: np.random.Generator, split: str, robot: Robot, options: Mapping[str, Any] | None = None
    ) -> Instance:
        """Return the instance that a reset's options ask for, or else the next one that is drawn.

        Args:
            rng: All randomness.
            split: ``"train"`` or ``"test"``.
            robot: Who plays.
            options: ``instance``, ``index``, ``counterfactual``.

        Raises:
            ValueError: An option has no such value.
        """
        options = options or {}
        if (given := options.get("instance")) is not None:
            if not isinstance(given, Instance):
                raise ValueError(f"options['instance'] must be an Instance, got {given!r}")
            return given
        if (index := options.get("index")) is not None:
            rng = np.random.default_rng([_INDEX_STREAM, SPLITS.index(split), index_option(index)])
        instance = self.draw(rng, split, robot)
        is_other = flag("options['counterfactual']", options.get("counterfactual", False))
        return self.counterfactual(instance, split) if is_other else instance

    def draw(self, rng: np.random.Generator, split: str, robot: Robot) -> Instance:
        """Draw an instance of a split.

        The object it is about is never the only one of its split: its counterfactual asks for another.

        Args:
            rng: All randomness.
            split: ``"train"`` or ``"test"``.
            robot: Who plays.

        Raises:
            gymnasium.error.Error: None was found in many draws.
        """
        colours, targets, place_colours, place = self._colours(rng, split)
        for _ in range(_MOST_DRAWS):
            arranged = self._arrange(rng, robot, targets[0], place)
            if arranged is not None and arrangement_split(*arranged) == split:
                break
        else:
            raise gym.error.Error(f"no arrangement of the {split} split in {_MOST_DRAWS} draws")
        objects, places, hand = arranged
        wordings = self.wordings.of(split)
        phrases = wordings[int(rng.integers(len(wordings)))]
        return Instance(
            instruction=self._sentence(phrases, targets[0], place, colours, place_colours),
            phrases=phrases,
            target=targets[0],
            place=place,
            object_colours=colours,
            place_colours=place_colours,
            objects=objects,
            places=places,
            hand=hand,
        )

    def counterfactual(self, instance: Instance, split: str) -> Instance:
        """Return the same scene with another object asked for, in the same words and the same split."""
        colours, place_colours = instance.object_colours, instance.place_colours
        asked = self._asked_place(place_colours, instance.place)
        target = next(
            k
            for k in self.candidates()
            if k != instance.target and held_out(self.verb, colours[k], asked) == (split == "test")
        )
        said = self._sentence(instance.phrases, target, instance.place, colours, place_colours)
        return replace(instance, target=target, instruction=said)

    def _sentence(
        self, phrases: tuple[str, str, str], target: int, place: int, colours: tuple[str, ...], places: tuple[str, ...]
    ) -> str:
        thing = f"{colours[target]} {self.shapes[target]}"
        return sentence(phrases, thing, places[place] if places else "")

    def _colours(self, rng: np.random.Generator, split: str) -> tuple[tuple[str, ...], list[int], tuple[str, ...], int]:
        """Draw colours; return them, two objects that may be asked for, the places' colours and the asked place."""
        names = [str(name) for name in rng.permutation(list(PLACE_COLOURS))]
        place_colours = tuple(names[: len(self.places)])
        place = int(rng.integers(len(self.places))) if self.places else 0
        asked = self._asked_place(place_colours, place)
        shuffled = [str(name) for name in rng.permutation(list(OBJECT_COLOURS))]
        allowed = [name for name in shuffled if held_out(self.verb, name, asked) == (split == "test")][:2]
        rest = [name for name in shuffled if name not in allowed]
        order = [int(k) for k in rng.permutation(self.candidates())]
        colours = [""] * len(self.shapes)
        for k, name in zip([*order, *self.fragile], [*allowed, *rest], strict=False):
            colours[k] = name
        return tuple(colours), order[:2], place_colours, place

    def _arrange(
        self, rng: np.random.Generator, robot: Robot, target: int, place: int
    ) -> (
        tuple[tuple[tuple[float, float, float], ...], tuple[tuple[float, float], ...], tuple[float, float, float]]
        | None
    ):
        """Draw where everything is, or None where the draw did not fit."""
        layout = self.layout(robot)
        radii = [layout.size(shape).radius for shape in self.shapes]
        around = [(BIN_HALF + 2 * BIN_WALL) * 1.2 if kind == "bin" else ZONE_RADIUS for kind in self.places]
        centre = (robot.low + robot.high) / 2
        low = np.maximum(centre - self.spread, robot.low + _EDGE)
        high = np.minimum(centre + self.spread, robot.high - _EDGE)
        points = scatter(rng, [*around, *radii, 0.03], low, high)
        if points is None:
            return None
        z = len(around)
        objects = tuple((x, y, round(float(rng.uniform(-self.turns, self.turns)), 4)) for x, y in points[z:-1])
        moved = self.rearrange(rng, objects, tuple(points[:z]), target, place, points[-1])
        if moved is None or not self.fits(robot, moved, tuple(points[:z]), target, place):
            return None
        hand = (*points[-1], float(robot.high[2]))
        return moved, tuple(points[:z]), hand

    def rearrange(
        self,
        rng: np.random.Generator,
        objects: tuple[tuple[float, float, float], ...],
        places: Sequence[Sequence[float]],
        target: int,
        place: int,
        hand: tuple[float, float],
    ) -> tuple[tuple[float, float, float], ...] | None:
        """Return the objects with those moved that are not to lie just anywhere; None where there is no room."""
        return objects

    def fits(self, robot: Robot, objects: Places, places: Sequence[Sequence[float]], target: int, place: int) -> bool:
        """Tell whether the task can be done in this arrangement."""
        return True


def advice(task: Task, now: Situation) -> np.ndarray:
    """Return the expert's next actions as the space has them, float32 [N, A]."""
    return np.clip(task.expert(now), -1.0, 1.0).astype(np.float32)


def foreseen(task: Task, now: Situation, randomization: Randomization, steps: int) -> np.ndarray:
    """Return what the expert does in the next control steps, [N, steps, A]; ``now`` is played on."""
    given = []
    for _ in range(steps):
        given.append(advice(task, now))
        now.robot.command(now.world, now.rows, randomization.delayed(now.rows, given[-1].astype(np.float64)))
        now.world.step(now.rows)
    return np.stack(given, axis=1)
