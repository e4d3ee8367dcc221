"""Shaping: what is added to rewards, and what leaves the loss."""

from __future__ import annotations

import pytest
import torch

from tetrathlon.algos.segments import Segments
from tetrathlon.algos.shaping import (
    at_last,
    kl_penalty,
    length_cost,
    length_gap,
    length_reward,
    overlong_penalty,
    pair_gain,
    without_cut,
)

NAN = torch.nan


def test_leaving_the_reference_costs_only_where_the_policy_wrote() -> None:
    logp = torch.tensor([[-1.0, NAN, -2.0]], requires_grad=True)
    mask = torch.isfinite(logp)
    got = kl_penalty(logp, torch.tensor([[-1.5, NAN, -1.0]]), mask, coef=0.1)
    assert got[0].tolist() == pytest.approx([-0.05, 0.0, 0.1])
    assert not got.requires_grad
    third = kl_penalty(logp, torch.tensor([[-1.5, NAN, -1.0]]), mask, coef=0.1, estimator="k3")
    assert third[0].tolist() == pytest.approx([-0.0106531, 0.0, -0.0718282], rel=1e-5)


def test_a_term_of_a_row_is_paid_at_its_last_decision() -> None:
    mask = torch.tensor([[False, True, True, False, False], [True, True, False, True, True], [False] * 5])
    got = at_last(torch.tensor([1.0, 2.0, 3.0]), mask)
    assert got.tolist() == [[0, 0, 1, 0, 0], [0, 0, 0, 0, 2], [0] * 5]
    assert torch.isfinite(at_last(torch.tensor([1.0, 2.0, NAN]), mask)).all()


def test_cut_episodes_leave_the_loss_and_their_neighbours_stay() -> None:
    mask = torch.tensor([[True, True, False, True, True], [True, True, True, False, False]])
    episode = torch.tensor([[0, 0, 1, 1, 1], [0, 0, 0, -1, -1]])
    cut = torch.tensor([[False, False, True, False, True], [False, False, False, True, True]])
    segments = Segments.of("episode", mask, episode=episode, turn=episode)
    assert without_cut(cut, segments).tolist() == [[True, True, False, False, False], [True, True, True, False, False]]
    assert torch.equal(without_cut(torch.zeros_like(cut), segments), mask)


@pytest.mark.parametrize(("length", "expected"), [(0, 0.0), (80, 0.0), (90, -0.5), (100, -1.0), (101, -1.0)])
def test_the_overlong_penalty_grows_over_the_last_stretch(length: int, expected: float) -> None:
    assert overlong_penalty(torch.tensor([length]), limit=100, cache=20).tolist() == [expected]


@pytest.mark.parametrize("cache", [0, -1, 101])
def test_a_stretch_longer_than_the_limit_is_refused(cache: int) -> None:
    with pytest.raises(ValueError, match=f"from 1 to the limit, 100, got {cache}"):
        overlong_penalty(torch.tensor([1]), limit=100, cache=cache)


def test_the_shorter_of_the_right_answers_gets_more() -> None:
    length = torch.tensor([10, 20, 30, 7, 7, 5])
    correct = torch.tensor([True, True, False, True, False, True])
    group = torch.tensor([4, 4, 4, 1, 1, 0])
    assert length_reward(length, correct, group).tolist() == [0.5, 0.0, -0.5, 0.0, 0.0, 0.0]
    # A short wrong answer is not paid for being short.
    assert length_reward(torch.tensor([10, 30]), torch.tensor([False, True]), torch.zeros(2).long()).tolist() == [
        0,
        -0.5,
    ]


def test_length_costs() -> None:
    length = torch.tensor([50, 100, 300])
    assert length_cost(length, coef=0.01, free=100).tolist() == pytest.approx([0.0, 0.0, -2.0])
    assert length_gap(length, torch.tensor([100, 100, 100])).tolist() == pytest.approx([-0.015, 0.0, -0.06])


def test_of_a_pair_both_must_be_right() -> None:
    score = torch.tensor([1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0])
    group = torch.tensor([7, 7, 3, 3, 5, 5, 9, 9, 2])
    pair = torch.tensor([0, 0, 0, 0, 4, 4, 4, 4, 6])
    paid = score + pair_gain(score, group, pair)
    # The partner of 7 is always right, that of 3 in half, that of 5 never; 2 has none.
    assert paid.tolist() == [1.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 1.0]


def test_three_of_a_pair_are_paid_by_the_mean_of_the_other_groups() -> None:
    score = torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0])
    group = torch.tensor([0, 1, 1, 2, 2, 2, 2])
    paid = score + pair_gain(score, group, torch.zeros(7, dtype=torch.long))
    assert paid.tolist() == pytest.approx([(0.5 + 0.75) / 2, 0.875, 0, 0.75, 0.75, 0.75, 0])


def test_rows_that_say_nothing_do_not_count_in_a_pair() -> None:
    score = torch.tensor([1.0, NAN, 0.0, NAN, NAN, 1.0])
    group = torch.tensor([0, 0, 1, 1, 2, 3])
    gain = pair_gain(score, group, torch.tensor([0, 0, 0, 0, 5, 5]))
    assert gain[[0, 2, 5]].tolist() == [-1.0, 0.0, 0.0]
    assert gain[[1, 3, 4]].isnan().all()


def test_the_gradient_of_a_pair_is_that_of_the_chance_of_both() -> None:
    """Over all outcomes of groups of 1 with chances p and q, the score function gives the gradient of p q."""
    p, q = 0.3, 0.8
    total = torch.zeros(2)
    for a in (0.0, 1.0):
        for b in (0.0, 1.0):
            chance = (p if a else 1 - p) * (q if b else 1 - q)
            score = torch.tensor([a, b])
            paid = score + pair_gain(score, torch.tensor([0, 1]), torch.tensor([0, 0]))
            grad = torch.tensor([1 / p if a else -1 / (1 - p), 1 / q if b else -1 / (1 - q)])
            total += chance * paid * grad
    assert total.tolist() == pytest.approx([q, p])
