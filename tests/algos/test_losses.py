"""Losses: numbers of public faults and of the papers' formulas."""

from __future__ import annotations

import pytest
import torch

from tetrathlon.algos.losses import clipped_surrogate, dpo, episode_sums, exp_linear, expectile, squared_error, total

ONE = torch.tensor([[True]])


def surrogate(ratio: float, advantage: float, **options: float) -> float:
    logp = torch.tensor([[ratio]]).log()
    return clipped_surrogate(logp, torch.zeros(1, 1), torch.tensor([[advantage]]), ONE, **options)[0].item()


@pytest.mark.parametrize(
    ("ratio", "advantage", "options", "expected"),
    [
        (1.25, 1.0, {"clip_high": 0.28}, -1.25),
        (1.25, 1.0, {"clip_high": 0.2}, -1.2),
        (0.5, 1.0, {}, -0.5),
        (0.5, -1.0, {"clip_low": 0.2}, 0.8),
        (5.0, -1.0, {"dual_clip": 3.0}, 3.0),
        (5.0, -1.0, {}, 5.0),
        (5.0, 1.0, {"dual_clip": 3.0}, -1.2),
    ],
)
def test_clipped_surrogate(ratio: float, advantage: float, options: dict[str, float], expected: float) -> None:
    assert surrogate(ratio, advantage, **options) == pytest.approx(expected)


@pytest.mark.parametrize("split", [[4], [1, 3], [2, 2], [1, 1, 1, 1]])
def test_token_mean_does_not_depend_on_the_split(split: list[int]) -> None:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(4, 1000, generator=generator, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([100, 900, 1, 0])
    mask = torch.arange(1000) < lengths[:, None]
    whole = torch.autograd.grad(total(weight**2, mask, mask.sum()), weight)[0]
    parts = [total(w**2, m, mask.sum()) for w, m in zip(weight.split(split), mask.split(split), strict=True)]
    assert torch.allclose(torch.autograd.grad(sum(parts), weight)[0], whole, rtol=1e-6)  # type: ignore[arg-type]


def test_token_mean_by_hand() -> None:
    loss = torch.tensor([[2.0] * 100 + [0.0] * 800, [0.5] * 900])
    mask = torch.arange(900) < torch.tensor([[100], [900]])
    assert sum(total(loss[b : b + 1], mask[b : b + 1], mask.sum()) for b in range(2)).item() == pytest.approx(0.65)  # type: ignore[union-attr]


def test_masked_row_leaves_the_denominator_too() -> None:
    mask = torch.tensor([[True] * 4, [False] * 4])
    assert total(torch.ones(2, 4), mask, mask.sum()).item() == 1.0


def test_an_empty_mask_gives_zero_and_a_graph() -> None:
    logp = torch.zeros(1, 3, requires_grad=True)
    mask = torch.zeros(1, 3, dtype=torch.bool)
    loss = total(clipped_surrogate(logp, torch.full((1, 3), torch.nan), torch.ones(1, 3), mask)[0], mask, mask.sum())
    loss.backward()
    assert loss.item() == 0.0 and logp.grad is not None and logp.grad.tolist() == [[0.0, 0.0, 0.0]]


def test_nan_outside_the_mask_does_not_leak() -> None:
    nan = torch.nan
    logp = torch.tensor([[0.0, nan]], requires_grad=True)
    mask = torch.tensor([[True, False]])
    loss = total(clipped_surrogate(logp, torch.tensor([[0.0, nan]]), torch.tensor([[1.0, nan]]), mask)[0], mask, 1)
    loss.backward()
    assert loss.item() == -1.0 and logp.grad is not None and logp.grad.tolist() == [[-1.0, 0.0]]


def test_clipped_gradient_is_zero() -> None:
    logp = torch.tensor([[0.5]], requires_grad=True)
    clipped_surrogate(logp, torch.zeros(1, 1), torch.ones(1, 1), ONE)[0].sum().backward()
    assert logp.grad is not None and logp.grad.item() == 0.0


def test_ratios_beyond_any_float_stay_finite_and_keep_their_gradient() -> None:
    for gap, advantage, options in (
        (90.0, 1.0, {}),
        (90.0, -1.0, {}),
        (200.0, 0.0, {}),
        (90.0, -1.0, {"dual_clip": 3.0}),
    ):
        logp = torch.tensor([[gap]], requires_grad=True)
        loss = clipped_surrogate(logp, torch.zeros(1, 1), torch.tensor([[advantage]]), ONE, **options)[0].sum()
        loss.backward()
        assert torch.isfinite(loss) and logp.grad is not None and torch.isfinite(logp.grad).all()
        assert (logp.grad.item() > 0) == (advantage < 0 and not options)
    assert exp_linear(torch.tensor([0.0, 20.0, 21.0])).tolist() == pytest.approx([1.0, 4.8516520e8, 9.7033040e8])


def test_episode_sums() -> None:
    x = torch.tensor([[1.0, torch.nan, 2.0, 4.0], [8.0, 16.0, torch.nan, torch.nan]])
    episode = torch.tensor([[0, 0, 0, 1], [0, 0, -1, -1]])
    assert episode_sums(x, torch.isfinite(x), episode).tolist() == [[3.0, 4.0], [24.0, 0.0]]


def test_squared_error() -> None:
    got = squared_error(
        torch.tensor([[2.0, torch.nan]]), torch.tensor([[1.1, torch.nan]]), torch.tensor([[True, False]])
    )
    assert got.tolist() == [[pytest.approx(0.405), 0.0]]


def test_expectile() -> None:
    assert expectile(torch.tensor([1.0, -1.0]), 0.9).tolist() == pytest.approx([0.9, 0.1])
    points = torch.tensor([0.0, 1.0, 2.0, 10.0], dtype=torch.float64)
    for tau, best in ((0.5, 3.25), (0.7, 4.9375), (0.9, 7.75), (0.99, 9.735)):
        grid = torch.linspace(0, 10, 200_001, dtype=torch.float64)
        losses = expectile(points[None] - grid[:, None], tau).sum(dim=1)
        assert grid[losses.argmin()].item() == pytest.approx(best, abs=1e-3)


def test_dpo() -> None:
    assert dpo(torch.tensor([6.0, 0.0]), 0.1).tolist() == pytest.approx([0.437488, 0.693147], abs=1e-6)
