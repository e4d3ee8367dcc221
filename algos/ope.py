"""Off-policy evaluation: what a policy would be paid, from the episodes that another one played.

Shapes: B rows, each one whole episode; T positions. The log-ratio of a decision is its log-probability under the policy
that is judged minus that under the one that played. Computed in float64; weights that are shared out, in logarithms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from tetrathlon.algos.advantages import next_values
from tetrathlon.algos.columns import compact, select


@dataclass(frozen=True, slots=True)
class OffPolicyValue:
    """An estimate of the discounted return from the start of an episode."""

    value: float
    """The estimate, the mean of ``terms``."""
    standard_error: float
    """Of the estimate; where weights are shared out, of its linearisation (the delta method). NaN for one episode."""
    ess: float
    """How many episodes of the policy itself would say as much; see :func:`effective_sample_size`."""
    terms: Tensor = field(repr=False, compare=False)
    """float64 [B]: what each episode contributes."""


def effective_sample_size(log_weight: Tensor) -> Tensor:
    r"""Return how many equally weighted samples the weights are worth (Kish, 1965, section 11.7).

    .. math:: \Big(\sum_i w_i\Big)^2 \Big/ \sum_i w_i^2

    Args:
        log_weight: float [B, ...], the logarithm of each weight; -inf is a weight of 0.

    Returns:
        float64 [...], between 1 and B; 0 where all weights are 0.
    """
    x = log_weight.double()
    size = (2 * x.logsumexp(dim=0) - (2 * x).logsumexp(dim=0)).exp()
    return torch.where((x == -torch.inf).all(dim=0), 0.0, size)


@torch.no_grad()
def importance_sampling(
    log_ratio: Tensor,
    reward: Tensor,
    mask: Tensor,
    *,
    env_steps: Tensor,
    gamma: float,
    weighted: bool = False,
    clip: float | None = None,
) -> OffPolicyValue:
    r"""Weigh whole returns (importance sampling; Precup et al., 2000).

    .. math:: \frac1n \sum_i w^i G^i \quad\text{or, weighted,}\quad \sum_i w^i G^i \Big/ \sum_i w^i,
              \qquad w = \prod_t \rho_t

    The first is unbiased; the second is biased and consistent, and stays within the returns that were seen. A weight
    above e**709 is infinite and the first form with it. What comes after an episode that was truncated or not
    finished counts as nothing.

    Args:
        log_ratio: float [B, T], read at ``mask``; -inf where the policy would never do it.
        reward: float [B, T], read at ``mask``.
        mask: bool [B, T], where there are decisions; each row has one or more.
        env_steps: int [B, T], until the next decision; read at ``mask``.
        gamma: Discount of one environment step.
        weighted: Share the weights out, so that they sum to 1.
        clip: The largest weight (Ionides, 2008): less variance, and a bias; default: none.

    Raises:
        ValueError: A column is of another shape or not finite at ``mask``, a row has no decision, ``gamma`` or ``clip``
            is out of range, or all weights are 0 where they are shared out.
    """
    walk = _Walk.of(log_ratio, mask, env_steps, gamma, clip)
    earned = walk.discounted(_read("reward", reward, mask)).sum(dim=1, keepdim=True)
    return _weigh(walk.log_weight[:, -1:], earned, torch.zeros_like(earned[:, 0]), weighted)


@torch.no_grad()
def per_decision(
    log_ratio: Tensor,
    reward: Tensor,
    mask: Tensor,
    *,
    env_steps: Tensor,
    gamma: float,
    weighted: bool = False,
    clip: float | None = None,
) -> OffPolicyValue:
    r"""Weigh each reward by the decisions up to it (per-decision importance sampling; Precup et al., 2000).

    .. math:: \frac1n \sum_{i,t} \gamma^{K_t} w_t^i r_t^i \quad\text{or, weighted,}\quad
              \sum_t \frac{\sum_i \gamma^{K_t} w_t^i r_t^i}{\sum_i w_t^i},\qquad w_t = \prod_{u \le t} \rho_u

    with :math:`K_t` environment steps before the decision. Weighted (CWPDIS; Thomas, 2015, Safe Reinforcement
    Learning), the t-th decisions of all episodes share their weights out. An episode that is over keeps its last one
    and earns nothing: without it the mean would be of those alone that went on.

    Args:
        log_ratio: As :func:`importance_sampling` takes it, as is all else.
        reward: See there.
        mask: See there.
        env_steps: See there.
        gamma: See there.
        weighted: Share the weights out, at each t.
        clip: The largest weight of a decision with those before it; default: none.

    Raises:
        ValueError: See there.
    """
    walk = _Walk.of(log_ratio, mask, env_steps, gamma, clip)
    earned = walk.discounted(_read("reward", reward, mask))
    return _weigh(walk.log_weight, earned, torch.zeros_like(earned[:, 0]), weighted)


@torch.no_grad()
def doubly_robust(
    log_ratio: Tensor,
    reward: Tensor,
    mask: Tensor,
    *,
    q: Tensor,
    v: Tensor,
    terminated: Tensor,
    final: Tensor,
    env_steps: Tensor,
    gamma: float,
    weighted: bool = False,
    clip: float | None = None,
) -> OffPolicyValue:
    r"""Correct values by weighted errors (Jiang and Li, 2016; weighted: Thomas and Brunskill, 2016).

    .. math:: V_t = v_t + \rho_t (r_t + \gamma^{k_t} V_{t+1} - q_t)
              \;\Rightarrow\; V_0 = v_0 + \sum_t \gamma^{K_t} w_t (r_t + \gamma^{k_t} v_{t+1} - q_t)

    Unbiased whatever ``q`` is, as long as ``v`` is its mean under the policy; without noise where ``q`` is right and
    the world is deterministic. With q = v = 0 it is :func:`per_decision`. The value after a termination is 0. After a
    truncation, and where recording stopped, it is that of the true last state: the estimate is of the return without
    that limit, where importance sampling ends with the log. With no ``final`` position it ends there, too.

    Args:
        log_ratio: As :func:`importance_sampling` takes it.
        reward: See there.
        mask: See there.
        q: float [B, T], the worth of what was done; read at ``mask``.
        v: float [B, T], the mean of ``q`` over what the policy would do; read at ``mask | final``.
        terminated: bool [B, T].
        final: bool [B, T], true last states.
        env_steps: See there.
        gamma: See there.
        weighted: Share the weights out, at each t.
        clip: The largest weight of a decision with those before it; default: none.

    Raises:
        ValueError: See there.
    """
    walk = _Walk.of(log_ratio, mask, env_steps, gamma, clip)
    value = _read("v", v, mask | final)
    following = next_values(value, mask, final, terminated)
    discount = gamma ** _read("env_steps", env_steps, mask)
    error = _read("reward", reward, mask) + discount * following - _read("q", q, mask)
    return _weigh(walk.log_weight, walk.discounted(error), value.gather(1, walk.index[:, :1])[:, 0], weighted)


@dataclass(frozen=True, slots=True)
class _Walk:
    """The K decisions of each row, in order."""

    index: Tensor
    """int [B, K], where they are."""
    valid: Tensor
    """bool [B, K], which of them are there."""
    log_weight: Tensor
    """float64 [B, K]: of each with those before it; behind the last one it stays as it is."""
    discount: Tensor
    """float64 [B, K]: of all environment steps before it."""

    @classmethod
    def of(cls, log_ratio: Tensor, mask: Tensor, env_steps: Tensor, gamma: float, clip: float | None) -> _Walk:
        if not 0 <= gamma <= 1:
            raise ValueError(f"gamma must be in [0, 1], got {gamma}")
        if clip is not None and not clip > 0:
            raise ValueError(f"clip must be above 0, got {clip}")
        if mask.ndim != 2 or mask.dtype != torch.bool or not len(mask):
            raise ValueError(f"mask must be bool [B, T] with a row or more, got {mask.dtype} {list(mask.shape)}")
        if not (some := mask.any(dim=1)).all():
            raise ValueError(f"row {int((~some).nonzero()[0])} has no decision; each row is one episode of some")
        index, valid = compact(mask)
        ratio = _read("log_ratio", log_ratio, mask, low=-torch.inf).gather(1, index)
        log_weight = select(ratio, valid).cumsum(dim=1).clamp(max=torch.inf if clip is None else math.log(clip))
        steps = select(_read("env_steps", env_steps, mask).gather(1, index), valid)
        elapsed = steps.cumsum(dim=1) - steps
        return cls(index, valid, log_weight, gamma**elapsed)

    def discounted(self, x: Tensor) -> Tensor:
        """Return ``x``, float64 [B, T], at each decision and discounted to the start: [B, K]."""
        return self.discount * select(x.gather(1, self.index), self.valid)


def _read(name: str, x: Tensor, mask: Tensor, low: float | None = None) -> Tensor:
    """Return ``x`` in float64 with 0 outside the mask, if it is finite, or ``low``, inside."""
    if x.shape != mask.shape:
        raise ValueError(f"{name} must be {list(mask.shape)} as mask is, got {list(x.shape)}")
    wide = select(x.double(), mask)
    if not (ok := torch.isfinite(wide) | (wide == low if low is not None else False)).all():
        row, position = (~ok).nonzero()[0].tolist()
        wrong = int((~ok).sum())
        raise ValueError(f"{name} is not finite at {wrong} decisions: {wide[row, position]} at row {row}, {position}")
    return wide


def _weigh(log_weight: Tensor, x: Tensor, base: Tensor, weighted: bool) -> OffPolicyValue:
    """Return the estimate from weights and what they weigh, float64 [B, K] both, and what has no weight, [B]."""
    n = len(x)
    ess = float(effective_sample_size(log_weight[:, -1]))
    if not weighted:
        # Where there is nothing to weigh an infinite weight is nothing, too.
        terms = base + torch.where(x == 0, 0.0, log_weight.exp() * x).sum(dim=1)
        around = terms - terms.mean()
    else:
        if (lost := (log_weight == -torch.inf).all(dim=0)).any():
            raise ValueError(
                f"all weights are 0 from decision {int(lost.nonzero()[0])} on: the policy would have done nothing of "
                "what was logged, and there is nothing to share out"
            )
        share = n * log_weight.softmax(dim=0)
        terms = base + (share * x).sum(dim=1)
        around = base - base.mean() + (share * (x - (share * x).mean(dim=0))).sum(dim=1)
    error = float((around**2).sum().sqrt()) / math.sqrt(n * (n - 1)) if n > 1 else math.nan
    return OffPolicyValue(float(terms.mean()), error, ess, terms)
