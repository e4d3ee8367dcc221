"""The same numbers as other libraries: run with ``-m oracle`` where they are installed.

Stable-Baselines3 is run; the formulas of TRL, whose trainer holds them in one long method, are written out here.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tetrathlon.algos.advantages import gae, group_relative, leave_one_out
from tetrathlon.algos.denominators import Reduction, denominators
from tetrathlon.algos.kl import kl
from tetrathlon.algos.losses import clipped_surrogate, total, value_loss
from tetrathlon.algos.segments import Segments
from tetrathlon.algos.shaping import overlong_penalty

pytestmark = pytest.mark.oracle

SEEDS = range(5)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("lam", [0.0, 0.8, 1.0])
def test_gae_of_stable_baselines3(seed: int, lam: float) -> None:
    """``common/buffers.py: RolloutBuffer.compute_returns_and_advantage``; truncations as ``on_policy_algorithm.py``.

    There a truncation adds gamma V(last observation) to the reward and then counts as an end.
    """
    buffers = pytest.importorskip("stable_baselines3.common.buffers")
    rng = np.random.default_rng(seed)
    steps, envs, gamma = 40, 6, 0.97
    reward, value, last, tail = (rng.normal(size=shape) for shape in ((steps, envs),) * 3 + ((envs,),))
    ended = rng.random((steps, envs)) < 0.15
    timed_out = ended & (rng.random((steps, envs)) < 0.5)
    starts = np.concatenate([np.ones((1, envs)), ended[:-1]])
    peer = SimpleNamespace(
        buffer_size=steps,
        gamma=gamma,
        gae_lambda=lam,
        rewards=reward + gamma * last * timed_out,
        values=value,
        episode_starts=starts,
        advantages=np.zeros((steps, envs)),
    )
    buffers.RolloutBuffer.compute_returns_and_advantage(peer, torch.tensor(tail), ended[-1].astype(float))

    # Ours: a decision, its last observation where a time limit ended it, and one more after the stretch.
    kept, width = [], 2 * steps + 1
    columns: dict[str, Tensor] = {
        name: torch.full((envs, width), torch.nan, dtype=torch.float64) for name in ("reward", "value")
    }
    flags = {name: torch.zeros(envs, width, dtype=torch.bool) for name in ("mask", "final", "terminated", "truncated")}
    for b in range(envs):
        for t in range(steps):
            kept.append((b, 2 * t, t))
            columns["reward"][b, 2 * t], columns["value"][b, 2 * t] = reward[t, b], value[t, b]
            flags["mask"][b, 2 * t] = True
            flags["terminated"][b, 2 * t] = bool(ended[t, b] and not timed_out[t, b])
            flags["truncated"][b, 2 * t] = bool(timed_out[t, b])
            flags["final"][b, 2 * t + 1] = bool(timed_out[t, b])
            columns["value"][b, 2 * t + 1] = last[t, b]
        if not ended[-1, b]:
            flags["final"][b, -1], columns["value"][b, -1] = True, tail[b]
    advantage, returns = gae(
        columns["reward"],
        columns["value"],
        **flags,
        env_steps=torch.ones(envs, width, dtype=torch.long),
        gamma=gamma,
        lam=lam,
    )
    for b, position, t in kept:
        assert advantage[b, position].item() == pytest.approx(peer.advantages[t, b], rel=1e-6, abs=1e-9)
        assert returns[b, position].item() == pytest.approx(peer.returns[t, b], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_clipped_values_of_stable_baselines3(seed: int) -> None:
    """``ppo/ppo.py: PPO.train``, ``clip_range_vf``: the mean squared error of the clipped value alone, not halved."""
    generator = torch.Generator().manual_seed(seed)
    value, old, returns = (torch.randn(1, 32, generator=generator, dtype=torch.float64) for _ in range(3))
    peer = torch.nn.functional.mse_loss(returns, old + torch.clamp(value - old, -0.2, 0.2))
    mask = torch.ones(1, 32, dtype=torch.bool)
    ours = value_loss(value, returns, mask, old_value=old, clip=0.2, clip_mode="clipped_only")
    assert 2 * total(ours, mask, 32).item() == pytest.approx(peer.item(), rel=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize(
    ("loss_type", "reduction", "constant"),
    [("grpo", "episode_mean", None), ("dapo", "decision_mean", None), ("dr_grpo", "episode_sum", 20.0)],
)
def test_loss_of_trl(seed: int, level: str, loss_type: str, reduction: Reduction, constant: float | None) -> None:
    """TRL 1.16 ``trainer/grpo_trainer.py: GRPOTrainer._compute_loss``: clip, k3 weighted by its ratio, three means.

    With ``sequence`` TRL weights the divergence by the ratio of the sequence, which its documentation calls biased; we
    never do, so there it is left out.
    """
    generator = torch.Generator().manual_seed(seed)
    shape, low, high, beta = (6, 12), 0.2, 0.28, 0.04

    def noise(scale: float) -> Tensor:
        return scale * torch.randn(shape, generator=generator, dtype=torch.float64)

    start = noise(1.0) - 2
    old, ref = start + noise(0.3), start + noise(0.5)
    mask = torch.arange(12) < torch.tensor([12, 1, 5, 7, 3, 9])[:, None]
    gain = torch.randn(6, generator=generator, dtype=torch.float64)[:, None]
    by_sequence = level == "sequence"

    def theirs(logp: Tensor) -> Tensor:
        gap = logp - old
        ratio = ((gap * mask).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True)).exp() if by_sequence else gap.exp()
        loss = -torch.min(ratio * gain, ratio.clamp(1 - low, 1 + high) * gain).expand(shape)
        if not by_sequence:
            loss = loss + beta * ((ref - logp).exp() - (ref - logp) - 1) * gap.exp()
        masked = loss * mask
        if loss_type == "grpo":
            return (masked.sum(-1) / mask.sum(-1)).mean()
        return masked.sum() / (mask.sum() if loss_type == "dapo" else 6 * 20)

    def ours(logp: Tensor) -> Tensor:
        zeros = torch.zeros(shape, dtype=torch.long)
        episodes = Segments.of("episode", mask, episode=zeros, turn=zeros)
        loss, _ = clipped_surrogate(
            logp,
            old,
            gain.expand(shape),
            mask,
            segments=episodes if by_sequence else None,
            clip_low=low,
            clip_high=high,
        )
        if not by_sequence:
            loss = loss + beta * kl(logp, ref, mask, "k3", old_logp=old)
        return total(loss, mask, denominators(reduction, episodes, constant=constant))

    outcomes = []
    for objective in (theirs, ours):
        logp = start.clone().requires_grad_()
        loss = objective(logp)
        outcomes.append((loss.item(), torch.autograd.grad(loss, logp)[0]))
    assert outcomes[1][0] == pytest.approx(outcomes[0][0], rel=1e-6)
    assert torch.allclose(outcomes[1][1], outcomes[0][1], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_advantages_of_trl(seed: int) -> None:
    """TRL 1.16 ``GRPOTrainer._generate_and_score_completions`` (ddof 1, eps 1e-4) and that of ``RLOOTrainer``."""
    score = torch.randn(5, 8, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    group = torch.arange(5).repeat_interleave(8)
    grpo = (score - score.mean(1, keepdim=True)) / (score.std(1, keepdim=True) + 1e-4)
    rloo = score - (score.sum(1, keepdim=True) - score) / 7
    assert torch.allclose(group_relative(score.flatten(), group, eps=1e-4), grpo.flatten(), rtol=1e-6)
    assert torch.allclose(leave_one_out(score.flatten(), group), rloo.flatten(), rtol=1e-6)


@pytest.mark.parametrize("length", [1, 50, 80, 81, 95, 100, 130])
def test_overlong_penalty_of_trl(length: int) -> None:
    """TRL 1.16 ``rewards/other_rewards.py: get_soft_overlong_punishment``, run."""
    rewards: Any = pytest.importorskip("trl.rewards")
    peer = rewards.get_soft_overlong_punishment(max_completion_len=100, soft_punish_cache=20)
    ours = overlong_penalty(torch.tensor([length]), limit=100, cache=20)
    assert ours.item() == pytest.approx(peer([[1] * length])[0], rel=1e-6)
