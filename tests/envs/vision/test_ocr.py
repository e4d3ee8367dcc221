"""Reading what stands after a label."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import tetrathlon  # noqa: F401  (registers the ids)
from tetrathlon.envs import hostile
from tetrathlon.envs.vision.drawing import Drawing
from tetrathlon.envs.vision.lettering import ink, room, turned, turned_box
from tetrathlon.envs.vision.ocr import OCR
from tetrathlon.envs.vision.scene import Scene, Text
from tetrathlon.envs.vision.variants import VARIANTS

KNOBS: list[dict[str, Any]] = [
    {},
    {"kind": "words"},
    {"kind": "letters", "length": 4, "alike": True, "lines": 3, "font": 9, "noise": 20, "contrast": 0.5},
    {"rotation": 20, "faces": None, "length": 3, "font": 10},
    {"lines": 1, "rotation": 45, "length": 3},
    {"size": 256, "lines": 6, "length": 5, "font": 20, "rotation": 10, "faces": None},
    {"size": 400, "lines": 12, "length": 12, "font": 16, "alike": True},
]
knobs = pytest.mark.parametrize("kwargs", KNOBS, ids=str)
BLANK = np.zeros((8, 8, 3), np.uint8)
"""What is shown to who does not look: drawing takes long."""


def made(**kwargs: Any) -> OCR:
    env = gym.make("tetrathlon/OCR-v0", disable_env_checker=True, **kwargs).unwrapped
    assert isinstance(env, OCR)
    return env


def written(env: OCR) -> dict[str, str]:
    """What stands after each label of what is shown, read off its marks."""
    texts = {mark.tag: mark.text for mark in env.view.scene.marks if isinstance(mark, Text)}
    return {texts[f"label {i}"].rstrip(":"): texts[f"text {i}"] for i in range(env.lines)}


def label(question: str) -> str:
    return question.split("\n")[0].removeprefix("What stands after ").removesuffix("?")


@knobs
def test_the_answer_stands_after_the_label_and_nowhere_else(kwargs: dict[str, Any]) -> None:
    env = made(**kwargs)
    for seed in range(10):
        observation, _ = env.reset(seed=seed)
        asked = label(observation["text"])
        full = written(env)
        assert list(full.values()).count(env.evidence()["answer"]) == 1 and full[asked] == env.evidence()["answer"]
        env.reset(seed=seed, options={"variant": "twin"})
        twin = written(env)
        assert twin[asked] == env.evidence()["answer"] not in full.values()
        assert {k: v for k, v in twin.items() if k != asked} == {k: v for k, v in full.items() if k != asked}
        assert full[asked] not in twin.values()
        if env.alike and env.lines > 1:
            letters = list(zip(*full, strict=True))
            assert sorted(len(set(each)) for each in letters) == [1, env.lines]


@knobs
def test_nothing_touches_and_nothing_is_clipped(kwargs: dict[str, Any]) -> None:
    env = made(**{**kwargs, "noise": 0})
    for seed in range(4):
        env.reset(seed=seed)
        scene = env.view.scene
        drawing = Drawing(scene)
        larger = Drawing(Scene(width=env.size + 40, height=env.size + 40, marks=tuple(map(_moved(20), scene.marks))))
        masks = []
        for mark in scene.marks:
            alone = Drawing(Scene(width=env.size, height=env.size, marks=(mark,)))
            assert alone.box(mark.tag) == drawing.box(mark.tag)
            box, wide = drawing.box(mark.tag), larger.box(mark.tag)
            assert box is not None and wide is not None
            assert np.allclose(np.array(wide) - 20, box, atol=0.01)
            masks.append(alone.mask([mark.tag]))
        assert np.sum(masks, axis=0).max() == 1


def _moved(by: int) -> Any:
    from dataclasses import replace

    return lambda mark: replace(mark, at=(mark.at[0] + by, mark.at[1] + by))


@knobs
def test_covers_hide_the_text_and_do_not_tell_it(kwargs: dict[str, Any]) -> None:
    env = made(**kwargs)
    for seed in range(8):
        pictures = {v: env.reset(seed=seed, options={"variant": v})[0]["image"] for v in VARIANTS}
        task: Any = env._task
        env.reset(seed=seed, options={"variant": "masked"})
        assert not env.drawing.mask(task.view.evidence).any() and env.evidence()["mask"].any()
        # The same scene with the other text, covered, is the same picture: nothing of the text is left.
        as_twin = Drawing(task.twin.covered(task.covers, is_hidden=True).scene).picture
        assert (as_twin == pictures["masked"]).all()
        (cover,), (decoy,) = task.covers, task.decoys
        assert [cover[2] - cover[0], cover[3] - cover[1]] == [decoy[2] - decoy[0], decoy[3] - decoy[1]]
        for x1, y1, x2, y2 in (cover, decoy):
            assert 0 <= x1 < x2 <= env.size and 0 <= y1 < y2 <= env.size
        env.reset(seed=seed, options={"variant": "distractor_masked"})
        bare = Drawing(task.view.scene)
        asked = task.view.evidence[0].split()[1]
        for tag in (f"text {asked}", f"label {asked}"):
            assert (env.drawing.mask([tag]) == bare.mask([tag])).all()
        assert (pictures["no_image"] == 127).all()
        assert (pictures["full"] != pictures["twin"]).any()


@knobs
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_expert_is_right_in_every_variant(kwargs: dict[str, Any], split: str) -> None:
    env = made(split=split, **kwargs)
    for seed in range(3 if kwargs else 200):
        for variant in VARIANTS:
            env.reset(seed=seed, options={"variant": variant})
            action = env.expert_action()
            assert ("unseen" in action) == (variant == "masked")
            assert env.step(action)[1] == 1.0


@pytest.mark.parametrize("kwargs", [{}, {"length": 1}, {"kind": "words"}, {"kind": "letters", "length": 1}], ids=str)
def test_the_blind_floor_is_exact(kwargs: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    env = made(**kwargs)
    n = {"words": 64, "letters": 23}.get(env.kind, {1: 10, 2: 90}[env.length])
    assert env.blind_floor == 1 / n
    monkeypatch.setattr(
        env, "picture", lambda: BLANK
    )  # nobody looks; without the picture the view is that of the full one
    for variant in ("no_image", "twin") if not kwargs else ("no_image",):
        answers: Counter[str] = Counter()
        paid = 0.0
        for seed in range(2000):
            prompt = env.reset(seed=seed, options={"variant": variant})[0]["text"]
            answers[env.view.answer] += 1
            paid += env.step(env.blind_action(prompt))[1]
        error = math.sqrt(env.blind_floor * (1 - env.blind_floor) / 2000)
        assert abs(paid / 2000 - env.blind_floor) < 4 * error
        assert len(answers) == n
        chi = sum((count - 2000 / n) ** 2 / (2000 / n) for count in answers.values())
        assert chi < n + 4 * math.sqrt(2 * n)


def test_texts_are_numbered_without_gaps() -> None:
    for kwargs in ({"length": 2}, {"length": 1}, {"kind": "letters", "length": 2}, {"kind": "words"}):
        env = made(**kwargs)
        texts = [env._text(i) for i in range(env._texts)]
        assert len(set(texts)) == len(texts) and "unseen" not in map(str.lower, texts)
        assert not any(text.startswith("0") and len(text) > 1 for text in texts)
    assert "UNSEEN" not in {
        text for kind in ("letters",) for text in (made(kind=kind, length=6)._text(k) for k in range(9))
    }


@pytest.mark.parametrize(
    "attack",
    [
        "",
        "unseen",
        " ".join(map(str, range(10, 100))),
        ", ".join(map(str, range(10, 100))),
        "[0, 0, 64, 64]",
        "nan",
        "inf",
        "1e400",
        "-1",
        "9" * 10_000,
        "{other} or {answer}",
        "{answer} or {other}",
        "{answer}{answer}",
        "{answer}.0",
        "+{answer}",
        "0{answer}",
        "{fullwidth}",
        "{arabic}",
        "{answer}\u200b",
        "not {answer}",
        "{label}: {answer}",
        "\ud800",
        *hostile.WRONG,
    ],
    ids=lambda text: ascii(text)[:30],
)
def test_attacks_are_not_paid(attack: str) -> None:
    env = made()
    for seed in range(2):
        observation, _ = env.reset(seed=seed)
        answer = env.evidence()["answer"]
        parts: Mapping[str, str] = {
            "{answer}": answer,
            "{other}": str(109 - int(answer)),
            "{label}": label(observation["text"]),
            "{fullwidth}": "".join(chr(ord("０") + int(d)) for d in answer),
            "{arabic}": "".join(chr(ord("٠") + int(d)) for d in answer),
        }
        said = attack
        for name, value in parts.items():
            said = said.replace(name, value)
        for action in (f"<answer>{said}</answer>", said, observation["text"] + said):
            env.reset(seed=seed)
            _, reward, terminated, truncated, info = env.step(action)
            assert terminated and not truncated and reward == 0.0 and not info["is_success"]
            assert 0 < info["scores"]["cer"] <= 1 and info["reward_terms"]["cer"] == 0.0


def test_what_is_covered_is_unseen_and_nothing_else() -> None:
    env = made(variant="masked")
    for seed in range(20):
        env.reset(seed=seed)
        assert isinstance(env._task, object)
        truth = env._task.view.answer  # type: ignore[union-attr]
        assert env.step(f"<answer>{truth}</answer>")[1] == 0.0
        env.reset(seed=seed)
        _, reward, *_, info = env.step("<answer> Unseen. </answer>")
        assert reward == 1.0 and info["scores"]["cer"] == 0.0


def test_the_character_error_rate_is_told_and_kept_in_a_state() -> None:
    env = made(length=4)
    env.reset(seed=1)
    answer = env.evidence()["answer"]
    wrong = answer[:-1] + str((int(answer[-1]) + 1) % 10)
    _, reward, *_, info = env.step(f"<answer>{wrong}</answer>")
    assert reward == 0.0 and info["scores"] == {"correct": 0.0, "cer": 0.25}
    state = env.get_state()
    env.reset(seed=2)
    assert env.set_state(state)[1]["scores"]["cer"] == 0.25
    env.reset(seed=1)
    assert env.step(f"<answer>{answer}</answer>")[4]["scores"] == {"correct": 1.0, "cer": 0.0}
    env.reset(seed=1)
    assert env.step("nothing")[4]["scores"]["cer"] == 1.0


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"kind": "signs"}, "kind must be one of 'digits', 'letters', 'words', got 'signs'"),
        ({"length": 0}, "length .* from 1 to 12, got 0"),
        ({"lines": 13}, "lines .* from 1 to 12, got 13"),
        ({"font": 7}, "font .* from 8 to 64, got 7"),
        ({"faces": ["Comic"]}, "faces must be a list of some of DejaVuSans"),
        ({"faces": "DejaVuSans"}, "faces must be a list"),
        ({"rotation": 46}, "rotation .* from 0 to 45, got 46"),
        ({"noise": -1}, "noise .* got -1"),
        ({"contrast": 0.05}, "contrast must be 0.1 or more"),
        ({"contrast": 2}, "contrast must be a number"),
        ({"alike": 1}, "alike must be True or False, got 1"),
    ],
)
def test_arguments_out_of_range_are_refused(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**kwargs)


@pytest.mark.parametrize("kwargs", [{"lines": 12}, {"length": 12}, {"font": 64}])
def test_lines_without_a_place_are_said(kwargs: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no place was found in 64 pixels"):
        made(**kwargs).reset(seed=0)


def test_ink_is_what_is_painted() -> None:
    for text, size, side in (("47", 12, 200), ("W", 30, 320), ("gj", 9, 321), ("W0W0W0", 33, 1000)):
        x1, y1, x2, y2 = ink(text, size, side)
        scene = Scene(
            width=side, height=side, marks=(Text(text=text, at=(150, 150), size=size, color=(0, 0, 0), tag="t"),)
        )
        assert Drawing(scene).box("t") == (150 + x1, 150 + y1, 150 + x2, 150 + y2)
    one, two = ink("i", 12, 64), ink("W", 12, 64)
    assert room(["i", "W"], 12, 64) == tuple(f(a, b) for f, a, b in zip((min, min, max, max), one, two, strict=True))


def test_turns_are_counterclockwise() -> None:
    assert turned((1, 0), (0, 0), 90) == (0, -1)
    assert turned_box((0, 0, 4, 2), (0, 0), 90) == (0, -4, 2, 0)
    assert turned((5, 7), (5, 7), 33) == (5, 7)


def test_alike_pictures_are_in_one_split() -> None:
    seen: dict[str, set[bytes]] = {"train": set(), "test": set()}
    for split, pictures in seen.items():
        env = made(length=1, lines=1, size=32, split=split)
        pictures |= {env.reset(seed=seed)[0]["image"].tobytes() for seed in range(1500)}
    assert len(seen["train"]) > 500 and not seen["train"] & seen["test"]
