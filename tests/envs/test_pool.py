"""Slots by id: the environment's own batch where that plays the same episodes, else copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tetrathlon.agents.naming import make_policy
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.pool import make_slots
from tetrathlon.envs.registry import make
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
