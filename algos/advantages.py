"""Advantages and returns: pure functions of decision columns.

Shapes: B rows, T positions, G groups. What is not a decision takes no part: returns and GAE run over the compacted
sequence, so a tool's output in between changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from tetrathlon.algos.columns import compact, floating, scatter

Scale = Literal["std", "none"]


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
    values = torch.where(valid, floating(value).gather(1, index), 0.0)
    following = torch.cat([values[:, 1:], values.new_zeros(values.shape[0], 1)], dim=1)
    following = torch.where(terminated.gather(1, index), 0.0, following)
    return scatter(following, index, valid & mask.gather(1, index), mask.shape)


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
    lam: float | Tensor,
    critic_lam: float | Tensor | None = None,
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
        lam: The trace of one decision: a number, or float [B, T] or [B, 1], read at ``mask``; see
            :func:`adaptive_lambda`.
        critic_lam: The trace of the returns that the critic learns, if it is another one (decoupled GAE; VC-PPO,
            Yuan et al., 2025); default: ``lam``.

    Returns:
        advantage: float [B, T], 0 where there is no decision.
        returns: float [B, T], advantage + value, 0 where there is no decision.

    Raises:
        ValueError: A trace has one dimension, which might be B or T.
    """
    reward, value = floating(reward), floating(value)
    index, valid = compact(mask | final)
    decided = valid & mask.gather(1, index)
    values = torch.where(valid, value.gather(1, index), 0.0)
    rewards = torch.where(decided, reward.gather(1, index), 0.0)
    discount = torch.as_tensor(gamma, dtype=values.dtype, device=values.device) ** env_steps.gather(1, index)
    ends = terminated.gather(1, index)
    following = next_values(value, mask, final, terminated).gather(1, index)
    delta = torch.where(decided, rewards + discount * following - values, 0.0)
    goes_on = decided & ~ends & ~truncated.gather(1, index)

    def estimate(lam: float | Tensor) -> Tensor:
        trace = torch.as_tensor(lam, dtype=values.dtype, device=values.device)
        if trace.ndim == 1:
            raise ValueError(f"lam must be a number or broadcast to [B, T], got the shape {list(trace.shape)}")
        return _accumulate(delta, torch.where(goes_on, discount * trace.expand(mask.shape).gather(1, index), 0.0))

    advantage = estimate(lam)
    returns = (advantage if critic_lam is None else estimate(critic_lam)) + values
    return scatter(advantage, index, decided, mask.shape), scatter(returns, index, decided, mask.shape)


def _accumulate(delta: Tensor, trace: Tensor) -> Tensor:
    """Return ``x`` with x_k = delta_k + trace_k x_{k+1}, all [B, K]."""
    x = torch.zeros_like(delta)
    carry = delta.new_zeros(delta.shape[0])
    for k in reversed(range(delta.shape[1])):
        carry = delta[:, k] + trace[:, k] * carry
        x[:, k] = carry
    return x


def adaptive_lambda(length: Tensor, alpha: float = 0.05) -> Tensor:
    r"""Return a trace that reaches further in longer answers (length-adaptive GAE; VAPO, Yue et al., 2025).

    .. math:: \lambda = \max(0, 1 - 1 / (\alpha l))

    Args:
        length: int, any shape: how many decisions.
        alpha: Below a length of 1 / alpha the trace is 0.

    Returns:
        float64 of the same shape.
    """
    return (1 - 1 / (alpha * length.double())).clamp(min=0)


def returns(
    reward: Tensor,
    mask: Tensor,
    *,
    final: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    env_steps: Tensor,
    gamma: float,
    value: Tensor | None = None,
) -> Tensor:
    r"""Return the discounted reward from each decision on (REINFORCE, Williams, 1992).

    .. math:: R_t = r_t + \gamma^{k_t} R_{t+1}

    Args:
        reward: float [B, T], read at ``mask``.
        mask: bool [B, T], where there are decisions.
        final: bool [B, T], true last states.
        terminated: bool [B, T].
        truncated: bool [B, T].
        env_steps: int [B, T], until the next decision.
        gamma: Discount of one environment step.
        value: float [B, T], read at ``final``: what comes after a truncation; default: nothing.

    Returns:
        float [B, T], 0 where there is no decision.
    """
    reward = floating(reward)
    value = torch.zeros_like(reward) if value is None else torch.where(final, floating(value), 0.0)
    ends = {"final": final, "terminated": terminated, "truncated": truncated}
    return gae(reward, value, mask, **ends, env_steps=env_steps, gamma=gamma, lam=1.0)[1]


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
    score = floating(score)
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
    score = floating(score)
    ok, member, count = _membership(score, group)
    total = _group_sum(torch.where(ok, score, 0.0), member)
    others = (total[member] - torch.where(ok, score, 0.0)) / (count[member] - 1).clamp(min=1)
    useful = ok & ~_constant(score, ok, member)[member]
    return torch.where(useful, score - others, 0.0)


@dataclass(frozen=True, slots=True)
class GroupSignal:
    """What the scores of each group can teach."""

    group: Tensor
    """int [G], the groups, ascending."""
    scorable: Tensor
    """int [G], how many rows have a finite score; below 2 there is no baseline."""
    informative: Tensor
    """bool [G], whether two scores differ; if not, every advantage of the group is 0."""
    rows: Tensor
    """bool [B], whether the row's group is informative: what dynamic sampling keeps (DAPO, Yu et al., 2025, eq. 11)."""


def group_signal(score: Tensor, group: Tensor) -> GroupSignal:
    """Return which groups have a signal and which have none, found by max == min and never by a deviation.

    Args:
        score: float [B]; not finite where a row could not be scored.
        group: int [B].
    """
    score = floating(score)
    ok, member, count = _membership(score, group)
    informative = ~_constant(score, ok, member)
    return GroupSignal(torch.unique(group), count.long(), informative, informative[member])


def _membership(score: Tensor, group: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    ok = torch.isfinite(score)
    _, member = torch.unique(group, return_inverse=True)
    return ok, member, _group_sum(ok.to(score.dtype), member)


def _group_sum(x: Tensor, member: Tensor) -> Tensor:
    size = int(member.max()) + 1 if member.numel() else 0
    wide = x.double()  # added one by one: in float32 a large group loses digits
    return wide.new_zeros(size).index_add(0, member, wide).to(x.dtype)


def _constant(score: Tensor, ok: Tensor, member: Tensor) -> Tensor:
    """Return, for each group, whether it has no two scores that differ."""
    size = int(member.max()) + 1 if member.numel() else 0
    low = score.new_full((size,), torch.inf)
    high = score.new_full((size,), -torch.inf)
    low = low.scatter_reduce(0, member, torch.where(ok, score, torch.inf), "amin")
    high = high.scatter_reduce(0, member, torch.where(ok, score, -torch.inf), "amax")
    return high <= low
