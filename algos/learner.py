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
from tetrathlon.algos.batch import MAXIMA, Sizes, parts, policy_loss, prepare, segments_of
from tetrathlon.algos.options import Options
from tetrathlon.algos.pieces import pieces
from tetrathlon.algos.reward_scale import RewardScale
from tetrathlon.algos.schedules import at, between, rate
from tetrathlon.envs.episode import Episode, scorable

Rows = Sequence[Sequence[Episode]]
_LR = 3e-4
_PROBED = 1024
_MOST_SKIPPED = 5


class NotFinite(FloatingPointError):
    """A loss or a gradient is not a finite number.

    Attributes:
        batch: The decisions of the step that failed.
    """

    def __init__(self, message: str, batch: Decisions) -> None:
        super().__init__(message)
        self.batch = batch


def learnable(policy: TrainablePolicy) -> list[nn.Parameter]:
    """Return the weights that learn.

    Raises:
        ValueError: There are none, or they have 16 bits, in which most updates round to nothing.
    """
    trained = [parameter for parameter in policy.parameters() if parameter.requires_grad]
    if not trained:
        raise ValueError(f"{type(policy).__name__} has no parameter that learns (requires_grad)")
    if narrow := {p.dtype for p in trained if p.dtype in (torch.bfloat16, torch.float16)}:
        raise ValueError(
            f"weights that learn are {', '.join(map(str, narrow))}, in which an update of 1e-5 rounds to nothing; "
            "keep them in float32 and compute in 16 bits by autocast"
        )
    return trained


def learning_rate(policy: TrainablePolicy, given: float | None, *, imitates: bool = False) -> float:
    """Return the learning rate that is given, or else the policy's own for imitation or for learning from pay."""
    if given is not None:
        return given
    own: float = getattr(policy, "default_lr", _LR)
    return own if imitates else getattr(policy, "default_rl_lr", own)


