"""Whether estimates from a log can be trusted: how far a policy leaves the data, and whether Q knows what was paid.

Shapes: B rows, T positions, M members of an ensemble. Columns are read at ``mask`` alone; in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tetrathlon.algos.columns import select


def out_of_data(logged: Tensor, proposed: Tensor, mask: Tensor, *, quantile: float = 0.05) -> tuple[float, float]:
    r"""Return how often a policy would do what the log hardly knows.

    An action is out of the data where the behaviour's log-density of it is below that of all but the least likely of
    the logged actions:

    .. math:: P_{s \sim D,\, a \sim \pi}\Big(\log b(a | s) < F_{\log b(a_D | s_D)}^{-1}(q)\Big)

    The behaviour itself has a share of about ``quantile``, or less where many actions are equally likely.

    Args:
        logged: float [B, T], log-probability under the behaviour, or a policy cloned from it, of what was done.
        proposed: float [B, T], that of what the policy would do in the same states, sampled or greedy; -inf where the
            behaviour never did it.
        mask: bool [B, T], where there are decisions.
        quantile: Which share of the logged actions counts as hardly known.

    Returns:
        share: Of the decisions at which the policy leaves the data, in [0, 1].
        threshold: The log-probability below which it does.

    Raises:
        ValueError: ``quantile`` is not in (0, 1), there is no decision, or one is NaN.
    """
    if not 0 < quantile < 1:
        raise ValueError(f"quantile must be in (0, 1), got {quantile}")
    known, asked = _chosen("logged", logged, mask), _chosen("proposed", proposed, mask, low=-torch.inf)
    # One of those that are there: between two of them nothing was ever done.
    threshold = known.sort().values[int(quantile * len(known))]
    return float((asked < threshold).double().mean()), float(threshold)


@dataclass(frozen=True, slots=True)
class RatioShares:
    """How many decisions have a ratio that says little."""

    below: float
    """Share below the lower bound: the policy would hardly do it, and the episode hardly counts from there on."""
    above: float
    """Share above the upper bound: the log has less of it than the policy would do."""


def ratio_shares(log_ratio: Tensor, mask: Tensor, *, low: float = 0.1, high: float = 10.0) -> RatioShares:
    """Return the shares of decisions whose ratio between the policy and the behaviour is out of bounds.

    Args:
        log_ratio: float [B, T], as :func:`tetrathlon.algos.ope.importance_sampling` takes it.
        mask: bool [B, T], where there are decisions.
        low: The lower bound of the ratio.
        high: The upper bound.

    Raises:
        ValueError: Not ``0 < low <= high``, there is no decision, or one is NaN.
    """
    if not 0 < low <= high:
        raise ValueError(f"bounds must be 0 < low <= high, got low={low} and high={high}")
    ratio = _chosen("log_ratio", log_ratio, mask, low=-torch.inf).exp()
    return RatioShares(float((ratio < low).double().mean()), float((ratio > high).double().mean()))


@dataclass(frozen=True, slots=True)
class Correlation:
    """How two columns go together; NaN where one of them is constant."""

    linear: float
    """Pearson's."""
    rank: float
    """Spearman's: of the ranks, equal values sharing theirs."""


def correlation(q: Tensor, returns: Tensor, mask: Tensor) -> Correlation:
    """Return how the worth that Q gives goes together with the discounted return that followed.

    A Q of another policy than the one that played need not agree with what was paid; one that falls where returns rise
    is no good for choosing.

    Args:
        q: float [B, T], of what was done.
        returns: float [B, T], see :func:`tetrathlon.algos.advantages.returns`.
        mask: bool [B, T], which decisions count.

    Raises:
        ValueError: There is no decision, or a value is not finite.
    """
    x, y = _chosen("q", q, mask), _chosen("returns", returns, mask)
    return Correlation(_pearson(x, y), _pearson(_ranks(x), _ranks(y)))


def disagreement(q: Tensor, mask: Tensor) -> Tensor:
    """Return how far the members of an ensemble are apart: the standard deviation over them, with M - 1.

    Args:
        q: float [M, B, T], two members or more.
        mask: bool [B, T], where there are decisions.

    Returns:
        float64 [B, T], 0 outside the mask.

    Raises:
        ValueError: There are fewer than two members, or q is not [M, B, T].
    """
    if q.ndim != 3 or q.shape[1:] != mask.shape or len(q) < 2:
        raise ValueError(f"q must be [M, {mask.shape[0]}, {mask.shape[1]}] with M of 2 or more, got {list(q.shape)}")
    return select(select(q.double(), mask).std(dim=0), mask)


def _chosen(name: str, x: Tensor, mask: Tensor, low: float | None = None) -> Tensor:
    """Return ``x`` at the mask in float64: [N], each finite or ``low``."""
    if x.shape != mask.shape:
        raise ValueError(f"{name} must be {list(mask.shape)} as mask is, got {list(x.shape)}")
    values = x[mask].double()
    if not len(values):
        raise ValueError("there is no decision at mask")
    if not (ok := torch.isfinite(values) | (values == (torch.nan if low is None else low))).all():
        raise ValueError(f"{name} is not finite at {int((~ok).sum())} of {len(values)} decisions")
    return values


def _pearson(x: Tensor, y: Tensor) -> float:
    if x.min() == x.max() or y.min() == y.max():
        return torch.nan
    x, y = x - x.mean(), y - y.mean()
    return float((x @ y) / (x.norm() * y.norm()))


def _ranks(x: Tensor) -> Tensor:
    """Return the rank of each value, equal ones with the mean of theirs."""
    _, which, count = x.unique(return_inverse=True, return_counts=True)
    last = count.cumsum(dim=0).double()
    return (last - (count - 1) / 2)[which]
