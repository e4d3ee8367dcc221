"""The actor-critic for control: what it draws, notes and learns."""

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
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.algos.imitation import clone
from tetrathlon.algos.on_policy import PPO
from tetrathlon.cli import main
from tetrathlon.envs.episode import Episode, Step
from tetrathlon.envs.slots import Slots

NUMBERS = spaces.Box(-np.inf, np.inf, (3,), np.float32)
ACTIONS: dict[str, spaces.Space[Any]] = {
    "discrete": spaces.Discrete(3, start=1),
    "multi_discrete": spaces.MultiDiscrete([2, 3]),
    "multi_binary": spaces.MultiBinary(3),
    "box": spaces.Box(-0.5, 0.5, (2,), np.float64),
}


class Walk(gym.Env[Any, Any]):
    """Five steps of noise, paid for a small sum of the action's components."""

    def __init__(self, action_space: spaces.Space[Any]) -> None:
        self.observation_space, self.action_space = NUMBERS, action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        return self._see(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action in self.action_space, action
        self.t += 1
        return self._see(), -float(np.sum(action)), False, self.t == 5, {}

    def expert_action(self, k: int = 1) -> Any:
        return np.full(2, 0.25)

    def _see(self) -> Any:
        return self.np_random.normal(size=3).astype(np.float32)


def played(policy: ControlPolicy, name: str, n: int = 3, **options: Any) -> list[Episode]:
    slots = Slots(lambda: Walk(ACTIONS[name]), 2)
    return Rollout(policy, slots, [Start(seed=seed) for seed in range(n)], **options).episodes()


def sharpen(policy: ControlPolicy) -> None:
    """Make its choices far from uniform."""
    torch.nn.init.normal_(policy.get_parameter("actor.4.weight"))


def test_first_weights_are_those_of_ppo() -> None:
    policy = ControlPolicy(NUMBERS, ACTIONS["discrete"], hidden=(16, 8), seed=1)
    for network, gain, outputs in ((policy.actor, 0.01, 3), (policy.critic, 1.0, 1)):
        layers = [layer for layer in network.modules() if isinstance(layer, torch.nn.Linear)]
        assert [tuple(layer.weight.shape) for layer in layers] == [(16, 3), (8, 16), (outputs, 8)]
        assert all(not layer.bias.any() for layer in layers)
        for layer, scale in zip(layers, (2**0.5, 2**0.5, gain), strict=True):
            torch.testing.assert_close(
                torch.linalg.svdvals(layer.weight), torch.full((min(layer.weight.shape),), scale)
            )
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    ControlPolicy(NUMBERS, ACTIONS["box"])
    assert torch.equal(torch.rand(1), expected)  # the global stream is left alone


@pytest.mark.parametrize("name", ACTIONS)
def test_what_was_noted_is_what_is_evaluated(name: str) -> None:
    policy = ControlPolicy(NUMBERS, ACTIONS[name], seed=3)
    sharpen(policy)
    episodes = played(policy, name)
    batch = policy.collate([episodes[:2], episodes[2:]])
    found = policy.evaluate(batch)
    assert batch.mask.sum() == 15 and batch.final.sum() == 3
    assert torch.allclose(found.logp[batch.mask], batch.logp[batch.mask], atol=1e-5)
    seen = torch.as_tensor(np.stack([step.observation for episode in episodes for step in episode.steps]))
    assert torch.equal(batch.inputs["observation"][batch.mask], seen)
    assert batch.inputs["observation"][batch.final].tolist() == [e.final_observation.tolist() for e in episodes]
    assert found.value is not None
    torch.testing.assert_close(found.value[batch.mask], policy.critic(seen))
    if name == "box":  # learnt as drawn, played as clipped
        drawn, done = (
            batch.inputs["action"][batch.mask].numpy(),
            np.stack([s.action for e in episodes for s in e.steps]),
        )
        assert (np.abs(drawn) > 0.5).any() and np.allclose(drawn.clip(-0.5, 0.5), done)
        assert done.dtype == np.float64


def test_the_critic_does_not_move_the_actor() -> None:
    policy = ControlPolicy(NUMBERS, ACTIONS["box"])
    batch = policy.collate([played(policy, "box")])
    value = policy.evaluate(batch).value
    assert value is not None
    value[batch.mask].sum().backward()
    assert all(
        p.grad is None or not p.grad.any() for p in [*policy.actor.parameters(), *policy.distribution.parameters()]
    )
    assert all(p.grad is not None and p.grad.any() for p in policy.critic.parameters())


def test_greedy_actions_are_the_likeliest() -> None:
    seen = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    policy = ControlPolicy(NUMBERS, ACTIONS["discrete"])
    sharpen(policy)
    before = policy.generator.get_state()
    greedy = policy.act(seen, greedy=True)
    assert greedy.actions.tolist() == (policy.actor(torch.tensor(seen)).argmax(-1) + 1).tolist()
    assert len(set(greedy.actions.tolist())) > 1 and torch.equal(policy.generator.get_state(), before)
    assert policy.act(seen).actions.tolist() != greedy.actions.tolist()


def test_forced_actions_are_no_decisions() -> None:
    policy = ControlPolicy(NUMBERS, ACTIONS["box"])
    acted = policy.act(np.zeros((3, 3), np.float32), forced=[None, np.array([0.1, 0.2]), None])
    assert acted.actions[1].tolist() == [0.1, 0.2] and [r is None for r in acted.records] == [False, True, False]
    episodes = played(policy, "box", ask=True, force=lambda slot, label: label)
    batch = policy.collate([episodes], learn="own")
    assert not batch.mask.any() and batch.final.sum() == 3
    for learn in ("label", "action"):
        batch = policy.collate([episodes], learn=learn)
        assert batch.mask.sum() == 15 and bool(batch.logp[batch.mask].isnan().all())
        assert bool((batch.inputs["action"][batch.mask] == 0.25).all())


def test_it_imitates() -> None:
    policy = ControlPolicy(NUMBERS, ACTIONS["box"], log_std=-1.0)
    episodes = played(policy, "box", n=8, ask=True)
    clone(policy, episodes, learn="label", steps=60, lr=1e-2)
    found = policy.act(np.stack([step.observation for step in episodes[0].steps]), greedy=True)
    assert np.abs(found.actions - 0.25).max() < 0.1


def test_what_was_cloned_is_not_moved_by_the_statistics_of_own_play() -> None:
    def rows(scale: float) -> list[list[Episode]]:
        seen = scale * np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
        steps = [Step(each, np.full(2, 0.25), record={"action": np.zeros(2), "logp": np.float32(0)}) for each in seen]
        steps[-1].terminated = True
        return [[Episode(steps, seen[-1])]]

    def answers(policy: ControlPolicy) -> np.ndarray:
        policy.norm.fold()  # type: ignore[union-attr]
        return np.asarray(policy.act(np.ones((1, 3), np.float32), greedy=True).actions)

    policy = ControlPolicy(NUMBERS, ACTIONS["box"], normalize_observations=True)
    torch.nn.init.normal_(policy.get_parameter("actor.4.weight"))
    policy.collate(rows(1.0))
    first = answers(policy)
    policy.collate(rows(3.0))
    assert not np.array_equal(first, answers(policy))  # nothing was learnt by them yet: they follow
    policy.collate(rows(1.0), learn="action")
    cloned = answers(policy)
    policy.collate(rows(3.0))
    assert np.array_equal(cloned, answers(policy))
    other = ControlPolicy(NUMBERS, ACTIONS["box"], normalize_observations=True)
    other.load_state_dict(policy.state_dict())
    other.collate(rows(3.0))
    assert np.array_equal(cloned, answers(other))
    policy.collate(rows(3.0), learn="label")  # nobody said anything: there is nothing to learn, and nothing moves
    assert np.array_equal(cloned, answers(policy))
    policy.collate(rows(3.0), learn="action")  # other data, of a network that has learnt by the first
    assert np.array_equal(cloned, answers(policy))
    said = rows(3.0)
    said[0][0].steps[0].label = np.zeros(2, np.float32)
    policy.collate(said, learn="label")  # a data set that grows, and is learnt anew
    assert not np.array_equal(cloned, answers(policy))


def test_labels_are_checked() -> None:
    policy = ControlPolicy(NUMBERS, ACTIONS["discrete"])
    row = [Episode([Step(np.zeros(3, np.float32), 7, terminated=True)], np.zeros(3, np.float32))]
    with pytest.raises(ValueError, match=r"7.* is no action of Discrete\(3, start=1\)"):
        policy.collate([row], learn="action")


def test_the_stream_goes_on_where_it_was() -> None:
    seen = np.zeros((4, 3), np.float32)
    policy = ControlPolicy(NUMBERS, ACTIONS["box"], seed=1)
    policy.act(seen)
    state = copy.deepcopy(policy.state_dict())
    expected = [policy.act(seen).actions.tolist() for _ in range(3)]
    other = ControlPolicy(NUMBERS, ACTIONS["box"], seed=2)
    other.load_state_dict(state)
    assert [other.act(seen).actions.tolist() for _ in range(3)] == expected
    assert expected[0] != expected[1]
    again = ControlPolicy(NUMBERS, ACTIONS["box"], seed=1)
    again.act(seen)
    assert again.act(seen).actions.tolist() == expected[0]


def test_a_snapshot_stays() -> None:
    policy = ControlPolicy(NUMBERS, ACTIONS["box"])
    frozen = policy.snapshot()
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(1.0)
    assert not any(parameter.requires_grad for parameter in frozen.parameters())
    assert torch.equal(frozen.state_dict()["actor.0.weight"] + 1, policy.state_dict()["actor.0.weight"])


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
def test_ppo_trains_it(env_id: str) -> None:
    env = gym.make(env_id)
    policy = ControlPolicy(env.observation_space, env.action_space, seed=0)
    options: dict[str, Any] = {"groups": 4, "horizon": 16, "epochs": 2, "minibatches": 2}
    still = PPO(copy.deepcopy(policy), env_id, lr=0.0, value_lr=0.0, **options).learn(2)
    assert [metrics["first_ratio_error"] for metrics in still] == [0.0, 0.0]
    assert [metrics["sampler_drift"] for metrics in still] == pytest.approx([0.0, 0.0], abs=1e-5)
    before = copy.deepcopy(policy.state_dict())
    PPO(policy, env_id, **options).learn(2)
    moved = {name for name, value in policy.named_parameters() if not torch.equal(value, before[name])}
    assert moved == {name for name, _ in policy.named_parameters()}


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "ppo", "CartPole-v1", "--policy", "control", "--horizon", "32", "--groups", "8", "--updates", "2"]
    assert main([*words, "--test-episodes", "2", "--out", str(tmp_path / "run")]) == 0
    assert "test reward" in capsys.readouterr().out
    assert (tmp_path / "run/checkpoints/step-00000002").is_dir()


@pytest.mark.parametrize(
    ("seen", "done", "options", "error", "said"),
    [
        (spaces.Text(9), ACTIONS["box"], {}, TypeError, "observations must be Box, .* got Text"),
        (NUMBERS, spaces.Text(9), {}, TypeError, "actions must be Discrete, .* got Text"),
        (NUMBERS, ACTIONS["box"], {"hidden": (8, 0)}, ValueError, r"widths of at least 1, got \(8, 0\)"),
    ],
)
def test_what_it_refuses(seen: Any, done: Any, options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        ControlPolicy(seen, done, **options)
