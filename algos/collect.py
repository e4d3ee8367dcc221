"""Where fresh episodes come from: groups from the same starts, or stretches of play."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, Literal

import numpy as np

from tetrathlon.agents.policy import Policy
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.algos.starts import Starts
from tetrathlon.algos.teacher import Teacher
from tetrathlon.envs.episode import Episode, scorable
from tetrathlon.envs.pool import make_slots
from tetrathlon.envs.registry import known_id, split_argument
from tetrathlon.envs.slots import SlotsLike

Scorer = Callable[[Sequence[Episode]], Sequence[float | None]]
"""Scores N finished episodes at once: a reward model, a judge. None or NaN: it cannot be told, and the episode teaches
nothing."""
_MOST_SLOTS = 256


@dataclass(frozen=True, kw_only=True)
class Play:
    """What is played for an update.

    Raises:
        ValueError: A number is out of range, or two do not go together.
    """

    groups: int = 8
    """Starts an update, each played ``group_size`` times; with ``horizon`` the slots that play."""
    group_size: int = 8
    """Episodes a start."""
    horizon: int = 0
    """Environment steps a slot and update; 0: whole episodes. An episode goes on in the next update, but for a
    checkpoint, which begins all of them anew."""
    slots: int | None = None
    """How many episodes are under way at once; None: all of an update, up to 256."""
    vector: Literal["auto", "no"] = "auto"
    """Whether an environment is played in its own batch, where it has one; without ``horizon`` that must start a slot
    from a seed."""
    resample: int = 0
    """How often an update may play as many starts again, to take the place of groups without a signal (dynamic
    sampling: DAPO, section 3.2)."""
    band: tuple[float, float] = (0.0, 1.0)
    """With ``resample``: a group whose share of successes lies outside is replaced too."""
    max_staleness: int = 0
    """With ``resample``: groups that an update had no room for wait for a later one, up to this many updates; a
    checkpoint lets go of them."""
    instances: int = 0
    """How many different starts are played, again and again in new orders; 0: every start is a new one."""
    solved_weight: float = 1.0
    """With ``instances``: chance that a start whose whole group succeeded the last time is played when its turn comes;
    it teaches nothing more."""
    variants: tuple[str, ...] = ()
    """Reset option ``variant``, where an environment has one: each start is played in each of them, a group each."""
    split: str = "train"
    """Which instances, where the environment has splits."""
    seed: int = 0
    """Seed of the starts."""

    def __post_init__(self) -> None:
        lows = {"groups": 1, "group_size": 1, "horizon": 0, "resample": 0, "max_staleness": 0, "instances": 0}
        for name, low in lows.items():
            if getattr(self, name) < low:
                raise ValueError(f"{name} must be at least {low}, got {getattr(self, name)!r}")
        if self.horizon and (self.group_size > 1 or self.resample):
            raise ValueError(
                f"with horizon={self.horizon} there are no groups: group_size must be 1 and resample 0, got "
                f"{self.group_size} and {self.resample}"
            )
        if self.max_staleness and not self.resample:
            raise ValueError(f"max_staleness={self.max_staleness} is of groups left over by resample, which is 0")
        if self.variants and (self.resample or self.horizon or self.groups % len(self.variants)):
            raise ValueError(
                f"variants={self.variants!r} are played side by side; groups must be a multiple of "
                f"{len(self.variants)}, and horizon and resample 0, got {self.groups}, {self.horizon} and "
                f"{self.resample}"
            )
        if not 0 <= self.solved_weight <= 1:
            raise ValueError(f"solved_weight must be from 0 to 1, got {self.solved_weight!r}")
        if self.solved_weight < 1 and not self.instances:
            raise ValueError(f"solved_weight={self.solved_weight!r} is of instances that come again; instances is 0")
        least, most = self.band
        if not 0 <= least < most <= 1:
            raise ValueError(f"band must be two shares, low below high, got {self.band!r}")


@dataclass(slots=True)
class Collected:
    """What was played for one update."""

    rows: list[list[Episode]]
    """B rows to learn from."""
    versions: list[int]
    """How many updates the policy had seen when it played each row, [B]."""
    played: list[Episode] = field(default_factory=list)
    """All episodes that ended, what was replaced included."""
    metrics: dict[str, float] = field(default_factory=dict)
    """What to watch."""


class Collector:
    """Plays a policy in an environment.

    Args:
        policy: Who acts.
        env_id: Where.
        play: See :class:`Play`.
        kwargs: Constructor arguments of the environment.
        scorers: Rewards that need a model, by name: each is a term of its own, paid at an episode's last step.
        teacher: Who labels what the policy meets, and may act in its place.
    """

    def __init__(
        self,
        policy: Policy,
        env_id: str,
        play: Play,
        *,
        kwargs: Mapping[str, Any] | None = None,
        scorers: Mapping[str, Scorer] | None = None,
        teacher: Teacher | None = None,
    ) -> None:
        self.policy, self.play, self.teacher = policy, play, teacher
        self.env_id = known_id(env_id)
        self.kwargs = {**split_argument(self.env_id, play.split), **(kwargs or {})}
        self.scorers = dict(scorers or {})
        self.starts = Starts(play.seed, play.instances, play.solved_weight)
        self._slots = self._make_slots()
        self._rollout: Rollout | None = None
        self._open: dict[int, list[Episode]] = {}
        self._spare: list[tuple[int, list[Episode]]] = []

    def _make_slots(self) -> SlotsLike:
        slots = self._make_own_slots()
        return slots if self.teacher is None else self.teacher.beside(slots)

    def _make_own_slots(self) -> SlotsLike:
        play = self.play
        n = play.groups if play.horizon else min(play.slots or _MOST_SLOTS, play.groups * play.group_size)
        seed = self.starts.next if play.horizon else None
        return make_slots(self.env_id, n, self.kwargs, vector=play.vector == "auto", seed=seed)

    def collect(self, version: int = 0) -> Collected:
        """Play what an update learns from.

        Args:
            version: How many updates the policy has seen.
        """
        collected = self._stretch(version) if self.play.horizon else self._groups(version)
        fair = scorable(collected.played)
        told = [episode for episode in fair if episode.last_info.get("is_success") is not None]
        collected.metrics["episodes"] = float(len(collected.played))
        if fair:
            collected.metrics |= {
                "episode_reward": _mean([episode.total_reward for episode in fair]),
                "episode_steps": _mean([len(episode) for episode in fair]),
            }
        if told:
            collected.metrics["success"] = _mean([episode.is_success for episode in told])
        for name in sorted({name for episode in fair for step in episode.steps for name in _terms(step.info)}):
            paid = [sum(_terms(step.info).get(name, 0.0) for step in episode.steps) for episode in fair]
            collected.metrics[f"reward_terms/{name}"] = _mean(paid)
        return collected

    def _new_rollout(self, groups: int | None) -> Rollout:
        """Return a rollout from the starts of ``groups`` groups; None: without an end."""
        force = None if self.teacher is None else self.teacher.force
        starts = self._queue(groups)
        return Rollout(self.policy, self._slots, starts, force=force, env=self.env_id, kwargs=dict(self.kwargs))

    def _stretch(self, version: int) -> Collected:
        if self._rollout is None:
            self._rollout = self._new_rollout(None)
        rows = self._rollout.stretch(self.play.horizon)
        ended = [whole for slot, row in enumerate(rows) for whole in self._ended(slot, row)]
        self._score(ended)
        return Collected(rows, [version] * len(rows), ended, {"crashes": float(len(self._rollout.crashes))})

    def _ended(self, slot: int, row: Sequence[Episode]) -> Iterator[Episode]:
        """Give the episodes that ended in a stretch, whole: the first may have begun in an earlier one."""
        for part in row:
            parts = self._open.pop(slot, [])
            if parts and parts[-1].info is not part.info:  # that one was lost with its environment
                parts = []
            parts.append(part)
            if not part.ended:
                self._open[slot] = parts
                continue
            steps = [step for each in parts for step in each.steps]
            yield replace(parts[0], steps=steps, final_observation=part.final_observation)

    def _groups(self, version: int) -> Collected:
        play = self.play
        kept = [(born, group) for born, group in self._spare if version - born <= play.max_staleness]
        rest: list[tuple[int, list[Episode]]] = []
        played: list[Episode] = []
        crashes = useful = dealt = 0
        for _ in range(1 + play.resample):
            if len(kept) >= play.groups:
                break
            rollout = self._new_rollout(play.groups)
            fresh = rollout.episodes()
            crashes += len(rollout.crashes)
            self._score(fresh)
            played += fresh
            for group in _by_group(fresh):
                is_useful = self._is_useful(group)
                (kept if is_useful or not play.resample else rest).append((version, group))
                useful, dealt = useful + is_useful, dealt + 1
                self._note(group)
        self._spare = kept[play.groups :]
        chosen = kept[: play.groups] or rest[: play.groups]
        metrics = {"crashes": float(crashes)}
        if dealt and play.group_size > 1:
            metrics["useful_groups"] = useful / dealt
        if play.instances:
            metrics["solved_instances"] = self.starts.solved / play.instances
        return Collected(
            [[episode] for _, group in chosen for episode in group],
            [born for born, group in chosen for _ in group],
            played,
            metrics,
        )

    def _is_useful(self, group: Sequence[Episode]) -> bool:
        fair = scorable(group)
        if len({reward for episode in fair if isfinite(reward := episode.total_reward)}) < 2:
            return False
        low, high = self.play.band
        return low <= _mean([episode.is_success for episode in fair]) <= high

    def _note(self, group: Sequence[Episode]) -> None:
        fair = scorable(group)
        if fair and (seed := fair[0].seed) is not None:
            self.starts.note(seed, all(episode.is_success for episode in fair))

    def _queue(self, groups: int | None) -> Iterator[Start]:
        """Give the starts of ``groups`` groups; None: without an end."""
        ways: list[dict[str, Any] | None] = [{"variant": variant} for variant in self.play.variants]
        ways = ways or [None]
        given = 0
        while groups is None or given < groups:
            seed = self.starts.next() if self._slots.seeded else None
            for way, options in enumerate(ways):
                group = None if self.play.horizon else self.starts.cursor * len(ways) + way
                given += 1
                for _ in range(self.play.group_size):
                    yield Start(seed=seed, options=options, group=group)

    def _score(self, episodes: Sequence[Episode]) -> None:
        """Pay what the scorers say at the last step, as a term of its own."""
        for name, scorer in self.scorers.items():
            scores = list(scorer(episodes))
            if len(scores) != len(episodes):
                raise ValueError(f"scorer {name!r} gave {len(scores)} scores for {len(episodes)} episodes")
            for episode, score in zip(episodes, scores, strict=True):
                last = episode.steps[-1]
                if score is None or score != score:
                    last.info = {**last.info, "grader_error": f"scorer {name!r} gave no score"}
                    continue
                last.reward += float(score)
                last.info = {**last.info, "reward_terms": {**_terms(last.info), name: float(score)}}

    def restart(self) -> None:
        """Begin all episodes of a stretch anew, and let go of spare groups, as a run that goes on does."""
        self._spare, self._open = [], {}
        if self.teacher is not None:
            self.teacher.restart()
        if self.play.horizon:
            self._slots.close()
            self._slots, self._rollout = self._make_slots(), None

    def close(self) -> None:
        """Close the environments."""
        self._slots.close()


def _by_group(episodes: Sequence[Episode]) -> list[list[Episode]]:
    groups: dict[int | None, list[Episode]] = {}
    for episode in episodes:
        groups.setdefault(episode.group, []).append(episode)
    return list(groups.values())


def _terms(info: Mapping[str, Any]) -> dict[str, float]:
    terms = info.get("reward_terms")  # environments of others may use the name for something else
    return {name: float(paid) for name, paid in terms.items()} if isinstance(terms, Mapping) else {}


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
