"""Imitation of a log, weighed by how much better what was done turned out than it was expected to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor, nn

from tetrathlon.agents.decisions import Decisions
from tetrathlon.algos.losses import total
from tetrathlon.algos.offline import learner
from tetrathlon.algos.offline.learner import Metrics, OfflineLearner
from tetrathlon.algos.offline.trainer import Offline
from tetrathlon.algos.replay import Replay, Sample
from tetrathlon.algos.values import advantage_weights

_READ_AT_ONCE = 1024


class _Learner(OfflineLearner):
    needs_q = False

    def _slow(self) -> None:
        return None

    def _value(self, decisions: Decisions) -> Tensor:
        found = self.policy.appraise(decisions.to(self.actor_weights[0].device), q=False).value
        assert found is not None
        return found

    def update(self, replay: Replay) -> dict[str, float]:
        options = self.options
        replay.estimate(
            self._value,
            gamma=options.gamma,
            lam=options.lam,
            batch_size=max(options.batch_size, _READ_AT_ONCE if replay.is_cut else 0),
            max_cost=options.max_cost,
        )
        return super().update(replay)

    def _phases(self) -> Iterator[tuple[str, list[nn.Parameter]]]:
        is_late = self.taken >= self.options.value_steps
        yield "loss", self.actor_weights + self.critic_weights if is_late else self.critic_weights

    def _loss(self, phase: str, sample: Sample, count: Tensor) -> tuple[Tensor, Metrics]:
        options, now = self.options, sample.now
        assert now.returns is not None
        value = self._value(now)
        advantage = now.returns - value.detach()
        value_loss = total((now.returns - value).square() / 2, now.mask, count)
        told = {"value_loss": value_loss, "advantage": total(advantage, now.mask, count)}
        if self.taken < options.value_steps:
            return value_loss, told
        weight = advantage_weights(advantage, options.beta, options.max_weight)
        imitation, entropy = self.policy.imitation_loss(now)
        policy_loss = total(weight * imitation, now.mask, count)
        told |= {"policy_loss": policy_loss, "weight": total(weight, now.mask, count)}
        if entropy is not None:
            told["entropy"] = total(entropy, now.mask, count)
        return value_loss + policy_loss, told


class AWR(Offline):
    """Advantage-weighted regression (Peng et al., 2019), over lambda returns of the log by the values of now.

    Returns are estimated anew at the start of each update, so those of the first one hold values of a critic that has
    learnt nothing, unless ``lam`` is 1 and the task ends each episode. It is of all policies; no action is valued.
    """

    Learner = _Learner

    @dataclass(frozen=True, kw_only=True)
    class Options(learner.Options):
        """AWR's settings."""

        lam: float = 0.95
        """Trace of the returns, of one decision."""
        beta: float = 1.0
        """How much an advantage weighs: the inverse temperature."""
        max_weight: float = 20.0
        """Largest weight."""
        value_steps: int = 200
        """How many steps the critic learns alone, before what it says weighs anything."""
        ensemble: int = 0
        """No action is valued."""
        value_lr: float = 1e-3
        """Learning rate of the critic."""

        def __post_init__(self) -> None:
            super().__post_init__()
            if not 0 <= self.lam <= 1:
                raise ValueError(f"lam must be from 0 to 1, got {self.lam!r}")
            if not self.beta >= 0 or not self.max_weight > 0 or self.value_steps < 0:
                raise ValueError(
                    "beta and value_steps must be at least 0 and max_weight above 0, got "
                    f"{self.beta!r}, {self.value_steps!r} and {self.max_weight!r}"
                )
