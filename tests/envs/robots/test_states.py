"""States of robots: which environments they go to and fro between, and what is refused as one."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import tetrathlon  # noqa: F401  (registers the ids)
from tetrathlon.envs.robots.environment import RobotEnv
from tetrathlon.envs.robots.lift import PickAndLift
from tetrathlon.envs.robots.place import PlaceIn, PlaceOn
from tetrathlon.envs.robots.push import PushToZone
from tetrathlon.envs.robots.push_fragile import PushFragile
from tetrathlon.envs.robots.reach import Reach

ENVS: list[type[RobotEnv]] = [PickAndLift, PlaceIn, PlaceOn, PushFragile, PushToZone, Reach]


def begun(cls: type[RobotEnv], **settings: Any) -> RobotEnv:
    env = cls(observation="state", **settings)
    env.reset(seed=1)
    return env


def sizes(env: RobotEnv) -> list[tuple[int, ...]]:
    return [np.shape(array) for array in env.get_state()["arrays"]]


def test_tasks_are_called_as_their_environments_are() -> None:
    assert [cls.task.name for cls in ENVS] == [cls.__name__ for cls in ENVS]


def test_a_state_of_another_task_is_refused_whatever_its_size() -> None:
    envs = {(cls, robot): begun(cls, robot=robot) for cls in ENVS for robot in cls.task.robots}
    same_size = 0
    for (cls, robot), env in envs.items():
        before = env.step(np.zeros(env.action_space.shape))[0]
        kept = pickle.dumps(env.get_state()["arrays"])
        for (other_cls, other_robot), other in envs.items():
            if other is env:
                continue
            same_size += sizes(env) == sizes(other)
            said = (
                f"of {cls.__name__} with robot='{robot}' .* got one of {other_cls.__name__} with robot='{other_robot}'"
            )
            with pytest.raises(ValueError, match=said):
                env.set_state(other.get_state())
        assert pickle.dumps(env.get_state()["arrays"]) == kept
        assert np.array_equal(env.set_state(env.get_state())[0], before)
    assert same_size > 0


def test_a_state_goes_wherever_it_is_exact() -> None:
    one = begun(PushToZone, randomization="strong", reward="dense", chunk=2)
    other = begun(PushToZone, randomization="mild", split="test", max_steps=30)
    observation, _ = other.set_state(pickle.loads(pickle.dumps(one.get_state())))
    assert np.array_equal(observation, one.batch._observe(np.arange(1))[0])
    assert other.batch.get_states([0])[0]["instance"] == one.get_state()["instance"]


@pytest.mark.parametrize(("here", "there"), [("none", "strong"), ("mild", "none")])
def test_what_is_randomized_goes_to_what_is(here: str, there: str) -> None:
    said = "robot='pusher' and (no )?randomization returned, got one of PushToZone with robot='pusher' and (no )?random"
    with pytest.raises(ValueError, match=said):
        begun(PushToZone, randomization=here).set_state(begun(PushToZone, randomization=there).get_state())


def test_what_is_no_state_is_said() -> None:
    env = begun(PushToZone)
    state = env.get_state()
    words = gym.make("tetrathlon/Arithmetic-v0").unwrapped
    words.reset(seed=0)
    cases: list[tuple[Any, str]] = [
        ("here", "got 'here'"),
        (None, "got None"),
        ({}, "got {}"),
        (words.get_state(), "got one of Arithmetic"),  # type: ignore[attr-defined]
        ({name: part for name, part in state.items() if name != "of"}, "got {'arrays'"),
        ({name: part for name, part in state.items() if name != "rng"}, "got one without rng"),
        ({**state, "arrays": state["arrays"][:-1]}, "got one with arrays of the shapes"),
        ({**state, "arrays": [state["arrays"][0][:-1], *state["arrays"][1:]]}, "got one with arrays of the shapes"),
        ({**state, "instance": "push"}, "got one with the instance 'push'"),
        ({**state, "rng": {"state": 1}}, "got one with the generator {'state': 1}"),
    ]
    for given, got in cases:
        with pytest.raises(ValueError, match=rf"must be what get_state\(\) of PushToZone with robot='pusher' .*{got}"):
            env.set_state(given)
    assert len(pickle.dumps(state)) < 4_000
