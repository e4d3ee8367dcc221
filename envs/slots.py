"""Environments as a rollout sees them: N slots that are reset, sent actions and answer when they are ready.

``vector_slots.py`` has the same over a batched ``VectorEnv``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from copy import deepcopy
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


@dataclass(frozen=True, slots=True)
class Lost:
    """Stands for the expert's action of a slot whose expert raised; :meth:`Slots.ready` brings the crash."""

    crash: str
    """The error."""


class SlotsLike(Protocol):
    """What a rollout needs of its environments; see :class:`Slots`."""

    observation_space: gym.Space[Any]
    action_space: gym.Space[Any]
    lockstep: bool
    """Whether a slot's restart may wait for the next actions of all others."""
    seeded: bool
    """Whether a slot can start from a seed of its own."""

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
    seeded = True

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
        self._pending: set[int] = set()  # was given work, and its answer was not taken yet
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

        Raises:
            RuntimeError: A slot's last answer was not taken yet.
            ValueError: A slot is named twice or is not there.
        """
        ids = self._free(ids)
        seeds = [None] * len(ids) if seeds is None else [None if seed is None else int(seed) for seed in seeds]
        options = [None] * len(ids) if options is None else options
        for i, seed, option in list(zip(ids, seeds, options, strict=True)):
            self._submit(i, partial(self._reset, i, seed, option))

    def send(self, ids: Sequence[int], actions: Sequence[Any]) -> None:
        """Step each of ``ids`` with its action; :meth:`ready` brings the results.

        Raises:
            gymnasium.error.ResetNeeded: A slot has no episode, or its last answer was not taken yet.
            ValueError: A slot is named twice or is not there.
        """
        ids = check_ids(ids, len(self))
        if idle := [i for i in ids if not self._live[i]]:
            raise gym.error.ResetNeeded(
                f"slots {idle} have no episode that waits for an action; reset them and take ready()'s answers"
            )
        for i, action in list(zip(ids, actions, strict=True)):
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
            self._pending.discard(answer.id)
            self._live[answer.id] = not (answer.crash or answer.terminated or answer.truncated)
        return answers

    def drop(self, ids: Sequence[int]) -> None:
        """Give up the episode of each of ``ids``, which its environment has not ended."""
        for i in ids:
            self._live[i] = False

    def expert(self, ids: Sequence[int], k: int = 1) -> list[Any]:
        """Return the expert's next action (or next ``k``) for each of ``ids``; nothing changes by asking.

        Where an expert raises, its slot has crashed: :class:`Lost` stands in the place of its action.
        """
        experts = [self._envs[i].get_wrapper_attr("expert_action") for i in ids]  # that there is none is no crash
        given: list[Any] = []
        for i, expert in zip(ids, experts, strict=True):
            try:
                given.append(expert(k))
            except Exception as error:  # foreign code, too: it costs its own episode only
                answer = self._replaced(i, error)
                self._live[i] = False
                self._pending.add(i)
                self._done.append(answer)
                given.append(Lost(str(answer.crash)))
        return given

    def get_state(self, ids: Sequence[int]) -> list[Any]:
        """Return the exact state of each of ``ids``, randomness included."""
        return [self._envs[i].get_wrapper_attr("get_state")() for i in ids]

    def set_state(self, ids: Sequence[int], states: Sequence[Any]) -> None:
        """Restore states; :meth:`ready` brings the observations that belong to them.

        Raises:
            RuntimeError: A slot's last answer was not taken yet.
            ValueError: A slot is named twice or is not there.
        """
        for i, state in list(zip(self._free(ids), states, strict=True)):
            self._submit(i, partial(self._restore, i, state))

    def close(self) -> None:
        """Close all environments."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        for env in self._envs:
            env.close()

    def _free(self, ids: Sequence[int]) -> list[int]:
        ids = check_ids(ids, len(self))
        if busy := [i for i in ids if i in self._pending]:
            # A second start would run beside the first in one environment, and one answer would be the other's.
            raise RuntimeError(f"slots {busy} have an answer under way; take it with ready() before they start anew")
        return ids

    def _submit(self, i: int, work: Callable[[], Ready]) -> None:
        self._live[i] = False
        self._pending.add(i)
        if self._pool is None:
            self._done.append(self._guarded(i, work))
        else:
            self._running.add(self._pool.submit(self._guarded, i, work))

    def _guarded(self, i: int, work: Callable[[], Ready]) -> Ready:
        try:
            return work()
        except Exception as error:  # an environment is foreign code: whatever it raises costs its own episode only
            return self._replaced(i, error)

    def _replaced(self, i: int, error: Exception) -> Ready:
        """Give slot ``i`` a new environment and return the answer that says so."""
        with suppress(Exception):  # what crashed may well fail to close, too
            self._envs[i].close()
        self._envs[i] = self._make()
        return Ready(i, crash=f"{type(error).__name__}: {error}")

    def _reset(self, i: int, seed: int | None, options: dict[str, Any] | None) -> Ready:
        # Copies, here and below: what an environment goes on writing into is not what was seen.
        observation, info = deepcopy(self._envs[i].reset(seed=seed, options=options))
        return Ready(i, observation, info=info, started=True)

    def _step(self, i: int, action: Any) -> Ready:
        observation, reward, terminated, truncated, info = self._envs[i].step(action)
        observation, info = deepcopy((observation, info))
        return Ready(i, observation, float(reward), bool(terminated), bool(truncated), info)

    def _restore(self, i: int, state: Any) -> Ready:
        env = self._envs[i]
        env.reset()  # for the wrappers, which know nothing of states: OrderEnforcing, and TimeLimit's count
        observation, info = deepcopy(env.get_wrapper_attr("set_state")(state))
        return Ready(i, observation, info=info, started=True)


def check_ids(ids: Sequence[int], n: int) -> list[int]:
    """Return ``ids`` as a list.

    Raises:
        ValueError: One of them is no slot of ``n``, or comes twice.
    """
    ids = [int(i) for i in ids]
    if strange := [i for i in ids if not 0 <= i < n]:
        raise ValueError(f"there are no slots {strange}; there are slots 0 to {n - 1}")
    if len(set(ids)) < len(ids):
        raise ValueError(f"slots {sorted({i for i in ids if ids.count(i) > 1})} are named twice in {ids}")
    return ids
