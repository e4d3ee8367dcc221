"""Chunks of actions: what is done of them, what is paid, and that the robots' own chunks are the same."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from tetrathlon.envs import ActionChunk
from tetrathlon.envs.robots.push import PushToZone


class Line(gym.Env[Any, Any]):
    """A point that is moved along a line: paid where it is, done at 3 or more, out of time after ``limit`` steps."""

    def __init__(self, limit: int = 100) -> None:
        self.limit = limit
        self.observation_space = spaces.Box(-100, 100, (1,), np.float64)
        self.action_space = spaces.Box(-1, 2, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.x, self.t = 0.0, 0
        return self._see(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.x, self.t = self.x + float(action[0]), self.t + 1
        info = {"reward_terms": {"place": self.x}, "cost_terms": {"move": abs(float(action[0]))}, "t": self.t}
        return self._see(), self.x, self.x >= 3, self.t == self.limit, info

    def expert_action(self, k: int = 1) -> Any:
        ahead = [np.array([self.x + i], np.float32) for i in range(k)]  # tells what it was asked, and when
        return ahead if k > 1 else ahead[0]

    def get_state(self) -> Any:
        return self.x, self.t

    def set_state(self, state: Any) -> tuple[Any, dict[str, Any]]:
        self.x, self.t = state
        return self._see(), {}

    def _see(self) -> Any:
        return np.array([self.x])


def chunk(*numbers: float) -> np.ndarray:
    return np.array(numbers, dtype=np.float32)[:, None]


def test_actions_are_done_in_turn_and_rewards_summed() -> None:
    env = ActionChunk(Line(), 4)
    env.reset(seed=0)
    assert env.action_space == spaces.Box(-1, 2, (4, 1), np.float32)
    observation, reward, terminated, truncated, info = env.step(chunk(1, 0.5, -1, 1))
    assert observation.tolist() == [1.5] and reward == 1 + 1.5 + 0.5 + 1.5 and not terminated and not truncated
    assert info["step_rewards"] == [1.0, 1.5, 0.5, 1.5] and info["env_steps"] == 4 and info["t"] == 4
    assert info["reward_terms"] == {"place": 4.5} and info["cost_terms"] == {"move": 3.5}
    assert type(reward) is float and {type(r) for r in info["step_rewards"]} == {float}


def test_an_end_inside_ends_the_chunk() -> None:
    env = ActionChunk(Line(limit=3), 4)
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(chunk(2, 1, 2, 2))
    assert (observation.tolist(), reward, terminated, truncated) == ([3.0], 5.0, True, False)
    assert info["step_rewards"] == [2.0, 3.0] and info["env_steps"] == 2
    env.reset(seed=0)
    _, _, terminated, truncated, info = env.step(chunk(0, 0, 0, 2))
    assert (terminated, truncated, info["env_steps"]) == (False, True, 3)


def test_only_the_first_are_executed() -> None:
    env = ActionChunk(Line(), 4, execute=2)
    env.reset(seed=0)
    observation, reward, _, _, info = env.step(chunk(1, 1, 2, 2))
    assert observation.tolist() == [2.0] and reward == 3.0 and info["env_steps"] == 2


def test_the_expert_gives_chunks_and_states_are_the_environments() -> None:
    env = ActionChunk(Line(), 3)
    env.reset(seed=0)
    assert env.expert_action().tolist() == [[0.0], [1.0], [2.0]] and env.expert_action() in env.action_space
    assert [one.tolist() for one in env.expert_action(2)] == [[[0.0], [1.0], [2.0]], [[3.0], [4.0], [5.0]]]
    assert ActionChunk(env.unwrapped, 1).expert_action().tolist() == [[0.0]]
    state = env.get_wrapper_attr("get_state")()
    env.step(chunk(1, 1, 0))
    env.get_wrapper_attr("set_state")(state)
    assert env.step(chunk(1, 0, 0))[0].tolist() == [1.0]
    assert not ActionChunk(gym.make("Pendulum-v1"), 2).has_wrapper_attr("expert_action")


def test_what_it_refuses() -> None:
    env = ActionChunk(Line(), 4)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"a chunk must have the shape \(4, 1\), got \(1,\)"):
        env.step(np.zeros(1, np.float32))
    with pytest.raises(ValueError, match="execute must be an integer from 1 to 4, got 5"):
        ActionChunk(Line(), 4, execute=5)
    with pytest.raises(ValueError, match="length must be an integer from 1 to 1000, got 0"):
        ActionChunk(Line(), 0)
    with pytest.raises(TypeError, match=r"a chunk is of actions in a Box, got Discrete\(2\)"):
        ActionChunk(gym.make("CartPole-v1"), 4)


def test_a_robots_own_chunks_are_the_same() -> None:
    options: dict[str, Any] = {"observation": "state", "reward": "dense", "max_steps": 30}
    own, wrapped = PushToZone(chunk=4, **options), ActionChunk(PushToZone(**options), 4)
    assert own.action_space == wrapped.action_space
    rng = np.random.default_rng(0)
    ended = []
    for seed in range(6):
        first, info = own.reset(seed=seed)
        other, told = wrapped.reset(seed=seed)
        assert np.array_equal(first, other) and info == told
        over = False
        while not over:
            action = own.expert_action() if seed % 2 else rng.uniform(-1, 1, (4, 2)).astype(np.float32)
            if seed % 2:
                assert np.array_equal(action, wrapped.expert_action())
            mine, theirs = own.step(action), wrapped.step(action)
            assert np.array_equal(mine[0], theirs[0]) and mine[2:4] == theirs[2:4]
            assert mine[1] == pytest.approx(theirs[1], abs=1e-12)
            assert mine[4] == {**theirs[4], "reward_terms": pytest.approx(theirs[4]["reward_terms"])}
            over = mine[2] or mine[3]
        ended.append((mine[2], mine[4]["env_steps"]))
    # by success inside a chunk, and by time in the middle of one: 30 steps are seven chunks and a half
    assert any(success and steps < 4 for success, steps in ended) and (False, 2) in ended
