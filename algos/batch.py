"""A batch on its way through an update: what is estimated once, and the loss of a part of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from tetrathlon.agents.decisions import Decisions, Evaluation
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.advantages import adaptive_lambda, gae, group_relative, leave_one_out, returns
from tetrathlon.algos.baselines import MovingAverage, batch_mean, moving_average, whiten
from tetrathlon.algos.credit import assign
from tetrathlon.algos.denominators import BatchSize, denominators
from tetrathlon.algos.kl import kl
from tetrathlon.algos.losses import clipped_surrogate, entropy_bonus, total, value_loss
from tetrathlon.algos.options import Options
from tetrathlon.algos.ratios import log_ratio, truncated_weights
from tetrathlon.algos.segments import Level, Segments
from tetrathlon.algos.shaping import at_last, kl_penalty, overlong_penalty, pair_gain, without_cut

MAXIMA = ("ratio_error", "sampler_drift")
"""What is watched of which the largest counts, not the sum: how far the ratio is from 1, and how far the sampler's
log-probabilities are from the trainer's."""


def segments_of(level: Level, batch: Decisions, mask: Tensor | None = None) -> Segments:
    """Return the turns, episodes or decisions of a batch.

    Args:
        level: Which of them.
        batch: The batch.
        mask: bool [B, T], the decisions that count; default: all.
    """
    return Segments.of(level, batch.mask if mask is None else mask, episode=batch.episode, turn=batch.turn)


def parts(batch: Decisions, max_cost: float | None, together: int = 1) -> Iterator[Decisions]:
    """Cut a batch into runs of rows that cost at most ``max_cost`` together, padding counted; None: the whole.

    Args:
        batch: What is cut.
        max_cost: In the policy's own unit; what may not be cut may cost more.
        together: How many rows, one after another, are never cut apart.
    """
    if max_cost is None:
        yield batch
        return
    start, dearest = 0, 0.0
    costs = batch.cost.tolist()
    for at in range(0, len(batch), together):
        cost = max(costs[at : at + together])
        if at > start and max(dearest, cost) * (at + together - start) > max_cost:
            yield batch.select(range(start, at))
            start, dearest = at, 0.0
        dearest = max(dearest, cost)
    yield batch.select(range(start, len(batch)))


@torch.no_grad()
def evaluated(policy: TrainablePolicy, batch: Decisions, max_cost: float | None) -> Evaluation:
    """Evaluate a batch part by part, without gradients."""
    found = [policy.evaluate(part) for part in parts(batch, max_cost)]
    values = [part.value for part in found if part.value is not None]
    return Evaluation(
        torch.cat([part.logp for part in found]),
        torch.cat([part.entropy for part in found]),
        torch.cat(values) if values else None,
    )


