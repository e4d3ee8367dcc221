"""Numbers worked out by hand, or by another way of computing them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from tetrathlon.agents.statistics import (
    bootstrap_mean,
    cvar,
    iqm,
    majority_at_k,
    pass_all_k,
    pass_at_k,
    rate_interval,
    stratified_bootstrap,
    wilson,
)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (0, 10, 0.0, 0.2775327998628892),
        (10, 10, 0.7224672001371107, 1.0),
        (5, 10, 0.236593090512564, 0.7634069094874361),
        (0, 0, 0.0, 1.0),
    ],
)
def test_wilson_values(successes: int, n: int, low: float, high: float) -> None:
    assert wilson(successes, n) == pytest.approx((low, high), abs=1e-12)


def test_wilson_by_hand() -> None:
    # Zero of ten: the upper end is z^2 / (n + z^2).
    z2 = 1.959963984540054**2
    assert wilson(0, 10)[1] == pytest.approx(z2 / (10 + z2), abs=1e-12)


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_wilson_is_scipys(counts: tuple[int, int], level: float) -> None:
    other = binomtest(*counts).proportion_ci(level, method="wilson")
    assert wilson(*counts, level) == pytest.approx((other.low, other.high), abs=1e-9)


@pytest.mark.parametrize(("successes", "n", "level"), [(-1, 3, 0.95), (4, 3, 0.95), (1, 3, 1.0), (1, 3, 0.0)])
def test_wilson_refuses(successes: int, n: int, level: float) -> None:
    with pytest.raises(ValueError, match="must be"):
        wilson(successes, n, level)


def test_pass_at_k_values() -> None:
    assert pass_at_k(10, 3, 1) == pytest.approx(0.3, abs=1e-15)
    assert pass_at_k(4, 2, 2) == pytest.approx(1 - 1 / 6, abs=1e-15)  # one of six pairs has neither
    assert pass_at_k(5, 0, 5) == 0.0
    assert pass_at_k(5, 1, 5) == 1.0


@pytest.mark.parametrize("n", range(1, 8))
def test_pass_at_k_counts_subsets(n: int) -> None:
    for c in range(n + 1):
        samples = [True] * c + [False] * (n - c)
        for k in range(1, n + 1):
            subsets = list(itertools.combinations(samples, k))
            assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, subsets)) / len(subsets), abs=1e-12)


def test_pass_at_k_neither_overflows_nor_cancels() -> None:
    assert pass_at_k(100_000, 1, 1) == pytest.approx(1e-5, rel=1e-9)
    assert 0 < pass_at_k(100_000, 50_000, 1000) <= 1


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, 4)])
def test_pass_at_k_refuses(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="pass@k"):
        pass_at_k(n, c, k)


def test_pass_all_k_values() -> None:
    assert pass_all_k(10, 3, 1) == pytest.approx(0.3, abs=1e-15)
    assert pass_all_k(4, 2, 2) == pytest.approx(1 / 6, abs=1e-15)  # one of six pairs has both
    assert pass_all_k(5, 5, 5) == 1.0
    assert pass_all_k(5, 4, 5) == pass_all_k(5, 0, 1) == 0.0


@pytest.mark.parametrize("n", range(1, 8))
def test_pass_all_k_counts_subsets(n: int) -> None:
    for c in range(n + 1):
        samples = [True] * c + [False] * (n - c)
        for k in range(1, n + 1):
            subsets = list(itertools.combinations(samples, k))
            assert pass_all_k(n, c, k) == pytest.approx(sum(map(all, subsets)) / len(subsets), abs=1e-12)


def test_pass_all_k_neither_overflows_nor_cancels() -> None:
    assert pass_all_k(100_000, 99_999, 1) == pytest.approx(0.99999, rel=1e-12)
    assert pass_all_k(100_000, 99_999, 50_000) == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, 4)])
def test_pass_all_k_refuses(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match=r"pass\^k"):
        pass_all_k(n, c, k)


@pytest.mark.parametrize(
    ("answers", "right", "k", "value"),
    [
        (["a", "b", "a"], [True, False, True], 3, 1.0),
        (["b", "b", "a"], [False, False, True], 3, 0.0),
        (["a", "b"], [True, False], 2, 0.5),  # a tie, in expectation
        (["b", "a"], [False, True], 2, 0.5),  # whatever the order
        ([None, "a"], [False, True], 2, 1.0),  # no answer, no vote
        ([None, None], [False, False], 2, 0.0),
        (["a", "b", "c", "a"], [True, False, False, True], 1, 0.5),  # k = 1 is the mean
        (["a", "a", "b", "b"], [True, True, False, False], 2, 0.5),  # two blocks
        (["a", "a", "b"], [True, True, False], 2, 1.0),  # the third is left over
        (["a", "a"], [True, False], 2, 0.5),  # graded differently: their share
    ],
)
def test_majority(answers: list[str | None], right: list[bool], k: int, value: float) -> None:
    assert majority_at_k(answers, right, k) == pytest.approx(value, abs=1e-15)


def test_majority_refuses() -> None:
    for answers, right, k in ((["a"], [True], 2), (["a"], [True, False], 1), (["a"], [True], 0)):
        with pytest.raises(ValueError, match="majority@k"):
            majority_at_k(answers, right, k)


def test_bootstrap_mean_resamples_whole_clusters() -> None:
    # Two clusters of equal values: the mean of a resample is 0, 0.5 or 1 with chance 1/4, 1/2, 1/4.
    estimate = bootstrap_mean([[0.0] * 50, [1.0] * 50])
    assert estimate == (0.5, 0.0, 1.0)
    # The same values, each a cluster of its own, say much more.
    alone = bootstrap_mean([[0.0]] * 50 + [[1.0]] * 50)
    assert alone.mean == 0.5
    assert alone.low == pytest.approx(0.5 - 1.96 * 0.05, abs=0.015)
    assert alone.high == pytest.approx(0.5 + 1.96 * 0.05, abs=0.015)


def test_bootstrap_mean_is_over_all_values() -> None:
    assert bootstrap_mean([[1.0, 1.0, 1.0], [], [0.0]]).mean == 0.75


def test_bootstrap_is_seeded() -> None:
    values = [[float(i)] for i in range(20)]
    assert bootstrap_mean(values, seed=3) == bootstrap_mean(values, seed=3)
    assert bootstrap_mean(values, seed=3) != bootstrap_mean(values, seed=4)


@pytest.mark.parametrize("values", [[], [[]], [[math.nan]], [[math.inf, 0.0]]])
def test_bootstrap_mean_refuses(values: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="finite"):
        bootstrap_mean(values)


def test_iqm_values() -> None:
    assert iqm(range(1, 9)) == 4.5  # 3, 4, 5, 6
    assert iqm([100, 1, 2, 3]) == 2.5  # 2, 3
    assert iqm([7]) == 7.0
    assert iqm([1, 2, 9]) == 4.0  # floor(3 / 4) = 0 at each end
    np.testing.assert_array_equal(iqm([[1, 2, 3, 100], [4, 4, 4, 4]], axis=1), [2.5, 4.0])


@pytest.mark.parametrize("values", [[], [1.0, math.nan]])
def test_iqm_refuses(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        iqm(values)


def test_stratified_bootstrap_draws_within_tasks() -> None:
    # No seed of a task ever stands for another task: means of constant tasks do not move.
    assert stratified_bootstrap({"a": [1.0, 1.0], "b": [3.0, 3.0]}, statistic=np.mean) == (2.0, 2.0, 2.0)
    # One task varies: its two draws give 0, 1 or 2 in sum, over four scores.
    moving = stratified_bootstrap({"a": [0.0, 1.0], "b": [3.0, 3.0]}, statistic=np.mean)
    assert moving == (1.75, 1.5, 2.0)


def test_stratified_bootstrap_pools_runs_and_tasks() -> None:
    scores = {"a": [1.0, 2.0, 3.0, 4.0], "b": [5.0, 6.0, 7.0, 8.0]}
    assert stratified_bootstrap(scores).mean == 4.5
    assert stratified_bootstrap({"a": [5.0], "b": [7.0]}) == (6.0, 6.0, 6.0)


@pytest.mark.parametrize("scores", [{}, {"a": []}, {"a": [math.nan]}])
def test_stratified_bootstrap_refuses(scores: dict[str, list[float]]) -> None:
    with pytest.raises(ValueError, match="finite"):
        stratified_bootstrap(scores)


def test_bootstrap_refuses_settings() -> None:
    with pytest.raises(ValueError, match="level"):
        bootstrap_mean([[1.0]], level=95)
    with pytest.raises(ValueError, match="repetitions"):
        stratified_bootstrap({"a": [1.0]}, repetitions=0)


def test_a_rate_over_instances() -> None:
    assert rate_interval(3, 8, 8) == wilson(3, 8)
    assert rate_interval(6, 16, 8) == wilson(3, 8)
    assert rate_interval(400, 400, 25) == wilson(25, 25)
    assert rate_interval(0, 0, 0) == (0.0, 1.0)
    low, high = rate_interval(1, 40, 1)  # the formula by hand, with p = 1/40 and n = 1
    z = 1.959963984540054
    reach = z * math.sqrt(0.025 * 0.975 + z * z / 4)
    assert (low, high) == pytest.approx(
        ((0.025 + z * z / 2 - reach) / (1 + z * z), (0.025 + z * z / 2 + reach) / (1 + z * z))
    )
    for instances in (0, 9):
        with pytest.raises(ValueError, match="instances"):
            rate_interval(3, 8, instances)


def test_the_tail_of_costs() -> None:
    assert cvar(range(1, 21)) == 19.5  # the two highest of 20
    assert cvar([0.0, 0.0, 3.0]) == 3.0  # a tenth of three is a part of the highest
    assert cvar([1.0, 2.0, 3.0, 10.0], 0.3) == pytest.approx((10.0 + 0.2 * 3.0) / 1.2)
    assert cvar([1.0, 2.0], 1.0) == 1.5
    with pytest.raises(ValueError, match="level=0"):
        cvar([1.0], 0)
    with pytest.raises(ValueError, match="0 values"):
        cvar([])
