"""Faults that users of public trainers reported, each as a small input and the right value.

The comment above each test names where its fault was reported. Faults of tokenizers, samplers and weights are
tested beside the policies and trainers.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

from tetrathlon.algos.advantages import gae, group_relative, group_signal, leave_one_out, returns
from tetrathlon.algos.baselines import whiten
from tetrathlon.algos.denominators import BatchSize, Reduction, denominators
from tetrathlon.algos.kl import kl
from tetrathlon.algos.losses import clipped_surrogate, total, value_loss
from tetrathlon.algos.ratios import log_ratio, truncated_weights
from tetrathlon.algos.segments import Segments
from tetrathlon.algos.shaping import at_last, kl_penalty, without_cut

NAN = torch.nan
ALL: tuple[tuple[Reduction, float | None], ...] = (
    ("decision_mean", None),
    ("episode_mean", None),
    ("episode_sum", 10.0),
)


def episodes(mask: Tensor) -> Segments:
    zeros = torch.zeros(mask.shape, dtype=torch.long)
    return Segments.of("episode", mask, episode=zeros, turn=zeros)


def lengths(*of_rows: int) -> Tensor:
    return torch.arange(max(of_rows)) < torch.tensor(of_rows)[:, None]


def one_group(*scores: float, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    return torch.tensor(scores, dtype=dtype), torch.zeros(len(scores), dtype=torch.long)


def ends(size: int, **columns: list[int]) -> dict[str, Any]:
    flags = {
        name: torch.tensor([columns.get(name, [0] * size)], dtype=torch.bool)
        for name in ("final", "terminated", "truncated")
    }
    return {**flags, "env_steps": torch.tensor([columns.get("env_steps", [1] * size)])}


class TestReduction:
    # trl#7206, trl#3021, verl#7200, verl#7321, open-instruct#1161; trl#3021, mlx-lm#1413, verl#593
    @pytest.mark.parametrize("split", [[2], [1, 1]])
    @pytest.mark.parametrize(
        ("values", "of_rows", "reduction", "constant", "expected"),
        [
            ((2.0, 0.5), (100, 900), "decision_mean", None, 0.65),
            ((2.0, 0.5), (100, 900), "episode_mean", None, 1.25),
            ((2.0, 0.5), (100, 900), "episode_sum", 1000.0, 0.325),  # verl#5366, verl#3741
            ((1.0, 3.0), (8, 2), "decision_mean", None, 1.4),
            ((1.0, 3.0), (8, 2), "episode_mean", None, 2.0),
            ((1.0, 3.0), (8, 2), "episode_sum", 10.0, 0.7),
        ],
    )
    def test_each_mean_has_one_value_for_every_split(
        self,
        values: tuple[float, float],
        of_rows: tuple[int, int],
        reduction: Reduction,
        constant: float | None,
        expected: float,
        split: list[int],
    ) -> None:
        mask = lengths(*of_rows)
        loss = torch.where(mask, torch.tensor(values, dtype=torch.float64)[:, None], NAN)
        divisor = denominators(reduction, episodes(mask), constant=constant)
        parts = zip(loss.split(split), mask.split(split), divisor.split(split), strict=True)
        assert sum(total(*part).item() for part in parts) == pytest.approx(expected)

    @pytest.mark.parametrize(("reduction", "constant"), ALL)
    @pytest.mark.parametrize("size", [1, 2, 4, 8])
    def test_gradients_do_not_depend_on_micro_batches(
        self, reduction: Reduction, constant: float | None, size: int
    ) -> None:
        generator = torch.Generator().manual_seed(0)
        mask = lengths(5, 1, 0, 9, 3, 3, 7, 2)
        x = torch.randn(mask.shape, generator=generator, dtype=torch.float64)
        grads = []
        for width in (len(mask), size):
            leaf = x.clone().requires_grad_()
            whole = BatchSize.of(episodes(mask))
            for rows in torch.arange(len(mask)).split(width):
                divisor = denominators(reduction, episodes(mask[rows]), whole, constant=constant)
                total(leaf[rows] ** 2, mask[rows], divisor).backward()
            assert leaf.grad is not None
            grads.append(leaf.grad)
        assert torch.allclose(grads[0], grads[1], rtol=1e-6, atol=0)

    # trl#6369, trl#6439
    @pytest.mark.parametrize(("reduction", "constant", "expected"), [(*ALL[0], 1.0), (*ALL[1], 1.0), (*ALL[2], 0.4)])
    def test_a_cut_episode_leaves_numerator_and_denominator(
        self, reduction: Reduction, constant: float | None, expected: float
    ) -> None:
        mask = lengths(4, 4)
        cut = torch.zeros_like(mask)
        cut[1, 3] = True
        kept = without_cut(cut, episodes(mask))
        divisor = denominators(reduction, episodes(kept), constant=constant)
        assert total(torch.ones(2, 4), kept, divisor).item() == pytest.approx(expected)

    # trl#3248, trl#5826, trl#7077, unsloth-zoo#1262, unsloth-zoo#1286
    @pytest.mark.parametrize(("reduction", "constant"), ALL)
    @pytest.mark.parametrize("of_rows", [(0, 0), (2, 0)])
    def test_rows_without_decisions_add_nothing_and_break_nothing(
        self, reduction: Reduction, constant: float | None, of_rows: tuple[int, int]
    ) -> None:
        mask = torch.arange(4) < torch.tensor(of_rows)[:, None]
        logp = torch.full((2, 4), -1.0).masked_fill(~mask, -torch.inf).requires_grad_()
        segments = episodes(mask)
        surrogate, ratio = clipped_surrogate(logp, logp.detach(), torch.ones(2, 4), mask, segments=segments)
        loss = surrogate + kl(logp, logp.detach() - 0.5, mask) + value_loss(logp, torch.zeros(2, 4), mask)
        summed = total(loss, mask, denominators(reduction, segments, constant=constant))
        summed.backward()
        assert torch.isfinite(summed) and torch.isfinite(ratio).all() and logp.grad is not None
        assert (logp.grad[~mask] == 0).all()
        if not mask.any():
            assert summed.item() == 0.0
        else:
            assert (logp.grad[mask] != 0).all()


class TestMasks:
    # OpenRLHF#1240, AReaL#1347
    def test_a_nan_outside_the_mask_does_not_leak(self) -> None:
        mask = torch.tensor([[True, False]])
        logp = torch.tensor([[0.0, NAN]], requires_grad=True)
        junk = torch.tensor([[0.0, NAN]])
        loss, _ = clipped_surrogate(logp, junk, torch.tensor([[1.0, NAN]]), mask, segments=episodes(mask))
        summed = total(loss, mask, denominators("decision_mean", episodes(mask)))
        summed.backward()
        assert summed.item() == -1.0
        assert logp.grad is not None and logp.grad.tolist() == [[-1.0, 0.0]]

    def test_whitening_reads_the_mask_alone(self) -> None:
        got = whiten(torch.tensor([1.0, NAN, 3.0, 5.0]), torch.tensor([True, False, True, True]))
        assert got.tolist() == pytest.approx([-1.224745, 0.0, 0.0, 1.224745])

    # slime#1370, slime#1372
    def test_tool_output_costs_no_divergence(self) -> None:
        mask = torch.tensor([[True, False, False, True]])
        logp, ref = torch.zeros(1, 4), torch.full((1, 4), -1.0)
        reward = torch.tensor([[0.0, NAN, NAN, 1.0]])
        got = returns(reward + kl_penalty(logp, ref, mask, coef=0.1), mask, **ends(4), gamma=1.0)
        alone = returns(torch.tensor([[-0.1, 0.9]]), torch.ones(1, 2, dtype=torch.bool), **ends(2), gamma=1.0)
        assert got[0].tolist() == pytest.approx([alone[0, 0].item(), 0.0, 0.0, alone[0, 1].item()])
        assert alone[0].tolist() == pytest.approx([0.8, 0.9])

    # trl#3750, gpt-neox#1285
    @pytest.mark.parametrize(("length", "width"), [(3, 5), (5, 5)])
    def test_a_score_is_paid_at_the_end_token_and_not_at_padding(self, length: int, width: int) -> None:
        paid = at_last(torch.tensor([1.0]), torch.arange(width)[None] < length)
        assert paid[0].nonzero().flatten().tolist() == [length - 1]

    # SkyRL#2148, SkyRL#758, OpenRLHF#238, open-instruct#1041
    def test_an_end_token_that_was_not_sampled_is_not_in_the_ratio(self) -> None:
        logp = torch.tensor([[-1.0, -2.0, -7.0]])
        old = torch.tensor([[-1.0, -2.0, 0.0]])  # the end token was appended, with log-probability 0
        mask = torch.tensor([[True, True, False]])
        assert log_ratio(logp, old, mask, episodes(mask)).exp().tolist() == [[1.0, 1.0, 1.0]]


class TestGroups:
    # trl#5773, trl#5902, trl#2737, trl#6427, ms-swift#8123
    def test_rows_without_a_score_take_no_part(self) -> None:
        assert group_relative(*one_group(1, NAN, 0, NAN), scale="none").tolist() == [0.5, 0, -0.5, 0]
        for estimate in (group_relative, leave_one_out):
            assert estimate(*one_group(1, NAN, NAN, NAN)).tolist() == [0.0] * 4
            assert estimate(*one_group(NAN, NAN, NAN, NAN)).tolist() == [0.0] * 4
        got = group_relative(*one_group(1.0, 0.0, NAN, 0.0), eps=1e-4)
        assert got.tolist() == pytest.approx([1.154501, -0.577250, 0.0, -0.577250], abs=1e-6)

    # NeMo-RL#4158, verl#4597, verl#7581
    @pytest.mark.parametrize("eps", [1e-4, 1e-6, 1e-8, 0.0])
    @pytest.mark.parametrize(("score", "count"), [(0.95, 7), (0.7, 8), (0.2, 7), (0.3, 12), (1.0, 8)])
    def test_equal_scores_give_exactly_nothing_and_are_told(self, score: float, count: int, eps: float) -> None:
        scores, group = one_group(*[score] * count)
        assert group_relative(scores, group, eps=eps).tolist() == [0.0] * count
        assert leave_one_out(scores, group).tolist() == [0.0] * count
        signal = group_signal(scores, group)
        assert signal.informative.tolist() == [False] and signal.scorable.tolist() == [count]

    # verl core_algos, verl#3635; trl#4662
    @pytest.mark.parametrize("scale", ["std", "none"])
    def test_a_raw_reward_is_never_an_advantage(self, scale: Literal["std", "none"]) -> None:
        assert group_relative(*one_group(5.0), scale=scale).tolist() == [0.0]
        assert leave_one_out(*one_group(5.0)).tolist() == [0.0]
        assert group_signal(*one_group(5.0)).scorable.tolist() == [1]  # no baseline
        for values in (group_relative(*one_group(0, 1, 0), scale=scale), leave_one_out(*one_group(0, 1, 0))):
            assert torch.isfinite(values).all() and values[1] > 0 > values[0]

    # The defaults of verl, TRL, OpenRLHF and AReaL
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"ddof": 1, "eps": 1e-6}, [1.499997, -0.499999]),
            ({"ddof": 1, "eps": 1e-4}, [1.499700, -0.499900]),
            ({"ddof": 0, "eps": 1e-6}, [1.732047, -0.577349]),
            ({"scale": "none"}, [0.75, -0.25]),
        ],
    )
    def test_the_deviation_is_said_and_not_guessed(self, options: dict[str, Any], expected: list[float]) -> None:
        got = group_relative(*one_group(1, 0, 0, 0, dtype=torch.float64), **options)
        assert got.tolist() == pytest.approx([expected[0], *[expected[1]] * 3], abs=1e-6)
        others = leave_one_out(*one_group(1, 0, 0, 0, dtype=torch.float64))
        assert others.tolist() == pytest.approx([1, -1 / 3, -1 / 3, -1 / 3])

    # trl#5588
    @pytest.mark.parametrize("dropped", [True, False])
    def test_a_group_without_a_signal_pushes_only_if_it_is_kept_and_then_only_by_divergence(
        self, dropped: bool
    ) -> None:
        scores, group = one_group(1.0, 1.0)
        mask = torch.ones(2, 3, dtype=torch.bool)
        if dropped:
            mask = mask & group_signal(scores, group).rows[:, None]
        logp = torch.full((2, 3), -1.0, requires_grad=True)
        advantage = group_relative(scores, group)[:, None].expand(2, 3)
        surrogate, _ = clipped_surrogate(logp, torch.full((2, 3), -1.1), advantage, mask)
        loss = surrogate + 0.1 * kl(logp, torch.full((2, 3), -1.5), mask)
        total(loss, mask, denominators("decision_mean", episodes(mask))).backward()
        expected = 0.0 if dropped else 0.1 * (1 - math.exp(-0.5)) / 6
        assert logp.grad is not None
        assert logp.grad.flatten().tolist() == pytest.approx([expected] * 6, rel=1e-5)


class TestReturns:
    # verl#2337, miles#1827, ROLL#447
    @pytest.mark.parametrize("junk", [9.0, NAN])
    def test_gae_runs_over_decisions_and_not_over_tool_output(self, junk: float) -> None:
        got, _ = gae(
            torch.tensor([[0, 0, junk, junk, 1]]),
            torch.tensor([[0.5, 0.6, junk, junk, 0.8]]),
            torch.tensor([[True, True, False, False, True]]),
            **ends(5),
            gamma=1.0,
            lam=0.95,
        )
        assert got[0].tolist() == pytest.approx([0.4705, 0.39, 0.0, 0.0, 0.2])

    # verl#7278
    def test_a_return_passes_over_tool_output(self) -> None:
        reward = torch.tensor([[0.0, 0, NAN, NAN, 0, 1]])
        got = returns(reward, ~torch.isnan(reward), **ends(6), gamma=1.0)
        assert got.tolist() == [[1, 1, 0, 0, 1, 1]]

    # RLinf#661, torchrl#4210
    @pytest.mark.parametrize(("end", "expected"), [("terminated", [1.9, 1.0]), ("truncated", [10.0, 10.0])])
    def test_only_a_truncation_is_bootstrapped(self, end: str, expected: list[float]) -> None:
        columns = ends(3, final=[0, 0, 1], **{end: [0, 1, 0]})
        reward, value = torch.tensor([[1.0, 1.0, NAN]]), torch.tensor([[0.0, 0.0, 10.0]])
        mask = torch.tensor([[True, True, False]])
        got, _ = gae(reward, value, mask, **columns, gamma=0.9, lam=1.0)
        assert got[0, :2].tolist() == pytest.approx(expected)
        assert returns(reward, mask, **columns, gamma=0.9, value=value)[0, :2].tolist() == pytest.approx(expected)


class TestRatios:
    # trl#3823, ROLL#165, Soup#723, OpenRLHF#1293
    def test_an_episode_has_the_mean_log_ratio_whatever_the_padding(self) -> None:
        outcomes = []
        for pads in (1, 4):
            row = [0.2, -0.1, 0.3, *[NAN] * pads]
            logp = torch.tensor([row], dtype=torch.float64, requires_grad=True)
            mask = ~torch.isnan(logp)
            loss, ratio = clipped_surrogate(
                logp, torch.where(mask, 0.0, NAN), torch.ones_like(logp), mask, segments=episodes(mask)
            )
            summed = total(loss, mask, denominators("episode_mean", episodes(mask)))
            summed.backward()
            assert ratio[0, :3].tolist() == pytest.approx([1.142631] * 3)
            assert logp.grad is not None
            outcomes.append([summed.item(), *logp.grad[0, :3].tolist()])
            assert (logp.grad[0, 3:] == 0).all()
        assert outcomes[0] == outcomes[1]

    def test_the_mean_is_taken_before_the_exponential(self) -> None:
        mask = torch.ones(1, 2, dtype=torch.bool)
        logp = torch.tensor([[100.0, -100.0]], requires_grad=True)
        ratio = log_ratio(logp, torch.zeros(1, 2), mask, episodes(mask)).exp()
        ratio.sum().backward()
        assert ratio.tolist() == [[1.0, 1.0]]
        assert logp.grad is not None and torch.isfinite(logp.grad).all()

    # trl#5814
    def test_the_weight_of_an_episode_does_not_grow_with_its_length(self) -> None:
        mask = torch.ones(1, 100, dtype=torch.bool)
        logp = torch.full((1, 100), -1.0)
        for drift, expected in ((0.0, 1.0), (0.012, 1.012072)):
            got = truncated_weights(logp, logp - drift, mask, cap=5.0, segments=episodes(mask))
            assert got[0].tolist() == pytest.approx([expected] * 100, rel=1e-4)


class TestDivergence:
    # ToolRL#52, grail#42, rocket-learn#12
    @pytest.mark.parametrize(
        ("estimator", "value", "slope"), [("k1", 0.5, 1.0), ("k2", 0.125, 0.5), ("k3", 0.106531, 0.393469)]
    )
    def test_sign_value_and_gradient(self, estimator: Any, value: float, slope: float) -> None:
        logp = torch.tensor([[-1.0]], requires_grad=True)
        got = kl(logp, torch.tensor([[-1.5]]), torch.tensor([[True]]), estimator)
        got.sum().backward()
        assert got.item() == pytest.approx(value, rel=1e-4)
        assert logp.grad is not None and logp.grad.item() == pytest.approx(slope, rel=1e-4)

    # The clamps of k3 in verl, SkyRL and RLinf
    def test_the_gradient_does_not_die_where_the_reference_is_far(self) -> None:
        logp = torch.tensor([[-9.0]], requires_grad=True)
        got = kl(logp, torch.tensor([[-1.0]]), torch.tensor([[True]]))
        got.sum().backward()
        assert got.item() == pytest.approx(2971.96, rel=1e-4)
        assert logp.grad is not None and logp.grad.item() == pytest.approx(-2979.96, rel=1e-4)

    # trl#6594, trl#6586
    def test_the_divergence_of_a_decision_moves_that_decision_alone(self) -> None:
        logp = torch.tensor([[-1.0, -2.0, -3.0]], dtype=torch.float64, requires_grad=True)
        mask = torch.ones(1, 3, dtype=torch.bool)
        got = kl(logp, logp.detach() - 0.5, mask, old_logp=logp.detach() + 0.2)
        for t in range(3):
            (gradient,) = torch.autograd.grad(got[0, t], logp, retain_graph=True)
            assert gradient[0].nonzero().flatten().tolist() == [t]
        # ratio e**-.2, estimate .106531, slope .393469
        assert got[0].tolist() == pytest.approx([math.exp(-0.2) * 0.106531] * 3, rel=1e-5)
        (gradient,) = torch.autograd.grad(got.sum(), logp)
        assert gradient[0].tolist() == pytest.approx([math.exp(-0.2) * 0.5] * 3, rel=1e-5)


class TestClipping:
    # DAPO's Clip-Higher and the dual clip
    @pytest.mark.parametrize(
        ("ratio", "advantage", "options", "expected"),
        [
            (1.25, 1.0, {"clip_high": 0.28}, -1.25),
            (1.25, 1.0, {"clip_high": 0.2}, -1.2),
            (5.0, -1.0, {"dual_clip": 3.0}, 3.0),
            (5.0, -1.0, {}, 5.0),
        ],
    )
    def test_both_bounds_and_the_dual_one(
        self, ratio: float, advantage: float, options: dict[str, Any], expected: float
    ) -> None:
        logp = torch.tensor([[ratio]]).log()
        mask = torch.tensor([[True]])
        got, _ = clipped_surrogate(logp, torch.zeros(1, 1), torch.tensor([[advantage]]), mask, **options)
        assert got.item() == pytest.approx(expected)

    def test_an_unchanged_policy_has_a_ratio_of_exactly_one(self) -> None:
        logp = -torch.rand(3, 5, generator=torch.Generator().manual_seed(0)) * 20
        mask = lengths(5, 2, 4)
        for segments in (None, episodes(mask)):
            _, ratio = clipped_surrogate(logp, logp.clone(), torch.ones(3, 5), mask, segments=segments)
            assert (ratio == 1).all()
