"""Preference losses: pinned values, relations between them, and their far ends."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tetrathlon.algos.preferences import bradley_terry, dpo, hinge, ipo, kto, orpo, plackett_luce

SIX = torch.tensor([6.0])


def test_pairs() -> None:
    one = torch.tensor([1.0])
    assert bradley_terry(one).item() == pytest.approx(0.313262, abs=1e-6)
    assert bradley_terry(one, margin=0.5).item() == pytest.approx(0.474077, abs=1e-6)
    assert bradley_terry(one, margin=torch.tensor([0.5])).item() == pytest.approx(0.474077, abs=1e-6)
    assert bradley_terry(one, label_smoothing=0.1).item() == pytest.approx(0.413262, abs=1e-6)


def test_relatives_of_dpo() -> None:
    assert dpo(SIX, 0.1).item() == pytest.approx(0.437488, abs=1e-6)
    assert torch.equal(dpo(SIX, 0.1), bradley_terry(0.1 * SIX))
    assert hinge(SIX, 0.1).item() == pytest.approx(0.4)
    assert hinge(2 * SIX, 0.1).item() == 0.0
    assert ipo(SIX, 0.1).item() == pytest.approx(1.0)
    simpo = bradley_terry(2.0 * torch.tensor([-1.0 - -1.5]), margin=0.5)
    assert simpo.item() == pytest.approx(0.474077, abs=1e-6)


def test_odds_ratio() -> None:
    preferred = torch.tensor([-1.0, -1.5, -1e-3, 0.0, -200.0], requires_grad=True)
    rejected = torch.tensor([-1.5, -1.0, -1e-3, -200.0, 0.0], requires_grad=True)
    loss = orpo(preferred, rejected)
    assert loss[:3].tolist() == pytest.approx([0.401135, 1.107328, 0.693147], abs=1e-6)
    loss.sum().backward()
    for leaf, sign in ((preferred, -1), (rejected, 1)):
        assert leaf.grad is not None and torch.isfinite(leaf.grad).all()
        assert (sign * leaf.grad[:3] > 0).all()


def test_verdicts() -> None:
    r = torch.tensor([1.0, -1.0], requires_grad=True)
    z = torch.tensor(0.2, requires_grad=True)
    loss = kto(r, torch.tensor([True, False]), z, beta=1.0)
    assert loss.tolist() == pytest.approx([0.310026, 0.231475], abs=1e-6)
    loss.sum().backward()
    assert r.grad is not None and r.grad[0] < 0 < r.grad[1] and z.grad is None
    weighted = kto(r, torch.tensor([True, False]), -3.0, beta=1.0, desirable_weight=2.0, undesirable_weight=0.5)
    assert weighted.tolist() == pytest.approx([2 * 0.268941, 0.5 * 0.268941], abs=1e-6)


class TestRankings:
    @staticmethod
    def loss(scores: list[list[float]], mask: list[list[int]] | None = None) -> Tensor:
        score = torch.tensor(scores, dtype=torch.float64)
        return plackett_luce(score, torch.ones_like(score).bool() if mask is None else torch.tensor(mask).bool())

    def test_in_order(self) -> None:
        assert self.loss([[2.0, 1.0, 0.0]]).item() == pytest.approx(0.720868, abs=1e-6)

    def test_of_two_is_a_pair(self) -> None:
        assert self.loss([[2.5, 1.0]]).item() == pytest.approx(bradley_terry(torch.tensor([1.5])).item())

    def test_absent_items_take_no_part(self) -> None:
        score = torch.tensor([[2.0, 1.0, 0.0, torch.nan], [3.0, torch.nan, torch.nan, torch.nan]], requires_grad=True)
        loss = plackett_luce(score, torch.isfinite(score))
        loss.sum().backward()
        assert loss.tolist() == [pytest.approx(0.720868, abs=1e-6), 0.0]
        assert score.grad is not None and torch.isfinite(score.grad).all()
        assert score.grad[1].tolist() == [0.0] * 4 and score.grad[0, 3].item() == 0.0

    def test_an_absent_item_may_stand_anywhere(self) -> None:
        loss = self.loss([[2.0, 9.0, 1.0, 0.0]], [[1, 0, 1, 1]])
        assert loss.item() == pytest.approx(0.720868, abs=1e-6)

    def test_a_constant_changes_nothing(self) -> None:
        assert self.loss([[502.0, 501.0, 500.0]]).item() == pytest.approx(0.720868, abs=1e-6)


@pytest.mark.parametrize("far", [1e4, -1e4])
def test_far_pairs_stay_finite(far: float) -> None:
    x = torch.tensor([far], requires_grad=True)
    loss = bradley_terry(x, label_smoothing=0.1).sum() + kto(x, torch.tensor([far < 0]), 0.0).sum()
    loss.backward()
    assert torch.isfinite(loss) and x.grad is not None and torch.isfinite(x.grad).all()


@pytest.mark.parametrize("smoothing", [0.5, -0.1])
def test_labels_that_say_nothing_are_refused(smoothing: float) -> None:
    with pytest.raises(ValueError, match=r"in \[0, 0\.5\)"):
        bradley_terry(SIX, label_smoothing=smoothing)


def test_dpo() -> None:
    assert dpo(torch.tensor([6.0, 0.0]), 0.1).tolist() == pytest.approx([0.437488, 0.693147], abs=1e-6)
