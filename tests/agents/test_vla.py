"""The vision-language-action policy: what counts of a chunk, what it sees and reads, and that it learns."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from tetrathlon.agents import VLAPolicy
from tetrathlon.agents.chunks import Head
from tetrathlon.agents.naming import PolicyError, make_policy
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.algos import BC, GRPO, PPO, DAgger
from tetrathlon.cli import main
from tetrathlon.envs import ActionChunk, Slots, UnicodeText
from tetrathlon.envs.episode import Episode

HEADS: tuple[Head, ...] = ("gaussian", "bins", "l1", "flow")
SIDES = {"left": -1.0, "right": 1.0}


class Sides(gym.Env[Any, Any]):
    """Go to the side that is named: paid minus the distance, done by actions that come near.

    Args:
        shown: In how many steps the side is named; then the text is empty.
        steps: Steps of an episode.
    """

    def __init__(self, shown: int = 100, steps: int = 4) -> None:
        self.shown, self.steps = shown, steps
        self.observation_space = spaces.Dict(
            {
                "image": spaces.Box(0, 255, (12, 16, 3), np.uint8),
                "state": spaces.Box(-9, 9, (1,), np.float32),
                "instruction": UnicodeText(50),
            }
        )
        self.action_space = spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.side = str(self.np_random.choice(list(SIDES)))
        self.t = 0
        return self._see(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        far = abs(float(np.clip(action[0], -1, 1)) - 0.5 * SIDES[self.side])
        over = self.t == self.steps
        info = {"is_success": far < 0.3} if over else {}
        return self._see(), -far, False, over, info

    def expert_action(self, k: int = 1) -> Any:
        best = np.array([0.5 * SIDES[self.side]], np.float32)
        return best if k == 1 else [best] * k

    def get_state(self) -> Any:
        return self.side, self.t

    def set_state(self, state: Any) -> tuple[Any, dict[str, Any]]:
        self.side, self.t = state
        return self._see(), {}

    def _see(self) -> Any:
        said = f"go {self.side}" if self.t < self.shown else ""
        return {"image": np.zeros((12, 16, 3), np.uint8), "state": np.array([self.t], np.float32), "instruction": said}


def chunked(length: int = 2, execute: int | None = None, **options: Any) -> ActionChunk:
    return ActionChunk(Sides(**options), length, execute)


gym.register("Sides-v0", entry_point=chunked)


def made(**options: Any) -> VLAPolicy:
    env = chunked()
    return VLAPolicy(env.observation_space, env.action_space, **{"hidden": (32,), **options})


def played(policy: VLAPolicy, n: int = 3, **options: Any) -> list[Episode]:
    return Rollout(policy, Slots(lambda: chunked(**options), 2), [Start(seed=seed) for seed in range(n)]).episodes()


@pytest.mark.parametrize("options", [{}, {"memory": 6}, {"head": "bins"}, {"state_std": True, "critic": "shared"}])
def test_what_was_noted_is_what_is_evaluated(options: dict[str, Any]) -> None:
    policy = made(**options)
    torch.nn.init.normal_(policy.get_parameter("actor.2.weight"))
    episodes = played(policy, length=2, execute=1, steps=3)
    assert all(step.record["logp"].shape == (2,) for e in episodes for step in e.steps)  # type: ignore[index]
    batch = policy.collate([episodes[:2], episodes[2:]])
    with torch.no_grad():
        found = policy.evaluate(batch)
    assert batch.inputs["executed"][batch.mask].tolist() == [1] * 9 and batch.env_steps[batch.mask].tolist() == [1] * 9
    first = [float(step.record["logp"][0]) for episode in episodes for step in episode.steps]  # type: ignore[index]
    np.testing.assert_allclose(batch.logp[batch.mask], first, rtol=1e-6)
    torch.testing.assert_close(found.logp[batch.mask], batch.logp[batch.mask], rtol=1e-4, atol=1e-4)
    assert (found.value is None) == ("critic" not in options)


def test_a_chunk_counts_as_far_as_it_was_executed() -> None:
    policy = made()
    episodes = played(policy, length=2, steps=3)  # two actions, and then the one that time was left for
    batch = policy.collate([[episode] for episode in episodes])
    assert batch.inputs["executed"].tolist() == [[2, 1, 0]] * 3 and batch.env_steps[:, :2].tolist() == [[2, 1]] * 3
    whole, cut = (episodes[0].steps[i].record["logp"] for i in (0, 1))  # type: ignore[index]
    np.testing.assert_allclose(batch.logp[0, :2], [whole.sum(), cut[0]], rtol=1e-6)
    entropy = policy.evaluate(batch).entropy
    torch.testing.assert_close(entropy[0, 0], 2 * entropy[0, 1])
    other = policy.collate([[episode] for episode in episodes], learn="action")  # as far as they are its own
    assert other.inputs["executed"][:, :2].tolist() == [[2, 1]] * 3
    for episode in episodes:
        for step in episode.steps:
            step.record, step.label = None, np.array([[0.5], [0.5]], np.float32)
    for learn in ("action", "label"):  # of others, whole
        told = policy.collate([[episode] for episode in episodes], learn=learn)
        assert told.inputs["executed"][:, :2].tolist() == [[2, 2]] * 3 and told.logp.isnan().all()


@pytest.mark.parametrize("options", [{}, {"memory": 6}, {"head": "bins"}])
@pytest.mark.parametrize("piece", [None, 1])
def test_the_first_ratio_is_one_and_everything_learns(options: dict[str, Any], piece: int | None) -> None:
    policy = made(critic="own", **options)
    start = {name: value.clone() for name, value in policy.named_parameters()}
    kwargs = {"execute": 1, "steps": 3}
    found = PPO(policy, "Sides-v0", kwargs=kwargs, groups=8, minibatches=2, epochs=2, piece=piece, lr=1e-2).learn(2)
    tolerance = 1e-5 if piece and options.get("memory") else 1e-6
    assert [metrics["first_ratio_error"] for metrics in found] == pytest.approx([0.0] * 2, abs=tolerance)
    assert [metrics["sampler_drift"] for metrics in found] == pytest.approx([0.0] * 2, abs=1e-4)
    blind = ("images.0",)  # these pictures are black
    same = [n for n, v in policy.named_parameters() if torch.equal(v, start[n]) and not any(b in n for b in blind)]
    assert not same


def test_a_critic_is_there_where_it_is_needed_alone() -> None:
    for algorithm, has_critic in ((GRPO, False), (PPO, True)):
        policy = made()
        options = {"groups": 2, "group_size": 2} if algorithm is GRPO else {"groups": 4}
        algorithm(policy, "Sides-v0", **options).learn(1)  # type: ignore[arg-type]
        assert (policy.critic is not None) == has_critic
    assert policy.critic is not None and policy.critic.trunk is not None
    with pytest.raises(ValueError, match="critic must be 'own', 'shared' or None, got 'twin'"):
        made(critic="twin")


@pytest.mark.parametrize("head", ["l1", "flow"])
def test_what_has_no_density_learns_by_imitation_alone(head: Head) -> None:
    for algorithm in (PPO, GRPO):
        policy = made(head=head)
        options = {"groups": 2, "group_size": 2} if algorithm is GRPO else {"groups": 4}
        with pytest.raises(TypeError, match="without a density: train it by BC or DAgger"):
            algorithm(policy, "Sides-v0", **options)  # type: ignore[arg-type]


def error(policy: VLAPolicy, **options: Any) -> float:
    """The mean distance from the right place in greedy episodes on other seeds."""
    starts = [Start(seed=1000 + seed) for seed in range(20)]
    policy.eval()
    episodes = Rollout(policy, Slots(lambda: chunked(**options), 20), starts, greedy=True).episodes()
    return -float(np.mean([reward for e in episodes for step in e.steps for reward in step.info["step_rewards"]]))


# Unlearnt it is 0.5.
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("algorithm", [BC, DAgger])
def test_every_head_imitates(head: Head, algorithm: Any) -> None:
    policy = made(head=head)
    found = algorithm(policy, "Sides-v0", episodes=16, steps=80, batch_size=16, lr=3e-3).learn(
        1 + (algorithm is DAgger)
    )
    assert error(policy) < 0.1
    assert found[-1]["bc_loss"] < found[0]["bc_loss"] or algorithm is BC
    assert ("entropy" in found[0]) == (head in ("gaussian", "bins"))


def test_a_goal_that_is_hidden_needs_a_memory() -> None:
    kwargs = {"shown": 1}
    errors = []
    for memory in (0, 16):
        policy = made(head="l1", memory=memory)
        BC(policy, "Sides-v0", kwargs=kwargs, episodes=32, steps=120, batch_size=16, lr=5e-3).learn(1)
        errors.append(error(policy, **kwargs))
    assert errors[0] > 0.2 and errors[1] < 0.1


@pytest.mark.parametrize("algorithm", [PPO, GRPO])
def test_rewards_lift_it(algorithm: Any) -> None:
    policy = made(log_std=-1.0)
    before = error(policy)
    options = {"groups": 4, "group_size": 8} if algorithm is GRPO else {"groups": 32, "value_lr": 3e-3}
    algorithm(policy, "Sides-v0", lr=3e-3, epochs=4, minibatches=2, **options).learn(12)
    assert before > 0.45 and error(policy) < 0.25


def test_words_and_pictures_count() -> None:
    torch.manual_seed(0)
    policy = made()
    torch.nn.init.normal_(policy.get_parameter("actor.2.weight"), std=0.1)
    rng = np.random.default_rng(0)
    seen: dict[str, Any] = {
        "image": rng.integers(0, 255, (4, 12, 16, 3), dtype=np.uint8),
        "state": np.zeros((4, 1), np.float32),
        "instruction": ("go left", "go left", "go right", ""),
    }
    seen["image"][1:] = seen["image"][0]
    actions = policy.act(seen, greedy=True).actions
    assert np.array_equal(actions[0], actions[1])
    assert not np.allclose(actions[0], actions[2]) and not np.allclose(actions[0], actions[3])
    longer = policy.act({**seen, "instruction": ("go left", "x " * 90, "go right", "")}, greedy=True).actions
    np.testing.assert_allclose(longer[[0, 2, 3]], actions[[0, 2, 3]], atol=1e-6)  # however long the others are
    seen["image"][1, 3, 4, 1] ^= 255
    assert not np.allclose(policy.act(seen, greedy=True).actions[1], actions[1])


@pytest.mark.parametrize(
    "space",
    [
        spaces.Dict({"a": spaces.Box(0, 255, (64, 64, 3), np.uint8), "b": spaces.Box(0, 255, (21, 30, 1), np.uint8)}),
        spaces.Dict({"image": spaces.Box(0, 255, (8, 8, 3), np.uint8), "said": UnicodeText(9)}),
        spaces.Dict({"said": UnicodeText(9), "more": UnicodeText(9)}),
        spaces.Box(-1, 1, (3,), np.float32),
    ],
    ids=["two_pictures", "picture_and_text", "texts", "numbers"],
)
def test_it_takes_what_there_is(space: spaces.Space[Any]) -> None:
    policy = VLAPolicy(space, spaces.Box(-1, 1, (3,), np.float32))
    batch = gym.vector.utils.batch_space(space, 5)
    batch.seed(0)
    assert policy.act(batch.sample()).actions.shape == (5, 3)


def test_a_snapshot_is_frozen_and_draws_are_part_of_the_state() -> None:
    policy = made(head="flow")
    frozen = policy.snapshot()
    assert not any(p.requires_grad for p in frozen.parameters())
    seen = gym.vector.utils.batch_space(policy.observation_space, 2).sample()
    state = copy.deepcopy(policy.state_dict())
    first = policy.act(seen).actions
    second = policy.act(seen).actions
    policy.load_state_dict(state)
    assert np.array_equal(policy.act(seen).actions, first) and not np.array_equal(first, second)
    assert np.array_equal(frozen.act(seen).actions, first)


def test_by_name_and_out_of_a_run(tmp_path: Path) -> None:
    policy = make_policy("vla", chunked(), seed=3, arguments={"head": "bins", "memory": 4})
    assert isinstance(policy, VLAPolicy) and policy.memory == 4
    with pytest.raises(PolicyError, match="'vla' does not fit CartPole-v1: actions must be a Box of floats"):
        make_policy("vla", gym.make("CartPole-v1"))
    with pytest.raises(PolicyError, match="policy 'vla': head must be one of 'gaussian', 'bins', 'l1', 'flow', got"):
        make_policy("vla", chunked(), arguments={"head": "mixture"})
    run = str(tmp_path / "run")
    command = ["train", "ppo", "Sides-v0", "--policy", "vla", "--updates", "1", "--groups", "2", "--out", run]
    assert main([*command, "--model", "head=bins", "hidden=[16]", "--test-episodes", "0"]) == 0
    assert json.loads((tmp_path / "run/config.json").read_text())["policy_arguments"] == {
        "head": "bins",
        "hidden": [16],
    }
    policy = make_policy(f"run:{run}", chunked())
    assert isinstance(policy, VLAPolicy) and policy.critic is not None  # which PPO added


def test_the_page_s_example() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/policies.md").read_text(encoding="utf-8")
    block = next(b for b in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "VLAPolicy" in b)
    shortened = block.replace("episodes=240, steps=3000", "episodes=2, steps=2")
    names: dict[str, Any] = {}
    try:
        exec(shortened, names)
    except gym.error.DependencyNotInstalled as error:
        pytest.skip(str(error))
    assert shortened != block and names["policy"].norm.count > 0
