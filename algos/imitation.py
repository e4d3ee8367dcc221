"""Imitation: learning to do what somebody else did, or says should be done."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn

from tetrathlon.agents.decisions import Decisions, Learn
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.losses import total
from tetrathlon.envs.episode import Episode


def clone(
    policy: TrainablePolicy,
    episodes: Sequence[Episode],
    *,
    steps: int,
    learn: Learn = "action",
    rows: int = 64,
    lr: float = 1e-3,
    max_grad_norm: float = 1.0,
    seed: int = 0,
    after: Callable[[int, float], bool | None] | None = None,
) -> None:
    """Raise the likelihood of what was done (behaviour cloning; supervised fine-tuning where it is text).

    Args:
        policy: What learns.
        episodes: Demonstrations.
        steps: Optimizer steps.
        learn: ``"action"``: what was done; ``"label"``: what the expert said, in the states that were visited.
        rows: Rows a step, drawn anew in each pass over all.
        lr: Learning rate (AdamW).
        max_grad_norm: Largest gradient norm.
        seed: Seed of the order of rows.
        after: Called with the number of the step and its loss, the mean of -log p over decisions; a true answer stops.

    Raises:
        ValueError: There is nothing to learn in the episodes.
    """
    batch: Decisions = policy.collate([[episode] for episode in episodes], learn=learn, last="never")
    if not batch.mask.any():
        raise ValueError(f"there is nothing to learn in these {len(episodes)} episodes with learn={learn!r}")
    optimizer = torch.optim.AdamW([p for p in policy.parameters() if p.requires_grad], lr=lr, weight_decay=0.0)
    device = next(policy.parameters()).device
    generator = torch.Generator().manual_seed(seed)
    order = torch.empty(0, dtype=torch.long)
    for step in range(steps):
        while len(order) < min(rows, len(batch)):
            order = torch.cat([order, torch.randperm(len(batch), generator=generator)])
        chosen, order = order[:rows], order[rows:]
        part = batch.select(chosen).to(device)
        loss = total(-policy.evaluate(part).logp, part.mask, part.mask.sum())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), max_grad_norm)
        optimizer.step()
        if after is not None and after(step, float(loss.detach())):
            return
