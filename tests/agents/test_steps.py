"""Collating where a step is one position."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tetrathlon.agents.decisions import Decisions
from tetrathlon.agents.steps import collate_steps
from tetrathlon.envs.episode import Episode, Step


def collated(rows: list[list[Episode]], **options: Any) -> Decisions:
    return collate_steps(
        rows,
        lambda observations: {"seen": np.array(observations), "twice": 2 * np.array(observations)},
        lambda actions, records: {
            "done": np.array([10 * a if r is None else r["done"] for a, r in zip(actions, records, strict=True)])
        },
        **options,
    )


def rows() -> list[list[Episode]]:
    def step(number: int, *, own: bool, label: int | None = None) -> Step:
        record = {"done": np.int64(100 + number), "logp": np.float32(-number)} if own else None
        return Step(float(number), number, 1.0, record=record, label=label)

    first = Episode([step(1, own=True, label=7), step(2, own=False), step(3, own=True)], final_observation=4.0)
    first.steps[-1].truncated = True
    second = Episode([step(5, own=True, label=8)], final_observation=6.0)
    second.steps[-1].terminated = True
    return [[first, second], [second]]


def test_own_decisions_are_those_with_a_record() -> None:
    batch = collated(rows())
    # steps 1 and 3, the last observation 4, step 5; and step 5 in a row of its own
    assert batch.mask.tolist() == [[True, True, False, True], [True, False, False, False]]
    assert batch.final.tolist() == [[False, False, True, False], [False] * 4]
    assert batch.inputs["seen"].tolist() == [[1, 3, 4, 5], [5, 0, 0, 0]]
    assert batch.inputs["twice"].tolist() == [[2, 6, 8, 10], [10, 0, 0, 0]]
    assert batch.inputs["done"].tolist() == [[101, 103, 0, 105], [105, 0, 0, 0]]
    assert batch.logp[batch.mask].tolist() == [-1, -3, -5, -5]
    assert batch.reward.tolist() == [[2, 1, 0, 1], [1, 0, 0, 0]]


def test_labels_take_the_place_of_what_was_done() -> None:
    batch = collated(rows(), learn="label", last="never")
    assert batch.inputs["seen"].tolist() == [[1, 5], [5, 0]]
    assert batch.inputs["done"].tolist() == [[70, 80], [80, 0]]
    assert bool(batch.logp.isnan().all()) and not batch.final.any()


def test_whatever_was_done() -> None:
    batch = collated(rows(), learn="action", last="always")
    assert batch.inputs["seen"].tolist() == [[1, 2, 3, 4, 5, 6], [5, 6, 0, 0, 0, 0]]
    assert batch.inputs["done"].tolist() == [[101, 20, 103, 0, 105, 0], [105, 0, 0, 0, 0, 0]]
    assert torch.equal(batch.logp[0, :3].isnan(), torch.tensor([False, True, False]))


def test_rows_without_decisions() -> None:
    forced = [[Episode([Step(1.0, 1, terminated=True)], final_observation=2.0)]]
    assert collated(forced).inputs == {} and collated([]).mask.shape == (0, 0)


def test_of_a_chunk_counts_what_was_executed() -> None:
    def step(paid: list[float] | None, *, own: bool = True) -> Step:
        record = {"done": np.int64(0), "logp": np.array([-1.0, -2.0, -4.0], np.float32)} if own else None
        return Step(0.0, 0, 1.0, info={} if paid is None else {"step_rewards": paid}, record=record, label=0)

    episode = Episode([step([1.0]), step([1.0] * 2), step(None), step([1.0], own=False)], final_observation=0.0)
    episode.steps[-1].terminated = True
    batch = collated([[episode]], learn="action", chunk=3)
    assert batch.inputs["executed"].tolist() == [[1, 2, 3, 3]]  # not told, and somebody else's: whole
    assert batch.logp[0, :3].tolist() == [-1.0, -3.0, -7.0] and batch.logp[0, 3].isnan()
    assert collated([[episode]], learn="label", chunk=3).inputs["executed"].tolist() == [[3] * 4]
    del episode.steps[0].record["logp"]  # type: ignore[union-attr]
    assert collated([[episode]], chunk=3).logp.isnan().tolist() == [[True, False, False]]
    assert "executed" not in collated([[episode]]).inputs
