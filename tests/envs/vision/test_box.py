"""Boxes: the truth is what the picture shows, the floor is the best that no look can do, and nothing else pays."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import tetrathlon  # noqa: F401  (registers the ids)
from tetrathlon.envs import check
from tetrathlon.envs.hostile import TEXTS
from tetrathlon.envs.language.chance import Chance
from tetrathlon.envs.vision.boxes import iou, ious
from tetrathlon.envs.vision.coordinates import CONVENTIONS
from tetrathlon.envs.vision.drawing import Drawing
from tetrathlon.envs.vision.grid import Cells, Grid, touches
from tetrathlon.envs.vision.reading import read_box
from tetrathlon.envs.vision.things import COLORS
from tetrathlon.envs.vision.variants import VARIANTS

ARGUMENTS: list[dict[str, Any]] = [
    {},
    {"every": True},
    {"overlap": 0.4, "others": 12, "shapes": 6},
    {"every": True, "overlap": 0.3, "others": 12, "coordinates": "k1000", "aspect": 2},
    {"aspect": 3.0, "shapes": 6, "colors": 8, "coordinates": "xywh"},
    {"size": 256, "coordinates": "yxyx"},
    {"size": 96, "coordinates": "unit", "threshold": 0.9},
    {"cells": 16, "least": 2, "largest": 3, "every": True, "others": 0},
]
BLANK = np.zeros((8, 8, 3), np.uint8)
"""What is shown to who does not look: drawing takes long."""


def made(**kwargs: Any) -> Any:
    return gym.make("tetrathlon/Box-v0", disable_env_checker=True, **kwargs).unwrapped


def all_boxes(env: Any) -> np.ndarray:
    """Return every box that there can be, in pixels, without asking the grid for them."""
    edge = range(env.cells + 1)
    sides = range(env.least, env.largest + 1)
    found = [
        (x, y, x + w, y + h)
        for w in sides
        for h in sides
        if max(w, h) <= env.aspect * min(w, h)
        for x in edge
        if x + w <= env.cells
        for y in edge
        if y + h <= env.cells
    ]
    return np.array(found, dtype=np.float64) * (env.size / env.cells)


@pytest.mark.parametrize("kwargs", ARGUMENTS)
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_expert_is_right_and_the_truth_is_what_is_seen(kwargs: dict[str, Any], split: str) -> None:
    env = made(split=split, **kwargs)
    for seed in range(25):
        env.reset(seed=seed)
        task = env._task
        for variant in VARIANTS:
            env.reset(options={"task": task, "variant": variant})
            gold = env.view.data["boxes"]
            if variant in ("full", "twin"):
                drawn = Drawing(env.view.scene)
                assert [list(drawn.box(tag) or ()) for tag in env.view.evidence] == gold
            assert env.evidence()["boxes"] == gold
            _, reward, _, _, info = env.step(env.expert_action())
            assert reward == 1.0 and info["is_success"]
            nearness = info["scores"]["score" if env.every else "iou"]
            assert nearness == pytest.approx(float(variant != "masked"))


def test_the_box_is_the_one_around_the_pixels_of_the_colour() -> None:
    """Told from the picture alone, where no other thing has the colour."""
    env, looked = made(), 0
    for seed in range(60):
        observation, _ = env.reset(seed=seed)
        color = re.search(r"Where is the (\w+) ", observation["text"])
        assert color is not None
        others = {mark.color for mark in env.view.scene.marks if mark.tag == "other"}
        if COLORS[color[1]] in others:
            continue
        looked += 1
        ground = np.array(env.view.scene.background, dtype=float)
        away = np.array(COLORS[color[1]], dtype=float) - ground
        share = ((observation["image"] - ground) @ away) / (away @ away)
        straight = np.abs(observation["image"] - ground - share[..., None] * away).max(axis=-1) < 3
        mask = straight & (share > 0.02)
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        seen = [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]
        env.reset(seed=seed)
        _, reward, _, _, info = env.step(f"<answer>{[int(value) for value in seen]}</answer>")
        assert reward == 1.0 and info["scores"]["iou"] == 1.0, (seed, seen)
    assert looked > 15


@pytest.mark.parametrize("kwargs", ARGUMENTS)
def test_others_leave_what_is_asked_for_unambiguous(kwargs: dict[str, Any]) -> None:
    env = made(**kwargs)
    hidden = 0
    for seed in range(60):
        env.reset(seed=seed)
        task = env._task
        for variant in ("full", "twin"):
            env.reset(options={"task": task, "variant": variant})
            view = env.view
            mine = [mark for mark in view.scene.marks if mark.tag in view.evidence]
            assert len(mine) == len(view.data["boxes"]) and len({mark.color for mark in mine}) == 1
            for other in (mark for mark in view.scene.marks if mark.tag == "other"):
                assert type(other) is not type(mine[0]) or other.color != mine[0].color or env.shapes > 3
            drawn = Drawing(view.scene)
            for mark in mine:
                alone = Drawing(replace(view.scene, marks=(mark,))).mask([mark.tag])
                left = (drawn.mask([mark.tag]) & alone).sum() / alone.sum()
                assert left >= 1 - env.overlap
                hidden += left < 1
            for i, box in enumerate(view.data["boxes"]):
                assert all(iou(box, other) == 0 for other in view.data["boxes"][:i])
    assert bool(hidden) == bool(env.overlap)


@pytest.mark.parametrize("kwargs", ARGUMENTS)
def test_the_answer_of_one_picture_is_wrong_for_the_other(kwargs: dict[str, Any]) -> None:
    env = made(**kwargs)
    for seed in range(60):
        said = {}
        env.reset(seed=seed)
        task = env._task
        for variant in ("full", "twin"):
            env.reset(options={"task": task, "variant": variant})
            said[variant] = env.expert_action()
        for variant, other in (("full", "twin"), ("twin", "full"), ("masked", "full"), ("masked", "twin")):
            env.reset(options={"task": task, "variant": variant})
            assert env.step(said[other])[1] == 0.0


def test_the_twin_is_drawn_like_the_full_picture() -> None:
    grid = Grid(11, 2, 3, 1.0)
    assert grid.n == 181
    boxes: dict[str, Counter[Cells]] = {"full": Counter(), "twin": Counter()}
    chance, n = Chance(np.random.default_rng(0)), 60_000
    for _ in range(n):
        box = grid.draw(chance)
        other = grid.elsewhere(chance, box, 0.5)
        assert iou(box, other) < 0.5
        boxes["full"][box] += 1
        boxes["twin"][other] += 1
    for counted in boxes.values():
        numbers = np.array([*counted.values(), *[0] * (grid.n - len(counted))])
        chi_square = ((numbers - n / grid.n) ** 2).sum() / (n / grid.n)
        assert abs(chi_square - (grid.n - 1)) < 5 * (2 * (grid.n - 1)) ** 0.5


def test_a_grid_has_the_room_that_it_says() -> None:
    grid, chance = Grid(32, 4, 7, 1.0), Chance(np.random.default_rng(1))
    assert grid.has_room(3) and not grid.has_room(4)
    for _ in range(300):
        taken: list[Cells] = []
        while len(taken) < 3:
            taken.append(grid.draw(chance, taken))
        window = grid.window_apart(chance, taken)
        assert not touches(window, taken)
        around = grid.window_around(chance, taken[0])
        for shown in (window, around):
            assert shown[2] - shown[0] == shown[3] - shown[1] == 7
            assert min(shown) >= 0 and max(shown) <= 32
        assert all(a <= b for a, b in zip(around[:2], taken[0][:2], strict=True))
        assert all(a >= b for a, b in zip(around[2:], taken[0][2:], strict=True))
    left = [sum(not touches(grid._numbered(i), [box]) for i in range(grid.n)) for box in [(12, 12, 19, 19)]]
    assert grid.second() == min(left)


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"threshold": 0.7},
        {"threshold": 0.4},
        {"threshold": 1.0},
        {"coordinates": "k1000", "threshold": 0.7, "size": 96},
        {"coordinates": "xywh", "cells": 16, "least": 2, "largest": 4, "aspect": 2},
    ],
)
def test_the_floor_is_what_the_best_box_gets_over_all_boxes(kwargs: dict[str, Any]) -> None:
    env = made(**kwargs)
    every = all_boxes(env)
    guess = read_box(env.blind_answer(""), env._convention, (env.size, env.size)).pixels
    met = int((ious(guess, every) >= env.threshold).sum())
    assert len(every) == env._grid.n and met / len(every) == env.blind_floor
    rng = np.random.default_rng(0)
    corners = rng.uniform(0, env.size, (4_000, 2))
    sides = rng.uniform(0.5 * env.least, 1.5 * env.largest, (4_000, 2)) * env.size / env.cells
    near = guess + rng.normal(0, 0.3, (4_000, 4)) * env.size / env.cells
    tried = np.concatenate([np.concatenate([corners, corners + sides], axis=1), near, np.round(near)])
    for some in np.split(tried, 40):
        reach = (every[:, :2] < some[:, 2:].max(axis=0)) & (every[:, 2:] > some[:, :2].min(axis=0))
        meets = every[reach.all(axis=1)]  # the others are apart from all of these guesses
        assert (ious(some, meets) >= env.threshold).sum(axis=1).max() <= met


def test_the_floor_of_many_is_that_of_one_alone() -> None:
    one = made()
    for most in (2, 3):
        env = made(every=True, most=most)
        assert env.blind_floor == one.blind_floor / most
        assert env.blind_answer("") == f"[{one.blind_answer('')}]"
    n, paid = 2_000, 0.0
    env = made(every=True, most=2, cells=16, least=2, largest=3)
    env.picture = lambda: BLANK  # nobody looks
    for seed in range(n):
        observation, info = env.reset(seed=seed)
        paid += env.step(env.blind_action(observation["text"]))[1]
    deviation = (env.blind_floor * (1 - env.blind_floor) / n) ** 0.5
    assert abs(paid / n - env.blind_floor) < 4 * deviation
    assert info["blind_floor"] == env.blind_floor


def test_the_number_of_things_is_uniform_in_both_pictures() -> None:
    env = made(every=True)
    for variant in ("full", "twin"):
        numbers: Counter[int] = Counter()
        for seed in range(900):
            env.reset(seed=seed, options={"variant": variant})
            numbers[len(env.view.data["boxes"])] += 1
        assert sorted(numbers) == [1, 2, 3] and min(numbers.values()) > 240


def test_covers_tell_neither_how_many_nor_how_large() -> None:
    """Where the things are covered, the picture is the same for other things in the same windows."""
    for kwargs in ({}, {"every": True}, {"every": True, "size": 256}):
        env = made(**kwargs)
        window = 7 * env.size // 32 + 2
        for seed in range(40):
            env.reset(seed=seed, options={"variant": "masked"})
            task = env._task
            for boxes in (task.covers, task.decoys):
                assert len(boxes) == env.most
                for x1, y1, x2, y2 in boxes:  # those at an edge are cut by the pixel that they are larger
                    assert window - 1 <= x2 - x1 <= window and window - 1 <= y2 - y1 <= window
            kept = tuple(mark for mark in env.view.scene.marks if mark.tag not in env.view.evidence)
            assert (env.picture() == Drawing(replace(env.view.scene, marks=kept)).picture).all()


def test_scores_have_the_same_keys_at_every_step() -> None:
    for kwargs, name in (({}, "iou"), ({"every": True}, "score")):
        env = made(**kwargs)
        for said in ("<answer>[0, 0, 64, 64]</answer>", "", "<answer>unseen</answer>", "<answer>[NaN]</answer>"):
            for variant in VARIANTS:
                env.reset(seed=3, options={"variant": variant})
                _, reward, _, _, info = env.step(said)
                assert list(info["scores"]) == list(info["reward_terms"]) == ["correct", name]
                assert type(info["scores"][name]) is float and info["reward_terms"][name] == 0.0
                assert info["is_success"] == (reward == 1.0)
    env = made()
    env.reset(seed=3)
    (x1, y1, x2, y2) = env.view.data["boxes"][0]
    _, reward, _, _, info = env.step(f"<answer>{[x1, y1, x2, (y1 + y2) / 2]}</answer>")
    assert (reward, info["scores"]["iou"]) == (1.0, 0.5)
    env.reset(seed=3)
    _, reward, _, _, info = env.step(f"<answer>{[x1, y1, x2, (y1 + y2) / 2 - 0.01]}</answer>")
    assert reward == 0.0 and 0.49 < info["scores"]["iou"] < 0.5


def test_what_is_no_box_or_too_many_never_pays() -> None:
    env = made()
    env.reset(seed=5)
    x1, y1, x2, y2 = map(int, env.view.data["boxes"][0])
    wide = "".join(chr(0xFF10 + int(digit)) if digit.isdigit() else digit for digit in f"[{x1}, {y1}, {x2}, {y2}]")
    attacks = [
        *("[0, 0, 64, 64]", "[-1e9, -1e9, 1e9, 1e9]", "[NaN, NaN, NaN, NaN]", "[]", "[0, 0, 0, 0]", wide),
        *(f"[{x1}, {y1}, {x1}, {y2}]", f"[{x2}, {y2}, {x1}, {y1}]", f"[{y1}, {x1}, {y2}, {x2}]"),
        *(f"[{x1}, {y1}, {x2 - x1}, {y2 - y1}]", f"[{x1}, {y1}]", f"[{x1}, {y1}, {x2}, {y2}, 0]"),
        f"[{x1}, {y1}, {x2}, {y2}] or [0, 0, 64, 64]",
        f"[[{x1}, {y1}, {x2}, {y2}], [0, 0, 8, 8]]",
        f"[{x1}, {y1}, {x2}, {y2}" + "0" * 100_000 + "]",
        ", ".join(str([x, y, x + 12, y + 12]) for x in range(0, 52, 4) for y in range(0, 52, 4)),
        *TEXTS.values(),
    ]
    for attack in attacks:
        for action in (f"<answer>{attack}</answer>", attack):
            env.reset(seed=5)
            assert env.step(action)[1] == 0.0, attack[:100]
    prompt = env.reset(seed=5)[0]["text"]
    assert env.step(prompt)[1] == 0.0


def test_every_box_must_be_there_once_and_no_other() -> None:
    env = made(every=True)
    for seed in range(40):
        env.reset(seed=seed)
        gold = env.view.data["boxes"]
        n = len(gold)
        spray = [[x, y, x + 12, y + 12] for x in range(0, 53, 6) for y in range(0, 53, 6)]
        for boxes, score in (
            (gold[::-1], 1.0),
            (gold[:-1], (n - 1) / n),
            ([*gold, gold[0]], n / (n + 1)),
            ([*gold, [0, 0, 64, 64]], n / (n + 1)),
            ([], 0.0),
        ):
            env.reset(seed=seed)
            _, reward, _, _, info = env.step(f"<answer>{boxes}</answer>")
            assert reward == float(score == 1.0)
            assert info["scores"]["score"] == score
        env.reset(seed=seed)
        assert env.step(f"<answer>{spray}</answer>")[1] == 0.0


@pytest.mark.parametrize("name", list(CONVENTIONS))
def test_boxes_are_read_in_the_convention_that_the_prompt_states(name: str) -> None:
    env = made(coordinates=name)
    paid: Counter[str] = Counter()
    for seed in range(40):
        text = env.reset(seed=seed)[0]["text"]
        assert CONVENTIONS[name].box_says((64, 64)) in text
        gold = env.view.data["boxes"][0]
        for other, written in CONVENTIONS.items():
            env.reset(seed=seed)
            paid[other] += env.step(f"<answer>{written.from_px(gold, (64, 64)).tolist()}</answer>")[1] == 1.0
    assert paid[name] == 40
    assert max(paid[other] for other in CONVENTIONS if other != name) < 20


def test_words_are_what_answers_are_made_of() -> None:
    for kwargs in ({}, {"coordinates": "k1000"}, {"coordinates": "xywh", "size": 128}):
        env = made(answer_format="plain", **kwargs)
        for seed in range(20):
            env.reset(seed=seed)
            assert set(env.expert_action().strip("[]").split(", ")) <= set(env.words)


def test_stretched_shapes_have_names_of_their_own() -> None:
    asked = [made(aspect=2).reset(seed=seed)[0]["text"] for seed in range(60)]
    assert not any("circle" in text or "square" in text for text in asked)
    assert any("ellipse?" in text for text in asked) and any("rectangle?" in text for text in asked)
    asked = [made(aspect=2, every=True).reset(seed=seed)[0]["text"] for seed in range(60)]
    assert any("Where are all red rectangles?" in text for text in asked)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"every": 1}, "every must be True or False, got 1"),
        ({"every": True, "most": 1}, "most must be an integer from 2 to 8, got 1"),
        ({"coordinates": "qwen"}, "coordinates must be one of 'px'.*got 'qwen'"),
        ({"threshold": 0.0}, "threshold must be a number above 0"),
        ({"threshold": 1.5}, "threshold must be a number"),
        ({"threshold": 0.2}, "make one of largest and most smaller"),
        ({"largest": 12}, "things of 12 cells are too large"),
        ({"every": True, "most": 6}, "too large for 6 of them"),
        ({"least": 8}, r"largest \(cells of a side, from least\) must be an integer from 8 to 32, got 7"),
        ({"aspect": 0.5}, "aspect must be a number from 1 to 4, got 0.5"),
        ({"overlap": 0.8}, "overlap must be at most 0.5, got 0.8"),
        ({"size": 100}, "size must be a multiple of the 32 cells, got 100"),
        ({"size": 128, "cells": 128, "largest": 20, "aspect": 4}, "of 4 to 20 cells.* too many boxes to find the best"),
    ],
)
def test_wrong_arguments_are_named(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**kwargs)


@pytest.mark.parametrize("coordinates", CONVENTIONS)
def test_the_expert_is_right_where_boxes_must_be_exact(coordinates: str) -> None:
    for kwargs in ({"size": 96}, {"size": 224, "every": True}):
        env = made(coordinates=coordinates, threshold=1.0, **kwargs)
        for seed in range(20):
            env.reset(seed=seed)
            assert env.step(env.expert_action())[1] == 1.0
            env.reset(seed=seed)
            gold = np.array(env.view.data["boxes"])
            off = env._written((gold - np.array([0, 0, 0, 1e-2])).tolist())
            assert env.step(f"<answer>{off}</answer>")[1] == 0.0


def test_the_contract_holds_with_other_arguments() -> None:
    check("tetrathlon/Box-v0", kwargs={"every": True, "coordinates": "k1000", "overlap": 0.3})


@pytest.mark.parametrize("kwargs", [{}, {"every": True, "coordinates": "k1000"}, {"coordinates": "xywh"}])
def test_who_looks_at_an_episode_is_shown_the_boxes_of_the_answer(kwargs: dict[str, Any]) -> None:
    env = made(**kwargs)
    env.reset(seed=3)
    said = env.answer_in(env.expert_action())
    assert np.allclose(env.places(said), env.view.data["boxes"], atol=1e-6)
    assert env.places("nowhere") == env.places("[nan, 0, 1, 1]") == []
