"""Rewards: named, weighted terms and gates over plain functions of a task and an episode."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tetrathlon.envs.episode import Episode

Grader = Callable[[Any, Episode], float]
"""``f(task, episode) -> score``; ``task`` is the private data of the instance."""


class GraderError(Exception):
    """A grader could not do its work: the answer is neither right nor wrong."""


@dataclass(frozen=True, slots=True)
class Term:
    """One named part of a reward."""

    name: str
    """Key in ``info["reward_terms"]`` and ``info["scores"]``."""
    grade: Grader
    """Returns the raw score."""
    weight: float = 1.0
    """What a raw score of 1 pays."""
    gate: bool = False
    """Whether a raw score of 0 or less takes the pay from every term of the rubric."""


@dataclass(slots=True)
class Score:
    """What a rubric made of one episode."""

    reward: float = 0.0
    """The sum of ``terms``."""
    terms: dict[str, float] = field(default_factory=dict)
    """What each term paid, after weight and gates."""
    scores: dict[str, float] = field(default_factory=dict)
    """What each grader returned."""
    is_success: bool = False
    """Whether the term that means success scored 1 or more and all gates were open."""
    error: str | None = None
    """What went wrong in a grader; then the reward is 0 and nothing was a success."""


class Rubric:
    """Adds up terms; a closed gate takes all pay.

    Args:
        terms: The terms, in the order in which they are graded.
        success: Name of the term whose score of 1 means success; default: the first that is no gate.

    Raises:
        ValueError: Two terms share a name, a weight is not finite, or there is no term ``success``.
    """

    def __init__(self, *terms: Term, success: str | None = None) -> None:
        names = [term.name for term in terms]
        if not terms or len(set(names)) < len(names):
            raise ValueError(f"a rubric needs terms with names of their own, got {names}")
        for term in terms:
            if not math.isfinite(term.weight):
                raise ValueError(f"the weight of {term.name!r} must be finite, got {term.weight}")
        self.terms: Sequence[Term] = terms
        self.success = success or next((term.name for term in terms if not term.gate), names[0])
        if self.success not in names:
            raise ValueError(f"success must be one of {names}, got {self.success!r}")

    def score(self, task: Any, episode: Episode) -> Score:
        """Grade ``episode``; graders that raise or return no finite number make it unscorable."""
        raw: dict[str, float] = {}
        is_open = True
        for term in self.terms:
            try:
                score = float(term.grade(task, episode))
            except Exception as error:  # graders are foreign code, fed by a model: never an exception, never a pay
                return self._failed(f"{term.name}: {type(error).__name__}: {error}")
            if not math.isfinite(score):
                return self._failed(f"{term.name}: score {score} is not finite")
            raw[term.name] = score
            if term.gate and score <= 0:
                is_open = False
        reward = 0.0
        paid: dict[str, float] = {}
        for term in self.terms:
            pay = term.weight * raw[term.name] if is_open and not term.gate else 0.0
            paid[term.name] = pay
            reward += pay
        return Score(reward, paid, raw, is_open and raw[self.success] >= 1.0)

    def _failed(self, error: str) -> Score:
        nothing = {term.name: 0.0 for term in self.terms}
        return Score(terms=nothing, scores=dict(nothing), error=error[:500])
