"""Learning a reward model: a score of episodes that ranks pairs as they were ranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tetrathlon.agents.decisions import Decisions
from tetrathlon.agents.reward_model import RewardModel
from tetrathlon.algos.collect import Collector
from tetrathlon.algos.pair_learning import PairLearning, PairOptions, Ranker
from tetrathlon.algos.pairs import Pair, flat
from tetrathlon.algos.preferences import bradley_terry


@dataclass(frozen=True, kw_only=True)
class Options(PairOptions):
    """How far apart scores should be, and how far the labels are believed.

    Raises:
        ValueError: A value is out of range.
    """

    margin: float = 0.0
    """How far the scores of a pair should be apart (Llama 2: Touvron et al., 2023, eq. 2)."""
    label_smoothing: float = 0.0
    """How often labels are taken to be wrong."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.margin >= 0:
            raise ValueError(f"margin must be at least 0, got {self.margin!r}")
        if not 0 <= self.label_smoothing < 0.5:
            raise ValueError(f"label_smoothing must be in [0, 0.5), got {self.label_smoothing!r}")


class Judge(Ranker):
    """A reward model and its optimizer.

    Args:
        model: What learns.
        options: See :class:`Options`.
        updates: How many updates there will be, over which the learning rate falls.

    Raises:
        ValueError: Weights that learn have 16 bits, in which most updates round to nothing; or nothing learns.
    """

    options: Options

    def __init__(self, model: RewardModel, options: Options, updates: int | None = None) -> None:
        super().__init__(model.policy, options, updates=updates)
        self.model = model

    def rows(self, pairs: Sequence[Pair]) -> Decisions:
        """Return pairs as rows with their final positions."""
        return self.labelled(self.model.collate(flat(pairs)), (1, 0))

    def _whole(self, minibatch: Decisions) -> Tensor:
        return torch.tensor(len(minibatch) // self.together)

    def _loss(self, part: Decisions, whole: Tensor) -> tuple[Tensor, dict[str, float]]:
        count = int(whole)
        score = self.model(part)
        preferred, rejected = score[0::2], score[1::2]
        gap = preferred - rejected
        each = bradley_terry(gap, margin=self.options.margin, label_smoothing=self.options.label_smoothing)
        loss = each.sum() / count
        told = {
            "loss": loss,
            "accuracy": (gap > 0).float().sum() / count,
            "margin": gap.sum() / count,
            "score_preferred": preferred.sum() / count,
            "score_rejected": rejected.sum() / count,
        }
        return loss, dict(zip(told, torch.stack([value.detach() for value in told.values()]).tolist(), strict=True))


class BradleyTerry(PairLearning):
    """A reward model: a policy's critic, read where an episode is over, ranks pairs (Bradley and Terry, 1952).

    The policy's own weights learn with its critic, unless that leaves them alone; what comes of it plays no longer. See
    :class:`~tetrathlon.agents.reward_model.RewardModel`, which is :attr:`model`.
    """

    Options = Options
    model: RewardModel

    def _collector(self, env_id: str, kwargs: Mapping[str, Any] | None) -> Collector:
        self.model = RewardModel(self.policy)
        return super()._collector(env_id, kwargs)

    def _learner(self) -> Judge:
        return Judge(self.model, self.options)
