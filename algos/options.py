"""What the on-policy trainer does with a batch: every choice that papers and libraries make differently, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from tetrathlon.algos.advantages import Scale
from tetrathlon.algos.denominators import Reduction
from tetrathlon.algos.kl import Estimator
from tetrathlon.algos.losses import ValueClip
from tetrathlon.algos.segments import Level

Advantage = Literal["group", "leave_one_out", "gae", "returns", "batch_mean", "moving_average"]
"""Relative to the group (GRPO), to the others of the group (RLOO), or to a critic (PPO); the whitened return of each
decision (REINFORCE++); the score less the mean of the batch, or of past batches (REINFORCE)."""

Decay = Literal["constant", "linear", "cosine"]
"""How learning rates fall after the warm-up."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Where the reward comes from, how the advantage is estimated, what keeps the update stable.

    Raises:
        ValueError: A value is out of range, or two do not go together.
    """

    advantage: Advantage = "group"
    """Relative to the group (``group``: GRPO), to its others (``leave_one_out``: RLOO) or to a critic (``gae``: PPO);
    the whitened ``returns`` of each decision (REINFORCE++); the score less the mean of the batch (``batch_mean``) or of
    past ones (``moving_average``: REINFORCE)."""
    scale: Scale = "std"
    """Of group advantages: divided by the group's standard deviation, or centred alone."""
    ddof: int = 1
    """Of that deviation: 1 divides the squares by n - 1, 0 by n."""
    eps: float = 1e-6
    """Added to that deviation."""
    gamma: float = 1.0
    """Discount of one environment step; read with ``gae`` and ``returns``."""
    scale_rewards: bool = False
    """Whether rewards are divided by the running deviation of their discounted return (Engstrom et al., 2020); of
    ``gae`` and ``returns``."""
    lam: float = 0.95
    """Trace of GAE, of one decision."""
    critic_lam: float | None = None
    """Trace of what the critic learns, where it is another (decoupled GAE: Yuan et al., 2025); None: the same."""
    adaptive_lam: float | None = None
    """Takes the place of ``lam``: the trace is 1 - 1 / (this times the decisions of a row), so that long answers are
    credited as far back as short ones (VAPO: Yue et al., 2025; 0.05 there)."""
    baseline_decay: float = 0.9
    """How much of the past a ``moving_average`` keeps."""
    normalize: bool = False
    """Whether advantages are brought to mean 0 and standard deviation 1 over the batch."""
    credit: Level = "decision"
    """Where advantages live and values are learnt: each decision, or the first one of a turn or of an episode."""

    ratio: Level = "decision"
    """Whose probability ratio counts: each decision's, or the mean of its turn or episode (GSPO)."""
    clip_low: float = 0.2
    """How far below 1 the ratio counts (PPO, section 3)."""
    clip_high: float = 0.2
    """How far above 1 the ratio counts (Clip-Higher where it is larger: DAPO)."""
    dual_clip: float | None = None
    """Bounds the loss of a negative advantage by this times the advantage; None: no bound."""
    importance_cap: float | None = None
    """Largest weight that corrects for a sampler whose probabilities differ from the trainer's; None: no correction."""
    reduction: Reduction = "decision_mean"
    """How losses of decisions become one: their mean, the mean over episodes of the mean of each, or the mean over
    episodes of their sum over ``length_constant``."""
    length_constant: float | None = None
    """By what ``episode_sum`` divides: the length limit."""
    mask_cut: bool = False
    """Whether episodes that a length limit cut leave the loss (overlong filtering: DAPO, section 3.4)."""

    pair_reward: bool = False
    """Whether an episode is paid its reward times the mean reward of the groups that began at the same start in other
    variants, so that a picture and its twin must both be right; needs ``variants``."""
    overlong_limit: int | None = None
    """From how many decisions on an episode is paid 1 less, a soft penalty that begins ``overlong_cache`` earlier
    (DAPO, eq. 13); None: there is none."""
    overlong_cache: int = 0
    """Over how many decisions that penalty grows."""

    kl_coef: float = 0.0
    """Weight of the divergence from the reference; 0: there is no reference."""
    kl_coef_end: float | None = None
    """What that weight is at the last update, on a line from the first; None: it stays."""
    kl_in: Literal["loss", "reward"] = "loss"
    """Whether the divergence is a loss, or a price on the reward of each decision."""
    kl_estimator: Estimator | None = None
    """How the divergence is estimated (Schulman, 2020). None: k3 in the loss and k1 in the reward, where k3 would make
    rare decisions dear instead of those that left the reference."""
    reference_decay: float | None = None
    """How much of the reference stays after an update (an exponential mean of the policy); None: it is the start."""
    entropy_coef: float = 0.0
    """Weight of the entropy bonus."""
    entropy_coef_end: float | None = None
    """What that weight is at the last update, on a line from the first; None: it stays."""
    value_coef: float = 0.5
    """Weight of the value loss."""
    value_clip: float | None = None
    """How far a value may move from what it was; None: as far as it likes."""
    value_clip_mode: ValueClip = "none"
    """Whose error the loss of a value is: its own, the larger of its own and the clipped one's (``max``: PPO2), or the
    clipped one's (``clipped_only``: Stable-Baselines3)."""

    epochs: int = 4
    """Passes over a batch."""
    minibatches: int = 4
    """Optimizer steps a pass; groups are dealt at random, and stay together."""
    piece: int | None = None
    """Positions of a row that stay together in a minibatch: 1 for a policy without a memory, a few dozen for one that
    learns what to remember. None: all of a row, and of its group. The policy has to be ``divisible``."""
    max_cost: float | None = None
    """What is evaluated at once, in the policy's own unit (tokens for language); gradients of the parts add up. None:
    a minibatch."""
    temperature: float | None = None
    """What the policy samples and learns at, where it has a ``temperature``; None: its own."""
    temperature_end: float | None = None
    """What that is at the last update, on a line from the first; None: it stays."""
    lr: float | None = None
    """Learning rate of the policy (AdamW); None: what the policy names as its own, else 3e-4."""
    value_lr: float = 1e-3
    """Learning rate of ``policy.critic``."""
    warmup: int = 0
    """Updates over which learning rates grow from 0."""
    decay: Decay = "constant"
    """How learning rates fall to 0 over the updates that were asked for."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Of AdamW."""
    weight_decay: float = 0.0
    """Of AdamW."""
    max_grad_norm: float = 1.0
    """Largest gradient norm."""
    target_kl: float | None = None
    """Divergence from the policy before the update at which the passes over a batch end; None: they do not."""
    seed: int = 0
    """Seed of the starts and of the dealing."""

    @property
    def needs_reference(self) -> bool:
        """Whether the divergence from a reference counts at any update."""
        return bool(self.kl_coef or self.kl_coef_end)

    @property
    def is_one_step(self) -> bool:
        """Whether a batch is learnt from in one optimizer step, by the policy that played it."""
        return self.epochs == 1 and self.minibatches == 1

    @property
    def estimator(self) -> Estimator:
        """The estimate of the divergence that is used."""
        return self.kl_estimator or ("k3" if self.kl_in == "loss" else "k1")

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {getattr(self, name)!r}")
        if self.dual_clip is not None and not self.dual_clip > 1:
            raise ValueError(f"dual_clip must be above 1, got {self.dual_clip!r}")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must be in [0, 1), got {self.betas!r}")
        if not 0 <= self.baseline_decay < 1:
            raise ValueError(f"baseline_decay must be in [0, 1), got {self.baseline_decay!r}")
        for name, low in (("epochs", 1), ("minibatches", 1), ("warmup", 0), ("ddof", 0)):
            if getattr(self, name) < low:
                raise ValueError(f"{name} must be at least {low}, got {getattr(self, name)!r}")
        for name in ("gamma", "lam"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1, got {getattr(self, name)!r}")
        for name in ("clip_low", "clip_high", "importance_cap", "max_grad_norm", "max_cost"):
            if (value := getattr(self, name)) is not None and not value > 0:
                raise ValueError(f"{name} must be above 0, got {value!r}")
        for name in ("temperature", "temperature_end"):
            if (value := getattr(self, name)) is not None and not value > 0:
                raise ValueError(f"{name} must be above 0, got {value!r}")
        for name in ("kl_coef", "kl_coef_end", "lr", "value_lr", "weight_decay", "value_coef", "eps"):
            if (value := getattr(self, name)) is not None and not value >= 0:
                raise ValueError(f"{name} must be at least 0, got {value!r}")
        if self.temperature is None and self.temperature_end is not None:
            raise ValueError(f"temperature_end={self.temperature_end!r} needs the temperature that it begins at")
        if (self.value_clip is None) != (self.value_clip_mode == "none"):
            raise ValueError(
                f"value_clip is the width of a value_clip_mode other than 'none', got {self.value_clip!r} for "
                f"{self.value_clip_mode!r}"
            )
        if self.scale_rewards and self.advantage not in ("gae", "returns"):
            raise ValueError(
                f"scale_rewards is of advantage='gae' and 'returns', which read rewards; got {self.advantage!r}"
            )
        if self.piece is not None:
            if self.piece < 1:
                raise ValueError(f"piece must be at least 1, got {self.piece!r}")
            for name, needed in _OF_PIECES.items():
                if (value := getattr(self, name)) != needed:
                    raise ValueError(
                        f"piece={self.piece!r} needs {name}={needed!r}, which reads no whole row; got {value!r}"
                    )
        for name in ("critic_lam", "adaptive_lam"):
            if (value := getattr(self, name)) is not None and not 0 < value <= 1:
                raise ValueError(f"{name} must be above 0 and at most 1, got {value!r}")
        limit = self.overlong_limit
        if not (limit is None and self.overlong_cache == 0) and not (limit and 1 <= self.overlong_cache <= limit):
            raise ValueError(
                f"overlong_cache must be from 1 to overlong_limit, got {self.overlong_cache!r} and {limit!r}"
            )
        if (self.reduction == "episode_sum") != (self.length_constant is not None):
            raise ValueError(
                f"length_constant is the length limit of reduction='episode_sum', got {self.length_constant!r} "
                f"for {self.reduction!r}"
            )


_OF_PIECES = {"credit": "decision", "ratio": "decision", "reduction": "decision_mean", "mask_cut": False}
_CHOICES: dict[str, tuple[Any, ...]] = {
    "advantage": get_args(Advantage),
    "scale": get_args(Scale),
    "credit": get_args(Level),
    "ratio": get_args(Level),
    "reduction": get_args(Reduction),
    "kl_in": ("loss", "reward"),
    "kl_estimator": (None, *get_args(Estimator)),
    "value_clip_mode": get_args(ValueClip),
    "decay": get_args(Decay),
}
