"""Environments as a rollout sees them: N slots that are reset, sent actions and answer when they are ready."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from tetrathlon.envs.spaces import null_sample, stack, unbatch_info, unstack


@dataclass(slots=True)
class Ready:
    """What one slot answered to a reset, a restored state or an action."""

    id: int
    """Which slot."""
    observation: Any = None
    """The true last observation where the episode ended here."""
    reward: float = 0.0
    """0 after a reset."""
    terminated: bool = False
    """As in ``gymnasium.Env.step``."""
    truncated: bool = False
    """As in ``gymnasium.Env.step``."""
    info: dict[str, Any] = field(default_factory=dict)
    """As the environment gave it."""
    started: bool = False
    """Whether this answers a reset or a restored state."""
    crash: str | None = None
    """The error that the environment raised: the episode is lost, the slot has a new environment."""


class SlotsLike(Protocol):
    """What a rollout needs of its environments; see :class:`Slots`."""

    observation_space: gym.Space[Any]
    action_space: gym.Space[Any]
    lockstep: bool
    """Whether a slot's restart may wait for the next actions of all others."""

    def __len__(self) -> int: ...
    def reset(
        self,
        ids: Sequence[int],
        seeds: Sequence[int | None] | None = None,
        options: Sequence[dict[str, Any] | None] | None = None,
    ) -> None:
        """See :meth:`Slots.reset`."""

    def send(self, ids: Sequence[int], actions: Sequence[Any]) -> None:
        """See :meth:`Slots.send`."""

    def ready(self, block: bool = True) -> list[Ready]:
        """See :meth:`Slots.ready`."""

    def drop(self, ids: Sequence[int]) -> None:
        """See :meth:`Slots.drop`."""

    def expert(self, ids: Sequence[int], k: int = 1) -> list[Any]:
        """See :meth:`Slots.expert`."""

    def get_state(self, ids: Sequence[int]) -> list[Any]:
        """See :meth:`Slots.get_state`."""

    def set_state(self, ids: Sequence[int], states: Sequence[Any]) -> None:
        """See :meth:`Slots.set_state`."""

    def close(self) -> None:
        """See :meth:`Slots.close`."""


