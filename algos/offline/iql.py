"""Implicit Q-learning: values of a log without a look at any action that is not in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tetrathlon.agents.decisions import Decisions
from tetrathlon.algos.losses import expectile, total
from tetrathlon.algos.offline import learner
from tetrathlon.algos.offline.learner import Metrics, OfflineLearner
from tetrathlon.algos.offline.trainer import Offline
from tetrathlon.algos.options import Decay
from tetrathlon.algos.replay import Sample
from tetrathlon.algos.values import advantage_weights, td_target


class _Learner(OfflineLearner):
    def _phases(self) -> Iterator[tuple[str, list[nn.Parameter]]]:
        yield "loss", self.actor_weights + self.critic_weights

    def _loss(self, phase: str, sample: Sample, count: Tensor) -> tuple[Tensor, Metrics]:
        options, policy, now = self.options, self.policy, sample.now
        mask = now.mask
        seen = policy.appraise(now)
        assert seen.value is not None and seen.q is not None
        value = seen.value

        def read(decisions: Decisions) -> Tensor:
            found = value if decisions is now else policy.appraise(decisions, q=False).value
            assert found is not None
            return found.detach()

        with torch.no_grad():
            worth = policy.appraise(now, value=False, critic=self.slow).least
            target = td_target(
                now.reward,
                sample.following(read),
                terminated=now.terminated,
                env_steps=now.env_steps,
                gamma=options.gamma,
            )
            weight = advantage_weights(worth - value, options.beta, options.max_weight)
        imitation, entropy = policy.imitation_loss(now)
        value_loss = total(expectile(worth - value, options.expectile), mask, count)
        q_loss = total((seen.q - target).square().mean(0), mask, count)
        policy_loss = total(weight * imitation, mask, count)
        told = {
            "value_loss": value_loss,
            "q_loss": q_loss,
            "policy_loss": policy_loss,
            "q": total(seen.q.mean(0), mask, count),
            "advantage": total(worth - value, mask, count),
            "weight": total(weight, mask, count),
        }
        if entropy is not None:
            told["entropy"] = total(entropy, mask, count)
        return value_loss + q_loss + policy_loss, told


class IQL(Offline):
    """Implicit Q-learning (Kostrikov et al., 2021): an expectile of Q for a value, and imitation weighed by advantage.

    It is of all policies: tokens are valued by heads on a copy of the language model, control steps and chunks of
    actions by networks that read states.
    """

    Learner = _Learner

    @dataclass(frozen=True, kw_only=True)
    class Options(learner.Options):
        """IQL's settings (of the paper for locomotion)."""

        expectile: float = 0.7
        """Of Q that a value is: 0.5 its mean, nearer to 1 its maximum over what was done."""
        beta: float = 3.0
        """How much an advantage weighs in what is imitated: the inverse temperature."""
        max_weight: float = 100.0
        """Largest weight."""
        decay: Decay = "cosine"
        """How the learning rate of the policy falls to 0."""

        def __post_init__(self) -> None:
            super().__post_init__()
            if not 0 < self.expectile < 1:
                raise ValueError(f"expectile must be between 0 and 1, got {self.expectile!r}")
            if not self.beta >= 0 or not self.max_weight > 0:
                raise ValueError(
                    f"beta must be at least 0 and max_weight above 0, got {self.beta!r} and {self.max_weight!r}"
                )
