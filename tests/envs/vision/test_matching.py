"""Sets of boxes: matched one to one, at their best, and no pay for spraying."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tetrathlon.envs.vision.boxes import ious
from tetrathlon.envs.vision.matching import match
from tetrathlon.envs.vision.reading import MOST_BOXES

SIZE = (640, 480)
GOLD: list[list[float]] = [[0, 0, 10, 10], [100, 100, 140, 140], [300, 200, 340, 260]]


def test_all_right_in_any_order() -> None:
    for order in itertools.permutations(range(3)):
        found = match([GOLD[index] for index in order], GOLD, SIZE)
        assert found.pairs == tuple(enumerate(order))
        assert found.precision == found.recall == found.f1 == found.score == found.overlap == 1.0


def test_some_missing_and_some_wrong() -> None:
    missing = match(GOLD[:2], GOLD, SIZE)
    assert (missing.precision, missing.recall, missing.f1) == (1.0, 2 / 3, 0.8)
    assert missing.score == 2 / 3
    wrong = match([*GOLD, [500.0, 0.0, 520.0, 20.0]], GOLD, SIZE)
    assert (wrong.precision, wrong.recall, wrong.f1) == (0.75, 1.0, pytest.approx(6 / 7))
    assert wrong.score == 0.75


def test_a_box_is_counted_once() -> None:
    twice = match([GOLD[0], GOLD[0]], GOLD[:1], SIZE)
    assert len(twice.pairs) == 1
    assert twice.f1 == pytest.approx(2 / 3)
    assert twice.score == 0.5
    one_for_two = match([[0, 0, 10, 10]], [[0, 0, 10, 10], [0, 0, 10, 11]], SIZE)
    assert len(one_for_two.pairs) == 1


def test_the_matching_is_the_best_one_where_a_greedy_one_is_not() -> None:
    gold = [[0, 0, 10, 10], [0, 0, 10, 16]]
    told = [[0, 0, 10, 12], [0, 0, 10, 7]]  # the first is nearer to both; the second is near the first gold box only
    table = ious(told, gold)
    assert table[0, 0] > table[0, 1] >= 0.5 and table[1, 0] >= 0.5 > table[1, 1]
    assert match(told, gold, SIZE).pairs == ((0, 1), (1, 0))


def test_two_pairs_are_better_than_one_perfect_pair() -> None:
    gold = [[0, 0, 10, 10], [0, 0, 10, 22]]
    told: list[list[float]] = [[0, 0, 10, 10], [0, 0, 10, 4.5]]
    found = match(told, gold, SIZE, threshold=0.4)
    assert found.pairs == ((0, 1), (1, 0))
    assert found.overlap == pytest.approx((100 / 220 + 0.45) / 2)


def test_the_matching_is_that_of_all_permutations() -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        corners = rng.uniform(0, 12, (7, 2))
        boxes = np.concatenate([corners, corners + rng.uniform(8, 20, (7, 2))], axis=1)
        told, gold = boxes[:4], boxes[4:]
        table = ious(told, gold)
        best = max(
            (
                sum(table[row, column] >= 0.4 for column, row in enumerate(rows)),
                sum(table[row, column] for column, row in enumerate(rows) if table[row, column] >= 0.4),
            )
            for rows in itertools.permutations(range(4), 3)
        )
        found = match(told, gold, SIZE, threshold=0.4)
        assert len(found.pairs) == best[0]
        assert found.overlap * len(found.pairs) == pytest.approx(best[1])


def test_the_threshold_itself_counts() -> None:
    half = [[0.0, 0.0, 10.0, 5.0]]
    assert match(half, [[0, 0, 10, 10]], SIZE, threshold=0.5).score == 1.0
    assert match([[0.0, 0.0, 10.0, 1.0], *half], [[0, 0, 10, 10]], SIZE, threshold=0.5).pairs == ((1, 0),)
    assert match(half, [[0, 0, 10, 10]], SIZE, threshold=0.51).score == 0.0
    assert match([[0, 0, 0, 0]], [[0, 0, 10, 10]], SIZE, threshold=1e-9).pairs == ()


def test_nothing_told_and_nothing_there() -> None:
    both = match([], [], SIZE)
    assert both.precision == both.recall == both.f1 == both.score == 1.0
    for told, gold in (([], GOLD), (GOLD, [])):
        one: Any = match(told, gold, SIZE)
        assert one.precision == one.recall == one.f1 == one.score == one.overlap == 0.0


def test_spraying_pays_nothing_extra() -> None:
    """Guesses on a grid, each as likely to hit: more of them never pay more on average."""
    cells = [[x, y, x + 64.0, y + 48.0] for x in range(0, 640, 64) for y in range(0, 480, 48)]
    pay = [np.mean([match(cells[:count], [cell], SIZE).score for cell in cells]) for count in (1, 2, 5, 20, 50, 100)]
    assert pay == pytest.approx([0.01] * 6)
    by_f1 = [np.mean([match(cells[:count], [cell], SIZE).f1 for cell in cells]) for count in (1, 20)]
    assert by_f1[1] > by_f1[0]  # which is why the score is not F1


@pytest.mark.parametrize("extra", [1, 3, 50])
def test_a_wrong_box_more_never_pays(extra: int) -> None:
    wrong: list[list[float]] = [[500, 300, 500.5 + index, 301] for index in range(extra)]
    assert match([*GOLD, *wrong], GOLD, SIZE).score < match([*GOLD, *wrong[:-1]], GOLD, SIZE).score
    assert match([GOLD[0], *wrong], GOLD, SIZE).score <= match(GOLD[:1], GOLD, SIZE).score
    assert match([GOLD[0], *wrong, GOLD[1]], GOLD, SIZE).score > match([GOLD[0], *wrong], GOLD, SIZE).score


def test_too_many_boxes_match_nothing() -> None:
    assert match(GOLD[:1] * MOST_BOXES, GOLD, SIZE).pairs
    many = match(GOLD[:1] * (MOST_BOXES + 1), GOLD, SIZE)
    assert (many.pairs, many.score) == ((), 0.0)


@pytest.mark.parametrize("box", [[0, 0, 640, 480], [-1e9, -1e9, 1e9, 1e9], [np.nan] * 4, [10, 10, 0, 0]])
def test_boxes_that_match_nothing(box: list[float]) -> None:
    assert match([box], GOLD, SIZE).score == 0.0
    assert match([box] * 3, GOLD, SIZE).score == 0.0


def test_predictions_are_clipped() -> None:
    assert match([[-100, -100, 10, 10]], GOLD[:1], SIZE).score == 1.0


@pytest.mark.parametrize("threshold", [0, -0.5, 1.01, float("nan")])
def test_a_wrong_threshold_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold"):
        match(GOLD, GOLD, SIZE, threshold=threshold)


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        match([[1, 2, 3]] * 4, GOLD, SIZE)
