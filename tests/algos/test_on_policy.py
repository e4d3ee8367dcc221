"""The trainer: what it plays, what it learns from, what it keeps on disk, and that none of it depends on chance."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.algos.toys import CharTablePolicy, MLPPolicy, TablePolicy
from tetrathlon.agents.decisions import Decisions, Evaluation
from tetrathlon.algos.batch import policy_loss, prepare
from tetrathlon.algos.callbacks import EarlyStop, Guard
from tetrathlon.algos.checkpoint import Checkpoints
from tetrathlon.algos.learner import Learner, NotFinite
from tetrathlon.algos.on_policy import ALGORITHMS, DAPO, GRPO, GSPO, PPO, REINFORCE, RLOO, DrGRPO, OnPolicy
from tetrathlon.algos.options import Options
from tetrathlon.algos.run import RunError
from tetrathlon.envs.episode import Episode, Step


class Doors(gym.Env[Any, Any]):
    """``length`` doors in a row; the right one of four is that of the observation, and pays 1."""

    observation_space = spaces.Discrete(3)
    action_space = spaces.Discrete(4)

    def __init__(self, length: int = 2, broken: bool = False) -> None:
        self.length, self.broken = length, broken

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.at = 0
        self.seen = int(self.np_random.integers(3))
        return self.seen, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        right = int(action) == self.seen + 1
        self.at += 1
        self.seen = int(self.np_random.integers(3))
        over = self.at >= self.length
        info: dict[str, Any] = {"reward_terms": {"door": float(right)}, "is_success": right}
        if over and self.broken:
            info["grader_error"] = "broken"
        return self.seen, float(right), over, False, info


@pytest.fixture(autouse=True)
def doors() -> Any:
    gym.register("Doors-v0", entry_point="tests.algos.test_on_policy:Doors")
    yield
    del gym.registry["Doors-v0"]


def weights(policy: torch.nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in policy.parameters()])


class Seeded(TablePolicy):
    """A table policy whose stream of actions is part of its state."""

    def get_extra_state(self) -> dict[str, Any]:
        return {"generator": self.generator.get_state()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.generator.set_state(state["generator"])


SMALL: dict[str, Any] = {"groups": 4, "group_size": 4, "lr": 0.05}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_learns_which_door_is_paid(name: str) -> None:
    options: dict[str, Any] = {"lr": 0.1, "groups": 8, "group_size": 8}
    if name in ("ppo", "reinforce"):
        options |= {"groups": 64, "group_size": 1}
    if name == "gspo":
        options |= {"clip_low": 0.2, "clip_high": 0.2}
    policy = TablePolicy(3, 4, seed=1)
    history = ALGORITHMS[name](policy, "Doors-v0", **options).learn(60)
    right = policy.logits.softmax(-1)[torch.arange(3), torch.arange(3) + 1]
    assert bool((right > 0.8).all()), right
    assert history[0]["episode_reward"] < 1.0 < 1.5 < history[-1]["episode_reward"]


def test_presets_are_the_papers_settings() -> None:
    assert asdict(DrGRPO.Options()) == asdict(GRPO.Options(scale="none", reduction="decision_mean"))
    assert DAPO.Options().clip_high == 0.28 and DAPO.Options().resample > 0
    assert GSPO.Options().ratio == "episode" and RLOO.Options().advantage == "leave_one_out"
    assert PPO.Options().advantage == "gae" and REINFORCE.Options().group_size == 1


def test_groups_are_the_same_start_and_every_start_is_asked_once() -> None:
    algorithm = GRPO(TablePolicy(3, 4), "Doors-v0", **SMALL)
    rows = algorithm.collector.collect().rows + algorithm.collector.collect().rows
    assert [len(row) for row in rows] == [1] * 32
    seeds = [row[0].seed for row in rows]
    assert all(len(set(seeds[i : i + 4])) == 1 for i in range(0, 32, 4)) and len(set(seeds)) == 8
    again = GRPO(TablePolicy(3, 4), "Doors-v0", **SMALL).collector.collect().rows
    assert [row[0].seed for row in again] == seeds[:16]
    assert {row[0].seed for row in GRPO(TablePolicy(3, 4), "Doors-v0", seed=1, **SMALL).collector.collect().rows} & set(
        seeds
    ) == set()


@pytest.mark.parametrize("reduction", ["decision_mean", "episode_mean", "episode_sum"])
@pytest.mark.parametrize("max_cost", [2.0, 5.0, 1_000.0])
def test_an_update_does_not_depend_on_the_parts_that_it_is_evaluated_in(reduction: Any, max_cost: float) -> None:
    def updated(max_cost: float | None) -> tuple[torch.Tensor, dict[str, float]]:
        policy = TablePolicy(3, 4, seed=2)
        constant = 10.0 if reduction == "episode_sum" else None
        options = Options(
            advantage="gae",
            reduction=reduction,
            length_constant=constant,
            entropy_coef=0.1,
            kl_coef=0.1,
            lr=0.1,
            max_cost=max_cost,
        )
        collected = RLOO(policy, "Doors-v0", **SMALL).collector.collect()
        metrics = Learner(policy, options).update(collected.rows)
        return weights(policy), metrics

    (whole, told), (cut, told_too) = updated(None), updated(max_cost)
    assert torch.allclose(whole, cut, atol=1e-6)
    for name, value in told.items():
        if not name.startswith("seconds"):
            assert told_too[name] == pytest.approx(value, abs=1e-5), name


def test_the_first_ratio_is_exactly_1_and_no_learning_rate_changes_nothing() -> None:
    policy = TablePolicy(3, 4)
    before = weights(policy)
    history = PPO(policy, "Doors-v0", lr=0.0, value_lr=0.0, groups=8, epochs=3, max_cost=4.0).learn(2)
    assert torch.equal(weights(policy), before)
    for metrics in history:
        assert metrics["first_ratio_error"] == 0.0 and metrics["kl_old"] == 0.0 and metrics["clip_fraction"] == 0.0
        assert metrics["sampler_drift"] < 1e-6


@pytest.mark.parametrize("where", ["loss", "reward"])
def test_the_reference_holds_the_policy_back(where: Any) -> None:
    entropy = {}
    for coef in (0.0, 1.0):
        policy = TablePolicy(3, 4, seed=1)
        GRPO(policy, "Doors-v0", kl_coef=coef, kl_in=where, scale="none", groups=8, group_size=8, lr=0.1).learn(30)
        logp = policy.logits.detach().log_softmax(-1)
        entropy[coef] = float(-(logp.exp() * logp).sum(-1).mean())
    assert entropy[0.0] < 0.4 < 0.8 < entropy[1.0]  # the start has log 4, 1.39


def test_a_reference_that_follows_is_between_the_start_and_the_policy() -> None:
    policy = TablePolicy(3, 4)
    algorithm = GRPO(policy, "Doors-v0", kl_coef=0.01, reference_decay=0.5, **SMALL)
    learner = Learner(policy, algorithm.options)
    learner.update(algorithm.collector.collect().rows)
    assert learner.reference is not None
    reference = dict(learner.reference.named_parameters())["logits"]
    assert torch.allclose(reference, 0.5 * policy.logits, atol=1e-7) and bool(policy.logits.any())


def test_equal_rewards_push_with_the_divergence_alone_or_not_at_all() -> None:
    for coef, moves in ((0.0, False), (0.5, True)):
        policy = TablePolicy(3, 4)
        options = Options(kl_coef=coef, lr=0.1, epochs=1, minibatches=1)
        learner = Learner(policy, options)
        with torch.no_grad():
            policy.logits[:, 0] += 1.0
        rows = RLOO(policy, "Doors-v0", **SMALL).collector.collect().rows
        for row in rows:
            for step in row[0].steps:
                step.reward = 0.7
        before = weights(policy)
        metrics = learner.update(rows)
        assert torch.equal(weights(policy), before) is not moves
        assert metrics["informative_groups"] == 0.0


def test_schedules_are_followed() -> None:
    settings: dict[str, Any] = {
        **SMALL,
        "lr": 0.1,
        "warmup": 1,
        "decay": "linear",
        "kl_coef": 0.2,
        "kl_coef_end": 0.0,
        "entropy_coef": 0.0,
        "entropy_coef_end": 0.1,
    }
    history = GRPO(TablePolicy(3, 4), "Doors-v0", **settings).learn(3)
    assert [metrics["lr"] for metrics in history] == pytest.approx([0.1, 0.1, 0.05])
    assert [metrics["kl_coef"] for metrics in history] == pytest.approx([0.2, 0.1, 0.0])
    assert [metrics["entropy_coef"] for metrics in history] == pytest.approx([0.0, 0.05, 0.1])
    # What is read of a coefficient is what is paid: the term is its multiple.
    assert "entropy_loss" not in history[0]
    assert history[2]["entropy_loss"] == pytest.approx(-0.1 * history[2]["entropy"])


class Tempered(Seeded):
    """A table policy with a temperature."""

    def __init__(self) -> None:
        super().__init__(3, 4, seed=3)
        self.temperature = 1.0


def test_the_temperature_is_that_of_the_round_for_policy_and_reference() -> None:
    seen: list[tuple[float, float]] = []
    policy = Tempered()
    settings: dict[str, Any] = {"temperature": 1.0, "temperature_end": 0.5, "kl_coef": 0.1}
    learner = Learner(policy, Options(**settings), updates=3)
    rows = RLOO(policy, "Doors-v0", **SMALL).collector.collect().rows
    told = []
    for _ in range(3):
        assert isinstance(learner.reference, Tempered)
        seen.append((policy.temperature, learner.reference.temperature))
        told.append(learner.update(rows)["temperature"])
    assert seen == [(1.0, 1.0), (0.75, 0.75), (0.5, 0.5)] and told == [1.0, 0.75, 0.5]
    again = Learner(Tempered(), Options(**settings), updates=3)
    again.load_state_dict({**learner.state_dict(), "round": 1})
    assert again.policy.temperature == 0.75
    with pytest.raises(TypeError, match=r"temperature=0.7: TablePolicy has no temperature"):
        Learner(TablePolicy(3, 4), Options(temperature=0.7))


@pytest.mark.parametrize("options", [{"kl_coef": 0.1}, {"max_cost": 5.0}, {"importance_cap": 2.0}, {"scale": "none"}])
def test_one_step_needs_no_pass_before_it(options: dict[str, Any]) -> None:
    """The gradient is that of a batch whose old log-probabilities were computed apart."""
    gradients = []
    calls = []
    for apart in (False, True):
        policy = Tempered()
        rows = RLOO(policy, "Doors-v0", **SMALL).collector.collect().rows
        setting = Options(epochs=1, minibatches=1, lr=0.1, **options)
        batch = prepare(policy, policy.collate(rows), setting, policy.snapshot() if "kl_coef" in options else None)[0]
        assert batch.old_logp is None
        if apart:
            batch.old_logp = policy.evaluate(batch).logp.detach()
        loss, metrics = policy_loss(policy, batch, setting)
        loss.backward()
        assert policy.logits.grad is not None
        gradients.append(policy.logits.grad.clone())
        calls.append(metrics)
    assert torch.equal(*gradients) and gradients[0].abs().sum() > 0
    assert calls[0] == calls[1] and calls[0]["ratio_error"] == 0.0


def test_passes_end_at_the_target_divergence() -> None:
    steps = []
    for target in (None, 1e-9):
        options: dict[str, Any] = {"epochs": 4, "minibatches": 2, "lr": 0.1, "target_kl": target}
        steps.append(RLOO(TablePolicy(3, 4), "Doors-v0", groups=4, group_size=4, **options).learn(1)[0]["steps"])
    assert steps == [8.0, 2.0]


def test_dynamic_sampling_keeps_groups_that_differ() -> None:
    policy = TablePolicy(3, 4)
    with torch.no_grad():
        policy.logits[:] = -3.0
        policy.logits[torch.arange(3), torch.arange(3) + 1] = 0.0  # nearly always right
    plain = GRPO(policy, "Doors-v0", kwargs={"length": 1}, **SMALL).collector.collect()
    fussy = GRPO(policy, "Doors-v0", kwargs={"length": 1}, resample=20, **SMALL).collector.collect()
    assert len(fussy.rows) == 16 and fussy.metrics["useful_groups"] < 1.0

    def signals(rows: Sequence[Sequence[Episode]]) -> int:
        rewards = [row[0].total_reward for row in rows]
        return sum(len(set(rewards[i : i + 4])) > 1 for i in range(0, 16, 4))

    assert signals(fussy.rows) == 4 > signals(plain.rows)
    assert plain.metrics["useful_groups"] == signals(plain.rows) / 4  # told whether or not others take their place
    banded = GRPO(policy, "Doors-v0", kwargs={"length": 1}, resample=3, band=(0.0, 0.3), **SMALL).collector.collect()
    assert banded.rows and banded.metrics["useful_groups"] < fussy.metrics["useful_groups"]


def test_groups_that_found_no_room_wait() -> None:
    settings: dict[str, Any] = {"resample": 1, "max_staleness": 1, "importance_cap": 2.0, "groups": 4, "group_size": 8}
    algorithm = GRPO(Seeded(3, 4, seed=3), "Doors-v0", **settings)
    collector = algorithm.collector
    played: list[Episode] = []
    for version in range(12):
        collected = collector.collect(version)
        played += collected.played
        assert len(collected.rows) == len(collected.versions) == 32
        assert all(version - 1 <= born <= version for born in collected.versions)
    collector.restart()
    assert set(collector.collect(12).versions) == {12}
    with pytest.raises(ValueError, match="max_staleness=1 lets old episodes in; give importance_cap"):
        GRPO(Seeded(3, 4), "Doors-v0", resample=1, max_staleness=1)
    metrics = GRPO(Seeded(3, 4, seed=3), "Doors-v0", **settings).learn(6)
    assert max(each["staleness"] for each in metrics) <= 1.0


def test_spare_groups_are_used_once_and_too_old_ones_never() -> None:
    algorithm = GRPO(TablePolicy(3, 4), "Doors-v0", resample=1, max_staleness=2, importance_cap=2.0, **SMALL)
    collector = algorithm.collector
    extra = GRPO(TablePolicy(3, 4), "Doors-v0", groups=9, group_size=4).collector.collect(0)
    groups = [[row[0] for row in extra.rows[i : i + 4]] for i in range(0, 36, 4)]
    collector._spare = [(3, group) for group in groups]
    first, second = collector.collect(4), collector.collect(5)
    assert first.versions == second.versions == [3] * 16 and not first.played
    assert [row[0] for row in first.rows] == [episode for group in groups[:4] for episode in group]
    assert [row[0] for row in second.rows] == [episode for group in groups[4:8] for episode in group]
    assert set(collector.collect(6).versions) == {6}, "born at 3, two updates too old"


def test_solved_instances_come_less_often() -> None:
    def starts(weight: float) -> list[int]:
        policy = TablePolicy(3, 4)
        with torch.no_grad():
            policy.logits[0, 1] = 50.0  # right in state 0 alone
        settings: dict[str, Any] = {"instances": 12, "solved_weight": weight}
        algorithm = GRPO(policy, "Doors-v0", kwargs={"length": 1}, **SMALL, **settings)
        return [int(row[0].steps[0].observation) for _ in range(30) for row in algorithm.collector.collect().rows]

    always, never = starts(1.0), starts(0.0)
    share = [sum(seen == 0 for seen in found) / len(found) for found in (always, never)]
    assert share[0] > 0.2 and share[1] < 0.05, share


def test_lengths_and_cuts_by_outcome() -> None:
    policy = CharTablePolicy("ab.", ".", longest=3, seed=1)

    def told(text: str, cut: bool, success: bool) -> Episode:
        ids = np.array(policy.encode(text))
        record = {"given": np.array([0]), "ids": ids, "logp": np.full(len(ids), -1.0)}
        info = {"is_success": success}
        return Episode([Step("a", text.rstrip("."), float(success), True, info=info, record=record)])

    rows = [
        [told("b.", False, True)],
        [told("bbb", True, False)],
        [told(".", False, False)],
        [told("bbb", True, False)],
    ]
    found = Learner(policy, Options()).update(rows)
    assert found["length_right"] == 2.0 and found["length_wrong"] == pytest.approx(7 / 3)
    mixed = Learner(policy, Options()).update(
        [*rows, [Episode([Step("a", "b", 0.0, True, record=rows[0][0].steps[0].record)])]]
    )
    assert "length_right" not in mixed


def chains(lengths: Sequence[int], rewards: Sequence[float]) -> list[list[Episode]]:
    """Return one row an episode of a table policy, in one group."""
    rows = []
    for length, reward in zip(lengths, rewards, strict=True):
        steps = [Step(0, 1, record={"logp": np.float32(-1.4)}) for _ in range(length)]
        steps[-1].reward, steps[-1].terminated = reward, True
        rows.append([Episode(steps, 0, group=0)])
    return rows


def test_overlong_episodes_are_paid_less_at_their_end() -> None:
    policy = TablePolicy(3, 4)
    batch = policy.collate(chains([80, 90, 100, 101], [1.0] * 4))
    options = Options(advantage="returns", overlong_limit=100, overlong_cache=20)
    advantage = prepare(policy, batch, options)[0].advantage
    assert advantage is not None and advantage[:, 0].tolist() == pytest.approx([1.0, 0.5, 0.0, 0.0])
    scores = prepare(policy, batch, Options(scale="none", overlong_limit=100, overlong_cache=20))[0].advantage
    assert scores is not None and scores[:, 0].tolist() == pytest.approx([0.625, 0.125, -0.375, -0.375])


def test_traces_of_critic_and_of_long_episodes() -> None:
    policy = TablePolicy(3, 4)
    with torch.no_grad():
        policy.critic.v[:] = 0.5

    def estimate(length: int, **options: Any) -> tuple[float, float]:
        batch = prepare(policy, policy.collate(chains([length], [1.0])), Options(advantage="gae", **options))[0]
        assert batch.advantage is not None and batch.returns is not None
        return float(batch.advantage[0, 0]), float(batch.returns[0, 0])

    # V is 0.5 everywhere and the last reward 1: the advantage of the first of n is 0.5 lam ** (n - 1).
    assert estimate(40, lam=0.9) == pytest.approx((0.5 * 0.9**39, 0.5 + 0.5 * 0.9**39), rel=1e-4)
    assert estimate(40, lam=0.9, critic_lam=1.0) == pytest.approx((0.5 * 0.9**39, 1.0), rel=1e-4)
    assert estimate(100, adaptive_lam=0.05)[0] == pytest.approx(0.5 * 0.8**99, rel=1e-4)
    assert estimate(40, adaptive_lam=0.05, critic_lam=1.0) == pytest.approx((0.5 * 0.5**39, 1.0), rel=1e-4)


def test_scorers_are_terms_of_their_own() -> None:
    def long(episodes: Sequence[Episode]) -> list[float]:
        return [0.25 * len(episode) for episode in episodes]

    algorithm = GRPO(TablePolicy(3, 4), "Doors-v0", scorers={"long": long}, **SMALL)
    collected = algorithm.collector.collect()
    assert collected.metrics["reward_terms/long"] == 0.5
    for row in collected.rows:
        last = row[0].steps[-1]
        assert last.reward == pytest.approx(sum(last.info["reward_terms"].values()))
    with pytest.raises(ValueError, match="'long' gave 1 scores for 16 episodes"):
        GRPO(TablePolicy(3, 4), "Doors-v0", scorers={"long": lambda _: [1.0]}, **SMALL).collector.collect()


def test_what_a_scorer_cannot_tell_teaches_nothing() -> None:
    def fussy(episodes: Sequence[Episode]) -> list[float | None]:
        return [
            None if number % 4 == 0 else float("nan") if number % 4 == 1 else 1.0 for number in range(len(episodes))
        ]

    metrics = GRPO(TablePolicy(3, 4), "Doors-v0", scorers={"fussy": fussy}, **SMALL).learn(1)[0]
    assert metrics["unscorable"] == 8.0 and metrics["reward_terms/fussy"] == 1.0 and np.isfinite(metrics["reward"])


def test_the_share_of_weights_that_moved_is_told() -> None:
    moved, still = (
        GRPO(MLPPolicy(4, 2), "CartPole-v1", **{**SMALL, "lr": lr}).learn(1)[0]["changed"] for lr in (0.01, 0.0)
    )
    assert still == 0.0 and 0.4 < moved < 0.6, "the actor, and not the critic beside it"


def test_unscorable_episodes_are_counted_and_teach_nothing() -> None:
    policy = TablePolicy(3, 4)
    before = weights(policy)
    history = GRPO(policy, "Doors-v0", kwargs={"broken": True}, **SMALL).learn(4)
    assert [metrics["unscorable"] for metrics in history] == [16.0] * 4 and torch.equal(weights(policy), before)
    told = "nothing could be scored in 5 updates in a row, 16 episodes in the last; the first of them: broken"
    with pytest.raises(ValueError, match=told):
        GRPO(policy, "Doors-v0", kwargs={"broken": True}, **SMALL).learn(5)


def test_a_reward_that_is_no_number_is_no_signal() -> None:
    def scorer(episodes: Sequence[Episode]) -> list[float]:
        for episode in episodes[1::2]:
            episode.steps[-1].reward = float("nan")
        return [0.0 if np.isnan(total := episode.total_reward) else -total for episode in episodes]

    algorithm = DAPO(TablePolicy(3, 4), "Doors-v0", scorers={"undo": scorer}, **SMALL)
    assert algorithm.collector.collect().metrics["useful_groups"] == 0.0


def test_rows_that_cannot_be_scored_have_no_advantage_where_advantages_are_normalized() -> None:
    rewards = [1.0, 0.0, 3.0, float("nan")]
    rows = [
        [Episode(steps=[Step(0, 0, reward, True, record={"logp": np.float32(0)})] * (i + 1), final_observation=0)]
        for i, reward in enumerate(rewards)
    ]
    policy = TablePolicy(3, 4)
    batch, _ = prepare(policy, policy.collate(rows), Options(advantage="batch_mean", normalize=True))
    assert batch.advantage is not None and batch.advantage[3].tolist() == [0.0] * 4
    assert batch.advantage[batch.mask].std(correction=0) > 0.5


def test_to_learn_again_is_to_go_on() -> None:
    numbers: list[int] = []
    policies = []
    for pieces in ([4], [1, 3, 2, 4]):
        policy = Seeded(3, 4, seed=3)
        callbacks = [lambda number, _: numbers.append(number)]
        algorithm = GRPO(policy, "Doors-v0", callbacks=callbacks, kl_coef=0.1, **SMALL)
        for updates in pieces:
            algorithm.learn(updates)
        policies.append(policy)
    assert numbers == [0, 1, 2, 3] * 2
    assert torch.equal(weights(policies[0]), weights(policies[1]))


class TestRuns:
    """A run on disk."""

    @staticmethod
    def algorithm(folder: Path | None, resume: bool = False, callbacks: Any = (), **options: Any) -> OnPolicy:
        settings: dict[str, Any] = {
            "groups": 4,
            "group_size": 4,
            "lr": 0.05,
            "kl_coef": 0.01,
            "epochs": 2,
            "minibatches": 2,
            **options,
        }
        return GRPO(
            Seeded(3, 4, seed=3),
            "Doors-v0",
            run=folder,
            resume=resume,
            checkpoint_every=2,
            callbacks=callbacks,
            **settings,
        )

    @pytest.mark.parametrize("stop", [1, 3, 4, 7])
    def test_a_run_that_died_goes_on_to_the_same_weights(self, tmp_path: Path, stop: int) -> None:
        class Died(Exception):
            pass

        def die(number: int, metrics: dict[str, float]) -> None:
            if number == stop:
                raise Died

        whole = self.algorithm(tmp_path / "whole")
        whole.learn(8)
        with pytest.raises(Died):
            self.algorithm(tmp_path / "cut", callbacks=[die]).learn(8)
        cut = self.algorithm(tmp_path / "cut", resume=True)
        cut.learn(8)
        assert torch.equal(weights(cut.policy), weights(whole.policy))
        noted = [(tmp_path / name / "metrics.jsonl").read_text().splitlines() for name in ("whole", "cut")]
        for one, other in zip(*[[json.loads(line) for line in lines] for lines in noted], strict=True):
            assert {k: v for k, v in one.items() if "seconds" not in k} == {
                k: v for k, v in other.items() if "seconds" not in k
            }

    def test_more_updates_go_on_from_the_end(self, tmp_path: Path) -> None:
        self.algorithm(tmp_path / "run").learn(3)
        longer = self.algorithm(tmp_path / "run", resume=True)
        assert len(longer.learn(5)) == 2
        whole = self.algorithm(None)
        whole.learn(5)
        assert torch.equal(weights(longer.policy), weights(whole.policy))

    def test_a_damaged_checkpoint_is_named_and_the_one_before_is_taken(self, tmp_path: Path) -> None:
        self.algorithm(tmp_path / "run").learn(4)
        newest = tmp_path / "run/checkpoints/step-00000004/state.pt"
        newest.write_bytes(newest.read_bytes()[:-100])
        again = self.algorithm(tmp_path / "run", resume=True)
        with pytest.warns(UserWarning, match=r"step-00000004 is damaged .* the one before it is taken"):
            assert len(again.learn(4)) == 2
        for path in (tmp_path / "run/checkpoints").glob("step-*/state.pt"):
            path.write_bytes(b"")
        with pytest.warns(UserWarning, match="damaged"), pytest.raises(ValueError, match="all checkpoints in"):
            self.algorithm(tmp_path / "run", resume=True).learn(4)

    def test_a_half_written_checkpoint_is_none(self, tmp_path: Path) -> None:
        checkpoints = Checkpoints(tmp_path)
        assert checkpoints.load() is None
        checkpoints.save(1, {"a": torch.ones(2)})
        (tmp_path / ".step-00000002.77").mkdir()
        (tmp_path / ".step-00000002.77/state.pt").write_bytes(b"half")
        found = checkpoints.load()
        assert found is not None and found[0] == 1 and torch.equal(found[1]["a"], torch.ones(2))
        for step in (2, 3, 4):
            checkpoints.save(step, {})
        assert sorted(path.name for path in tmp_path.glob("step-*")) == ["step-00000003", "step-00000004"]

    def test_another_configuration_is_refused_by_name(self, tmp_path: Path) -> None:
        self.algorithm(tmp_path / "run").learn(1)
        with pytest.raises(RunError, match="holds a run; go on with it"):
            self.algorithm(tmp_path / "run")
        with pytest.raises(RunError, match=r"holds another run \(lr: 0.05 there, 0.5 now\)$"):
            self.algorithm(tmp_path / "run", resume=True, lr=0.5)

    def test_a_run_goes_on_with_other_callbacks(self, tmp_path: Path) -> None:
        kept = Guard("entropy", high=0.0, patience=9)
        self.algorithm(tmp_path, callbacks=[Guard("kl_old", high=9.0), kept]).learn(2)
        state = kept.state_dict()
        other, new = Guard("entropy", high=0.0, patience=9), EarlyStop("reward", patience=9)
        self.algorithm(tmp_path, resume=True, callbacks=[new, other]).learn(2)
        assert other.state_dict() == state == {"outside": 2}
        assert new.state_dict() == EarlyStop("reward", patience=9).state_dict()
        self.algorithm(tmp_path, resume=True).learn(1)
        assert json.loads((tmp_path / "config.json").read_text())["updates"] == 2, "what is done stays planned"

    def test_a_folder_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(OSError, match="file"):
            self.algorithm(tmp_path / "file" / "run")
        algorithm = self.algorithm(tmp_path / "run")
        (tmp_path / "run/checkpoints").write_text("in the way")
        with pytest.raises(OSError, match="checkpoint step-00000001 cannot be written"):
            algorithm.learn(1)


def test_a_loss_that_is_not_finite_leaves_the_weights() -> None:
    policy = TablePolicy(3, 4)
    rows = RLOO(policy, "Doors-v0", **SMALL).collector.collect().rows
    learner = Learner(policy, Options(advantage="gae"))
    rows[3][0].steps[0].reward = float("nan")
    before = weights(policy)
    with pytest.raises(FloatingPointError, match="round 0"):
        learner.update(rows)
    assert torch.equal(weights(policy), before)


def test_the_batch_of_a_loss_that_is_not_finite_is_kept(tmp_path: Path) -> None:
    class Broken(TablePolicy):
        def evaluate(self, decisions: Decisions) -> Evaluation:
            found = super().evaluate(decisions)
            return Evaluation(found.logp * float("nan"), found.entropy, found.value)

    algorithm = GRPO(Broken(3, 4), "Doors-v0", run=tmp_path, **SMALL)
    with pytest.raises(NotFinite, match=r"the loss of round 0 is nan; .*; the batch is in .*failed-update-0.pt"):
        algorithm.learn(1)
    kept = torch.load(tmp_path / "failed-update-0.pt", weights_only=True)
    assert kept["mask"].shape == (16, 2) and set(kept["inputs"]) == {"state", "action"}


def test_stretches_go_on_and_restart_at_checkpoints() -> None:
    algorithm = PPO(MLPPolicy(4, 2), "CartPole-v1", horizon=16, groups=4, vector="no")
    first, second = algorithm.collector.collect(), algorithm.collector.collect()
    assert [sum(len(episode) for episode in row) for row in first.rows] == [16] * 4
    begun = {row[-1].seed for row in first.rows if not row[-1].ended}
    assert begun <= {row[0].seed for row in second.rows}
    algorithm.collector.restart()
    assert not begun & {row[0].seed for row in algorithm.collector.collect().rows}
    native = PPO(MLPPolicy(4, 2), "CartPole-v1", horizon=16, groups=4)
    metrics = native.learn(2)[1]
    assert metrics["decisions"] > 4 * 12
    assert not {"informative_groups", "useful_groups"} & set(metrics)  # there are no groups that could have a signal


def test_episodes_of_several_stretches_are_counted_whole() -> None:
    lengths: list[int] = []

    def count(episodes: Sequence[Episode]) -> list[float]:
        lengths.extend(len(episode) for episode in episodes)
        return [0.5] * len(episodes)

    algorithm = PPO(MLPPolicy(4, 2), "CartPole-v1", horizon=4, groups=3, vector="no", scorers={"count": count})
    open_steps: dict[int, int] = {}
    told: list[int] = []
    for _ in range(40):
        collected = algorithm.collector.collect()
        for slot, row in enumerate(collected.rows):
            for episode in row:
                open_steps[slot] = open_steps.get(slot, 0) + len(episode)
                if episode.ended:
                    told.append(open_steps.pop(slot))
                    assert episode.steps[-1].reward == 1.5, "what a scorer pays is learnt from"
        if collected.played:
            assert collected.metrics["episode_steps"] == np.mean(lengths[-len(collected.played) :])
            assert collected.metrics["episode_reward"] == collected.metrics["episode_steps"] + 0.5
    assert lengths == told and len(told) > 10 and min(told) > 4, "CartPole stands for eight steps at least"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": 0}, "groups must be at least 1, got 0"),
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"gamma": 1.5}, "gamma must be from 0 to 1, got 1.5"),
        ({"clip_low": 0.0}, "clip_low must be above 0, got 0.0"),
        ({"horizon": 8, "group_size": 2}, "with horizon=8 there are no groups"),
        ({"band": (0.5, 0.5)}, "band must be two shares"),
        ({"reduction": "episode_sum"}, "length_constant is the length limit"),
        ({"length_constant": 3.0}, "length_constant is the length limit"),
        ({"value_clip": 0.2}, "value_clip is the width of a value_clip_mode other than 'none', got 0.2"),
        ({"value_clip_mode": "max"}, "value_clip is the width"),
        ({"overlong_limit": 10}, "overlong_cache must be from 1 to overlong_limit, got 0 and 10"),
        ({"overlong_cache": 10}, "overlong_cache must be from 1 to overlong_limit, got 10 and None"),
        ({"advantage": "gropu"}, "advantage must be one of 'group', 'leave_one_out', .*, got 'gropu'"),
        ({"kl_in": "rewards"}, "kl_in must be one of 'loss', 'reward', got 'rewards'"),
        ({"decay": "lin"}, "decay must be one of 'constant', 'linear', 'cosine', got 'lin'"),
        ({"dual_clip": 0.5}, "dual_clip must be above 1, got 0.5"),
        ({"importance_cap": 0.0}, "importance_cap must be above 0, got 0.0"),
        ({"baseline_decay": 1.0}, r"baseline_decay must be in \[0, 1\), got 1.0"),
        ({"betas": (0.9, 1.0)}, r"betas must be in \[0, 1\), got \(0.9, 1.0\)"),
        ({"group_size": 1}, "advantage='leave_one_out' compares episodes of a group; group_size must be at least 2"),
        ({"eps": -1.0}, "eps must be at least 0, got -1.0"),
        ({"adaptive_lam": 0.0}, "adaptive_lam must be above 0 and at most 1, got 0.0"),
        ({"kl_coef": -0.1}, "kl_coef must be at least 0, got -0.1"),
        ({"temperature": 0.0}, "temperature must be above 0, got 0.0"),
        ({"temperature_end": 0.5}, "temperature_end=0.5 needs the temperature that it begins at"),
        ({"max_staleness": 1}, "groups left over by resample, which is 0"),
        ({"solved_weight": 0.5}, "instances that come again; instances is 0"),
        ({"solved_weight": 2.0, "instances": 4}, "solved_weight must be from 0 to 1, got 2.0"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RLOO(TablePolicy(3, 4), "Doors-v0", **options)


def test_wrong_policies() -> None:
    class NoCritic(TablePolicy):
        def __init__(self) -> None:
            super().__init__(3, 4)
            del self.critic

    with pytest.raises(TypeError, match="PPO needs a policy with a critic; NoCritic has no"):
        PPO(NoCritic(), "Doors-v0")
    with pytest.raises(ValueError, match=r"bfloat16, in which an update of 1e-5 rounds to nothing"):
        Learner(TablePolicy(3, 4).bfloat16(), Options())
    with pytest.raises(ValueError, match=r"bfloat16, in which"):
        GRPO(TablePolicy(3, 4).bfloat16(), "Doors-v0")
    with pytest.raises(ValueError, match="no parameter that learns"):
        Learner(TablePolicy(3, 4).requires_grad_(False), Options())


def test_credit_by_turn_is_that_of_decisions_where_each_turn_is_one() -> None:
    policy = TablePolicy(3, 4, seed=5)
    rows = RLOO(policy, "Doors-v0", **SMALL).collector.collect().rows
    found: dict[str, tuple[torch.Tensor, float]] = {}
    for credit in ("decision", "turn", "episode"):
        options = Options(advantage="gae", credit=credit)
        batch = prepare(policy, policy.collate(rows), options)[0]
        loss, _ = policy_loss(policy, batch, options)
        assert batch.advantage is not None
        found[credit] = (batch.advantage, loss.item())
        if credit == "episode":
            assert torch.equal(batch.advantage[:, 0], batch.advantage[:, 1])
    assert torch.equal(found["decision"][0], found["turn"][0])
    assert found["decision"][1] == found["turn"][1] != found["episode"][1]


def test_a_copy_learns_the_same() -> None:
    one = Seeded(3, 4, seed=7)
    other = copy.deepcopy(one)
    for policy in (one, other):
        GRPO(policy, "Doors-v0", **SMALL).learn(3)
    assert torch.equal(weights(one), weights(other))
    assert np.isfinite(weights(one).numpy()).all()
