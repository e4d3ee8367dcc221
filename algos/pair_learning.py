"""Learning from pairs: where they come from, and what a run of it keeps."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tetrathlon.agents.decisions import Decisions
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.collect import Collector, Play, Scorer
from tetrathlon.algos.dataset import Dataset
from tetrathlon.algos.fitter import Fit, Fitter
from tetrathlon.algos.learner import learnable
from tetrathlon.algos.pairs import Pair, Paired, PairsLike, flat, paired, read_pairs, unflat
from tetrathlon.algos.trainer import Trainer
from tetrathlon.envs.episode import Episode

_DATASET = "dataset"
_MOST_BARREN = 5


@dataclass(frozen=True, kw_only=True)
class PairOptions(Fit, Play):
    """What is played to make pairs, and how they are learnt.

    Raises:
        ValueError: A value is out of range, or two do not go together.
    """

    groups: int = 32
    """Starts that are played, each ``group_size`` times."""
    group_size: int = 4
    """Episodes a start, of which pairs are made."""
    most_pairs: int = 1
    """Most pairs a start; which, is drawn. A start whose episodes were all paid alike makes none."""
    steps: int = 20
    """Optimizer steps an update."""
    batch_size: int = 32
    """Pairs that are learnt from in a step, dealt anew in each pass."""

    def __post_init__(self) -> None:
        Play.__post_init__(self)
        Fit.__post_init__(self)
        if self.horizon:
            raise ValueError(f"pairs are whole episodes of one start; horizon must be 0, got {self.horizon!r}")
        if self.group_size < 2:
            raise ValueError(
                f"a pair is two episodes of one start; group_size must be at least 2, got {self.group_size}"
            )
        if self.most_pairs < 1:
            raise ValueError(f"most_pairs must be at least 1, got {self.most_pairs!r}")


class Ranker(Fitter):
    """Learns from pairs, whose rows stay together."""

    together = 2

    @abstractmethod
    def rows(self, pairs: Sequence[Pair]) -> Decisions:
        """Return P pairs as ``together`` rows each, with ``preference`` and ``pair``."""

    def labelled(self, batch: Decisions, preferences: Sequence[int]) -> Decisions:
        """Return a batch that says which rows belong together, and what they are.

        Args:
            batch: Rows of pairs, one pair after another.
            preferences: Of the rows of a pair: 1 preferred, 0 rejected, -1 mismatched.
        """
        assert len(preferences) == self.together
        count = len(batch) // self.together
        batch.preference = torch.tensor(preferences).repeat(count)
        batch.pair = torch.arange(count).repeat_interleave(self.together)
        return batch


class PairLearning(Trainer[Ranker]):
    """Learns from pairs of episodes.

    They are given; or else an update plays ``groups`` starts and makes them by what was paid, the first update for all
    or, with ``online``, each for itself.

    Args:
        policy: What learns.
        env_id: Where; its train split.
        pairs: Pairs; or episodes, or a folder of them as ``tetrathlon eval --samples K --out DIR`` writes it, of which
            pairs are made.
        scorers: Rewards that need a model, by name, which pairs are made by too.
        **others: Arguments of :class:`~tetrathlon.algos.trainer.Trainer`, and fields of :class:`PairOptions`.

    Raises:
        TypeError: There is no such option, or the policy lacks what is learnt.
        ValueError: An option is out of range, or there is no pair in what is given, or weights that learn have 16 bits,
            or nothing learns.
        OSError: Pairs cannot be read.
        RunError: The folder holds another run.
    """

    Options: type[Any] = PairOptions

    def __init__(
        self,
        policy: TrainablePolicy,
        env_id: str,
        *,
        pairs: PairsLike | None = None,
        scorers: Mapping[str, Scorer] | None = None,
        **others: Any,
    ) -> None:
        self._pairs, self._scorers = pairs, scorers
        self._given: Dataset | None = None
        super().__init__(policy, env_id, **others)
        folder = None if self.run is None else self.run.folder / _DATASET
        self.dataset = Dataset("action", folder) if self._given is None else self._given
        self._batch: Decisions | None = None
        self._shown: list[Episode] | None = None if self._given is None else self._given.episodes
        self._barren = 0  # updates in a row that found no pair

    @property
    def is_online(self) -> bool:
        """Whether each update learns from pairs of its own."""
        return getattr(self.options, "online", False)

    def _collector(self, env_id: str, kwargs: Mapping[str, Any] | None) -> Collector:
        learnable(self.policy)
        options: Play = self.options
        if self._pairs is not None:
            if self.is_online:
                raise ValueError("online plays for each update; pairs that are given leave nothing to play: drop one")
            seed = (self.options.seed, 0)
            found = read_pairs(self._pairs, self.policy, env_id, most=self.options.most_pairs, seed=seed)
            told = {episode.kwargs.get("split", options.split) for episode in flat(found.pairs)}
            if told != {options.split}:
                raise ValueError(
                    f"pairs are of split {', '.join(sorted(map(repr, told)))}, and what learns is of split "
                    f"{options.split!r}: record them there, or say split"
                )
            self._given = Dataset("action")
            self._given.add(flat(found.pairs))
            # Nothing is played: one environment says what is wrong with its arguments.
            options = Play(groups=1, group_size=1, split=options.split, seed=options.seed)
        return Collector(self.policy, env_id, options, kwargs=kwargs, scorers=self._scorers)

    def _more_config(self) -> dict[str, Any]:
        return {
            "pairs": None if self._given is None else self._given.digest,
            "scorers": sorted(self._scorers or {}),
        }

    def _update(self, learner: Ranker) -> tuple[dict[str, float], list[Episode] | None]:
        start = time.perf_counter()
        metrics: dict[str, float] = {}
        if self.is_online or not len(self.dataset):
            found, metrics = self._play(learner)
            if self.is_online:
                self._batch = learner.rows(found.pairs) if found.pairs else None
            else:
                self.dataset.add(flat(found.pairs))
        played = time.perf_counter()
        if self._batch is None and len(self.dataset):
            self._batch = learner.rows(unflat(self.dataset.episodes))
        prepared = time.perf_counter()
        learnt = learner.update(self._batch)
        return {
            **metrics,
            **learnt,
            "pairs": 0.0 if self._batch is None else len(self._batch) / learner.together,
            "seconds_play": played - start,
            "seconds_prepare": prepared - played,
            "seconds_optimize": time.perf_counter() - prepared,
        }, self._shown

    def _play(self, learner: Ranker) -> tuple[Paired, dict[str, float]]:
        """Play, and make pairs; return them, and what to watch."""
        collected = self.collector.collect(learner.round)
        self._shown = collected.played
        episodes = [episode for row in collected.rows for episode in row]
        found = paired(episodes, most=self.options.most_pairs, seed=(self.options.seed, learner.round))
        self._barren = 0 if found.pairs else self._barren + 1
        if self._barren >= _MOST_BARREN:
            raise ValueError(
                f"no pair was found in {self._barren} updates in a row; in the last, {found.tied} of {found.groups} "
                f"starts were paid alike in all episodes, and {found.unscorable} episodes could not be scored"
            )
        return found, {
            **collected.metrics,
            "unscorable": float(found.unscorable),
            "tied_groups": found.tied / found.groups if found.groups else 0.0,
        }

    def _state(self, learner: Ranker) -> dict[str, Any]:
        if self._given is None:
            self.dataset.save(learner.round)
        return super()._state(learner) | {"dataset": self.dataset.state_dict()}

    def _restore(self, learner: Ranker, state: dict[str, Any]) -> None:
        super()._restore(learner, state)
        self.dataset.load_state_dict(state["dataset"])
        self._batch = None
