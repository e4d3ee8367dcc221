"""A model of Stable-Baselines3 as a policy."""

from __future__ import annotations

import copy
import json
import os
import pickle
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from tetrathlon.agents.policy import Acted

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.vec_env import VecNormalize

_MARKS: dict[str, str | None] = {
    "cg_max_steps": None,  # TRPO of sb3-contrib, whose file holds all that A2C's does
    "clip_range": "PPO",
    "target_entropy": "SAC",
    "policy_delay": "TD3",
    "exploration_fraction": "DQN",
    "normalize_advantage": "A2C",
}
"""What a file holds -> the algorithm that keeps it, for SB3 writes no name; the first that is there decides."""
_DDPG = {"policy_delay": 1, "target_noise_clip": 0.0, "target_policy_noise": 0.1}
"""With these settings TD3 is DDPG, in SB3 too."""
_ONLY_FOR_TRAINING: dict[str, Any] = {
    "learning_rate": 0.0,
    "clip_range": 0.2,
    "replay_buffer_kwargs": {},
    "rollout_buffer_kwargs": {},
    **dict.fromkeys(("replay_buffer_class", "rollout_buffer_class", "lr_schedule", "exploration_schedule")),
    **dict.fromkeys(("action_noise", "clip_range_vf", "ep_info_buffer", "ep_success_buffer")),
    **dict.fromkeys(("_last_obs", "_last_original_obs", "_last_episode_starts")),
}
"""What acting needs nothing of. Much of it is pickled code, which another version of Python cannot read."""


class SB3Policy:
    """A model of Stable-Baselines3: PPO, A2C, DQN, SAC, TD3 or DDPG.

    It acts as ``model.predict`` does: actions of a ``Box`` are scaled or clipped into the space, DQN explores when it
    is not greedy, pictures have their channels first or last. Its draws come from a stream of its own (of a model on
    the CPU) and leave the global generators as they were. It keeps no records: nothing here trains it.

    Args:
        model: The model.
        statistics: The ``VecNormalize`` behind which it was trained: observations are normalised by it, and the
            statistics stay as they are.
        seed: Seed of the draws.
    """

    def __init__(self, model: BaseAlgorithm, statistics: VecNormalize | None = None, *, seed: int = 0) -> None:
        import torch

        self.model = model
        self.statistics = statistics
        self._torch_state = torch.Generator().manual_seed(seed).get_state()
        self._numpy_state = np.random.RandomState(seed).get_state()
        self._exploration = copy.deepcopy(model.action_space)
        self._exploration.seed(seed)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        statistics: str | os.PathLike[str] | None = None,
        *,
        device: str = "cpu",
        seed: int = 0,
    ) -> SB3Policy:
        """Load a model that SB3 saved, to act.

        **Loading runs code out of the files**, for both hold pickles: load only what you trust.

        Args:
            path: What ``model.save`` wrote; ``.zip`` may be left out.
            statistics: What ``VecNormalize.save`` wrote.
            device: Where the model is.
            seed: Seed of the draws.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: A file holds something else, or was saved by another algorithm than those of SB3.
        """
        import stable_baselines3

        path = Path(path).expanduser()
        if not path.is_file() and path.with_name(f"{path.name}.zip").is_file():
            path = path.with_name(f"{path.name}.zip")
        name, kept = _algorithm_of(path)
        options: dict[str, Any] = {"buffer_size": 1} if "buffer_size" in kept else {}
        try:
            model = getattr(stable_baselines3, name).load(
                path, device=device, custom_objects=copy.deepcopy(_ONLY_FOR_TRAINING), **options
            )
        except ModuleNotFoundError as error:
            raise ValueError(f"{path} needs the module {error.name!r}, which is not installed") from error
        except (AttributeError, EOFError, KeyError, RuntimeError, TypeError, pickle.UnpicklingError) as error:
            raise ValueError(f"{path} cannot be loaded as {name}: {type(error).__name__}: {error}") from error
        return cls(model, None if statistics is None else _load_statistics(Path(statistics).expanduser()), seed=seed)

    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        """See :meth:`tetrathlon.agents.policy.Policy.act`; greedy is SB3's ``deterministic``.

        Raises:
            TypeError: The model is recurrent.
        """
        if self.statistics is not None:
            observations = self.statistics.normalize_obs(observations)
        with self._own_draws():
            actions, state = self.model.predict(observations, deterministic=greedy)
        if state is not None:
            raise TypeError(f"{type(self.model).__name__} is recurrent; SB3Policy plays models without a memory")
        for i, action in enumerate(forced or ()):
            if action is not None:
                actions[i] = action
        return Acted(actions, [()] * len(actions), [None] * len(actions))

    def check_spaces(self, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]) -> None:
        """Refuse an environment of other spaces than the model's.

        Args:
            observation_space: The space of a single observation.
            action_space: The space of a single action.

        Raises:
            ValueError: A space differs; the message names both.
        """
        if self.statistics is not None:
            _check_statistics(self.statistics, observation_space)
        for ours, theirs, what in (
            (_as_seen(observation_space, self.statistics), self.model.observation_space, "observations"),
            (action_space, self.model.action_space, "actions"),
        ):
            if ours != theirs:
                raise ValueError(f"the model was trained on {what} {theirs}, this environment has {ours}")

    @contextmanager
    def _own_draws(self) -> Iterator[None]:
        """Let the model draw from this policy's stream, where SB3 draws from the global ones."""
        import torch

        theirs = torch.get_rng_state(), np.random.get_state(), self.model.action_space
        torch.set_rng_state(self._torch_state)
        np.random.set_state(self._numpy_state)
        self.model.action_space = self._exploration
        try:
            yield
        finally:
            self._torch_state, self._numpy_state = torch.get_rng_state(), np.random.get_state()
            torch.set_rng_state(theirs[0])
            np.random.set_state(theirs[1])
            self.model.action_space = theirs[2]


