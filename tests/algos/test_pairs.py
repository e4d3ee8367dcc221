"""Pairs: which episodes are compared, which are not, and that all of it is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.algos.toys import CharTablePolicy
from tetrathlon.algos.pairs import Pair, agreement, flat, paired, read_pairs, unflat
from tetrathlon.envs.episode import Episode, Step, save_episodes

POLICY = CharTablePolicy("q0123456789.", end=".")


def answer(said: str, reward: float, group: int | None = 0, error: str | None = None, **others: Any) -> Episode:
    info = {"grader_error": error} if error else {}
    step = Step("q", said, reward, terminated=True, info=info)
    return Episode(steps=[step], final_observation="", group=group, **others)


def said(pairs: list[Pair]) -> list[tuple[str, str]]:
    return [(pair.preferred.steps[0].action, pair.rejected.steps[0].action) for pair in pairs]


def test_the_better_paid_is_preferred() -> None:
    found = paired([answer("1", 0.0), answer("2", 1.0)])
    assert said(found.pairs) == [("2", "1")] and (found.groups, found.tied, found.single) == (1, 0, 0)


def test_every_way_is_drawn_as_often_and_none_twice() -> None:
    group = [answer(str(i), float(i > 1)) for i in range(4)]
    ways = [("2", "0"), ("2", "1"), ("3", "0"), ("3", "1")]
    assert said(paired(group, most=9).pairs) == ways
    drawn = [said(paired(group, most=2, seed=(seed,)).pairs) for seed in range(400)]
    assert all(len(set(pairs)) == 2 for pairs in drawn)
    for way in ways:
        assert sum(way in pairs for pairs in drawn) == pytest.approx(200, abs=40)  # 4 deviations
    assert drawn[7] == said(paired(group, most=2, seed=(7,)).pairs)


def test_ties_and_lone_episodes_make_no_pair() -> None:
    episodes = [answer("1", 1.0), answer("2", 1.0), answer("3", 0.0, group=1), answer("4", 1.0, group=None)]
    found = paired(episodes)
    assert not found.pairs and (found.groups, found.tied, found.single, found.unscorable) == (1, 1, 2, 0)


def test_what_could_not_be_scored_is_counted_and_left_out() -> None:
    episodes = [answer("1", 0.0), answer("2", 9.0, error="judge is gone"), answer("3", float("nan")), answer("4", 1.0)]
    found = paired([*episodes, Episode(group=0)], most=9)
    assert said(found.pairs) == [("4", "1")] and found.unscorable == 3


def test_a_gap_must_be_exceeded() -> None:
    group = [answer("1", 0.0), answer("2", 0.5), answer("3", 1.0)]
    assert said(paired(group, most=9, least_gap=0.5).pairs) == [("3", "1")]


def test_only_one_start_is_compared_with_itself() -> None:
    """A seed says nothing across environments, their arguments or the options of a reset."""
    base = answer("1", 0.0, group=None, seed=3, env="A-v0")
    others: list[dict[str, Any]] = [
        *({"seed": 4}, {"env": "B-v0"}, {"group": 3}),
        *({"kwargs": {"digits": 2}}, {"options": {"variant": "twin"}}),
    ]
    better = answer("2", 1.0, group=None, seed=3, env="A-v0")
    assert said(paired([base, better]).pairs) == [("2", "1")]
    for other in others:
        assert not paired([base, replace(better, **other)]).pairs, other


@pytest.mark.parametrize(
    ("options", "told"),
    [({"most": 0}, "most must be at least 1, got 0"), ({"least_gap": -1.0}, "least_gap must be at least 0, got -1.0")],
)
def test_wrong_numbers_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        paired([], **options)


def test_pairs_are_read_in_every_form(tmp_path: Path) -> None:
    episodes = [
        answer("1", 0.0, env="tetrathlon/Count-v0"),
        answer("2", 1.0, env="tetrathlon/Count-v0"),
        answer("3", 0.0, env="tetrathlon/Count-v0"),
    ]
    save_episodes(tmp_path, episodes)
    wanted = [("2", "1"), ("2", "3")]
    for given in (episodes, tmp_path, str(tmp_path)):
        assert said(read_pairs(given, POLICY, "tetrathlon/Count-v0", most=9).pairs) == wanted
    own = [Pair(episodes[0], episodes[1])]  # somebody else's word, whatever was paid
    assert said(read_pairs(own, POLICY, "tetrathlon/Count-v0").pairs) == [("1", "2")]
    assert unflat(flat(own)) == own


def test_nothing_to_learn_from_is_said() -> None:
    with pytest.raises(ValueError, match=r"no pair in what was given: 1 starts .*, 1 of them with equal pay; 0 episod"):
        read_pairs([answer("1", 1.0), answer("2", 1.0)], POLICY)
    with pytest.raises(ValueError, match="no pair in what was given"):
        read_pairs([], POLICY)
    with pytest.raises(ValueError, match="an episode of a pair has no step"):
        read_pairs([Pair(answer("1", 1.0), Episode())], POLICY)
    with pytest.raises(ValueError, match="must be of tetrathlon/Math-v0, and episode 0 is of tetrathlon/Count-v0"):
        read_pairs([Pair(answer("1", 1.0, env="tetrathlon/Count-v0"), answer("2", 0.0))], POLICY, "tetrathlon/Math-v0")


def test_agreement_of_a_scorer() -> None:
    pairs = [Pair(answer(str(i), 1.0), answer("0", 0.0)) for i in (1, 2, 3, 4)]

    def scorer(episodes: Any) -> list[float | None]:
        told = {"0": 0.0, "1": 5.0, "2": -5.0, "3": 0.0, "4": None}
        return [told[episode.steps[0].action] for episode in episodes]

    assert agreement(scorer, pairs) == (1 + 0 + 0.5 + 0) / 4
