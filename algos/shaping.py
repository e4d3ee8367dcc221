"""Shaping: what is added to rewards, and what leaves the loss. Each function gives a term to add, never the sum.

Shapes: B rows, T positions. A term of a row, such as a length penalty, is paid at its last decision with
:func:`at_last`; one of a decision adds to ``reward`` as it is. Added to ``total_reward`` a term is summed over the row.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tetrathlon.algos.columns import floating
from tetrathlon.algos.kl import Estimator, kl
from tetrathlon.algos.segments import Segments


@torch.no_grad()
def kl_penalty(logp: Tensor, ref_logp: Tensor, mask: Tensor, *, coef: float, estimator: Estimator = "k1") -> Tensor:
    r"""Return the price of leaving the reference, decision by decision (InstructGPT, Ouyang et al., 2022, eq. 2).

    .. math:: -\beta \, \mathrm{KL}_t

    Args:
        logp: float [B, T], under the policy that decided.
        ref_logp: float [B, T], under the reference.
        mask: bool [B, T]; what the policy did not write, such as a tool's output, costs nothing.
        coef: beta.
        estimator: See :data:`tetrathlon.algos.kl.Estimator`.

    Returns:
        float [B, T], without gradients; 0 outside the mask.
    """
    return -coef * kl(logp, ref_logp, mask, estimator)


def at_last(term: Tensor, mask: Tensor) -> Tensor:
    """Return a term of each row at its last decision: not at padding, and not at an end token given by others.

    Args:
        term: float [B].
        mask: bool [B, T].

    Returns:
        float [B, T]; all 0 in a row without decisions.
    """
    after = mask.flip(1).cumsum(dim=1).flip(1)
    return torch.where(mask & (after == 1), floating(term)[:, None], 0.0)


def without_cut(cut: Tensor, episodes: Segments) -> Tensor:
    """Return the mask of the loss without episodes that a length limit cut (overlong filtering; DAPO, section 3.4).

    Make the denominators from it too: such an episode leaves the numerator and the denominator. Its score still
    counts in the baseline of its group.

    Args:
        cut: bool [B, T], read at decisions.
        episodes: The episodes of the batch.

    Returns:
        bool [B, T].
    """
    return episodes.spread(~episodes.any(cut))


def overlong_penalty(length: Tensor, *, limit: int, cache: int) -> Tensor:
    r"""Return a penalty that grows over the last stretch before a limit (DAPO, Yu et al., 2025, eq. 13).

    .. math:: \mathrm{clip}((L_{max} - L_{cache} - l) / L_{cache}, -1, 0)

    Args:
        length: int [B], how many decisions.
        limit: L_max; from there on the penalty is -1.
        cache: L_cache, the length of the stretch.

    Returns:
        float64 [B], from -1 to 0.

    Raises:
        ValueError: The cache is not in [1, limit].
    """
    if not 1 <= cache <= limit:
        raise ValueError(f"cache must be from 1 to the limit, {limit}, got {cache}")
    return ((limit - cache - length.double()) / cache).clamp(-1, 0)


def length_reward(length: Tensor, correct: Tensor, group: Tensor) -> Tensor:
    r"""Return a reward for shortness among the answers to one start (Kimi k1.5, Kimi Team, 2025, section 2.3.3).

    .. math:: \lambda = 0.5 - (l - l_{min}) / (l_{max} - l_{min})

    for a correct answer, and min(0, lambda) for a wrong one. All of one length: 0.

    Args:
        length: int [B], how many decisions.
        correct: bool [B].
        group: int [B].

    Returns:
        float64 [B], from -0.5 to 0.5.
    """
    length = length.double()
    names, member = torch.unique(group, return_inverse=True)
    low = length.new_full((len(names),), torch.inf).scatter_reduce(0, member, length, "amin")[member]
    high = length.new_full((len(names),), -torch.inf).scatter_reduce(0, member, length, "amax")[member]
    rank = 0.5 - (length - low) / (high - low).clamp(min=1)
    return torch.where(high == low, 0.0, torch.where(correct, rank, rank.clamp(max=0)))


@torch.no_grad()
def pair_gain(score: Tensor, group: Tensor, pair: Tensor) -> Tensor:
    r"""Return what makes the reward of each row that of its pair: of a picture and its twin both must be right.

    .. math:: r_i \left(\bar r_{other} - 1\right)

    With it a row is paid its reward times the mean reward of the other groups of its pair, so that for rewards of 0 and
    1 the expected gradient of both groups together is that of the chance that both are right, p q: of a group it is
    q \nabla p, and of the other p \nabla q.

    Args:
        score: float [B], rewards of the rows; NaN where one says nothing.
        group: int [B]; rows of one group began alike.
        pair: int [B]; groups of one pair are to be right together. A pair of one group stays as it is.

    Returns:
        float [B], NaN where the score is.
    """
    score = floating(score)
    names, member = torch.unique(group, return_inverse=True)
    said = ~score.isnan()
    zeros = score.new_zeros(len(names))
    total = zeros.index_add(0, member, score.nan_to_num())
    count = zeros.index_add(0, member, said.to(score.dtype))
    mean = total / count.clamp(min=1)
    of_pair = torch.zeros_like(names).index_copy(0, member, pair)
    _, pairs = torch.unique(of_pair, return_inverse=True)
    counted = (count > 0).to(score.dtype)
    sums = score.new_zeros(int(pairs.max()) + 1).index_add(0, pairs, mean * counted)[pairs]
    groups = score.new_zeros(int(pairs.max()) + 1).index_add(0, pairs, counted)[pairs]
    others = groups - counted
    partner = torch.where(others > 0, (sums - mean * counted) / others.clamp(min=1), 1.0)
    return score * (partner[member] - 1)


def length_cost(length: Tensor, *, coef: float, free: int = 0) -> Tensor:
    """Return a cost for each decision beyond ``free``.

    Args:
        length: int [B], how many decisions.
        coef: The cost of one.
        free: How many cost nothing.

    Returns:
        float64 [B], 0 or below.
    """
    return -coef * (length.double() - free).clamp(min=0)


def length_gap(length: Tensor, target: Tensor, *, coef: float = 3e-4) -> Tensor:
    r"""Return a cost for missing a wanted length, either way (LCPO-Exact; Aggarwal and Welleck, 2025, eq. 1).

    .. math:: -\alpha |l^* - l|

    Args:
        length: int [B], how many decisions.
        target: int [B], how many were asked for.
        coef: alpha.

    Returns:
        float64 [B], 0 or below.
    """
    return -coef * (target.double() - length.double()).abs()
