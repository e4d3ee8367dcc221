"""What clones: a policy and its optimizer, which raises the likelihood of what was done."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import torch
from torch import nn

from tetrathlon.agents.decisions import Decisions, Learn
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.batch import parts
from tetrathlon.algos.learner import NotFinite, learnable, learning_rate
from tetrathlon.algos.losses import total
from tetrathlon.algos.options import Decay
from tetrathlon.algos.pieces import pieces
from tetrathlon.algos.schedules import rate
from tetrathlon.envs.episode import Episode


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is played for an imitator, and how it learns.

    Raises:
        ValueError: A value is out of range.
    """

    episodes: int = 64
    """Episodes that are played."""
    slots: int | None = None
    """How many of them are under way at once; None: all, up to 256."""
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
    split: str = "train"
    """Which instances, where the environment has splits."""
    seed: int = 0
    """Seed of the starts and of the dealing."""

    def __post_init__(self) -> None:
        for name, low in (("episodes", 1), ("steps", 1), ("batch_size", 1), ("warmup", 0)):
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


def is_cut(policy: TrainablePolicy) -> bool:
    """Return whether each decision of a policy may be learnt by itself.

    One with a memory has noted what it remembered before its own decisions, not before those of others.
    """
    return bool(getattr(policy, "divisible", False)) and not getattr(policy, "memory", 0)


def lessons(policy: TrainablePolicy, episodes: Sequence[Episode], learn: Learn) -> Decisions:
    """Return episodes as rows that are dealt to minibatches: a decision each where that is possible.

    Raises:
        ValueError: There is nothing to learn in the episodes.
    """
    if is_cut(policy):  # in one row, and then cut: nothing is padded, and an observation is copied twice in all
        batch = policy.collate([[replace(episode, group=None) for episode in episodes]], learn=learn, last="never")
    else:
        batch = policy.collate([[episode] for episode in episodes], learn=learn, last="never")
    if not batch.mask.any():
        raise ValueError(f"there is nothing to learn in these {len(episodes)} episodes with learn={learn!r}")
    return pieces(batch, 1) if is_cut(policy) else batch


class Cloner:
    """A policy and its optimizer: raises the likelihood of what was done.

    Args:
        policy: What learns.
        options: See :class:`Options`.
        refit: Whether each update begins with the weights of the start.
        updates: How many updates there will be, over which the learning rate falls.

    Raises:
        ValueError: Weights that learn have 16 bits, in which most updates round to nothing; or nothing learns.
    """

    def __init__(
        self, policy: TrainablePolicy, options: Options, *, refit: bool = False, updates: int | None = None
    ) -> None:
        self._weights = learnable(policy)
        self.policy, self.options, self.updates = policy, options, updates
        self.round = 0
        self._lr = learning_rate(policy, options.lr, imitates=True)
        self.optimizer = torch.optim.AdamW(self._weights, lr=self._lr, weight_decay=options.weight_decay)
        self._generator = torch.Generator().manual_seed(options.seed)
        self._start = [weight.detach().clone() for weight in self._weights] if refit else None

    def update(
        self, batch: Decisions | None, after: Callable[[int, float], bool | None] | None = None
    ) -> dict[str, float]:
        """Take the steps of an update; return what to watch, as means over the steps.

        Args:
            batch: Rows to learn from, of which a step sees ``batch_size``; None: there are none yet.
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
            while len(order) < min(self.options.batch_size, len(batch)):
                order = torch.cat([order, torch.randperm(len(batch), generator=self._generator)])
            chosen, order = order[: self.options.batch_size], order[self.options.batch_size :]
            found = self._step(batch.select(chosen))
            for name, value in found.items():
                sums[name] += value
            if after is not None and after(step - 1, found["bc_loss"]):
                break
        self.round += 1
        return {name: value / step for name, value in sums.items() if step} | {
            "steps": float(step),
            "lr": self._lr * scale,
        }

    def _step(self, minibatch: Decisions) -> dict[str, float]:
        """Take one optimizer step; the minibatch is evaluated in parts whose gradients add up."""
        device = self._weights[0].device
        count = minibatch.mask.sum().to(device)
        sums = {"bc_loss": 0.0}
        self.optimizer.zero_grad()
        for each in parts(minibatch, self.options.max_cost):
            part = each.to(device)
            each_loss, entropy = self.policy.imitation_loss(part)
            loss = total(each_loss, part.mask, count)
            loss.backward()
            sums["bc_loss"] += float(loss.detach())
            if entropy is not None:
                sums["entropy"] = sums.get("entropy", 0.0) + float(total(entropy.detach(), part.mask, count))
        norm = float(nn.utils.clip_grad_norm_(self.policy.parameters(), self.options.max_grad_norm))
        for what, value in (("loss", sums["bc_loss"]), ("gradient norm", norm)):
            if not math.isfinite(value):
                raise NotFinite(
                    f"the {what} of round {self.round} is {value}; weights are as before this step", minibatch
                )
        self.optimizer.step()
        return {**sums, "grad_norm": norm}

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