class Slots:
    """N environments without lock-step, inline or on worker threads.

    A slot never restarts by itself: whoever rolls out holds the queue of starts, so a slot that waits for a tool
    holds nobody up. An environment that raises loses its episode: the slot answers with ``crash`` and is given a
    new environment.

    Args:
        make: Makes one environment; called N times, and again for a slot that crashed.
        n: N.
        threads: Worker threads; 0 runs everything inline.

    Raises:
        ValueError: ``n`` is below 1 or ``threads`` below 0.
    """

    lockstep = False

    def __init__(self, make: Callable[[], gym.Env[Any, Any]], n: int, *, threads: int = 0) -> None:
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}")
        if threads < 0:
            raise ValueError(f"threads must be at least 0, got {threads}")
        self._make = make
        self._envs = [make() for _ in range(n)]
        self.observation_space = self._envs[0].observation_space
        self.action_space = self._envs[0].action_space
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="slot") if threads else None
        self._live = [False] * n  # has an episode that waits for an action
        self._done: list[Ready] = []
        self._running: set[Future[Ready]] = set()

    def __len__(self) -> int:
        return len(self._envs)

    def reset(
        self,
        ids: Sequence[int],
        seeds: Sequence[int | None] | None = None,
        options: Sequence[dict[str, Any] | None] | None = None,
    ) -> None:
        """Start an episode in each of ``ids``; :meth:`ready` brings the first observations.

        Args:
            ids: Slots.
            seeds: One seed a slot, None for the environment's own next draw.
            options: One option dict a slot.
        """
        for i, seed, option in zip(ids, seeds or [None] * len(ids), options or [None] * len(ids), strict=True):
            self._submit(i, partial(self._reset, i, seed, option))

    def send(self, ids: Sequence[int], actions: Sequence[Any]) -> None:
        """Step each of ``ids`` with its action; :meth:`ready` brings the results.

        Raises:
            gymnasium.error.ResetNeeded: A slot has no episode, or its last answer was not taken yet.
        """
        if idle := [i for i in ids if not self._live[i]]:
            raise gym.error.ResetNeeded(
                f"slots {idle} have no episode that waits for an action; reset them and take ready()'s answers"
            )
        for i, action in zip(ids, actions, strict=True):
            self._submit(i, partial(self._step, i, action))

    def ready(self, block: bool = True) -> list[Ready]:
        """Return the answers that are there.

        Args:
            block: Wait for at least one where none is there and some are under way.
        """
        if self._running:
            timeout = None if block and not self._done else 0
            finished, self._running = wait(self._running, timeout, FIRST_COMPLETED)
            self._done += [future.result() for future in finished]
        answers, self._done = sorted(self._done, key=lambda ready: ready.id), []
        for answer in answers:
            self._live[answer.id] = not (answer.crash or answer.terminated or answer.truncated)
        return answers

    def drop(self, ids: Sequence[int]) -> None:
        """Give up the episode of each of ``ids``, which its environment has not ended."""
        for i in ids:
            self._live[i] = False

    def expert(self, ids: Sequence[int], k: int = 1) -> list[Any]:
        """Return the expert's next action (or next ``k``) for each of ``ids``; nothing changes by asking."""
        return [self._envs[i].get_wrapper_attr("expert_action")(k) for i in ids]

    def get_state(self, ids: Sequence[int]) -> list[Any]:
        """Return the exact state of each of ``ids``, randomness included."""
        return [self._envs[i].get_wrapper_attr("get_state")() for i in ids]

    def set_state(self, ids: Sequence[int], states: Sequence[Any]) -> None:
        """Restore states; :meth:`ready` brings the observations that belong to them."""
        for i, state in zip(ids, states, strict=True):
            self._submit(i, partial(self._restore, i, state))

    def close(self) -> None:
        """Close all environments."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        for env in self._envs:
            env.close()

    def _submit(self, i: int, work: Callable[[], Ready]) -> None:
        self._live[i] = False
        if self._pool is None:
            self._done.append(self._guarded(i, work))
        else:
            self._running.add(self._pool.submit(self._guarded, i, work))

    def _guarded(self, i: int, work: Callable[[], Ready]) -> Ready:
        try:
            return work()
        except Exception as error:  # an environment is foreign code: whatever it raises costs its own episode only
            self._envs[i].close()
            self._envs[i] = self._make()
            return Ready(i, crash=f"{type(error).__name__}: {error}")

    def _reset(self, i: int, seed: int | None, options: dict[str, Any] | None) -> Ready:
        observation, info = self._envs[i].reset(seed=seed, options=options)
        return Ready(i, observation, info=info, started=True)

    def _step(self, i: int, action: Any) -> Ready:
        observation, reward, terminated, truncated, info = self._envs[i].step(action)
        return Ready(i, observation, float(reward), bool(terminated), bool(truncated), info)

    def _restore(self, i: int, state: Any) -> Ready:
        observation, info = self._envs[i].get_wrapper_attr("set_state")(state)
        return Ready(i, observation, info=info, started=True)


class VectorSlots:
    """The same over a batched ``VectorEnv``, in any of Gymnasium's three autoreset modes.

    It takes actions for all live slots at once. An idle slot is reset where it must be and fed a null action
    that nobody records. Where the environment has a masked reset (``SyncVectorEnv``, ``AsyncVectorEnv``, or
    ``metadata["masked_reset"]``) seeds and options are honoured by slot; elsewhere they are refused, and a slot
    restarts by the environment's own autoreset. An environment that raises takes the whole vector down.

    Args:
        venv: The vector environment.
        seed: Seed of the first reset where there is no masked reset.
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
        self._masked = isinstance(venv.unwrapped, SyncVectorEnv | AsyncVectorEnv) or bool(
            venv.metadata.get("masked_reset")
        )
        if self._mode is AutoresetMode.DISABLED and not self._masked:
            raise ValueError(f"{venv} neither resets by itself nor by mask: a slot could never restart")
        self._seed = seed
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
        self._fresh: dict[int, tuple[Any, dict[str, Any]]] = {}  # SAME_STEP: the next episode's first observation

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
            ValueError: Seeds or options were given and the environment cannot honour them by slot.
        """
        ids, seeds, options = list(ids), list(seeds or [None] * len(ids)), list(options or [None] * len(ids))
        if self._masked:
            self._reset_masked(ids, seeds, options)
        elif any(seed is not None for seed in seeds) or any(option for option in options):
            raise ValueError(
                f"{self._venv} has no masked reset: it cannot honour seeds {seeds} and options {options} by slot. "
                "Use gym.make_vec(..., vectorization_mode='sync'), or give one seed to VectorSlots(venv, seed=...)"
            )
        else:
            self._reset_by_itself(ids)

    def send(self, ids: Sequence[int], actions: Sequence[Any]) -> None:
        """Keep an action for each of ``ids``; the vector steps at :meth:`ready`, once every live slot has one."""
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
            TypeError: The environment runs in other processes and keeps its states to itself.
        """
        return [self._env(i, "get_state").get_wrapper_attr("get_state")() for i in ids]

    def set_state(self, ids: Sequence[int], states: Sequence[Any]) -> None:
        """Restore states of slots.

        Raises:
            TypeError: The environment runs in other processes and keeps its states to itself.
        """
        envs = [self._env(i, "set_state") for i in ids]
        self._reset_masked(list(ids), [None] * len(ids), [None] * len(ids), announce=False)
        for i, env, state in zip(ids, envs, states, strict=True):
            observation, info = env.get_wrapper_attr("set_state")(state)
            self._done.append(Ready(i, observation, info=info, started=True))

    def close(self) -> None:
        """Close the vector environment."""
        self._venv.close()

    def _env(self, i: int, what: str) -> gym.Env[Any, Any]:
        vector = self._venv.unwrapped
        if not isinstance(vector, SyncVectorEnv):
            raise TypeError(f"{self._venv} has no {what} by slot; a SyncVectorEnv or Slots has")
        return vector.envs[i]

    def _reset_masked(self, ids: list[int], seeds: list[Any], options: list[Any], announce: bool = True) -> None:
        if not self._begun:  # the vector must have been reset as a whole once
            self._begin()
        # One call a distinct option dict: a vector environment takes one for all.
        waiting = list(zip(ids, seeds, options, strict=True))
        while waiting:
            shared = waiting[0][2]
            now = [entry for entry in waiting if entry[2] == shared]
            waiting = [entry for entry in waiting if entry[2] != shared]
            mask = np.zeros(len(self), dtype=bool)
            by_slot: list[int | None] = [None] * len(self)
            for i, seed, _ in now:
                mask[i] = True
                by_slot[i] = seed
            observations, infos = self._venv.reset(
                seed=by_slot,  # type: ignore[arg-type]
                options={**(shared or {}), "reset_mask": mask.copy()},
            )
            items = unstack(self.observation_space, observations, len(self))
            for i, _, _ in now:
                self._live[i], self._over[i] = True, False
                self._actions.pop(i, None)
                if announce:
                    self._done.append(Ready(i, items[i], info=unbatch_info(infos, i), started=True))

    def _begin(self) -> tuple[list[Any], dict[str, Any]]:
        self._begun = True
        observations, infos = self._venv.reset(seed=None if self._masked else self._seed)
        return unstack(self.observation_space, observations, len(self)), infos

    def _reset_by_itself(self, ids: list[int]) -> None:
        if not self._begun:
            items, infos = self._begin()
            self._fresh = {i: (items[i], unbatch_info(infos, i)) for i in range(len(self))}
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
        if self._mode is AutoresetMode.DISABLED and (stale := self._over & ~self._live).any():
            self._venv.reset(options={"reset_mask": stale.copy()})
            self._over &= ~stale
        actions = [self._actions.pop(i, self._null) for i in range(len(self))]
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
