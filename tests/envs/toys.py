"""Good environments for tests: text over several turns, control, pictures with text, each small and in its contract."""

from __future__ import annotations

import copy
import hashlib
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from tetrathlon.envs.spaces import UnicodeText

SPLITS = ("train", "test")


def split_of(content: str) -> str:
    return SPLITS[int(hashlib.sha256(content.encode()).hexdigest(), 16) % 5 == 0]


class Toy(gym.Env[Any, Any]):
    """What the toys share: splits, state, the end, and an info of the contract's form."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]
    kept: tuple[str, ...] = ("target", "left", "strikes", "over")

    def __init__(self, *, split: str = "train", render_mode: str | None = None) -> None:
        self.split = split
        self.render_mode = render_mode
        self.target: Any = None
        self.left = 0
        self.strikes = 0
        self.over = True

    def draw(self, rng: np.random.Generator) -> tuple[Any, int]:
        raise NotImplementedError

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        options = options or {}
        rng = np.random.default_rng([77, options["index"]]) if "index" in options else self.np_random
        while True:
            self.target, self.left = self.draw(rng)
            if split_of(self.task_id()) == self.split:
                break
        self.strikes, self.over = 0, False
        return self.look(), self.start_info()

    def look(self) -> Any:
        raise NotImplementedError

    def task_id(self) -> str:
        return f"{self.target} {self.left}"

    def start_info(self) -> dict[str, Any]:
        return {"task_id": self.task_id(), "system": "", "tools": [{"name": "say", "parameters": {}}]}

    def end(self, terms: dict[str, float], stop_reason: str | None, success: bool = False) -> Any:
        info: dict[str, Any] = {"reward_terms": terms, "strikes": self.strikes}
        if stop_reason is not None:
            self.over = True
            info |= {"is_success": success, "stop_reason": stop_reason}
        return self.look(), float(sum(terms.values())), stop_reason is not None, False, info

    def get_state(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in self.kept}
        return copy.deepcopy(state | {"rng": self.np_random.bit_generator.state})

    def set_state(self, state: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        state = copy.deepcopy(state)
        self.np_random.bit_generator.state = state.pop("rng")
        for name, value in state.items():
            setattr(self, name, value)
        return self.look(), self.start_info()


class Echo(Toy):
    """Repeat 2 to 6 numbers, one a turn; three wrong words end it."""

    def __init__(self, *, split: str = "train", render_mode: str | None = None) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.observation_space = UnicodeText(1_000)
        self.action_space = UnicodeText(1_000_000)

    def draw(self, rng: np.random.Generator) -> tuple[Any, int]:
        return int(rng.integers(1_000, 10_000)), int(rng.integers(2, 7))

    def look(self) -> str:
        return "" if self.over else f"Say {self.target}, {self.left} to go 🙂"

    def step(self, action: Any) -> Any:
        if self.over:
            raise gym.error.ResetNeeded("the episode is over")
        if isinstance(action, str) and action == str(self.target):
            self.left -= 1
            self.target = int(self.np_random.integers(1_000, 10_000))
            paid = {"said": 0.1, "finished": 0.5 if self.left == 0 else 0.0}
            return self.end(paid, "answered" if self.left == 0 else None, success=True)
        self.strikes += 1
        return self.end({"said": 0.0, "finished": 0.0}, "strikes" if self.strikes == 3 else None)

    def expert_action(self, k: int = 1) -> Any:
        action = str(self.target)
        return action if k == 1 else [action] * k


class Reach(Toy):
    """Move a point on a line to its goal; a control environment with a noisy step."""

    kept = ("target", "left", "strikes", "over", "place")

    def __init__(self, *, split: str = "train", render_mode: str | None = None) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.observation_space = spaces.Box(-10.0, 10.0, (2,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.place = 0.0

    def draw(self, rng: np.random.Generator) -> tuple[Any, int]:
        self.place = 0.0
        return float(rng.uniform(-4, 4)), 40

    def look(self) -> Any:
        return np.array([self.place, self.target], dtype=np.float32)

    def step(self, action: Any) -> Any:
        if self.over:
            raise gym.error.ResetNeeded("the episode is over")
        self.left -= 1
        near = 0.0
        try:
            push = np.asarray(action, dtype=np.float64)
        except (TypeError, ValueError):
            push = np.full(1, np.nan)
        if push.shape == (1,) and np.isfinite(push).all():
            noise = float(self.np_random.normal(0, 0.01))
            self.place = float(np.clip(self.place + np.clip(push[0], -1, 1) + noise, -10, 10))
            near = float(abs(self.place - self.target) < 0.2)
        else:
            self.strikes += 1
        reason = "reached" if near else None
        observation, reward, terminated, _, info = self.end({"near": near}, reason, bool(near))
        if not terminated and self.left == 0:
            self.over = True
            return observation, reward, False, True, info | {"is_success": False, "stop_reason": "time"}
        return observation, reward, terminated, False, info

    def expert_action(self, k: int = 1) -> Any:
        action = np.clip(np.array([self.target - self.place], dtype=np.float32), -1, 1)
        return action if k == 1 else np.stack([action] * k)


class Film(Toy):
    """A picture and a text that both change at every step, for 3 to 7 steps; any text will do."""

    kept = ("target", "left", "strikes", "over", "frame")

    def __init__(self, *, split: str = "train", render_mode: str | None = None) -> None:
        super().__init__(split=split, render_mode=render_mode)
        picture = spaces.Box(0, 255, (6, 5, 3), np.uint8)
        self.observation_space = spaces.Dict({"image": picture, "text": UnicodeText(40)})
        self.action_space = UnicodeText(1_000_000)
        self.frame = 0

    def draw(self, rng: np.random.Generator) -> tuple[Any, int]:
        self.frame = 0
        return int(rng.integers(0, 100_000)), int(rng.integers(3, 8))

    def look(self) -> dict[str, Any]:
        rng = np.random.default_rng([self.target, self.frame])
        picture = rng.integers(0, 256, (6, 5, 3), dtype=np.uint8)
        return {"image": picture, "text": f"frame {self.frame} of {self.target} \0😀" * (self.frame % 2)}

    def step(self, action: Any) -> Any:
        if self.over:
            raise gym.error.ResetNeeded("the episode is over")
        self.frame += 1
        self.left -= 1
        done = self.left == 0
        return self.end({"seen": 0.0}, "seen" if done else None, success=False)


class Levels(gym.Env[Any, Any]):
    """Discrete observations (NumPy integers) over a random number of steps."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(self) -> None:
        self.observation_space = spaces.Discrete(10)
        self.action_space = spaces.Discrete(2)
        self.left = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(2, 9)) if not options else int(options["left"])
        return np.int64(self.left), {"task_id": str(self.left)}

    def step(self, action: Any) -> Any:
        self.left -= 1
        return np.int64(self.left), 1.0, self.left == 0, False, {"left": self.left}


class Fragile(Echo):
    """Breaks down on the number 13, sent as text, and on every reset with seed 13."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        if seed == 13:
            raise RuntimeError("seed 13")
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> Any:
        if action == "13":
            raise RuntimeError("action 13")
        return super().step(action)