@torch.no_grad()
def prepare(
    policy: TrainablePolicy,
    batch: Decisions,
    options: Options,
    reference: TrainablePolicy | None = None,
    average: MovingAverage | None = None,
) -> tuple[Decisions, MovingAverage | None]:
    """Add what is estimated before the update: ``old_logp``, ``old_value``, ``ref_logp``, ``advantage``, ``returns``.

    A batch that is learnt from in one step gets no ``old_logp``: the policy before the update is the one that the step
    evaluates, and a pass is saved.

    Args:
        policy: As it is before the update.
        batch: Fresh decisions; it is changed.
        options: See :class:`Options`.
        reference: What the divergence is from, if there is any.
        average: What is known of earlier batches, for ``moving_average``.

    Returns:
        batch: The same.
        average: With this batch.

    Raises:
        TypeError: The advantages need a critic and the policy has none.
        ValueError: The policy decided nothing here.
    """
    mask = batch.mask
    if not mask.any():
        raise ValueError("nothing in these episodes was decided by the policy: there is nothing to learn from")
    is_priced = reference is not None and options.kl_in == "reward"
    if is_priced or options.advantage == "gae" or not options.is_one_step:
        before = evaluated(policy, batch, options.max_cost)
        batch.old_logp, batch.old_value = before.logp, before.value
    reward, score = batch.reward, batch.total_reward
    if reference is not None:
        batch.ref_logp = evaluated(reference, batch, options.max_cost).logp
        if is_priced:
            assert batch.old_logp is not None
            price = kl_penalty(batch.old_logp, batch.ref_logp, mask, coef=options.kl_coef, estimator=options.estimator)
            reward = torch.where(mask, reward + price, reward)
            score = score + price.sum(dim=1)
    if batch.pair is not None:
        gain = pair_gain(score, batch.group, batch.pair).to(score.dtype)
        reward, score = reward + at_last(gain, mask), score + gain
    if options.overlong_limit is not None:
        late = overlong_penalty(mask.sum(dim=1), limit=options.overlong_limit, cache=options.overlong_cache)
        late = late.to(score.dtype)
        reward, score = reward + at_last(late, mask), score + late
    # A row in which the policy decided nothing says nothing of it.
    score = score.masked_fill(~mask.any(dim=1), torch.nan)
    ends = {"terminated": batch.terminated, "truncated": batch.truncated, "env_steps": batch.env_steps}
    if options.advantage == "gae":
        if batch.old_value is None:
            raise TypeError(f"advantage='gae' needs a policy with a critic; {type(policy).__name__} gives no value")
        credit = assign(segments_of(options.credit, batch), reward=reward, gamma=options.gamma, **ends)
        advantage, batch.returns = gae(
            credit.reward,
            batch.old_value,
            credit.mask,
            final=batch.final,
            terminated=credit.terminated,
            truncated=credit.truncated,
            env_steps=credit.env_steps,
            gamma=options.gamma,
            lam=options.lam if options.adaptive_lam is None else _lam_of(mask, options.adaptive_lam),
            critic_lam=options.critic_lam,
        )
        batch.advantage = credit.broadcast(advantage)
    elif options.advantage == "returns":
        batch.advantage = returns(reward, mask, final=batch.final, gamma=options.gamma, **ends)
    else:
        if options.advantage == "group":
            row = group_relative(score, batch.group, scale=options.scale, ddof=options.ddof, eps=options.eps)
        elif options.advantage == "leave_one_out":
            row = leave_one_out(score, batch.group)
        elif options.advantage == "batch_mean":
            row = batch_mean(score)
        else:
            row, average = moving_average(score, average or MovingAverage(options.baseline_decay))
        batch.advantage = row[:, None].expand_as(batch.reward).clone()
    if options.normalize:
        # A row that could not be scored teaches nothing: its 0 is no advantage that a mean could be taken from.
        batch.advantage = whiten(batch.advantage, mask & score.isfinite()[:, None], ddof=1)
    return batch, average


def _lam_of(mask: Tensor, alpha: float) -> Tensor:
    return adaptive_lambda(mask.sum(dim=1), alpha)[:, None]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much a whole optimizer step learns from, whatever the parts that it is evaluated in."""

    policy: BatchSize
    """Decisions and episodes of the policy's loss."""
    values: int
    """Values that are learnt."""

    @classmethod
    def of(cls, batch: Decisions, options: Options) -> Sizes:
        """Return the sizes of a minibatch."""
        mask = learnt(batch, options)
        if options.reduction == "decision_mean":  # reads no episode, and to find them takes its time
            policy = BatchSize(int(mask.sum()), 0)
        else:
            policy = BatchSize.of(segments_of("episode", batch, mask))
        return cls(policy, int(valued(batch, options).sum()))


def learnt(batch: Decisions, options: Options) -> Tensor:
    """Return which decisions are in the policy's loss, bool [B, T]."""
    return without_cut(batch.cut, segments_of("episode", batch)) if options.mask_cut else batch.mask


def valued(batch: Decisions, options: Options) -> Tensor:
    """Return which decisions have a value that is learnt, bool [B, T]."""
    return batch.mask if options.credit == "decision" else segments_of(options.credit, batch).first


