"""Which starts come, and in which order."""

from __future__ import annotations

from collections import Counter

from tetrathlon.algos.starts import Starts


def test_new_starts_never_come_again_and_are_those_of_the_seed() -> None:
    one, other = Starts(3), Starts(3)
    seeds = [one.next() for _ in range(1000)]
    assert seeds == [other.next() for _ in range(1000)] and len(set(seeds)) == 1000
    assert Starts(4).next() not in seeds


def test_instances_come_once_a_lap_in_another_order() -> None:
    starts = Starts(3, instances=20)
    laps = [[starts.next() for _ in range(20)] for _ in range(3)]
    assert all(sorted(lap) == sorted(laps[0]) for lap in laps) and len(set(laps[0])) == 20
    assert laps[0] != laps[1] != laps[2]
    endless = Starts(3)
    assert set(laps[0]) == {endless.next() for _ in range(20)}


def test_what_is_solved_comes_with_its_weight() -> None:
    starts = Starts(1, instances=10, solved_weight=0.25)
    solved = starts.next()
    starts.note(solved, True)
    count = Counter(starts.next() for _ in range(4000))
    rest = (4000 - count[solved]) / 9
    assert 0.18 < count[solved] / rest < 0.32
    starts.note(solved, False)
    assert starts.solved == 0
    before = Counter(starts.next() for _ in range(1000))[solved]
    assert before == 100 or abs(before - 100) <= 1


def test_something_is_played_when_all_is_solved() -> None:
    starts = Starts(1, instances=5, solved_weight=0.0)
    for _ in range(5):
        starts.note(starts.next(), True)
    assert starts.solved == 5 and len({starts.next() for _ in range(40)}) > 1


def test_they_go_on_where_they_were() -> None:
    starts = Starts(2, instances=7, solved_weight=0.5)
    for number in range(11):
        starts.note(starts.next(), number % 2 == 0)
    twin = Starts(2, instances=7, solved_weight=0.5)
    twin.load_state_dict(starts.state_dict())
    assert [twin.next() for _ in range(30)] == [starts.next() for _ in range(30)]
