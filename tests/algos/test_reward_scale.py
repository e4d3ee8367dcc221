"""Rewards on the scale of their returns, beside Stable-Baselines3."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.algos.toys import TablePolicy
from tetrathlon.agents.decisions import Decisions, layout
from tetrathlon.algos.learner import Learner
from tetrathlon.algos.options import Options
from tetrathlon.algos.reward_scale import RewardScale
from tetrathlon.envs.episode import Episode, Step

GAMMA = 0.9
N, T = 3, 60


def stretch(rewards: np.ndarray, terminated: np.ndarray, truncated: np.ndarray, open_info: list[Any]) -> list[Any]:
    """Rows of episodes of [N, T] rewards; ``open_info`` holds the infos of those under way."""
    rows = []
    for i in range(len(rewards)):
        row = [Episode(info=open_info[i])]
        for paid, ended, cut in zip(rewards[i], terminated[i], truncated[i], strict=True):
            row[-1].steps.append(Step(0, 0, float(paid), bool(ended), bool(cut), record={}))
            row[-1].final_observation = 0
            if ended or cut:
                row.append(Episode(info={}))
        open_info[i] = row[-1].info
        rows.append([episode for episode in row if episode.steps])
    return rows


def laid_out(rows: list[Any]) -> Decisions:
    return layout(rows, [[[(0, 1)] * len(episode) + [0] for episode in row] for row in rows])[0]


class Told(gym.Env[Any, Any]):
    """Pays and ends as it is told."""

    observation_space = action_space = spaces.Discrete(1)

    def __init__(self, rewards: np.ndarray, terminated: np.ndarray, truncated: np.ndarray) -> None:
        self.script = iter(zip(rewards, terminated, truncated, strict=True))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        return 0, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        paid, ended, cut = next(self.script)
        return 0, float(paid), bool(ended), bool(cut), {}


def _itself(env: Told) -> Told:
    return env


def test_the_numbers_are_those_of_stable_baselines3() -> None:
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    rng = np.random.default_rng(0)
    rewards = rng.normal(1.0, 3.0, (N, T)).astype(np.float32)
    rewards[0, 55] = 1000.0  # is clipped
    terminated, truncated = rng.random((2, N, T)) < 0.1
    envs = [Told(*script) for script in zip(rewards, terminated, truncated, strict=True)]
    peer = VecNormalize(DummyVecEnv([partial(_itself, env) for env in envs]), norm_obs=False, gamma=GAMMA)
    peer.reset()
    expected = np.stack([peer.step(np.zeros(N, int))[1] for _ in range(T)], axis=1)

    scale, found = RewardScale(GAMMA), []
    infos: list[Any] = [{} for _ in range(N)]
    for part in np.split(np.arange(T), [7, 40]):  # episodes go on from stretch to stretch
        rows = stretch(rewards[:, part], terminated[:, part], truncated[:, part], infos)
        batch = laid_out(rows)
        scaled = scale.scaled(batch, rows)
        assert not scaled[~batch.mask].any()
        found.append(scaled[batch.mask].reshape(N, len(part)).numpy())
    assert np.abs(expected).max() == 10.0
    np.testing.assert_allclose(np.concatenate(found, axis=1), expected, rtol=1e-6, atol=1e-6)
    assert scale.std == pytest.approx(np.sqrt(peer.ret_rms.var + 1e-8), rel=1e-6)


def test_chunks_are_discounted_by_their_steps() -> None:
    info: dict[str, Any] = {}
    steps = [Step(0, 0, 1.0, info={"step_rewards": [0.5] * 2}, record={}), Step(0, 0, 1.0, record={})]
    rows = [[Episode(steps, 0, info=info)]]
    scale = RewardScale(0.5)
    scale.scaled(laid_out(rows), rows)
    # returns 1 and 0.5**2 + 1, beside the prior
    assert scale.mean == pytest.approx(2.25 / 2.0001) and scale.count == pytest.approx(2.0001)
    rows = [[Episode([Step(0, 0, 0.0, terminated=True, record={})], 0, info=info)]]
    scale.scaled(laid_out(rows), rows)
    assert scale.mean == pytest.approx((2.25 + 0.5 * 1.25) / 3.0001)


def test_another_episode_begins_at_nothing() -> None:
    scale = RewardScale(1.0)
    for _ in range(2):  # the first one was lost with its environment
        rows = [[Episode([Step(0, 0, 4.0, record={})], 0, info={})]]
        scale.scaled(laid_out(rows), rows)
    assert scale.mean == pytest.approx(8 / 2.0001)


def test_what_always_pays_goes_on_paying() -> None:
    rows = [[Episode([Step(0, 0, 1.0, record={}) for _ in range(50)], 0)]]
    scaled = RewardScale(0.9).scaled(laid_out(rows), rows)
    assert bool((scaled[:, :50] > 0.1).all())


def test_it_goes_on_from_a_checkpoint() -> None:
    rng = np.random.default_rng(1)
    one, other = RewardScale(GAMMA), RewardScale(GAMMA)
    rows = [[Episode([Step(0, 0, float(x), record={}) for x in rng.normal(size=9)], 0)]]
    one.scaled(laid_out(rows), rows)
    other.load_state_dict(one.state_dict())
    fresh = [[Episode([Step(0, 0, float(x), record={}) for x in rng.normal(size=9)], 0, info={})]]
    assert torch.equal(one.scaled(laid_out(fresh), fresh), other.scaled(laid_out(fresh), fresh))


def test_a_learner_learns_from_scaled_rewards() -> None:
    def played(pay: float) -> list[list[Episode]]:
        record = {"logp": np.log(0.5)}
        return [[Episode([Step(0, i % 2, pay * (i % 2), record=record) for i in range(8)], 1)] for _ in range(2)]

    metrics = []
    for pay in (1.0, 1000.0):
        options = Options(advantage="gae", gamma=GAMMA, scale_rewards=True, lr=0.0, value_lr=0.0, value_coef=1.0)
        learner = Learner(TablePolicy(2, 2), options)
        metrics.append(learner.update(played(pay)))
        assert learner.state_dict()["reward_scale"]["count"] == pytest.approx(16, abs=1e-3)
    assert metrics[1]["reward"] == 1000 * metrics[0]["reward"]  # as it was paid
    assert metrics[1]["reward_scale"] == pytest.approx(1000 * metrics[0]["reward_scale"], rel=1e-3)
    assert metrics[1]["value_loss"] == pytest.approx(metrics[0]["value_loss"], rel=0.05)


def test_it_needs_rewards_that_are_read() -> None:
    with pytest.raises(ValueError, match=r"scale_rewards is of advantage='gae' and 'returns'.* got 'group'"):
        Options(advantage="group", scale_rewards=True)
