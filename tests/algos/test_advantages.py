"""Advantages: numbers of public faults and of the papers' formulas, then properties."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tetrathlon.algos.advantages import (
    adaptive_lambda,
    gae,
    group_relative,
    group_signal,
    leave_one_out,
    next_values,
    returns,
)
from tetrathlon.algos.columns import compact


def run(
    reward: list[float],
    value: list[float],
    mask: list[int] | None = None,
    *,
    final: list[int] | None = None,
    terminated: list[int] | None = None,
    truncated: list[int] | None = None,
    env_steps: list[int] | None = None,
    gamma: float = 1.0,
    lam: float = 0.95,
) -> Tensor:
    def flags(values: list[int] | None, fill: int) -> Tensor:
        return torch.tensor([values if values is not None else [fill] * len(reward)], dtype=torch.bool)

    return gae(
        torch.tensor([reward], dtype=torch.float64),
        torch.tensor([value], dtype=torch.float64),
        flags(mask, 1),
        final=flags(final, 0),
        terminated=flags(terminated, 0),
        truncated=flags(truncated, 0),
        env_steps=torch.tensor([env_steps or [1] * len(reward)]),
        gamma=gamma,
        lam=lam,
    )[0][0]


class TestGAE:
    def test_tool_output_takes_no_part(self) -> None:
        nan = float("nan")
        for junk in (9.0, nan):
            got = run([0, 0, nan, nan, 1], [0.5, 0.6, junk, junk, 0.8], [1, 1, 0, 0, 1])
            assert got.tolist() == pytest.approx([0.4705, 0.39, 0.0, 0.0, 0.2])

    def test_discounted_across_tool_output(self) -> None:
        got = run([0, 0, 0, 1], [0.2, 9, 9, 0.5], [1, 0, 0, 1], gamma=0.9, lam=0.8)
        assert got[[0, 3]].tolist() == pytest.approx([0.61, 0.5])

    def test_termination_does_not_bootstrap(self) -> None:
        got = run([1, 1], [0, 0], terminated=[0, 1], gamma=0.9, lam=1.0)
        assert got.tolist() == pytest.approx([1.9, 1.0])

    def test_truncation_bootstraps_from_the_true_last_observation(self) -> None:
        got = run([1, 1, 0], [0, 0, 10], [1, 1, 0], final=[0, 0, 1], truncated=[0, 1, 0], gamma=0.9, lam=1.0)
        assert got[:2].tolist() == pytest.approx([10.0, 10.0])

    def test_truncation_in_the_middle_of_a_stretch(self) -> None:
        # r = 1, V = .5 .6 .7 .8; truncated at the second with V(last) = 2; V after the stretch .9.
        got = run(
            [1, 1, 0, 1, 1, 0],
            [0.5, 0.6, 2.0, 0.7, 0.8, 0.9],
            [1, 1, 0, 1, 1, 0],
            final=[0, 0, 1, 0, 0, 1],
            truncated=[0, 1, 0, 0, 0, 0],
            gamma=0.9,
            lam=0.8,
        )
        assert got[[0, 1, 3, 4]].tolist() == pytest.approx([2.624, 2.2, 1.7472, 1.01])

    def test_termination_in_the_middle_of_a_stretch(self) -> None:
        got = run(
            [1, 1, 1, 1, 0],
            [0.5, 0.6, 0.7, 0.8, 0.9],
            [1, 1, 1, 1, 0],
            final=[0, 0, 0, 0, 1],
            terminated=[0, 1, 0, 0, 0],
            gamma=0.9,
            lam=0.8,
        )
        assert got[:4].tolist() == pytest.approx([1.328, 0.4, 1.7472, 1.01])

    def test_tokens_of_a_turn_are_not_discounted(self) -> None:
        got = run([0, 0, 1], [0, 0, 0], env_steps=[0, 0, 1], terminated=[0, 0, 1], gamma=0.5, lam=1.0)
        assert got.tolist() == [1.0, 1.0, 1.0]

    def test_an_empty_mask_gives_zeros(self) -> None:
        assert run([1.0, 2.0], [float("nan")] * 2, [0, 0]).tolist() == [0.0, 0.0]

    @settings(max_examples=60, deadline=None)
    @given(st.data())
    def test_equals_the_loop_over_what_was_decided(self, data: st.DataObject) -> None:
        size = data.draw(st.integers(1, 12))
        numbers = st.floats(-3, 3, width=32)
        mask = data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
        reward = data.draw(st.lists(numbers, min_size=size, max_size=size))
        value = data.draw(st.lists(numbers, min_size=size, max_size=size))
        steps = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
        ends = data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
        gamma, lam = 0.9, 0.7
        expected = [0.0] * size
        carry = following = 0.0
        for t in reversed(range(size)):
            if not mask[t]:
                continue
            discount = gamma ** steps[t]
            if ends[t]:
                carry = following = 0.0
            carry = reward[t] + discount * following - value[t] + discount * lam * carry
            expected[t], following = carry, value[t]
        got = run(reward, value, mask, terminated=ends, env_steps=steps, gamma=gamma, lam=lam)
        assert got.tolist() == pytest.approx(expected, abs=1e-9)


class TestTraces:
    never = torch.zeros(2, 3, dtype=torch.bool)
    reward = torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    value = torch.tensor([[0.2, 0.4, 0.5], [0.2, 0.4, 0.5]], dtype=torch.float64)

    def run(self, lam: float | Tensor, critic_lam: float | Tensor | None = None) -> tuple[Tensor, Tensor]:
        ends = torch.tensor([[False, False, True]] * 2)
        return gae(
            self.reward,
            self.value,
            ~self.never,
            final=self.never,
            terminated=ends,
            truncated=self.never,
            env_steps=torch.ones(2, 3, dtype=torch.long),
            gamma=1.0,
            lam=lam,
            critic_lam=critic_lam,
        )

    def test_each_row_may_have_its_own(self) -> None:
        advantage, _ = self.run(torch.tensor([[0.0], [1.0]]))
        assert advantage.tolist() == [pytest.approx([0.2, 0.1, 0.5]), pytest.approx([0.8, 0.6, 0.5])]
        per_decision, _ = self.run(torch.tensor([[0.0, 0.0, 9.0], [1.0, 1.0, -9.0]]))  # none after the last
        assert torch.equal(per_decision, advantage)

    def test_policy_and_critic_may_differ(self) -> None:
        # A trace of 1 gives the critic the plain return; one of 0 the next reward and value.
        advantage, wanted = self.run(0.0, critic_lam=1.0)
        assert advantage[0].tolist() == pytest.approx([0.2, 0.1, 0.5])
        assert wanted[0].tolist() == pytest.approx([1.0, 1.0, 1.0])
        assert self.run(0.0)[1][0].tolist() == pytest.approx([0.4, 0.5, 1.0])

    def test_a_trace_that_might_be_of_rows_or_of_positions_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"\[3\]"):
            self.run(torch.tensor([0.1, 0.2, 0.3]))

    def test_longer_answers_have_a_longer_reach(self) -> None:
        got = adaptive_lambda(torch.tensor([100, 1000, 20, 19, 1, 0]), alpha=0.05)
        assert got.tolist() == pytest.approx([0.8, 0.98, 0.0, 0.0, 0.0, 0.0])


class TestReturns:
    def run(self, reward: list[float], mask: list[int], gamma: float = 1.0, **columns: list[float]) -> list[float]:
        def flags(name: str) -> Tensor:
            return torch.tensor([columns.get(name, [0] * len(reward))], dtype=torch.bool)

        value = torch.tensor([columns["value"]], dtype=torch.float64) if "value" in columns else None
        got = returns(
            torch.tensor([reward], dtype=torch.float64),
            torch.tensor([mask], dtype=torch.bool),
            final=flags("final"),
            terminated=flags("terminated"),
            truncated=flags("truncated"),
            env_steps=torch.tensor([columns.get("env_steps", [1] * len(reward))]).long(),
            gamma=gamma,
            value=value,
        )
        return got[0].tolist()

    def test_a_chunk_is_discounted_by_its_steps(self) -> None:
        assert self.run([1, 1, 1], [1, 1, 1], 0.5, env_steps=[2, 0, 1]) == pytest.approx([1.5, 2.0, 1.0])

    def test_episodes_of_a_row_do_not_mix(self) -> None:
        assert self.run([1, 2, 4], [1, 1, 1], terminated=[0, 1, 0]) == [3.0, 2.0, 4.0]
        assert self.run([1, 2, 4], [1, 1, 1], truncated=[0, 1, 0]) == [3.0, 2.0, 4.0]

    def test_what_follows_a_truncation_counts_only_if_it_is_given(self) -> None:
        row: dict[str, list[float]] = {"final": [0, 0, 1], "truncated": [0, 1, 0]}
        nan = float("nan")
        assert self.run([1, 1, nan], [1, 1, 0], 0.9, **row) == pytest.approx([1.9, 1.0, 0.0])
        assert self.run([1, 1, nan], [1, 1, 0], 0.9, value=[nan, nan, 10], **row) == pytest.approx([10.0, 10.0, 0.0])


def test_next_values() -> None:
    got = next_values(
        torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]]),
        mask=torch.tensor([[True, False, True, True, False]]),
        final=torch.tensor([[False, False, False, False, True]]),
        terminated=torch.tensor([[False, False, True, False, False]]),
    )
    assert got.tolist() == [[3.0, 0.0, 0.0, 5.0, 0.0]]


def test_compact() -> None:
    index, valid = compact(torch.tensor([[False, True, True], [False, False, True]]))
    assert index.tolist() == [[1, 2], [2, 0]] and valid.tolist() == [[True, True], [True, False]]


class TestGroups:
    one_right = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    same = torch.zeros(4, dtype=torch.long)

    @pytest.mark.parametrize(
        ("ddof", "eps", "expected"),
        [(1, 1e-6, [1.499997, -0.499999]), (1, 1e-4, [1.499700, -0.499900]), (0, 1e-6, [1.732047, -0.577349])],
    )
    def test_scaled(self, ddof: int, eps: float, expected: list[float]) -> None:
        got = group_relative(self.one_right, self.same, ddof=ddof, eps=eps)
        assert got.tolist() == pytest.approx([expected[0], *[expected[1]] * 3], abs=1e-6)

    def test_centred(self) -> None:
        got = group_relative(self.one_right, self.same, scale="none")
        assert got.tolist() == pytest.approx([0.75, -0.25, -0.25, -0.25])

    def test_leave_one_out(self) -> None:
        assert leave_one_out(self.one_right, self.same).tolist() == pytest.approx([1, -1 / 3, -1 / 3, -1 / 3])

    @pytest.mark.parametrize("estimate", [group_relative, leave_one_out])
    @pytest.mark.parametrize("reward", [0.7, 0.95, 1e8, -3.0])
    def test_equal_rewards_give_exactly_nothing(self, estimate, reward: float) -> None:
        got = estimate(torch.full((8,), reward), torch.zeros(8, dtype=torch.long))
        assert got.tolist() == [0.0] * 8

    @pytest.mark.parametrize("estimate", [group_relative, leave_one_out])
    def test_a_group_of_one_gives_nothing(self, estimate) -> None:
        assert estimate(torch.tensor([5.0]), torch.tensor([0])).tolist() == [0.0]
        assert estimate(torch.tensor([]), torch.tensor([], dtype=torch.long)).tolist() == []

    def test_scores_that_are_not_finite_take_no_part(self) -> None:
        nan = float("nan")
        assert group_relative(torch.tensor([1, nan, 0, nan]), self.same, scale="none").tolist() == [0.5, 0, -0.5, 0]
        assert group_relative(torch.tensor([1, nan, nan, nan]), self.same).tolist() == [0.0] * 4
        assert leave_one_out(torch.tensor([1, nan, 0, float("inf")]), self.same).tolist() == [1.0, 0.0, -1.0, 0.0]

    def test_groups_without_a_signal_are_told_apart(self) -> None:
        nan = float("nan")
        score = torch.tensor([0.7, 0.7, 0.7, 1.0, nan, nan, nan, 0.0, 1.0, nan])
        group = torch.tensor([9, 9, 9, 5, 5, 7, 7, -2, -2, -2])
        signal = group_signal(score, group)
        assert signal.group.tolist() == [-2, 5, 7, 9]
        assert signal.scorable.tolist() == [2, 1, 0, 3]
        assert signal.informative.tolist() == [True, False, False, False]
        assert signal.rows.tolist() == [False] * 7 + [True] * 3
        for estimate in (group_relative, leave_one_out):
            assert (estimate(score, group)[~signal.rows] == 0).all()

    def test_large_groups_keep_their_digits(self) -> None:
        score = torch.full((1_000_001,), 0.95)
        score[0] = 0.05
        got = group_relative(score, torch.zeros(len(score), dtype=torch.long), scale="none")
        assert got[1].item() == pytest.approx(0.9 / 1_000_001, abs=6e-8)  # half a unit in the last place of 0.95


def test_half_precision_is_computed_in_single() -> None:
    score = (torch.arange(800) % 4 == 0).to(torch.bfloat16)
    group = torch.zeros(800, dtype=torch.long)
    assert group_relative(score, group)[0].item() == pytest.approx(1.7309, abs=1e-3)
    assert leave_one_out(score.bool(), group)[0].item() == pytest.approx(600 / 799, abs=1e-6)
    ones = torch.ones(1, 1000, dtype=torch.bfloat16)
    never = torch.zeros(1, 1000, dtype=torch.bool)
    got, _ = gae(
        ones.float(),
        torch.zeros_like(ones),
        ~never,
        final=never,
        terminated=never,
        truncated=never,
        env_steps=ones.long(),
        gamma=0.999,
        lam=1.0,
    )
    assert got.dtype == torch.float32 and got[0, 0].item() == pytest.approx((1 - 0.999**1000) / 0.001, rel=1e-4)
