"""Pieces of rows: what they hold, and that an update by them is the same."""

from __future__ import annotations

import copy
from dataclasses import fields
from typing import Any

import gymnasium as gym
import pytest
import torch

from tests.algos.toys import TablePolicy
from tetrathlon.agents.control import ControlPolicy
from tetrathlon.agents.rollout import Rollout
from tetrathlon.algos.learner import Learner
from tetrathlon.algos.options import Options
from tetrathlon.algos.pieces import pieces
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.slots import Slots


def played(policy: ControlPolicy, steps: int = 30) -> list[list[Episode]]:
    slots = Slots(lambda: gym.make("CartPole-v1"), 2)
    return Rollout(policy, slots).stretch(steps)


def made(**options: Any) -> ControlPolicy:
    env = gym.make("CartPole-v1")
    return ControlPolicy(env.observation_space, env.action_space, hidden=(8,), **options)


@pytest.mark.parametrize("length", [1, 7, 100])
def test_every_decision_is_in_one_piece(length: int) -> None:
    policy = made()
    batch = policy.collate(played(policy))
    cut = pieces(batch, length)
    assert cut.mask.shape[1] == length and bool(cut.mask.any(dim=1).all())
    assert cut.group.tolist() == sorted(set(cut.group.tolist()))
    for name in ("logp", "reward", "terminated", "episode", "turn"):
        assert torch.equal(getattr(cut, name)[cut.mask], getattr(batch, name)[batch.mask])
    for name, values in batch.inputs.items():
        assert torch.equal(cut.inputs[name][cut.mask], values[batch.mask])
    columns = [value for column in fields(cut) if isinstance(value := getattr(cut, column.name), torch.Tensor)]
    assert {len(column) for column in [*columns, *cut.inputs.values()]} == {len(cut)}


def test_an_update_by_pieces_is_the_update_of_the_whole() -> None:
    start = made(seed=2)
    rows = played(start)
    found = {}
    for piece in (None, 1, 8):
        policy = copy.deepcopy(start)
        options = Options(advantage="gae", normalize=True, epochs=2, minibatches=1, piece=piece, max_grad_norm=1e9)
        metrics = Learner(policy, options).update(rows)
        assert metrics["first_ratio_error"] == pytest.approx(0, abs=1e-6) and metrics["decisions"] == 60
        found[piece] = torch.cat([p.detach().flatten() for p in policy.parameters()])
    assert not torch.equal(found[None], torch.cat([p.flatten() for p in start.parameters()]))
    for piece in (1, 8):
        torch.testing.assert_close(found[piece], found[None], rtol=1e-3, atol=1e-5)


def test_minibatches_are_dealt_out_of_one_row() -> None:
    policy = made()
    rows = played(policy)[:1]
    whole, cut = (
        Learner(copy.deepcopy(policy), Options(advantage="gae", epochs=1, minibatches=5, piece=piece)).update(rows)
        for piece in (None, 1)
    )
    assert (whole["steps"], cut["steps"]) == (1, 5)


def test_what_pieces_need() -> None:
    with pytest.raises(ValueError, match="piece must be at least 1, got 0"):
        Options(piece=0)
    with pytest.raises(ValueError, match=r"piece=1 needs reduction='decision_mean'.* got 'episode_mean'"):
        Options(piece=1, reduction="episode_mean")
    with pytest.raises(TypeError, match="piece=4: TablePolicy is not divisible"):
        Learner(TablePolicy(2, 2), Options(advantage="gae", piece=4))
    with pytest.raises(ValueError, match="length must be at least 1, got 0"):
        pieces(made().collate([]), 0)
    assert len(pieces(made().collate(played(made())), 3)) >= 20
