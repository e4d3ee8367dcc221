"""Advantages and returns: pure functions of decision columns.

Shapes: B rows, T positions, K the most decisions (and last states) that a row holds. What is not a decision
takes no part: returns and GAE run over the compacted sequence, so a tool's output in between changes nothing.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Scale = Literal["std", "none"]


def compact(keep: Tensor) -> tuple[Tensor, Tensor]:
    """Return where the kept positions of each row are.

    Args:
        keep: bool [B, T].

    Returns:
        index: int [B, K], the kept positions in order, 0 where a row has fewer than K.
        valid: bool [B, K], which of them are there.
    """
    count = keep.sum(dim=1)
    longest = int(count.max()) if count.numel() else 0
    order = torch.argsort((~keep).to(torch.int8), dim=1, stable=True)[:, :longest]
    valid = torch.arange(longest, device=keep.device) < count[:, None]
    return torch.where(valid, order, 0), valid


def next_values(value: Tensor, mask: Tensor, final: Tensor, terminated: Tensor) -> Tensor:
    """Return the value of the state that each decision led to.

    It is the value at the next decision or last state of the row, and 0 after a termination.

    Args:
        value: float [B, T], read at ``mask | final``.
        mask: bool [B, T], where there are decisions.
        final: bool [B, T], true last states.
        terminated: bool [B, T].

    Returns:
        float [B, T]; 0 where there is no decision.
    """
    index, valid = compact(mask | final)
    values = torch.where(valid, _float(value).gather(1, index), 0.0)
    following = torch.cat([values[:, 1:], values.new_zeros(values.shape[0], 1)], dim=1)
    following = torch.where(terminated.gather(1, index), 0.0, following)
    return _scatter(following, index, valid & mask.gather(1, index), mask.shape)


def gae(
    reward: Tensor,
    value: Tensor,
    mask: Tensor,
    *,
    final: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    env_steps: Tensor,
    gamma: float,
    lam: float,
) -> tuple[Tensor, Tensor]:
    r"""Generalised advantage estimation over decisions (Schulman et al., 2016, eq. 16).

    .. math:: A_t = \delta_t + \gamma^{k_t} \lambda A_{t+1},\quad
              \delta_t = r_t + \gamma^{k_t} V_{t+1} - V_t

    with :math:`k_t` environment steps between a decision and the next: 0 inside a turn of tokens, 1 at its last
    one, k for a chunk of k. At a termination the next value is 0. After a truncation it is the value of the true
    last observation, and the recursion starts anew.

    Args:
        reward: float [B, T], read at ``mask``.
        value: float [B, T], read at ``mask | final``.
        mask: bool [B, T], where there are decisions.
        final: bool [B, T], true last states.
        terminated: bool [B, T].
        truncated: bool [B, T].
        env_steps: int [B, T].
        gamma: Discount of one environment step.
        lam: The trace of one decision.

    Returns:
        advantage: float [B, T], 0 where there is no decision.
        returns: float [B, T], advantage + value, 0 where there is no decision.
    """
    reward, value = _float(reward), _float(value)
    index, valid = compact(mask | final)
    decided = valid & mask.gather(1, index)
    values = torch.where(valid, value.gather(1, index), 0.0)
    rewards = torch.where(decided, reward.gather(1, index), 0.0)
    discount = torch.as_tensor(gamma, dtype=values.dtype, device=values.device) ** env_steps.gather(1, index)
    ends = terminated.gather(1, index)
    following = next_values(value, mask, final, terminated).gather(1, index)
    delta = rewards + discount * following - values
    trace = torch.where(decided & ~ends & ~truncated.gather(1, index), discount * lam, 0.0)
    advantage = torch.zeros_like(values)
    carry = values.new_zeros(values.shape[0])
    for k in reversed(range(values.shape[1])):
        carry = torch.where(decided[:, k], delta[:, k] + trace[:, k] * carry, 0.0)
        advantage[:, k] = carry
    returns = torch.where(decided, advantage + values, 0.0)
    return _scatter(advantage, index, decided, mask.shape), _scatter(returns, index, decided, mask.shape)


def _float(x: Tensor) -> Tensor:
    """Return ``x`` in float32 at least: a bfloat16 count stops at 256, and gamma .999 rounds to 1."""
    return x if x.dtype == torch.float64 else x.float()


def _scatter(compacted: Tensor, index: Tensor, valid: Tensor, shape: torch.Size) -> Tensor:
    full = compacted.new_zeros(shape)
    rows = torch.arange(shape[0], device=index.device)[:, None].expand_as(index)
    full[rows[valid], index[valid]] = compacted[valid]
    return full


def group_relative(score: Tensor, group: Tensor, *, scale: Scale = "std", ddof: int = 1, eps: float = 1e-6) -> Tensor:
    r"""Return scores relative to their group (GRPO, Shao et al., 2024, section 4.1.2).

    .. math:: A_i = (r_i - \mathrm{mean}(r)) / (\mathrm{std}(r) + \epsilon)

    Statistics are two-pass. Scores that are not finite take no part and get 0. A group whose scores are all
    equal, found by max == min, gives 0 for all, as does a group of one.

    Args:
        score: float [B].
        group: int [B].
        scale: ``"std"``, or ``"none"`` for the centred score alone (Dr. GRPO, Liu et al., 2025).
        ddof: 1 divides the squares by n - 1, 0 by n.
        eps: Added to the standard deviation.

    Returns:
        float [B].
    """
    if scale not in ("std", "none"):
        raise ValueError(f"scale must be 'std' or 'none', got {scale!r}")
    score = _float(score)
    ok, member, count = _membership(score, group)
    mean = _group_sum(torch.where(ok, score, 0.0), member) / count.clamp(min=1)
    centred = torch.where(ok, score - mean[member], 0.0)
    useful = ok & ~_constant(score, ok, member)[member]
    if scale == "std":
        variance = _group_sum(centred**2, member) / (count - ddof).clamp(min=1)
        centred = centred / (variance.sqrt() + eps)[member]
    return torch.where(useful, centred, 0.0)


def leave_one_out(score: Tensor, group: Tensor) -> Tensor:
    """Return each score minus the mean of the others in its group (RLOO, Ahmadian et al., 2024, eq. 8).

    Scores that are not finite take no part and get 0; a group of equal scores gives 0, as does a group of one.

    Args:
        score: float [B].
        group: int [B].

    Returns:
        float [B].
    """
    score = _float(score)
    ok, member, count = _membership(score, group)
    total = _group_sum(torch.where(ok, score, 0.0), member)
    others = (total[member] - torch.where(ok, score, 0.0)) / (count[member] - 1).clamp(min=1)
    useful = ok & ~_constant(score, ok, member)[member]
    return torch.where(useful, score - others, 0.0)


def _membership(score: Tensor, group: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    ok = torch.isfinite(score)
    _, member = torch.unique(group, return_inverse=True)
    return ok, member, _group_sum(ok.to(score.dtype), member)


def _group_sum(x: Tensor, member: Tensor) -> Tensor:
    size = int(member.max()) + 1 if member.numel() else 0
    return x.new_zeros(size).index_add(0, member, x)


def _constant(score: Tensor, ok: Tensor, member: Tensor) -> Tensor:
    """Return, for each group, whether it has no two scores that differ."""
    size = int(member.max()) + 1 if member.numel() else 0
    low = score.new_full((size,), torch.inf)
    high = score.new_full((size,), -torch.inf)
    low = low.scatter_reduce(0, member, torch.where(ok, score, torch.inf), "amin")
    high = high.scatter_reduce(0, member, torch.where(ok, score, -torch.inf), "amax")
    return high <= low
