"""The figures of a training run that are read first: where they began, where they are, and their best."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tetrathlon.benchmarks.history import History


@dataclass(frozen=True, eq=False)
class Milestone:
    """One figure."""

    name: str
    """Of the metric."""
    label: str
    """In words."""
    is_share: bool
    """Whether it is said in %."""
    start: float
    """At the start; NaN where there is no value."""
    end: float
    """At the end."""
    best: tuple[float, int] | None
    """And at which update; None where neither high nor low is better, or where there is no value."""

    def say(self, value: float) -> str:
        """Return a value of it in words."""
        if math.isnan(value):
            return "–"
        return f"{100 * value:.1f} %" if self.is_share else f"{value:.4g}"


_FIGURES = (  # metric, label, share, what is better: higher 1, lower -1, neither 0
    ("test/success", "test success", True, 1),
    ("success", "train success", True, 1),
    ("test/reward", "test reward", False, 1),
    ("episode_reward", "train reward", False, 1),
    ("entropy", "entropy", False, 0),
    ("kl_ref", "KL to the reference", False, 0),
    ("kl_old", "KL of an update", False, 0),
    ("clip_fraction", "clipped", True, 0),
    ("informative_groups", "groups with signal", True, 0),
    ("length_right", "length, right", False, 0),
    ("length_wrong", "length, wrong", False, 0),
    ("cut", "cut by a limit", True, -1),
    ("grad_norm", "gradient norm", False, 0),
    ("explained_variance", "explained variance", False, 1),
    ("sampler_drift", "sampler drift", False, -1),
    ("lr", "learning rate", False, 0),
)


def milestones(history: History) -> list[Milestone]:
    """Return the figures that the run told, in the order in which they are read."""
    return [
        Milestone(name, label, is_share, *column.ends, column.best(sign) if sign else None)
        for name, label, is_share, sign in _FIGURES
        if (column := history.columns.get(name)) is not None
    ]
