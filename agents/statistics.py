"""What a handful of outcomes says: rates, means and aggregates, each with its interval."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Estimate(NamedTuple):
    """A number and the interval around it."""

    mean: float
    """The estimate itself, of whatever statistic was asked for."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""


class Statistic(Protocol):
    """Reduces one axis of an array, as ``numpy.mean`` and :func:`iqm` do."""

    def __call__(self, values: NDArray[np.float64], /, *, axis: int) -> Any:
        """Return what is left of ``values`` without ``axis``."""
        ...


def cvar(values: ArrayLike, level: float = 0.1) -> float:
    """Return the mean of the highest ``level`` of ``values``: conditional value at risk, of costs.

    Of n values the highest ``level * n`` count, one of them in part (Rockafellar and Uryasev, 2000, Optimization of
    conditional value-at-risk, 2).

    Args:
        values: [N], at least one; for rewards give them negated.
        level: Share of the tail, above 0 and at most 1.

    Raises:
        ValueError: There is no value, or ``level`` is out of range.
    """
    worst = np.sort(np.asarray(values, dtype=np.float64).ravel())[::-1]
    if not len(worst) or not 0 < level <= 1:
        raise ValueError(f"cvar needs a value and a level in (0, 1], got {len(worst)} values and level={level!r}")
    weights = np.clip(level * len(worst) - np.arange(len(worst)), 0.0, 1.0)
    return float(worst @ weights / weights.sum())


def wilson(successes: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the score interval of a success rate (Wilson 1927, without continuity correction).

    With p = successes / n and z the normal quantile of 1 - (1 - level) / 2, its ends are
    ``(p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)``.

    Args:
        successes: How many of ``n`` succeeded; the formula takes a rate that is no whole number of them too.
        n: Independent attempts; of none we know nothing, the interval is (0, 1).
        level: Coverage, between 0 and 1.

    Raises:
        ValueError: ``successes`` is not from 0 to ``n``, or ``level`` is not between 0 and 1.
    """
    _check_level(level)
    if not 0 <= successes <= n:
        raise ValueError(f"successes must be from 0 to n={n}, got {successes}")
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + level / 2)
    rate = successes / n
    middle = rate + z * z / (2 * n)
    reach = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # At the ends rounding leaves 1e-17 where the formula gives exactly 0 or 1.
    low = 0.0 if successes == 0 else (middle - reach) / scale
    high = 1.0 if successes == n else (middle + reach) / scale
    return low, high


def rate_interval(successes: int, n: int, instances: int, level: float = 0.95) -> tuple[float, float]:
    """Return the Wilson interval of a success rate over ``n`` episodes of fewer different instances.

    A question that is asked twice says little new about other questions: the rate is taken as that of
    ``instances`` independent attempts, as if all answers to one question were alike.

    Args:
        successes: How many of ``n`` succeeded.
        n: Episodes; of none we know nothing, the interval is (0, 1).
        instances: How many different instances they were, at most ``n``.
        level: Coverage, between 0 and 1.

    Raises:
        ValueError: ``instances`` is not from 1 to ``n``, or as :func:`wilson` says.
    """
    if n == 0:
        return wilson(successes, 0, level)
    if not 1 <= instances <= n:
        raise ValueError(f"instances must be from 1 to n={n}, got {instances}")
    return wilson(successes / n * instances, instances, level)


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the unbiased estimate of the chance that one of ``k`` samples is right.

    ``1 - C(n - c, k) / C(n, k)``, as the product ``1 - prod_{i = n-c+1..n} (1 - k/i)``, which neither overflows
    nor cancels (Chen et al. 2021, arXiv:2107.03374, equation 1 and its listing).

    Args:
        n: Samples of one instance.
        c: How many of them are right.
        k: How many may be tried.

    Raises:
        ValueError: Not ``0 <= c <= n``, or not ``1 <= k <= n``.
    """
    if not 0 <= c <= n or not 1 <= k <= n:
        raise ValueError(f"pass@k needs 0 <= c <= n and 1 <= k <= n, got n={n}, c={c}, k={k}")
    if n - c < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / i for i in range(n - c + 1, n + 1))


def pass_all_k(n: int, c: int, k: int) -> float:
    """Return the unbiased estimate of the chance that all of ``k`` samples are right: how far it can be relied on.

    pass^k, ``C(c, k) / C(n, k)``, as the product ``prod_{i = 0..k-1} (c - i) / (n - i)`` (Yao et al. 2024, tau-bench,
    arXiv:2406.12045).

    Args:
        n: Samples of one instance.
        c: How many of them are right.
        k: How many must be.

    Raises:
        ValueError: Not ``0 <= c <= n``, or not ``1 <= k <= n``.
    """
    if not 0 <= c <= n or not 1 <= k <= n:
        raise ValueError(f"pass^k needs 0 <= c <= n and 1 <= k <= n, got n={n}, c={c}, k={k}")
    return math.prod((c - i) / (n - i) for i in range(k)) if k <= c else 0.0


