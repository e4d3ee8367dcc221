"""Reward models: where a score is read, what it does not depend on, and that it learns what was preferred."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import nn

from tests.algos.toys import CharTablePolicy, TablePolicy
from tetrathlon.agents import RewardModel, make_policy
from tetrathlon.agents.char_lm import char_lm
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.algos import PPO, BradleyTerry, Pair, agreement, paired
from tetrathlon.algos.collect import Collector, Play
from tetrathlon.algos.fitter import Fit
from tetrathlon.algos.reward_learning import Judge, Options
from tetrathlon.benchmarks.sums import near
from tetrathlon.envs.episode import Episode, Step

LETTERS = "ab?."


def said(shown: str, text: str, **others: Any) -> Episode:
    return Episode(steps=[Step(shown, text, terminated=True)], final_observation="", **others)


def model(kind: Any = "shared", **options: Any) -> RewardModel:
    """A model of letters whose head says something."""
    policy = char_lm(characters=LETTERS, size=16, layers=2, heads=2, critic=kind, **options)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        nn.init.normal_(policy.critic.layers[-1].weight)  # type: ignore[union-attr, index]
    return RewardModel(policy)


def by_hand(judge: RewardModel, ids: list[int]) -> float:
    """The head on the hidden state of the last of ``ids``, by transformers alone."""
    policy: Any = judge.policy
    with torch.no_grad():
        hidden = policy.model.model(input_ids=torch.tensor([ids])).last_hidden_state
        return float(policy.critic(hidden[0, -1:]))


class TestWhere:
    """The position that is read."""

    def test_it_is_the_one_behind_the_last_decided_token(self) -> None:
        judge = model()
        policy: Any = judge.policy
        batch = judge.collate([said("a?", "bb"), said("a?a?", "b")])
        for row in range(2):
            assert int(batch.mask[row].nonzero()[-1]) + 1 == int(batch.final[row].nonzero()[0])
        eos = policy.tokenizer.eos_token_id
        for shown, text in (("a?", "bb"), ("a?a?", "b"), ("?", "")):
            ids = [*policy.tokenizer(shown + text)["input_ids"], eos]
            assert judge.score([said(shown, text)])[0] == pytest.approx(by_hand(judge, ids), abs=1e-5)

    def test_of_an_answer_that_was_cut_it_is_the_last_token(self) -> None:
        judge = model(max_tokens=2)
        policy: Any = judge.policy
        with torch.no_grad():
            policy.model.lm_head.weight[policy.tokenizer.eos_token_id] = 0.0
        acted = policy.act(("ab", "?"))
        for shown, action, record, stop in zip(("ab", "?"), acted.actions, acted.records, acted.stops, strict=True):
            if stop != "length":
                continue
            episode = Episode(steps=[Step(shown, action, terminated=True, record=record)], final_observation="")
            ids = [*record["prompt"].tolist(), *record["ids"].tolist()]
            assert judge.score([episode])[0] == pytest.approx(by_hand(judge, ids), abs=1e-5)
        assert "length" in acted.stops

    def test_of_control_it_is_the_last_observation(self) -> None:
        policy = TablePolicy(3, 2)
        with torch.no_grad():
            policy.critic.v.copy_(torch.tensor([1.0, 2.0, 4.0]))
        walk = [Step(np.int64(0), np.int64(1)), Step(np.int64(1), np.int64(1), terminated=True)]
        judge = RewardModel(policy)
        assert judge.score([Episode(steps=walk, final_observation=np.int64(2)), replace_last(walk, 0)]) == [4.0, 1.0]

    def test_it_does_not_depend_on_what_stands_beside_it(self) -> None:
        judge = model()
        episodes = [said("a?", "b"), said("ab" * 9, "?" * 7), said("b", "ab"), said("a?", "ba"), said("", "")]
        alone = [judge.score([episode])[0] for episode in episodes]
        assert len({round(score, 4) for score in alone}) == len(episodes)
        assert judge.score(episodes) == pytest.approx(alone, abs=1e-5)
        assert judge.score(episodes[::-1])[::-1] == pytest.approx(alone, abs=1e-5)
        assert RewardModel(judge.policy, batch_size=2).score(episodes) == pytest.approx(alone, abs=1e-5)
        wide = judge.collate(episodes)
        assert judge(wide.select([2, 0])).tolist() == pytest.approx([alone[2], alone[0]], abs=1e-5)
        wide.inputs["ids"][0, int(wide.final[0].nonzero()[0]) :] = 3  # behind the end of a row
        assert judge(wide).tolist() == pytest.approx(alone, abs=1e-5)

    def test_rewards_and_records_change_nothing(self) -> None:
        judge = model()
        episode = said("a?", "b")
        rich = replace(episode, steps=[replace(episode.steps[0], reward=9.0)], group=3)
        assert judge.score([episode]) == judge.score([rich])

    def test_it_is_the_critics_value(self) -> None:
        """Though nothing that was decided is evaluated for it."""
        judge = model()
        batch = judge.collate([said("a?", "b"), said("b", "ab")])
        value = judge.policy.evaluate(batch).value
        assert value is not None and judge(batch).tolist() == pytest.approx(value[batch.final].tolist(), abs=1e-6)

    def test_what_cannot_be_scored_is_said(self) -> None:
        judge = model()
        with pytest.raises(ValueError, match=r"a row is scored at its one final position; there are \[0, 0\] of them"):
            judge(judge.policy.collate([[said("a", "b")]] * 2, learn="action"))
        blind = CharTablePolicy("ab.", end=".")
        del blind.critic
        with pytest.raises(TypeError, match="CharTablePolicy has no module 'critic' that gives values"):
            RewardModel(blind)
        with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
            RewardModel(judge.policy, batch_size=0)


def replace_last(steps: list[Step], last: int) -> Episode:
    return Episode(steps=steps, final_observation=np.int64(last))


class TestLearning:
    """Which weights learn, from what, by what loss."""

    @pytest.mark.parametrize(("kind", "trunk"), [("shared", True), ("head", False)])
    def test_the_model_learns_with_its_head(self, kind: str, trunk: bool) -> None:
        judge = model(kind)
        judge(judge.collate([said("a?", "b"), said("b", "ab")])).sum().backward()
        has = {name for name, weight in judge.policy.named_parameters() if weight.grad is not None}
        assert any(name.startswith("critic.") for name in has)
        assert any(name.startswith("model.model.layers.0.") for name in has) == trunk
        assert "model.lm_head.weight" not in has

    def test_a_policy_without_a_critic_gets_one_that_teaches_it(self) -> None:
        policy = char_lm(characters=LETTERS, size=16, layers=1, heads=2)
        assert RewardModel(policy).score([said("a", "b")]) == [0.0] and policy.critic is not None
        assert policy.critic.detach is False

    @pytest.mark.parametrize(
        ("options", "value"),
        [({}, 0.313262), ({"margin": 0.5}, 0.474077), ({"label_smoothing": 0.1}, 0.413262)],
    )
    def test_values(self, options: dict[str, float], value: float) -> None:
        """Bradley-Terry with a difference of 1, through rows and step."""
        policy = TablePolicy(2, 2)
        with torch.no_grad():
            policy.critic.v.copy_(torch.tensor([1.5, 0.5]))
        ends = [Episode(steps=[Step(0, 0, terminated=True)], final_observation=end) for end in (0, 1)]
        judge = Judge(RewardModel(policy), Options(steps=1, lr=0.0, **options))  # type: ignore[arg-type]
        found = judge.update(judge.rows([Pair(*ends)]))
        assert found["loss"] == pytest.approx(value, abs=1e-6)
        assert (found["accuracy"], found["margin"]) == (1.0, 1.0)
        assert (found["score_preferred"], found["score_rejected"]) == (1.5, 0.5)
        found = judge.update(judge.rows([Pair(*ends[::-1])]))
        assert (found["accuracy"], found["margin"]) == (0.0, -1.0)

    def test_parts_add_up_to_the_whole(self) -> None:
        pairs = [Pair(said("a?" * (1 + i), "b"), said("a?" * (1 + i), "b" * (2 + i))) for i in range(5)]
        found = []
        for cost in (None, 1.0, 30.0):
            judge = model()
            learner = Judge(judge, Options(steps=1, lr=0.0, max_cost=cost, max_grad_norm=1e9))
            metrics = learner.update(learner.rows(pairs))
            weights = [weight.grad.flatten() for weight in judge.policy.parameters() if weight.grad is not None]
            found.append((metrics, torch.cat(weights)))
        for metrics, grad in found[1:]:
            assert metrics == pytest.approx(found[0][0], rel=1e-5, abs=1e-6)
            torch.testing.assert_close(grad, found[0][1], rtol=1e-3, atol=1e-6)

    @pytest.mark.parametrize("name", ["margin", "label_smoothing"])
    def test_wrong_options(self, name: str) -> None:
        with pytest.raises(ValueError, match=f"{name} must be .*, got -0.1"):
            Options(**{name: -0.1})  # type: ignore[arg-type]
        assert isinstance(Options(), Fit)


def pairs_of(policy: LanguagePolicy, split: str, groups: int, seed: int) -> list[Pair]:
    collector = Collector(policy, "Sums-v0", Play(groups=groups, group_size=4, split=split, seed=seed))
    return paired([episode for row in collector.collect().rows for episode in row]).pairs


@pytest.fixture(scope="module")
def pairs() -> tuple[list[Pair], list[Pair]]:
    """To learn from, and held out."""
    return pairs_of(near(), "train", 600, 0), pairs_of(near(), "test", 300, 1)


class TestSums:
    """Sums, right or off by up to 2."""

    def test_ranks_pairs_that_it_never_saw(self, pairs: tuple[list[Pair], list[Pair]]) -> None:
        shown, held_out = pairs
        trainer = BradleyTerry(near(), "Sums-v0", pairs=shown, steps=50, lr=1e-3)
        assert agreement(trainer.model.score, held_out) == 0.5  # a head that says 0
        trainer.learn(2)
        assert len(held_out) > 100 and agreement(trainer.model.score, held_out) > 0.85

    def test_turned_around_it_ranks_the_other_way(self, pairs: tuple[list[Pair], list[Pair]]) -> None:
        shown, held_out = pairs
        turned = [Pair(pair.rejected, pair.preferred) for pair in shown]
        trainer = BradleyTerry(near(), "Sums-v0", pairs=turned, steps=50, lr=1e-3)
        trainer.learn(2)
        assert agreement(trainer.model.score, held_out) < 0.15

    def test_shuffled_labels_teach_nothing(self, pairs: tuple[list[Pair], list[Pair]]) -> None:
        shown, held_out = pairs
        rng = random.Random(0)
        tossed = [pair if rng.random() < 0.5 else Pair(pair.rejected, pair.preferred) for pair in shown]
        trainer = BradleyTerry(near(), "Sums-v0", pairs=tossed, steps=50, lr=1e-3)
        trainer.learn(2)
        assert agreement(trainer.model.score, held_out) == pytest.approx(0.5, abs=0.15)


class TestUse:
    """As a reward, and from disk."""

    def test_it_pays_a_term_of_its_own(self) -> None:
        judge = RewardModel(near())
        with torch.no_grad():
            judge.policy.critic.layers[-1].bias.fill_(2.0)  # type: ignore[union-attr, index]
        options: dict[str, Any] = {"groups": 4, "epochs": 1, "minibatches": 1}
        trainer = PPO(near(), "Sums-v0", kwargs={"pay": 0.0}, scorers={"reward_model": judge.score}, **options)
        (metrics,) = trainer.learn(1)
        assert metrics["reward_terms/reward_model"] == metrics["episode_reward"] == metrics["reward"] == 2.0
        assert metrics["reward_terms/correct"] == 0.0

    def test_that_of_a_run_scores_as_it_did(self, tmp_path: Path) -> None:
        env = gym.make("tetrathlon/Arithmetic-v0", answer_format="plain", max_tokens=3)
        policy: Any = make_policy("char", env, seed=0)
        pairs = [Pair(said(f"{i}+1", str(i + 1)), said(f"{i}+1", str(i))) for i in range(8)]
        kept: dict[str, Any] = {"run": tmp_path, "name": "char"}
        trainer = BradleyTerry(policy, "tetrathlon/Arithmetic-v0", pairs=pairs, steps=5, **kept)
        trainer.learn(2)
        episodes = [pair.preferred for pair in pairs]
        scores = trainer.model.score(episodes)
        again: Any = make_policy(f"run:{tmp_path}", env)
        assert RewardModel(again).score(episodes) == scores and len(set(scores)) == 8
        other = RewardModel(make_policy("char", env, seed=1))  # type: ignore[arg-type]
        other.load_state_dict(trainer.model.state_dict())
        assert other.score(episodes) == scores
