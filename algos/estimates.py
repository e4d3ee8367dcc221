"""What a log of episodes says of a policy that did not play them: all estimates of :mod:`tetrathlon.algos.ope`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tetrathlon.agents.decisions import Decisions
from tetrathlon.agents.trainable import TrainablePolicy, still
from tetrathlon.algos.batch import evaluated
from tetrathlon.algos.columns import select
from tetrathlon.algos.ope import OffPolicyValue, doubly_robust, importance_sampling, per_decision
from tetrathlon.envs.episode import Episode, scorable

Critic = Callable[[Decisions], tuple[Tensor, Tensor]]
"""From decisions to q float [B, T], read at ``mask``, and v float [B, T], read at ``mask | final``: the worth of what
was done, and of each state under the policy that is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """What a log says of a policy."""

    logged: OffPolicyValue
    """What the log itself was paid: the mean discounted return."""
    ordinary: OffPolicyValue
    """:func:`~tetrathlon.algos.ope.importance_sampling`."""
    weighted: OffPolicyValue
    """The same, weighted."""
    per_decision: OffPolicyValue
    """:func:`~tetrathlon.algos.ope.per_decision`."""
    weighted_per_decision: OffPolicyValue
    """The same, weighted."""
    doubly_robust: OffPolicyValue | None
    """:func:`~tetrathlon.algos.ope.doubly_robust`; None without a critic."""
    weighted_doubly_robust: OffPolicyValue | None
    """The same, weighted; None without a critic."""
    ess: float
    """Effective sample size of the weights of whole episodes; far below ``episodes``, nothing here can be trusted."""
    episodes: int
    """How many were read."""
    open: int
    """How many of them were truncated or not finished."""
    dropped: int
    """How many were left out because their grader failed."""


@torch.no_grad()
def estimates(
    policy: TrainablePolicy,
    episodes: Sequence[Episode],
    *,
    gamma: float,
    clip: float | None = None,
    critic: Critic | None = None,
    behaviour: TrainablePolicy | None = None,
    max_cost: float | None = None,
) -> Estimates:
    """Say what a policy would be paid where the episodes were played.

    The policy stays as it is. A step without a record (inside an open-loop chunk) is taken for the environment's doing.

    Args:
        policy: Who is judged.
        episodes: The log: whole episodes, sampled, not greedy, with the records of whoever played: a policy of the same
            kind.
        gamma: Discount of one environment step; 1 for what evaluations report.
        clip: The largest weight; see :func:`~tetrathlon.algos.ope.importance_sampling`.
        critic: Gives q and v to :func:`~tetrathlon.algos.ope.doubly_robust`; see :data:`Critic`, and
            :meth:`tetrathlon.algos.fqe.FittedQ.columns`.
        behaviour: Who played, or what was cloned from it, where the log has no records: all that was done is weighed,
            with its log-probabilities; default: the records say them.
        max_cost: The most that rows evaluated together may cost; see
            :attr:`tetrathlon.agents.decisions.Decisions.cost`.

    Raises:
        TypeError: A policy gives no log-probabilities.
        ValueError: There is no episode, the log has no log-probabilities, a first step was decided by somebody else, or
            the two policies see other decisions in the log; and see :func:`~tetrathlon.algos.ope.importance_sampling`.
    """
    for each in (policy, behaviour):
        if each is not None and not each.has_density:
            raise TypeError(f"{type(each).__name__} gives no log-probabilities: has_density is False")
    kept = scorable(episodes)
    if not kept:
        raise ValueError(f"there is no episode to weigh: of {len(episodes)} the grader failed in all")
    batch, logp = _judged(policy, kept, behaviour is None, max_cost)
    mask = batch.mask
    if behaviour is not None:
        other, played = _judged(behaviour, kept, False, max_cost)
        if not torch.equal(other.mask, mask):
            raise ValueError(
                f"{type(behaviour).__name__} finds {int(other.mask.sum())} decisions in the log and "
                f"{type(policy).__name__} {int(mask.sum())}; ratios need the same ones"
            )
    else:
        played = batch.logp
    if not mask.any() or torch.isnan(played[mask]).any():
        lacking = f"{int(torch.isnan(played[mask]).sum())} of {int(mask.sum())}" if mask.any() else "all"
        raise ValueError(
            f"the log has no behaviour log-probabilities: {lacking} decisions lack them; let a policy play that notes "
            "them, or say who played: behaviour="
        )
    first = mask & (batch.turn == 0)
    if not (begun := first.any(dim=1)).all():
        number = int((~begun).nonzero()[0])
        raise ValueError(f"the first step of episode {number} was not decided by who played; leave the episode out")
    common: dict[str, Any] = {"env_steps": batch.env_steps, "gamma": gamma}
    options = {**common, "clip": clip}
    ratio = select(logp, mask).double() - select(played, mask).double()
    columns = ratio, batch.reward, mask
    robust: list[OffPolicyValue | None] = [None, None]
    if critic is not None:
        with still(policy):
            q, v = (column.cpu() for column in critic(batch.to(device_of(policy))))
        model: dict[str, Any] = {"q": q, "v": v, "terminated": batch.terminated, "final": batch.final, **options}
        robust = [doubly_robust(*columns, **model, weighted=each) for each in (False, True)]
    ordinary = importance_sampling(*columns, **options)
    return Estimates(
        logged=importance_sampling(torch.zeros_like(ratio), batch.reward, mask, **common),
        ordinary=ordinary,
        weighted=importance_sampling(*columns, **options, weighted=True),
        per_decision=per_decision(*columns, **options),
        weighted_per_decision=per_decision(*columns, **options, weighted=True),
        doubly_robust=robust[0],
        weighted_doubly_robust=robust[1],
        ess=ordinary.ess,
        episodes=len(kept),
        open=sum(not episode.steps[-1].terminated for episode in kept),
        dropped=len(episodes) - len(kept),
    )


def _judged(
    policy: TrainablePolicy, episodes: Sequence[Episode], own: bool, max_cost: float | None
) -> tuple[Decisions, Tensor]:
    """Return the decisions of a log, a row an episode, and their log-probabilities under a policy, on the CPU."""
    with still(policy):
        batch = policy.collate([[episode] for episode in episodes], learn="own" if own else "action")
        if not batch.mask.any():
            return batch, batch.logp
        return batch, evaluated(policy, batch.to(device_of(policy)), max_cost).logp.cpu()


def device_of(module: nn.Module) -> torch.device:
    """Return where the weights of a module are."""
    return next((weight.device for weight in module.parameters()), torch.device("cpu"))
