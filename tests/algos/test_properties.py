"""What no formula may depend on: the order of rows, padding, the cut into micro-batches, the names of groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.algos.batches import Batch, random_batch
from tetrathlon.algos.advantages import gae, group_relative, group_signal, leave_one_out, returns
from tetrathlon.algos.baselines import batch_mean, whiten
from tetrathlon.algos.credit import assign
from tetrathlon.algos.denominators import BatchSize, Reduction, denominators
from tetrathlon.algos.kl import kl
from tetrathlon.algos.losses import clipped_surrogate, entropy_bonus, total, value_loss
from tetrathlon.algos.ratios import truncated_weights
from tetrathlon.algos.segments import Level
from tetrathlon.algos.shaping import kl_penalty, without_cut

LEVELS: tuple[Level, ...] = ("decision", "turn", "episode")
REDUCTIONS: tuple[tuple[Reduction, float | None], ...] = (
    ("decision_mean", None),
    ("episode_mean", None),
    ("episode_sum", 10.0),
)
batches = st.builds(random_batch, st.integers(0, 10**6), st.integers(2, 5))


def estimates(batch: Batch, level: Level) -> tuple[Tensor, Tensor, Tensor]:
    """Advantage, returns and value mask: KL in the reward, GAE with credit by level, whitened."""
    shaped = batch.reward + kl_penalty(batch.old_logp, batch.ref_logp, batch.mask, coef=0.1)
    credit = assign(
        batch.segments(level),
        reward=shaped,
        terminated=batch.terminated,
        truncated=batch.truncated,
        env_steps=batch.env_steps,
        gamma=0.9,
    )
    advantage, wanted = gae(
        credit.reward,
        batch.value,
        credit.mask,
        final=batch.final,
        terminated=credit.terminated,
        truncated=credit.truncated,
        env_steps=credit.env_steps,
        gamma=0.9,
        lam=0.8,
        critic_lam=1.0,
    )
    return whiten(credit.broadcast(advantage), batch.mask), wanted, credit.mask


def objective(
    batch: Batch,
    level: Level,
    reduction: tuple[Reduction, float | None],
    known: tuple[Tensor, Tensor, Tensor],
    size: BatchSize | None = None,
) -> Tensor:
    """One loss out of everything that keeps an update stable."""
    advantage, wanted, value_mask = known
    mask = without_cut(batch.cut, batch.segments("episode"))
    kept = replace(batch, mask=mask)
    segments = kept.segments(level)
    weight = truncated_weights(batch.old_logp, batch.sampler_logp, mask, cap=2.0, segments=kept.segments("episode"))
    surrogate, _ = clipped_surrogate(batch.logp, batch.old_logp, advantage, mask, segments=segments, dual_clip=3.0)
    error = value_loss(batch.value, wanted, value_mask & mask, old_value=batch.value - 0.1, clip=0.2, clip_mode="max")
    loss = surrogate * weight + 0.1 * kl(batch.logp, batch.ref_logp, mask, old_logp=batch.old_logp)
    loss = loss + entropy_bonus(batch.ref_logp, mask, 0.01) + 0.5 * error
    divisor = denominators(reduction[0], kept.segments("episode"), size, constant=reduction[1])
    return total(loss, mask, divisor)


def solved(batch: Batch, level: Level, reduction: tuple[Reduction, float | None]) -> tuple[Tensor, Tensor]:
    """The loss and its gradient with respect to ``logp``."""
    logp = batch.logp.clone().requires_grad_()
    loss = objective(batch.with_logp(logp), level, reduction, estimates(batch, level))
    return loss.detach(), torch.autograd.grad(loss, logp)[0]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=7, deadline=None)
@given(batch=batches, pads=st.tuples(st.integers(0, 3), st.integers(0, 3)))
def test_junk_and_padding_change_nothing(
    level: Level, reduction: tuple[Reduction, float | None], batch: Batch, pads: tuple[int, int]
) -> None:
    loss, gradient = solved(batch, level, reduction)
    assert torch.isfinite(loss) and torch.isfinite(gradient).all()
    assert (gradient[~batch.mask] == 0).all()
    wide_loss, wide_gradient = solved(batch.padded(*pads), level, reduction)
    assert wide_loss.item() == pytest.approx(loss.item(), rel=1e-12)
    width = batch.mask.shape[1]
    assert torch.allclose(wide_gradient[:, pads[0] : pads[0] + width], gradient, rtol=1e-12, atol=0)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=7, deadline=None)
@given(batch=batches, random=st.randoms())
def test_the_order_of_rows_changes_nothing(
    level: Level, reduction: tuple[Reduction, float | None], batch: Batch, random: Any
) -> None:
    order = list(range(len(batch.mask)))
    random.shuffle(order)
    loss, gradient = solved(batch, level, reduction)
    other_loss, other_gradient = solved(batch.rows(order), level, reduction)
    assert other_loss.item() == pytest.approx(loss.item(), rel=1e-9, abs=1e-12)
    assert torch.allclose(other_gradient, gradient[order], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=7, deadline=None)
@given(batch=batches, cuts=st.sets(st.integers(1, 4)))
def test_the_parts_add_up_to_the_whole(
    level: Level, reduction: tuple[Reduction, float | None], batch: Batch, cuts: set[int]
) -> None:
    rows = len(batch.mask)
    parts = torch.arange(rows).tensor_split(sorted(cut for cut in cuts if cut < rows))
    loss, gradient = solved(batch, level, reduction)
    known = estimates(batch, level)
    sizes = []
    for part in parts:
        piece = batch.rows(part)
        kept = replace(piece, mask=without_cut(piece.cut, piece.segments("episode")))
        sizes.append(BatchSize.of(kept.segments("episode")))
    size = sum(sizes[1:], sizes[0])
    logp = batch.logp.clone().requires_grad_()
    summed = torch.zeros((), dtype=torch.float64)
    for part in parts:
        piece = batch.with_logp(logp).rows(part)
        split = objective(piece, level, reduction, tuple(x[part] for x in known), size)  # type: ignore[arg-type]
        split.backward()  # the gradient is accumulated, as a trainer does it
        summed += split.detach()
    assert logp.grad is not None
    assert summed.item() == pytest.approx(loss.item(), rel=1e-9, abs=1e-12)
    assert torch.allclose(logp.grad, gradient, rtol=1e-6, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(
    pairs=st.lists(
        st.tuples(st.one_of(st.just(float("nan")), st.floats(-5, 5, width=32)), st.integers(0, 3)),
        min_size=1,
        max_size=12,
    ),
    shift=st.floats(-100, 100),
    random=st.randoms(),
)
def test_groups_know_neither_names_nor_order_nor_a_constant(
    pairs: list[tuple[float, int]], shift: float, random: Any
) -> None:
    order = list(range(len(pairs)))
    random.shuffle(order)
    names = random.sample(range(-50, 50), 4)
    score = torch.tensor([score for score, _ in pairs], dtype=torch.float64)
    group = torch.tensor([group for _, group in pairs])
    renamed = torch.tensor([names[name] for _, name in pairs])
    signal = group_signal(score, group)
    assert torch.equal(group_signal(score[order], renamed[order]).rows, signal.rows[order])
    for scale in ("std", "none"):
        plain = group_relative(score, group, scale=scale)
        other = group_relative(score[order] + shift, renamed[order], scale=scale)
        # Scores a rounding apart may become equal when shifted; the standard deviation tells such groups apart.
        close = [abs(a - b) < 1e-6 and a != b for a in score.tolist() for b in score.tolist()]
        assert any(close) or torch.allclose(other, plain[order], atol=1e-6)
    for estimate in (lambda s, g: leave_one_out(s, g), lambda s, _: batch_mean(s)):
        plain = estimate(score, group)
        assert torch.allclose(estimate(score[order] + shift, renamed[order]), plain[order], atol=1e-9)
        assert (plain[~torch.isfinite(score)] == 0).all()


@settings(max_examples=15, deadline=None)
@given(batch=batches)
def test_returns_are_gae_without_a_critic(batch: Batch) -> None:
    nothing = torch.where(batch.mask, 0.0, batch.value)
    advantage, wanted = gae(batch.reward, nothing, batch.mask, **batch.ends, gamma=0.9, lam=1.0)
    got = returns(batch.reward, batch.mask, **batch.ends, gamma=0.9, value=batch.value)
    assert torch.equal(got, advantage) and torch.equal(got, wanted)


@settings(max_examples=15, deadline=None)
@given(batch=batches)
def test_with_a_trace_of_one_credit_by_turn_is_that_of_its_first_decision(batch: Batch) -> None:
    # The sum of the deltas telescopes: values inside a turn fall out.
    fine, _ = gae(batch.reward, batch.value, batch.mask, **batch.ends, gamma=0.9, lam=1.0)
    for level in LEVELS:
        credit = assign(
            batch.segments(level),
            reward=batch.reward,
            terminated=batch.terminated,
            truncated=batch.truncated,
            env_steps=batch.env_steps,
            gamma=0.9,
        )
        coarse, _ = gae(
            credit.reward,
            batch.value,
            credit.mask,
            final=batch.final,
            terminated=credit.terminated,
            truncated=credit.truncated,
            env_steps=credit.env_steps,
            gamma=0.9,
            lam=1.0,
        )
        assert torch.allclose(coarse[credit.mask], fine[credit.mask], atol=1e-9)
        assert (coarse[~credit.mask] == 0).all()


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("level", LEVELS)
def test_gradients_are_those_of_finite_differences(level: Level, reduction: tuple[Reduction, float | None]) -> None:
    # One advantage an episode: there the gradient of the surrogate is that of its value at every level.
    batch = random_batch(3, episodes=2)
    episodes = batch.segments("episode")
    scores = torch.linspace(-1, 1, episodes.count, dtype=torch.float64)
    advantage = episodes.spread(scores)
    divisor = denominators(reduction[0], episodes, constant=reduction[1])

    def loss(logp: Tensor, value: Tensor) -> Tensor:
        whole = torch.full_like(batch.logp, torch.nan).masked_scatter(batch.mask, logp)
        values = torch.full_like(batch.value, torch.nan).masked_scatter(batch.mask, value)
        surrogate, _ = clipped_surrogate(
            whole,
            batch.old_logp,
            advantage,
            batch.mask,
            segments=batch.segments(level),
            clip_low=0.9,
            clip_high=9.0,
        )
        penalty = kl(whole, batch.ref_logp, batch.mask, "k3", old_logp=batch.old_logp)
        penalty = penalty + kl(whole, batch.ref_logp, batch.mask, "k2") + kl(whole, batch.ref_logp, batch.mask, "k1")
        error = value_loss(values, batch.reward, batch.mask, huber=0.5)
        return total(surrogate + penalty + error, batch.mask, divisor)

    logp = batch.logp[batch.mask].clone().requires_grad_()
    value = batch.value[batch.mask].clone().requires_grad_()
    assert torch.autograd.gradcheck(loss, (logp, value))
