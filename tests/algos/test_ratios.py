"""Ratios and segments: values and gradients of each level."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tetrathlon.algos.denominators import denominators
from tetrathlon.algos.losses import clipped_surrogate, total
from tetrathlon.algos.ratios import exp_linear, log_ratio, truncated_weights
from tetrathlon.algos.segments import Level, Segments

NAN = torch.nan


def one_row(
    log_ratios: list[float], level: Level = "episode", turn: list[int] | None = None
) -> tuple[Tensor, Segments]:
    x = torch.tensor([log_ratios], dtype=torch.float64)
    zeros = torch.zeros(x.shape, dtype=torch.long)
    turns = zeros if turn is None else torch.tensor([turn])
    return x, Segments.of(level, torch.isfinite(x), episode=zeros, turn=turns)


def ratios(log_ratios: list[float], level: Level = "episode", turn: list[int] | None = None) -> list[float]:
    x, segments = one_row(log_ratios, level, turn)
    return log_ratio(x, torch.where(segments.mask, 0.0, NAN), segments.mask, segments).exp()[0].tolist()


class TestLevels:
    def test_an_episode_has_the_geometric_mean_of_its_decisions(self) -> None:
        assert ratios([0.2, -0.1, 0.3, NAN]) == pytest.approx([1.142631] * 3 + [1.0])

    def test_a_turn_has_that_of_its_own(self) -> None:
        got = ratios([0.2, NAN, -0.1, 0.3, NAN], "turn", [0, 0, 1, 1, 1])
        assert got == pytest.approx([math.exp(0.2), 1.0, math.exp(0.1), math.exp(0.1), 1.0])

    def test_a_decision_has_its_own(self) -> None:
        assert ratios([0.2, -0.1], "decision") == pytest.approx([math.exp(0.2), math.exp(-0.1)])

    def test_opposites_cancel_before_the_exponential(self) -> None:
        assert ratios([100.0, -100.0]) == [1.0, 1.0]

    def test_episodes_of_one_row_do_not_mix(self) -> None:
        x = torch.tensor([[0.2, 0.4, 1.0]])
        episode = torch.tensor([[0, 0, 1]])
        segments = Segments.of("episode", x > 0, episode=episode, turn=episode)
        got = log_ratio(x, torch.zeros(1, 3), x > 0, segments)
        assert got[0].tolist() == pytest.approx([0.3, 0.3, 1.0])

    def test_parts_of_an_episode_in_two_rows_are_one(self) -> None:
        x = torch.tensor([[0.2, 0.4], [0.9, NAN], [5.0, 5.0]])
        zeros = torch.zeros(3, 2, dtype=torch.long)
        mask = torch.isfinite(x)
        segments = Segments.of("episode", mask, episode=zeros, turn=zeros, source=torch.tensor([0, 0, 1]))
        got = log_ratio(x, torch.zeros(3, 2), mask, segments)
        assert segments.size.tolist() == [3, 2]
        assert got.tolist() == [pytest.approx([0.5, 0.5]), pytest.approx([0.5, 0.0]), pytest.approx([5.0, 5.0])]

    def test_decisions_that_the_loss_left_out_do_not_count_in_the_mean(self) -> None:
        x, segments = one_row([0.2, 0.4, 9.0])
        mask = torch.tensor([[True, True, False]])
        assert log_ratio(x, torch.zeros_like(x), mask, segments)[0].tolist() == pytest.approx([0.3, 0.3, 0.0])

    def test_a_mask_beyond_the_segments_is_refused(self) -> None:
        x, segments = one_row([0.2, NAN])
        with pytest.raises(ValueError, match="1 decisions of the mask are in no segment"):
            log_ratio(torch.zeros_like(x), torch.zeros_like(x), torch.ones_like(segments.mask), segments)

    def test_an_unknown_level_is_refused(self) -> None:
        with pytest.raises(ValueError, match="got 'sequence'"):
            one_row([0.0], "sequence")  # type: ignore[arg-type]

    def test_a_batch_without_decisions_has_no_segments(self) -> None:
        for level in ("decision", "turn", "episode"):
            x, segments = one_row([NAN, NAN], level)
            assert segments.count == 0 and not segments.first.any()
            assert log_ratio(x, x, segments.mask, segments).tolist() == [[0.0, 0.0]]

    def test_the_first_decision_of_each(self) -> None:
        _, segments = one_row([NAN, 0.0, 0.0, NAN, 0.0, 0.0], "turn", [0, 0, 0, 1, 1, 1])
        assert segments.first[0].tolist() == [False, True, False, False, True, False]


class TestGradient:
    """GSPO's loss by hand: -mean over episodes of min(s A, clip(s) A), s the geometric mean; eq. 5."""

    old = torch.zeros(2, 3, dtype=torch.float64)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    advantage = torch.tensor([[1.5] * 3, [-0.5] * 3], dtype=torch.float64)

    def ours(self, logp: Tensor, advantage: Tensor, clip: float = 0.5) -> tuple[Tensor, Tensor]:
        logp = logp.clone().requires_grad_()
        zeros = torch.zeros(2, 3, dtype=torch.long)
        segments = Segments.of("episode", self.mask, episode=zeros, turn=zeros)
        loss, _ = clipped_surrogate(
            logp, self.old, advantage, self.mask, segments=segments, clip_low=clip, clip_high=clip
        )
        summed = total(loss, self.mask, denominators("episode_mean", segments))
        return summed.detach(), torch.autograd.grad(summed, logp)[0]

    @pytest.mark.parametrize("clip", [0.5, 0.1])
    def test_is_that_of_the_paper_where_an_episode_has_one_advantage(self, clip: float) -> None:
        logp = torch.tensor([[0.2, -0.1, 0.3], [0.3, NAN, NAN]], dtype=torch.float64)
        leaf = logp.clone().requires_grad_()
        s = torch.stack([leaf[0].mean().exp(), leaf[1, 0].exp()])
        gain = self.advantage[:, 0]
        paper = -torch.minimum(s * gain, s.clamp(1 - clip, 1 + clip) * gain).mean()
        loss, gradient = self.ours(logp, self.advantage, clip)
        assert loss.item() == pytest.approx(paper.item(), rel=1e-12)
        assert torch.allclose(gradient, torch.autograd.grad(paper, leaf)[0], rtol=1e-12)

    def test_by_numbers(self) -> None:
        loss, gradient = self.ours(
            torch.tensor([[0.2, -0.1, 0.3], [0.3, NAN, NAN]], dtype=torch.float64), self.advantage
        )
        # -(1.142631 * 1.5 - 1.349859 * .5) / 2; each decision of the first episode: -1.142631 * 1.5 / 3 / 2
        assert loss.item() == pytest.approx(-0.519509, abs=1e-6)
        assert gradient[0].tolist() == pytest.approx([-0.285658] * 3, abs=1e-6)
        assert gradient[1].tolist() == pytest.approx([0.337465, 0.0, 0.0], abs=1e-6)

    def test_follows_each_decision_where_advantages_differ(self) -> None:
        advantage = torch.tensor([[3.0, 0.0, -1.0], [0.0] * 3], dtype=torch.float64)
        _, gradient = self.ours(torch.zeros(2, 3, dtype=torch.float64), advantage)
        assert gradient[0].tolist() == pytest.approx([-0.5, 0.0, 1 / 6])


