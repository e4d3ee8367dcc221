"""Implicit Q-learning: a step by hand, values of a chain, and the same numbers from rows as from single decisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.algos.offline.logs import LINE, line_log, line_policy
from tests.algos.toys import TablePolicy
from tetrathlon.algos.offline.iql import IQL
from tetrathlon.algos.replay import Replay, Sample
from tetrathlon.envs.episode import Episode, Step


def chain() -> list[Episode]:
    """Every (state, action) of five states once: 1 goes right, 0 goes left; entering state 4 pays 1 and ends."""
    episodes = []
    for state in range(4):
        for action in range(2):
            after = min(max(state + (1 if action else -1), 0), 4)
            step = Step(state, action, float(after == 4), terminated=after == 4, record={"logp": np.log(0.5)})
            episodes.append(Episode(steps=[step], final_observation=after))
    return episodes


def fit(policy: TablePolicy, tau: float, steps: int, lr: float, beta: float = 3.0, policy_lr: float = 0.0) -> None:
    """Descend by plain gradients, all of the log a step; targets are the critic of the step before."""
    learner: Any = IQL.Learner(policy, IQL.Options(expectile=tau, gamma=0.9, beta=beta, polyak=1.0))
    learner.optimizer = torch.optim.SGD(
        [
            {"params": learner.actor_weights, "lr": policy_lr},
            {"params": learner.critic_weights, "lr": lr},
        ]
    )
    learner.slow = learner._slow()
    sample = Sample(Replay(policy, chain()).rows)
    for _ in range(steps):
        learner._follow()
        for phase, weights in learner._phases():
            learner._descend(phase, weights, sample)


def test_one_step_by_hand() -> None:
    policy = TablePolicy(5, 2)
    with torch.no_grad():
        policy.critic.v[:] = torch.tensor([0.0, 0.0, 0.0, 0.5, 9.0])
        policy.critic.action_values[2, 1] = 1.0
    fit(policy, tau=0.9, steps=1, lr=1.0, policy_lr=1.0)
    v, q = policy.critic.v, policy.critic.action_values
    # 8 decisions, each of weight 1/8. State 2: u = q - v = (0, 1), so dv = 2 * .9 * 1 / 8.
    # State 3: u = -.5 twice, so dv = -2 * .1 * .5 / 8, twice.
    assert v.tolist() == pytest.approx([0.0, 0.0, 0.225, 0.5 - 0.025, 9.0])
    # q(2, 1): target .9 * .5, error -.55, times 2 / 8. q(3, 1): target 1 (terminal: not 1 + .9 * 9).
    assert q[2, 1].item() == pytest.approx(1 - 0.55 / 4)
    assert q[3, 1].item() == pytest.approx(0.25)
    assert q[1, 0].item() == 0.0
    # The policy: weights e**(3 u) of the values before the step, the gradient of log p at p = 1/2 is +-1/2.
    wanted = (np.exp(3.0) - 1) / 2 / 8
    assert policy.logits[2].tolist() == pytest.approx([-wanted, wanted], rel=1e-5)
    assert policy.logits[3].tolist() == pytest.approx([0.0, 0.0], abs=1e-7)


def test_the_mean_expectile_is_the_value_of_the_behaviour() -> None:
    policy = TablePolicy(5, 2)
    fit(policy, tau=0.5, steps=1200, lr=3.0)
    # The uniform random walk: v = P (r + .9 v), solved directly.
    transition, paid = np.zeros((4, 4)), np.array([0.0, 0.0, 0.0, 0.5])
    for state in range(4):
        for after in (max(state - 1, 0), state + 1):
            if after < 4:
                transition[state, after] += 0.5
    exact = np.linalg.solve(np.eye(4) - 0.9 * transition, paid)
    assert policy.critic.v[:4].tolist() == pytest.approx(exact.tolist(), abs=1e-3)


def test_a_high_expectile_nears_the_best_action_and_the_policy_follows() -> None:
    policy = TablePolicy(5, 2)
    fit(policy, tau=0.98, steps=2000, lr=3.0, policy_lr=0.3)
    assert policy.critic.v[:4].tolist() == pytest.approx([0.729, 0.81, 0.9, 1.0], abs=0.05)
    assert bool((policy.logits[:4, 1] > policy.logits[:4, 0]).all())


def test_rows_and_single_decisions_give_one_loss() -> None:
    policy, log = line_policy(), line_log(3)
    learner = IQL.Learner(policy, IQL.Options())
    learner.slow = learner._slow()
    single = Replay(policy, log)
    chosen = single.rows.mask[:, 0].nonzero()[:, 0]
    samples = (
        Sample(single.rows.select(chosen), single.rows.select(chosen + 1)),
        Sample(policy.collate([[episode] for episode in log], learn="action")),
    )
    told = []
    for sample in samples:
        count = sample.now.mask.sum()
        assert int(count) == 3 * LINE
        loss, metrics = learner._loss("loss", sample, count)
        told.append([float(value.detach()) for value in (loss, *metrics.values())])
    assert told[0] == pytest.approx(told[1], rel=1e-5)


def test_values_that_cannot_be_are_refused() -> None:
    for options, said in (
        ({"expectile": 1.0}, "expectile must be between 0 and 1, got 1.0"),
        ({"beta": -1.0}, "beta must be at least 0"),
        ({"gamma": 1.1}, "gamma must be from 0 to 1, got 1.1"),
        ({"hidden": ()}, "hidden must be widths"),
    ):
        with pytest.raises(ValueError, match=said):
            IQL.Options(**options)
    with pytest.raises(ValueError, match="ensemble must be at least 1, got 0"):
        IQL.Learner(line_policy(), IQL.Options(ensemble=0))