def majority_at_k(answers: Sequence[Hashable | None], right: Sequence[bool], k: int) -> float:
    """Return how often the most common of ``k`` answers is right (self-consistency, arXiv:2203.11171).

    The samples are taken in their order, in ``n // k`` blocks of ``k``; the result is the mean over the blocks.
    A tie counts in expectation: with m answers tied, each is the chosen one with chance 1/m, so nothing depends
    on their order.

    Args:
        answers: The final answer of each of n samples of one instance; None where there was none: it has no
            vote, and a block without votes is wrong.
        right: Whether each sample was right. Where equal answers were graded differently, their share counts.
        k: Samples in a vote.

    Raises:
        ValueError: Not ``1 <= k <= n``, or the two lists differ in length.
    """
    n = len(answers)
    if len(right) != n or not 1 <= k <= n:
        raise ValueError(f"majority@k needs as many grades as answers and 1 <= k <= n, got {n}, {len(right)}, k={k}")
    blocks = [slice(start, start + k) for start in range(0, n - k + 1, k)]
    return sum(_vote(answers[block], right[block]) for block in blocks) / len(blocks)


def _vote(answers: Sequence[Hashable | None], right: Sequence[bool]) -> float:
    grades: dict[Hashable, list[bool]] = defaultdict(list)
    for answer, is_right in zip(answers, right, strict=True):
        if answer is not None:
            grades[answer].append(is_right)
    most = max((len(voters) for voters in grades.values()), default=0)
    tied = [sum(voters) / most for voters in grades.values() if len(voters) == most]
    return sum(tied) / len(tied) if tied else 0.0


def bootstrap_mean(
    values_by_cluster: Sequence[Sequence[float]],
    *,
    level: float = 0.95,
    repetitions: int = 2000,
    seed: int = 0,
) -> Estimate:
    """Return the mean of all values, with the percentile interval of a bootstrap over clusters.

    Samples of one instance are not independent: whole clusters are drawn with replacement (Davison and Hinkley
    1997, section 3.8). Where all clusters are alike the interval has no width, and of a
    few it is too narrow; of a success rate :func:`rate_interval` says more then.

    Args:
        values_by_cluster: For each instance its values; an empty one is passed over.
        level: Coverage, between 0 and 1.
        repetitions: Bootstrap samples.
        seed: Seed of the bootstrap.

    Raises:
        ValueError: There is no value, one is not finite, or ``level`` or ``repetitions`` is out of range.
    """
    _check_level(level)
    _check_repetitions(repetitions)
    clusters = [np.asarray(values, dtype=np.float64) for values in values_by_cluster if len(values)]
    if not clusters or not all(np.isfinite(values).all() for values in clusters):
        raise ValueError(f"a mean needs finite values, got {list(values_by_cluster)!r:.200}")
    sums = np.array([values.sum() for values in clusters])
    counts = np.array([len(values) for values in clusters])
    rng = np.random.default_rng(seed)
    means = np.empty(repetitions)
    for repetition in range(repetitions):
        drawn = rng.integers(len(clusters), size=len(clusters))
        means[repetition] = sums[drawn].sum() / counts[drawn].sum()
    return Estimate(float(sums.sum() / counts.sum()), *_percentiles(means, level))


def iqm(values: ArrayLike, *, axis: int | None = None) -> Any:
    """Return the interquartile mean: that of what is left without the lowest and the highest quarter.

    ``scipy.stats.trim_mean(values, 0.25)``; floor(n / 4) values go at each end (Agarwal et al. 2021,
    arXiv:2108.13264, section 4.3).

    Args:
        values: The scores.
        axis: The axis to reduce; None reduces all of them.

    Returns:
        A float, or an array where ``axis`` leaves other axes.

    Raises:
        ValueError: There is no value, or one is not finite.
    """
    from scipy.stats import trim_mean  # takes more than a second to import

    array = np.asarray(values, dtype=np.float64)
    if array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"the interquartile mean needs finite values, got {array!r:.200}")
    reduced = trim_mean(array, 0.25, axis=axis)
    return float(reduced) if np.ndim(reduced) == 0 else np.asarray(reduced)


def stratified_bootstrap(
    scores: Mapping[str, Sequence[float]],
    *,
    statistic: Statistic = iqm,
    level: float = 0.95,
    repetitions: int = 2000,
    seed: int = 0,
) -> Estimate:
    """Return an aggregate over tasks and seeds, with the percentile interval of a bootstrap over seeds.

    The seeds of each task are drawn with replacement within that task, and the statistic is taken of all drawn
    scores together (Agarwal et al. 2021, arXiv:2108.13264, section 4.1 and their library rliable). With one seed
    a task there is nothing to draw from: the interval has no width.

    Args:
        scores: For each task the score of each seed; tasks may differ in their number of seeds.
        statistic: Reduces an axis; default the interquartile mean.
        level: Coverage, between 0 and 1.
        repetitions: Bootstrap samples.
        seed: Seed of the bootstrap.

    Raises:
        ValueError: There is no task or a task without scores, a score is not finite, or ``level`` or
            ``repetitions`` is out of range.
    """
    _check_level(level)
    _check_repetitions(repetitions)
    strata = [np.asarray(values, dtype=np.float64) for values in scores.values()]
    if not strata or any(values.size == 0 or not np.isfinite(values).all() for values in strata):
        raise ValueError(f"an aggregate needs finite scores of each task, got {dict(scores)!r:.200}")
    rng = np.random.default_rng(seed)
    drawn = np.concatenate(
        [values[rng.integers(len(values), size=(repetitions, len(values)))] for values in strata], axis=1
    )
    aggregate = float(statistic(np.concatenate(strata), axis=0))
    return Estimate(aggregate, *_percentiles(np.asarray(statistic(drawn, axis=1)), level))


def _percentiles(samples: NDArray[np.float64], level: float) -> tuple[float, float]:
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level!r}")


def _check_repetitions(repetitions: int) -> None:
    if repetitions < 1:
        raise ValueError(f"repetitions must be at least 1, got {repetitions!r}")
