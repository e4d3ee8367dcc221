"""Slots by id: the environment's own batch where that plays the same episodes, else copies."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from tetrathlon.agents.naming import make_policy
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.pool import make_slots
from tetrathlon.envs.registry import make
from tetrathlon.envs.robots.push import Push
from tetrathlon.envs.slots import Slots
from tetrathlon.envs.vector_slots import VectorSlots

ROBOT = "tetrathlon/PushToZone-v0"
SETTINGS: dict[str, Any] = {"observation": "state", "randomization": "strong", "max_steps": 40}


@pytest.mark.parametrize(
    ("env_id", "kwargs", "options", "kind"),
    [
        (ROBOT, SETTINGS, {}, VectorSlots),
        (ROBOT, SETTINGS, {"vector": False}, Slots),
        (ROBOT, {**SETTINGS, "max_episode_steps": 3}, {}, Slots),  # a wrapper of Gymnasium's, which a batch has not
        ("CartPole-v1", {}, {}, Slots),  # its batch cannot start a slot from a seed
        ("CartPole-v1", {}, {"seed": lambda: 1}, VectorSlots),
        ("tetrathlon/Arithmetic-v0", {}, {"seed": lambda: 1}, Slots),
    ],
)
def test_who_plays(env_id: str, kwargs: dict[str, Any], options: dict[str, Any], kind: type) -> None:
    slots = make_slots(env_id, 2, kwargs, **options)
    assert type(slots) is kind and len(slots) == 2
    slots.close()


class Counted(gym.Env[Any, Any]):
    """Takes an argument of an unlucky name."""

    observation_space = action_space = spaces.Discrete(2)

    def __init__(self, **kwargs: Any) -> None:
        assert kwargs == {"n": 3}


class Stubborn(gym.vector.VectorEnv[Any, Any, Any]):
    """A batch of another package, which nobody can use."""

    def __init__(self, **kwargs: Any) -> None:
        raise AssertionError("it is not asked for what it cannot do")


def test_what_cannot_start_a_slot_from_a_seed_is_not_even_made() -> None:
    gym.register("Counted-v0", entry_point=Counted, vector_entry_point=Stubborn)
    try:
        slots = make_slots("Counted-v0", 2, {"n": 3})
        assert type(slots) is Slots and len(slots) == 2
    finally:
        del gym.registry["Counted-v0"]


@pytest.mark.parametrize("action", [np.zeros(7), np.float32(0), np.zeros((2, 2)), "left", np.array([1j, 0])])
def test_what_is_no_action_is_ignored_in_a_batch_as_elsewhere(action: Any) -> None:
    slots = make_slots(ROBOT, 2, {**SETTINGS, "max_steps": 3})
    slots.reset([0, 1], [0, 1])
    slots.ready()
    for _ in range(3):
        slots.send([0, 1], [action, np.ones(2, np.float32)])
        answers = slots.ready()
    assert [answer.info["ignored_actions"] for answer in answers] == [3, 0]
    assert answers[0].truncated and answers[0].reward == 0.0
    slots.close()


def test_a_reset_that_raises_costs_one_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = Push.chosen

    def sometimes(self: Push, rng: np.random.Generator, *others: Any) -> Any:
        instance = chosen(self, rng, *others)
        if instance.id == unlucky:
            raise gym.error.Error("no arrangement")
        return instance

    env = make(ROBOT, **SETTINGS)
    unlucky = env.reset(seed=4)[1]["task_id"]
    monkeypatch.setattr(Push, "chosen", sometimes)
    slots = make_slots(ROBOT, 3, SETTINGS)
    rollout = Rollout(make_policy("expert", env), slots, [Start(seed=seed) for seed in range(9)])
    assert [episode.seed for episode in rollout.episodes()] == [0, 1, 2, 3, 5, 6, 7, 8]
    assert rollout.crashes == ["Error: no arrangement"]
    slots.close()


def test_a_batch_plays_the_episodes_that_copies_play() -> None:
    """More starts than slots; some end early, so that slots go on at different times, and the last ones rest."""

    def played(vector: bool) -> list[Episode]:
        slots = make_slots(ROBOT, 3, SETTINGS, vector=vector)
        policy: Any = make_policy("expert", make(ROBOT, **SETTINGS))
        rollout = Rollout(policy, slots, [Start(seed=seed, group=seed) for seed in range(7)])
        episodes = rollout.episodes()
        slots.close()
        return episodes

    batch, copies = played(True), played(False)
    assert [episode.seed for episode in batch] == list(range(7))
    assert len({len(episode) for episode in batch}) > 2
    for one, other in zip(batch, copies, strict=True):
        assert len(one) == len(other) and one.info == other.info
        assert np.array_equal(one.final_observation, other.final_observation)
        for mine, theirs in zip(one.steps, other.steps, strict=True):
            assert np.array_equal(mine.observation, theirs.observation)
            assert np.array_equal(mine.action, theirs.action)
            for name in ("reward", "terminated", "truncated", "info"):
                assert getattr(mine, name) == getattr(theirs, name)
