"""Denominators of a loss: by what each decision counts, from the whole batch.

A mean of the means of micro-batches is another objective (a token mean of 1.4 becomes 2.0). So the denominators are
made once, from all that a step learns from, and the parts are summed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from tetrathlon.algos.segments import Segments

Reduction = Literal["decision_mean", "episode_mean", "episode_sum"]
"""``decision_mean``: over all decisions of the batch, the token mean (DAPO, Yu et al., 2025, eq. 12).
``episode_mean``: over the decisions of each episode, then over episodes (GRPO, Shao et al., 2024, eq. 3).
``episode_sum``: the sum over each episode by a constant, then the mean over episodes (Dr. GRPO, Liu et al., 2025)."""


@dataclass(frozen=True, slots=True)
class BatchSize:
    """How much a batch holds; the sizes of the parts of a batch, or of ranks, add up."""

    decisions: int
    """How many decisions."""
    episodes: int
    """How many episodes with a decision."""

    @classmethod
    def of(cls, episodes: Segments) -> BatchSize:
        """Return the size of a batch whose segments are its episodes."""
        return cls(len(episodes.index), episodes.count)

    def __add__(self, other: BatchSize) -> BatchSize:
        return BatchSize(self.decisions + other.decisions, self.episodes + other.episodes)


def denominators(
    reduction: Reduction, episodes: Segments, size: BatchSize | None = None, *, constant: float | None = None
) -> Tensor:
    """Return by what :func:`tetrathlon.algos.losses.total` divides the loss of each decision.

    Args:
        reduction: See :data:`Reduction`.
        episodes: The episodes of these rows. Their mask is that of the loss: what a filter took out of the
            numerator is out of the denominator too.
        size: The size of the whole batch, if these rows are a part of it; default: they are all.
        constant: By what ``episode_sum`` divides, the same in every step: the length limit.

    Returns:
        float64 [B, T], 0 where there is no decision.

    Raises:
        ValueError: The reduction is unknown, or the constant is missing, not wanted or below 1.
    """
    if (constant is not None) != (reduction == "episode_sum") or (constant is not None and not constant >= 1):
        raise ValueError(f"constant is the length limit of 'episode_sum', 1 or more; got {constant} for {reduction!r}")
    size = size or BatchSize.of(episodes)
    length = episodes.size.double()
    if reduction == "decision_mean":
        divisor = torch.full_like(length, size.decisions)
    elif reduction == "episode_mean":
        divisor = length * size.episodes
    elif constant is not None:
        divisor = torch.full_like(length, size.episodes * constant)
    else:
        raise ValueError(f"reduction must be 'decision_mean', 'episode_mean' or 'episode_sum', got {reduction!r}")
    return episodes.spread(divisor)
