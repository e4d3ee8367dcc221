"""Tools are learnt: from pay alone, and from an expert who is asked; where the pay is turned around, the opposite."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest

from tetrathlon.agents.evaluation import evaluate
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.algos.dagger import DAgger
from tetrathlon.algos.imitation import BC
from tetrathlon.algos.on_policy import GRPO, PPO, RLOO, OnPolicy
from tetrathlon.benchmarks.lookups import ENV, SHARE, demonstrations, near, settings
from tetrathlon.envs.tools.lookup import Lookup

SEED = 0
KWARGS = settings(1)
OPTIONS: dict[str, Any] = {
    "groups": 32,
    "group_size": 8,
    "lr": 1e-3,
    "entropy_coef": 0.01,
    "epochs": 4,
    "minibatches": 1,
    "seed": SEED,
}
CLONING: dict[str, Any] = {"steps": 20, "lr": 1e-3, "seed": SEED}


class Punished(Lookup):
    """Lookup that takes what the other pays."""

    def step(self, action: str) -> Any:
        observation, reward, *rest = super().step(action)
        return observation, -reward, *rest


@pytest.fixture(autouse=True, scope="module")
def environments() -> Iterator[None]:
    gym.register("Punished-v0", "tests.algos.test_tool_learning:Punished")
    yield
    del gym.registry["Punished-v0"]


@pytest.fixture(scope="module")
def start() -> LanguagePolicy:
    """The one start: a model that calls and answers, and is right now and then."""
    return near(seed=SEED)


def right(policy: LanguagePolicy) -> float:
    """Return the share of right answers to questions that were never trained on, as sampled."""
    found = evaluate(policy, ENV, kwargs=KWARGS, episodes=250, slots=250, seed=SEED, greedy=False)
    assert found.split == "test"
    return float(found.success["mean"])


@pytest.fixture(scope="module")
def before(start: LanguagePolicy) -> float:
    """How often it is right."""
    return right(start)


def test_the_start_is_middling(before: float) -> None:
    assert 0.1 < before < 0.4


@pytest.mark.parametrize("algorithm", [GRPO, RLOO, PPO])
def test_paid_calls_and_answers_become_likely(algorithm: type[OnPolicy], start: LanguagePolicy, before: float) -> None:
    policy = copy.deepcopy(start)
    turns: dict[str, Any] = {"credit": "turn"} if algorithm is PPO else {}
    algorithm(policy, ENV, kwargs=KWARGS, **OPTIONS, **turns).learn(4)
    assert right(policy) > before + 0.2


def test_punished_ones_become_rare(start: LanguagePolicy, before: float) -> None:
    policy = copy.deepcopy(start)
    GRPO(policy, "Punished-v0", kwargs=KWARGS, **OPTIONS).learn(3)
    assert right(policy) < before - 0.1


def test_an_expert_who_is_asked_teaches_more_than_as_many_steps_on_what_was_shown(start: LanguagePolicy) -> None:
    asked, shown = copy.deepcopy(start), copy.deepcopy(start)
    DAgger(asked, ENV, kwargs=KWARGS, episodes=64, **CLONING).learn(3)
    given = demonstrations(2000, SHARE, SEED, KWARGS)
    BC(shown, ENV, kwargs=KWARGS, demonstrations=given, episodes=1, **CLONING).learn(3)
    assert right(asked) > 0.8 and right(asked) > right(shown) + 0.25
