"""Environment steps of the batch of robots beside Gymnasium's vectors: what is counted, and what is told."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from tetrathlon.benchmarks import robot_speed
from tetrathlon.benchmarks.robot_speed import COMPARISONS, RobotSpeed, met
from tetrathlon.benchmarks.speed_comparison import Comparison
from tetrathlon.benchmarks.speed_contender import Contender

PROGRAM = Path(robot_speed.__file__).parent / "assets" / "robot_speed" / "steps.py"


class Noting(gym.Env[Any, Any]):
    """Notes what is done with it; an episode has two steps."""

    notes: list[list[Any]] = []  # noqa: RUF012

    def __init__(self, kind: str = "") -> None:
        self.kind = kind
        self.observation_space = spaces.Box(0, 9, (1,), np.float32)
        self.action_space = spaces.Box(-1, 1, (2,), np.float32)
        self.noted: list[Any] = []
        self.notes.append(self.noted)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.t = 0
        self.noted.append("reset")
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        self.noted.append(action.tolist())
        return np.zeros(1, np.float32), 0.0, self.t == 2, False, {}


@pytest.fixture
def noting() -> Iterator[str]:
    gym.register("toys/Noting-v0", entry_point=Noting)  # type: ignore[arg-type]
    yield "toys/Noting-v0"
    del gym.registry["toys/Noting-v0"]
    Noting.notes.clear()


@pytest.fixture(scope="module")
def steps() -> Any:
    spec = importlib.util.spec_from_file_location("steps_of_robots", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_makes_as_many_steps_and_restarts(steps: Any, noting: str) -> None:
    """Of three steps an episode takes two and its restart one; an action is drawn for that too."""
    episodes = steps.start("sync", noting, 2, {"kind": "a"})
    together = [notes for notes in Noting.notes if notes]
    assert episodes(4) == [1] * 4 and episodes(3) == [1] * 3
    assert [len(notes) for notes in together] == [8, 8]  # the first reset among them
    assert [[what == "reset" for what in notes] for notes in together] == [
        [True, False, False, True, False, False, True, False]
    ] * 2
    acted = [what for what in together[0] if what != "reset"]
    assert len(set(map(str, acted))) == len(acted) == 5
    Noting.notes.clear()
    assert steps.start("single", noting, 2, {})(4) == [1] * 4
    (alone,) = Noting.notes
    assert [what == "reset" for what in alone] == [True, *[False, False, True] * 2, False, False]


def tiny(observation: str = "state") -> Comparison:
    kwargs = {"observation": observation}

    def contender(name: str, kind: str, **options: Any) -> Contender:
        base = {"kind": kind, "env_id": "tetrathlon/PushToZone-v0", "n": 16, "kwargs": kwargs}
        return Contender(name, PROGRAM, {**base, **options})

    peers = (contender("sync", "sync"), contender("async", "async"), contender("single", "single"))
    return Comparison("tiny", "a few steps", contender("batch", "batch", threads=2), peers)


def test_a_run_tells_steps_of_environments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "speed.json"
    code = RobotSpeed(out=out, rounds=1, seconds=0.05).run((tiny(),))
    result = json.loads(out.read_text())
    (measured,) = result["comparisons"]
    assert measured["targets"] == {"sync": 2.5, "async": 3.5} and code == int(not met(measured))
    assert [row["name"] for row in measured["contenders"]] == ["batch", "sync", "async", "single"]
    for row in measured["contenders"]:
        (lap,) = row["laps"]
        assert lap["steps"] >= 16 and lap["steps"] % 16 == 0
        assert row["rate"] == pytest.approx(lap["steps"] / lap["seconds"])
        assert row["cpu_rate"] == pytest.approx(lap["steps"] / lap["cpu_seconds"])
        assert row["ratio"] == pytest.approx(measured["contenders"][0]["rate"] / row["rate"])
        assert row["versions"]["mujoco"]
    assert measured["contenders"][1]["ratio"] > 1.0  # as it is on any machine
    assert result["cpu"]["count"] >= 1 and result["command"].startswith("python -m tetrathlon.benchmarks.robot_speed")
    said = capsys.readouterr().out
    assert "steps/s" in said and "3.5" in said


def test_a_target_is_missed_by_either_peer() -> None:
    def measured(sync: float, apart: float) -> dict[str, Any]:
        rows = [{"name": "batch", "ratio": 1.0}, {"name": "sync", "ratio": sync}, {"name": "async", "ratio": apart}]
        return {"contenders": rows, "targets": {"sync": 2.5, "async": 3.5}}

    assert met(measured(2.5, 3.5)) and not met(measured(2.4, 9.0)) and not met(measured(9.0, 3.4))
    assert met({**measured(1.0, 1.0), "targets": {}})


def test_what_is_compared() -> None:
    names = [comparison.name for comparison in COMPARISONS]
    assert len(set(names)) == len(names) and {"pusher-state-16", "arm-state-64", "pusher-pixels-16"} <= set(names)
    for comparison in COMPARISONS:
        options = [contender.options for contender in (comparison.ours, *comparison.peers)]
        assert len({(one["env_id"], one["n"], str(one["kwargs"])) for one in options}) == 1  # the same work
        peers = {contender.name for contender in comparison.peers}
        assert {"sync", "async"} <= peers


@pytest.mark.parametrize(
    ("options", "message"),
    [({"only": ("dog",)}, "pusher-state-16.*got dog"), ({"rounds": 0}, "--rounds"), ({"seconds": 0.0}, "--seconds")],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RobotSpeed(**options).run()
