"""Imitation of a log, weighed by how much better what was done is than what the policy would do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from tetrathlon.agents.decisions import Decisions
from tetrathlon.algos.losses import total
from tetrathlon.algos.offline import learner
from tetrathlon.algos.offline.learner import Metrics, OfflineLearner
from tetrathlon.algos.offline.trainer import Offline
from tetrathlon.algos.replay import Sample
from tetrathlon.algos.values import advantage_weights, td_target


class _Learner(OfflineLearner):
    needs_other = True

    def _phases(self) -> Iterator[tuple[str, list[nn.Parameter]]]:
        yield "critic", self.critic_weights
        yield "policy", self.actor_weights

    def _loss(self, phase: str, sample: Sample, count: Tensor) -> tuple[Tensor, Metrics]:
        return self._critic_loss(sample, count) if phase == "critic" else self._policy_loss(sample.now, count)

    def _critic_loss(self, sample: Sample, count: Tensor) -> tuple[Tensor, Metrics]:
        policy, now, after = self.policy, sample.now, cast(Decisions, sample.after)
        with torch.no_grad():
            numbers = policy.propose(after).numbers
            target = td_target(
                now.reward,
                policy.appraise(after, value=False, numbers=numbers, critic=self.slow).least[0],
                terminated=now.terminated,
                env_steps=now.env_steps,
                gamma=self.options.gamma,
            )
        q = policy.appraise(now, value=False).q
        assert q is not None
        loss = total((q - target).square().sum(0), now.mask, count)
        return loss, {"q_loss": loss, "q": total(q.mean(0), now.mask, count)}

    def _policy_loss(self, now: Decisions, count: Tensor) -> tuple[Tensor, Metrics]:
        policy, options = self.policy, self.options
        with torch.no_grad():
            numbers = policy.propose(now, options.proposals).numbers
            expected = policy.appraise(now, value=False, numbers=numbers).least.mean(0)
            advantage = policy.appraise(now, value=False).least - expected
        weight = advantage_weights(advantage, options.beta, options.max_weight)
        imitation, _ = policy.imitation_loss(now)
        loss = total(weight * imitation, now.mask, count)
        return loss, {
            "policy_loss": loss,
            "advantage": total(advantage, now.mask, count),
            "weight": total(weight, now.mask, count),
        }


class AWAC(Offline):
    """Advantage-weighted actor-critic (Nair et al., 2020): as AWR, with Q learnt step by step.

    For policies that say what else they would do: control.
    """

    Learner = _Learner

    @dataclass(frozen=True, kw_only=True)
    class Options(learner.Options):
        """AWAC's settings."""

        beta: float = 1.0
        """How much an advantage weighs: the inverse of the paper's lambda."""
        max_weight: float = 100.0
        """Largest weight."""
        proposals: int = 1
        """Actions of the policy by which the value of a state is estimated."""

        def __post_init__(self) -> None:
            super().__post_init__()
            if not self.beta >= 0 or not self.max_weight > 0:
                raise ValueError(
                    f"beta must be at least 0 and max_weight above 0, got {self.beta!r} and {self.max_weight!r}"
                )
            if self.proposals < 1:
                raise ValueError(f"proposals must be at least 1, got {self.proposals!r}")
