"""Chunks of actions for an environment that takes single ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from tetrathlon.envs.arguments import whole

_TERMS = ("reward_terms", "cost_terms")


class ActionChunk(gym.Wrapper[Any, np.ndarray, Any, np.ndarray]):
    """Takes K actions at once and does the first of them one after the other, without a look in between.

    An action is a `Box` [K, *A] of K actions of the environment. Rewards are summed, an end ends the chunk, and the
    observation is that after the last action that was done. The info is that of the last action, too, with

    - ``step_rewards``: what each action that was done was paid, as a list of floats;
    - ``env_steps``: how many were done;
    - ``reward_terms`` and ``cost_terms`` summed, where the environment tells them.

    Between two chunks nothing is kept here: ``get_state`` and ``set_state`` are those of the environment.

    Args:
        env: With a ``Box`` of actions.
        length: K.
        execute: How many of a chunk are done; None: all.

    Raises:
        TypeError: The actions are no ``Box``.
        ValueError: There is no action in a chunk, or more are to be done than it has.
    """

    def __init__(self, env: gym.Env[Any, np.ndarray], length: int, execute: int | None = None) -> None:
        super().__init__(env)
        one = env.action_space
        if not isinstance(one, spaces.Box):
            raise TypeError(f"a chunk is of actions in a Box, got {one}")
        self.length = whole("length", length, 1, 1_000)
        self.execute = whole("execute", length if execute is None else execute, 1, self.length)
        self._shape = (self.length, *one.shape)
        low, high = (np.broadcast_to(bound, self._shape) for bound in (one.low, one.high))
        self.action_space = spaces.Box(low, high, dtype=one.dtype.type)

    def step(self, action: np.ndarray) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Do the first ``execute`` actions of a chunk, up to an end.

        Raises:
            ValueError: It is no chunk of K actions; what is in an action is the environment's affair.
        """
        if np.shape(action) != self._shape:
            raise ValueError(f"a chunk must have the shape {self._shape}, got {np.shape(action)}")
        rewards: list[float] = []
        sums: dict[str, dict[str, float]] = {}
        for each in np.asarray(action)[: self.execute]:
            observation, reward, terminated, truncated, info = self.env.step(each)
            rewards.append(float(reward))
            for kind in _TERMS:
                if isinstance(terms := info.get(kind), Mapping):
                    so_far = sums.setdefault(kind, {})
                    so_far |= {name: so_far.get(name, 0.0) + float(value) for name, value in terms.items()}
            if terminated or truncated:
                break
        told = {**info, **sums, "step_rewards": rewards, "env_steps": len(rewards)}
        return observation, float(sum(rewards)), bool(terminated), bool(truncated), told

    @property
    def expert_action(self) -> Callable[..., Any]:
        """What gives the expert's next chunk, or its next ``k`` chunks as a list; there where the environment has it.

        Chunks follow one another whole. Where fewer actions are executed than a chunk has, the second of them is what
        the expert would do after all of the first.
        """
        asked = self.env.get_wrapper_attr("expert_action")

        def chunks(k: int = 1) -> Any:
            found = np.asarray(asked(k * self.length), self.action_space.dtype).reshape(k, *self._shape)
            return list(found) if k > 1 else found[0]

        return chunks
