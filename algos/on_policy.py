"""On-policy learning: one trainer over decisions that knows no domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from tetrathlon.agents.decisions import Decisions
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.advantages import gae, group_relative, leave_one_out
from tetrathlon.algos.losses import clipped_surrogate, squared_error, total
from tetrathlon.envs.episode import Episode, scorable

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

    Episodes whose grader failed take no part and are counted (metric ``unscorable``).

    Raises:
        TypeError: Advantages are ``gae`` and the policy has no critic.
        ValueError: The policy decided nothing in what was collected.
        FloatingPointError: A loss is not finite.
    """
    values = getattr(policy, "critic", None)
    critic = {id(p) for p in values.parameters()} if isinstance(values, nn.Module) else set()
    groups = [
        {"params": [p for p in policy.parameters() if (id(p) in critic) is of_critic], "lr": lr}
        for of_critic, lr in ((False, options.lr), (True, options.value_lr))
    ]
    optimizer = torch.optim.AdamW([group for group in groups if group["params"]], weight_decay=0.0)
    generator = torch.Generator().manual_seed(options.seed)
    for round_ in range(updates):
        collected = collect()
        rows = [row for row in map(scorable, collected) if row]
        batch = prepare(policy, policy.collate(rows), options)
        seen: list[dict[str, float]] = []
        for _ in range(options.epochs):
            order = torch.randperm(len(batch), generator=generator)
            for part in order.tensor_split(min(options.minibatches, len(batch))):
                loss, metrics = policy_loss(policy, batch.select(part), options)
                if not torch.isfinite(loss):
                    raise FloatingPointError(f"the loss of round {round_} is {loss.item()}; weights are as before it")
                optimizer.zero_grad()
                loss.backward()
                norm = nn.utils.clip_grad_norm_(policy.parameters(), options.max_grad_norm)
                seen.append({**metrics, "grad_norm": float(norm)})
                optimizer.step()
        metrics = {name: sum(one[name] for one in seen) / len(seen) for name in seen[0]}
        metrics["reward"] = float(batch.total_reward.mean())
        metrics["unscorable"] = float(sum(map(len, collected)) - sum(map(len, rows)))
        if after is not None and after(round_, metrics):
            return


@torch.no_grad()
def prepare(policy: TrainablePolicy, batch: Decisions, options: Options) -> Decisions:
    """Add ``old_logp``, ``advantage`` and, with a critic, ``returns``."""
    if not batch.mask.any():
        raise ValueError("nothing in these episodes was decided by the policy: there is nothing to learn from")
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
        # A row in which the policy decided nothing says nothing of it.
        score = relative(batch.total_reward.masked_fill(~batch.mask.any(dim=1), torch.nan), batch.group)
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
