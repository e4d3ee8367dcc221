"""What moves: a robot's body, how its actions are obeyed and how it feels itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import mujoco
import numpy as np

if TYPE_CHECKING:
    from tetrathlon.envs.robots.world import World


class Robot(ABC):
    """A robot that is told where to move its hand.

    All arrays have a leading N, the simulations of a world; ``ids`` are those that a call is about, [n].

    Attributes:
        name: How the constructor's argument calls it.
        actions: What each component of an action means.
        root: Its outermost body.
        camera: The camera that sees its table best.
        reach: Metres that the hand moves in a step at most, along one axis.
        timestep: Seconds of a step of its simulation.
        low: Lower corner of where the hand may go, in metres.
        high: Upper corner.
        feelings: Names of what :meth:`feel` returns.
    """

    name: ClassVar[str]
    actions: ClassVar[tuple[str, ...]]
    root: ClassVar[str]
    camera: ClassVar[str]
    reach: ClassVar[float]
    timestep: ClassVar[float]
    low: ClassVar[np.ndarray]
    high: ClassVar[np.ndarray]
    feelings: ClassVar[tuple[str, ...]]

    @abstractmethod
    def add(self, spec: mujoco.MjSpec) -> None:
        """Add bodies, actuators and cameras to a scene."""

    @abstractmethod
    def find(self, model: mujoco.MjModel) -> None:
        """Note where in the arrays of a compiled scene its parts are."""

    @abstractmethod
    def place(self, world: World, i: int, hand: np.ndarray) -> None:
        """Put the hand of simulation ``i`` at ``hand`` [3], at rest."""

    @abstractmethod
    def command(self, world: World, ids: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Obey actions [n, A] within [-1, 1] in the next step.

        Returns:
            Whether each asked to leave the workspace, bool [n].
        """

    @abstractmethod
    def hand(self, world: World) -> np.ndarray:
        """Return where the hand is, [N, 3]."""

    @abstractmethod
    def feel(self, world: World) -> np.ndarray:
        """Return what the robot knows of itself, [N, P]."""

    @abstractmethod
    def at_limit(self, world: World) -> np.ndarray:
        """Return whether a joint is at the end of its range, bool [N]."""

    @abstractmethod
    def move(self, world: World, goal: np.ndarray, grip: np.ndarray | None = None) -> np.ndarray:
        """Return actions [N, A] that bring the hand to ``goal`` [N, 3] as fast as it can.

        Args:
            world: The world.
            goal: Where.
            grip: From -1 (open) to 1 (closed), [N]; None: closed.
        """

    def steps_to(self, world: World, goal: np.ndarray) -> np.ndarray:
        """Return the move to ``goal`` [N, 3] in units of a full action, straight there and cut off at 1."""
        steps = (goal - self.commanded(world)) / self.reach
        return steps / np.maximum(np.abs(steps).max(axis=1, keepdims=True), 1.0)

    @abstractmethod
    def commanded(self, world: World) -> np.ndarray:
        """Return where the hand was told to be, [N, 3]."""
