"""From finished cells to ``results.json``: one row an entry and policy, and what they come to together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tetrathlon.agents.result import Result, instance_of
from tetrathlon.agents.statistics import iqm, rate_interval
from tetrathlon.benchmarks.suites import Entry
from tetrathlon.envs.episode import scorable

RESAMPLES = 4000
COST_KEYS = ("mean", "share", "cvar")
LEVEL = 0.95
FLOOR, CEILING = "random", "expert"
"""The policies that stand for 0 and 100 in normalised scores."""


def row(entry: Entry, policy: str, cells: Sequence[Mapping[str, Any]], slugs: Sequence[str]) -> dict[str, Any]:
    """Put the cells of one entry and policy, one a seed, together.

    Args:
        entry: The entry.
        policy: The name of the policy.
        cells: Each cell's ``result.json``.
        slugs: The names of the cells' folders.

    Returns:
        A row of ``entries`` in ``results.json``, without its normalised score.
    """
    outcomes = [cell["outcomes"] for cell in cells]
    counts = [len(listed) for listed in outcomes]
    wins = [sum(outcome["success"] for outcome in listed) for listed in outcomes]
    every = [outcome for listed in outcomes for outcome in listed]
    return {
        "name": entry.name,
        "env": entry.env,
        "kwargs": dict(entry.kwargs),
        "domain": entry.domain,
        "policy": policy,
        "split": entry.split,
        "metric": entry.metric,
        "seeds": [cell["seed"] for cell in cells],
        "success": rate(sum(wins), len(every), distinct(every)),
        "samples": entry.samples,
        "pass_at": {k: weighted([cell["pass_at"].get(k) for cell in cells], counts) for k in cells[0]["pass_at"]},
        "strata": [
            {"successes": won, "episodes": len(listed), "distinct": distinct(listed)}
            for won, listed in zip(wins, outcomes, strict=True)
        ],
        "reward": weighted([cell["reward"]["mean"] for cell in cells], counts),
        "reward_terms": _terms(cells, counts),
        "costs": _costs(cells, counts),
        "dependence": _dependence(cells),
        "tokens": weighted([(cell["tokens"] or {}).get("mean") for cell in cells], counts),
        "steps": weighted([cell["steps"] for cell in cells], counts),
        "lengths": {
            "unit": cells[0]["lengths"]["unit"],
            "success": weighted([cell["lengths"]["success"] for cell in cells], wins),
            "failure": weighted(
                [cell["lengths"]["failure"] for cell in cells],
                [n - won for n, won in zip(counts, wins, strict=True)],
            ),
        },
        "stop_reasons": dict(sum((Counter(cell["stop_reasons"]) for cell in cells), Counter())),
        "grader_errors": sum(cell["grader_errors"] for cell in cells),
        "crashes": sum(cell["crashes"]["count"] for cell in cells),
        "episodes": sum(cell["episodes"] for cell in cells) * entry.samples,
        "seconds": sum(cell["seconds"] for cell in cells),
        "cpu_seconds": sum(cell["cpu_seconds"] for cell in cells),
        "cells": list(slugs),
    }


def outcomes_of(result: Result) -> list[dict[str, Any]]:
    """Return which instance each scorable episode of an evaluation was, and whether it succeeded.

    Args:
        result: The evaluation, with its episodes.
    """
    if result.success["mean"] is None:  # an environment that never tells has no rate; that is not a rate of 0
        return []
    return [
        {"task": instance_of(episode), "success": episode.is_success} for episode in scorable(result.episodes_played)
    ]


def distinct(outcomes: Sequence[Mapping[str, Any]]) -> int:
    """Return how many instances were asked; each outcome without a task counts as one."""
    tasks = {outcome["task"] for outcome in outcomes if outcome["task"] is not None}
    return len(tasks) + sum(outcome["task"] is None for outcome in outcomes)


def normalise(rows: Sequence[dict[str, Any]]) -> None:
    """Give each row its ``normalised`` score: 0 as random, 100 as the expert; None where one of them is missing.

    Raises:
        ValueError: The expert is no better than random somewhere; the message names the entries.
    """
    means = {(r["name"], r["policy"]): r["success"]["mean"] for r in rows}
    flat = []
    for name in dict.fromkeys(r["name"] for r in rows):
        low, high = means.get((name, FLOOR)), means.get((name, CEILING))
        if low is not None and high is not None and high <= low:
            flat.append(f"{name} ({FLOOR} {low:.0%}, {CEILING} {high:.0%})")
    if flat:
        raise ValueError(
            f"the {CEILING} is no better than {FLOOR} in {', '.join(flat)}: such an entry tells policies apart "
            "by luck alone; take it out of the suite or mend it"
        )
    for r in rows:
        low, high = means.get((r["name"], FLOOR)), means.get((r["name"], CEILING))
        own = r["success"]["mean"]
        if low is None or high is None or own is None:
            r["normalised"] = None
        else:
            r["normalised"] = 100.0 * (own - low) / (high - low)


def aggregate(rows: Sequence[Mapping[str, Any]], seed: int = 0) -> dict[str, Any]:
    """Return for each policy its mean success and its normalised score, by domain and overall.

    Of a policy that cannot play all entries (one that writes text has no business with a robot) there is nothing
    overall: a mean over other entries is of something else.

    The interval of a mean success rate joins the Wilson intervals of the entries by squares (Zou and Donner 2008,
    doi:10.1002/sim.3095). That of a normalised score is the percentiles of its draws: the rate of each entry and
    seed with c of n instances right is drawn from Beta(c + 1/2, n - c + 1/2), entries stay, and the scores of
    random and expert count as known. This is the stratified bootstrap but for its draws, which see no spread
    where all episodes of an entry end alike. As of Jeffreys' interval, the ends are moved to hold the score itself.

    Args:
        rows: Rows with their normalised scores.
        seed: Seed of the draws.
    """
    policies = dict.fromkeys(r["policy"] for r in rows)
    return {policy: _of_policy([r for r in rows if r["policy"] == policy], rows, seed) for policy in policies}


def _of_policy(own: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Any]:
    is_whole = {r["name"] for r in own} == {r["name"] for r in rows}
    own = [r for r in own if r["success"]["mean"] is not None]
    by_domain = {domain: [i for i, r in enumerate(own) if r["domain"] == domain] for domain in _domains(own)}
    success = {
        "overall": _mean_rate([r["success"] for r in own] if is_whole else []),
        "domains": {domain: _mean_rate([own[i]["success"] for i in which]) for domain, which in by_domain.items()},
    }
    if not own:
        return {"success": success, "normalised": {"overall": None, "domains": {}}}
    drawn = np.stack([draws(r, seed) for r in own])  # [entries, RESAMPLES]
    scale = {(r["name"], r["policy"]): r["success"]["mean"] for r in rows}

    def scores(which: Sequence[int]) -> dict[str, Any] | None:
        scored = [i for i in which if own[i]["normalised"] is not None]
        return _normalised(own, drawn, scale, scored) if scored else None

    domains = {domain: score for domain, which in by_domain.items() if (score := scores(which)) is not None}
    overall = scores(range(len(own))) if is_whole else None
    if own[0]["policy"] in (FLOOR, CEILING):  # the ends of the scale have no width
        for part in (*domains.values(), overall):
            if part is not None:
                part["iqm"]["fixed"] = True
    return {"success": success, "normalised": {"overall": overall, "domains": domains}}


def _domains(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(r["domain"] for r in rows))


def _normalised(
    own: Sequence[Mapping[str, Any]], drawn: np.ndarray, scale: Mapping[tuple[str, str], float], which: list[int]
) -> dict[str, Any]:
    floor = np.array([scale[own[i]["name"], FLOOR] for i in which])
    span = np.array([scale[own[i]["name"], CEILING] for i in which]) - floor
    scores = 100.0 * (drawn[which] - floor[:, None]) / span[:, None]
    points = [own[i]["normalised"] for i in which]
    return {
        "mean": float(np.mean(points)),
        "iqm": {**interval(float(iqm(points)), iqm(scores, axis=0)), "n": len(which)},
    }


def draws(r: Mapping[str, Any], seed: int) -> np.ndarray:
    """Return success rates [RESAMPLES] that a row's episodes allow; see :func:`aggregate`."""
    # An instance that was asked twice is no second witness. The row's name keeps the draws of an entry the same
    # whatever else was run.
    words = f"{r['name']}\n{r['policy']}".encode("utf-8", "surrogatepass")
    rng = np.random.default_rng([seed, *words])
    wins = np.zeros(RESAMPLES)
    for stratum in r["strata"]:
        n, instances = stratum["episodes"], stratum["distinct"]
        if n:
            right = stratum["successes"] / n * instances
            wins += n * rng.beta(right + 0.5, instances - right + 0.5, RESAMPLES)
    return wins / sum(stratum["episodes"] for stratum in r["strata"])


