"""What an evaluation found, counted from its episodes."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from tetrathlon.agents.statistics import bootstrap_mean, cvar, majority_at_k, pass_all_k, pass_at_k, rate_interval
from tetrathlon.envs.codec import encode, fingerprint
from tetrathlon.envs.episode import Episode, scorable
from tetrathlon.envs.grading.writing import key

MOST_MESSAGES = 3
"""Messages of a kind that a result holds."""
_LEAST_CLUSTERS = 10
"""Instances from which on a bootstrap over them is trusted; its intervals of fewer are far too narrow."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What an evaluation found. A number is None where there was nothing to take it from."""

    env: str
    """Full id of the environment."""
    kwargs: dict[str, Any]
    """Its constructor arguments, without ``split``."""
    domain: str
    """``text``, ``tools``, ``vision``, ``robots`` or ``other``."""
    split: str | None
    """Which instances were asked; None for an environment without splits."""
    policy: str
    """Name of the policy."""
    seed: int
    """Seed of the instances."""
    greedy: bool
    """Whether the most likely actions were asked for."""
    episodes: int
    """Instances: starts with a seed of their own. Each is played ``samples`` times."""
    samples: int
    """Episodes an instance."""
    distinct: int
    """Different ``task_id`` among what was played; 0 where the environment gives none."""
    success: dict[str, Any]
    """``{mean, low, high, n, interval}`` over the n scorable episodes. ``interval`` is ``wilson``, or ``wilson over
    instances`` where some of them were asked more than once. With more than one sample it is ``cluster bootstrap``
    over instances, unless there are fewer than 10 or all are alike, of which a bootstrap sees too little spread."""
    reward: dict[str, float | None]
    """``{mean, low, high}`` of the undiscounted sum over scorable episodes, by bootstrap over instances."""
    reward_terms: dict[str, float | None]
    """Mean over scorable episodes of what each term paid in sum."""
    scores: dict[str, float | None]
    """Mean over scorable episodes of each raw score at the last step that gave it."""
    costs: dict[str, dict[str, float]]
    """Of each of ``info["cost_terms"]``, and of all of them as ``total``: ``{mean, share, cvar}`` over scorable
    episodes: the mean of an episode's sum, the share of episodes with any, the mean of the highest tenth."""
    pass_at: dict[int, float | None]
    """k -> the unbiased chance that one of k samples succeeds, over instances with k scorable samples or more."""
    pass_all: dict[int, float | None]
    """k -> pass^k, the unbiased chance that all of k samples succeed, over the same instances."""
    majority_at: dict[int, float | None] | None
    """k -> the share of votes among k samples that come out right; None where the environment has no final
    answers."""
    steps: float | None
    """Mean environment steps an episode."""
    tokens: dict[str, Any] | None
    """``{mean, total}`` of sampled tokens an episode, as the policy or its server counts; None where nobody does."""
    lengths: dict[str, Any]
    """Mean length of a success and of a failure: ``{unit, success, failure}``; the unit is ``tokens``,
    ``characters`` of the actions or ``steps``."""
    stop_reasons: dict[str, int]
    """How often each was given; ``terminated`` or ``truncated`` where the environment gave none."""
    grader_errors: int
    """Episodes whose grader failed: they count neither as success nor as failure, nor in any mean of rewards."""
    grader_messages: list[str]
    """The first of their messages."""
    crashes: dict[str, Any]
    """``{count, messages}`` of episodes that were lost because the environment raised; the first messages."""
    seconds: float
    """Wall-clock time."""
    cpu_seconds: float
    """Processor time of this process."""
    episodes_played: tuple[Episode, ...] = field(default=(), repr=False, compare=False)
    """The episodes, in the order of their starts; not part of the JSON."""

    def to_json(self) -> dict[str, Any]:
        """Return everything but the episodes, as JSON without NaN or infinity."""
        data = {column.name: getattr(self, column.name) for column in fields(self) if column.name != "episodes_played"}
        return _strict({**data, "kwargs": encode(self.kwargs)})


