"""A robot task as a Gymnasium environment: the vector environment with one copy."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from tetrathlon.envs.arguments import check_names
from tetrathlon.envs.robots.task import Task
from tetrathlon.envs.robots.vector import MujocoVectorEnv
from tetrathlon.envs.spaces import read_action, unbatch_info, unstack


class RobotEnv(gym.Env[Any, np.ndarray]):
    """A robot task; subclasses name it, and their docstrings are its manual.

    Args:
        **kwargs: See :class:`~tetrathlon.envs.robots.vector.MujocoVectorEnv`.

    Raises:
        TypeError: There is no such argument.
        ValueError: An argument has no such value.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": MujocoVectorEnv.metadata["render_modes"],
        "render_fps": MujocoVectorEnv.metadata["render_fps"],
    }
    task: ClassVar[type[Task]]

    def __init__(self, **kwargs: Any) -> None:
        check_names(type(self), kwargs, _names())
        self.batch = MujocoVectorEnv(1, task=self.task, autoreset_mode=AutoresetMode.DISABLED, **kwargs)
        self.render_mode = self.batch.render_mode
        self.observation_space = self.batch.single_observation_space
        self.action_space = self.batch.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; see :meth:`~tetrathlon.envs.robots.vector.MujocoVectorEnv.reset`."""
        self.batch.refuse_closed()
        if options and "reset_mask" in options:
            raise ValueError("options['reset_mask'] is of a vector environment")
        super().reset(seed=seed)
        self.batch.set_generator(0, self.np_random)
        observations, infos = self.batch.reset(options=options)
        return self._only(observations), unbatch_info(infos, 0)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Do one action; what is none in the space is ignored, with zero reward.

        Raises:
            gymnasium.error.ResetNeeded: There is no episode under way.
            gymnasium.error.ClosedEnvironmentError: It was closed.
        """
        assert isinstance(self.action_space, spaces.Box)
        given = read_action(self.action_space, action)
        observations, rewards, terminated, truncated, infos = self.batch.step(given[None])
        return (
            self._only(observations),
            float(rewards[0]),
            bool(terminated[0]),
            bool(truncated[0]),
            unbatch_info(infos, 0),
        )

    def render(self) -> np.ndarray | None:
        """Return a picture, uint8 [S, S, 3], or None without a render mode."""
        pictures = self.batch.render()
        return None if pictures is None else pictures[0]

    def expert_action(self, k: int = 1) -> Any:
        """Return the scripted controller's next action, or its next ``k``; nothing changes by asking."""
        return self.batch.expert_action(k)[0]

    def get_state(self) -> dict[str, Any]:
        """Return the exact state, randomness included."""
        return self.batch.get_states([0])[0]

    def set_state(self, state: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Restore what :meth:`get_state` returned.

        Returns:
            The observation and the info that belong to the state.

        Raises:
            ValueError: It is no state, or is one of another task or robot, or of one with randomisation where here is
                none, or the other way round. Nothing has changed then.
        """
        observations, infos = self.batch.set_states([0], [state])
        self._np_random = self.batch.generator(0)
        return self._only(observations), unbatch_info(infos, 0)

    def close(self) -> None:
        """Let nobody play it any more."""
        self.batch.close()

    def _only(self, observations: Any) -> Any:
        return unstack(self.observation_space, observations, 1)[0]


class RobotVectorEnv(MujocoVectorEnv):
    """N copies of a robot task that step as one; subclasses name the environment of one copy.

    Args:
        num_envs: N.
        **kwargs: See :class:`~tetrathlon.envs.robots.vector.MujocoVectorEnv`; of those all but ``task``.

    Raises:
        TypeError: There is no such argument.
        ValueError: An argument has no such value.
    """

    single: ClassVar[type[RobotEnv]]

    def __init__(self, num_envs: int = 1, **kwargs: Any) -> None:
        check_names(self.single, kwargs, [*_names(), "num_envs", "autoreset_mode"])
        super().__init__(num_envs, task=self.single.task, **kwargs)


def _names() -> list[str]:
    """Return the names of what one copy can be made with."""
    return list(_signature().parameters)[1:]  # without self


def _signature() -> inspect.Signature:
    """Return what the constructor takes: what the batch takes, but for what one copy has no use for."""
    given = inspect.signature(MujocoVectorEnv.__init__).parameters.values()
    return inspect.Signature([p for p in given if p.name not in ("num_envs", "task", "autoreset_mode")])


RobotEnv.__init__.__signature__ = _signature()  # type: ignore[attr-defined]
