"""Q-learning for control that stays near a log: what is thought best, and what was done, pull at one policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from tetrathlon.agents.decisions import Decisions
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.losses import total
from tetrathlon.algos.offline import learner
from tetrathlon.algos.offline.learner import Metrics, OfflineLearner
from tetrathlon.algos.offline.trainer import Offline
from tetrathlon.algos.replay import Sample
from tetrathlon.algos.values import q_scale, td_target


class _Learner(OfflineLearner):
    whole_steps = needs_other = True

    def _slow(self) -> TrainablePolicy:
        return self.policy.snapshot()

    def _online(self) -> nn.Module:
        return self.policy

    def _is_late(self) -> bool:
        return (self.taken + 1) % int(self.options.policy_every) == 0

    def _follows(self) -> bool:
        return self._is_late()

    def _phases(self) -> Iterator[tuple[str, list[nn.Parameter]]]:
        yield "critic", self.critic_weights
        if self._is_late():
            yield "policy", self.actor_weights

    def _loss(self, phase: str, sample: Sample, count: Tensor) -> tuple[Tensor, Metrics]:
        return self._critic_loss(sample, count) if phase == "critic" else self._policy_loss(sample.now, count)

    def _critic_loss(self, sample: Sample, count: Tensor) -> tuple[Tensor, Metrics]:
        options, now, after = self.options, sample.now, cast(Decisions, sample.after)
        slow = cast(TrainablePolicy, self.slow)
        with torch.no_grad():
            best = slow.propose(after, greedy=True).numbers
            noise = torch.randn(best.shape, generator=self.generator).to(best) * options.policy_noise
            best = (best + noise.clamp(-options.noise_clip, options.noise_clip)).clamp(-1, 1)
            following = slow.appraise(after, value=False, numbers=best).least[0]
            if options.critic_bc:
                apart = (best[0] - self.policy.taken(after)).square().sum(-1)
                following = following - options.critic_bc * torch.where(after.mask, apart, 0.0)
            target = td_target(
                now.reward, following, terminated=now.terminated, env_steps=now.env_steps, gamma=options.gamma
            )
        q = self.policy.appraise(now, value=False).q
        assert q is not None
        loss = total((q - target).square().sum(0), now.mask, count)
        return loss, {"q_loss": loss, "q": total(q.mean(0), now.mask, count)}

    def _policy_loss(self, now: Decisions, count: Tensor) -> tuple[Tensor, Metrics]:
        options = self.options
        done = self.policy.propose(now, greedy=True).numbers
        if not done.requires_grad:
            raise TypeError(
                f"{type(self.policy).__name__} chooses among actions, which has no gradient; this algorithm needs one "
                "that gives numbers, such as control with squash=True"
            )
        q = self.policy.appraise(now, value=False, numbers=done)
        assert q.q is not None
        value = q.q[0, 0] if options.first_critic else q.least[0]
        apart = (done[0] - self.policy.taken(now)).square()
        imitation = total(apart.mean(-1) if options.mean_bc else apart.sum(-1), now.mask, count)
        gain = q_scale(value[now.mask], options.alpha) * total(value, now.mask, count)
        return options.bc * imitation - gain, {"bc_loss": imitation, "policy_q": total(value, now.mask, count)}


@dataclass(frozen=True, kw_only=True)
class _Options(learner.Options):
    alpha: float = 2.5
    """How much Q counts, brought to a mean size of 1, beside imitation."""
    bc: float = 1.0
    """How much imitation counts."""
    critic_bc: float = 0.0
    """How much less a state is worth for each square that the policy is there from what was done next."""
    policy_noise: float = 0.2
    """Deviation of the noise on the actions that targets look at, of half the range of an action."""
    noise_clip: float = 0.5
    """Its largest size."""
    policy_every: int = 2
    """Steps of the critics to one of the policy and of the slow copies."""
    first_critic: bool = True
    """Whether the policy climbs the first of the critics; else the least of them."""
    mean_bc: bool = True
    """Whether imitation is a mean over the numbers of an action; else their sum."""
    lr: float | None = 3e-4
    """Learning rate of the policy."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("alpha", "bc", "critic_bc", "policy_noise", "noise_clip"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)!r}")
        if self.policy_every < 1:
            raise ValueError(f"policy_every must be at least 1, got {self.policy_every!r}")


class TD3BC(Offline):
    """TD3 with behaviour cloning (Fujimoto and Gu, 2021): the best action by Q that is near to what was done.

    For control whose actions are numbers with bounds; in the paper a tanh bounds them (``squash=True``), and states are
    normalised (``normalize_observations=True``).
    """

    Learner = _Learner

    @dataclass(frozen=True, kw_only=True)
    class Options(_Options):
        """TD3+BC's settings."""


class ReBRAC(Offline):
    """TD3+BC that is held to the log in the critics as in the policy, with normalised layers (Tarasov et al., 2023).

    As :class:`TD3BC` needs it. The two weights of imitation are what the paper tunes for each task.
    """

    Learner = _Learner

    @dataclass(frozen=True, kw_only=True)
    class Options(_Options):
        """ReBRAC's settings."""

        alpha: float = 1.0
        bc: float = 0.01
        critic_bc: float = 0.01
        first_critic: bool = False
        mean_bc: bool = False
        normalize: bool = True
        hidden: tuple[int, ...] = (256, 256, 256)
        batch_size: int = 1024
        lr: float | None = 1e-3
        value_lr: float = 1e-3
