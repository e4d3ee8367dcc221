"""What learns from a log: a policy, its critics and their slow copies, step after step."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import torch
from torch import Tensor, nn

from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.batch import parts
from tetrathlon.algos.learner import NotFinite, learnable, learning_rate
from tetrathlon.algos.options import Decay
from tetrathlon.algos.replay import Replay, Sample
from tetrathlon.algos.schedules import rate

Metrics = dict[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is played where there is no log, and how it is learnt from.

    Raises:
        ValueError: A value is out of range.
    """

    episodes: int = 256
    """Episodes that the policy plays before the first update, where no log is given."""
    slots: int | None = None
    """How many of them are under way at once; None: all, up to 256."""
    steps: int = 1000
    """Optimizer steps an update."""
    batch_size: int = 256
    """What is learnt from in a step, drawn with replacement: decisions, where the policy takes each by itself; else
    episodes."""
    max_cost: float | None = None
    """What is evaluated at once, in the policy's own unit (tokens for language); gradients of the parts add up. None:
    all of a step."""
    gamma: float = 0.99
    """Discount of one environment step."""
    reward_scale: float = 1.0
    """By what rewards are multiplied."""
    reward_shift: float = 0.0
    """What is then added, a step of the environment."""
    lr: float | None = None
    """Learning rate of the policy (AdamW); None: what the policy names as its own, else 3e-4."""
    value_lr: float = 3e-4
    """Learning rate of the critics."""
    warmup: int = 0
    """Updates over which learning rates grow from 0."""
    decay: Decay = "constant"
    """How that of the policy falls to 0 over the updates that were asked for."""
    weight_decay: float = 0.0
    """Of AdamW."""
    max_grad_norm: float | None = None
    """Largest gradient norm, of the policy and of the critics each; None: any."""
    ensemble: int = 2
    """K, how many critics say what an action is worth; the least of them counts."""
    hidden: tuple[int, ...] = (256, 256)
    """Widths of their hidden layers."""
    normalize: bool = False
    """Whether these are normalised layer by layer (ReBRAC: Tarasov et al., 2023)."""
    polyak: float = 0.005
    """How far their slow copies follow in a step."""
    split: str = "train"
    """Which instances are played, where the environment has splits."""
    seed: int = 0
    """Seed of the starts, of first weights and of what is drawn."""

    def __post_init__(self) -> None:
        for name, low in (("episodes", 1), ("steps", 1), ("batch_size", 1), ("warmup", 0), ("ensemble", 0)):
            if getattr(self, name) < low:
                raise ValueError(f"{name} must be at least {low}, got {getattr(self, name)!r}")
        if self.decay not in get_args(Decay):
            raise ValueError(f"decay must be one of {', '.join(map(repr, get_args(Decay)))}, got {self.decay!r}")
        for name in ("gamma", "polyak"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1, got {getattr(self, name)!r}")
        for name in ("max_grad_norm", "max_cost"):
            if (value := getattr(self, name)) is not None and not value > 0:
                raise ValueError(f"{name} must be above 0, got {value!r}")
        for name in ("lr", "value_lr", "weight_decay"):
            if (value := getattr(self, name)) is not None and not value >= 0:
                raise ValueError(f"{name} must be at least 0, got {value!r}")
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(f"hidden must be widths of at least 1, got {self.hidden!r}")
        if not math.isfinite(self.reward_scale) or not math.isfinite(self.reward_shift):
            raise ValueError(
                f"reward_scale and reward_shift must be finite, got {self.reward_scale!r} and {self.reward_shift!r}"
            )


class OfflineLearner(ABC):
    """A policy with critics of actions, its optimizer, and slow copies of what is learnt slowly.

    Args:
        policy: What learns; its ``critic`` is made anew.
        options: See :class:`Options`.
        updates: How many updates there will be, over which the learning rate falls.

    Raises:
        TypeError: The policy can have no critic of actions.
        ValueError: Weights that learn have 16 bits, in which most updates round to nothing; or nothing learns.
    """

    whole_steps: ClassVar[bool] = False
    """Whether a step cannot be evaluated in parts, since a statistic of all of it counts."""
    needs_q: ClassVar[bool] = True
    """Whether actions are valued."""
    needs_other: ClassVar[bool] = False
    """Whether other actions are looked at than those of the log."""

    def __init__(self, policy: TrainablePolicy, options: Any, updates: int | None = None) -> None:
        self.policy, self.options, self.updates = policy, options, updates
        if self.needs_q and options.ensemble < 1:
            raise ValueError(f"ensemble must be at least 1, got {options.ensemble!r}")
        if self.whole_steps and options.max_cost is not None:
            raise ValueError(f"max_cost={options.max_cost!r}: {type(self).__name__} learns from whole steps alone")
        policy.add_action_critic(
            options.ensemble, hidden=options.hidden, normalize=options.normalize, seed=options.seed
        )
        critic: nn.Module = policy.critic  # type: ignore[assignment]
        self.critic_weights = list(critic.parameters())
        of_critic = {id(weight) for weight in self.critic_weights}
        self.actor_weights = [weight for weight in learnable(policy) if id(weight) not in of_critic]
        self.generator = torch.Generator().manual_seed(options.seed)
        self.round = self.taken = 0
        self._lr = learning_rate(policy, options.lr, imitates=True)
        groups = [(self.actor_weights, self._lr), (self.critic_weights, options.value_lr), *self._more_weights()]
        self.optimizer = torch.optim.AdamW(
            [{"params": weights, "lr": lr} for weights, lr in groups if weights],
            weight_decay=options.weight_decay,
            fused=True,
        )
        self.slow: nn.Module | None = None

    def _more_weights(self) -> Sequence[tuple[list[nn.Parameter], float]]:
        """Return what else learns, and how fast."""
        return ()

    def _slow(self) -> nn.Module | None:
        """Return a frozen copy of what is followed slowly: the critics; None: nothing is."""
        return copy.deepcopy(self._online()).requires_grad_(False)

    def _online(self) -> nn.Module:
        """Return what it follows."""
        return self.policy.critic  # type: ignore[return-value]

    @abstractmethod
    def _phases(self) -> Iterator[tuple[str, list[nn.Parameter]]]:
        """Give the losses of a step by name, one after another, and what each moves."""

    @abstractmethod
    def _loss(self, phase: str, sample: Sample, count: Tensor) -> tuple[Tensor, Metrics]:
        """Return a loss, and what to watch, as sums over ``count`` decisions; those of parts of a step add up."""

    def _follows(self) -> bool:
        """Return whether slow copies follow in this step."""
        return True

    def update(self, replay: Replay) -> dict[str, float]:
        """Take the steps of an update; return what to watch, as means over the steps.

        Raises:
            NotFinite: A loss or a gradient is not finite; the weights are those before that step.
        """
        options = self.options
        scale = rate(self.round, self.updates, warmup=options.warmup, decay=options.decay)
        self.optimizer.param_groups[0]["lr"] = self._lr * scale
        if self.needs_other and not replay.is_cut:
            raise TypeError(
                f"{type(self.policy).__name__} reads whole episodes, and this algorithm looks at other actions than "
                "were done, step by step; take IQL, AWR or FilteredBC"
            )
        if self.slow is None:
            self.slow = self._slow()
        sums: dict[str, float] = defaultdict(float)
        counts: dict[str, int] = defaultdict(int)
        device = self.actor_weights[0].device
        for _ in range(options.steps):
            sample = replay.draw(min(options.batch_size, len(replay)), self.generator).to(device)
            for phase, weights in self._phases():
                for name, value in self._descend(phase, weights, sample).items():
                    sums[name] += value
                    counts[name] += 1
            if self.slow is not None and self._follows():
                self._follow()
            self.taken += 1
        self.round += 1
        told = {name: value / counts[name] for name, value in sums.items()}
        return told | {"steps": float(options.steps), "lr": self._lr * scale}

    def _descend(self, phase: str, weights: list[nn.Parameter], sample: Sample) -> dict[str, float]:
        """Take an optimizer step along one loss, evaluated in parts whose gradients add up."""
        count = sample.now.mask.sum()
        sums: Metrics = {}
        self.optimizer.zero_grad()
        for part in self._parts(sample):
            loss, told = self._loss(phase, part, count)
            loss.backward(inputs=weights)
            for name, value in told.items():
                sums[name] = sums[name] + value.detach() if name in sums else value.detach()
        options = self.options
        if options.max_grad_norm is not None:
            for group in self.optimizer.param_groups:
                nn.utils.clip_grad_norm_([w for w in group["params"] if w.grad is not None], options.max_grad_norm)
        metrics = dict(zip(sums, torch.stack(list(sums.values())).tolist(), strict=True))
        for name, value in metrics.items():
            if not math.isfinite(value):
                raise NotFinite(f"{name} of round {self.round} is {value}; weights are as before this step", sample.now)
        self.optimizer.step()
        return metrics

    def _parts(self, sample: Sample) -> Iterator[Sample]:
        if self.options.max_cost is None:
            yield sample
            return
        start = 0
        for part in parts(sample.now, self.options.max_cost):
            stop = start + len(part)
            yield Sample(part, None if sample.after is None else sample.after.select(range(start, stop)))
            start = stop

    @torch.no_grad()
    def _follow(self) -> None:
        """Bring slow copies nearer to what they follow."""
        assert self.slow is not None
        slow: list[Tensor] = list(self.slow.parameters())
        torch._foreach_lerp_(slow, list[Tensor](self._online().parameters()), self.options.polyak)

    def state_dict(self) -> dict[str, Any]:
        """Return all that an update depends on."""
        return {
            "policy": self.policy.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "slow": None if self.slow is None else self.slow.state_dict(),
            "generator": self.generator.get_state(),
            "round": self.round,
            "taken": self.taken,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.policy.load_state_dict(state["policy"])
        self.optimizer.load_state_dict(state["optimizer"])
        if state["slow"] is not None:
            self.slow = self._slow()
            assert self.slow is not None
            self.slow.load_state_dict(state["slow"])
        self.generator.set_state(state["generator"])
        self.round, self.taken = state["round"], state["taken"]
