"""Generators of seeds are gymnasium's."""

from __future__ import annotations

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.seeding import np_random
from hypothesis import given
from hypothesis import strategies as st

from tetrathlon.envs.language.seeding import generator


def _assert_same(seed: int) -> None:
    (ours, seed_of_ours), (theirs, seed_of_theirs) = generator(seed), np_random(seed)
    assert seed_of_ours == seed_of_theirs == seed
    for copied in (ours, pickle.loads(pickle.dumps(ours)), copy.deepcopy(ours)):
        assert copied.bit_generator.state == theirs.bit_generator.state
    sequences = [rng.bit_generator.seed_seq for rng in (ours, theirs, pickle.loads(pickle.dumps(ours)))]
    for words, kind in ((4, np.uint64), (8, np.uint32), (3, np.uint64)):
        one, *others = [sequence.generate_state(words, kind).tolist() for sequence in sequences]
        assert one == others[0] == others[1]
    assert ours.spawn(2)[1].random() == theirs.spawn(2)[1].random()
    assert ours.spawn(1)[0].random() == theirs.spawn(1)[0].random()
    for name in ("entropy", "spawn_key", "pool_size", "n_children_spawned"):
        assert getattr(ours.bit_generator.seed_seq, name) == getattr(theirs.bit_generator.seed_seq, name)
    assert ours.random(3).tolist() == theirs.random(3).tolist()


@pytest.mark.parametrize("first", [0, 1, 250, 2**31 - 3, 2**32 - 600])
def test_seeds_in_a_run_are_gymnasiums(first: int) -> None:
    for seed in range(first, first + 600):  # three runs, and the end of what has one word
        ours, theirs = generator(seed)[0], np_random(seed)[0]
        assert ours.bit_generator.state == theirs.bit_generator.state
        if seed % 100 == 0:
            _assert_same(seed)


@given(st.lists(st.integers(0, 2**70) | st.integers(0, 2**32) | st.integers(0, 6), max_size=8))
def test_seeds_in_any_order_are_gymnasiums(seeds: list[int]) -> None:
    for seed in seeds:
        _assert_same(seed)


@pytest.mark.parametrize("seed", [-1, 1.5, "1"])
def test_other_seeds_are_refused_as_gymnasium_does(seed: int) -> None:
    with pytest.raises(gym.error.Error) as theirs:
        np_random(seed)
    with pytest.raises(gym.error.Error) as ours:
        generator(seed)
    assert str(ours.value) == str(theirs.value)


def test_what_a_sequence_hands_out_cannot_be_changed() -> None:
    for seed in range(40, 45):
        words = generator(seed)[0].bit_generator.seed_seq.generate_state(4, np.uint64)
    with pytest.raises(ValueError, match="read-only"):
        words[0] = 0
