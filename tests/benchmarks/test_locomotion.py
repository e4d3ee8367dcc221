"""PPO that walks beside a peer: what is run, kept and told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from tetrathlon.agents.control import ControlPolicy
from tetrathlon.algos.on_policy import PPO
from tetrathlon.benchmarks import locomotion
from tetrathlon.benchmarks.contender import ContenderError
from tetrathlon.benchmarks.locomotion import PRESETS, Locomotion

ENVS = ("Hopper-v5",)


def learnt(reached: float, seconds: float) -> dict[str, Any]:
    return {"versions": {}, "env_steps": 1000, "cpu_seconds": seconds, "returns": [reached - 1, reached + 1]}


def fake(monkeypatch: pytest.MonkeyPatch, results: dict[str, tuple[float, float]]) -> list[tuple[str, str, int]]:
    asked: list[tuple[str, str, int]] = []

    def learn(python: Path, program: str, options: dict[str, Any]) -> dict[str, Any]:
        reached, seconds = results[program]
        asked.append((options["env_id"], program, options["seed"]))
        return learnt(reached + 10 * options["seed"], seconds)

    monkeypatch.setattr(locomotion, "_learn", learn)
    return asked


@pytest.mark.parametrize(("ours", "code"), [((105.0, 2.0), 0), ((200.0, 3.0), 0), ((80.0, 2.0), 1), ((105.0, 3.1), 1)])
def test_the_verdict(
    ours: tuple[float, float],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake(monkeypatch, {"ours": ours, "sb3": (105.0, 3.0)})
    assert Locomotion(peers=Path("peer"), out=tmp_path / "r.json", envs=ENVS, seeds=(0, 1, 2)).run() == code
    shown = capsys.readouterr().out
    assert "105 to 125" in shown and "333" in shown  # the peer's interval and pace


def test_what_was_run_is_not_run_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    results = {"ours": (1.0, 1.0), "sb3": (1.0, 1.0)}
    out = tmp_path / "r.json"
    asked = fake(monkeypatch, results)
    Locomotion(peers=Path("peer"), out=out, envs=ENVS, seeds=(4,)).run()
    assert asked == [("Hopper-v5", "ours", 4), ("Hopper-v5", "sb3", 4)]
    Locomotion(peers=Path("peer"), out=out, envs=ENVS, seeds=(4, 5)).run()
    assert asked[2:] == [("Hopper-v5", "ours", 5), ("Hopper-v5", "sb3", 5)]
    kept = json.loads(out.read_text())
    assert len(kept["runs"]) == 4 and kept["command"].endswith("--seeds 4 5 --env-steps 300000")
    with pytest.raises(ContenderError, match="holds runs with other presets or other than 5 steps"):
        Locomotion(peers=Path("peer"), out=out, envs=ENVS, env_steps=5).run()


def test_what_fails_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ContenderError, match="envs must be of HalfCheetah-v5, Hopper-v5; got Ant-v5"):
        Locomotion(peers=Path("peer"), out=tmp_path / "r.json", envs=("Ant-v5",)).run()
    (tmp_path / "sb3.py").write_text("raise ImportError('no such peer')\n")
    monkeypatch.setattr(locomotion, "_PROGRAMS", tmp_path)
    with pytest.raises(ContenderError, match="sb3: ImportError: no such peer"):
        locomotion._learn(Path(locomotion.sys.executable), "sb3", {})


@pytest.mark.parametrize("env_id", PRESETS)
def test_the_presets_are_options(env_id: str) -> None:
    space = gym.spaces.Box(-1, 1, (3,))
    policy = ControlPolicy(space, space, **PRESETS[env_id]["policy"])
    options = PPO.Options(**PRESETS[env_id]["options"])
    assert policy.norm is not None and options.groups * options.horizon == 512
