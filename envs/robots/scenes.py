"""The scenes of tasks by the names of robots, each compiled once a process."""

from __future__ import annotations

from functools import cache

from tetrathlon.envs.robots.arm import Arm
from tetrathlon.envs.robots.pusher import Pusher
from tetrathlon.envs.robots.scene import Scene
from tetrathlon.envs.robots.task import Task

ROBOTS = {robot.name: robot for robot in (Pusher, Arm)}
"""By the name of the constructor's argument."""


@cache
def compiled(task: type[Task], robot: str) -> Scene:
    """Return the scene of a task with a robot."""
    return Scene(task().layout(ROBOTS[robot]()))
