"""Boxes: what they cover of one another, in one contract."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetrathlon.envs.vision.boxes import area, box_of, checked_size, clip, clipped_iou, contains, gold_box, iou, ious

BOX = [20.0, 40.0, 100.0, 160.0]
EMPTY: list[list[float]] = [
    [5, 5, 5, 5],
    [5, 0, 5, 10],
    [0, 5, 10, 5],
    [120, 90, 40, 30],
    [120, 30, 40, 90],
    [40, 90, 120, 30],
    [math.nan, 0, 10, 10],
    [0, 0, 10, math.nan],
    [0, 0, math.inf, 10],
    [-math.inf, -math.inf, math.inf, math.inf],
    [60, 40, math.inf, 160],
    [-math.inf, 40, 60, 160],
    [math.nan] * 4,
]


@pytest.mark.parametrize(
    ("a", "b", "right"),
    [
        (BOX, BOX, 1.0),
        (BOX, [20.5, 40, 100.25, 160], 79.5 / 80.25),
        ([0, 0, 10, 10], [5, 5, 15, 15], 25 / 175),
        ([0, 0, 10, 10], [2, 2, 4, 4], 4 / 100),
        ([0, 0, 10, 10], [10, 0, 20, 10], 0.0),
        ([0, 0, 10, 10], [10, 10, 20, 20], 0.0),
        ([0, 0, 10, 10], [30, 30, 40, 40], 0.0),
        ([0, 0, 1, 1], [0, 0, 1, 1], 1.0),
        ([-3, -3, -1, -1], [-3, -3, -1, -1], 1.0),
        ([0.1, 0.1, 0.3, 0.3], [0.1, 0.1, 0.3, 0.3], 1.0),
    ],
)
def test_iou_of_known_boxes(a: list[float], b: list[float], right: float) -> None:
    assert iou(a, b) == iou(b, a) == pytest.approx(right, abs=1e-15)


@pytest.mark.parametrize("empty", EMPTY, ids=str)
def test_an_empty_box_covers_nothing(empty: list[float]) -> None:
    assert iou(empty, BOX) == iou(BOX, empty) == iou(empty, empty) == 0.0
    assert area(empty) == 0.0
    assert clipped_iou(empty, BOX, (640, 480)) == 0.0 or not np.isfinite(empty).all()
    for value in (iou(empty, BOX), float(area(empty))):
        assert math.copysign(1, value) == 1


@pytest.mark.parametrize("huge", [1e308, 1e200, 1e160])
def test_areas_too_large_for_a_float_are_no_overlap(huge: float) -> None:
    box = [-huge, -huge, huge, huge]
    assert iou(box, box) == iou(box, BOX) == 0.0
    assert clipped_iou(box, [0, 0, 640, 480], (640, 480)) == 1.0


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.floats(), min_size=4, max_size=4), min_size=2, max_size=2))
def test_iou_is_always_from_0_to_1(boxes: list[list[float]]) -> None:
    a, b = boxes
    assert 0.0 <= iou(a, b) <= 1.0
    assert iou(a, b) == iou(b, a)
    assert 0.0 <= clipped_iou(a, b, (640, 480)) <= 1.0


def test_pairs_are_those_of_single_boxes() -> None:
    rng = np.random.default_rng(0)
    corners = rng.uniform(0, 50, (30, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(-5, 30, (30, 2))], axis=1)
    table = ious(boxes[:12], boxes[12:])
    assert table.shape == (12, 18)
    for row in range(12):
        for column in range(18):
            assert table[row, column] == iou(boxes[row], boxes[12 + column])
    assert ious([], boxes).shape == (0, 30)
    assert ious(boxes, np.zeros((0, 4))).shape == (30, 0)


def test_iou_is_that_of_counted_pixels() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        masks = np.zeros((2, 20, 30), dtype=bool)
        boxes = []
        for mask in masks:
            x1, y1 = rng.integers(0, [29, 19])
            x2, y2 = rng.integers([x1 + 1, y1 + 1], [31, 21])
            mask[y1:y2, x1:x2] = True
            boxes.append(box_of(mask))
            assert boxes[-1].tolist() == [x1, y1, x2, y2]
            assert area(boxes[-1]) == mask.sum()
        assert iou(*boxes) == pytest.approx((masks[0] & masks[1]).sum() / (masks[0] | masks[1]).sum(), abs=1e-15)


def test_predictions_are_clipped_to_the_picture() -> None:
    assert clip([[-20, -10, 60, 40], [700, 500, 900, 600]], (640, 480)).tolist() == [[0, 0, 60, 40], [640, 480] * 2]
    assert clipped_iou([-20, -10, 60, 40], [0, 0, 60, 40], (640, 480)) == 1.0
    assert clipped_iou([700, 500, 900, 600], [600, 400, 640, 480], (640, 480)) == 0.0
    assert clipped_iou([0, 0, 640, 480], [10, 10, 30, 30], (640, 480)) == pytest.approx(400 / 307200)
    with pytest.raises(ValueError, match="shape"):
        clipped_iou([BOX, BOX], BOX, (640, 480))


@pytest.mark.parametrize(
    ("point", "is_in"),
    [((20, 40), True), ((99.999, 159.999), True), ((100, 100), False), ((50, 160), False), ((19.999, 40), False)],
)
def test_a_box_holds_its_left_and_upper_edge_only(point: tuple[float, float], is_in: bool) -> None:
    assert contains(BOX, point) is is_in


def test_no_empty_box_holds_a_point_and_no_box_a_point_that_is_none() -> None:
    for empty in EMPTY:
        assert not contains(empty, (5, 5))
    for point in ((math.nan, 50.0), (50.0, math.nan), (math.inf, 50.0)):
        assert not contains(BOX, point)
    with pytest.raises(ValueError, match="two numbers"):
        contains(BOX, (1, 2, 3))


@pytest.mark.parametrize(
    ("box", "message"),
    [
        ([5, 5, 5, 5], "x1 < x2"),
        ([5, 0, 5, 10], "x1 < x2"),
        ([0, 5, 10, 5], "y1 < y2"),
        ([120, 90, 40, 30], "x1 < x2"),
        ([0, 0, math.nan, 5], "finite"),
        ([0, 0, math.inf, 5], "finite"),
        ([-1, 0, 5, 5], "inside its picture, here 640 x 480"),
        ([0, 0, 641, 5], "inside"),
        ([0, 0, 5, 480.5], "inside"),
        ([0, 0, 5], "four numbers"),
        ([[0, 0, 5, 5]], "four numbers"),
    ],
)
def test_a_wrong_gold_box_is_refused(box: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gold_box(box, (640, 480))


def test_a_gold_box_may_be_the_picture() -> None:
    assert gold_box([0, 0, 640, 480], (640, 480)).tolist() == [0, 0, 640, 480]


def test_a_mask_without_a_pixel_has_no_box() -> None:
    with pytest.raises(ValueError, match="without a true pixel"):
        box_of(np.zeros((4, 5), dtype=bool))
    with pytest.raises(ValueError, match="bool array"):
        box_of(np.ones((4, 5)))  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [(0, 5), (5, -1), (5.0, 5), (5,), (5, 5, 3)])
def test_a_wrong_size_is_refused(size: Any) -> None:
    with pytest.raises(ValueError, match="integers from 1"):
        checked_size(size)


@pytest.mark.parametrize("boxes", [[1, 2, 3], [[1, 2, 3]], [[[1, 2, 3, 4]]]])
def test_wrong_shapes_are_refused(boxes: Any) -> None:
    with pytest.raises(ValueError, match="shape"):
        ious(boxes, [BOX])
