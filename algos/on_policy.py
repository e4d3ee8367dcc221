"""On-policy learning: one trainer over decisions that knows no domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from tetrathlon.agents.decisions import Decisions
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.advantages import gae, group_relative, leave_one_out, row_returns
from tetrathlon.algos.losses import clipped_surrogate, squared_error, total
from tetrathlon.envs.episode import Episode

Rows = Sequence[Sequence[Episode]]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the trainer does with a batch."""

    advantage: Literal["group", "leave_one_out", "gae"] = "group"
    """Relative to the group (GRPO), to the others of the group (RLOO), or to a critic (PPO)."""
    gamma: float = 1.0
    """Discount of one environment step; read with ``gae``."""
    lam: float = 0.95
    """Trace of GAE."""
    clip_low: float = 0.2
    """How far below 1 the ratio counts (PPO, section 3)."""
    clip_high: float = 0.2
    """How far above 1 the ratio counts."""
    epochs: int = 4
    """Passes over a batch."""
    minibatches: int = 4
    """Optimizer steps a pass; rows are dealt at random."""
    lr: float = 3e-4
    """Learning rate of the policy (AdamW)."""
    value_lr: float = 1e-3
    """Learning rate of ``policy.critic``."""
    value_coef: float = 0.5
    """Weight of the value loss."""
    entropy_coef: float = 0.0
    """Weight of the entropy bonus."""
    max_grad_norm: float = 1.0
    """Largest gradient norm."""
    normalize: bool = False
    """Whether advantages are brought to mean 0 and standard deviation 1 over the batch."""
    seed: int = 0
    """Seed of the dealing of rows."""


def train(
    policy: TrainablePolicy,
    collect: Callable[[], Rows],
    options: Options,
    updates: int,
    after: Callable[[int, dict[str, float]], bool | None] | None = None,
) -> None:
    """Improve ``policy`` by ``updates`` rounds of collecting and optimising.

    Args:
        policy: What learns; its ``critic`` is trained too where advantages are ``gae``.
        collect: Returns B rows of fresh episodes.
        options: See :class:`Options`.
        updates: Rounds.
        after: Called with the number of the round and its metrics; a true answer stops.

    Raises:
        TypeError: Advantages are ``gae`` and the policy has no critic.
    """
    groups = [
        {"params": [p for n, p in policy.named_parameters() if n.startswith("critic") is critic], "lr": lr}
        for critic, lr in ((False, options.lr), (True, options.value_lr))
    ]
    optimizer = torch.optim.AdamW([group for group in groups if group["params"]], weight_decay=0.0)
    generator = torch.Generator().manual_seed(options.seed)
    for round_ in range(updates):
        batch = prepare(policy, policy.collate(collect()), options)
        sums: dict[str, float] = {}
        for _ in range(options.epochs):
            order = torch.randperm(len(batch), generator=generator)
            for rows in order.chunk(options.minibatches):
                loss, metrics = policy_loss(policy, batch.select(rows), options)
                optimizer.zero_grad()
                loss.backward()
                metrics["grad_norm"] = float(nn.utils.clip_grad_norm_(policy.parameters(), options.max_grad_norm))
                optimizer.step()
                for name, value in metrics.items():
                    sums[name] = sums.get(name, 0.0) + value
        steps = options.epochs * min(options.minibatches, len(batch))
        metrics = {name: value / steps for name, value in sums.items()}
        metrics["reward"] = float(row_returns(batch.reward, batch.mask).mean())
        if after is not None and after(round_, metrics):
            return


@torch.no_grad()
def prepare(policy: TrainablePolicy, batch: Decisions, options: Options) -> Decisions:
    """Add ``old_logp``, ``advantage`` and, with a critic, ``returns``."""
    evaluation = policy.evaluate(batch)
    batch.old_logp = evaluation.logp
    if options.advantage == "gae":
        if evaluation.value is None:
            raise TypeError(f"advantage='gae' needs a policy with a critic; {type(policy).__name__} gives no value")
        batch.advantage, batch.returns = gae(
            batch.reward,
            evaluation.value,
            batch.mask,
            final=batch.final,
            terminated=batch.terminated,
            truncated=batch.truncated,
            env_steps=batch.env_steps,
            gamma=options.gamma,
            lam=options.lam,
        )
    else:
        relative = group_relative if options.advantage == "group" else leave_one_out
        score = relative(row_returns(batch.reward, batch.mask), batch.group)
        batch.advantage = score[:, None].expand_as(batch.reward).clone()
    if options.normalize and batch.mask.sum() > 1:
        chosen = batch.advantage[batch.mask]
        batch.advantage = (batch.advantage - chosen.mean()) / (chosen.std() + 1e-8)
    return batch


def policy_loss(policy: TrainablePolicy, batch: Decisions, options: Options) -> tuple[torch.Tensor, dict[str, float]]:
    """Return the loss of one minibatch and what to watch."""
    assert batch.old_logp is not None and batch.advantage is not None
    evaluation = policy.evaluate(batch)
    count = batch.mask.sum()
    surrogate, ratio = clipped_surrogate(
        evaluation.logp,
        batch.old_logp,
        batch.advantage,
        batch.mask,
        clip_low=options.clip_low,
        clip_high=options.clip_high,
    )
    entropy = total(evaluation.entropy, batch.mask, count)
    loss = total(surrogate, batch.mask, count) - options.entropy_coef * entropy
    if batch.returns is not None and evaluation.value is not None:
        error = squared_error(evaluation.value, batch.returns, batch.mask)
        loss = loss + options.value_coef * total(error, batch.mask, count)
    outside = (ratio < 1 - options.clip_low) | (ratio > 1 + options.clip_high)
    metrics = {
        "loss": float(loss.detach()),
        "entropy": float(entropy.detach()),
        "clip_fraction": float(total(outside.float(), batch.mask, count)),
    }
    return loss, metrics
