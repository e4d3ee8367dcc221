"""Critics of actions: where tokens are valued, what of an action a critic reads, and what a policy would do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.agents.seeing import FAMILIES, pictures, played, seer
from tetrathlon.agents.action_values import Ensemble
from tetrathlon.agents.char_lm import char_lm
from tetrathlon.agents.control import ControlPolicy
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.agents.vla import VLAPolicy
from tetrathlon.envs.episode import Episode, Step

NUMBERS = spaces.Box(-np.inf, np.inf, (3,), np.float32)
WIDE = spaces.Box(np.array([0.0, -4.0], np.float32), np.array([10.0, 4.0], np.float32))


def reader() -> LanguagePolicy:
    policy = char_lm(size=32, layers=2, heads=2, context=64, seed=0)
    policy.add_action_critic(3, hidden=(16,), seed=1)
    return policy


def unlike_zero(policy: LanguagePolicy) -> None:
    """Let values, which begin as 0, be anything else."""
    critic: Any = policy.critic
    torch.nn.init.normal_(critic.head.layers[-1].weight)


def said(*turns: str) -> Episode:
    steps = [Step("say", turn, terminated=turn is turns[-1], reward=1.0) for turn in turns]
    return Episode(steps, final_observation="")


def test_members_have_weights_of_their_own() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        three = Ensemble([4, 8], 3, normalize=True)
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    told = three(x)
    assert told.shape == (3, 5) and len({tuple(row.tolist()) for row in told}) == 3
    assert Ensemble([4, 8], 0)(x).shape == (0, 5)


class TestTokens:
    """V before a token, Q after it."""

    def test_a_token_is_valued_with_what_came_before_and_nothing_after(self) -> None:
        policy = reader()
        one, other = (policy.collate([[said(text)]], learn="action") for text in ("abc", "abd"))
        first, second = policy.appraise(one), policy.appraise(other)
        assert first.q is not None and second.q is not None and first.value is not None and second.value is not None
        a, b = (batch.mask[0].nonzero()[:, 0] for batch in (one, other))
        assert a.tolist() == b.tolist() and len(a) == 4  # three characters and the end
        assert torch.allclose(first.q[:, 0, a[:2]], second.q[:, 0, a[:2]], atol=1e-6)
        assert (first.q[:, 0, a[2]] - second.q[:, 0, a[2]]).abs().min() > 1e-5
        unlike_zero(policy)
        first, second = policy.appraise(one), policy.appraise(other)
        assert first.value is not None and second.value is not None
        assert torch.allclose(first.value[0, a[:3]], second.value[0, a[:3]], atol=1e-6)
        assert (first.value[0, a[3]] - second.value[0, a[3]]).abs() > 1e-5

    def test_a_row_is_valued_as_alone(self) -> None:
        policy = reader()
        rows = [[said("a", "bcd")], [said("abcdefgh")], [said("x")]]
        together = policy.appraise(policy.collate(rows, learn="action"))
        assert together.q is not None
        for b, row in enumerate(rows):
            batch = policy.collate([row], learn="action")
            alone = policy.appraise(batch)
            assert alone.q is not None
            width = batch.mask.shape[1]
            where = batch.mask[0]
            assert torch.allclose(together.q[:, b, :width][:, where], alone.q[:, 0][:, where], atol=1e-5)

    def test_values_are_those_of_the_evaluation(self) -> None:
        policy = reader()
        unlike_zero(policy)
        batch = policy.collate([[said("a", "bcd")]], learn="action")
        value = policy.evaluate(batch).value
        assert value is not None
        for asked in (policy.appraise(batch), policy.appraise(batch, q=False)):
            assert asked.value is not None
            assert torch.allclose(asked.value[batch.mask], value[batch.mask], atol=1e-5)
        assert policy.appraise(batch, q=False).q is None and policy.appraise(batch, value=False).value is None

    def test_the_policy_is_left_alone(self) -> None:
        policy = reader()
        told = policy.appraise(policy.collate([[said("ab")]], learn="action"))
        assert told.q is not None
        told.q.sum().backward()
        assert all(weight.grad is None for name, weight in policy.named_parameters() if not name.startswith("critic"))
        assert any(weight.grad is not None for name, weight in policy.named_parameters() if "critic.trunk" in name)

    def test_others_are_not_told_of(self) -> None:
        policy = char_lm(size=16, layers=1, heads=2)
        batch = policy.collate([[said("ab")]], learn="action")
        with pytest.raises(TypeError, match="after add_action_critic"):
            policy.appraise(batch)
        with pytest.raises(TypeError, match="cannot say what else it would do"):
            policy.propose(batch)


@pytest.mark.parametrize("kind", ["qwen2_5_vl", "smolvlm"])
def test_pictures_are_seen_by_the_critic(kind: str) -> None:
    assert kind in FAMILIES
    policy = seer(kind, max_tokens=6)
    shown = [played(policy, [(pictures(1, seed), ["look"], [seed > 0])])[0] for seed in range(3)]
    policy.add_action_critic(2, hidden=(8,))
    unlike_zero(policy)
    batch = policy.collate([[episode] for episode in shown])
    told, value = policy.appraise(batch), policy.evaluate(batch).value
    assert told.q is not None and told.value is not None and value is not None
    assert torch.allclose(told.value[batch.mask], value[batch.mask], atol=1e-4)
    for b, episode in enumerate(shown):
        own = policy.collate([[episode]])
        alone = policy.appraise(own)
        assert alone.q is not None
        assert torch.allclose(
            told.q[:, b, : own.mask.shape[1]][:, own.mask[0]], alone.q[:, 0][:, own.mask[0]], atol=1e-4
        )


@pytest.mark.parametrize(
    ("make", "least", "most"),
    [
        (lambda: ControlPolicy(NUMBERS, WIDE), -1, 1),
        (lambda: ControlPolicy(NUMBERS, WIDE, squash=True), -1, 1),
        (lambda: ControlPolicy(NUMBERS, spaces.MultiDiscrete([2, 3])), 0, 1),
        (lambda: ControlPolicy(NUMBERS, spaces.MultiBinary(3)), 0, 1),
        (lambda: VLAPolicy(NUMBERS, spaces.Box(-2, 2, (4, 2), np.float32), head="bins", bins=8), -1, 1),
        (lambda: VLAPolicy(NUMBERS, spaces.Box(-2, 2, (4, 2), np.float32), head="gaussian"), -1, 1),
        (lambda: VLAPolicy(NUMBERS, spaces.Box(-2, 2, (4, 2), np.float32), head="l1"), -1, 1),
        (lambda: VLAPolicy(NUMBERS, spaces.Box(-2, 2, (4, 2), np.float32), head="flow"), -1, 1),
    ],
)
def test_what_is_done_is_valued_whatever_it_is(make: Any, least: float, most: float) -> None:
    policy = make()
    policy.add_action_critic(2, hidden=(8,))
    space = policy.action_space
    space.seed(0)
    observations = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    steps = [Step(seen, space.sample(), 1.0, t == 4) for t, seen in enumerate(observations[:5])]
    batch = policy.collate([[Episode(steps, observations[5])]], learn="action")
    told = policy.appraise(batch)
    assert told.q is not None and told.value is not None
    assert told.q.shape == (2, 1, 5) and told.value.shape == (1, 5) and bool(torch.isfinite(told.q).all())
    taken = policy.taken(batch)
    assert float(taken.min()) >= least and float(taken.max()) <= most
    found = policy.propose(batch, 4)
    assert found.numbers.shape == (4, 1, 5, taken.shape[-1])
    others = policy.appraise(batch, value=False, numbers=found.numbers)
    assert others.q is not None and others.q.shape == (2, 4, 1, 5)
    same = policy.appraise(batch, value=False, numbers=taken[None])
    assert same.q is not None and torch.allclose(same.q[:, 0], told.q, atol=1e-6)


def test_actions_of_one_end_of_a_space_are_at_one_end() -> None:
    for squash in (False, True):
        policy = ControlPolicy(NUMBERS, WIDE, squash=squash)
        steps = [
            Step(np.zeros(3, np.float32), action, 0.0) for action in (WIDE.low, WIDE.high, np.array([5, 0], np.float32))
        ]
        batch = policy.collate([[Episode(steps, np.zeros(3, np.float32))]], learn="action")
        assert torch.allclose(policy.taken(batch)[batch.mask], torch.tensor([[-1.0, -1], [1, 1], [0, 0]]), atol=1e-5)


def test_densities_are_those_of_the_numbers() -> None:
    policy = ControlPolicy(NUMBERS, WIDE, squash=True, log_std=-0.5, seed=2)
    batch = policy.collate(
        [[Episode([Step(np.zeros(3, np.float32), WIDE.high, 0.0)], np.zeros(3, np.float32))]], learn="action"
    )
    found = policy.propose(batch, 60_000)
    assert found.logp is not None
    numbers, logp = found.numbers[:, 0, 0].detach(), found.logp[:, 0, 0].detach()
    # The mass of a region by its draws, and by its size over its density.
    inside = ((numbers > -0.5) & (numbers < 0.5)).all(-1)
    assert float(inside.float().mean()) == pytest.approx(float((1 / logp[inside].exp()).mean().reciprocal()), rel=0.03)
    assert policy.propose(batch, greedy=True).logp is None
