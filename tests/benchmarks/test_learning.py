"""Experiments: they go on where they stopped, and keep what they saw."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tetrathlon.benchmarks import learning, learning_picture
from tetrathlon.benchmarks.experiments import EXPERIMENTS, Experiment

TINY = Experiment(
    name="tiny",
    what="a pole",
    algorithm="ppo",
    env="CartPole-v1",
    policy="control",
    options={"groups": 2, "horizon": 8},
    updates=3,
    test_every=2,
    test_episodes=2,
    aim=0.9,
)


def test_names_differ_and_options_are_those_of_the_algorithm() -> None:
    from tetrathlon.algos import ALGORITHMS

    assert len({experiment.name for experiment in EXPERIMENTS}) == len(EXPERIMENTS)
    for experiment in EXPERIMENTS:
        ALGORITHMS[experiment.algorithm].Options(**experiment.options)


def test_an_experiment_goes_on_and_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(line: dict[str, Any]) -> dict[str, Any]:
        """CartPole tells no success; take one."""
        return line | {f"test/{name}": 0.5 for name in ("success", "low", "high")} if "test/reward" in line else line

    monkeypatch.setattr(learning, "EXPERIMENTS", (TINY,))
    real = learning._told
    monkeypatch.setattr(learning, "_told", lambda seed, lines: real(seed, [told(line) for line in lines]))
    words = ["tiny", "--seeds", "4", "5", "--out", str(tmp_path / "out"), "--runs", str(tmp_path / "runs")]
    assert learning.main(words) == 0
    first = json.loads((tmp_path / "out/tiny.json").read_text())
    assert [run["seed"] for run in first["runs"]] == [4, 5] and first["summary"]["aim"] == 0.9
    assert [look["updates"] for look in first["runs"][0]["test"]] == [0, 2, 3]
    assert first["runs"][0]["cpu_seconds"] > 0 and len(first["runs"][0]["train"]["entropy"]) == 3
    shutil.rmtree(tmp_path / "runs/tiny-4/checkpoints")
    assert learning.main(words) == 0, "nothing is left to do, with checkpoints or without"
    assert json.loads((tmp_path / "out/tiny.json").read_text())["runs"] == first["runs"]
    for run in first["runs"]:
        run["train"]["success"] = [0.1, 0.2, 0.3]
    (tmp_path / "out/tiny.json").write_text(json.dumps(first))
    assert learning_picture.main([str(tmp_path / "out"), "--out", str(tmp_path / "picture.svg")]) == 0
    assert "<svg" in (tmp_path / "picture.svg").read_text()


def test_an_unknown_experiment_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert learning.main(["addition-gpro", "--out", "nowhere"]) == 2
    assert "there is no experiment 'addition-gpro' (there are addition-grpo, " in capsys.readouterr().err


def test_pictures_are_looked_at_with_their_twins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Experiment(
        name="seen",
        what="pictures",
        algorithm="grpo",
        env="tetrathlon/Count-v0",
        kwargs={"answer_format": "plain", "max_tokens": 2},
        policy="tiny-vlm",
        arguments={"stride": 32, "size": 32, "layers": 1, "max_tokens": 2},
        options={"groups": 2, "group_size": 2, "variants": ("full", "twin"), "pair_reward": True},
        updates=1,
        test_every=1,
        test_episodes=2,
    )
    monkeypatch.setattr(learning, "EXPERIMENTS", (seen,))
    words = ["seen", "--seeds", "0", "--out", str(tmp_path / "out"), "--runs", str(tmp_path / "runs")]
    assert learning.main(words) == 0
    found = json.loads((tmp_path / "out/seen.json").read_text())
    assert {"success", "twin", "pair"} <= set(found["runs"][0]["before"])
    assert 0 <= found["summary"]["pair_after"] <= 1 and 0 <= found["summary"]["pair_before"] <= 1


@pytest.mark.parametrize("own", [False, True])
def test_seeds_have_starts_of_their_own_where_that_is_asked(
    own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[dict[str, Any]] = []
    make = learning.make_policy

    def noted(name: str, env: Any, **options: Any) -> Any:
        made.append(dict(options["arguments"]))
        options["arguments"] = {key: value for key, value in options["arguments"].items() if key != "seed"}
        return make(name, env, **options)

    monkeypatch.setattr(learning, "make_policy", noted)
    started = Experiment(
        name="sums",
        what="sums",
        algorithm="grpo",
        env="tetrathlon/Arithmetic-v0",
        kwargs={"answer_format": "plain", "max_tokens": 2},
        policy="char",
        own_start=own,
        options={"groups": 2, "group_size": 2},
        updates=1,
        test_every=1,
        test_episodes=2,
    )
    for seed in (0, 3):
        learning.train(started, seed, tmp_path / str(seed))
    assert [arguments.get("seed") for arguments in made] == ([0, 3] if own else [None, None])
