"""The slots of a batched ``VectorEnv``, which steps all of its environments at once."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from tetrathlon.envs.slots import Ready, check_ids
from tetrathlon.envs.spaces import null_sample, read_action, stack, unbatch_info, unstack


class VectorSlots:
    """The slots of a batched ``VectorEnv``, in any of Gymnasium's three autoreset modes.

    It does what :class:`~tetrathlon.envs.slots.Slots` does, in lock-step: it takes actions for all live slots at
    once. An idle slot rests, where the environment has ``rest(ids)``, as a ``MujocoVectorEnv`` has; else it is reset
    where it must be and fed a null action that nobody records. Where the environment has a masked reset
    (``SyncVectorEnv``, ``AsyncVectorEnv``, or ``metadata["masked_reset"]``) seeds and options are honoured by slot;
    elsewhere they are refused, and a slot restarts by the environment's own autoreset. Where it has
    ``get_states(ids)`` and ``set_states(ids, states)``, or is a ``SyncVectorEnv`` of environments with states, slots
    have states too. With ``metadata["ignores_nan"]`` an action that is none of a ``Box`` becomes NaN.

    An environment that raises takes the whole vector down; but where copies can rest, a reset that raises costs only
    the episode of its slot.

    Args:
        venv: The vector environment.
        seed: Seed of the first reset where there is no masked reset.

    Raises:
        ValueError: The environment does not say its autoreset mode, or its slots could not restart rightly.
    """

    lockstep = True

    def __init__(self, venv: VectorEnv[Any, Any, Any], *, seed: int | None = None) -> None:
        mode = venv.metadata.get("autoreset_mode")
        if mode is None:
            raise ValueError(
                f"{venv} does not say its autoreset mode: set metadata['autoreset_mode'] to one of "
                f"{[m.name for m in AutoresetMode]}"
            )
        self._venv = venv
        self._mode = AutoresetMode(mode)
        self.seeded = isinstance(venv.unwrapped, SyncVectorEnv | AsyncVectorEnv) or bool(
            venv.metadata.get("masked_reset")
        )
        if self._mode is AutoresetMode.DISABLED and not self.seeded:
            raise ValueError(f"{venv} neither resets by itself nor by mask: a slot could never restart")
        inner = venv.unwrapped
        if self._mode is AutoresetMode.NEXT_STEP and isinstance(inner, AsyncVectorEnv) and not inner.shared_memory:
            # Gymnasium's worker forgets there to take back its own autoreset after a masked reset: it would swallow
            # the next action, and begin another episode than the one that was seeded.
            raise ValueError(
                "AsyncVectorEnv(shared_memory=False) in the mode NEXT_STEP mixes episodes up: make it with "
                "shared_memory=True, or with autoreset_mode=AutoresetMode.DISABLED or SAME_STEP"
            )
        self._seed = seed
        self._rest = getattr(inner, "rest", None)
        self.observation_space = venv.single_observation_space
        self.action_space = venv.single_action_space
        self._null = null_sample(venv.single_action_space)
        n = venv.num_envs
        self._begun = False
        self._live = np.zeros(n, dtype=bool)
        self._starting = np.zeros(n, dtype=bool)  # waits for the environment's own autoreset
        self._over = np.zeros(n, dtype=bool)  # ended at the last step
        self._actions: dict[int, Any] = {}
        self._done: list[Ready] = []
        # Without masked reset: the next episode's first observation, where it is known already.
        self._fresh: dict[int, tuple[Any, dict[str, Any]]] = {}

    def __len__(self) -> int:
        return self._venv.num_envs

    def reset(
        self,
        ids: Sequence[int],
        seeds: Sequence[int | None] | None = None,
        options: Sequence[dict[str, Any] | None] | None = None,
    ) -> None:
        """Start an episode in each of ``ids``.

        Raises:
            ValueError: Seeds or options were given and the environment cannot honour them by slot, or a slot is
                named twice or is not there.
        """
        ids = check_ids(ids, len(self))
        seeds = [None] * len(ids) if seeds is None else [None if seed is None else int(seed) for seed in seeds]
        options = [None] * len(ids) if options is None else list(options)
        if self.seeded:
            self._reset_masked(ids, seeds, options)
        elif any(seed is not None for seed in seeds) or any(option for option in options):
            raise ValueError(
                f"{self._venv} has no masked reset: it cannot honour seeds {seeds} and options {options} by slot. "
                "Use gym.make_vec(..., vectorization_mode='sync'), or give one seed to VectorSlots(venv, seed=...)"
            )
        else:
            self._reset_by_itself(ids)

    def send(self, ids: Sequence[int], actions: Sequence[Any]) -> None:
        """Keep an action for each of ``ids``; the vector steps at :meth:`ready`, once every live slot has one.

        Raises:
            gymnasium.error.ResetNeeded: A slot has no episode.
            ValueError: A slot is named twice or is not there.
        """
        ids = check_ids(ids, len(self))
        for i, action in zip(ids, actions, strict=True):
            if not self._live[i]:
                raise gym.error.ResetNeeded(f"slot {i} has no episode under way; reset it before sending actions")
            self._actions[i] = action

    def ready(self, block: bool = True) -> list[Ready]:
        """Return the answers that are there, stepping the vector where there is none and ``block`` is true.

        Raises:
            RuntimeError: A live slot has no action: the vector moves in lock-step.
        """
        while block and not self._done and (self._live.any() or self._starting.any()):
            missing = [i for i in np.flatnonzero(self._live).tolist() if i not in self._actions]
            if missing:
                raise RuntimeError(f"a vector environment steps in lock-step: slots {missing} have no action")
            self._step()
        answers, self._done = sorted(self._done, key=lambda ready: ready.id), []
        return answers

    def drop(self, ids: Sequence[int]) -> None:
        """Give up the episode of each of ``ids``, which its environment has not ended."""
        for i in ids:
            self._live[i] = False
            self._actions.pop(i, None)

    def expert(self, ids: Sequence[int], k: int = 1) -> list[Any]:
        """Return the expert's next action (or next ``k``) for each of ``ids``; nothing changes by asking."""
        every = self._venv.call("expert_action", k)  # type: ignore[attr-defined]
        return [every[i] for i in ids]

    def get_state(self, ids: Sequence[int]) -> list[Any]:
        """Return the exact state of each of ``ids``.

        Raises:
            TypeError: The environment keeps its states to itself, as one in other processes does.
        """
        ids = check_ids(ids, len(self))
        if (batched := getattr(self._venv.unwrapped, "get_states", None)) is not None:
            return list(batched(ids))
        return [self._env(i, "get_state").get_wrapper_attr("get_state")() for i in ids]

    def set_state(self, ids: Sequence[int], states: Sequence[Any]) -> None:
        """Restore states of slots; :meth:`ready` brings the observations that belong to them.

        Raises:
            TypeError: The environment keeps its states to itself, as one in other processes does.
            ValueError: A slot is named twice or is not there.
        """
        ids = check_ids(ids, len(self))
        if (batched := getattr(self._venv.unwrapped, "set_states", None)) is not None:
            if not self._begun:
                self._begin()
            observations, infos = batched(ids, states)
            items = unstack(self.observation_space, observations, len(self))
            restored = [(items[i], unbatch_info(infos, i)) for i in ids]
        else:
            envs = [self._env(i, "set_state") for i in ids]
            # Of a single environment its wrappers, and the vector's own autoreset, know nothing of states.
            self._reset_masked(ids, [None] * len(ids), [None] * len(ids), announce=False)
            restored = [env.get_wrapper_attr("set_state")(state) for env, state in zip(envs, states, strict=True)]
        for i, (observation, info) in zip(ids, restored, strict=True):
            self._enter(i)
            self._done.append(Ready(i, observation, info=info, started=True))

    def close(self) -> None:
        """Close the vector environment."""
        self._venv.close()

    def _env(self, i: int, what: str) -> gym.Env[Any, Any]:
        vector = self._venv.unwrapped
        if not isinstance(vector, SyncVectorEnv):
            raise TypeError(
                f"{self._venv} has no {what} by slot; Slots, a SyncVectorEnv, or a vector environment with "
                "get_states(ids) and set_states(ids, states) has"
            )
        return vector.envs[i]

    def _reset_masked(self, ids: list[int], seeds: list[Any], options: list[Any], announce: bool = True) -> None:
        if not self._begun:
            self._begin()
        # One call a distinct option dict: a vector environment takes one for all.
        waiting = list(zip(ids, seeds, options, strict=True))
        while waiting:
            shared = waiting[0][2]
            now = [entry for entry in waiting if _same(entry[2], shared)]
            waiting = [entry for entry in waiting if not _same(entry[2], shared)]
            mask = np.zeros(len(self), dtype=bool)
            by_slot: list[int | None] = [None] * len(self)
            for i, seed, _ in now:
                mask[i] = True
                by_slot[i] = seed
            try:
                observations, infos = self._venv.reset(
                    seed=by_slot,  # type: ignore[arg-type]
                    options={**(shared or {}), "reset_mask": mask.copy()},
                )
            except Exception as error:  # an environment may raise anything
                if self._rest is None:
                    raise
                self._reset_apart(now, announce, error)
                continue
            items = unstack(self.observation_space, observations, len(self))
            for i, _, _ in now:
                self._enter(i)
                if announce:
                    self._done.append(Ready(i, items[i], info=unbatch_info(infos, i), started=True))

    def _reset_apart(self, entries: Sequence[tuple[int, Any, Any]], announce: bool, error: Exception) -> None:
        """Reset slots one by one, after they could not be reset together: which of them was it?"""
        if len(entries) > 1:
            for i, seed, options in entries:
                self._reset_masked([i], [seed], [options], announce)
            return
        i = entries[0][0]
        self.drop([i])
        self._done.append(Ready(i, crash=f"{type(error).__name__}: {error}"))

    def _enter(self, i: int) -> None:
        """Note that an episode is under way in slot ``i``, whatever was there before."""
        self._live[i], self._starting[i], self._over[i] = True, False, False
        self._actions.pop(i, None)
        self._fresh.pop(i, None)

    def _begin(self) -> None:
        """Reset the vector as a whole, which it needs once."""
        self._begun = True
        observations, infos = self._venv.reset(seed=None if self.seeded else self._seed)
        if not self.seeded:
            items = unstack(self.observation_space, observations, len(self))
            self._fresh = {i: (items[i], unbatch_info(infos, i)) for i in range(len(self))}

    def _reset_by_itself(self, ids: list[int]) -> None:
        if not self._begun:
            self._begin()
        for i in ids:
            self._live[i] = False
            if i in self._fresh:
                observation, info = self._fresh.pop(i)
                self._announce(i, observation, info)
            else:
                self._starting[i] = True

    def _announce(self, i: int, observation: Any, info: dict[str, Any]) -> None:
        self._live[i], self._starting[i] = True, False
        self._done.append(Ready(i, observation, info=info, started=True))

    def _step(self) -> None:
        idle = ~(self._live | self._starting)
        if self._rest is not None:
            self._rest(np.flatnonzero(idle))
        elif self._mode is AutoresetMode.DISABLED and (stale := self._over & idle).any():
            self._venv.reset(options={"reset_mask": stale.copy()})
            self._over &= ~stale
        actions = [self._actions.pop(i, self._null) for i in range(len(self))]
        if self._venv.metadata.get("ignores_nan") and isinstance(self.action_space, spaces.Box):
            batch = np.stack([read_action(self.action_space, action) for action in actions])
        else:
            batch = stack(self.action_space, actions)
        observations, rewards, terminations, truncations, infos = self._venv.step(batch)
        items = unstack(self.observation_space, observations, len(self))
        restarted = self._over if self._mode is AutoresetMode.NEXT_STEP else np.zeros(len(self), dtype=bool)
        over = np.asarray(terminations) | np.asarray(truncations)
        self._fresh.clear()
        for i in range(len(self)):
            info = unbatch_info(infos, i)
            if self._live[i]:
                last, last_info = items[i], info
                if over[i] and self._mode is AutoresetMode.SAME_STEP:
                    last_info = info.pop("final_info")
                    last = deepcopy(infos["final_obs"][i])  # as it was: an info's scalars become Python's
                    del info["final_obs"]
                    self._fresh[i] = (items[i], info)
                self._live[i] = not over[i]
                reward, terminated, truncated = float(rewards[i]), bool(terminations[i]), bool(truncations[i])
                self._done.append(Ready(i, last, reward, terminated, truncated, last_info))
            elif self._starting[i] and (restarted[i] or (over[i] and self._mode is AutoresetMode.SAME_STEP)):
                info.pop("final_info", None)
                info.pop("final_obs", None)
                self._announce(i, items[i], info)
        self._over = over


def _same(one: Any, other: Any) -> bool:
    """Tell whether two option dicts may go in one call; where they cannot be compared, they go in two."""
    try:
        return one is other or bool(one == other)
    except ValueError:  # arrays in it have no one truth
        return False
