"""What is done between updates."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from tests.algos.test_on_policy import SMALL, Seeded
from tetrathlon.algos.callbacks import EarlyStop, Evaluate, Guard
from tetrathlon.algos.on_policy import GRPO


@pytest.fixture(autouse=True)
def doors() -> Iterator[None]:
    gym.register("Doors-v0", entry_point="tests.algos.test_on_policy:Doors")
    yield
    del gym.registry["Doors-v0"]


def noted(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_the_test_split_is_looked_at_before_now_and_then_and_at_the_end(tmp_path: Path) -> None:
    policy = Seeded(3, 4, seed=3)
    looks = Evaluate(policy, "Doors-v0", every=2, episodes=200)
    GRPO(policy, "Doors-v0", run=tmp_path, callbacks=[looks], **{**SMALL, "lr": 0.2}).learn(5)
    lines = noted(tmp_path)
    assert [line["update"] for line in lines if "test/success" in line] == [-1, 1, 3, 4]
    first, last = lines[0], lines[-1]
    assert first["test/low"] < first["test/success"] < first["test/high"] and 0.1 < first["test/success"] < 0.4
    assert last["test/success"] > first["test/high"] and last["test/reward"] > first["test/reward"]


def test_looking_changes_nothing_of_the_run() -> None:
    runs = []
    for look in (False, True):
        policy = Seeded(3, 4, seed=3)
        callbacks = [Evaluate(policy, "Doors-v0", every=1, episodes=20)] if look else []
        history = GRPO(policy, "Doors-v0", callbacks=callbacks, **SMALL).learn(4)
        runs.append([(each["episode_reward"], each["policy_loss"], each["entropy"]) for each in history])
    assert runs[0] == runs[1]


def test_early_stop_waits_for_the_better_and_ends_at_the_aim() -> None:
    stop = EarlyStop("score", patience=2)
    stop.before({"score": 0.5})
    answers = [stop(number, {"score": value}) for number, value in enumerate([0.4, 0.6, 0.6, 0.55])]
    assert answers == [False, False, False, True] and not stop(9, {})
    twin = EarlyStop("score", patience=2)
    stop = EarlyStop("score", patience=2)
    stop(0, {"score": 1.0})
    stop(1, {"score": 0.0})
    twin.load_state_dict(json.loads(json.dumps(stop.state_dict())))
    assert twin(2, {"score": 0.0})
    aim = EarlyStop("loss", target=0.1, mode="min")
    assert [aim(0, {"loss": value}) for value in (0.5, 0.2, 0.1)] == [False, False, True]
    with pytest.raises(ValueError, match="needs a patience or a target"):
        EarlyStop("score")


def test_a_guard_stops_what_stays_outside() -> None:
    guard = Guard("entropy", low=0.1, high=2.0, patience=2)
    values = [0.5, 0.05, 0.5, 0.05, 3.0]
    assert [guard(number, {"entropy": value}) for number, value in enumerate(values)] == [False] * 4 + [True]
    assert Guard("kl_ref", high=1.0, patience=1)(0, {"kl_ref": math.nan}), "NaN is in no range"
    with pytest.raises(ValueError, match=r"Guard\('kl_ref'\) needs low or high"):
        Guard("kl_ref")


def test_a_run_that_is_stopped_keeps_its_last_checkpoint_and_every_callback_is_asked(tmp_path: Path) -> None:
    asked: list[int] = []

    def ask(number: int, metrics: dict[str, float]) -> None:
        asked.append(number)

    guard = Guard("entropy", high=0.0, patience=3)
    history = GRPO(Seeded(3, 4), "Doors-v0", run=tmp_path, callbacks=[guard, ask], **SMALL).learn(9)
    assert len(history) == 3 and asked == [0, 1, 2]
    assert (tmp_path / "checkpoints/step-00000003").is_dir()


def test_a_run_that_goes_on_remembers_for_how_long_it_failed(tmp_path: Path) -> None:
    def run(updates: int, resume: bool) -> int:
        stop = EarlyStop("entropy", patience=5)
        settings = {**SMALL, "lr": 0.0, "run": tmp_path, "resume": resume, "callbacks": [stop], "checkpoint_every": 1}
        algorithm = GRPO(Seeded(3, 4), "Doors-v0", **settings)
        return len(algorithm.learn(updates))

    assert run(3, resume=False) == 3 and run(20, resume=True) == 3, "the first is the best; five more fail"


def test_a_start_that_is_no_number_can_be_beaten() -> None:
    stop = EarlyStop("x", patience=1)
    stop.before({"x": math.nan})
    assert [stop(i, {"x": x}) for i, x in enumerate((0.5, 0.6, 0.6))] == [False, False, True]