def counts(played: Sequence[Episode], samples: int, answer_in: Callable[[str], str | None] | None) -> dict[str, Any]:
    """Return the fields of :class:`Result` that come from the episodes alone.

    Args:
        played: In the order of their starts.
        samples: Episodes an instance.
        answer_in: Returns the final answer of an action; None where the environment has none.
    """
    ks = sorted({2**i for i in range(samples.bit_length())} | {samples})
    fair = scorable(played)
    messages = [episode.grader_error for episode in played if episode.grader_error is not None]
    return {
        "distinct": len({instance_of(episode) for episode in played} - {None}),
        "success": _success(fair, samples),
        "reward": _mean_of([[episode.total_reward for episode in group] for group in _clusters(fair)]),
        "reward_terms": _term_means(fair),
        "scores": _score_means(fair),
        "costs": _costs(fair),
        "pass_at": {k: _over_samples(fair, k, pass_at_k) for k in ks},
        "pass_all": {k: _over_samples(fair, k, pass_all_k) for k in ks},
        "majority_at": {k: _majority_at(fair, k, answer_in) for k in ks} if answer_in is not None else None,
        "steps": _mean(len(episode) for episode in played),
        "tokens": _tokens(played),
        "lengths": _lengths(fair),
        "stop_reasons": dict(Counter(_stop_reason(episode) for episode in played).most_common()),
        "grader_errors": len(messages),
        "grader_messages": messages[:MOST_MESSAGES],
    }


def instance_of(episode: Episode) -> str | None:
    """Return which instance an episode asked, by its ``task_id``; None where the environment gives none."""
    task = episode.info.get("task_id")
    if task is None or isinstance(task, str):
        return task
    try:
        return fingerprint(task)  # a list or a dict cannot be counted as it is
    except TypeError:  # not even JSON
        return repr(task)


def _clusters(episodes: Sequence[Episode]) -> list[list[Episode]]:
    """Put episodes of the same instance together, whichever starts led to it."""
    clusters: dict[Hashable, list[Episode]] = defaultdict(list)
    for episode in episodes:
        instance = instance_of(episode)
        clusters[("start", episode.group) if instance is None else instance].append(episode)
    return list(clusters.values())


def _groups(episodes: Sequence[Episode]) -> list[list[Episode]]:
    groups: dict[int | None, list[Episode]] = defaultdict(list)
    for episode in episodes:
        groups[episode.group].append(episode)
    return list(groups.values())


def _says_success(fair: Sequence[Episode]) -> bool:
    # An environment that never says is_success has no success rate; that is not a rate of 0.
    return any(episode.last_info.get("is_success") is not None for episode in fair)


def _success(fair: Sequence[Episode], samples: int) -> dict[str, Any]:
    if not _says_success(fair):
        return {"mean": None, "low": None, "high": None, "n": 0, "interval": None}
    n, successes = len(fair), sum(episode.is_success for episode in fair)
    clusters = [[float(episode.is_success) for episode in cluster] for cluster in _clusters(fair)]
    differ = len({sum(cluster) / len(cluster) for cluster in clusters}) > 1
    if samples > 1 and differ and len(clusters) >= _LEAST_CLUSTERS:
        _, low, high = bootstrap_mean(clusters)
        interval = "cluster bootstrap"
    else:
        low, high = rate_interval(successes, n, len(clusters))
        interval = "wilson" if len(clusters) == n else "wilson over instances"
    return {"mean": successes / n, "low": low, "high": high, "n": n, "interval": interval}


def _mean_of(values_by_instance: list[list[float]]) -> dict[str, float | None]:
    values = [value for group in values_by_instance for value in group]
    if not values or not all(map(math.isfinite, values)):
        return {"mean": None, "low": None, "high": None}
    return bootstrap_mean(values_by_instance)._asdict()


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return float(sum(listed) / len(listed)) if listed else None