def interval(point: float, drawn: np.ndarray) -> dict[str, float]:
    """Return a value with the percentiles of its draws; the ends are moved to hold the value itself."""
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return {"mean": point, "low": min(float(low), point), "high": max(float(high), point)}


def _mean_rate(rates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    n = len(rates)
    if n == 0:
        return {"mean": None, "low": None, "high": None, "n": 0}
    mean = sum(r["mean"] for r in rates) / n
    below = math.hypot(*(r["mean"] - r["low"] for r in rates)) / n
    above = math.hypot(*(r["high"] - r["mean"] for r in rates)) / n
    return {"mean": mean, "low": max(0.0, mean - below), "high": min(1.0, mean + above), "n": n}


def rate(successes: int, n: int, instances: int) -> dict[str, Any]:
    """Return a success rate over ``n`` episodes, with its interval over ``instances`` different ones."""
    if n == 0:
        return {"mean": None, "low": None, "high": None, "n": 0, "distinct": 0}
    mean = successes / n
    low, high = rate_interval(successes, n, instances)
    return {"mean": mean, "low": low, "high": high, "n": n, "distinct": instances}


def weighted(values: Iterable[float | None], counts: Sequence[int]) -> float | None:
    """Return the mean of what is known of ``values``, by ``counts``; None if that is nothing."""
    known = [(value, n) for value, n in zip(values, counts, strict=True) if value is not None and n]
    total = sum(n for _, n in known)
    return sum(value * n for value, n in known) / total if total else None


def _terms(cells: Sequence[Mapping[str, Any]], counts: Sequence[int]) -> dict[str, float]:
    names = dict.fromkeys(name for cell in cells for name in cell["reward_terms"])
    pooled = {name: weighted([cell["reward_terms"].get(name) for cell in cells], counts) for name in names}
    return {name: value for name, value in pooled.items() if value is not None}


def _dependence(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return what answers to pictures depend on in all cells together, by instances; None: they are not of pictures."""
    found = [cell["dependence"] for cell in cells if cell["dependence"] and cell["dependence"]["instances"]]
    if not found:
        return None
    counts = [each["instances"] for each in found]
    shares = {name: weighted([each[name] for each in found], counts) for name in found[0] if name != "instances"}
    n = sum(counts)
    low, high = rate_interval(round((shares["pair"] or 0.0) * n), n, n)
    return {"instances": n, **shares, "pair_low": low, "pair_high": high}


def _costs(cells: Sequence[Mapping[str, Any]], counts: Sequence[int]) -> dict[str, dict[str, float | None]]:
    """Return the costs of all cells together; a tail as the mean of the tails of the cells."""
    names = dict.fromkeys(name for cell in cells for name in cell["costs"])
    return {
        name: {key: weighted([cell["costs"][name][key] for cell in cells], counts) for key in COST_KEYS}
        for name in names
    }
