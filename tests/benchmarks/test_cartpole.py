"""PPO beside a peer: who judges, and what is told."""

from __future__ import annotations

import importlib.util
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tetrathlon.benchmarks import cartpole
from tetrathlon.benchmarks.cartpole import CartPole
from tetrathlon.benchmarks.contender import ContenderError

PROGRAMS = Path(cartpole.__file__).parent / "assets" / "cartpole"


@pytest.fixture(scope="module")
def judge() -> Any:
    spec = importlib.util.spec_from_file_location("judge_of_cartpole", PROGRAMS / "judge.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def balance(seen: np.ndarray) -> np.ndarray:
    return (seen @ [0.05, 0.2, 1.0, 0.6] > 0).astype(int)


def fall(seen: np.ndarray) -> np.ndarray:
    return np.zeros(len(seen), dtype=int)


def test_the_judge_looks_once_an_interval_and_off_the_clock(judge: Any) -> None:
    slow = judge.Judge(1000)

    def burn(seen: np.ndarray) -> np.ndarray:
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass
        return fall(seen)

    assert [slow.done(steps, burn) for steps in (999, 1001, 1999, 2500)] == [False] * 4
    assert [point["env_steps"] for point in slow.curve] == [1001, 2500]
    assert all(8 < point["mean"] < 11 for point in slow.curve) and slow.crossed is slow.reached is None
    assert slow.curve[1]["cpu_seconds"] < 0.1  # a look takes ten actions and more, 0.2 s


def test_the_goal_is_confirmed_on_fresh_episodes(judge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[range] = []

    def mean(self: Any, act: Any, seeds: range) -> float:
        asked.append(seeds)
        return {20: 480.0, 100: 470.0 + 5 * len(asked)}[len(seeds)] - 10 * (len(asked) == 2)

    monkeypatch.setattr(judge.Judge, "_mean", mean)
    strict = judge.Judge(10)
    assert [strict.done(steps, balance) for steps in (10, 20)] == [False, True]
    assert strict.crossed["env_steps"] == 10 and strict.reached["env_steps"] == 20
    assert strict.curve[0]["confirmed"] == 470.0 and strict.reached["confirmed"] == 490.0
    assert asked[0] == asked[2] and not set(asked[1]) & set(asked[3]) and not set(asked[0]) & set(asked[1])


def test_a_balanced_pole_is_the_goal(judge: Any) -> None:
    sure = judge.Judge(10)
    assert sure.done(10, balance) and sure.reached["mean"] == sure.reached["confirmed"] == 500.0


def learnt(seconds: float | None) -> dict[str, Any]:
    point = {"env_steps": 2000, "cpu_seconds": seconds or 9.0, "mean": 500.0, "confirmed": 499.0}
    return {"versions": {}, "env_steps": 2000, "crossed": point, "reached": seconds and point, "curve": [point]}


@pytest.mark.parametrize(
    ("ours", "peer", "within"), [(2.0, 2.5, True), (3.0, 2.5, False), (3.0, None, True), (None, None, False)]
)
def test_the_result(
    ours: float | None, peer: float | None, within: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[tuple[str, int]] = []

    def learn(python: Path, program: str, options: dict[str, Any]) -> dict[str, Any]:
        asked.append((program, options["seed"]))
        return learnt(ours if program == "ours" else peer)

    monkeypatch.setattr(cartpole, "_learn", learn)
    out = tmp_path / "result.json"
    assert CartPole(peers=Path("peer"), out=out, seeds=(4, 5)).run() == int(not within)
    assert asked == [("ours", 4), ("sb3", 4), ("ours", 5), ("sb3", 5)]
    result = json.loads(out.read_text())
    assert [run["within"] for run in result["runs"]] == [within] * 2 and result["preset"] == cartpole.PRESET
    assert "--seeds 4 5 --env-steps 100000 --interval 1024" in result["command"] and result["versions"]["torch"]


def test_a_contender_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sb3.py").write_text("raise ImportError('no such peer')\n")
    monkeypatch.setattr(cartpole, "_PROGRAMS", tmp_path)
    with pytest.raises(ContenderError, match="sb3: ImportError: no such peer"):
        cartpole._learn(Path(cartpole.sys.executable), "sb3", {})
