"""Losses: numbers of public faults and of the papers' formulas."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tetrathlon.algos.losses import (
    ValueClip,
    clipped_surrogate,
    entropy_bonus,
    episode_sums,
    expectile,
    squared_error,
    total,
    value_loss,
)

ONE = torch.tensor([[True]])


def surrogate(ratio: float, advantage: float, **options: Any) -> float:
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
    cases: list[tuple[float, float, dict[str, Any]]] = [
        (90.0, 1.0, {}),
        (90.0, -1.0, {}),
        (200.0, 0.0, {}),
        (90.0, -1.0, {"dual_clip": 3.0}),
    ]
    for gap, advantage, options in cases:
        logp = torch.tensor([[gap]], requires_grad=True)
        loss = clipped_surrogate(logp, torch.zeros(1, 1), torch.tensor([[advantage]]), ONE, **options)[0].sum()
        loss.backward()
        assert torch.isfinite(loss) and logp.grad is not None and torch.isfinite(logp.grad).all()
        assert (logp.grad.item() > 0) == (advantage < 0 and not options)


def test_episode_sums() -> None:
    x = torch.tensor([[1.0, torch.nan, 2.0, 4.0], [8.0, 16.0, torch.nan, torch.nan]])
    episode = torch.tensor([[0, 0, 0, 1], [0, 0, -1, -1]])
    assert episode_sums(x, torch.isfinite(x), episode).tolist() == [[3.0, 4.0], [24.0, 0.0]]


def test_squared_error() -> None:
    got = squared_error(
        torch.tensor([[2.0, torch.nan]]), torch.tensor([[1.1, torch.nan]]), torch.tensor([[True, False]])
    )
    assert got.tolist() == [[pytest.approx(0.405), 0.0]]


@pytest.mark.parametrize(
    ("options", "expected", "slope"),
    [
        ({}, 0.405, 0.9),
        ({"clip": 0.2, "clip_mode": "max"}, 0.405, 0.9),
        ({"clip": 0.2, "clip_mode": "clipped_only"}, 0.005, 0.0),
        ({"huber": 0.5}, 0.325, 0.5),
        ({"huber": 2.0}, 0.405, 0.9),
        ({"clip": 0.2, "clip_mode": "clipped_only", "huber": 0.05}, 0.00375, 0.0),
    ],
)
def test_each_way_of_clipping_values_has_its_own_number(options: dict[str, Any], expected: float, slope: float) -> None:
    nan = torch.nan
    value = torch.tensor([[2.0, nan]], dtype=torch.float64, requires_grad=True)
    wanted, old = (torch.tensor([[x, nan]], dtype=torch.float64) for x in (1.1, 1.0))
    loss = value_loss(value, wanted, torch.tensor([[True, False]]), old_value=old, **options)
    loss.sum().backward()
    assert loss.tolist() == [[pytest.approx(expected), 0.0]]
    assert value.grad is not None and value.grad.tolist() == [[pytest.approx(slope), 0.0]]


@pytest.mark.parametrize(
    ("clip", "mode", "fault"),
    [
        (0.2, "none", "do not go together"),
        (None, "max", "do not go together"),
        (0.2, "max", "needs old_value"),
        (None, "both", "got 'both'"),
    ],
)
def test_values_are_clipped_only_where_the_mode_is_named(clip: float | None, mode: ValueClip, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        value_loss(torch.zeros(1, 1), torch.zeros(1, 1), ONE, clip=clip, clip_mode=mode)


def test_the_entropy_bonus_raises_the_entropy() -> None:
    entropy = torch.tensor([[2.0, torch.nan]], requires_grad=True)
    loss = entropy_bonus(entropy, torch.tensor([[True, False]]), 0.1)
    loss.sum().backward()
    assert loss.tolist() == [[pytest.approx(-0.2), 0.0]]
    assert entropy.grad is not None and entropy.grad.tolist() == [[pytest.approx(-0.1), 0.0]]


def test_doubles_stay_doubles_and_halves_become_singles() -> None:
    for given, kept in ((torch.float64, torch.float64), (torch.bfloat16, torch.float32)):
        x = torch.full((1, 1), 0.1, dtype=given)
        outcomes = [*clipped_surrogate(x, x, x, ONE), value_loss(x, x, ONE), entropy_bonus(x, ONE, 1.0)]
        assert {outcome.dtype for outcome in outcomes} == {kept}
        assert total(x, ONE, 1).dtype == kept


def test_a_dual_clip_of_one_or_less_would_bound_every_loss() -> None:
    with pytest.raises(ValueError, match=r"above 1, got 0\.2"):
        surrogate(1.0, -1.0, dual_clip=0.2)


def test_expectile() -> None:
    assert expectile(torch.tensor([1.0, -1.0]), 0.9).tolist() == pytest.approx([0.9, 0.1])
    points = torch.tensor([0.0, 1.0, 2.0, 10.0], dtype=torch.float64)
    for tau, best in ((0.5, 3.25), (0.7, 4.9375), (0.9, 7.75), (0.99, 9.735)):
        grid = torch.linspace(0, 10, 200_001, dtype=torch.float64)
        losses = expectile(points[None] - grid[:, None], tau).sum(dim=1)
        assert grid[losses.argmin()].item() == pytest.approx(best, abs=1e-3)