class TestTruncatedWeights:
    def test_small_drifts_do_not_add_up_over_an_episode(self) -> None:
        x, segments = one_row([0.012] * 100)
        got = truncated_weights(x, torch.zeros_like(x), segments.mask, cap=2.0, segments=segments)
        assert got[0].tolist() == pytest.approx([1.012072] * 100, abs=1e-6)

    def test_are_capped_above_and_not_below(self) -> None:
        logp = torch.tensor([[1.0, -1.0, 0.0, 500.0, NAN]], requires_grad=True)
        mask = torch.isfinite(logp)
        got = truncated_weights(logp, torch.where(mask, 0.0, NAN), mask, cap=2.0)
        assert got[0].tolist() == pytest.approx([2.0, math.exp(-1), 1.0, 2.0, 1.0])
        assert not got.requires_grad

    @pytest.mark.parametrize("cap", [0.0, -1.0, NAN])
    def test_a_cap_that_lets_nothing_through_is_refused(self, cap: float) -> None:
        with pytest.raises(ValueError, match="cap must be above 0"):
            truncated_weights(torch.zeros(1, 1), torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool), cap=cap)


def test_the_exponential_goes_on_as_its_tangent() -> None:
    assert exp_linear(torch.tensor([0.0, 20.0, 21.0])).tolist() == pytest.approx([1.0, 4.8516520e8, 9.7033040e8])
    x = torch.tensor([1e4, -1e4, 25.0], requires_grad=True)
    exp_linear(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == pytest.approx([4.8516520e8, 0.0, 4.8516520e8])
