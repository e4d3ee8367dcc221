"""Places: apart, within their area, and covers that cover all of the evidence and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from tetrathlon.envs.language.chance import Chance
from tetrathlon.envs.vision.layout import covering, grown, near, scattered
from tetrathlon.envs.vision.scene import Bounds

AREA: Bounds = (0, 0, 64, 64)


def overlap(a: Bounds, b: Bounds) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


@pytest.mark.parametrize("gap", [0.0, 1.0, 3.0])
def test_scattered_boxes_are_apart_and_inside(gap: float) -> None:
    for seed in range(50):
        boxes = scattered(Chance(np.random.default_rng(seed)), [(10, 8)] * 6, AREA, gap=gap, taken=[(20, 20, 40, 40)])
        assert boxes is not None and len(boxes) == 6
        for i, box in enumerate(boxes):
            assert box[0] >= 0 and box[1] >= 0 and box[2] <= 64 and box[3] <= 64
            assert (box[2] - box[0], box[3] - box[1]) == (10, 8)
            for other in (*boxes[:i], (20, 20, 40, 40)):
                assert not near(box, other, gap) and overlap(box, other) == 0


def test_every_place_comes_up() -> None:
    seen = {
        boxes[0][:2]
        for seed in range(400)
        if (boxes := scattered(Chance(np.random.default_rng(seed)), [(60, 61)], AREA)) is not None
    }
    assert seen == {(x, y) for x in range(5) for y in range(4)}


@pytest.mark.parametrize("sizes", [[(65, 4)], [(4, 65)], [(40, 40), (40, 40)]])
def test_what_finds_no_place_is_none(sizes: list[tuple[float, float]]) -> None:
    assert scattered(Chance(np.random.default_rng(0)), sizes, AREA) is None


def test_covers_cover_and_decoys_do_not() -> None:
    evidence: list[Bounds] = [(10.25, 10, 20, 20.5), (30, 30, 38, 41)]
    for seed in range(20):
        hidden = covering(Chance(np.random.default_rng(seed)), evidence, AREA)
        assert hidden is not None
        covers, decoys = hidden
        for box, cover in zip(evidence, covers, strict=True):
            assert overlap(box, cover) == (box[2] - box[0]) * (box[3] - box[1])
            assert cover == grown(box, 1, AREA)
        assert all(overlap(decoy, box) == 0 for decoy in decoys for box in evidence)
        shapes = [[(b[2] - b[0], b[3] - b[1]) for b in boxes] for boxes in hidden]
        assert shapes[0] == shapes[1]


def test_a_cover_stays_in_the_picture() -> None:
    assert grown((0, 60.5, 10, 64), 2, AREA) == (0, 58, 12, 64)
