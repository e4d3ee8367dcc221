"""Conservative Q-learning: what was not done is worth less than what was."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from tetrathlon.agents.decisions import Decisions
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.losses import total
from tetrathlon.algos.offline import learner
from tetrathlon.algos.offline.learner import Metrics, OfflineLearner
from tetrathlon.algos.offline.trainer import Offline
from tetrathlon.algos.replay import Sample
from tetrathlon.algos.values import soft_maximum, td_target


class _Learner(OfflineLearner):
    needs_other = True

    def __init__(self, policy: TrainablePolicy, options: Any, updates: int | None = None) -> None:
        device = next(policy.parameters()).device
        self.log_alpha = nn.Parameter(torch.zeros((), device=device))  # of the weight of the entropy
        super().__init__(policy, options, updates)

    def _more_weights(self) -> Sequence[tuple[list[nn.Parameter], float]]:
        return [([self.log_alpha], self._lr)]

    def _phases(self) -> Iterator[tuple[str, list[nn.Parameter]]]:
        yield "policy", [*self.actor_weights, self.log_alpha]
        yield "critic", self.critic_weights

    def _loss(self, phase: str, sample: Sample, count: Tensor) -> tuple[Tensor, Metrics]:
        return self._critic_loss(sample, count) if phase == "critic" else self._policy_loss(sample.now, count)

    def _policy_loss(self, now: Decisions, count: Tensor) -> tuple[Tensor, Metrics]:
        policy = self.policy
        found = policy.propose(now)
        if found.logp is None or not found.numbers.requires_grad:
            raise TypeError(
                f"{type(policy).__name__} draws its actions without a gradient; this algorithm needs one that does, "
                "such as control with squash=True, state_std=True"
            )
        q = policy.appraise(now, value=False, numbers=found.numbers).least[0]
        logp, alpha = found.logp[0], self.log_alpha.exp()
        least_entropy = -found.numbers.shape[-1]  # in nats, of actions from -1 to 1 (Haarnoja et al., 2018)
        of_alpha = total(-self.log_alpha * (logp.detach() + least_entropy), now.mask, count)
        loss = total(alpha.detach() * logp - q, now.mask, count)
        return loss + of_alpha, {
            "policy_loss": loss,
            "entropy": total(-logp, now.mask, count),
            "alpha": total(alpha.expand_as(logp), now.mask, count),
        }

    def _critic_loss(self, sample: Sample, count: Tensor) -> tuple[Tensor, Metrics]:
        options, policy = self.options, self.policy
        now, after = sample.now, cast(Decisions, sample.after)
        with torch.no_grad():
            here, there = policy.propose(now, options.proposals), policy.propose(after, options.proposals)
            target = td_target(
                now.reward,
                policy.appraise(after, value=False, numbers=there.numbers[:1], critic=self.slow).least[0],
                terminated=now.terminated,
                env_steps=now.env_steps,
                gamma=options.gamma,
            )
            anywhere = torch.rand(here.numbers.shape, generator=self.generator).to(here.numbers) * 2 - 1
            uniform = torch.full(anywhere.shape[:-1], -anywhere.shape[-1] * math.log(2)).to(anywhere)
            assert here.logp is not None and there.logp is not None
            numbers = torch.cat([anywhere, here.numbers, there.numbers])
            density = torch.cat([uniform, here.logp, there.logp])
        q = policy.appraise(now, value=False).q
        elsewhere = policy.appraise(now, value=False, numbers=numbers).q
        assert q is not None and elsewhere is not None
        most = soft_maximum(elsewhere.transpose(0, 1), density[:, None], options.temperature)
        penalty = total((most - q).sum(0), now.mask, count)
        error = total((q - target).square().sum(0), now.mask, count)
        told = {"q_loss": error, "conservatism": penalty, "q": total(q.mean(0), now.mask, count)}
        return error + options.conservatism * penalty, told

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"log_alpha": self.log_alpha.detach().clone()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        with torch.no_grad():
            self.log_alpha.copy_(state["log_alpha"])


class CQL(Offline):
    """Conservative Q-learning (Kumar et al., 2020, CQL(H)) over a soft actor-critic (Haarnoja et al., 2018).

    For control whose actions are numbers from a tanh of a normal draw (``squash=True``; in the paper with
    ``state_std=True``).
    """

    Learner = _Learner

    @dataclass(frozen=True, kw_only=True)
    class Options(learner.Options):
        """CQL's settings (of the paper for locomotion)."""

        conservatism: float = 5.0
        """How much the gap between a soft maximum of Q and Q of what was done counts."""
        temperature: float = 1.0
        """Of that maximum."""
        proposals: int = 10
        """Actions a state that are looked at: as many at random, of the policy here, and of the policy next."""
        lr: float | None = 1e-4
        """Learning rate of the policy, and of the weight of its entropy."""

        def __post_init__(self) -> None:
            super().__post_init__()
            if not self.conservatism >= 0 or not self.temperature > 0:
                raise ValueError(
                    "conservatism must be at least 0 and temperature above 0, got "
                    f"{self.conservatism!r} and {self.temperature!r}"
                )
            if self.proposals < 1:
                raise ValueError(f"proposals must be at least 1, got {self.proposals!r}")
