"""What turns a batch of episodes into better weights: the one optimizer loop of all on-policy algorithms."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from tetrathlon.agents.decisions import Decisions
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.advantages import group_signal
from tetrathlon.algos.baselines import MovingAverage
from tetrathlon.algos.batch import Sizes, parts, policy_loss, prepare, segments_of
from tetrathlon.algos.options import Options
from tetrathlon.envs.episode import Episode, scorable

Rows = Sequence[Sequence[Episode]]
_LR = 3e-4


class Learner:
    """A policy, its optimizer and its reference.

    Args:
        policy: What learns; its ``critic`` is trained too where advantages are ``gae``.
        options: See :class:`Options`.
        updates: How many updates there will be, which is when ``decay`` has learning rates at 0.

    Raises:
        ValueError: Weights that learn have 16 bits, in which most updates round to nothing; or nothing learns.
    """

    def __init__(self, policy: TrainablePolicy, options: Options, updates: int | None = None) -> None:
        trained = [parameter for parameter in policy.parameters() if parameter.requires_grad]
        if not trained:
            raise ValueError(f"{type(policy).__name__} has no parameter that learns (requires_grad)")
        if narrow := {p.dtype for p in trained if p.dtype in (torch.bfloat16, torch.float16)}:
            raise ValueError(
                f"weights that learn are {', '.join(map(str, narrow))}, in which an update of 1e-5 rounds to nothing; "
                "keep them in float32 and compute in 16 bits by autocast"
            )
        self.policy, self.options, self.updates = policy, options, updates
        self.round = 0
        self.reference = policy.snapshot() if options.kl_coef else None
        self.average: MovingAverage | None = None
        critic = getattr(policy, "critic", None)
        of_critic = {id(p) for p in critic.parameters()} if isinstance(critic, nn.Module) else set()
        lr = getattr(policy, "default_lr", _LR) if options.lr is None else options.lr
        groups = [
            {"params": [p for p in trained if (id(p) in of_critic) is is_critic], "lr": rate}
            for is_critic, rate in ((False, lr), (True, options.value_lr))
        ]
        self.optimizer = torch.optim.AdamW(
            [group for group in groups if group["params"]], betas=options.betas, weight_decay=options.weight_decay
        )
        self._rates = [group["lr"] for group in self.optimizer.param_groups]
        self._generator = torch.Generator().manual_seed(options.seed)

    @property
    def device(self) -> torch.device:
        """Where the policy is."""
        return next(self.policy.parameters()).device

    def update(self, collected: Rows) -> dict[str, float]:
        """Learn from B rows of fresh episodes; return what to watch.

        Episodes whose grader failed take no part and are counted (metric ``unscorable``).

        Raises:
            TypeError: Advantages need a critic and the policy has none.
            ValueError: The policy decided nothing in what was collected.
            FloatingPointError: A loss or a gradient is not finite; the weights are those before that step.
        """
        start = time.perf_counter()
        rows = [row for row in map(scorable, collected) if row]
        batch = self.policy.collate(rows).to(self.device)
        batch, self.average = prepare(self.policy, batch, self.options, self.reference, self.average)
        prepared = time.perf_counter()
        metrics = {"unscorable": float(sum(map(len, collected)) - sum(map(len, rows)))} | _said(batch, self.options)
        metrics |= self._optimize(batch)
        self.round += 1
        self._follow()
        metrics["seconds_prepare"] = prepared - start
        metrics["seconds_optimize"] = time.perf_counter() - prepared
        return metrics

    def _optimize(self, batch: Decisions) -> dict[str, float]:
        sums: dict[str, float] = defaultdict(float)
        steps = 0
        first_drift = 0.0
        scale = self._scale()
        for group, rate in zip(self.optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * scale
        for _ in range(self.options.epochs):
            divergence = 0.0
            dealt = 0
            for rows in self._deal(batch):
                found = self._step(batch.select(rows))
                if steps == 0:
                    first_drift = found.pop("ratio_error")
                found.pop("ratio_error", None)
                for name, value in found.items():
                    sums[name] += value
                steps, dealt, divergence = steps + 1, dealt + 1, divergence + found["kl_old"]
            if self.options.target_kl is not None and divergence / dealt > self.options.target_kl:
                break
        means = {name: value / steps for name, value in sums.items()}
        return means | {"first_ratio_error": first_drift, "steps": float(steps), "lr": self._rates[0] * scale}

    def _deal(self, batch: Decisions) -> Iterator[Tensor]:
        """Deal whole groups, so that what they share (a prompt) is evaluated once."""
        _, member = torch.unique(batch.group.cpu(), return_inverse=True)
        count = int(member.max()) + 1
        order = torch.randperm(count, generator=self._generator)
        for dealt in order.tensor_split(min(self.options.minibatches, count)):
            yield torch.cat([(member == group).nonzero().flatten() for group in dealt])

    def _step(self, minibatch: Decisions) -> dict[str, float]:
        """Take one optimizer step; the minibatch is evaluated in parts whose gradients add up."""
        options = self.options
        sizes = Sizes.of(minibatch, options)
        sums: dict[str, float] = defaultdict(float)
        worst = 0.0
        self.optimizer.zero_grad()
        for part in parts(minibatch, options.max_cost):
            loss, metrics = policy_loss(self.policy, part, options, sizes)
            worst = max(worst, metrics.pop("ratio_error"))
            if not torch.isfinite(loss):
                raise FloatingPointError(
                    f"the loss of round {self.round} is {loss.item()}; weights are as before this step"
                )
            loss.backward()
            for name, value in metrics.items():
                sums[name] += value
        norm = float(nn.utils.clip_grad_norm_(self.policy.parameters(), options.max_grad_norm))
        if not math.isfinite(norm):
            raise FloatingPointError(
                f"the gradient norm of round {self.round} is {norm}; weights are as before this step"
            )
        self.optimizer.step()
        return {**sums, "grad_norm": norm, "ratio_error": worst}

    def _scale(self) -> float:
        """Return by what the learning rates of this round are multiplied."""
        options = self.options
        if self.round < options.warmup:
            return (self.round + 1) / options.warmup
        if options.decay == "constant" or self.updates is None:
            return 1.0
        left = 1 - (self.round - options.warmup) / max(self.updates - options.warmup, 1)
        left = min(max(left, 0.0), 1.0)
        return left if options.decay == "linear" else 0.5 * (1 - math.cos(math.pi * left))

    @torch.no_grad()
    def _follow(self) -> None:
        """Move a reference that follows the policy."""
        decay = self.options.reference_decay
        if self.reference is None or decay is None:
            return
        for old, new in zip(self.reference.parameters(), self.policy.parameters(), strict=True):
            old.lerp_(new, 1 - decay)

    def state_dict(self) -> dict[str, Any]:
        """Return all that an update depends on."""
        return {
            "policy": self.policy.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "reference": None if self.reference is None else self.reference.state_dict(),
            "average": None if self.average is None else asdict(self.average),
            "generator": self._generator.get_state(),
            "round": self.round,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.policy.load_state_dict(state["policy"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.reference is not None:
            self.reference.load_state_dict(state["reference"])
        self.average = None if state["average"] is None else MovingAverage(**state["average"])
        self._generator.set_state(state["generator"])
        self.round = state["round"]


def _said(batch: Decisions, options: Options) -> dict[str, float]:
    """Return what a prepared batch says before anything is learnt from it."""
    assert batch.old_logp is not None and batch.advantage is not None
    mask = batch.mask
    known = mask & ~batch.logp.isnan()
    drift = (batch.old_logp - batch.logp)[known].abs()
    signal = group_signal(batch.total_reward.masked_fill(~mask.any(dim=1), torch.nan), batch.group)
    told = {
        "reward": float(batch.total_reward.mean()),
        "decisions": float(mask.sum()),
        "cut": float((batch.cut & mask).any(dim=1).float().mean()),
        "sampler_drift": float(drift.max()) if drift.numel() else 0.0,
        "informative_groups": float(signal.informative.float().mean()),
        "advantage_std": float(batch.advantage[mask].std(correction=0)),
    }
    if batch.returns is not None and batch.old_value is not None:
        where = segments_of(options.credit, batch).first
        left = (batch.returns - batch.old_value)[where]
        spread = batch.returns[where].var(correction=0)
        told["explained_variance"] = float(1 - left.var(correction=0) / spread) if float(spread) > 0 else 0.0
    return told
