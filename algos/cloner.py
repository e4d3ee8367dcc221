"""What clones: a policy and its optimizer, which raises the likelihood of what was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from tetrathlon.agents.decisions import Decisions, Learn
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.fitter import Fit, Fitter
from tetrathlon.algos.losses import total
from tetrathlon.algos.pieces import pieces
from tetrathlon.envs.episode import Episode


@dataclass(frozen=True, kw_only=True)
class _Shown:
    """What is played for an imitator."""

    episodes: int = 64
    """Episodes that are played."""
    slots: int | None = None
    """How many of them are under way at once; None: all, up to 256."""
    split: str = "train"
    """Which instances, where the environment has splits."""


@dataclass(frozen=True, kw_only=True)
class Options(Fit, _Shown):
    """What is played for an imitator, and how it learns.

    Raises:
        ValueError: A value is out of range.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.episodes < 1:
            raise ValueError(f"episodes must be at least 1, got {self.episodes!r}")


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


class Cloner(Fitter):
    """Raises the likelihood of what was done; arguments are those of :class:`~tetrathlon.algos.fitter.Fitter`."""

    loss_name = "bc_loss"

    def _whole(self, minibatch: Decisions) -> Tensor:
        return minibatch.mask.sum().to(self.device)

    def _loss(self, part: Decisions, whole: Tensor) -> tuple[Tensor, dict[str, float]]:
        each_loss, entropy = self.policy.imitation_loss(part)
        loss = total(each_loss, part.mask, whole)
        told = {"bc_loss": float(loss.detach())}
        if entropy is not None:
            told["entropy"] = float(total(entropy.detach(), part.mask, whole))
        return loss, told
