"""Demonstrations: episodes that somebody played, brought to the form in which they are learnt."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.envs.episode import Episode, load_episodes
from tetrathlon.envs.registry import known_id

Demonstrations = Sequence[Episode] | str | os.PathLike[str]
"""Episodes, or a folder of them, as ``tetrathlon record`` writes it."""


def read(given: Demonstrations, policy: TrainablePolicy, env_id: str = "") -> list[Episode]:
    """Return demonstrations as a policy learns them.

    Where it decides chunks, [K, A], and single actions were demonstrated, [A], they become chunks; see :func:`windows`.

    Args:
        given: The demonstrations.
        policy: Who learns them.
        env_id: The environment that they are learnt for; empty: whichever.

    Raises:
        ValueError: There is no step in them, or one is of another environment.
        OSError: They cannot be read.
    """
    episodes = load_episodes(Path(given)) if isinstance(given, str | os.PathLike) else list(given)
    if env_id:
        _check_env(episodes, env_id)
    first = next((step.action for episode in episodes for step in episode.steps), None)
    if first is None:
        raise ValueError(f"there is no step in these demonstrations: {given!r:.200}")
    shape: tuple[int, ...] = getattr(getattr(policy, "action_space", None), "shape", None) or ()
    if len(shape) > 1 and np.shape(first) == shape[1:]:
        return [windows(episode, shape[0]) for episode in episodes]
    return episodes


def _check_env(episodes: Sequence[Episode], env_id: str) -> None:
    """Refuse episodes that say that they are of another environment."""
    wanted = _name(known_id(env_id))
    known = {wanted, wanted.rpartition("/")[2]}
    known |= {name.rpartition("-v")[0] for name in known}
    for number, episode in enumerate(episodes):
        if episode.env and _name(episode.env) not in known:
            raise ValueError(
                f"demonstrations must be of {wanted}, and episode {number} is of {episode.env}; an episode whose env "
                "is empty is taken for whatever is learnt"
            )


def _name(env_id: str) -> str:
    return env_id.rpartition(":")[2]  # module:id is what that module registers as id


def windows(episode: Episode, length: int) -> Episode:
    """Return an episode in which the action of each step is that step's and those of the next: chunks of ``length``.

    So each step is learnt from, and not one in ``length``. Past the end the last action is repeated (as in ACT: Zhao et
    al., 2023, Learning fine-grained bimanual manipulation with low-cost hardware, where such ends are masked).
    """
    if not episode.steps:
        return episode
    actions = np.stack([np.asarray(step.action) for step in episode.steps])
    actions = np.concatenate([actions, np.repeat(actions[-1:], length - 1, axis=0)])
    steps = [replace(step, action=actions[t : t + length], record=None) for t, step in enumerate(episode.steps)]
    return replace(episode, steps=steps)


def labelled(episode: Episode) -> Episode:
    """Return an episode in which what was done is what the expert says should be done."""
    return replace(episode, steps=[replace(step, label=step.action, record=None) for step in episode.steps])
