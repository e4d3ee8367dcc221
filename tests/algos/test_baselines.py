"""Baselines across starts, and whitening."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch

from tetrathlon.algos.baselines import MovingAverage, batch_mean, moving_average, whiten

NAN = torch.nan


def test_batch_mean() -> None:
    assert batch_mean(torch.tensor([1.0, NAN, 3.0])).tolist() == [-1.0, 0.0, 1.0]
    assert batch_mean(torch.tensor([5.0, NAN])).tolist() == [0.0, 0.0]
    assert batch_mean(torch.full((7,), 0.95)).tolist() == [0.0] * 7


class TestMovingAverage:
    def test_compares_with_the_past_alone(self) -> None:
        state = MovingAverage(0.5)
        first, state = moving_average(torch.tensor([1.0, 3.0]), state)
        assert first.tolist() == [-1.0, 1.0] and state.mean == pytest.approx(2.0)  # its own mean: there is no past
        second, state = moving_average(torch.tensor([5.0]), state)
        assert second.tolist() == [3.0]
        assert state.mean == pytest.approx((0.25 * 2 + 0.5 * 5) / 0.75)  # the start weighs nothing

    def test_rows_without_a_score_neither_learn_nor_teach(self) -> None:
        _, state = moving_average(torch.tensor([2.0, NAN, torch.inf]), MovingAverage(0.9))
        assert state.mean == pytest.approx(2.0)
        got, after = moving_average(torch.tensor([NAN, NAN]), state)
        assert got.tolist() == [0.0, 0.0] and after == state
        assert moving_average(torch.tensor([NAN, 3.0]), state)[0].tolist() == pytest.approx([0.0, 1.0])

    def test_the_first_single_score_is_no_advantage(self) -> None:
        assert moving_average(torch.tensor([5.0]), MovingAverage(0.9))[0].tolist() == [0.0]

    def test_goes_through_a_checkpoint_exactly(self) -> None:
        _, state = moving_average(torch.tensor([0.1, 0.7]), MovingAverage(0.9))
        again = MovingAverage(**json.loads(json.dumps(dataclasses.asdict(state))))
        assert again == state

    @pytest.mark.parametrize("decay", [1.0, -0.1, NAN])
    def test_a_decay_that_forgets_or_keeps_all_is_refused(self, decay: float) -> None:
        with pytest.raises(ValueError, match=r"decay must be in \[0, 1\)"):
            MovingAverage(decay)


class TestWhiten:
    @pytest.mark.parametrize(("ddof", "expected"), [(0, 1.2247449), (1, 1.0)])
    def test_reads_the_mask_alone(self, ddof: int, expected: float) -> None:
        x = torch.tensor([[1.0, NAN], [3.0, 5.0]])
        got = whiten(x, torch.tensor([[True, False], [True, True]]), ddof=ddof)
        assert got.flatten().tolist() == pytest.approx([-expected, 0.0, 0.0, expected])

    @pytest.mark.parametrize("x", [[2.5], [0.7] * 8, [0.3] * 12, []])
    def test_what_does_not_vary_becomes_zero(self, x: list[float]) -> None:
        got = whiten(torch.tensor(x), torch.ones(len(x), dtype=torch.bool), ddof=1)
        assert got.tolist() == [0.0] * len(x)

    def test_is_of_all_decisions_and_not_of_rows(self) -> None:
        x = torch.randn(3, 50, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 4 + 7
        mask = torch.arange(50) < torch.tensor([[50], [3], [0]])
        kept = whiten(x, mask)[mask]
        assert kept.mean().item() == pytest.approx(0.0, abs=1e-9)
        assert kept.std(unbiased=False).item() == pytest.approx(1.0, abs=1e-6)
        assert (whiten(x, mask)[~mask] == 0).all()
