"""Rewards: weights, gates, success and graders that fail."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tetrathlon.envs.episode import Episode, Step
from tetrathlon.envs.rubric import Rubric, Term

EPISODE = Episode([Step("q", "a")])


def give(value: Any) -> Any:
    return lambda task, episode: value


def fail(task: Any, episode: Episode) -> float:
    raise RuntimeError("x" * 1_000)


def test_terms_add_up_with_their_weights() -> None:
    score = Rubric(Term("correct", give(1)), Term("format", give(0.5), 0.2), Term("length", give(2), -0.1)).score(
        None, EPISODE
    )
    assert score.reward == pytest.approx(1 + 0.1 - 0.2)
    assert score.terms == pytest.approx({"correct": 1.0, "format": 0.1, "length": -0.2})
    assert score.scores == {"correct": 1.0, "format": 0.5, "length": 2.0}
    assert score.is_success is True
    assert score.error is None
    assert all(type(value) is float for value in [*score.terms.values(), *score.scores.values()])


@pytest.mark.parametrize(("gate", "reward", "success"), [(1, 1.5, True), (0, 0.0, False), (-1, 0.0, False)])
def test_a_closed_gate_takes_all_pay(gate: float, reward: float, success: bool) -> None:
    rubric = Rubric(Term("safe", give(gate), gate=True), Term("correct", give(1)), Term("more", give(1), 0.5))
    score = rubric.score(None, EPISODE)
    assert (score.reward, score.is_success) == (reward, success)
    assert sum(score.terms.values()) == score.reward
    assert score.terms["safe"] == 0.0


def test_success_is_the_first_term_that_is_no_gate_or_the_named_one() -> None:
    terms = (Term("safe", give(1), gate=True), Term("correct", give(0.99)), Term("format", give(1)))
    assert Rubric(*terms).score(None, EPISODE).is_success is False
    assert Rubric(*terms, success="format").score(None, EPISODE).is_success is True


@pytest.mark.parametrize("bad", [fail, give(math.nan), give(math.inf), give("yes"), give(None)])
def test_a_failed_grader_pays_nothing_and_says_so(bad: Any) -> None:
    score = Rubric(Term("correct", give(1)), Term("other", bad)).score(None, EPISODE)
    assert score.reward == 0.0
    assert score.is_success is False
    assert score.terms == {"correct": 0.0, "other": 0.0}
    assert score.error is not None and score.error.startswith("other") and len(score.error) <= 500


def test_wrong_rubrics_are_refused() -> None:
    with pytest.raises(ValueError, match="names of their own"):
        Rubric(Term("a", give(1)), Term("a", give(1)))
    with pytest.raises(ValueError, match="names of their own"):
        Rubric()
    with pytest.raises(ValueError, match="finite"):
        Rubric(Term("a", give(1), math.nan))
    with pytest.raises(ValueError, match="success"):
        Rubric(Term("a", give(1)), success="b")
