"""Faults that users of public trainers reported of language models in training: what is learnt from their episodes."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest
import torch

from tests.agents.talkers import episode, talker
from tetrathlon.agents.decisions import Decisions
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.algos import learner as learning
from tetrathlon.algos.learner import Learner
from tetrathlon.algos.on_policy import GRPO
from tetrathlon.algos.options import Options
from tetrathlon.envs import hostile, listings

KINDS = pytest.mark.parametrize("kind", ["rotary", "learned"])


@pytest.fixture(autouse=True)
def asking() -> Iterator[None]:
    gym.register("Asking-v0", entry_point="tests.agents.talkers:Asking")
    yield
    del gym.registry["Asking-v0"]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[Decisions]:
    """What every loss is computed of, from now on."""
    seen: list[Decisions] = []
    real = learning.policy_loss

    def watched(policy: Any, batch: Decisions, *rest: Any) -> Any:
        seen.append(batch)
        return real(policy, batch, *rest)

    monkeypatch.setattr(learning, "policy_loss", watched)
    return seen


class TestUpdates:
    # trl#3493, trl#3725
    def test_each_start_is_played_group_size_times_and_old_probabilities_are_those_of_the_player(
        self, steps: list[Decisions]
    ) -> None:
        made = talker("learned")
        player = made.snapshot()
        algorithm = GRPO(made, "Asking-v0", groups=4, group_size=3, epochs=3, minibatches=2, lr=0.01)
        collected = algorithm.collector.collect()
        assert list(Counter(row[0].group for row in collected.rows).values()) == [3] * 4
        assert len({row[0].seed for row in collected.rows}) == 4
        batch = made.collate(collected.rows)
        with torch.no_grad():
            expected = player.evaluate(batch).logp
        number = {tuple(ids.tolist()): b for b, ids in enumerate(batch.inputs["ids"])}
        metrics = Learner(made, algorithm.options).update(collected.rows)
        assert metrics["steps"] == 6.0 and metrics["kl_old"] > 1e-4  # it moved between the steps
        seen: Counter[int] = Counter()
        for step in steps:
            assert step.old_logp is not None
            assert list(Counter(step.group.tolist()).values()) == [3, 3]  # whole groups
            for b, ids in enumerate(step.inputs["ids"]):
                own = number[tuple(ids.tolist())]
                seen[own] += 1
                assert torch.allclose(step.old_logp[b][step.mask[b]], expected[own][batch.mask[own]], atol=1e-5)
        assert sum(seen.values()) == 36 and set(seen) == set(number.values())

    # trl#5312, SkyRL#2246, NeMo-RL#4018
    @KINDS
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_loaded_weights_are_played_at_once(self, kind: str, dtype: torch.dtype) -> None:
        texts = ("the same beginning of a question", "the same beginning of another", "q")

        def play(made: LanguagePolicy) -> list[list[int]]:
            records = made.act(texts, greedy=True).records
            return [record["ids"].tolist() for record in records if record is not None]

        old, new, fresh = (talker(kind, seed=seed) for seed in (0, 1, 1))
        for made in (old, new, fresh):
            made.model.to(dtype)
        before = play(old)
        old.load_state_dict(new.state_dict())
        assert play(old) == play(fresh) != before
        with torch.no_grad():
            for made in (old, fresh):
                for parameter in made.parameters():
                    parameter.neg_()
        assert play(old) == play(fresh) != play(new)

    # NeMo-RL#2322, AReaL#1369, ml-by-hand#85
    def test_weights_of_16_bits_are_refused_and_autocast_is_not(self) -> None:
        narrow = talker("rotary")
        narrow.model.to(torch.bfloat16)
        with pytest.raises(ValueError, match=r"bfloat16, in which an update of 1e-5 rounds to nothing; .* autocast"):
            GRPO(narrow, "Asking-v0", groups=2, group_size=2).learn(1)
        made = talker("rotary", autocast=torch.bfloat16)
        before = copy.deepcopy(made.model.state_dict())
        GRPO(made, "Asking-v0", groups=4, group_size=3, lr=1e-5).learn(1)
        moved = [float((made.model.state_dict()[name] - weight).abs().max()) for name, weight in before.items()]
        # The first step of Adam is as long as the learning rate.
        assert max(moved) == pytest.approx(1e-5, rel=0.05) and sum(value > 0 for value in moved) == len(moved)

    def test_small_steps_add_up(self) -> None:
        made = talker("rotary")
        learner = Learner(made, Options(lr=1e-5))
        norm = made.model.model.norm.weight
        assert norm.min() == norm.max() == 1.0
        for _ in range(200):
            for parameter in made.parameters():
                parameter.grad = torch.ones_like(parameter)
            learner.optimizer.step()
        assert norm.detach().tolist() == pytest.approx([1 - 0.002] * len(norm), abs=1e-5)


class TestMissingRewards:
    # trl#5902, trl#2737, trl#6427, ms-swift#8123
    @pytest.mark.parametrize(
        ("rewards", "expected"),
        [
            ([1.0, 0.0, None, 0.0], [1.1545, -0.5773, -0.5773]),
            ([1.0, None, None, None], [0.0]),
            ([0.5, None, None, 0.5], [0.0, 0.0]),
        ],
    )
    def test_a_group_is_compared_among_those_that_were_graded(
        self, steps: list[Decisions], rewards: list[float | None], expected: list[float]
    ) -> None:
        made = talker("rotary")
        played = [episode(made, "q") for _ in rewards]
        for one, reward in zip(played, rewards, strict=True):
            one.group = 0
            last = one.steps[-1]
            last.reward, last.info = reward or 0.0, {} if reward is not None else {"grader_error": "timed out"}
        options = Options(eps=1e-4, epochs=1, minibatches=1)
        metrics = Learner(made, options).update([[one] for one in played])
        (batch,) = steps
        assert batch.advantage is not None
        got = [batch.advantage[b][batch.mask[b]].unique().tolist() for b in range(len(batch))]
        assert [value for (value,) in got] == pytest.approx(expected, abs=1e-4)
        assert metrics["unscorable"] == rewards.count(None)

    @pytest.mark.parametrize("env_id", [listing.id for listing in listings("text")])
    def test_doing_nothing_is_never_paid_more_than_a_wrong_answer(self, env_id: str) -> None:
        env = gym.make(env_id)

        def paid(seed: int, action: str) -> float:
            env.reset(seed=seed)
            total, over = 0.0, False
            while not over:
                _, reward, terminated, truncated, info = env.step(action)
                total, over = total + float(reward), terminated or truncated
            assert not info["is_success"]
            return total

        for seed in range(4):
            wrong = min(paid(seed, action) for action in hostile.WRONG)
            for nothing in ("", " \n", "\0", "<think>", "<think>\n", "<think></think>", "<tool_call>"):
                assert paid(seed, nothing) <= wrong, (seed, nothing)


def test_rows_in_which_nothing_was_decided_may_be_a_part_or_a_step_of_their_own() -> None:
    found = []
    for max_cost in (None, 1.0):
        made = talker("learned")
        rows = GRPO(made, "Asking-v0", groups=3, group_size=2).collector.collect().rows
        for row in rows[:2]:  # as where the context is full before the first answer
            for step in row[0].steps:
                step.record = None
        # Without a step that is taken: Adam makes a whole one of the rounding of a gradient that is 0.
        metrics = Learner(made, Options(epochs=2, minibatches=3, lr=0.0, max_cost=max_cost)).update(rows)
        found.append([metrics[name] for name in ("steps", "loss", "entropy", "grad_norm")])
    assert found[0] == pytest.approx(found[1], rel=1e-4, abs=1e-6)
    assert found[0][0] == 6 and found[0][3] > 0.01


def test_the_reference_of_an_adapter_cannot_follow() -> None:
    peft = pytest.importorskip("peft")
    made = talker("rotary")
    config = peft.LoraConfig(r=2, target_modules=["q_proj"])
    adapted = LanguagePolicy(peft.get_peft_model(made.model, config), made.tokenizer)
    with pytest.raises(ValueError, match=r"reference_decay=0.9: the reference of this policy has no weights"):
        Learner(adapted, Options(kl_coef=0.1, reference_decay=0.9))
