"""It learns: from pay alone, what it was not shown; and where the pay is turned around, the opposite."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleEnv, CartPoleVectorEnv

from tests.algos.toys import MLPPolicy
from tetrathlon.agents.char_lm import char_lm
from tetrathlon.agents.evaluation import evaluate
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.algos.imitation import clone
from tetrathlon.algos.on_policy import GRPO, PPO, RLOO, OnPolicy
from tetrathlon.benchmarks.sums import CHANCE, CHARACTERS, near_misses

SEED = 0
LANGUAGE: dict[str, Any] = {
    "groups": 32,
    "group_size": 8,
    "lr": 1e-3,
    "entropy_coef": 0.01,
    "epochs": 4,
    "minibatches": 1,
    "seed": SEED,
}
STRETCHES: dict[str, Any] = {
    "groups": 16,
    "horizon": 64,
    "gamma": 0.98,
    "lam": 0.9,
    "epochs": 10,
    "minibatches": 2,
    "lr": 3e-3,
    "value_lr": 3e-3,
    "max_grad_norm": 0.5,
    "seed": SEED,
}


def balances(number: int, metrics: dict[str, float]) -> bool:
    """Stop a run whose episodes have become long, and long to play."""
    return metrics["episode_steps"] > 150


GROUPS: dict[str, Any] = {
    "groups": 4,
    "group_size": 8,
    "lr": 3e-3,
    "epochs": 4,
    "callbacks": [balances],
    "seed": SEED,
}


class Pole(CartPoleEnv):
    """CartPole-v1 whose steps pay what it is told."""

    def __init__(self, *, pay: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pay = pay

    def step(self, action: Any) -> Any:
        observation, reward, *end = super().step(action)
        return observation, self.pay * float(reward), *end


class Poles(CartPoleVectorEnv):
    """Many of them."""

    def __init__(self, *, pay: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pay = pay

    def step(self, action: Any) -> Any:
        observation, reward, *end = super().step(action)
        return observation, self.pay * reward, *end


@pytest.fixture(autouse=True, scope="module")
def environments() -> Iterator[None]:
    here = "tests.algos.test_learning"
    gym.register("Pole-v0", f"{here}:Pole", vector_entry_point=f"{here}:Poles", max_episode_steps=500)
    yield
    del gym.registry["Pole-v0"]


@pytest.fixture(scope="module")
def cloned(environments: None) -> LanguagePolicy:
    """The one start: a model that answers, and is near, and is right as often as chance."""
    policy = char_lm(characters=CHARACTERS, context=16, max_tokens=3, batch_size=256, seed=SEED)
    clone(policy, near_misses(2000, SEED), steps=150, lr=2e-3, seed=SEED)
    return policy


def right(policy: LanguagePolicy) -> float:
    """Return the share of right answers to questions that were never trained on, as sampled."""
    found = evaluate(policy, "Sums-v0", episodes=400, slots=200, seed=SEED, greedy=False)
    assert found.split == "test"
    return float(found.success["mean"])


def steps(policy: MLPPolicy) -> float:
    """Return how long the pole stands, as sampled."""
    found = evaluate(policy, "CartPole-v1", episodes=20, slots=20, seed=SEED, greedy=False).steps
    assert found is not None
    return found


class TestSums:
    """A language model that was shown answers which are off by up to 2."""

    def test_the_start_is_no_better_than_chance(self, cloned: LanguagePolicy) -> None:
        assert right(cloned) == pytest.approx(CHANCE, abs=0.06)

    @pytest.mark.parametrize("algorithm", [GRPO, RLOO, PPO])
    def test_paid_answers_become_likely(self, algorithm: type[OnPolicy], cloned: LanguagePolicy) -> None:
        policy = copy.deepcopy(cloned)
        before = right(policy)
        algorithm(policy, "Sums-v0", **LANGUAGE).learn(12)
        assert right(policy) > max(before, CHANCE) + 0.4

    @pytest.mark.parametrize("algorithm", [GRPO, RLOO, PPO])
    def test_punished_answers_become_rare(self, algorithm: type[OnPolicy], cloned: LanguagePolicy) -> None:
        policy = copy.deepcopy(cloned)
        algorithm(policy, "Sums-v0", kwargs={"pay": -1.0}, **LANGUAGE).learn(7)
        assert right(policy) < 0.07


class TestPole:
    """A network that sees a pole for the first time."""

    @pytest.mark.parametrize(("algorithm", "options"), [(PPO, STRETCHES), (GRPO, GROUPS)], ids=["ppo", "grpo"])
    def test_learns_to_balance(self, algorithm: type[OnPolicy], options: dict[str, Any]) -> None:
        policy = MLPPolicy(4, 2, seed=SEED)
        before = steps(policy)
        algorithm(policy, "Pole-v0", **options).learn(14)
        assert before < 40 and steps(policy) > 100

    @pytest.mark.parametrize(("algorithm", "options"), [(PPO, STRETCHES), (GRPO, GROUPS)], ids=["ppo", "grpo"])
    def test_learns_to_fall_where_every_step_costs(self, algorithm: type[OnPolicy], options: dict[str, Any]) -> None:
        policy = MLPPolicy(4, 2, seed=SEED)
        before = steps(policy)
        algorithm(policy, "Pole-v0", kwargs={"pay": -1.0}, **options).learn(7)
        assert steps(policy) < 11 < 15 < before
