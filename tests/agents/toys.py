"""Small environments whose every number is known."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from tetrathlon.envs.spaces import UnicodeText


class Counting(gym.Env[Any, Any]):
    """Counts to ``length``: observation [t], reward the action; the expert says t.

    An episode with an odd seed is a success. ``length`` of an episode may be given by the option of that name.
    """

    def __init__(self, length: int = 3, crash_at: int | None = None, crash_seed: int | None = None) -> None:
        self.observation_space = spaces.Box(0, 1000, (1,), np.int64)
        self.action_space = spaces.Discrete(1000)
        self.default_length, self.crash_at, self.crash_seed = length, crash_at, crash_seed

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t, self.seed_used = 0, seed or 0
        self.length = (options or {}).get("length", self.default_length)
        return self._see(), {"task_id": str(self.seed_used)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        if self.t == self.crash_at and (self.crash_seed is None or self.seed_used == self.crash_seed):
            raise RuntimeError("the simulator is gone")
        over = self.t >= self.length
        info: dict[str, Any] = {"reward_terms": {"action": float(action)}}
        if over:
            info["is_success"] = self.seed_used % 2 == 1
            info["stop_reason"] = "counted"
        return self._see(), float(action), over, False, info

    def expert_action(self, k: int = 1) -> Any:
        return self.t if k == 1 else [self.t + i for i in range(k)]

    def _see(self) -> Any:
        return np.array([self.t], dtype=np.int64)


class Oracle(gym.Env[str, str]):
    """One turn of text: ``right`` is right, ``half`` pays a half, ``broken`` breaks the grader."""

    def __init__(self, split: str = "train") -> None:
        self.split = split
        self.observation_space = UnicodeText(100)
        self.action_space = UnicodeText(100)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.asked = f"{self.split} {seed}"
        return self.asked, {"task_id": self.asked}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        word = action.split()[0] if action else ""
        if word == "broken":
            nothing = {"correct": 0.0}
            info = {
                "is_success": False,
                "reward_terms": nothing,
                "scores": nothing,
                "grader_error": "correct: no judge",
            }
            return "", 0.0, True, False, info
        score = {"right": 1.0, "half": 0.5}.get(word, 0.0)
        info = {"is_success": score == 1.0, "reward_terms": {"correct": score}, "scores": {"correct": score}}
        return "", score, True, False, {**info, "stop_reason": "answered"}

    def answer_in(self, completion: str) -> str | None:
        return completion or None
