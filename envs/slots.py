"""Environments as a rollout sees them: N slots that are reset, sent actions and answer when they are ready.

``vector_slots.py`` has the same over a batched ``VectorEnv``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import gymnasium as gym


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
