"""Looking is learnt: from pay alone, and from an expert who is asked; where the pay is turned around, the opposite."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import pytest

from tetrathlon.agents.dependence import both_right
from tetrathlon.agents.evaluation import evaluate
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.agents.result import Result
from tetrathlon.algos.dagger import DAgger
from tetrathlon.algos.imitation import clone
from tetrathlon.algos.on_policy import GRPO, PPO, RLOO, OnPolicy
from tetrathlon.benchmarks.sights import SIGHTS, demonstrations, near
from tetrathlon.envs.vision.point import Point

SEED = 0
CORNER = SIGHTS["corner"]
KWARGS = dict(CORNER.kwargs)
OPTIONS: dict[str, Any] = {
    "groups": 32,
    "group_size": 8,
    "lr": 1e-3,
    "entropy_coef": 0.01,
    "epochs": 4,
    "minibatches": 1,
    "seed": SEED,
}
MARGIN = 0.2
BLIND_FLOOR = 0.25


class Punished(Point):
    """Point that takes what the other pays."""

    def step(self, action: str) -> Any:
        observation, reward, *rest = super().step(action)
        return observation, -reward, *rest


@pytest.fixture(autouse=True, scope="module")
def environments() -> Iterator[None]:
    gym.register("PunishedPoint-v0", "tests.algos.test_vision_learning:Punished")
    yield
    del gym.registry["PunishedPoint-v0"]


@pytest.fixture(scope="module")
def start() -> LanguagePolicy:
    """The one start: a model that looks, and is wrong about as often as right."""
    return near("corner", SEED)


def seen(policy: LanguagePolicy, variant: str = "full", *, greedy: bool = False) -> Result:
    """Play pictures that were never trained on."""
    kwargs = {**KWARGS, "variant": variant}
    found = evaluate(policy, CORNER.env, kwargs=kwargs, episodes=300, slots=300, seed=SEED, greedy=greedy)
    assert found.split == "test"
    return found


def right(policy: LanguagePolicy, variant: str = "full", *, greedy: bool = False) -> float:
    """Return the share of right answers."""
    return float(seen(policy, variant, greedy=greedy).success["mean"])


@dataclass(frozen=True)
class Shares:
    """How often a policy is right, as sampled."""

    full: float
    """On pictures as they are."""
    pair: float
    """On them and on their twins."""


def shares(policy: LanguagePolicy) -> Shares:
    """Return how often a policy is right."""
    full, twin = seen(policy), seen(policy, "twin")
    pair = both_right(full.episodes_played, twin.episodes_played)
    assert pair is not None
    return Shares(float(full.success["mean"]), pair)


@pytest.fixture(scope="module")
def before(start: LanguagePolicy) -> Shares:
    """How often the start is right."""
    return shares(start)


def is_better(policy: LanguagePolicy, before: Shares) -> bool:
    """Tell whether a policy is right more often than before, on pairs too, and no more than by chance unseeing."""
    after = shares(policy)
    print(f"{before} -> {after}")
    is_blind_without = right(policy, "no_image") < BLIND_FLOOR + 0.1
    return after.full > before.full + MARGIN and after.pair > before.pair + MARGIN and is_blind_without


def test_the_start_is_middling(start: LanguagePolicy, before: Shares) -> None:
    greedily = seen(start, greedy=True)
    assert greedily.episodes_played[0].info["blind_floor"] == BLIND_FLOOR
    assert 0.3 < before.full < 0.65
    assert 0.3 < greedily.success["mean"] < 0.7


@pytest.mark.parametrize("algorithm", [GRPO, RLOO, PPO])
def test_paid_answers_become_likely_where_they_are_seen(
    algorithm: type[OnPolicy], start: LanguagePolicy, before: Shares
) -> None:
    policy = copy.deepcopy(start)
    algorithm(policy, CORNER.env, kwargs=KWARGS, **OPTIONS).learn(8)
    assert is_better(policy, before)


def test_punished_ones_become_rare(start: LanguagePolicy, before: Shares) -> None:
    policy = copy.deepcopy(start)
    GRPO(policy, "PunishedPoint-v0", kwargs=KWARGS, **OPTIONS).learn(5)
    assert right(policy) < before.full - MARGIN


def test_an_expert_who_is_asked_teaches_more_than_as_many_steps_on_what_was_shown(
    start: LanguagePolicy, before: Shares
) -> None:
    asked, shown = copy.deepcopy(start), copy.deepcopy(start)
    DAgger(asked, CORNER.env, kwargs=KWARGS, episodes=64, steps=20, lr=1e-3, seed=SEED).learn(3)
    assert is_better(asked, before)
    clone(shown, demonstrations(CORNER, SEED, CORNER.share), steps=60, lr=1e-3, seed=SEED)
    assert right(asked) > right(shown) + MARGIN
