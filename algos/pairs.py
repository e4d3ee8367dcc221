"""Pairs: two episodes from the same start, of which one is preferred."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import isfinite
from typing import Any

import numpy as np

from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.collect import Scorer
from tetrathlon.algos.demonstrations import Demonstrations, read
from tetrathlon.envs.codec import encode
from tetrathlon.envs.episode import Episode, scorable

_STREAM = 0x9A125


@dataclass(frozen=True, slots=True)
class Pair:
    """Two episodes from the same start."""

    preferred: Episode
    """The better one."""
    rejected: Episode
    """The other."""


PairsLike = Sequence[Pair] | Demonstrations
"""Pairs; or episodes, or a folder of them, of which pairs are made by what they were paid."""


@dataclass(slots=True)
class Paired:
    """Pairs, and what made none."""

    pairs: list[Pair] = field(default_factory=list)
    """Group by group."""
    groups: int = 0
    """Starts with two or more episodes that could be scored."""
    tied: int = 0
    """Those of them in which all were paid alike."""
    unscorable: int = 0
    """Episodes whose grader failed, whose pay is no number, or that have no step."""
    single: int = 0
    """Episodes whose start is known of no other, or is not known at all."""


def paired(episodes: Iterable[Episode], *, most: int = 1, least_gap: float = 0.0, seed: Sequence[int] = (0,)) -> Paired:
    """Make pairs of episodes that began at the same start: what was paid more is preferred.

    Which of a group's pairs are taken is drawn, each as likely as another: the best against the worst alone would
    show a learner no near misses.

    Args:
        episodes: In any order; those of one start have the same environment, arguments, group, seed and options.
        most: Most pairs a group.
        least_gap: By more than this must one be paid more than the other.
        seed: Of the draw.

    Raises:
        ValueError: ``most`` is below 1, or ``least_gap`` below 0.
    """
    if most < 1:
        raise ValueError(f"most must be at least 1, got {most!r}")
    if not least_gap >= 0:
        raise ValueError(f"least_gap must be at least 0, got {least_gap!r}")
    found = Paired()
    rng = np.random.default_rng([_STREAM, *seed])
    by_start: dict[str, list[Episode]] = {}
    for episode in episodes:
        if not episode.steps or not scorable([episode]) or not isfinite(episode.total_reward):
            found.unscorable += 1
        elif (start := _start(episode)) is None:
            found.single += 1
        else:
            by_start.setdefault(start, []).append(episode)
    for group in by_start.values():
        if len(group) < 2:
            found.single += 1
            continue
        found.groups += 1
        paid = [episode.total_reward for episode in group]
        ways = [(i, j) for i, j in product(range(len(group)), repeat=2) if paid[i] - paid[j] > least_gap]
        found.tied += not ways
        for way in sorted(rng.permutation(len(ways))[:most].tolist()):
            i, j = ways[way]
            found.pairs.append(Pair(group[i], group[j]))
    return found


def _start(episode: Episode) -> str | None:
    """Return what tells the start of an episode from others; None: nothing does."""
    if episode.group is None and episode.seed is None:
        return None
    told: list[Any] = [episode.env, encode(episode.kwargs), encode(episode.options), episode.group, episode.seed]
    return json.dumps(told, sort_keys=True)


def read_pairs(
    given: PairsLike, policy: TrainablePolicy, env_id: str = "", *, most: int = 1, seed: Sequence[int] = (0,)
) -> Paired:
    """Return pairs as they are given, or make them of recorded episodes; see :func:`paired`.

    Args:
        given: Pairs, or episodes, or a folder of them as ``tetrathlon eval --samples K --out DIR`` writes it.
        policy: Who learns from them.
        env_id: The environment that they are learnt for; empty: whichever.
        most: Most pairs a group.
        seed: Of the draw.

    Raises:
        ValueError: There is no pair in them, or one is of another environment.
        OSError: They cannot be read.
    """
    if not isinstance(given, str | os.PathLike) and all(isinstance(each, Pair) for each in given):
        pairs: list[Any] = list(given)
        if any(not episode.steps for episode in flat(pairs)):
            raise ValueError("an episode of a pair has no step: there is nothing to prefer in it")
        found = Paired(unflat(read(flat(pairs), policy, env_id)) if pairs else [], groups=len(pairs))
    else:
        found = paired(read(given, policy, env_id), most=most, seed=seed)  # type: ignore[arg-type]
    if not found.pairs:
        raise ValueError(
            f"there is no pair in what was given: {found.groups} starts with several episodes, {found.tied} of them "
            f"with equal pay; {found.single} episodes alone, {found.unscorable} that could not be scored"
        )
    return found


def flat(pairs: Iterable[Pair]) -> list[Episode]:
    """Return the episodes of P pairs as 2 P, each preferred one before its rejected one."""
    return [episode for pair in pairs for episode in (pair.preferred, pair.rejected)]


def unflat(episodes: Sequence[Episode]) -> list[Pair]:
    """Undo :func:`flat`."""
    return [Pair(*both) for both in zip(episodes[::2], episodes[1::2], strict=True)]


def agreement(scorer: Scorer, pairs: Sequence[Pair]) -> float:
    """Return the share of pairs that a scorer ranks as they are; equal scores count half, no score as wrong.

    Args:
        scorer: A reward model, a judge.
        pairs: At least one.
    """
    scores = [np.nan if score is None else float(score) for score in scorer(flat(pairs))]
    gap = np.array(scores[::2]) - np.array(scores[1::2])
    return float(np.mean(np.where(gap == 0, 0.5, gap > 0)))
