"""A log as it is learnt from: every step with what it led to, and with nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.algos.toys import TablePolicy
from tetrathlon.agents.control import ControlPolicy
from tetrathlon.agents.decisions import Decisions
from tetrathlon.algos.advantages import gae
from tetrathlon.algos.replay import Replay
from tetrathlon.envs.episode import Episode, Step

OBSERVATIONS = spaces.Box(-np.inf, np.inf, (1,), np.float32)
ACTIONS = spaces.Box(-1e6, 1e6, (1,), np.float32)


def counting(lengths: list[int], ends: list[bool]) -> list[Episode]:
    """Return episodes in which each action is what was observed; episode e counts from 100 e on."""
    return [
        Episode(
            [
                Step(
                    np.array([100 * e + t], np.float32),
                    np.array([100 * e + t], np.float32),
                    reward=float(t),
                    terminated=end and t == length - 1,
                    truncated=not end and t == length - 1,
                )
                for t in range(length)
            ],
            final_observation=np.array([100 * e + length], np.float32),
            group=e,
        )
        for e, (length, end) in enumerate(zip(lengths, ends, strict=True))
    ]


def policy(memory: int = 0) -> ControlPolicy:
    return ControlPolicy(OBSERVATIONS, ACTIONS, memory=memory)


def all_of(replay: Replay) -> tuple[Decisions, Decisions]:
    """Return each decision once, and what follows."""
    chosen = replay.rows.mask[:, 0].nonzero()[:, 0]
    return replay.rows.select(chosen), replay.rows.select((chosen + 1).clamp(max=len(replay.rows) - 1))


def test_no_step_is_shifted_and_none_is_lost() -> None:
    now, after = all_of(Replay(policy(), counting([3, 2, 4], [True, False, False])))
    seen, done = now.inputs["observation"][:, 0, 0], now.inputs["action"][:, 0, 0]
    assert seen.tolist() == done.tolist() == [0, 1, 2, 100, 101, 200, 201, 202, 203]
    following = torch.where(now.terminated[:, 0], -1, after.inputs["observation"][:, 0, 0])
    assert following.tolist() == [1, 2, -1, 101, 102, 201, 202, 203, 204]
    # A last state was not decided in; elsewhere what was done next is there.
    assert after.mask[:, 0].tolist() == [True, True, True, True, False, True, True, True, False]
    assert now.reward[:, 0].tolist() == [0, 1, 2, 0, 1, 0, 1, 2, 3]


def test_time_is_no_end_and_an_end_is() -> None:
    replay = Replay(policy(), counting([2, 2], [True, False]))
    sample = replay.draw(200, torch.Generator().manual_seed(0))
    said = sample.following(lambda decisions: decisions.inputs["observation"][..., 0])
    where = sample.now.inputs["observation"][:, 0, 0]
    assert set(zip(where.tolist(), said[:, 0].tolist(), strict=True)) == {(0, 1), (1, 0), (100, 101), (101, 102)}


def test_rows_say_the_same() -> None:
    episodes = counting([3, 2], [True, False])
    sample = Replay(policy(memory=2), episodes).draw(50, torch.Generator().manual_seed(0))
    assert sample.after is None
    said = sample.following(lambda decisions: decisions.inputs["observation"][..., 0])
    now = sample.now
    pairs = zip(now.inputs["observation"][..., 0][now.mask].tolist(), said[now.mask].tolist(), strict=True)
    assert set(pairs) == {(0, 1), (1, 2), (2, 0), (100, 101), (101, 102)}


@pytest.mark.parametrize("memory", [0, 2])
def test_returns_are_those_of_each_episode(memory: int) -> None:
    episodes = counting([3, 2, 4], [True, False, False])
    replay = Replay(policy(memory), episodes, reward_scale=2.0, reward_shift=-1.0)
    replay.estimate(
        lambda decisions: decisions.inputs["observation"][..., 0] / 10, gamma=0.9, lam=0.8, batch_size=2, max_cost=None
    )
    assert replay.rows.returns is not None
    found = replay.rows.returns[replay.rows.mask].tolist()
    wanted = []
    for episode in episodes:
        length, start = len(episode), float(episode.steps[0].observation[0])
        value = torch.tensor([[(start + t) / 10 for t in range(length + 1)]])
        reward = torch.tensor([[2.0 * t - 1 for t in range(length)] + [0.0]])
        there = torch.arange(length + 1)[None]
        is_end = episode.steps[-1].terminated
        _, returns = gae(
            reward,
            value,
            there < length,
            final=(there == length) & (not is_end),
            terminated=(there == length - 1) & is_end,
            truncated=(there == length - 1) & (not is_end),
            env_steps=torch.ones(1, length + 1, dtype=torch.long),
            gamma=0.9,
            lam=0.8,
        )
        wanted += returns[0, :length].tolist()
    assert found == pytest.approx(wanted, rel=1e-5)


def test_a_shift_is_paid_once_a_step_of_the_environment() -> None:
    chunk = Step(0, 0, terminated=True, info={"step_rewards": [0.0, 0.0, 0.0]})
    replay = Replay(TablePolicy(1, 1), [Episode([chunk], final_observation=0)], reward_shift=-1.0)
    assert replay.rows.reward[replay.rows.mask].tolist() == [-3.0]


def test_what_cannot_be_learnt_from_is_said() -> None:
    with pytest.raises(ValueError, match="no step to learn from in these 1 episodes"):
        Replay(policy(), [Episode()])
    failed = counting([1], [True])[0]
    failed.steps[0].info["grader_error"] = "died"
    with pytest.raises(ValueError, match="no step to learn from"):
        Replay(policy(), [failed])
    open_end = replace(counting([2], [False])[0], final_observation=None)
    with pytest.raises(ValueError, match=r"episode 0 .* no final_observation"):
        Replay(policy(), [open_end])
