"""Episodes of several turns, learnt from: what was sampled and nothing else, each turn paid where it ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.agents.test_language import CHATML, SYSTEM_LAST, policy
from tetrathlon.agents.decisions import Evaluation
from tetrathlon.agents.engine import Completion
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.algos.batch import policy_loss, prepare
from tetrathlon.algos.on_policy import GRPO, PPO
from tetrathlon.algos.options import Options
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.registry import make
from tetrathlon.envs.slots import Slots

KWARGS: dict[str, Any] = {"progress_weight": 0.5, "least_hops": 2, "most_hops": 3, "max_turns": 5, "entries": 3}


class Told(LanguagePolicy):
    """Samples what the expert says, so that a model that knows nothing has whole episodes."""

    asks = True
    turns: list[str]

    def act(self, observations: Any, memory: Any = None, *, infos: Any = None, **others: Any) -> Any:
        self.turns = [info["expert_action"] for info in infos]
        return super().act(observations, memory, infos=infos, **others)


def told(template: str | None = CHATML, critic: Any = None) -> Told:
    made = policy(template, context=4096, critic=critic, max_tokens=300)
    teller = Told(made.model, made.tokenizer, max_tokens=300, critic=critic)

    def generate(prompts: Any, sampling: Any, limits: Any = None) -> list[Completion]:
        said = [[*teller.tokenizer.encode(turn), 2] for turn in teller.turns]
        return [Completion(ids, [-1.0 - at / 64 for at in range(len(ids))], "eos") for ids in said]

    teller.engine.generate = generate  # type: ignore[method-assign, assignment]
    return teller


def played(made: Told, n: int = 4, **kwargs: Any) -> list[Episode]:
    slots = Slots(lambda: make("Lookup-v0", **{**KWARGS, **kwargs}), 2)
    starts = [Start(seed=number // 2, group=number // 2) for number in range(n)]
    episodes = Rollout(made, slots, starts).episodes()
    slots.close()
    assert all(episode.is_success and len(episode) >= 3 for episode in episodes)
    return episodes


@pytest.mark.parametrize("template", [CHATML, None, SYSTEM_LAST])
def test_the_mask_is_true_exactly_where_something_was_sampled(template: str | None) -> None:
    made = told(template)
    episodes = played(made)
    batch = made.collate([[episode] for episode in episodes])
    for row, episode in enumerate(episodes):
        mask, ids = batch.mask[row], batch.inputs["ids"][row]
        sampled = [step.record["ids"].tolist() for step in episode.steps if step.record]
        assert ids[mask].tolist() == [i for turn in sampled for i in turn]
        assert batch.turn[row][mask].tolist() == [t for t, turn in enumerate(sampled) for _ in turn]
        given = made.tokenizer.decode(ids[~mask])
        for step in episode.steps[1:]:
            assert step.observation in given  # what a tool said is read, and is no decision
        text = made.tokenizer.decode(ids[mask])
        assert text == "<|im_end|>".join(step.action for step in episode.steps) + "<|im_end|>"


def test_each_turn_is_paid_at_its_last_token() -> None:
    made = told()
    (episode,) = played(made, 1)
    batch = made.collate([[episode]])
    where = batch.reward[0].nonzero().flatten()
    ends = [int((batch.mask[0] & (batch.turn[0] == turn)).nonzero()[-1]) for turn in range(len(episode))]
    assert where.tolist() == ends
    assert batch.reward[0][where].tolist() == pytest.approx([step.reward for step in episode.steps])
    assert float(batch.reward.sum()) == pytest.approx(1.5)
    assert batch.terminated[0].nonzero().flatten().tolist() == ends[-1:] and not batch.truncated.any()
    assert not batch.final.any() and batch.env_steps[0][batch.mask[0]].sum() == len(episode)


@pytest.mark.parametrize("template", [CHATML, SYSTEM_LAST])
@pytest.mark.parametrize("options", [GRPO.Options(), PPO.Options(credit="turn"), PPO.Options(ratio="turn")])
def test_the_gradient_is_zero_at_every_token_that_was_not_sampled(template: str, options: Options) -> None:
    made = told(template, critic="head" if options.advantage == "gae" else None)
    episodes = played(made)
    batch = made.collate([[episode] for episode in episodes])
    batch.reward[0] *= 0.5  # members of a group differ
    batch.total_reward[0] *= 0.5
    batch, _ = prepare(made, batch, replace(options, entropy_coef=0.01, epochs=2))
    with torch.no_grad():
        found = made.evaluate(batch)
    columns = {
        name: torch.randn(batch.mask.shape).masked_scatter(batch.mask, column[batch.mask]).requires_grad_()
        for name in ("logp", "entropy", "value")
        if (column := getattr(found, name)) is not None
    }
    made.evaluate = lambda decisions: Evaluation(**columns)  # type: ignore[method-assign]
    loss, _ = policy_loss(made, batch, replace(options, entropy_coef=0.01, epochs=2))
    loss.backward()
    for name, column in columns.items():
        assert column.grad is not None
        assert bool((column.grad[~batch.mask] == 0).all()), name
        assert bool((column.grad[batch.mask] != 0).any()), name


def test_a_context_that_is_full_ends_the_episode_terminated() -> None:
    made = policy(CHATML, context=700, max_tokens=24)
    slots = Slots(lambda: make("Lookup-v0", **KWARGS), 2)
    episodes = Rollout(made, slots, [Start(seed=seed) for seed in range(2)]).episodes()
    slots.close()
    assert {episode.stop_reason for episode in episodes} <= {"context", "length"}
    for episode in episodes:
        assert episode.steps[-1].terminated and not episode.steps[-1].truncated and not episode.is_success
