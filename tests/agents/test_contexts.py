"""Where a template writes the past anew, each context is read by itself, in one row."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.agents.test_language import CHATML, SYSTEM_LAST, policy
from tetrathlon.agents.contexts import contexts
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.envs.episode import Episode, Step


def test_rows_are_cut_where_a_context_begins() -> None:
    fresh = torch.tensor([[False, False, True, False, True], [False, False, False, False, False]])
    ids = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]])
    mask = torch.tensor([[False, True, False, True, False], [False, False, True, False, False]])
    cut, chosen = contexts(fresh, ids, mask)
    assert cut.tolist() == [[1, 2, 0, 0, 0], [3, 4, 0, 0, 0], [5, 0, 0, 0, 0], [6, 7, 8, 9, 10]]
    assert cut[chosen].tolist() == ids[mask].tolist() == [2, 4, 8]


def played(made: LanguagePolicy, turns: int) -> Episode:
    memory, steps = None, []
    for number in range(turns):
        acted = made.act((f"ask{number}",), memory, infos=[{"system": "s"} if number == 0 else {}])
        memory = acted.memory
        steps.append(Step(f"ask{number}", acted.actions[0], 1.0, record=acted.records[0]))
    steps[-1].terminated = True
    return Episode(steps, info={"system": "s"})


@pytest.mark.parametrize("template", [SYSTEM_LAST, CHATML.replace("in messages", "in messages[-3:]"), CHATML])
@pytest.mark.parametrize("critic", [None, "head", "shared", "own"])
def test_what_was_sampled_is_as_likely_as_when_it_was_sampled(template: str, critic: Any) -> None:
    made = policy(template, context=1024, critic=critic, seed=3)
    episodes = [played(made, turns) for turns in (3, 1, 2)]
    batch = made.collate([[episode] for episode in episodes])
    sampled = [sum(len(step.record["ids"]) for step in episode.steps if step.record) for episode in episodes]
    assert batch.mask.sum(dim=1).tolist() == sampled and batch.reward.sum(dim=1).tolist() == [3.0, 1.0, 2.0]
    assert ("fresh" in batch.inputs) == (template != CHATML)
    found = made.evaluate(batch)
    torch.testing.assert_close(found.logp[batch.mask], batch.logp[batch.mask], atol=2e-5, rtol=0)