def _algorithm_of(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the name of the algorithm that saved a file, and what it kept; nothing is unpickled."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    try:
        with zipfile.ZipFile(path) as archive:
            kept = json.loads(archive.read("data"))
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ValueError(f"{str(path)!r} is no model that Stable-Baselines3 saved: {error}") from error
    name = next((name for mark, name in _MARKS.items() if mark in kept), None)
    policy = kept.get("policy_class")
    home = policy.get("__module__", "") if isinstance(policy, dict) else ""
    if name is None or home.startswith("sb3_contrib"):
        raise ValueError(
            f"{str(path)!r} was saved by no algorithm of Stable-Baselines3 itself (PPO, A2C, DQN, SAC, TD3, DDPG); "
            "load it with its own class and make SB3Policy(model)"
        )
    if name == "TD3" and all(kept.get(key) == value for key, value in _DDPG.items()):
        name = "DDPG"
    return name, kept


def _load_statistics(path: Path) -> VecNormalize:
    from stable_baselines3.common.vec_env import VecNormalize

    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    try:
        statistics = pickle.loads(path.read_bytes())
    except (AttributeError, EOFError, ImportError, IndexError, KeyError, ValueError, pickle.UnpicklingError) as error:
        raise ValueError(f"{str(path)!r} is no statistics of VecNormalize: {type(error).__name__}: {error}") from error
    if not isinstance(statistics, VecNormalize):
        raise ValueError(f"{str(path)!r} holds a {type(statistics).__name__}, no VecNormalize")
    return statistics


def _check_statistics(statistics: VecNormalize, space: spaces.Space[Any]) -> None:
    """Refuse statistics of other observations."""
    if not statistics.norm_obs:
        return
    moments = statistics.obs_rms
    shapes = {k: m.mean.shape for k, m in moments.items()} if isinstance(moments, dict) else moments.mean.shape
    if isinstance(space, spaces.Dict) and isinstance(shapes, dict):
        ours: Any = {key: space[key].shape if key in space.spaces else None for key in shapes}
    else:
        ours = space.shape
    if ours != shapes:
        raise ValueError(f"the statistics are of observations of shape {shapes}, this environment's have {ours}")


def _as_seen(space: spaces.Space[Any], statistics: VecNormalize | None) -> spaces.Space[Any]:
    """Return the space that a model sees of an environment's: SB3 normalises pictures or moves their channels."""
    from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first
    from stable_baselines3.common.vec_env import VecTransposeImage

    def part(space: spaces.Space[Any], normalised: bool) -> spaces.Space[Any]:
        if not (isinstance(space, spaces.Box) and is_image_space(space)):
            return space
        if statistics is not None and normalised:
            return spaces.Box(-statistics.clip_obs, statistics.clip_obs, space.shape, np.float32)
        return space if is_image_space_channels_first(space) else VecTransposeImage.transpose_space(space)

    does = statistics is not None and statistics.norm_obs
    if isinstance(space, spaces.Dict):
        keys = (statistics.norm_obs_keys or ()) if statistics is not None and does else ()
        return spaces.Dict({key: part(sub, key in keys) for key, sub in space.spaces.items()})
    return part(space, does)
