"""Baselines across starts, and whitening, for what has no group and no critic.

Shapes: B rows. Scores that are not finite take no part and get 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tetrathlon.algos.advantages import group_relative
from tetrathlon.algos.columns import floating


def batch_mean(score: Tensor) -> Tensor:
    """Return each score minus the mean of the batch: all rows as one group.

    Args:
        score: float [B].

    Returns:
        float [B].
    """
    return group_relative(score, torch.zeros_like(score, dtype=torch.long), scale="none")


@dataclass(frozen=True, slots=True)
class MovingAverage:
    """An exponential mean of the scores of past batches: a value that goes into a checkpoint as it is."""

    decay: float
    """How much of the past stays after a batch, in [0, 1)."""
    total: float = 0.0
    """Sum of the batch means, each weighted by what stays of it."""
    weight: float = 0.0
    """Sum of those weights; 0 before the first batch."""

    def __post_init__(self) -> None:
        if not 0 <= self.decay < 1:
            raise ValueError(f"decay must be in [0, 1), got {self.decay}")

    @property
    def mean(self) -> float | None:
        """The baseline, or None before the first batch."""
        return self.total / self.weight if self.weight else None


def moving_average(score: Tensor, state: MovingAverage) -> tuple[Tensor, MovingAverage]:
    """Return each score minus the mean of earlier batches (REINFORCE with a moving baseline; Williams, 1992).

    The baseline comes from the past alone, so that no score pulls its own. The first batch has no past and is
    compared with its own mean: a raw reward is never an advantage. A batch without a finite score changes nothing.

    Args:
        score: float [B].
        state: What is known of earlier batches.

    Returns:
        advantage: float [B].
        state: With this batch.
    """
    score = floating(score)
    ok = torch.isfinite(score)
    if not ok.any():
        return torch.zeros_like(score), state
    mean = float(score[ok].double().mean())
    kept = 1 - state.decay
    after = MovingAverage(state.decay, state.decay * state.total + kept * mean, state.decay * state.weight + kept)
    if state.mean is None:
        return batch_mean(score), after
    return torch.where(ok, score - state.mean, 0.0), after


def whiten(x: Tensor, mask: Tensor, *, ddof: int = 0, eps: float = 1e-8) -> Tensor:
    r"""Return ``x`` with mean 0 and standard deviation 1 over all that ``mask`` keeps (REINFORCE++, Hu, 2025).

    .. math:: (x - \mathrm{mean}(x)) / (\mathrm{std}(x) + \epsilon)

    Over :func:`tetrathlon.algos.advantages.returns` this is REINFORCE++; over centred group scores its variant with
    a baseline. Statistics are two-pass and of the whole batch, never of a micro-batch. Equal values, found by
    max == min, give 0, as does a single one.

    Args:
        x: float, any shape.
        mask: bool of the same shape.
        ddof: 1 divides the squares by n - 1, 0 by n.
        eps: Added to the standard deviation.

    Returns:
        float of the same shape, 0 outside the mask.
    """
    kept = x[mask]
    white = group_relative(kept, torch.zeros_like(kept, dtype=torch.long), ddof=ddof, eps=eps)
    return white.new_zeros(x.shape).masked_scatter(mask, white)
