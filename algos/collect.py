"""Where fresh episodes come from: groups from the same starts, or stretches of play."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tetrathlon.agents.policy import Policy
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.envs.episode import Episode, scorable
from tetrathlon.envs.registry import known_id, make, make_batched, split_argument
from tetrathlon.envs.slots import Slots, SlotsLike
from tetrathlon.envs.vector_slots import VectorSlots

Scorer = Callable[[Sequence[Episode]], Sequence[float]]
"""Scores N finished episodes at once: a reward model, a judge."""
_MOST_SLOTS = 256
_SEED_STREAM = 0x51A27


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
    """Whether a batched environment is used, where there is one and ``horizon`` is given."""
    resample: int = 0
    """How often an update may play as many starts again, to take the place of groups without a signal (dynamic
    sampling: DAPO, section 3.2)."""
    band: tuple[float, float] = (0.0, 1.0)
    """With ``resample``: a group whose share of successes lies outside is replaced too."""
    split: str = "train"
    """Which instances, where the environment has splits."""
    seed: int = 0
    """Seed of the starts."""

    def __post_init__(self) -> None:
        for name, low in (("groups", 1), ("group_size", 1), ("horizon", 0), ("resample", 0)):
            if getattr(self, name) < low:
                raise ValueError(f"{name} must be at least {low}, got {getattr(self, name)!r}")
        if self.horizon and (self.group_size > 1 or self.resample):
            raise ValueError(
                f"with horizon={self.horizon} there are no groups: group_size must be 1 and resample 0, got "
                f"{self.group_size} and {self.resample}"
            )
        least, most = self.band
        if not 0 <= least < most <= 1:
            raise ValueError(f"band must be two shares, low below high, got {self.band!r}")


@dataclass(slots=True)
class Collected:
    """What was played for one update."""

    rows: list[list[Episode]]
    """To learn from."""
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
    """

    def __init__(
        self,
        policy: Policy,
        env_id: str,
        play: Play,
        *,
        kwargs: Mapping[str, Any] | None = None,
        scorers: Mapping[str, Scorer] | None = None,
    ) -> None:
        self.policy, self.play = policy, play
        self.env_id = known_id(env_id)
        self.kwargs = {**split_argument(self.env_id, play.split), **(kwargs or {})}
        self.scorers = dict(scorers or {})
        self.cursor = 0
        self._slots = self._make_slots()
        self._rollout: Rollout | None = None

    def _make_slots(self) -> SlotsLike:
        play = self.play
        if play.horizon:
            venv = make_batched(self.env_id, play.groups, **self.kwargs) if play.vector == "auto" else None
            if venv is not None:
                return VectorSlots(venv, seed=self._next_seed())
            return Slots(lambda: make(self.env_id, **self.kwargs), play.groups)
        most = play.groups * play.group_size
        return Slots(lambda: make(self.env_id, **self.kwargs), min(play.slots or _MOST_SLOTS, most))

    def collect(self) -> Collected:
        """Play what an update learns from."""
        collected = self._stretch() if self.play.horizon else self._groups()
        fair = scorable(collected.played)
        told = [episode for episode in fair if episode.last_info.get("is_success") is not None]
        collected.metrics |= {
            "episodes": float(len(collected.played)),
            "episode_reward": _mean([episode.total_reward for episode in fair]),
            "episode_steps": _mean([len(episode) for episode in fair]),
        }
        if told:
            collected.metrics["success"] = _mean([episode.is_success for episode in told])
        for name in sorted({name for episode in fair for step in episode.steps for name in _terms(step.info)}):
            paid = [sum(_terms(step.info).get(name, 0.0) for step in episode.steps) for episode in fair]
            collected.metrics[f"reward_terms/{name}"] = _mean(paid)
        return collected

    def _stretch(self) -> Collected:
        if self._rollout is None:
            self._rollout = Rollout(
                self.policy, self._slots, self._starts(None), env=self.env_id, kwargs=dict(self.kwargs)
            )
        rows = self._rollout.stretch(self.play.horizon)
        ended = [episode for row in rows for episode in row if episode.ended]
        self._score(ended)
        return Collected(rows, ended, {"crashes": float(len(self._rollout.crashes))})

    def _groups(self) -> Collected:
        kept: list[list[Episode]] = []
        rest: list[list[Episode]] = []
        played: list[Episode] = []
        crashes = 0
        for _ in range(1 + self.play.resample):
            rollout = Rollout(
                self.policy, self._slots, self._starts(self.play.groups), env=self.env_id, kwargs=dict(self.kwargs)
            )
            fresh = rollout.episodes()
            crashes += len(rollout.crashes)
            self._score(fresh)
            played += fresh
            for group in _by_group(fresh):
                (kept if not self.play.resample or self._is_useful(group) else rest).append(group)
            if len(kept) >= self.play.groups:
                break
        chosen = kept[: self.play.groups] or rest[: self.play.groups]
        total = len(kept) + len(rest)
        metrics = {"crashes": float(crashes), "useful_groups": len(kept) / total if self.play.resample else 1.0}
        return Collected([[episode] for group in chosen for episode in group], played, metrics)

    def _is_useful(self, group: Sequence[Episode]) -> bool:
        fair = scorable(group)
        if len({episode.total_reward for episode in fair}) < 2:
            return False
        low, high = self.play.band
        return low <= _mean([episode.is_success for episode in fair]) <= high

    def _starts(self, groups: int | None) -> Iterator[Start]:
        """Give the next starts; the n-th has the same seed in every run of this seed."""
        given = 0
        while groups is None or given < groups:
            number, given = self.cursor, given + 1
            seed = None if self._slots.lockstep else self._next_seed()  # the vector environment was seeded as a whole
            for _ in range(self.play.group_size):
                yield Start(seed=seed, group=None if self.play.horizon else number)

    def _next_seed(self) -> int:
        entropy = [_SEED_STREAM, self.play.seed, self.cursor]
        self.cursor += 1
        return int(np.random.SeedSequence(entropy).generate_state(1)[0])

    def _score(self, episodes: Sequence[Episode]) -> None:
        """Pay what the scorers say at the last step, as a term of its own."""
        for name, scorer in self.scorers.items():
            scores = list(scorer(episodes))
            if len(scores) != len(episodes):
                raise ValueError(f"scorer {name!r} gave {len(scores)} scores for {len(episodes)} episodes")
            for episode, score in zip(episodes, scores, strict=True):
                last = episode.steps[-1]
                last.reward += float(score)
                last.info = {**last.info, "reward_terms": {**_terms(last.info), name: float(score)}}

    def restart(self) -> None:
        """Begin all episodes of a stretch anew, as a run that goes on from a checkpoint does."""
        if self._rollout is not None:
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
