"""Whether a log can be trusted: numbers by hand, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from tetrathlon.algos.diagnostics import correlation, disagreement, out_of_data, ratio_shares

NAN = torch.nan
MASK = torch.tensor([[True, True, False], [True, False, True]])


class TestOutOfData:
    def test_by_hand(self) -> None:
        logged = torch.tensor([[-1.0, -4.0, NAN], [-2.0, NAN, -3.0]])
        proposed = torch.tensor([[-3.5, -3.0, NAN], [-0.5, NAN, -torch.inf]])
        assert out_of_data(logged, proposed, MASK, quantile=0.25) == (0.5, -3.0)
        assert out_of_data(logged, proposed, MASK, quantile=0.5) == (0.75, -2.0)
        assert out_of_data(logged, proposed, MASK, quantile=0.01) == (0.25, -4.0)

    def test_the_behaviour_itself_has_the_share_of_the_quantile(self) -> None:
        generator = torch.Generator().manual_seed(0)
        logged, again = torch.randn(2, 40, 50, generator=generator)
        mask = torch.ones(40, 50).bool()
        assert out_of_data(logged, logged, mask, quantile=0.05)[0] == 0.05
        assert out_of_data(logged, again, mask, quantile=0.05)[0] == pytest.approx(0.05, abs=0.02)
        assert out_of_data(logged, again - 10, mask, quantile=0.05)[0] == 1.0

    def test_equally_likely_actions_are_in_the_data(self) -> None:
        logged = torch.full((2, 3), -0.7)
        assert out_of_data(logged, logged, MASK, quantile=0.5)[0] == 0.0

    @pytest.mark.parametrize("quantile", [0.0, 1.0, -0.1])
    def test_quantiles_that_are_none(self, quantile: float) -> None:
        with pytest.raises(ValueError, match=r"quantile must be in \(0, 1\)"):
            out_of_data(torch.zeros(2, 3), torch.zeros(2, 3), MASK, quantile=quantile)


def test_shares_of_ratios() -> None:
    ratio = torch.tensor([[0.05, 1.0, NAN], [20.0, NAN, 0.0]]).log()
    shares = ratio_shares(ratio, MASK)
    assert (shares.below, shares.above) == (0.5, 0.25)
    wide = ratio_shares(ratio, MASK, low=0.01, high=100.0)
    assert (wide.below, wide.above) == (0.25, 0.0)
    with pytest.raises(ValueError, match="got low=2 and high=1"):
        ratio_shares(ratio, MASK, low=2, high=1)


class TestCorrelation:
    returns = torch.tensor([[1.0, 2.0, NAN], [3.0, NAN, 4.0]])

    def of(self, *q: float) -> tuple[float, float]:
        column = torch.tensor([[q[0], q[1], NAN], [q[2], NAN, q[3]]])
        found = correlation(column, self.returns, MASK)
        return found.linear, found.rank

    def test_a_line(self) -> None:
        assert self.of(12.0, 14.0, 16.0, 18.0) == (pytest.approx(1.0), pytest.approx(1.0))
        assert self.of(-1.0, -2.0, -3.0, -4.0) == (pytest.approx(-1.0), pytest.approx(-1.0))

    def test_ranks_see_no_bend(self) -> None:
        linear, rank = self.of(1.0, 2.0, 3.0, 1000.0)
        assert linear == pytest.approx(np.corrcoef([1, 2, 3, 1000], [1, 2, 3, 4])[0, 1]) and rank == pytest.approx(1.0)

    def test_ties_share_their_ranks(self) -> None:
        assert self.of(1.0, 1.0, 0.0, 2.0)[1] == pytest.approx(spearmanr([1, 1, 0, 2], [1, 2, 3, 4]).statistic)

    def test_a_constant_tells_nothing(self) -> None:
        assert self.of(0.1, 0.1, 0.1, 0.1) == pytest.approx((NAN, NAN), nan_ok=True)

    def test_a_large_offset_takes_no_digits(self) -> None:
        assert self.of(1e6 + 1, 1e6 + 2, 1e6 + 3, 1e6 + 4)[0] == pytest.approx(1.0)


def test_members_that_disagree() -> None:
    q = torch.tensor([[[1.0, 5.0, NAN], [2.0, NAN, 0.0]], [[3.0, 5.0, NAN], [2.0, NAN, 8.0]]])
    found = disagreement(q, MASK)
    assert found.flatten().tolist() == pytest.approx([2**0.5, 0, 0, 0, 0, 32**0.5])
    for wrong in (q[:1], q[0], q[:, :, :2]):
        with pytest.raises(ValueError, match=r"q must be \[M, 2, 3\] with M of 2 or more"):
            disagreement(wrong, MASK)


@pytest.mark.parametrize(
    "ask",
    [
        lambda x, mask: out_of_data(x, torch.zeros(2, 3), mask),
        lambda x, mask: out_of_data(torch.zeros(2, 3), x, mask),
        ratio_shares,
        lambda x, mask: correlation(x, torch.zeros(2, 3), mask),
        lambda x, mask: correlation(torch.zeros(2, 3), x, mask),
    ],
)
def test_refused(ask: Any) -> None:
    hole = torch.zeros(2, 3)
    hole[1, 2] = NAN
    with pytest.raises(ValueError, match="not finite at 1 of 4 decisions"):
        ask(hole, MASK)
    with pytest.raises(ValueError, match=r"must be \[2, 3\] as mask is, got \[2, 2\]"):
        ask(hole[:, :2], MASK)
    with pytest.raises(ValueError, match="no decision"):
        ask(torch.zeros(2, 3), torch.zeros(2, 3).bool())