class Learner:
    """A policy, its optimizer and its reference.

    Args:
        policy: What learns; its ``critic`` is trained too where advantages are ``gae``.
        options: See :class:`Options`.
        updates: How many updates there will be, over which schedules run.

    Raises:
        ValueError: Weights that learn have 16 bits, in which most updates round to nothing; or nothing learns.
        TypeError: Options name a temperature and the policy has none, or pieces and its rows cannot be cut.
    """

    def __init__(self, policy: TrainablePolicy, options: Options, updates: int | None = None) -> None:
        trained = learnable(policy)
        self.policy, self.options, self.updates = policy, options, updates
        self._trained = trained
        self.round = 0
        self._skipped = 0  # updates in a row in which nothing could be scored
        self.reference = policy.snapshot() if options.needs_reference else None
        if options.reference_decay is not None and not any(True for _ in (self.reference or policy).parameters()):
            raise ValueError(
                f"reference_decay={options.reference_decay!r}: the reference of this policy has no weights that could "
                "follow; with LoRA it is the model without its adapter"
            )
        self.average: MovingAverage | None = None
        self.reward_scale = RewardScale(options.gamma) if options.scale_rewards else None
        if options.piece is not None and not getattr(policy, "divisible", False):
            raise TypeError(f"piece={options.piece!r}: {type(policy).__name__} is not divisible; its rows stay whole")
        critic = getattr(policy, "critic", None)
        of_critic = {id(p) for p in critic.parameters()} if isinstance(critic, nn.Module) else set()
        lr = learning_rate(policy, options.lr)
        groups = [
            {"params": [p for p in trained if (id(p) in of_critic) is is_critic], "lr": rate}
            for is_critic, rate in ((False, lr), (True, options.value_lr))
        ]
        self.optimizer = torch.optim.AdamW(
            [group for group in groups if group["params"]],
            betas=options.betas,
            weight_decay=options.weight_decay,
            fused=True,
        )
        self._rates = [group["lr"] for group in self.optimizer.param_groups]
        self._generator = torch.Generator().manual_seed(options.seed)
        if options.temperature is not None and not hasattr(policy, "temperature"):
            raise TypeError(f"temperature={options.temperature!r}: {type(policy).__name__} has no temperature")
        self._set_temperature()

    @property
    def device(self) -> torch.device:
        """Where the policy is."""
        return next(self.policy.parameters()).device

    def update(self, collected: Rows, versions: Sequence[int] | None = None) -> dict[str, float]:
        """Learn from B rows of fresh episodes; return what to watch.

        Episodes whose grader failed take no part and are counted (metric ``unscorable``); where it failed for all,
        nothing is learnt.

        Args:
            collected: B rows.
            versions: How many updates the policy had seen when it played each row; default: all until now.

        Raises:
            TypeError: Advantages need a critic and the policy has none.
            ValueError: The policy decided nothing in what was collected, or for the fifth time in a row nothing
                could be scored.
            NotFinite: A loss or a gradient is not finite; the weights are those before that step.
        """
        start = time.perf_counter()
        options = at(self.options, self.round, self.updates)
        versions = [self.round] * len(collected) if versions is None else versions
        kept = [(row, version) for row, version in zip(map(scorable, collected), versions, strict=True) if row]
        rows = [row for row, _ in kept]
        if collected and not rows:
            return self._skip([episode for row in collected for episode in row])
        self._skipped = 0
        batch = self.policy.collate(rows)
        batch.policy_version = torch.tensor([version for _, version in kept], dtype=torch.long)[batch.source]
        if options.pair_reward:
            batch.pair = _pairs(rows)[batch.source]
        batch = batch.to(self.device)
        if self.reward_scale is not None:
            batch.reward = self.reward_scale.scaled(batch, rows)
        batch, self.average = prepare(self.policy, batch, options, self.reference, self.average)
        prepared = time.perf_counter()
        metrics = {"unscorable": float(sum(map(len, collected)) - sum(map(len, rows)))}
        metrics |= _said(batch, options, self.round) | _by_outcome(batch, rows) | self._scheduled(options)
        if self.reward_scale is not None:
            metrics["reward_scale"] = self.reward_scale.std
        before = self._probe()
        if options.piece is not None:
            batch = pieces(batch, options.piece)
        metrics |= self._optimize(batch, options)
        metrics["changed"] = float((self._probe() != before).float().mean())
        self.round += 1
        self._follow()
        self._set_temperature()
        metrics["seconds_prepare"] = prepared - start
        metrics["seconds_optimize"] = time.perf_counter() - prepared
        return metrics

    def _skip(self, failed: Sequence[Episode]) -> dict[str, float]:
        """Learn nothing from episodes of which none could be scored; a grader that stays broken ends the run."""
        self._skipped += 1
        if self._skipped >= _MOST_SKIPPED:
            why = failed[0].grader_error if failed else "there are none"
            raise ValueError(
                f"nothing could be scored in {self._skipped} updates in a row, {len(failed)} episodes in the last; "
                f"the first of them: {why}"
            )
        self.round += 1
        self._set_temperature()
        return {"unscorable": float(len(failed)), "seconds_prepare": 0.0, "seconds_optimize": 0.0}

    def _optimize(self, batch: Decisions, options: Options) -> dict[str, float]:
        sums: dict[str, float] = defaultdict(float)
        steps = 0
        first_error = drift = 0.0
        for _ in range(options.epochs):
            divergence = 0.0
            dealt = 0
            for rows in self._deal(batch):
                found = self._step(batch if len(rows) == len(batch) else batch.select(rows), options)
                error = found.pop("ratio_error")
                first_error = first_error if steps else error
                drift = max(drift, found.pop("sampler_drift"))
                for name, value in found.items():
                    sums[name] += value
                steps, dealt, divergence = steps + 1, dealt + 1, divergence + found["kl_old"]
            if options.target_kl is not None and divergence / dealt > options.target_kl:
                break
        means = {name: value / steps for name, value in sums.items()}
        return means | {"first_ratio_error": first_error, "sampler_drift": drift, "steps": float(steps)}

    def _deal(self, batch: Decisions) -> Iterator[Tensor]:
        """Deal whole groups, so that what they share (a prompt) is evaluated once."""
        _, member = torch.unique(batch.group.cpu(), return_inverse=True)
        count = int(member.max()) + 1
        turn = torch.randperm(count, generator=self._generator)[member]
        for dealt in torch.arange(count).tensor_split(min(self.options.minibatches, count)):
            yield ((turn >= dealt[0]) & (turn <= dealt[-1])).nonzero().flatten()

    def _step(self, minibatch: Decisions, options: Options) -> dict[str, float]:
        """Take one optimizer step; the minibatch is evaluated in parts whose gradients add up."""
        sizes = Sizes.of(minibatch, options)
        sums: dict[str, float] = defaultdict(float)
        most = dict.fromkeys(MAXIMA, 0.0)
        self.optimizer.zero_grad()
        for part in parts(minibatch, options.max_cost):
            loss, metrics = policy_loss(self.policy, part, options, sizes)
            for name in MAXIMA:
                most[name] = max(most[name], metrics.pop(name))
            if not math.isfinite(metrics["loss"]):
                raise self._not_finite("loss", metrics["loss"], minibatch)
            if part.mask.any():  # else nothing was decided there, and the loss is 0 whatever the weights are
                loss.backward()
            for name, value in metrics.items():
                sums[name] += value
        norm = float(nn.utils.clip_grad_norm_(self._trained, options.max_grad_norm))
        if not math.isfinite(norm):
            raise self._not_finite("gradient norm", norm, minibatch)
        self.optimizer.step()
        return {**sums, "grad_norm": norm, **most}

    def _not_finite(self, what: str, value: float, minibatch: Decisions) -> NotFinite:
        return NotFinite(f"the {what} of round {self.round} is {value}; weights are as before this step", minibatch)

    @torch.no_grad()
    def _probe(self) -> Tensor:
        """Return about a thousand weights of each tensor that learns, to see whether an update moved them."""
        chosen = [p.flatten()[:: max(p.numel() // _PROBED, 1)] for p in self._trained]
        return torch.cat(chosen).clone()

    def _scheduled(self, options: Options) -> dict[str, float]:
        """Set the learning rates of this round; return what has a schedule."""
        scale = rate(self.round, self.updates, warmup=options.warmup, decay=options.decay)
        for group, base in zip(self.optimizer.param_groups, self._rates, strict=True):
            group["lr"] = base * scale
        told = {"lr": self._rates[0] * scale}
        if len(self._rates) > 1:
            told["value_lr"] = self._rates[1] * scale
        for name in ("kl_coef", "entropy_coef"):
            if getattr(self.options, f"{name}_end") is not None:
                told[name] = getattr(options, name)
        if options.temperature is not None and options.temperature_end is not None:
            told["temperature"] = between(options.temperature, options.temperature_end, self.round, self.updates)
        return told

    def _set_temperature(self) -> None:
        """Bring what samples, what learns and the reference to the temperature of this round."""
        start = self.options.temperature
        if start is None:
            return
        now = between(start, self.options.temperature_end, self.round, self.updates)
        for policy in (self.policy, self.reference):
            if hasattr(policy, "temperature"):
                policy.temperature = now  # type: ignore[union-attr]

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
            "reward_scale": None if self.reward_scale is None else self.reward_scale.state_dict(),
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
        if self.reward_scale is not None:
            self.reward_scale.load_state_dict(state["reward_scale"])
        self._generator.set_state(state["generator"])
        self.round = state["round"]
        self._set_temperature()


def _pairs(rows: Rows) -> Tensor:
    """Return int [B]: rows of one start, in whatever variant, are a pair."""
    numbers: dict[int | None, int] = {}
    return torch.tensor([numbers.setdefault(row[0].seed, len(numbers)) for row in rows], dtype=torch.long)


def _said(batch: Decisions, options: Options, update: int) -> dict[str, float]:
    """Return what a prepared batch says before anything is learnt from it."""
    assert batch.advantage is not None and batch.policy_version is not None
    mask = batch.mask
    signal = group_signal(batch.total_reward.masked_fill(~mask.any(dim=1), torch.nan), batch.group)
    told = {
        "reward": float(batch.total_reward.mean()),
        "decisions": float(mask.sum()),
        "cost": float(batch.cost.sum()),
        "cut": float((batch.cut & mask).any(dim=1).float().mean()),
        "staleness": float((update - batch.policy_version).float().mean()),
        "advantage_std": float(batch.advantage[mask].std(correction=0)),
    }
    if len(signal.informative) < len(batch.group):  # else each is alone, and could not differ from the others
        told["informative_groups"] = float(signal.informative.float().mean())
    if batch.returns is not None and batch.old_value is not None:
        where = segments_of(options.credit, batch).first
        left = (batch.returns - batch.old_value)[where]
        spread = batch.returns[where].var(correction=0)
        told["explained_variance"] = float(1 - left.var(correction=0) / spread) if float(spread) > 0 else 0.0
    return told


def _by_outcome(batch: Decisions, rows: Rows) -> dict[str, float]:
    """Return how long episodes were, in decisions, and which share was cut, apart for those that succeeded.

    Only where a row is one episode: in a stretch an episode may lack its beginning.
    """
    if any(len(row) != 1 or row[0].last_info.get("is_success") is None for row in rows):
        return {}
    right = torch.tensor([row[0].is_success for row in rows])[batch.source.cpu()]
    length = batch.mask.sum(dim=1).float().cpu()
    cut = (batch.cut & batch.mask).any(dim=1).float().cpu()
    told: dict[str, float] = {}
    for name, chosen in (("right", right), ("wrong", ~right)):
        if bool(chosen.any()):
            told |= {f"length_{name}": float(length[chosen].mean()), f"cut_{name}": float(cut[chosen].mean())}
    return told
