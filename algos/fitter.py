"""What fits a policy to given rows: the one loop of optimizer steps that imitation and preferences share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import torch
from torch import Tensor, nn

from tetrathlon.agents.decisions import Decisions
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.batch import parts
from tetrathlon.algos.learner import NotFinite, learnable, learning_rate
from tetrathlon.algos.options import Decay
from tetrathlon.algos.schedules import rate


@dataclass(frozen=True, kw_only=True)
class Fit:
    """How given rows are learnt.

    Raises:
        ValueError: A value is out of range.
    """

    steps: int = 200
    """Optimizer steps an update."""
    batch_size: int = 64
    """What is learnt from in a step, dealt anew in each pass: decisions, where the policy takes each by itself;
    else episodes, or turns where text has labels."""
    max_cost: float | None = None
    """What is evaluated at once, in the policy's own unit (tokens for language); gradients of the parts add up. None:
    all of a step."""
    lr: float | None = None
    """Learning rate (AdamW); None: what the policy names as its own, else 3e-4."""
    warmup: int = 0
    """Updates over which the learning rate grows from 0."""
    decay: Decay = "constant"
    """How it falls to 0 over the updates that were asked for."""
    weight_decay: float = 0.0
    """Of AdamW."""
    max_grad_norm: float = 1.0
    """Largest gradient norm."""
    seed: int = 0
    """Seed of the starts and of the dealing."""

    def __post_init__(self) -> None:
        for name, low in (("steps", 1), ("batch_size", 1), ("warmup", 0)):
            if getattr(self, name) < low:
                raise ValueError(f"{name} must be at least {low}, got {getattr(self, name)!r}")
        *ways, last = map(repr, get_args(Decay))
        if self.decay not in get_args(Decay):
            raise ValueError(f"decay must be {', '.join(ways)} or {last}, got {self.decay!r}")
        for name in ("max_grad_norm", "max_cost"):
            if (value := getattr(self, name)) is not None and not value > 0:
                raise ValueError(f"{name} must be above 0, got {value!r}")
        for name in ("lr", "weight_decay"):
            if (value := getattr(self, name)) is not None and not value >= 0:
                raise ValueError(f"{name} must be at least 0, got {value!r}")


class Fitter(ABC):
    """A policy and its optimizer: deals given rows to steps; a subclass says what is lowered.

    Args:
        policy: What learns.
        options: See :class:`Fit`.
        refit: Whether each update begins with the weights of the start.
        updates: How many updates there will be, over which the learning rate falls.
        imitates: Whether the policy's own learning rate is that of imitation, or that of learning from pay.

    Raises:
        ValueError: Weights that learn have 16 bits, in which most updates round to nothing; or nothing learns.
    """

    loss_name = "loss"
    """What its metrics call what is lowered."""
    together = 1
    """How many rows, one after another, are dealt and evaluated as one: the two of a pair."""

    def __init__(
        self,
        policy: TrainablePolicy,
        options: Fit,
        *,
        refit: bool = False,
        updates: int | None = None,
        imitates: bool = True,
    ) -> None:
        self._weights = learnable(policy)
        self.policy, self.options, self.updates = policy, options, updates
        self.round = 0
        self._lr = learning_rate(policy, options.lr, imitates=imitates)
        self.optimizer = torch.optim.AdamW(self._weights, lr=self._lr, weight_decay=options.weight_decay)
        self._generator = torch.Generator().manual_seed(options.seed)
        self._start = [weight.detach().clone() for weight in self._weights] if refit else None

    @property
    def device(self) -> torch.device:
        """Where the policy is."""
        return self._weights[0].device

    def update(
        self, batch: Decisions | None, after: Callable[[int, float], bool | None] | None = None
    ) -> dict[str, float]:
        """Take the steps of an update; return what to watch, as means over the steps.

        Args:
            batch: Rows to learn from, of which a step sees ``batch_size`` times :attr:`together`; None: there are none
                yet.
            after: Called with the number of the step and its loss; a true answer ends the update.

        Raises:
            NotFinite: A loss or a gradient is not finite; the weights are those before that step.
        """
        scale = rate(self.round, self.updates, warmup=self.options.warmup, decay=self.options.decay)
        self.optimizer.param_groups[0]["lr"] = self._lr * scale
        if self._start is not None:
            self.optimizer.state.clear()
            with torch.no_grad():
                for weight, start in zip(self._weights, self._start, strict=True):
                    weight.copy_(start)
        order = torch.empty(0, dtype=torch.long)
        sums: dict[str, float] = defaultdict(float)
        step = 0
        for step in range(1, self.options.steps + 1 if batch is not None else 1):
            assert batch is not None
            count = len(batch) // self.together
            while len(order) < min(self.options.batch_size, count):
                order = torch.cat([order, torch.randperm(count, generator=self._generator)])
            chosen, order = order[: self.options.batch_size], order[self.options.batch_size :]
            rows = self.together * chosen[:, None] + torch.arange(self.together)
            found = self._step(batch.select(rows.flatten()))
            for name, value in found.items():
                sums[name] += value
            if after is not None and after(step - 1, found[self.loss_name]):
                break
        self.round += 1
        return {name: value / step for name, value in sums.items() if step} | {
            "steps": float(step),
            "lr": self._lr * scale,
        }

    def _step(self, minibatch: Decisions) -> dict[str, float]:
        """Take one optimizer step; the minibatch is evaluated in parts whose gradients add up."""
        whole = self._whole(minibatch)
        sums: dict[str, float] = defaultdict(float)
        self.optimizer.zero_grad()
        for each in parts(minibatch, self.options.max_cost, self.together):
            loss, found = self._loss(each.to(self.device), whole)
            loss.backward()
            for name, value in found.items():
                sums[name] += value
        norm = float(nn.utils.clip_grad_norm_(self.policy.parameters(), self.options.max_grad_norm))
        for what, value in (("loss", sums[self.loss_name]), ("gradient norm", norm)):
            if not math.isfinite(value):
                raise NotFinite(
                    f"the {what} of round {self.round} is {value}; weights are as before this step", minibatch
                )
        self.optimizer.step()
        return {**sums, "grad_norm": norm}

    @abstractmethod
    def _whole(self, minibatch: Decisions) -> Tensor:
        """Return what the loss of a part has to know of the whole minibatch."""

    @abstractmethod
    def _loss(self, part: Decisions, whole: Tensor) -> tuple[Tensor, dict[str, float]]:
        """Return the loss of a part of a minibatch, and what to watch; both add up over its parts."""

    def state_dict(self) -> dict[str, Any]:
        """Return all that an update depends on."""
        return {
            "policy": self.policy.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "start": self._start,
            "generator": self._generator.get_state(),
            "round": self.round,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.policy.load_state_dict(state["policy"])
        self.optimizer.load_state_dict(state["optimizer"])
        self._start = state["start"]
        self._generator.set_state(state["generator"])
        self.round = state["round"]
