"""Functions to be written: their parameters, their cases, and what does not pass."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tetrathlon.envs.language.task import Task
from tetrathlon.envs.text.coding.data import encode, same
from tetrathlon.envs.text.coding.draft import Draft, Draw
from tetrathlon.envs.text.coding.tasks import FAMILIES, HIDDEN, Job, make_job

SEEDS = range(4)


def draft_of(name: str, seed: int) -> Draft:
    return FAMILIES[name](Draw(np.random.default_rng(seed)))


def passes(job: Job, function: Callable[..., Any]) -> bool:
    """Whether a function passes all hidden tests."""
    for case in job.hidden:
        try:
            if not same(encode(function(*case.arguments)), case.result):
                return False
        except Exception:  # a trivial program raises whatever it does on arguments that it was not made for
            return False
    return True


def test_there_are_many_kinds() -> None:
    assert len(FAMILIES) == 43
    assert len({draft_of(name, 0).name for name in FAMILIES}) == len(FAMILIES)


@pytest.mark.parametrize("name", FAMILIES)
def test_parameters_change_the_specification_and_the_function(name: str) -> None:
    drafts = [draft_of(name, seed) for seed in range(40)]
    by_spec = {draft.spec: draft.source for draft in drafts}
    assert len(by_spec) >= 8
    assert all(by_spec[draft.spec] == draft.source for draft in drafts)
    assert len(set(by_spec.values())) >= 0.9 * len(by_spec)


def test_the_specification_decides_everything() -> None:
    for name in FAMILIES:
        first, second = make_job(draft_of(name, 3), 3), make_job(draft_of(name, 3), 3)
        assert first.question == second.question and first.hidden == second.hidden


def test_instances_are_many_and_stand_in_both_splits() -> None:
    rng = np.random.default_rng(0)
    names = list(FAMILIES)
    specs = {FAMILIES[names[int(rng.integers(len(names)))]](Draw(rng)).spec for _ in range(5_000)}
    assert len(specs) > 2_500
    splits = [Task(spec, "").split for spec in specs]
    assert 0.15 < splits.count("test") / len(splits) < 0.25


@pytest.mark.parametrize("name", FAMILIES)
def test_hidden_tests_are_not_shown_and_not_trivial(name: str) -> None:
    for seed in SEEDS:
        job = make_job(draft_of(name, seed), 3)
        shown, hidden = ([repr(case.arguments) for case in cases] for cases in (job.shown, job.hidden))
        assert len(shown) == 3 and HIDDEN <= len(hidden) <= 16
        assert len(set(shown + hidden)) == len(shown + hidden)
        results = [repr(case.result) for case in job.hidden]
        assert max(map(results.count, results)) <= len(results) / 2
        assert len({repr(case.result) for case in job.shown}) >= 2
        assert all(repr(case.arguments)[1:-1].rstrip(",") in job.question for case in job.shown)


@pytest.mark.parametrize("name", FAMILIES)
def test_who_knows_no_specification_passes_nothing(name: str) -> None:
    for seed in SEEDS:
        job = make_job(draft_of(name, seed), 3)
        table = {repr(case.arguments): case.result for case in job.shown}
        first = job.shown[0].result
        trivial: dict[str, Callable[..., Any]] = {
            "look up what is shown": lambda *a, table=table, first=first: table.get(repr(a), first),
            "the last argument": lambda *a: a[-1],
            "the first argument": lambda *a: a[0],
            "sorted": lambda *a: sorted(a[0]),
            "reversed": lambda *a: a[0][::-1],
            "length": lambda *a: len(a[0]),
            "sum": lambda *a: sum(a[0]),
            "largest": lambda *a: max(a[0]),
            "smallest": lambda *a: min(a[0]),
            "first item": lambda *a: a[0][0],
            "words": lambda *a: a[0].split(),
            "text": lambda *a: str(a[0]),
        }
        constants = [None, 0, 1, -1, "", [], {}, True, False, *(case.result for case in job.shown + job.hidden)]
        trivial |= {f"constant {value!r}": lambda *a, value=value: value for value in constants}
        assert [what for what, function in trivial.items() if passes(job, function)] == []
        assert passes(job, job.draft.reference())


@pytest.mark.parametrize("name", FAMILIES)
def test_a_neighbour_of_the_specification_does_not_pass(name: str) -> None:
    """Other parameters of the same kind are another function, and the tests tell them apart."""
    caught = tried = 0
    drafts = [draft_of(name, seed) for seed in range(10)]
    for draft in drafts[:2]:
        job = make_job(draft, 3)
        for other in drafts:
            if other.spec != draft.spec and other.head == draft.head:
                tried += 1
                caught += not passes(job, other.reference())
    assert tried >= 4 and caught >= 0.9 * tried


class Replay(Draw):
    """Draws as it did before, but for one choice."""

    def __init__(self, seed: int, before: list[tuple[int, int, int]] | None = None, place: int = -1, value: int = 0):
        super().__init__(np.random.default_rng(seed))
        self.log: list[tuple[int, int, int]] = []
        self._before, self._place, self._value = before or [], place, value

    def between(self, low: int, high: int) -> int:
        value, place = super().between(low, high), len(self.log)
        if place == self._place:
            value = self._value
        elif place < len(self._before):
            value = min(max(self._before[place][0], low), high)
        self.log.append((value, low, high))
        return value


def neighbours(name: str, seed: int) -> list[Draft]:
    """Return the drafts that differ in one choice: the next numbers, or all options where there are few."""
    replay = Replay(seed)
    draft = FAMILIES[name](replay)
    found = {}
    for place, (value, low, high) in enumerate(replay.log):
        for other in range(low, high + 1):
            if other != value and (high - low <= 8 or abs(other - value) == 1):
                neighbour = FAMILIES[name](Replay(seed, replay.log, place, other))
                if neighbour.head == draft.head and neighbour.spec != draft.spec:
                    found[neighbour.spec] = neighbour
    return list(found.values())


@pytest.mark.parametrize("name", FAMILIES)
def test_the_nearest_neighbours_do_not_pass_unless_they_are_the_same_function(name: str) -> None:
    for seed in range(15):
        draft = draft_of(name, seed)
        job, function = make_job(draft, 3), draft.reference()
        for other in neighbours(name, seed):
            if passes(job, other.reference()):
                draw, stranger = Draw(np.random.default_rng(0)), other.reference()
                for kind in (draft, other) * 100:
                    arguments = kind.draw(draw)
                    assert function(*arguments) == stranger(*arguments), (draft.spec, other.spec, arguments)


def test_no_global_randomness_is_used() -> None:
    random.seed(5)
    np.random.seed(5)
    before = random.getstate(), repr(np.random.get_state())
    for name in FAMILIES:
        make_job(draft_of(name, 1), 3)
    assert (random.getstate(), repr(np.random.get_state())) == before


@pytest.mark.parametrize("examples", [0, 1, 6])
def test_examples_are_as_many_as_asked_for(examples: int) -> None:
    for name in FAMILIES:
        job = make_job(draft_of(name, 2), examples)
        assert len(job.shown) == examples and len(job.hidden) >= HIDDEN
        assert ("Examples:" in job.question) is bool(examples)


def written(name: str, *words: str) -> Callable[..., Any]:
    """Return the reference of the first draft of a kind whose specification has all ``words``."""
    drafts = (draft_of(name, seed) for seed in range(5_000))
    return next(draft for draft in drafts if all(word in draft.spec for word in words)).reference()


def test_values_by_hand() -> None:
    function = written("sum_where", "at least 3 counts 2 times")
    assert function([1, 3, 5, -2]) == 1 + 6 + 10 - 2
    function = written("best_window", "largest sum of 2 numbers", "Return -1 where")
    assert function([4, -1, 3, 3, -9]) == 6 and function([8]) == -1
    function = written("long_runs", "[item, length]", "at least 2", "runs of the item 0")
    assert function([1, 1, 0, 0, 2, 1, 1, 1]) == [[1, 2], [1, 3]]
    function = written("take_turns", "take 2 from the front of left, then 1", "append what is left")
    assert function([1, 2, 3], [7, 8, 9, 10]) == [1, 2, 7, 3, 8, 9, 10]
    function = written("count_pairs", "the sum is 5")
    assert function([1, 4, 4, 0, 5]) == 3
    function = written("bracket_depth", "() and []", "or -1 where")
    assert [function(text) for text in ("", "a([b])c", "([)]", "((", "][")] == [0, 2, -1, -1, -1]
    function = written("wrap_words", "at most 8 characters", "joined by '-'")
    assert function(["abc", "defg", "h", "ijklmnopqrs", "t"]) == ["abc-defg", "h", "ijklmnopqrs", "t"]
    function = written("to_digits", "base 2,", "most significant first", "fewer than 4")
    assert function(5) == [0, 1, 0, 1] and function(0) == [0] * 4 and function(37) == [1, 0, 0, 1, 0, 1]
    function = written("count_primes", "both included", "remainder 1 when divided by 4")
    assert function(5, 29) == 4  # 5, 13, 17, 29
    function = written("coin_ways", "2, 3 and 5", "how many ways")
    assert function(10) == 4 and function(1) == 0 and function(0) == 1  # 5+5, 5+3+2, 3+3+2+2, 2*5
    function = written("edit_cost", "insert a character costs 1,", "delete one costs 1 ", "another costs 1")
    assert function("kitten", "sitting") == 3
    function = written("merge_intervals", "at most 0 between", "at least 1,")
    assert function([[5, 9], [1, 3], [3, 4], [12, 12], [8, 11]]) == [[1, 4], [5, 11]]
    function = written("turn_grid", "90 degrees clockwise. Then multiply by 5", "multiple of 2")
    assert function([[1, 2], [4, 5]]) == [[20, 1], [5, 10]]
    function = written("count_regions", "'#'", "at least 2", "touching at a corner")
    assert function(["#..", ".#.", "..#"]) == 1 and function(["#.#", "...", "#.#"]) == 0
    function = written("grid_paths", "'#'", "to the right", "or both at once")
    assert function(["..", ".."]) == 3 and function([".#", ".."]) == 2 and function(["#."]) == 0
    function = written("flatten", "one level", "less than 0")
    assert function([1, [2, [-1, 3]], -5]) == [1, 2, [3]]
    function = written("run_stack", "by 3;", "or -1 if")
    assert function("4 mul 5 sub") == 7 and function("mul") == -1 and function("") == -1
