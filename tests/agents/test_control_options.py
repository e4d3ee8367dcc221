"""The actor-critic for control by option: normalised observations, images, squashed actions, a memory."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from tetrathlon.agents.control import ControlPolicy
from tetrathlon.agents.evaluation import evaluate
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.algos.imitation import clone
from tetrathlon.algos.on_policy import PPO
from tetrathlon.algos.trained import trained_policy
from tetrathlon.envs.episode import Episode, Step
from tetrathlon.envs.slots import Slots
from tetrathlon.envs.spaces import UnicodeText, stack

SCENE = spaces.Dict(
    {
        "camera": spaces.Box(0, 255, (6, 5, 3), np.uint8),
        "speed": spaces.Box(-np.inf, np.inf, (2,), np.float32),
        "wish": UnicodeText(9),
    }
)
TO_DO = spaces.Box(np.array([-1.0, 0.0]), np.array([1.0, 4.0]), dtype=np.float32)
OPTIONS: dict[str, Any] = {
    "gamma": 0.9,
    "epochs": 2,
    "minibatches": 2,
    "groups": 4,
    "horizon": 12,
    "scale_rewards": True,
}


class Scene(gym.Env[Any, Any]):
    """Six steps of noise, with numbers far from 0; two slots of it never see the same."""

    observation_space, action_space = SCENE, TO_DO

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        return self._see(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action in self.action_space, action
        self.t += 1
        return self._see(), float(action[0]), self.t == 6 and self.np_random.random() < 0.5, self.t == 6, {}

    def expert_action(self, k: int = 1) -> Any:
        return np.array([0.5, 3.0], np.float32)

    def _see(self) -> Any:
        return {
            "camera": self.np_random.integers(0, 256, (6, 5, 3), dtype=np.uint8),
            "speed": self.np_random.normal([50.0, -3.0], [9.0, 0.1]).astype(np.float32),
            "wish": "go",
        }


class Recall(gym.Env[Any, Any]):
    """A sign is shown at the start; after three blank steps it pays to do as it said."""

    observation_space, action_space = spaces.Box(-1, 1, (2,)), spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t, self.sign = 0, int(self.np_random.integers(2))
        return np.array([2 * self.sign - 1, 0], np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        told = np.array([0, self.t == 2], np.float32)
        return told, float(self.t == 3 and action == self.sign), self.t == 3, False, {}


gym.register("Scene-v0", entry_point=lambda **kwargs: Scene(**kwargs))
gym.register("Recall-v0", entry_point=lambda **kwargs: Recall(**kwargs))


def made(**options: Any) -> ControlPolicy:
    return ControlPolicy(SCENE, TO_DO, **{"ignore_text": True, "cnn": "impala", "hidden": (16,), **options})


def stretches(policy: ControlPolicy, count: int, steps: int = 8) -> list[list[list[Episode]]]:
    rollout = Rollout(policy, Slots(Scene, 2), (Start(seed=seed) for seed in range(99)))
    return [rollout.stretch(steps) for _ in range(count)]


ALIKE: dict[str, dict[str, Any]] = {
    "plain": {},
    "normalised": {"normalize_observations": True},
    "squashed": {"squash": True, "state_std": True},
    "shared": {"shared": True, "activation": "relu"},
    "memory": {"memory": 8},
    "all": {"memory": 8, "shared": True, "normalize_observations": True, "squash": True},
}


@pytest.mark.parametrize("name", ALIKE)
def test_what_was_noted_is_what_is_evaluated(name: str) -> None:
    policy = made(**ALIKE[name])
    torch.nn.init.normal_(policy.get_parameter("actor.2.weight"))
    for rows in stretches(policy, 3):  # memories go on from stretch to stretch
        batch = policy.collate(rows)
        with torch.no_grad():
            found = policy.evaluate(batch)
        torch.testing.assert_close(found.logp[batch.mask], batch.logp[batch.mask], rtol=1e-4, atol=1e-4)
        assert batch.inputs["image/camera"].dtype == torch.uint8 and batch.final.sum() >= 2


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize("piece", [None, 5])
def test_the_first_ratio_is_one_and_everything_learns(name: str, piece: int | None) -> None:
    policy = made(**ALIKE[name])
    start = {key: value.clone() for key, value in policy.named_parameters()}
    found = PPO(policy, "Scene-v0", piece=piece, **OPTIONS).learn(3)
    # the memory of a piece begins where acting had it, in another order of additions
    tolerance = 1e-5 if piece and "memory" in ALIKE[name] else 1e-6
    assert [metrics["first_ratio_error"] for metrics in found] == pytest.approx([0.0] * 3, abs=tolerance)
    assert [metrics["sampler_drift"] for metrics in found] == pytest.approx([0.0] * 3, abs=1e-4)
    assert all(not torch.equal(value, start[key]) for key, value in policy.named_parameters())


def test_a_shared_trunk_is_moved_by_the_critic_and_another_is_not() -> None:
    for shared in (False, True):
        policy = made(shared=shared, memory=4)
        value = policy.evaluate(batch := policy.collate(stretches(policy, 1)[0])).value
        assert value is not None
        value[batch.mask].sum().backward()
        assert all((p.grad is not None and bool(p.grad.any())) is shared for p in policy.trunk.parameters())
        assert all(p.grad is not None for p in policy.critic.parameters())


def test_statistics_are_of_what_was_learnt_from_alone() -> None:
    policy = made(normalize_observations=True)
    assert policy.norm is not None
    PPO(policy, "Scene-v0", **OPTIONS).learn(2)
    assert policy.norm.count + policy.norm.new_count > 96  # two batches of 48 steps, and last observations
    assert policy.norm.count < 60  # the second counts when the third is played
    evaluate(policy, "Scene-v0", episodes=5)
    known = policy.norm.count.item()
    assert known > 96 and policy.norm.mean.tolist() == pytest.approx([50.0, -3.0], abs=3)
    evaluate(policy, "Scene-v0", episodes=5)
    policy.eval().collate(stretches(policy, 1)[0])
    assert policy.norm.count == known and not policy.norm.new_count


def test_statistics_of_demonstrations_count_at_once() -> None:
    policy = made(normalize_observations=True, log_std=-1.0)
    rows = stretches(policy, 1, steps=40)[0]
    for step in (step for row in rows for episode in row for step in episode.steps):
        step.label = np.array([0.5, 3.0], np.float32)
    clone(policy, [episode for row in rows for episode in row], learn="label", steps=100, lr=1e-2)
    assert policy.norm is not None and policy.norm.count == 80
    seen = stack(SCENE, [step.observation for step in rows[0][0].steps])
    assert np.abs(policy.act(seen, greedy=True).actions - [0.5, 3.0]).max() < 0.5


def test_images_are_never_normalised() -> None:
    policy = ControlPolicy(SCENE["camera"], TO_DO, cnn="impala", normalize_observations=True)
    assert policy.norm is None


def run(policy: ControlPolicy, folder: Path, updates: int, *, resume: bool = False) -> None:
    PPO(
        policy,
        "Scene-v0",
        run=folder,
        resume=resume,
        checkpoint_every=2,
        name="control",
        arguments={"ignore_text": True, "cnn": "impala", "hidden": (16,), **ALIKE["all"]},
        **OPTIONS,
    ).learn(updates)


def test_it_resumes_bit_for_bit_and_plays_as_it_was(tmp_path: Path) -> None:
    whole, first, second = (made(**ALIKE["all"]) for _ in range(3))
    run(whole, tmp_path / "whole", 4)
    run(first, tmp_path / "parts", 2)
    run(second, tmp_path / "parts", 4, resume=True)
    for (name, one), other in zip(whole.named_parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other), name
    for (name, known), same in zip(whole.named_buffers(), second.buffers(), strict=True):
        assert torch.equal(known, same), name
    played = trained_policy(tmp_path / "whole", gym.make("Scene-v0"))
    seen = stretches(whole, 1)[0][0][0].steps[0].observation
    assert np.array_equal(
        *(policy.act(stack(SCENE, [seen]), greedy=True).actions for policy in (played, copy.deepcopy(whole)))
    )


def test_a_memory_is_of_its_slot_and_its_episode() -> None:
    policy = made(memory=8)
    seen = stack(SCENE, [step.observation for step in stretches(policy, 1)[0][0][0].steps[:3]])
    first = policy.act(seen)
    assert first.records[0] is not None and not first.records[0]["state"].any()
    again = policy.act(seen, [first.memory[2], None, first.memory[0]])
    states = [record["state"] for record in again.records if record is not None]
    assert np.array_equal(states[0], first.memory[2]) and not states[1].any()
    assert np.array_equal(states[2], first.memory[0]) and states[0].shape == (16,)  # the actor's and the critic's


def test_what_an_expert_did_is_remembered() -> None:
    policy = made(memory=8)
    torch.nn.init.normal_(policy.get_parameter("actor.2.weight"))
    turns = iter(range(1000))
    slots = Slots(Scene, 2)
    forced = Rollout(
        policy, slots, [Start(seed=0), Start(seed=1)], force=lambda slot, label: label if next(turns) % 3 == 0 else None
    ).episodes()
    batch = policy.collate([[episode] for episode in forced])
    given = (batch.episode >= 0) & ~batch.mask & ~batch.final
    assert given.sum() == 4 and batch.mask.sum() == 8
    found = policy.evaluate(batch)
    torch.testing.assert_close(found.logp[batch.mask], batch.logp[batch.mask], rtol=1e-4, atol=1e-4)


def test_a_memory_is_learnt() -> None:
    options: dict[str, Any] = {
        "groups": 16,
        "horizon": 30,
        "gamma": 0.9,
        "epochs": 8,
        "minibatches": 2,
        "lr": 1e-2,
        "value_lr": 1e-2,
    }
    share: dict[int, Any] = {}
    for memory in (0, 16):
        env = gym.make("Recall-v0")
        policy = ControlPolicy(env.observation_space, env.action_space, hidden=(16,), memory=memory, shared=True)
        PPO(policy, "Recall-v0", piece=15, **options).learn(12)
        share[memory] = evaluate(policy, "Recall-v0", episodes=60).reward["mean"]
    assert share[0] < 0.75 and share[16] == 1.0


def test_a_row_that_was_remembered_from_nothing() -> None:
    policy = made(memory=8)
    step = stretches(policy, 1)[0][0][0].steps[0]
    batch = policy.collate([[Episode([Step(step.observation, TO_DO.high, terminated=True)])]], learn="action")
    assert batch.inputs["state"].shape == (1, 1, 16) and not batch.inputs["state"].any()


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"ignore_text": False}, TypeError, "ignore_text=True leaves texts out"),
        ({"cnn": "nature"}, ValueError, "at least 36 pixels a side, got 6 x 5"),
        ({"memory": -1}, ValueError, "memory must be the size of a state, or 0 for none, got -1"),
        ({"activation": "sine"}, ValueError, "activation must be one of"),
    ],
)
def test_what_it_refuses(options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        made(**options)