def _term_means(fair: Sequence[Episode]) -> dict[str, float | None]:
    sums: dict[str, float] = defaultdict(float)
    for episode in fair:
        for step in episode.steps:
            for name, paid in _numbers(step.info, "reward_terms"):
                sums[name] += paid
    return {name: paid / len(fair) for name, paid in sums.items()}


def _score_means(fair: Sequence[Episode]) -> dict[str, float | None]:
    values: dict[str, list[float]] = defaultdict(list)
    for episode in fair:
        last: dict[str, float] = {}
        for step in episode.steps:
            last.update(_numbers(step.info, "scores"))
        for name, score in last.items():
            values[name].append(score)
    return {name: _mean(scores) for name, scores in values.items()}


def _costs(fair: Sequence[Episode]) -> dict[str, dict[str, float]]:
    sums: dict[str, list[float]] = {}
    for number, episode in enumerate(fair):
        for step in episode.steps:
            for name, cost in _numbers(step.info, "cost_terms"):
                for kind in (name, "total"):
                    sums.setdefault(kind, [0.0] * len(fair))[number] += cost
    return {
        name: {"mean": sum(of) / len(of), "share": sum(cost > 0 for cost in of) / len(of), "cvar": cvar(of)}
        for name, of in sums.items()
    }


def _numbers(info: dict[str, Any], key: str) -> list[tuple[str, float]]:
    # Environments of others may use these names for something else.
    part = info.get(key)
    pairs = part.items() if isinstance(part, dict) else ()
    return [(name, float(value)) for name, value in pairs if isinstance(value, int | float | np.number)]


def _over_samples(fair: Sequence[Episode], k: int, chance: Callable[[int, int, int], float]) -> float | None:
    if not _says_success(fair):
        return None
    counts = [(len(group), sum(episode.is_success for episode in group)) for group in _groups(fair)]
    return _mean(chance(n, right, k) for n, right in counts if n >= k)


def _majority_at(fair: Sequence[Episode], k: int, answer_in: Callable[[str], str | None]) -> float | None:
    def answers(group: Sequence[Episode]) -> list[str | None]:
        return [answer_in(str(episode.steps[-1].action)) for episode in group]

    votes = [
        ([None if a is None else key(a) for a in answers(group)], [e.is_success for e in group])
        for group in _groups(fair)
        if len(group) >= k
    ]
    return _mean(majority_at_k(answers, right, k) for answers, right in votes)


def _sampled(episode: Episode) -> int | None:
    records = [step.record for step in episode.steps if step.record is not None]
    counts = [len(record["ids"]) for record in records if "ids" in record]
    counts += [int(record["completion_tokens"]) for record in records if "completion_tokens" in record]
    return sum(counts) if counts else None


def _tokens(played: Sequence[Episode]) -> dict[str, Any] | None:
    counts = [count for count in map(_sampled, played) if count is not None]
    return {"mean": sum(counts) / len(counts), "total": sum(counts)} if counts else None


def _lengths(fair: Sequence[Episode]) -> dict[str, Any]:
    measure: Callable[[Episode], int] = len
    unit = "steps"
    if fair and all(_sampled(episode) is not None for episode in fair):
        unit, measure = "tokens", lambda episode: _sampled(episode) or 0
    elif fair and all(isinstance(step.action, str) for episode in fair for step in episode.steps):
        unit, measure = "characters", lambda episode: sum(len(step.action) for step in episode.steps)
    told = fair if _says_success(fair) else []
    return {
        "unit": unit,
        "success": _mean(measure(episode) for episode in told if episode.is_success),
        "failure": _mean(measure(episode) for episode in told if not episode.is_success),
    }


def _stop_reason(episode: Episode) -> str:
    ending = "terminated" if episode.steps and episode.steps[-1].terminated else "truncated"
    return str(episode.stop_reason or ending)


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _strict(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
