"""A task of control that is learnt in seconds, and a log of it by nobody who knew anything."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from tetrathlon.agents.control import ControlPolicy
from tetrathlon.envs.episode import Episode, Step

LINE = 8
"""Steps of an episode."""


class Line(gym.Env[Any, Any]):
    """A point on a line that is paid for being near the middle; time ends an episode."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.at, self.time = float(self.np_random.uniform(-1, 1)), 0
        return np.array([self.at], np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.at, self.time = self.at + 0.5 * float(action[0]), self.time + 1
        return np.array([self.at], np.float32), -abs(self.at), False, self.time == LINE, {}


def line_log(episodes: int, seed: int = 0) -> list[Episode]:
    """Return episodes of uniform random actions."""
    env, rng = Line(), np.random.default_rng(seed)
    found = []
    for number in range(episodes):
        seen, _ = env.reset(seed=1000 * seed + number)
        steps = []
        truncated = False
        while not truncated:
            action = rng.uniform(-1, 1, 1).astype(np.float32)
            after, reward, terminated, truncated, info = env.step(action)
            steps.append(Step(seen, action, reward, terminated, truncated, info))
            seen = after
        found.append(Episode(steps, seen))
    return found


def line_policy(seed: int = 0, **options: Any) -> ControlPolicy:
    """Return a policy whose actions a tanh bounds."""
    return ControlPolicy(
        Line.observation_space,
        Line.action_space,
        **{"squash": True, "activation": "relu", "hidden": (32, 32), "seed": seed, **options},
    )


def line_return(policy: ControlPolicy, episodes: int = 50) -> float:
    """Return the mean return of the most likely actions, from starts that no log holds."""
    env = gym.vector.SyncVectorEnv([Line] * episodes, autoreset_mode=gym.vector.AutoresetMode.DISABLED)
    seen, _ = env.reset(seed=list(range(500_000, 500_000 + episodes)))
    paid = np.zeros(episodes)
    for _ in range(LINE):
        seen, reward, *_ = env.step(policy.act(seen, greedy=True).actions)
        paid += reward
    return float(paid.mean())
