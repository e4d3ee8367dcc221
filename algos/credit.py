"""Credit: where advantages live and values are learnt, apart from the level of the ratio."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tetrathlon.algos.columns import floating, select
from tetrathlon.algos.segments import Segments


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """Decision columns in which each segment acts as one decision, at its first.

    They go into :func:`tetrathlon.algos.advantages.gae` in place of the batch's own, with the same values and
    ``final``. The critic learns its returns at ``mask`` alone; :meth:`broadcast` takes the advantage to every
    decision of the segment.
    """

    mask: Tensor
    """bool [B, T], the first decision of each segment."""
    reward: Tensor
    """float [B, T], all that the segment was paid, discounted to its first decision."""
    terminated: Tensor
    """bool [B, T], whether the task ended in the segment."""
    truncated: Tensor
    """bool [B, T], whether a limit outside the task ended the episode in it."""
    env_steps: Tensor
    """int [B, T], from the first decision of the segment to that of the next."""
    segments: Segments
    """The segments."""

    def broadcast(self, advantage: Tensor) -> Tensor:
        """Return ``advantage``, float [B, T] read at ``mask``, at every decision of its segment: [B, T]."""
        return self.segments.spread(self.segments.sum(select(advantage, self.mask)))


def assign(
    segments: Segments, *, reward: Tensor, terminated: Tensor, truncated: Tensor, env_steps: Tensor, gamma: float
) -> Credit:
    r"""Join the decisions of each segment into one, at the first of them.

    .. math:: r_S = \sum_{t \in S} \gamma^{k_t} r_t

    with :math:`k_t` environment steps since the segment's first decision: 0 inside a turn of tokens, where this is
    the plain sum.

    Args:
        segments: Of the turns, the episodes, or the decisions (which changes nothing). A segment lies in one row.
        reward: float [B, T].
        terminated: bool [B, T].
        truncated: bool [B, T].
        env_steps: int [B, T], until the next decision.
        gamma: Discount of one environment step.
    """
    first = segments.first

    def at_first(y: Tensor) -> Tensor:
        return select(segments.spread(y), first)

    steps = select(env_steps, segments.mask)
    since_start = steps.cumsum(dim=1) - steps
    elapsed = since_start - segments.spread(segments.sum(select(since_start, first).double())).long()
    reward = floating(reward)
    discount = torch.as_tensor(gamma, dtype=reward.dtype, device=reward.device) ** elapsed
    return Credit(
        mask=first,
        reward=at_first(segments.sum(discount * reward)),
        terminated=at_first(segments.any(terminated)),
        truncated=at_first(segments.any(truncated)),
        env_steps=at_first(segments.sum(steps.double()).long()),
        segments=segments,
    )
