"""Imitation of what turned out well: of a log, or of the best of several tries, again and again."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tetrathlon.agents.decisions import Decisions
from tetrathlon.algos import cloner
from tetrathlon.algos.cloner import Cloner, lessons
from tetrathlon.algos.collect import Collector, Play
from tetrathlon.algos.learner import learnable
from tetrathlon.algos.offline.trainer import FromLog
from tetrathlon.algos.trainer import Trainer
from tetrathlon.envs.episode import Episode, scorable


def top_share(episodes: Sequence[Episode], share: float, least: float | None = None) -> list[Episode]:
    """Return the episodes that were paid most (the 10 % BC of Chen et al., 2021, Decision Transformer, section 5.1).

    Args:
        episodes: Those whose grader failed are left out.
        share: Which share of them; all that were paid as much as the last of these stay, too.
        least: What they must have been paid at least; None: anything.
    """
    known = scorable(episodes)
    if not known:
        return []
    paid = np.array([episode.total_reward for episode in known])
    count = max(int(np.ceil(share * len(known))), 1)
    bar = np.sort(paid)[-count]
    return [episode for episode, pay in zip(known, paid, strict=True) if pay >= bar and (least is None or pay >= least)]


def best_of_groups(episodes: Sequence[Episode]) -> list[Episode]:
    """Return the best episode of each group (RAFT: Dong et al., 2023, algorithm 1), the first of equals.

    Where all of a group were paid the same and none succeeded, none was better than another: the group gives nothing.
    """
    groups: dict[int | None, list[Episode]] = defaultdict(list)
    for episode in scorable(episodes):
        groups[episode.group].append(episode)
    best = []
    for group in groups.values():
        most = max(group, key=lambda episode: episode.total_reward)
        if most.is_success or most.total_reward > min(episode.total_reward for episode in group):
            best.append(most)
    return best


class FilteredBC(FromLog[Cloner]):
    """Behaviour cloning of the best episodes of a log: the floor that offline algorithms have to beat."""

    @dataclass(frozen=True, kw_only=True)
    class Options(cloner.Options):
        """What is kept, and how it is learnt."""

        episodes: int = 256
        """Episodes that the policy plays before the first update, where no log is given."""
        share: float = 0.1
        """Which share of the log is imitated: what was paid most, with all that was paid as much."""
        least: float | None = None
        """What an episode must have been paid at least; None: anything."""

        def __post_init__(self) -> None:
            super().__post_init__()
            if not 0 < self.share <= 1:
                raise ValueError(f"share must be above 0 and at most 1, got {self.share!r}")

    def __init__(self, *args: Any, **others: Any) -> None:
        super().__init__(*args, **others)
        learnable(self.policy)
        self._rows: Decisions | None = None
        self._kept = 0

    def _learner(self) -> Cloner:
        return Cloner(self.policy, self.options)

    def _fit(self, learner: Cloner) -> dict[str, float]:
        if self._rows is None:
            options = self.options
            kept = top_share(self.dataset.episodes, options.share, options.least)
            if not kept:
                raise ValueError(
                    f"none of the {len(self.dataset.episodes)} episodes of the log was paid least={options.least!r}"
                )
            self._rows, self._kept = lessons(self.policy, kept, "action"), len(kept)
        return learner.update(self._rows) | {"kept": float(self._kept)}


class RAFT(Trainer[Cloner]):
    """Reward-ranked fine-tuning (Dong et al., 2023): the policy imitates the best of its own tries, and tries again.

    Rejection sampling and best-of-n are other names of it.
    """

    @dataclass(frozen=True, kw_only=True)
    class Options(cloner.Options):
        """What is tried, and how it is learnt."""

        episodes: int = 256
        """Episodes that are played an update."""
        group_size: int = 8
        """Tries at each start, of which the best is imitated."""
        steps: int = 8
        """Optimizer steps an update."""

        def __post_init__(self) -> None:
            super().__post_init__()
            if self.group_size < 2 or self.episodes % self.group_size:
                raise ValueError(
                    f"group_size must be at least 2 and divide episodes={self.episodes!r}, got {self.group_size!r}"
                )

    def _collector(self, env_id: str, kwargs: Mapping[str, Any] | None) -> Collector:
        learnable(self.policy)
        options = self.options
        size: int = options.group_size
        play = Play(
            groups=options.episodes // size,
            group_size=size,
            slots=options.slots,
            split=options.split,
            seed=options.seed,
        )
        return Collector(self.policy, env_id, play, kwargs=kwargs)

    def _learner(self) -> Cloner:
        return Cloner(self.policy, self.options)

    def _update(self, learner: Cloner) -> tuple[dict[str, float], list[Episode]]:
        start = time.perf_counter()
        collected = self.collector.collect(learner.round)
        best = best_of_groups([episode for row in collected.rows for episode in row])
        played = time.perf_counter()
        batch = lessons(self.policy, best, "own") if best else None
        prepared = time.perf_counter()
        learnt = learner.update(batch)
        return {
            **collected.metrics,
            **learnt,
            "kept": float(len(best)),
            "seconds_play": played - start,
            "seconds_prepare": prepared - played,
            "seconds_optimize": time.perf_counter() - prepared,
        }, collected.played
