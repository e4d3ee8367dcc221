"""The figures of a training run: which metrics belong together, and what a healthy and a sick curve look like."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tetrathlon.agents.statistics import wilson
from tetrathlon.benchmarks.history import Column, Floats, History, moving_sum

_MOST_LINES = 6


@dataclass(frozen=True, eq=False)
class Curve:
    """One line of a figure, at N updates."""

    label: str
    """Its name in the legend."""
    update: Floats
    """[N]."""
    value: Floats
    """[N]: as it was told."""
    mean: Floats
    """[N]: its moving mean."""
    low: Floats | None = None
    """[N]: lower end of an interval."""
    high: Floats | None = None
    """[N]: its upper end."""


@dataclass(frozen=True, eq=False)
class Figure:
    """Curves of one unit."""

    title: str
    """What is drawn."""
    axis: str
    """What stands at the vertical axis."""
    look: str
    """What to look for, in a sentence or two."""
    curves: tuple[Curve, ...]
    """At least one."""
    is_share: bool = False
    """Whether values are shares, drawn in %."""
    log: bool = False
    """Whether the axis is logarithmic."""
    least: float | None = None
    """Values below it lie outside the figure."""


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """A figure before there is a run."""

    title: str
    axis: str
    look: str
    lines: dict[str, str]
    """Metric -> label."""
    is_share: bool = False
    may_log: bool = False
    """Whether the axis is logarithmic where the values are positive and far apart."""
    least: float | None = None
    of: Callable[[Floats], Floats] = lambda values: values
    """What is drawn of a metric."""


_LEARNS = (
    _Plan(
        title="Success",
        axis="success in %, with 95 % interval",
        lines={"success": "train", "test/success": "test"},
        is_share=True,
        look="Healthy: both rise, then level off. Sick: train rises and test does not (learnt by heart), or both fall "
        "at once. The interval of train joins the episodes under the moving mean as if all had different starts.",
    ),
    _Plan(
        title="Reward",
        axis="reward an episode",
        lines={"episode_reward": "played", "reward": "learnt from", "test/reward": "test"},
        look="Healthy: rises with success. Sick: rises while success does not: the reward is being gamed.",
    ),
    _Plan(
        title="Length by outcome",
        axis="decisions an episode",
        lines={"length_right": "right", "length_wrong": "wrong"},
        look="Healthy: settles. Sick: wrong episodes grow without end, or right ones shrink to a guess.",
    ),
    _Plan(
        title="Cut completions",
        axis="episodes in % that a limit cut",
        lines={"cut": "all", "cut_right": "right", "cut_wrong": "wrong"},
        is_share=True,
        look="Healthy: near 0. Sick: high or rising: the limit is too low, or the policy no longer ends its answers.",
    ),
    _Plan(
        title="Steps an episode",
        axis="environment steps",
        lines={"episode_steps": "steps"},
        look="Longer where staying alive is the task, shorter where getting there is.",
    ),
)
_STABLE = (
    _Plan(
        title="Entropy",
        axis="nats a decision",
        lines={"entropy": "entropy"},
        look="Healthy: falls slowly. Sick: near 0 early (nothing is tried any more), or rising (the policy dissolves).",
    ),
    _Plan(
        title="Divergence from the policy before the update",
        axis="KL a decision, in nats",
        lines={"kl_old": "KL"},
        look="Healthy: small and even, mostly below 0.02; 0 with one step an update. Sick: peaks: steps are too large.",
    ),
    _Plan(
        title="Divergence from the reference",
        axis="KL a decision, in nats",
        lines={"kl_ref": "KL"},
        look="Healthy: grows and slows down. Sick: takes off while success stands still.",
    ),
    _Plan(
        title="Clipped decisions",
        axis="decisions in %",
        lines={"clip_fraction": "outside", "clip_fraction_low": "held below", "clip_fraction_high": "held above"},
        is_share=True,
        look="Healthy: up to about 20 %; 0 with one step an update. Sick: more: too many passes, or too large steps.",
    ),
    _Plan(
        title="Gradient norm",
        axis="norm before clipping",
        lines={"grad_norm": "norm"},
        may_log=True,
        look="Healthy: even. Sick: peaks that grow, or 0: no group has a signal.",
    ),
    _Plan(
        title="Weights that moved",
        axis="weights in %",
        lines={"changed": "changed"},
        is_share=True,
        look="Healthy: near 100 %. Sick: near 0: the learning rate is below what the weights can show, or no group had "
        "a signal.",
    ),
    _Plan(
        title="Loss",
        axis="loss",
        lines={
            "loss": "sum",
            "policy_loss": "policy",
            "kl_loss": "divergence",
            "entropy_loss": "entropy",
            "imitation_loss": "imitation",
        },
        look="That of the policy stays near 0 and tells little. Sick: another term outweighs it.",
    ),
    _Plan(
        title="Imitation loss",
        axis="-log p a decision, or the head's own loss",
        lines={"bc_loss": "imitation loss"},
        look="Healthy: falls, and jumps a little when new states come in. It says how well the expert is copied where "
        "it was asked, not how well the task is done: look at the success on the test split beside it.",
    ),
    _Plan(
        title="Agreement with the expert",
        axis="own decisions in %",
        lines={"agreement": "agreement"},
        is_share=True,
        look="Of the decisions that the learner took itself and the expert judged. Healthy: rises.",
    ),
    _Plan(
        title="Pairs ranked as they are",
        axis="pairs in %",
        lines={"accuracy": "accuracy"},
        is_share=True,
        look="Before the step. Healthy: rises from 50 %. Sick: 100 % while success stands still: learnt by heart.",
    ),
    _Plan(
        title="Rewards of pairs",
        axis="times beta, or a model's score",
        lines={"margin": "margin"}
        | {
            f"{what}_{which}": f"{what}, {which}" for what in ("reward", "score") for which in ("preferred", "rejected")
        },
        look="Healthy: the margin grows and slows down. Sick: it grows without an end.",
    ),
    _Plan(
        title="Log-probabilities of pairs",
        axis="log p of an answer",
        lines={"logp_preferred": "preferred", "logp_rejected": "rejected"},
        look="Healthy: preferred stays or rises. Sick: it falls with rejected; give imitation_coef, or fewer steps.",
    ),
    _Plan(
        title="Value loss",
        axis="loss",
        lines={"value_loss": "value loss"},
        may_log=True,
        look="Healthy: falls, and rises a little whenever rewards grow. Sick: grows without them.",
    ),
    _Plan(
        title="Explained variance",
        axis="of the returns, by the critic",
        lines={"explained_variance": "explained variance"},
        least=-1.0,
        look="Healthy: climbs towards 1. Sick: at or below 0: the critic is worse than a constant.",
    ),
    _Plan(
        title="Spread of the advantages",
        axis="standard deviation",
        lines={"advantage_std": "advantage"},
        look="Healthy: even. Sick: falls to 0: nothing is left to learn from.",
    ),
)
_SOUND = (
    _Plan(
        title="First ratio",
        axis="largest distance from 1",
        lines={"first_ratio_error": "first minibatch"},
        look="Healthy: 0, or rounding (1e-6). Sick: more: the same weights give two answers.",
    ),
    _Plan(
        title="Drift of the sampler",
        axis="largest difference of log p",
        lines={"sampler_drift": "drift"},
        may_log=True,
        look="Healthy: below 1e-4 in float32, below 0.1 in bfloat16. Sick: more: what sampled is not what learns.",
    ),
    _Plan(
        title="Divergence from the sampler",
        axis="KL a decision, in nats",
        lines={"kl_sampler": "KL"},
        look="Healthy: rounding, or small where batches are stale. Sick: grows.",
    ),
    _Plan(
        title="Staleness",
        axis="updates behind",
        lines={"staleness": "staleness"},
        look="How many updates the policy had seen since it sampled. Healthy: 0, or even. Sick: grows.",
    ),
    _Plan(
        title="Groups without a signal",
        axis="groups in %",
        lines={"informative_groups": "learnt from", "useful_groups": "played"},
        is_share=True,
        of=lambda values: 1 - values,
        look="Episodes of such a group were all paid the same. Healthy: well below 100 %. Sick: near it: tasks are too "
        "hard or too easy.",
    ),
    _Plan(
        title="Solved instances",
        axis="instances in %",
        lines={"solved_instances": "solved"},
        is_share=True,
        look="Of the instances that come again. Healthy: grows. Near 100 % there is nothing left to learn from them.",
    ),
    _Plan(
        title="Lost episodes",
        axis="episodes",
        lines={"unscorable": "grader failed", "crashes": "crashed"},
        look="Healthy: 0. Sick: anything else: they are left out.",
    ),
)
_COSTS = (
    _Plan(
        title="Seconds by phase",
        axis="seconds an update",
        lines={"seconds_play": "play", "seconds_prepare": "prepare", "seconds_optimize": "optimize"},
        look="Healthy: even. Sick: play grows: answers get longer, or an environment is slow.",
    ),
    _Plan(
        title="Decisions",
        axis="an update",
        lines={"decisions": "decided", "cost": "read and decided"},
        look="Tokens for language, steps for control: what an update learns from.",
    ),
    _Plan(
        title="Expert",
        axis="in all",
        lines={"queries": "labels asked for", "dataset": "labels learnt from", "interventions": "steps it took"},
        look="What the expert costs. Interventions are those of one update: in the first it acts itself.",
    ),
    _Plan(
        title="Episodes",
        axis="an update",
        lines={"episodes": "episodes"},
        look="More where groups without a signal are replaced.",
    ),
    _Plan(
        title="Optimizer steps",
        axis="an update",
        lines={"steps": "steps"},
        look="Fewer where passes over a batch end early, at too large a divergence.",
    ),
    _Plan(
        title="Learning rate",
        axis="learning rate",
        lines={"lr": "policy", "value_lr": "critic"},
        look="As it was asked for.",
    ),
    _Plan(
        title="Schedules",
        axis="weight",
        lines={"beta": "share of the expert", "kl_coef": "of the divergence", "entropy_coef": "of the entropy"},
        look="As they were asked for.",
    ),
    _Plan(
        title="Temperature", axis="temperature", lines={"temperature": "temperature"}, look="What samples are drawn at."
    ),
)
_SECTIONS = {
    "Does it learn?": _LEARNS,
    "Is it stable?": _STABLE,
    "Is the machinery sound?": _SOUND,
    "What does it cost?": _COSTS,
}
_OF_OTHERS = ("test/low", "test/high")  # ends of an interval
_TERMS = "reward_terms"
_UNKNOWN = "This page knows nothing of it."
_PAID = "Healthy: what should be earned rises. Sick: a term for form rises alone, and success does not."


def figures(history: History) -> Iterator[tuple[str, list[Figure]]]:
    """Yield sections of figures: every metric is in one of them, and a figure without metrics is left out."""
    known = {name for plans in _SECTIONS.values() for plan in plans for name in plan.lines} | {*_OF_OTHERS}
    rest: dict[str, list[str]] = {}
    for name in history.columns:
        if name not in known:
            rest.setdefault(name.rpartition("/")[0] or name, []).append(name)
    terms = rest.pop(_TERMS, [])
    for heading, plans in _SECTIONS.items():
        drawn = [figure for plan in plans if (figure := _figure(plan, history)) is not None]
        if plans is _LEARNS:
            drawn[2:2] = _others(history, "Reward terms", terms, "reward an episode", _PAID)
        if drawn:
            yield heading, drawn
    if rest:
        yield (
            "Other metrics",
            [figure for title, names in rest.items() for figure in _others(history, title, names, "value", _UNKNOWN)],
        )


def _figure(plan: _Plan, history: History) -> Figure | None:
    curves = []
    for name, label in plan.lines.items():
        if (column := history.columns.get(name)) is not None:
            low, high = _interval(name, history)
            curves.append(Curve(label, column.update, plan.of(column.value), plan.of(column.mean), low, high))
    if not curves:
        return None
    log = plan.may_log and _far_apart(curves)
    return Figure(plan.title, plan.axis, plan.look, tuple(curves), plan.is_share, log, plan.least)


def _others(history: History, title: str, names: Sequence[str], axis: str, look: str) -> list[Figure]:
    parts = [names[at : at + _MOST_LINES] for at in range(0, len(names), _MOST_LINES)]
    found = []
    for number, part in enumerate(parts):
        columns = {name.rpartition("/")[2] or name: history.columns[name] for name in part}
        curves = tuple(Curve(label, column.update, column.value, column.mean) for label, column in columns.items())
        many = f", {number + 1} of {len(parts)}" if len(parts) > 1 else ""
        alone = f": {curves[0].label}" if len(curves) == 1 and curves[0].label != title else ""
        found.append(Figure(f"{title}{many}{alone}", axis, look, curves))
    return found


def _interval(name: str, history: History) -> tuple[Floats | None, Floats | None]:
    """Return the ends of the 95 % interval of a success rate."""
    column = history.columns[name]
    if name == "test/success" and all(end in history.columns for end in _OF_OTHERS):
        low, high = (_at(history.columns[end], column) for end in _OF_OTHERS)
        return low, high
    if name == "success" and "episodes" in history.columns:
        episodes = _at(history.columns["episodes"], column)
        if "unscorable" in history.columns:
            episodes = episodes - np.nan_to_num(_at(history.columns["unscorable"], column))
        n = np.where(np.isnan(column.value), np.nan, episodes)
        right, asked = (moving_sum(each, column.width) for each in (column.value * n, n))
        ends = [
            wilson(min(max(r, 0.0), a), a) if a >= 1 and not np.isnan(here) else (np.nan, np.nan)
            for r, a, here in zip(right.tolist(), np.rint(asked).astype(int).tolist(), n.tolist(), strict=True)
        ]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])
    return None, None


def _at(column: Column, other: Column) -> Floats:
    """Return the values of ``column`` at the updates of ``other``; NaN where it has none."""
    known = dict(zip(column.update.tolist(), column.value.tolist(), strict=True))
    return np.array([known.get(update, np.nan) for update in other.update.tolist()])


def _far_apart(curves: Sequence[Curve]) -> bool:
    values = np.concatenate([curve.value[~np.isnan(curve.value)] for curve in curves])
    return bool(len(values)) and values.min() > 0 and values.max() > 30 * values.min()
