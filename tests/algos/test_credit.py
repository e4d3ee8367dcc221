"""Credit by turn and by episode: where advantages live and values are learnt."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tetrathlon.algos.advantages import gae
from tetrathlon.algos.credit import Credit, assign
from tetrathlon.algos.segments import Level, Segments

NAN = torch.nan
# A prompt, two tokens, a tool's output, two tokens, the end: turns 0 and 1.
MASK = torch.tensor([[False, True, True, False, True, True, False]])
COLUMNS: dict[str, Any] = {
    "reward": torch.tensor([[NAN, 0.0, 0.25, NAN, 0.5, 1.0, NAN]]),
    "terminated": torch.tensor([[True, False, False, True, False, True, True]]),
    "truncated": torch.tensor([[True, False, False, True, False, False, True]]),
    "env_steps": torch.tensor([[-9, 0, 1, 99, 0, 1, -9]]),
}
VALUE = torch.tensor([[NAN, 0.6, 8.0, NAN, 0.8, 8.0, NAN]])


def credit(level: Level, gamma: float = 1.0) -> Credit:
    segments = Segments.of(
        level, MASK, episode=torch.zeros(1, 7, dtype=torch.long), turn=torch.tensor([[0, 0, 0, 1, 1, 1, -1]])
    )
    return assign(segments, **COLUMNS, gamma=gamma)


def advantages(level: Level, gamma: float, lam: float) -> tuple[Tensor, Tensor]:
    units = credit(level, gamma)
    advantage, wanted = gae(
        units.reward,
        VALUE,
        units.mask,
        final=torch.zeros_like(MASK),
        terminated=units.terminated,
        truncated=units.truncated,
        env_steps=units.env_steps,
        gamma=gamma,
        lam=lam,
    )
    return units.broadcast(advantage)[0], wanted[0]


def test_a_turn_acts_as_one_decision_at_its_first() -> None:
    units = credit("turn")
    assert units.mask[0].nonzero().flatten().tolist() == [1, 4]
    assert units.reward[0].tolist() == [0.0, 0.25, 0.0, 0.0, 1.5, 0.0, 0.0]
    assert units.terminated[0].nonzero().flatten().tolist() == [4]
    assert not units.truncated.any()
    assert units.env_steps[0].tolist() == [0, 1, 0, 0, 1, 0, 0]


def test_the_advantage_of_a_turn_reaches_all_its_decisions() -> None:
    # Second turn: 1.5 - .8 = .7. First: .25 + .5 * .8 - .6 = .05, and .5 * .9 * .7 after it. Values of 8 are not read.
    advantage, wanted = advantages("turn", gamma=0.5, lam=0.9)
    assert advantage.tolist() == pytest.approx([0, 0.365, 0.365, 0, 0.7, 0.7, 0])
    assert wanted.tolist() == pytest.approx([0, 0.965, 0, 0, 1.5, 0, 0])  # the critic learns at the first alone


def test_an_episode_is_one_decision_and_later_turns_are_discounted_in_it() -> None:
    units = credit("episode", gamma=0.5)
    assert units.reward[0, 1].item() == pytest.approx(0.25 + 0.5 * 1.5)
    assert units.env_steps[0, 1].item() == 2 and units.terminated[0, 1].item()
    advantage, _ = advantages("episode", gamma=0.5, lam=0.9)
    assert advantage.tolist() == pytest.approx([0, 0.4, 0.4, 0, 0.4, 0.4, 0])


def test_credit_by_decision_changes_nothing() -> None:
    units = credit("decision", gamma=0.5)
    assert torch.equal(units.mask, MASK)
    for name in COLUMNS:
        assert torch.equal(getattr(units, name)[MASK], COLUMNS[name][MASK]), name
    x = torch.arange(7.0)[None]
    assert torch.equal(units.broadcast(x), torch.where(MASK, x, 0.0))
