"""An evaluation's every number, on outcomes that are known beforehand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import tetrathlon
from tests.agents.toys import Counting
from tetrathlon.agents.evaluation import evaluate, instance_seeds
from tetrathlon.agents.naming import PolicyError
from tetrathlon.agents.policy import Acted
from tetrathlon.agents.result import instance_of
from tetrathlon.agents.statistics import wilson
from tetrathlon.envs.episode import Episode, load_episodes
from tetrathlon.envs.registry import constructor_arguments, split_argument


@pytest.fixture(autouse=True)
def toys() -> Iterator[None]:
    gym.register("toys/Oracle-v0", entry_point="tests.agents.toys:Oracle")
    gym.register("toys/Counting-v0", entry_point="tests.agents.toys:Counting")
    yield
    for name in ("toys/Oracle-v0", "toys/Counting-v0"):
        del gym.registry[name]


class Script:
    """Says the next word of a list at each call and slot."""

    def __init__(self, words: Sequence[str], stops: dict[str, str] | None = None, ids: bool = False) -> None:
        self.words, self.stops, self.ids = iter(words), stops or {}, ids
        self.greedy: list[bool] = []

    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        self.greedy.append(greedy)
        words = tuple(next(self.words) for _ in observations)
        records: list[dict[str, Any] | None] = [
            {"ids": np.zeros(len(w), np.int32)} if self.ids else None for w in words
        ]
        return Acted(words, [()] * len(words), records, [self.stops.get(w) for w in words])


def strict(result: Any) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(json.dumps(result.to_json(), allow_nan=False), parse_constant=refuse)


def test_single_samples() -> None:
    policy = Script(["right", "wrong", "half", "right"])
    result = evaluate(policy, "toys/Oracle-v0", episodes=4, slots=3, seed=5)
    low, high = wilson(2, 4)
    assert result.success == {"mean": 0.5, "low": low, "high": high, "n": 4, "interval": "wilson"}
    assert result.reward["mean"] == 0.625 == result.reward_terms["correct"] == result.scores["correct"]
    assert result.reward["low"] is not None and result.reward["low"] < 0.625 < (result.reward["high"] or 0)
    assert result.pass_at == {1: 0.5} and result.majority_at == {1: 0.5}
    assert result.steps == 1.0 and result.tokens is None
    assert result.lengths == {"unit": "characters", "success": 5.0, "failure": 4.5}
    assert result.stop_reasons == {"answered": 4}
    assert (result.grader_errors, result.crashes) == (0, {"count": 0, "messages": []})
    assert (result.split, result.domain, result.policy, result.greedy) == ("test", "other", "Script", True)
    assert policy.greedy == [True, True]
    assert result.distinct == 4 and result.seconds > 0
    assert [e.steps[0].action for e in result.episodes_played] == ["right", "wrong", "half", "right"]
    assert [e.seed for e in result.episodes_played] == instance_seeds(5, 4)
    assert result.episodes_played[0].kwargs == {"split": "test"}
    data = strict(result)
    assert data["pass_at"] == {"1": 0.5} == data["pass_all"] and "episodes_played" not in data


def test_costs_are_those_of_whole_episodes() -> None:
    def left(observation: Any) -> np.ndarray:
        return np.array([-1.0, 0.0], np.float32)

    kwargs = {"observation": "state", "max_steps": 30}
    result = evaluate(left, "tetrathlon/PushToZone-v0", kwargs=kwargs, episodes=4)
    told = [sum(sum(step.info["cost_terms"].values()) for step in episode.steps) for episode in result.episodes_played]
    assert result.costs["workspace"]["share"] == 1.0 < result.costs["workspace"]["mean"]  # it runs into the edge
    total = result.costs["total"]
    assert total == {"mean": pytest.approx(np.mean(told)), "share": 1.0, "cvar": max(told)}
    assert evaluate(Script(["right"]), "toys/Oracle-v0", episodes=1).costs == {}


def test_pictures_are_kept_from_the_first_episode_on(tmp_path: Path) -> None:
    gym.register("toys/Seen-v0", entry_point="tests.envs.toys:Film")
    result = evaluate("random", "toys/Seen-v0", episodes=2, out=tmp_path / "new" / "one")
    del gym.registry["toys/Seen-v0"]
    kept = load_episodes(tmp_path / "new" / "one")
    for one, other in zip(kept, result.episodes_played, strict=True):
        assert np.array_equal(one.steps[0].observation["image"], other.steps[0].observation["image"])


def test_several_samples() -> None:
    words = ["right", "right", "wrong a", "wrong b", "right", "wrong", "wrong", "wrong"]
    result = evaluate(Script(words), "toys/Oracle-v0", episodes=2, samples=4, slots=1)
    assert result.success["mean"] == 0.375 and result.success["n"] == 8
    # A bootstrap of two instances would say [0.25, 0.5], of one instance nothing but its own rate.
    assert result.success["interval"] == "wilson over instances"
    assert (result.success["low"], result.success["high"]) == wilson(0.75, 2)
    assert result.pass_at == pytest.approx({1: 0.375, 2: (5 / 6 + 1 / 2) / 2, 4: 1.0})
    assert result.pass_all == pytest.approx({1: 0.375, 2: (1 / 6 + 0.0) / 2, 4: 0.0})
    # In fours: "right" has two votes of four in the first instance, "wrong" three in the second.
    # In twos: right right | a tie of two wrongs; a tie of right and wrong | wrong wrong.
    assert result.majority_at == pytest.approx({1: 0.375, 2: (0.5 + 0.25) / 2, 4: 0.5})
    assert result.greedy is False
    groups = [e.group for e in result.episodes_played]
    assert groups == [0] * 4 + [1] * 4
    seeds = [e.seed for e in result.episodes_played]
    assert seeds == [seed for seed in instance_seeds(0, 2) for _ in range(4)]
    assert result.distinct == 2


def test_ks_go_up_to_the_samples() -> None:
    result = evaluate(Script(["right"] * 6), "toys/Oracle-v0", episodes=1, samples=6)
    assert list(result.pass_at) == list(result.pass_all) == [1, 2, 4, 6]


@pytest.mark.parametrize(("word", "mean", "bounds"), [("right", 1.0, wilson(3, 3)), ("wrong", 0.0, wilson(0, 3))])
def test_all_alike_is_not_certain(word: str, mean: float, bounds: tuple[float, float]) -> None:
    # A bootstrap of equal values has no width; three instances are no proof.
    result = evaluate(Script([word] * 12), "toys/Oracle-v0", episodes=3, samples=4)
    assert result.success == dict(
        zip(("mean", "low", "high", "n", "interval"), (mean, *bounds, 12, "wilson over instances"), strict=True)
    )


def test_grader_errors_are_neither_right_nor_wrong() -> None:
    words = ["right", "broken", "right", "right", "broken", "broken", "wrong", "wrong"]
    result = evaluate(Script(words), "toys/Oracle-v0", episodes=4, samples=2, slots=1)
    assert result.grader_errors == 3 and result.grader_messages == ["correct: no judge"] * 3
    assert result.success["n"] == 5 and result.success["mean"] == 0.6
    assert result.reward["mean"] == 0.6 and result.scores == {"correct": 0.6}
    assert result.pass_at == pytest.approx({1: 2 / 3, 2: 0.5})  # of two instances with two scorable samples
    assert result.pass_all == pytest.approx({1: 2 / 3, 2: 0.5})
    assert len(result.episodes_played) == 8


def test_a_grader_that_always_fails_gives_no_rate() -> None:
    result = evaluate(Script(["broken"] * 4), "toys/Oracle-v0", episodes=4)
    assert result.success == {"mean": None, "low": None, "high": None, "n": 0, "interval": None}
    assert result.reward == {"mean": None, "low": None, "high": None}
    assert result.pass_at == result.pass_all == {1: None} == result.majority_at and result.grader_errors == 4
    assert strict(result)["success"]["mean"] is None


def test_no_success_is_told_of_none() -> None:
    result = evaluate("random", "CartPole-v1", episodes=3)
    assert result.success["mean"] is None and result.pass_at == {1: None}
    assert result.lengths == {"unit": "steps", "success": None, "failure": None}
    assert result.majority_at is None and result.split is None and result.domain == "other"
    assert result.reward["mean"] == result.steps  # CartPole pays 1 a step
    assert result.stop_reasons == {"terminated": 3}


def test_control() -> None:
    result = evaluate("expert", "toys/Counting-v0", kwargs={"length": 4}, episodes=30, slots=4)
    right = sum(seed % 2 for seed in instance_seeds(0, 30))
    assert result.success["mean"] == pytest.approx(right / 30)
    assert result.reward == {"mean": 6.0, "low": 6.0, "high": 6.0} and result.steps == 4.0
    assert result.reward_terms == {"action": 6.0} and result.scores == {}
    assert result.kwargs == {"length": 4} and result.policy == "expert" and result.majority_at is None
    assert result.lengths == {"unit": "steps", "success": 4.0, "failure": 4.0}


def test_tokens_and_cuts() -> None:
    result = evaluate(Script(["right", "wrong way"], {"wrong way": "length"}, ids=True), "toys/Oracle-v0", episodes=2)
    assert result.tokens == {"mean": 7.0, "total": 14}
    assert result.lengths == {"unit": "tokens", "success": 5.0, "failure": 9.0}
    assert result.stop_reasons == {"answered": 1, "length": 1}


def test_crashes_are_counted() -> None:
    seeds = instance_seeds(0, 5)
    seen: list[Episode] = []
    result = evaluate(
        lambda observation: 1,
        "toys/Counting-v0",
        kwargs={"crash_at": 2, "crash_seed": seeds[1]},
        episodes=5,
        on_episode=seen.append,
    )
    assert result.crashes == {"count": 1, "messages": ["RuntimeError: the simulator is gone"]}
    assert [e.seed for e in result.episodes_played] == [seeds[i] for i in (0, 2, 3, 4)]
    assert result.success["n"] == 4 and len(seen) == 4
    everything = evaluate(lambda o: 1, "toys/Counting-v0", kwargs={"crash_at": 1}, episodes=5)
    assert everything.crashes["count"] == 5 and len(everything.crashes["messages"]) == 3
    assert everything.steps is None and everything.success["mean"] is None
    strict(everything)


@pytest.mark.parametrize("reward", [math.nan, math.inf])
def test_json_is_strict(reward: float) -> None:
    class Odd(Counting):
        def step(self, action: Any) -> Any:
            *rest, info = super().step(action)
            return rest[0], reward, *rest[2:], {**info, "reward_terms": {"a": reward}, "scores": "of another kind"}

    gym.register("toys/Odd-v0", entry_point=lambda **kwargs: Odd(**kwargs))
    try:
        with np.errstate(all="ignore"):
            result = evaluate("random", "toys/Odd-v0", episodes=2)
    finally:
        del gym.registry["toys/Odd-v0"]
    data = strict(result)
    assert data["reward"]["mean"] is None and data["reward_terms"] == {"a": None} and data["scores"] == {}


def test_every_policy_meets_the_same_instances() -> None:
    a = evaluate("random", "tetrathlon/Arithmetic-v0", episodes=6, seed=3)
    b = evaluate("expert", "Arithmetic", episodes=9, samples=2, seed=3)
    questions = [[e.steps[0].observation for e in r.episodes_played] for r in (a, b)]
    assert questions[0] == questions[1][:12:2]
    assert b.env == "tetrathlon/Arithmetic-v0" and b.domain == "text" and b.success["mean"] == 1.0
    assert b.majority_at == {1: 1.0, 2: 1.0}
    other = evaluate("random", "Arithmetic", episodes=6, seed=4)
    assert [e.steps[0].observation for e in other.episodes_played] != questions[0]


def test_the_split_is_passed_on() -> None:
    result = evaluate("expert", "Arithmetic", episodes=2, split="train")
    assert result.split == "train" and result.kwargs == {}
    assert evaluate("expert", "Arithmetic", episodes=2, kwargs={"split": "train"}).split == "train"
    with pytest.raises(ValueError, match="split must be one of"):
        evaluate("expert", "Arithmetic", episodes=2, split="dev")


def test_equal_answers_share_their_votes() -> None:
    def answers(words: list[str]) -> Callable[[str], str]:
        said = iter(words)
        return lambda observation: next(said)

    words = [r"\boxed{1,000}", r"\boxed{1000}", r"\boxed{7}"]
    result = evaluate(answers(words), "Arithmetic", episodes=1, samples=3)
    assert result.majority_at is not None and result.majority_at[3] == 0.0
    assert result.policy == "<lambda>"


def test_seeds_are_different_and_nested() -> None:
    seeds = instance_seeds(0, 100_000)  # among as many draws of 32 bits one repeats, more likely than not
    assert len(set(seeds)) == 100_000 and instance_seeds(0, 100) == seeds[:100]
    assert instance_seeds(1, 100) != seeds[:100]
    assert all(0 <= seed < 2**32 for seed in seeds)


def test_arguments_of_constructors() -> None:
    names = constructor_arguments("tetrathlon/Arithmetic-v0")
    assert {"digits", "split", "shots"} <= names and "self" not in names and "kwargs" not in names
    assert split_argument("tetrathlon/Arithmetic-v0", "test") == {"split": "test"}
    assert split_argument("CartPole-v1", "test") == {}
    assert "split" in constructor_arguments("tetrathlon:tetrathlon/Arithmetic-v0")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"episodes": 0}, "episodes must be at least 1, got 0"),
        ({"samples": 0}, "samples must be at least 1, got 0"),
        ({"slots": 0}, "slots must be at least 1, got 0"),
        ({"samples": 2, "greedy": True}, "samples must be 1, got 2"),
    ],
)
def test_wrong_numbers(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate("random", "Arithmetic", **settings)


def test_wrong_names() -> None:
    with pytest.raises(gym.error.UnregisteredEnv, match="did you mean tetrathlon/Arithmetic-v0"):
        evaluate("random", "Arithmetc")
    with pytest.raises(PolicyError, match="did you mean random"):
        evaluate("randm", "Arithmetic")
    assert tetrathlon.__version__


def test_a_bootstrap_needs_instances() -> None:
    one = evaluate(Script(["right", "wrong"] + ["wrong"] * 38), "toys/Oracle-v0", episodes=1, samples=40)
    assert (one.success["low"], one.success["high"]) == wilson(1 / 40, 1) and one.success["high"] > 0.7
    many = evaluate(Script(["right", "right", "wrong", "wrong"] * 5), "toys/Oracle-v0", episodes=10, samples=2)
    assert many.success["interval"] == "cluster bootstrap" and many.success["low"] < 0.3 < 0.7 < many.success["high"]
    alike = evaluate(Script(["right", "wrong"] * 10), "toys/Oracle-v0", episodes=10, samples=2, slots=1)
    assert (alike.success["low"], alike.success["high"]) == wilson(5, 10)


@pytest.mark.parametrize("samples", [1, 2])
def test_an_instance_that_was_asked_again_is_no_new_evidence(samples: int) -> None:
    # 25 problems in the split of one digit: 400 right answers prove no more of other problems than 25 do.
    kwargs = {"digits": 1}
    result = evaluate("expert", "Arithmetic", kwargs=kwargs, episodes=400 // samples, samples=samples)
    assert result.distinct < 30 and result.success["n"] == 400
    assert result.success["low"] == wilson(result.distinct, result.distinct)[0] < 0.9
    assert result.success["interval"] == "wilson over instances"


@pytest.mark.parametrize("task", [["a", 1], {"page": 3}, 7, {1, 2}], ids=str)
def test_any_task_id_is_counted(task: Any) -> None:
    class Named(Counting):
        def reset(self, **kwargs: Any) -> Any:
            observation, info = super().reset(**kwargs)
            return observation, {**info, "task_id": task}

    gym.register("toys/Named-v0", entry_point=lambda **kwargs: Named(**kwargs))
    try:
        result = evaluate("expert", "toys/Named-v0", episodes=6)
    finally:
        del gym.registry["toys/Named-v0"]
    assert result.distinct == 1 and result.success["n"] == 6
    assert (result.success["low"], result.success["high"]) == wilson(result.success["mean"], 1)
    assert all(isinstance(instance_of(episode), str) for episode in result.episodes_played)


@pytest.mark.parametrize(
    ("told", "mean"),
    [(True, 1.0), (np.True_, 1.0), (False, 0.0), (None, None), ("False", 0.0), (math.nan, 0.0), (1, 0.0)],
)
def test_success_is_a_truth_value_and_nothing_else(told: Any, mean: float | None) -> None:
    class Telling(Counting):
        def step(self, action: Any) -> Any:
            *rest, info = super().step(action)
            return *rest, {**info, "is_success": told}

    gym.register("toys/Telling-v0", entry_point=lambda **kwargs: Telling(**kwargs))
    try:
        assert evaluate("expert", "toys/Telling-v0", episodes=3).success["mean"] == mean
    finally:
        del gym.registry["toys/Telling-v0"]
