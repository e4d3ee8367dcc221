"""What is drawn, and what is known of it: areas, boxes and masks against geometry."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest

from tetrathlon.envs.vision.drawing import Drawing
from tetrathlon.envs.vision.scene import Ellipse, Line, Mark, Polygon, Rectangle, Scene, Text

RED, BLUE, WHITE = (200, 30, 30), (20, 60, 180), (255, 255, 255)


def drawn(*marks: Mark, size: int = 64, noise: float = 0.0, seed: int = 0) -> Drawing:
    return Drawing(Scene(width=size, height=size, marks=marks, noise=noise, noise_seed=seed))


def test_a_rectangle_is_exactly_where_it_is() -> None:
    drawing = drawn(Rectangle(box=(10, 20, 30, 25), color=RED, tag="a"))
    expected = np.full((64, 64, 3), 255, np.uint8)
    expected[20:25, 10:30] = RED
    assert (drawing.picture == expected).all()
    assert drawing.box("a") == (10, 20, 30, 25)
    assert (drawing.mask(["a"]) == (expected != 255).any(axis=-1)).all()


@pytest.mark.parametrize("x", [10.25, 10.5, 10.75])
def test_an_edge_within_a_pixel_is_mixed_by_its_share(x: float) -> None:
    picture = drawn(Rectangle(box=(x, 0, 20, 64), color=(0, 0, 0), tag="a")).picture
    assert abs(float(picture[5, 10, 0]) / 255 - (x - 10)) <= 0.5 / 255
    assert (picture[5, 11:20] == 0).all() and (picture[5, 20:] == 255).all()


@pytest.mark.parametrize(
    ("mark", "area"),
    [
        (Ellipse(box=(8, 8, 48, 48), color=RED, tag="a"), math.pi * 20**2),
        (Ellipse(box=(8, 20, 48, 40), color=RED, tag="a"), math.pi * 20 * 10),
        (Polygon(points=((10, 10), (50, 10), (30, 50)), color=RED, tag="a"), 800.0),
        (Line(points=((10, 32), (50, 32)), width=4, color=RED, tag="a"), 160.0),
    ],
)
def test_masks_have_the_areas_of_their_shapes(mark: Mark, area: float) -> None:
    drawing = drawn(mark)
    assert drawing.mask(["a"]).sum() == pytest.approx(area, rel=0.03)
    share = (255 - drawing.picture[..., 1].astype(float)) / (255 - RED[1])
    assert share.sum() == pytest.approx(area, rel=0.03)


def test_what_is_behind_something_is_not_seen_there() -> None:
    behind = Rectangle(box=(10, 10, 30, 30), color=RED, tag="behind")
    front = Rectangle(box=(20, 0, 40, 64), color=BLUE, tag="front")
    drawing = drawn(behind, front)
    assert drawing.box("behind") == (10, 10, 20, 30)
    assert drawing.mask(["behind"]).sum() == 200
    assert drawing.mask(["behind", "front"]).sum() == 200 + 20 * 64
    assert drawn(behind, Rectangle(box=(0, 0, 64, 64), color=BLUE)).box("behind") is None


def test_what_leaves_the_picture_ends_at_its_edge() -> None:
    assert drawn(Rectangle(box=(-5, 60, 5, 80), color=RED, tag="a")).box("a") == (0, 60, 5, 64)
    assert drawn(Rectangle(box=(70, 70, 80, 80), color=RED, tag="a")).box("a") is None


@pytest.mark.parametrize("angle", [0.0, 90.0, 30.0])
def test_text_is_about_its_middle_and_turns_with_its_angle(angle: float) -> None:
    box = drawn(Text(text="HHHH", at=(32, 32), size=12, angle=angle, color=(0, 0, 0), tag="t")).box("t")
    assert box is not None
    x1, y1, x2, y2 = box
    assert (x1 + x2) / 2 == pytest.approx(32, abs=1) and (y1 + y2) / 2 == pytest.approx(32, abs=1)
    wide = x2 - x1 > y2 - y1
    assert wide == (angle != 90)
    assert 20 < max(x2 - x1, y2 - y1) < 40


def test_the_picture_shows_each_object_where_its_mask_is() -> None:
    """Where a mask ends the colour is at least half the object's own, and inside it is no other."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, y = rng.uniform(2, 40, 2).tolist()
        color = (0, int(rng.integers(0, 200)), 0)
        drawing = drawn(Ellipse(box=(x, y, x + 19.5, y + 13.25), color=color, tag="a"))
        mask = drawing.mask(["a"])
        share = (255 - drawing.picture[..., 0].astype(float)) / 255
        assert (share[mask] >= 0.5 - 1 / 255).all() and (share[~mask] < 0.5).all()
        inside = mask & np.roll(mask, 1, 0) & np.roll(mask, -1, 0) & np.roll(mask, 1, 1) & np.roll(mask, -1, 1)
        assert inside.any() and (drawing.picture[inside] == color).all()


def test_noise_is_that_of_its_seed_and_changes_no_mask() -> None:
    square = Rectangle(box=(10, 10, 30, 30), color=(128, 128, 128), tag="a")
    plain, one, same, other = drawn(square), *(drawn(square, noise=20, seed=seed) for seed in (1, 1, 2))
    assert (one.picture == same.picture).all() and (one.picture != other.picture).any()
    inside = one.picture[10:30, 10:30].astype(float) - 128
    assert abs(inside.mean()) < 2 and inside.std() == pytest.approx(20, rel=0.1)
    assert (one.mask(["a"]) == plain.mask(["a"])).all()


def test_large_pictures_are_as_exact() -> None:
    drawing = drawn(Ellipse(box=(100, 100, 300, 300), color=RED, tag="a"), size=512)
    assert drawing.scale == 2 and drawing.picture.shape == (512, 512, 3)
    assert drawing.mask(["a"]).sum() == pytest.approx(math.pi * 100**2, rel=0.01)


def test_a_scene_of_too_many_marks_is_refused() -> None:
    marks = (Rectangle(box=(0, 0, 1, 1), color=RED),) * 256
    with pytest.raises(ValueError, match="at most 255 marks, got 256"):
        Scene(width=8, height=8, marks=marks)


def test_data_decide_the_picture_in_every_process() -> None:
    program = (
        "from tests.envs.vision.test_drawing import *\n"
        "import hashlib\n"
        "d = drawn(Text(text='47', at=(20, 20), angle=20, color=RED), Ellipse(box=(30, 30, 50, 44), color=BLUE))\n"
        "print(hashlib.sha256(d.picture.tobytes()).hexdigest())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


def test_as_data_tells_scenes_apart() -> None:
    square = Rectangle(box=(1, 1, 5, 5), color=RED, tag="a")
    scenes = [
        Scene(width=8, height=8, marks=(square,)),
        Scene(width=8, height=8, marks=(Ellipse(box=(1, 1, 5, 5), color=RED, tag="a"),)),
        Scene(width=8, height=8, background=BLUE, marks=(square,)),
        Scene(width=8, height=8, marks=(square,), noise=1.0),
        Scene(width=8, height=8, marks=(Rectangle(box=(1, 1, 5, 5), color=RED, tag="b"),)),
    ]
    assert len({str(scene.as_data()) for scene in scenes}) == 5
