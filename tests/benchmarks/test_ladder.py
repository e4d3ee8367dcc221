"""The ladder: each rung begins where it should, is tried as it should be, and is not run twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from tetrathlon.agents.policy import Acted, RandomPolicy
from tetrathlon.algos.dagger import DAgger
from tetrathlon.algos.imitation import BC
from tetrathlon.algos.on_policy import GRPO, PPO
from tetrathlon.benchmarks import ladder, ladder_plays
from tetrathlon.benchmarks.ladder_plays import instance_of, is_narrow
from tetrathlon.benchmarks.rungs import RUNGS, Rung

_BC: dict[str, Any] = {"steps": 3, "batch_size": 8}
TINY = (
    Rung(name="shown", what="demonstrations", observation="state", narrow=2, wide=1, updates=1, options=_BC),
    Rung(
        name="asked",
        what="labels",
        observation="state",
        learner="dagger",
        start="shown",
        narrow=2,
        updates=1,
        options={**_BC, "episodes": 2, "beta": 0.0},
        kwargs={"max_steps": 6},
    ),
    Rung(
        name="paid",
        what="progress",
        observation="state",
        learner="ppo",
        head="gaussian",
        start="shown",
        updates=1,
        options={"groups": 2, "horizon": 8, "piece": 1, "minibatches": 1, "epochs": 1, "lr": 0.0},
        kwargs={"reward": "dense"},
        deviation=0.3,
        critic_updates=1,
        frozen=True,
    ),
)


def test_rungs_are_made_of_options_that_there_are() -> None:
    learners: dict[str, Any] = {"bc": BC, "dagger": DAgger, "ppo": PPO, "grpo": GRPO}
    names = [rung.name for rung in RUNGS]
    assert len(set(names)) == len(names)
    for rung in RUNGS:
        learners[rung.learner].Options(**rung.options)
        assert rung.start is None or names.index(rung.start) < names.index(rung.name)
        assert (rung.narrow or rung.wide) or rung.learner in ("ppo", "grpo")


def test_a_ladder_is_climbed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "RUNGS", TINY)
    monkeypatch.setattr(ladder_plays, "EPISODES", {"state": {"test": 6, "recovery": 2}})
    monkeypatch.setattr(ladder_plays, "_LOSS_EPISODES", 2)
    out = tmp_path / "ladder.json"
    command = ladder.Ladder(out=out, weights=tmp_path, rungs=("shown", "asked", "paid"), seeds=(3,))
    assert command.run() == 0
    told = json.loads(out.read_text())
    shown, asked, paid = told["runs"]
    assert [run["rung"] for run in told["runs"]] == [rung["name"] for rung in told["rungs"]]
    assert asked["train"][0]["interventions"] == 0 and asked["train"][0]["labels"] > 0
    # With a learning rate of 0 the mean of the Gaussian does what the clone says.
    assert paid["tried"] == shown["tried"] and paid["loss"] != shown["loss"]
    assert shown["tried"]["test"]["success"]["n"] == 6 and "blank" not in shown["tried"]
    assert command.run() == 0
    assert json.loads(out.read_text())["runs"] == told["runs"]
    console = Console(width=200, record=True)
    console.print(ladder.table(told["runs"]))
    assert "asked" in console.export_text()
    with pytest.raises(ValueError, match="rungs are shown, asked, paid; got top"):
        ladder.Ladder(out=out, weights=tmp_path, rungs=("top",)).run()


def test_narrow_demonstrations_begin_behind_the_object() -> None:
    narrow = [seed for seed in range(100) if is_narrow(instance_of(seed))]
    assert 4 <= len(narrow) < 20
    episodes = ladder_plays.demonstrations("state", 0, 3, narrow=True, skip=1)
    assert [episode.seed for episode in episodes] == narrow[1:4]
    for episode in episodes:
        way, goal = episode.steps[0].observation[5:7], episode.steps[0].observation[13:15]
        assert way @ goal / np.linalg.norm(way) / np.linalg.norm(goal) > 0.79  # object from hand, zone from object


def test_who_is_misled_is_told_of_another_object() -> None:
    for seed in range(5):
        true = instance_of(seed, "test")
        told = ladder_plays._misled(ladder_plays.Start(seed=seed))
        assert told.target == true.target and told.objects == true.objects
        assert true.object_colours[true.target] in true.instruction.split()
        assert true.object_colours[true.target] not in told.instruction.split()
        assert set(told.instruction.split()) & (set(true.object_colours) - {true.object_colours[true.target]})


def test_a_recovery_begins_with_chance() -> None:
    class Still:
        def act(self, observations: Any, memory: Any = None, **others: Any) -> Acted:
            return Acted(np.zeros((2, 2, 2), np.float32), [None, None], [None, None])

    space = ladder_plays.make(ladder_plays.TASK, **ladder_plays.arguments("state")).action_space
    thrown = ladder_plays._Thrown(Still(), RandomPolicy(space, seed=0))
    memory: Any = None
    moved = []
    for _ in range(12):
        acted = thrown.act(np.zeros((2, 22), np.float32), memory)
        memory = acted.memory
        moved.append(bool(acted.actions.any()))
    assert moved == [True] * 10 + [False] * 2
