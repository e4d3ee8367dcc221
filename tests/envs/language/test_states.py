"""States of language environments: whose they are, and that whole environments are pickled."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tetrathlon.envs.registry import listings, make

IDS = [listing.id for listing in (*listings("text"), *listings("tools"))]
"""Every registered one."""


def made(env_id: str) -> Any:
    """The environment alone; one that needs data or a package that is not here is left out."""
    try:
        return make(env_id).unwrapped
    except (gym.error.DependencyNotInstalled, FileNotFoundError) as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def states() -> dict[str, Any]:
    found = {}
    for env_id in IDS:
        try:
            env: Any = make(env_id).unwrapped
        except (gym.error.DependencyNotInstalled, FileNotFoundError):
            continue
        env.reset(seed=3)
        found[env_id] = env.get_state()
        env.close()
    return found


@pytest.mark.parametrize("env_id", IDS)
def test_a_state_of_another_environment_is_refused_and_nothing_is_lost(env_id: str, states: dict[str, Any]) -> None:
    env = made(env_id)
    name = type(env).__name__
    env.reset(seed=1)
    before = env.get_state()
    assert before["of"] == name
    wanted = rf"a state must be what get_state\(\) of {name} returned, got "
    for other, state in states.items():
        if other != env_id:
            with pytest.raises(ValueError, match=rf"{wanted}one of \w+"):
                env.set_state(state)
    spoilt = [{key: value for key, value in before.items() if key != left} for left in before]
    spoilt += [{**before, "task": 5}, {**before, "rng": {}}, {**before, "rng": None}]
    spoilt += [{**before, "play": {}}, {**before, "play": 5}] if "play" in before else []
    strange: list[Any] = [None, {}, 5, [], "x", {"rng": 1}]
    for odd in strange + spoilt:
        with pytest.raises(ValueError, match=wanted) as told:
            env.set_state(odd)
        assert len(str(told.value)) < 400
    assert str(env.get_state()) == str(before)
    assert env.step(env.expert_action())[1] is not None
    env.close()


@pytest.mark.parametrize("env_id", IDS)
def test_an_environment_is_pickled_new_and_under_way(env_id: str) -> None:
    env = made(env_id)
    twin = pickle.loads(pickle.dumps(env))
    assert twin.reset(seed=2)[0] == env.reset(seed=2)[0]
    for other in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
        assert other.expert_action() == env.expert_action()
        first, second = other.step(other.expert_action()), twin.step(twin.expert_action())
        assert first[:4] == second[:4]
        twin.reset(seed=2)
        other.close()
    env.close()
    twin.close()


@pytest.mark.parametrize("answer_format", ["boxed", "tag", "plain"])
def test_every_format_is_pickled(answer_format: str) -> None:
    for env_id in ("LetterCount", "Mathematics", "Lookup", "WordProblems"):
        try:
            env: Any = make(env_id, answer_format=answer_format).unwrapped
        except (gym.error.Error, TypeError, ValueError):
            continue
        twin = pickle.loads(pickle.dumps(env))
        assert np.array_equal(twin.reset(seed=0)[0], env.reset(seed=0)[0])
