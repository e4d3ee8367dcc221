"""Demonstrations in the form in which they are learnt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from tetrathlon.agents.control import ControlPolicy
from tetrathlon.algos import BC, DAgger
from tetrathlon.algos.demonstrations import labelled, read, windows
from tetrathlon.envs.episode import Episode, Step, save_episodes

STATE: dict[str, Any] = {"observation": "state", "max_steps": 12}
SEEN = spaces.Box(-10, 10, (22,), np.float32)


def demonstration(length: int = 5) -> Episode:
    rng = np.random.default_rng(length)
    steps = [Step(rng.normal(size=22).astype(np.float32), np.full(2, t / 10, np.float32)) for t in range(length)]
    return Episode(steps, np.zeros(22, np.float32))


def policy(chunk: int | None) -> ControlPolicy:
    shape = (2,) if chunk is None else (chunk, 2)
    return ControlPolicy(SEEN, spaces.Box(-1, 1, shape, np.float32), hidden=(8,))


def test_each_step_holds_what_follows() -> None:
    chunks = windows(demonstration(), 3)
    first = [[round(10 * float(action[0])) for action in step.action] for step in chunks.steps]
    assert first == [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 4], [4, 4, 4]]
    pairs = zip(chunks.steps, demonstration().steps, strict=True)
    assert all(np.array_equal(step.observation, old.observation) for step, old in pairs)
    assert windows(Episode(), 3).steps == []


def test_single_actions_become_chunks_where_chunks_are_decided(tmp_path: Any) -> None:
    save_episodes(tmp_path, [demonstration(), demonstration(7)])
    for given in (tmp_path, [demonstration(), demonstration(7)]):
        found = read(given, policy(4))
        assert [np.shape(step.action) for step in found[1].steps] == [(4, 2)] * 7
        assert [np.shape(step.action) for step in read(given, policy(None))[0].steps] == [(2,)] * 5
    chunks = [windows(demonstration(), 4)]
    assert read(chunks, policy(4)) == chunks
    with pytest.raises(ValueError, match="no step in these demonstrations"):
        read([Episode()], policy(None))


def test_bc_learns_from_each_step_of_single_actions() -> None:
    kwargs = {**STATE, "chunk": 4}
    given: dict[str, Any] = {"demonstrations": [demonstration()], "kwargs": kwargs, "steps": 2, "batch_size": 2}
    (metrics,) = BC(policy(4), "tetrathlon/PushToZone-v0", **given).learn(1)
    assert metrics["dataset"] == 5.0


def test_dagger_begins_with_demonstrations_and_goes_on_with_them(tmp_path: Any) -> None:
    def trainer(**more: Any) -> DAgger:
        options = {"episodes": 2, "steps": 2, "beta": 0.0, "checkpoint_every": 1, "seed": 1}
        env = "tetrathlon/PushToZone-v0"
        return DAgger(policy(4), env, kwargs={**STATE, "chunk": 4}, **options, **more)  # type: ignore[arg-type]

    given = [demonstration(), demonstration(6)]
    (first,) = trainer(demonstrations=given, run=tmp_path).learn(1)
    assert first["dataset"] == 11 + first["labels"] and first["labels"] == 6 and first["interventions"] == 0
    again = trainer(demonstrations=given, run=tmp_path, resume=True)
    (second,) = again.learn(2)
    assert second["dataset"] == first["dataset"] + second["labels"]
    assert all(step.label is not None for episode in again.dataset.episodes for step in episode.steps)


def test_what_was_done_is_the_label() -> None:
    episode = labelled(demonstration())
    assert all(step.label is step.action and step.record is None for step in episode.steps)
