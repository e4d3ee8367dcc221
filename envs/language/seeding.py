"""The generator of a seed: gymnasium's, made in less time where seeds come one after the other.

Seeding takes longer than a short episode: nearly all of it goes into NumPy's ``SeedSequence``, whose sums are the same
for every seed. So they are done for a run of seeds at once.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence

_RUN = 256
_POOL = 4
_MOST = 2**32 - _RUN  # larger ones are of more than one word


def _constants(value: int, step: int, count: int) -> list[int]:
    found = [value]
    while len(found) < count:
        found.append(found[-1] * step & 0xFFFFFFFF)
    return found


_HASHES = _constants(0x43B0D7E5, 0x931E8875, _POOL * _POOL + 1)
_ENDS = _constants(0x8B51F9DD, 0x58F38DED, 2 * _POOL + 1)
_LEFT, _RIGHT = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)


def generator(seed: int) -> tuple[np.random.Generator, int]:
    """Return what ``gymnasium.utils.seeding.np_random(seed)`` does: the same numbers, and the same seed sequence."""
    if type(seed) is not int or not 0 <= seed < _MOST:
        return gym.utils.seeding.np_random(seed)
    return _SEEDS.generator(seed), seed


class _Seeds:
    """Knows the states of a run of seeds, once two have come one after the other."""

    def __init__(self) -> None:
        self.last = -1
        self.run: tuple[int, np.ndarray] = (-_RUN, np.empty((0, _POOL), np.uint64))

    def generator(self, seed: int) -> np.random.Generator:
        first, states = self.run
        at, last, self.last = seed - first, self.last, seed
        if not 0 <= at < _RUN:
            if seed != last + 1:
                return np.random.Generator(np.random.PCG64(seed))
            at, states = 0, _states(np.arange(seed, seed + _RUN, dtype=np.uint32))
            self.run = seed, states  # in one: another thread sees both or none
        return np.random.Generator(np.random.PCG64(_Sequence(seed, states[at])))


class _Sequence(ISpawnableSeedSequence):
    """A ``SeedSequence`` that knows already what a bit generator asks it for; it is made where more is asked."""

    def __init__(self, entropy: int, state: np.ndarray) -> None:
        self.entropy, self._state = entropy, state

    @cached_property
    def _whole(self) -> np.random.SeedSequence:
        return np.random.SeedSequence(self.entropy)

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        """See ``numpy.random.SeedSequence``."""
        if n_words == _POOL and dtype is np.uint64:
            return self._state
        return self._whole.generate_state(n_words, dtype)

    def spawn(self, n_children: int) -> Any:
        """See ``numpy.random.SeedSequence``."""
        return self._whole.spawn(n_children)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def __reduce__(self) -> Any:
        return self._whole.__reduce__()


def _states(seeds: np.ndarray) -> np.ndarray:
    """Return ``SeedSequence(seed).generate_state(4, np.uint64)`` of (N) seeds of one word, (N, 4)."""

    def mixed(values: np.ndarray, constants: list[int], at: int) -> np.ndarray:
        values = (values ^ np.uint32(constants[at])) * np.uint32(constants[at + 1])
        return values ^ values >> np.uint32(16)

    zeros = np.zeros_like(seeds)
    pool = [mixed(seeds if at == 0 else zeros, _HASHES, at) for at in range(_POOL)]
    pairs = [(source, target) for source in range(_POOL) for target in range(_POOL) if source != target]
    for at, (source, target) in enumerate(pairs, _POOL):
        values: np.ndarray = _LEFT * pool[target] - _RIGHT * mixed(pool[source], _HASHES, at)
        pool[target] = values ^ values >> np.uint32(16)
    words = [mixed(pool[at % _POOL], _ENDS, at).astype(np.uint64) for at in range(2 * _POOL)]
    states = np.stack([words[at] | words[at + 1] << np.uint64(32) for at in range(0, 2 * _POOL, 2)], axis=1)
    states.setflags(write=False)  # sequences hand out their rows
    return states


_SEEDS = _Seeds()
