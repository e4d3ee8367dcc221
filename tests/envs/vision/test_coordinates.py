"""Conventions of coordinates, and what a resize does to them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tetrathlon.envs.vision.coordinates import (
    CONVENTIONS,
    K1000,
    PX,
    UNIT,
    XYWH,
    YXYX,
    Convention,
    Malformed,
    Resize,
    convention,
    smart_resize,
)

SIZE = (1280, 720)
BOX = [320.0, 360.0, 960.0, 720.0]
EACH = pytest.mark.parametrize("each", CONVENTIONS.values(), ids=CONVENTIONS)


@pytest.mark.parametrize(
    ("each", "box", "point"),
    [
        (PX, [320, 360, 960, 720], [320, 360]),
        (UNIT, [0.25, 0.5, 0.75, 1.0], [0.25, 0.5]),
        (K1000, [250, 500, 750, 1000], [250, 500]),
        (XYWH, [320, 360, 640, 360], [320, 360]),
        (YXYX, [360, 320, 720, 960], [360, 320]),
    ],
    ids=CONVENTIONS,
)
def test_the_same_place_in_each_convention(each: Convention, box: list[float], point: list[float]) -> None:
    assert each.to_px(box, SIZE).tolist() == BOX
    assert each.from_px(BOX, SIZE).tolist() == box
    assert each.to_px(point, SIZE).tolist() == BOX[:2]
    assert each.from_px(BOX[:2], SIZE).tolist() == point
    assert each.to_px([[box, box]], SIZE).tolist() == [[BOX, BOX]]


@EACH
@pytest.mark.parametrize("size", [(1280, 720), (333, 1001), (1, 1)])
def test_round_trips(each: Convention, size: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    points = rng.uniform(0, size, (200, 2, 2))
    boxes = np.concatenate([points.min(axis=1), points.max(axis=1)], axis=-1)
    for pixels in (boxes, points, np.array([0.0, 0.0, *size]), np.zeros((0, 4))):
        there = each.from_px(pixels, size)
        assert there.shape == pixels.shape
        np.testing.assert_allclose(each.to_px(there, size), pixels, rtol=1e-12, atol=1e-9)


@EACH
def test_reversed_boxes_are_malformed_and_never_sorted(each: Convention) -> None:
    for corners in ([0.5, 0.2, 0.1, 0.9], [0.1, 0.9, 0.5, 0.2], [0.5, 0.9, 0.1, 0.2]):
        scale = each.end or 100
        box = np.array(corners) * scale
        if each is XYWH:
            box[2:] -= box[:2]
        with pytest.raises(Malformed) as refused:
            each.to_px(box, SIZE)
        assert refused.value.reason == "reversed"
        with pytest.raises(Malformed):
            each.from_px(np.array(corners) * 100, SIZE)


@EACH
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_malformed(each: Convention, bad: float) -> None:
    for values in ([0.1, 0.2, bad, 0.9], [bad, 0.2], [[0.1, 0.2], [0.1, bad]]):
        with pytest.raises(Malformed) as refused:
            each.to_px(values, SIZE)
        assert refused.value.reason == "number"
        with pytest.raises(Malformed):
            each.from_px(values, SIZE)


def test_a_box_whose_end_is_no_float_is_malformed() -> None:
    with pytest.raises(Malformed) as refused:
        XYWH.to_px([1e308, 0, 1e308, 1], SIZE)
    assert refused.value.reason == "number"


@pytest.mark.parametrize(
    ("each", "values"),
    [
        (UNIT, [0.2, 0.2, 0.5, 1.0001]),
        (UNIT, [-0.0001, 0.2]),
        (UNIT, [20, 40, 100, 160]),
        (K1000, [20, 40, 100, 1001]),
        (K1000, [-1, 40]),
    ],
)
def test_out_of_range_is_malformed(each: Convention, values: list[float]) -> None:
    with pytest.raises(Malformed, match=f"{each.name} numbers are from 0 to") as refused:
        each.to_px(values, SIZE)
    assert refused.value.reason == "range"


@pytest.mark.parametrize("each", [UNIT, K1000], ids=["unit", "k1000"])
def test_pixels_outside_the_picture_are_in_no_grid(each: Convention) -> None:
    with pytest.raises(Malformed) as refused:
        each.from_px([-20, 0, 60, 40], SIZE)
    assert refused.value.reason == "range"


def test_pixels_may_be_outside_the_picture() -> None:
    assert PX.to_px([-20, -10, 5000, 40], SIZE).tolist() == [-20, -10, 5000, 40]


def test_nothing_is_guessed_from_the_numbers() -> None:
    assert PX.to_px([0, 0, 1, 1], SIZE).tolist() == [0, 0, 1, 1]
    assert UNIT.to_px([0, 0, 1, 1], SIZE).tolist() == [0, 0, 1280, 720]
    assert K1000.to_px([0, 0, 1, 1], SIZE).tolist() == [0, 0, 1.28, 0.72]
    assert XYWH.to_px([100, 50, 80, 60], SIZE).tolist() == [100, 50, 180, 110]


@EACH
def test_prompts_say_order_and_unit(each: Convention) -> None:
    box, point = each.box_says(SIZE), each.point_says(SIZE)
    assert f"[{', '.join(each.box_names)}]" in box
    assert f"[{', '.join(each.point_names)}]" in point
    for text in (box, point):
        if each.end is None:
            assert "pixels of the picture, which is 1280 wide and 720 high" in text
        else:
            assert f"to {each.end:g} (right, lower edge" in text and "pixel" not in text
    assert ("[y1, x1, y2, x2]" in box) is (each is YXYX)
    assert ("width and the height" in box) is (each is XYWH)


def test_conventions_have_names() -> None:
    assert list(CONVENTIONS) == ["px", "unit", "k1000", "xywh", "yxyx"]
    assert convention("k1000") is K1000
    with pytest.raises(ValueError, match=r"one of px, unit.*'norm'"):
        convention("norm")


@pytest.mark.parametrize("values", [[1, 2, 3], 5.0, [[1, 2, 3]]])
def test_wrong_shapes_are_refused(values: Any) -> None:
    with pytest.raises(ValueError, match="shape"):
        PX.to_px(values, SIZE)
    with pytest.raises(ValueError, match="shape"):
        Resize(SIZE, SIZE).to_seen(values)


SMART = [
    ((368, 434), (364, 448)),
    ((1080, 1920), (728, 1316)),
    ((3000, 4000), (840, 1148)),
    ((28, 28), (56, 56)),
    ((1, 200), (28, 812)),
    ((14, 28), (56, 84)),
    ((42, 70), (56, 56)),
    ((100, 100), (112, 112)),
]


@pytest.mark.parametrize(("size", "right"), SMART)
def test_smart_resize(size: tuple[int, int], right: tuple[int, int]) -> None:
    assert smart_resize(*size) == right


@pytest.mark.parametrize("factor", [28, 32])
def test_smart_resize_is_that_of_the_processor(factor: int) -> None:
    name = "transformers.models.qwen2_vl.image_processing_pil_qwen2_vl"
    peer = pytest.importorskip(name, exc_type=ImportError).smart_resize
    rng = np.random.default_rng(0)
    sizes = [size for size, _ in SMART] + rng.integers(1, 5000, (300, 2)).tolist()
    for height, width in sizes:
        for least, most in ((56 * 56, 1280 * 28 * 28), (4 * 28 * 28, 256 * 28 * 28), (65536, 16777216)):
            if max(height, width) / min(height, width) <= 200:
                ours = smart_resize(height, width, factor, least, most)
                assert ours == peer(height, width, factor, least, most)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 5), "height"),
        ((5, -1), "width"),
        ((5, 5.0), "width"),
        ((1, 201), "200 times"),
        ((5, 5, 0), "factor"),
        ((5, 5, 28, 10, 5), "min_pixels"),
        ((5, 5, 28, 10, 0), "max_pixels"),
    ],
)
def test_smart_resize_refuses(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        smart_resize(*arguments)


def test_resize_scales_each_axis_by_itself() -> None:
    resize = Resize.smart((4000, 3000))
    assert resize == Resize((4000, 3000), (1148, 840))
    seen = resize.to_seen([1000, 600, 2200, 1500])
    np.testing.assert_allclose(resize.to_original(seen), [1000, 600, 2200, 1500], rtol=1e-13)
    assert resize.to_original([287, 168, 287, 420]).tolist() == [1000, 600, 1000, 1500]
    assert resize.to_original([[1148, 840]]).tolist() == [[4000, 3000]]
    assert resize.to_seen([4000, 3000]).tolist() == [1148, 840]


@pytest.mark.parametrize("seed", range(3))
def test_places_come_back_from_any_resize(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(50):
        original = tuple(rng.integers(20, 4000, 2).tolist())
        resize = Resize.smart((original[0], original[1]))
        points = rng.uniform(0, original, (20, 2))
        np.testing.assert_allclose(resize.to_original(resize.to_seen(points)), points, rtol=1e-12)
        assert resize.to_original(resize.seen).tolist() == list(original)


def test_a_resize_has_two_sizes() -> None:
    with pytest.raises(ValueError, match="integers from 1"):
        Resize((0, 5), (5, 5))
