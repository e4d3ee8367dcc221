"""Counting: what is covered hides the number, and tells nothing of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import gymnasium as gym
import pytest

import tetrathlon  # noqa: F401  (registers the ids)
from tetrathlon.envs.vision.drawing import Drawing
from tetrathlon.envs.vision.layout import near
from tetrathlon.envs.vision.scene import Bounds
from tetrathlon.envs.vision.task import VisionTask

ARGUMENTS: list[dict[str, Any]] = [{}, {"most": 3, "clutter": 1, "diameter": 14}, {"clutter": 8, "colors": 2}]


def tasks(n: int, **kwargs: Any) -> list[VisionTask]:
    env: Any = gym.make("tetrathlon/Count-v0", disable_env_checker=True, **kwargs).unwrapped
    found = []
    for seed in range(n):
        env.reset(seed=seed)
        found.append(env._task)
    return found


def things(task: VisionTask) -> list[Bounds]:
    drawn = Drawing(task.view.scene)
    boxes = [drawn.box(mark.tag) for mark in task.view.scene.marks]
    return [box for box in boxes if box is not None]


@pytest.mark.parametrize("kwargs", ARGUMENTS, ids=str)
def test_covers_are_alike_and_hide_things_as_a_whole(kwargs: dict[str, Any]) -> None:
    for task in tasks(60, **kwargs):
        number = int(task.view.answer)
        for hidden, is_evidence in ((task.covers, True), (task.decoys, False)):
            assert len({(x2 - x1, y2 - y1) for x1, y1, x2, y2 in hidden}) == 1
            assert not any(near(one, other, 1.0) for i, one in enumerate(hidden) for other in hidden[:i])
            for i, (x1, y1, x2, y2) in enumerate(things(task)):
                held = [c[0] <= x1 and c[1] <= y1 and c[2] >= x2 and c[3] >= y2 for c in hidden]
                touched = [near(c, (x1, y1, x2, y2), 0.0) for c in hidden]
                assert held == touched, "a thing is covered whole or not at all"
                if i < number:
                    assert any(held) is is_evidence
        assert len(task.covers) == len(task.decoys)


def test_what_finds_no_place_is_refused_before_it_begins() -> None:
    for kwargs in ({"most": 9}, {"clutter": 12}, {"most": 12, "diameter": 8}, {"most": 12, "size": 128, "diameter": 8}):
        assert len(tasks(30, **kwargs)) == 30
    for kwargs in ({"most": 11}, {"most": 12, "clutter": 0}, {"diameter": 14}):
        with pytest.raises(ValueError, match=r"places of \d+ pixels.* do not fit into a picture of 64; make most"):
            tasks(1, **kwargs)


@pytest.mark.parametrize("kwargs", ARGUMENTS, ids=str)
def test_what_a_masked_picture_shows_does_not_tell_the_number(kwargs: dict[str, Any]) -> None:
    """Of the best map from what is seen beside and of the covers, made on half of the pictures, on the other half."""
    numbers: dict[Any, Counter[int]] = defaultdict(Counter)
    right, n, found = 0, 1500, tasks(3000, **kwargs)
    for i, task in enumerate(found):
        seen = [box for box in things(task) if not any(near(cover, box, 0.0) for cover in task.covers)]
        gaps = sum(near(one, other, 4.0) for j, one in enumerate(task.covers) for other in task.covers[:j])
        features = (len(task.covers), task.covers[0][2] - task.covers[0][0], len(seen), min(gaps, 3))
        number = int(task.view.answer)
        if i < n:
            numbers[features][number] += 1
        else:
            right += bool(numbers[features]) and numbers[features].most_common(1)[0][0] == number
    floor = 1 / kwargs.get("most", 6)
    assert right / n < floor + 4 * (floor * (1 - floor) / n) ** 0.5