def policy_loss(
    policy: TrainablePolicy, batch: Decisions, options: Options, sizes: Sizes | None = None
) -> tuple[Tensor, dict[str, float]]:
    """Return the loss of a part of a minibatch, and what to watch; all but :data:`MAXIMA` add up over its parts.

    Args:
        policy: What learns.
        batch: Prepared decisions.
        options: See :class:`Options`.
        sizes: Of the whole minibatch; default: this is the whole.
    """
    assert batch.advantage is not None
    sizes = sizes or Sizes.of(batch, options)
    evaluation = policy.evaluate(batch)
    old_logp = evaluation.logp.detach() if batch.old_logp is None else batch.old_logp
    mask = learnt(batch, options)
    divisor: Tensor | float = sizes.policy.decisions
    if options.reduction != "decision_mean":  # a denominator of its own for each episode
        episodes = segments_of("episode", batch, mask)
        divisor = denominators(options.reduction, episodes, sizes.policy, constant=options.length_constant)
    segments = None if options.ratio == "decision" else segments_of(options.ratio, batch, mask)
    surrogate, ratio = clipped_surrogate(
        evaluation.logp,
        old_logp,
        batch.advantage,
        mask,
        segments=segments,
        clip_low=options.clip_low,
        clip_high=options.clip_high,
        dual_clip=options.dual_clip,
    )
    if options.importance_cap is not None:
        surrogate = surrogate * truncated_weights(old_logp, batch.logp, mask, cap=options.importance_cap)
    terms = {"policy_loss": total(surrogate, mask, divisor)}
    if options.entropy_coef:
        terms["entropy_loss"] = total(entropy_bonus(evaluation.entropy, mask, options.entropy_coef), mask, divisor)
    if batch.ref_logp is not None and options.kl_in == "loss":
        divergence = kl(evaluation.logp, batch.ref_logp, mask, options.estimator, old_logp=old_logp)
        terms["kl_loss"] = options.kl_coef * total(divergence, mask, divisor)
    if batch.returns is not None and evaluation.value is not None:
        where = valued(batch, options)
        error = value_loss(
            evaluation.value,
            batch.returns,
            where,
            old_value=batch.old_value,
            clip=options.value_clip,
            clip_mode=options.value_clip_mode,
        )
        terms["value_loss"] = options.value_coef * total(error, where, sizes.values)
    loss = torch.stack(list(terms.values())).sum()
    metrics = dict(zip([*terms, "loss"], torch.stack([*terms.values(), loss]).tolist(), strict=True))
    return loss, metrics | _watched(evaluation, old_logp, batch, mask, ratio, options, sizes)


@torch.no_grad()
def _watched(
    evaluation: Evaluation,
    old_logp: Tensor,
    batch: Decisions,
    mask: Tensor,
    ratio: Tensor,
    options: Options,
    sizes: Sizes,
) -> dict[str, float]:
    """Return means over the decisions of the minibatch, and :data:`MAXIMA`."""
    assert batch.advantage is not None
    moved = log_ratio(evaluation.logp, old_logp, mask)
    known = mask & ~batch.logp.isnan()  # what somebody else decided has no probability of the sampler's
    drift = log_ratio(old_logp, batch.logp, known)
    below = (ratio < 1 - options.clip_low) & (batch.advantage < 0)
    above = (ratio > 1 + options.clip_high) & (batch.advantage > 0)
    means = {
        "entropy": evaluation.entropy,
        "clip_fraction": (ratio < 1 - options.clip_low) | (ratio > 1 + options.clip_high),
        "clip_fraction_low": below,
        "clip_fraction_high": above,
        "kl_old": torch.expm1(moved) - moved,
        "kl_sampler": torch.expm1(drift) - drift,
    }
    if batch.ref_logp is not None:
        means["kl_ref"] = kl(evaluation.logp, batch.ref_logp, mask)
    sums = torch.stack([each.float() for each in means.values()])[:, mask].sum(dim=1) / max(sizes.policy.decisions, 1)
    largest = torch.stack([(ratio - 1).abs().max(), drift.abs().max()])
    return dict(zip([*means, "ratio_error", "sampler_drift"], torch.cat([sums, largest]).tolist(), strict=True))
