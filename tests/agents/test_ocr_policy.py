"""The policy that reads pictures with an OCR engine: with a stand-in for the engine, and with the engine itself."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import tetrathlon  # noqa: F401  (registers the ids)
from tetrathlon.agents.naming import PolicyError, make_policy
from tetrathlon.agents.ocr_policy import OCRPolicy, Reading, after

ENGINE = "rapidocr_onnxruntime"


class FakeEngine:
    """Finds what it is told to, as the engine says it: corners, text, score."""

    found: list[tuple[tuple[float, float, float, float], str]] | None = None

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.seen: list[np.ndarray] = []

    def __call__(self, picture: np.ndarray) -> tuple[list[list[Any]] | None, list[float] | None]:
        self.seen.append(picture)
        if not self.found:
            return None, None
        return [[[[x1, y1], [x2, y1], [x2, y2], [x1, y2]], text, 0.9] for (x1, y1, x2, y2), text in self.found], [
            0.1,
            0.1,
            0.1,
        ]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> type[FakeEngine]:
    class Engine(FakeEngine):
        pass

    module = ModuleType(ENGINE)
    module.RapidOCR = Engine  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, ENGINE, module)
    return Engine


def made(name: str = "OCR-v0", **kwargs: Any) -> Any:
    return gym.make(f"tetrathlon/{name}", disable_env_checker=True, **kwargs).unwrapped


def act(policy: Any, *pairs: tuple[Any, dict[str, Any]], **options: Any) -> list[str]:
    observations = [observation for observation, _ in pairs]
    batch = {
        "image": np.stack([observation["image"] for observation in observations]),
        "text": tuple(observation["text"] for observation in observations),
    }
    return list(policy.act(batch, infos=[info for _, info in pairs], **options).actions)


@pytest.mark.parametrize(
    ("texts", "answer"),
    [
        (["B: 47", "A:13"], "47"),
        (["A:13", "B:47"], "47"),
        (["B：47"], "47"),
        (["B 47"], "47"),
        (["AB: 12", "B: 47"], "47"),
        (["BB: 12"], None),
        (["B"], None),
        (["B:"], None),
        (["47"], None),
        ([], None),
        (["b: 47"], None),
        (["B: 4 7"], "4 7"),
    ],
)
def test_what_stands_after_a_label(texts: list[str], answer: str | None) -> None:
    readings = [Reading(text, (0, 20 * i, 40, 20 * i + 12)) for i, text in enumerate(texts)]
    assert after("B", readings) == answer


def test_what_stands_after_a_label_may_be_a_text_of_its_own() -> None:
    label, value = Reading("B:", (0, 20, 12, 32)), Reading("47", (15, 21, 30, 33))
    others = [Reading("13", (15, 0, 30, 12)), Reading("99", (34, 20, 50, 32)), Reading("x", (0, 40, 5, 52))]
    assert after("B", [*others, label, value]) == "47"
    assert after("B", [label, Reading("47", (60, 20, 75, 32))]) is None
    assert after("B", [label, others[0]]) is None


def test_it_answers_in_the_format_that_is_asked_for(engine: type[FakeEngine]) -> None:
    for answer_format, written in (("tag", "<answer>47</answer>"), ("boxed", "\\boxed{47}"), ("plain", "47")):
        env = made(answer_format=answer_format)
        policy = OCRPolicy(env.observation_space, env.action_space)
        observation, info = env.reset(seed=0)
        label = observation["text"].split("?")[0].split()[-1]
        engine.found = [((0, 0, 100, 40), f"{label}: 47")]
        assert act(policy, (observation, info)) == [written]


def test_pictures_are_made_larger_and_boxes_are_in_their_own_pixels(engine: type[FakeEngine]) -> None:
    env = made()
    observation, _ = env.reset(seed=0)
    policy = OCRPolicy(env.observation_space, env.action_space, side=128, threads=3)
    engine.found = [((20, 40, 60, 80), "B: 1")]
    assert policy.read(observation["image"]) == [Reading("B: 1", (10, 20, 30, 40))]
    fake: Any = policy._engine
    assert fake.seen[0].shape == (128, 128, 3)
    assert fake.options == {"intra_op_num_threads": 3, "inter_op_num_threads": 3}
    red = np.zeros((200, 300, 3), np.uint8)
    red[..., 0] = 255
    policy.read(red)
    assert fake.seen[1].shape == (200, 300, 3) and fake.seen[1][0, 0].tolist() == [0, 0, 255]


def test_what_it_cannot_answer_is_unseen(engine: type[FakeEngine]) -> None:
    env = made()
    policy = OCRPolicy(env.observation_space, env.action_space)
    engine.found = [((0, 0, 100, 40), "Z: 47")]
    shown = env.reset(seed=0)
    hidden = env.reset(seed=0, options={"variant": "no_image"})
    assert act(policy, shown, hidden) == ["<answer>unseen</answer>"] * 2
    engine.found = None
    assert act(policy, shown) == ["<answer>unseen</answer>"]
    fake: Any = policy._engine
    n = len(fake.seen)
    count = made("Count-v0")
    counting = OCRPolicy(count.observation_space, count.action_space)
    assert act(counting, count.reset(seed=0)) == ["<answer>unseen</answer>"] and len(fake.seen) == n
    assert act(policy, shown, shown, forced=["x", None]) == ["x", "<answer>unseen</answer>"]


def test_it_has_a_name(engine: type[FakeEngine]) -> None:
    policy = make_policy("ocr", made(), arguments={"side": 64})
    assert isinstance(policy, OCRPolicy) and policy.side == 64
    with pytest.raises(PolicyError, match=r"policy 'ocr' does not fit .*OCRPolicy reads pictures"):
        make_policy("ocr", made("Arithmetic-v0"))
    with pytest.raises(PolicyError, match=r"policy 'ocr': side .* from 32 to 2000, got 8"):
        make_policy("ocr", made(), arguments={"side": 8})


def test_a_missing_engine_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, ENGINE, None)
    with pytest.raises(ImportError, match=r'needs the package rapidocr-onnxruntime .*pip install "tetrathlon\[ocr\]"'):
        make_policy("ocr", made())


@pytest.mark.parametrize("kwargs", [{}, {"size": 256, "font": 24, "length": 5, "lines": 4}], ids=["64", "256"])
def test_the_engine_reads_most_of_it(kwargs: dict[str, Any]) -> None:
    pytest.importorskip(ENGINE)
    env = made(**kwargs)
    policy = OCRPolicy(env.observation_space, env.action_space)
    paid = dict.fromkeys(("full", "twin", "masked", "distractor_masked"), 0.0)
    for seed in range(4):
        for variant in paid:
            pair = env.reset(seed=seed, options={"variant": variant})
            paid[variant] += env.step(act(policy, pair)[0])[1]
    assert all(each >= 3 for each in paid.values()), paid
