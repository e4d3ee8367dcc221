"""Looking closer: too small to be read at first, legible after the right crop, and paid for nothing else."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

import tetrathlon  # noqa: F401  (registers the ids)
from tetrathlon.envs import check
from tetrathlon.envs.hostile import TEXTS
from tetrathlon.envs.tools.calls import write_call
from tetrathlon.envs.vision.drawing import Drawing
from tetrathlon.envs.vision.scene import Mark, Rectangle, Scene, Text
from tetrathlon.envs.vision.variants import VARIANTS

OTHERS: list[dict[str, Any]] = [
    {"size": 64, "diameter": 80, "others": 2},
    {"size": 128, "scale": 8, "font": 1.5, "digits": 4, "shapes": 6, "colors": 8, "noise": 0},
    {"size": 512, "digits": 6, "others": 1},
]
ALL = [0, 0, 256, 256]
BLANK = np.zeros((8, 8, 3), np.uint8)
"""What is shown to who does not look: drawing takes long."""


def made(**kwargs: Any) -> Any:
    return gym.make("tetrathlon/Zoom-v0", disable_env_checker=True, **kwargs).unwrapped


def crop(*box: float) -> str:
    return write_call("crop", {"box": list(box)})


def by_expert(env: Any) -> tuple[float, list[Any]]:
    """Play the expert on to the end; return what it was paid, and each step."""
    steps: list[Any] = []
    while not steps or not steps[-1][2]:
        steps.append(env.step(env.expert_action()))
    return sum(step[1] for step in steps), steps


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_expert_looks_and_is_right(split: str) -> None:
    env = made(split=split)
    for variant, n in (("full", 60), *((variant, 12) for variant in VARIANTS[1:])):
        for seed in range(n):
            env.reset(seed=seed, options={"variant": variant})
            paid, steps = by_expert(env)
            assert paid == 1.0 and steps[-1][4]["is_success"] and steps[-1][4]["stop_reason"] == "answered"
            assert len(steps) == (1 if variant == "no_image" else 2)


@pytest.mark.parametrize("kwargs", OTHERS)
def test_the_expert_is_right_with_other_arguments(kwargs: dict[str, Any]) -> None:
    env = made(evidence_weight=0.5, **kwargs)
    for variant in VARIANTS[:4]:
        for seed in range(6):
            observation, info = env.reset(seed=seed, options={"variant": variant})
            assert observation["image"].shape == (env.size, env.size, 3)
            assert info["blind_floor"] == 1 / (9 * 10 ** (env.digits - 1))
            assert by_expert(env)[0] == 1.5


def test_the_expert_goes_on_from_any_state() -> None:
    env = made(max_turns=4, max_calls=3)
    turns = [crop(0, 0, 9, 9), "what?", crop(5, 5), write_call("zoom", {}), crop(*ALL), "<tool_call>{"]
    rng = np.random.default_rng(0)
    for variant in VARIANTS:
        for seed in range(12):
            env.reset(seed=seed, options={"variant": variant})
            for _ in range(int(rng.integers(4))):
                *_, terminated, _, _ = env.step(turns[rng.integers(len(turns))])
                assert not terminated
            paid, _ = by_expert(env)
            assert paid == 1.0


def test_what_is_asked_for_is_drawn_on_the_thing_and_told_apart() -> None:
    env = made(shapes=6, colors=8, others=8)
    for seed in range(20):
        for variant in ("full", "twin"):
            env.reset(seed=seed, options={"variant": variant})
            scene, asked = env.view.scene, env._task.question
            signs = {mark.tag: mark for mark in scene.marks if isinstance(mark, Text)}
            assert signs["number 0"].text == env.view.answer
            assert len({sign.text for sign in signs.values()}) == len(signs) >= 2
            assert all(re.fullmatch("[1-9][0-9]{2}", sign.text) for sign in signs.values())
            whole = Drawing(scene)
            for i in range(len(signs)):
                (plate,) = (mark for mark in scene.marks if mark.tag == f"number {i}" and isinstance(mark, Rectangle))
                drawn = Drawing(Scene(width=1024, height=1024, marks=(signs[f"number {i}"],))).box(f"number {i}")
                thing = whole.box(f"thing {i}")
                assert drawn is not None and thing is not None
                assert plate.box[0] < drawn[0] and plate.box[1] < drawn[1]
                assert drawn[2] < plate.box[2] and drawn[3] < plate.box[3]
                assert thing[0] < plate.box[0] and plate.box[2] < thing[2]
                assert (drawn[3] - drawn[1]) / env.scale < 3
            kinds = {mark.tag: (type(mark), mark.color) for mark in scene.marks if mark.tag.startswith("thing")}
            if not any(shape in asked for shape in ("triangle", "diamond", "star", "cross")):
                assert list(kinds.values()).count(kinds["thing 0"]) == 1


def test_numbers_are_uniform_in_both_pictures_and_never_the_same() -> None:
    env = made(digits=2, others=1)
    rng = np.random.default_rng(0)
    numbers: dict[str, Counter[str]] = {"full": Counter(), "twin": Counter()}
    n = 6_000
    for _ in range(n):
        task = env.generate(rng)
        assert task.view.answer != task.twin.answer
        numbers["full"][task.view.answer] += 1
        numbers["twin"][task.twin.answer] += 1
    for counted in numbers.values():
        assert len(counted) == 90
        chi_square = ((np.array([*counted.values()]) - n / 90) ** 2).sum() / (n / 90)
        assert abs(chi_square - 89) < 5 * (2 * 89) ** 0.5


def test_who_does_not_look_is_right_as_often_as_is_said() -> None:
    env = made(digits=2, noise=0, size=64, diameter=60, others=1)
    assert env.blind_floor == 1 / 90
    env.picture = lambda: BLANK  # nobody looks
    n = 800
    paid = 0.0
    for seed in range(n):
        observation, _ = env.reset(seed=seed)
        paid += env.step(env.blind_action(observation["text"]))[1]
    assert abs(paid / n - 1 / 90) < 4 * (1 / 90 * 89 / 90 / n) ** 0.5


class Reader:
    """Reads the number on a plate of the first picture as well as can be: by all numbers, drawn in its very place."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.drawn: dict[tuple[int, int], np.ndarray] = {}

    def read(self, picture: np.ndarray) -> str:
        env = self.env
        plate = env.view.data["plate"]
        x, y = (int(edge) % env.scale for edge in plate[:2])
        if (x, y) not in self.drawn:
            self.drawn[x, y] = self.draw(x, y)
        left, top = (int(edge) // env.scale for edge in plate[:2])
        known = self.drawn[x, y]
        seen = picture[top : top + known.shape[1], left : left + known.shape[2], 1].astype(float)
        inside = slice(1, -1)  # blocks that show nothing but the plate
        error = ((known - seen)[:, inside, inside] ** 2).sum(axis=(1, 2))
        return str(100 + int(error.argmin()))

    def draw(self, x: int, y: int) -> np.ndarray:
        """Return how each number looks on a plate that begins ``x`` and ``y`` pixels beside a block's corner."""
        env, rows = self.env, 12
        wide, high = (-(-(side + env.scale) // env.scale) * env.scale for side in env._plate)
        known: list[np.ndarray] = []
        for first in range(100, 1000, 120):
            marks: list[Mark] = []
            numbers = range(first, min(first + 120, 1000))
            places = [(i // rows * wide, i % rows * high) for i in range(len(numbers))]
            for number, (left, top) in zip(numbers, places, strict=True):
                plate = (left + x, top + y, left + x + env._plate[0], top + y + env._plate[1])
                marks += env._sign(plate, str(number), "")
            drawn = Drawing(Scene(width=1024, height=1024, marks=tuple(marks))).picture
            small = np.asarray(Image.fromarray(drawn).reduce(env.scale))[..., 1].astype(float)
            for left, top in places:
                a, b = top // env.scale, left // env.scale
                known.append(small[a : a + high // env.scale, b : b + wide // env.scale])
        return np.stack(known)


def test_the_first_picture_cannot_be_read_even_by_who_knows_all_but_the_number() -> None:
    env = made()
    reader = Reader(env)
    n, right = 250, 0
    for seed in range(n):
        observation, _ = env.reset(seed=seed)
        right += reader.read(observation["image"]) == env.view.answer
    assert right / n < 0.1
    clear = made(noise=0)
    reader = Reader(clear)
    read = 0
    for seed in range(20):  # so that it is the noise that keeps it from reading
        observation, _ = clear.reset(seed=seed)
        read += reader.read(observation["image"]) == clear.view.answer
    assert read >= 18
    known = reader.draw(0, 0).reshape(900, -1)
    pairs = np.random.default_rng(0).integers(900, size=(2_000, 2))
    differences = np.abs(known[pairs[:, 0]] - known[pairs[:, 1]])
    # On average two numbers differ by less than the noise in the pixels of the plate, at most by little more.
    assert differences.mean() < 5 and differences.max(axis=1).mean() < 25


def test_the_number_is_legible_after_the_right_crop() -> None:
    env = made()
    for seed in range(10):
        pictures = []
        for variant in ("full", "twin"):
            env.reset(seed=seed, options={"variant": variant})
            pictures.append(env.step(env.expert_action())[0]["image"].astype(int))
        differs = np.abs(pictures[0] - pictures[1]).max(axis=-1) > 50
        rows = np.flatnonzero(differs.any(axis=1))
        assert rows[-1] - rows[0] > 8 and differs.sum() > 30


@pytest.mark.skipif(importlib.util.find_spec("rapidocr_onnxruntime") is None, reason="needs rapidocr-onnxruntime")
def test_an_engine_reads_the_crop_and_not_the_first_picture() -> None:
    from rapidocr_onnxruntime import RapidOCR

    engine = RapidOCR()
    env = made()
    read = {"first": 0, "crop": 0}
    n = 10
    for seed in range(n):
        first, _ = env.reset(seed=seed)
        x1, y1, x2, y2 = (edge / env.scale for edge in env.view.data["plate"])
        at_first = Image.fromarray(first["image"]).crop((int(x1) - 8, int(y1) - 8, int(x2) + 8, int(y2) + 8))
        closer = env.step(env.expert_action())[0]["image"]
        for name, image in (("first", np.asarray(at_first.resize((256, 256)))), ("crop", closer)):
            found, _ = engine(image)
            read[name] += any(text.strip() == env.view.answer for _, text, _ in found or ())
    assert read["first"] == 0
    assert read["crop"] >= n - 2


def test_a_crop_is_that_part_of_the_large_picture() -> None:
    env = made(noise=0)
    first, _ = env.reset(seed=2)
    large = env.drawing.picture
    assert large.shape == (1024, 1024, 3)
    assert np.abs(first["image"].astype(float) - large.reshape(256, 4, 256, 4, 3).mean(axis=(1, 3))).max() <= 1
    shown, _, _, _, info = env.step(crop(64, 32, 128, 96))
    assert (shown["image"] == large[128:384, 256:512]).all()
    assert shown["text"] == "The picture shows x from 64 to 128 and y from 32 to 96 of the first one."
    assert info["has_image"] is True and info["role"] == "tool"
    again = env.step(crop(64, 32, 128, 96))[0]["image"]  # always in pixels of the first picture
    assert (again == shown["image"]).all()
    back = env.step(crop(*ALL))[0]["image"]
    assert (back == first["image"]).all()
    for box, text in (
        ([0, 0, 10, 4], "x from 0 to 16 and y from 0 to 16"),  # no nearer than sixteen times
        ([200, 100, 300, 110], "x from 200 to 256 and y from 77 to 133"),  # cut, and made a square
        ([-1e308, 250, 1e308, 256], "x from 0 to 256 and y from 0 to 256"),
    ):
        assert text in env.step(crop(*box))[0]["text"]
        env.reset(seed=2)


def test_a_picture_comes_with_good_crops_alone() -> None:
    env = made(max_turns=20, max_calls=20)
    _, info = env.reset(seed=3)
    assert info["has_image"] is True
    shown = env.step(crop(0, 0, 64, 64))[0]["image"]
    bad = [
        *("hello", "<tool_call>{", write_call("zoom", {}), write_call("crop", {}), write_call("crop", {"box": "all"})),
        *(
            crop(1, 2, 3),
            crop(9, 9, 3, 12),
            crop(9, 9, 9, 12),
            crop(300, 300, 400, 400),
            write_call("crop", {"box": []}),
        ),
        write_call("crop", {"box": [0, 0, 9, "x"]}),
        '<tool_call>{"name": "crop", "arguments": {"box": [NaN, 0, 9, 9]}}</tool_call>',
        '<tool_call>{"name": "crop", "arguments": {"box": [0, 0, 1e999, 9]}}</tool_call>',
    ]
    for turn in bad:
        observation, reward, terminated, _, info = env.step(turn)
        assert info["has_image"] is False, turn
        assert (observation["image"] == shown).all() and reward == 0.0 and not terminated
    assert env.step(crop(0, 0, 64, 64))[4]["has_image"] is True
    assert env.step("<answer>1</answer>")[4]["has_image"] is False
    env.reset(seed=3, options={"variant": "no_image"})
    observation, _, _, _, info = env.step(crop(0, 0, 64, 64))
    assert info["has_image"] is False and observation["text"] == "Error: there is no picture"
    assert (observation["image"] == 127).all()
    one = made(max_turns=1)
    one.reset(seed=3)
    _, _, terminated, _, info = one.step(crop(0, 0, 64, 64))
    assert terminated and info["has_image"] is True and info["stop_reason"] == "max_turns"


def test_of_several_crops_in_a_turn_one_is_shown() -> None:
    env = made()
    env.reset(seed=3)
    observation, _, _, _, info = env.step(crop(0, 0, 64, 64) + crop(64, 64, 128, 128))
    assert [result["error"] for result in info["tool_results"]] == ["", "not_run"] and info["has_image"]
    alone = made()
    alone.reset(seed=3)
    assert (observation["image"] == alone.step(crop(0, 0, 64, 64))[0]["image"]).all()


def test_evidence_is_paid_once_for_a_crop_that_shows_it_large_enough() -> None:
    env = made(evidence_weight=0.25, step_cost=0.01, error_cost=0.0, max_turns=12, max_calls=12)
    for variant in ("full", "twin", "masked", "distractor_masked"):
        env.reset(seed=4, options={"variant": variant})
        x1, y1, x2, y2 = (edge / 4 for edge in env.view.data["plate"])
        x, y = (x1 + x2) / 2, (y1 + y2) / 2
        needed = 256 / env.enlarged
        assert 256 / needed * 0.73 * 2.5 == pytest.approx(8)
        reach = needed / 2
        turns = [
            (crop(*ALL), 0.0),
            (crop(x - reach - 1, y - reach - 1, x + reach + 1, y + reach + 1), 0.0),  # too small still
            (crop(x1 + 1, y1, x2 + 20, y2), 0.0),  # cuts it
            (crop(x2 + 4, y2 + 4, x2 + 20, y2 + 20), 0.0),  # beside it
            (crop(x - reach + 1, y - reach + 1, x + reach - 1, y + reach - 1), 0.25),
            (crop(x1, y1, x2, y2), 0.0),
            (crop(*ALL), 0.0),
            (crop(x1, y1, x2, y2), 0.0),
        ]
        for turn, pays in turns:
            _, reward, _, _, info = env.step(turn)
            assert info["reward_terms"] == {"correct": 0.0, "progress": pays, "turn": -0.01}
            assert reward == pays - 0.01
        assert env.step(env.expert_action())[1] == 0.99
    env.reset(seed=4, options={"variant": "no_image"})
    assert env.step(crop(x1, y1, x2, y2))[1] == -0.01
    blind = made(evidence_weight=0.25)
    blind.reset(seed=4)
    blind.step(crop(*ALL))
    assert blind.step("<answer>100</answer>")[1] == 0.0


def test_only_the_exact_number_pays() -> None:
    env = made()
    env.reset(seed=6)
    answer = env.view.answer
    shown = [mark.text for mark in env.view.scene.marks if isinstance(mark, Text) and mark.text != answer]
    wide = "".join(chr(0xFF10 + int(digit)) for digit in answer)
    superscript = answer.translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    attacks = [
        *(f"0{answer}", f"{answer}.0", answer[:2], answer + "0", f"-{answer}", f"{answer} {shown[0]}", "unseen", ""),
        *(
            superscript,
            wide,
            f"{answer} or {shown[0]}",
            "NaN",
            " ".join(map(str, range(100, 1000))),
            *shown,
            *TEXTS.values(),
        ),
    ]
    for attack in attacks:
        env.reset(seed=6)
        _, reward, _, _, info = env.step(f"<answer>{attack}</answer>")
        assert reward == 0.0 and not info.get("is_success"), attack[:60]
    for right in (answer, f" {answer}\n"):
        prompt = env.reset(seed=6)[0]["text"]
        assert env.step(f"<answer>{right}</answer>")[1] == 1.0
    env.reset(seed=6)
    assert env.step(prompt)[1] == 0.0
    for said, pays in (("unseen", 1.0), ("Unseen.", 1.0), (answer, 0.0), ("", 0.0), (f"unseen {answer}", 0.0)):
        env.reset(seed=6, options={"variant": "masked"})
        assert env.step(f"<answer>{said}</answer>")[1] == pays


def test_a_covered_number_leaves_no_trace() -> None:
    """With the number covered, all that can be shown is the same for the picture and its twin."""
    env = made()
    for seed in range(8):
        first, _ = env.reset(seed=seed, options={"variant": "masked"})
        task, covers = env._task, env._task.covers
        other = task.twin.covered(covers, is_hidden=True)
        assert (Drawing(other.scene).picture == env.drawing.picture).all()
        swapped = replace(task, view=task.twin, twin=task.view)
        assert (env.reset(options={"task": swapped, "variant": "masked"})[0]["image"] == first["image"]).all()
        (cover,), (decoy,) = task.covers, task.decoys
        assert (cover[2] - cover[0], cover[3] - cover[1]) == (decoy[2] - decoy[0], decoy[3] - decoy[1])
        env.reset(seed=seed, options={"variant": "distractor_masked"})
        assert env.step(env.expert_action())[4]["has_image"]
        assert env._play.world.shows(cover, env.enlarged)


def test_evidence_is_in_pixels_of_the_first_picture() -> None:
    env = made()
    for seed in range(5):
        full = env.reset(seed=seed)[0]["image"]
        evidence = env.evidence()
        (box,) = evidence["boxes"]
        mask = evidence["mask"]
        assert mask.shape == (256, 256) and mask.dtype == bool
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        assert [columns[0], rows[0]] == [int(edge) for edge in box[:2]]
        assert [columns[-1] + 1, rows[-1] + 1] == [int(np.ceil(edge)) for edge in box[2:]]
        masked = env.reset(seed=seed, options={"variant": "masked"})[0]["image"]
        changed = (masked != full).any(axis=-1)
        changed[rows[0] - 1 : rows[-1] + 2, columns[0] - 1 : columns[-1] + 2] = False
        assert not changed.any() and (masked != full)[mask].any()
        env.step(env.expert_action())
        assert env.evidence()["boxes"] == [box] and env.evidence()["answer"] == "unseen"


def test_a_state_holds_what_is_shown_now() -> None:
    env, other = made(evidence_weight=0.2), made(evidence_weight=0.2)
    env.reset(seed=7, options={"variant": "twin"})
    shown, _, _, _, info = env.step(env.expert_action())
    state = env.get_state()
    env.step(crop(*ALL))
    other.reset(seed=1)
    for copy in (env, other):
        observation, restored = copy.set_state(state)
        assert (observation["image"] == shown["image"]).all() and observation["text"] == shown["text"]
        assert restored == info and restored["has_image"] is True
        assert copy.step(copy.expert_action())[1] == 1.0


def test_the_prompt_says_what_boxes_and_budgets_are() -> None:
    observation, info = made(max_turns=5, max_calls=4).reset(seed=0)
    text = observation["text"]
    assert "its box is in pixels of this first picture, which is 256 wide and 256 high" in text
    assert "You have 5 turns and 4 calls." in text
    assert info["tools"][0]["function"]["name"] == "crop" and info["limits"]["calls"] == 4
    brief, info = made(brief=True).reset(seed=0)
    assert re.fullmatch(r"What number is on the \w+ \w+\?", brief["text"]) and info["tools"] == []


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"scale": 2}, "scale must be an integer from 4 to 16, got 2"),
        ({"size": 2048}, "the large picture may have sides of 4096 pixels"),
        ({"font": 1.5}, "in the large picture a font of 8 pixels can be read, got font 1.5 times scale 4"),
        ({"font": "big"}, r"font \(pixels\) must be a number from 1 to 4, got 'big'"),
        ({"noise": -1}, "noise must be a number from 0 to 40, got -1"),
        ({"digits": 1}, "digits must be an integer from 2 to 6, got 1"),
        ({"size": 64, "font": 1.0, "scale": 8, "digits": 6}, "cannot be shown whole and large enough"),
        ({"evidence_weight": 1.0}, "evidence_weight must be a number from 0 to less than 1, got 1.0"),
        ({"step_cost": True}, "step_cost must be a number"),
        ({"others": 0}, "others must be an integer from 1 to 20, got 0"),
    ],
)
def test_wrong_arguments_are_named(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**kwargs)


def test_things_that_find_no_place_are_named() -> None:
    with pytest.raises(ValueError, match="find no place; allow fewer"):
        env = made(diameter=128, others=20)
        for seed in range(20):
            env.reset(seed=seed)


def test_the_contract_holds_with_other_arguments() -> None:
    check(
        "tetrathlon/Zoom-v0",
        kwargs={"size": 64, "diameter": 80, "others": 2, "evidence_weight": 0.3, "step_cost": 0.02},
    )
