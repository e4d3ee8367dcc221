"""Trees of tokens: every node sees its own beginning and nothing else, and what is shared is there once."""

from __future__ import annotations

import numpy as np
import pytest

from tetrathlon.agents.trees import Trees, plant

# What the rows of three groups of a language model look like: a system prompt, a question, answers.
SYSTEM, QUESTIONS = tuple(range(100, 120)), [(1, 2, 3), (1, 5), (7,)]
ANSWERS = [(10, 11, 12), (10, 11), (10, 13, 14, 15), (20,), (10, 11)]
ROWS = [SYSTEM + question + answer for question in QUESTIONS for answer in ANSWERS]


def nodes_of(trees: Trees) -> int:
    return len({int(node) for path in trees.nodes for node in path})


def check(trees: Trees, sequences: list[tuple[int, ...]]) -> None:
    ids, places = trees.ids.flatten().numpy(), trees.places.flatten().numpy()
    rows, width = trees.ids.shape
    for sequence, path in zip(sequences, trees.nodes, strict=True):
        assert tuple(ids[path]) == sequence
        assert places[path].tolist() == list(range(len(sequence)))
        row = int(path[0]) // width
        assert (path // width == row).all()
        for k, node in enumerate(path % width):
            if trees.mask is not None:
                assert set(np.flatnonzero(trees.mask[row, 0, node].numpy())) == set(path[: k + 1] % width)
            else:
                assert node == k
    if trees.mask is not None:  # a node that sees nothing would be NaN
        assert bool(trees.mask.any(dim=-1).all())
        assert trees.mask.shape == (rows, 1, width, width)


@pytest.mark.parametrize("pairs", [0.0, 1e-3, 1e-2, 0.1, 1.0, 100.0, None])
@pytest.mark.parametrize("order", [1, -1])
def test_each_sequence_is_a_path_and_sees_itself_alone(pairs: float | None, order: int) -> None:
    rows = [*ROWS[::order], (9,), (9,), (9, 9)]
    check(plant(rows, pairs), rows)


def test_random_sequences() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        rows = [tuple(rng.integers(3, size=rng.integers(1, 9)).tolist()) for _ in range(rng.integers(1, 12))]
        check(plant(rows, float(rng.choice([0.0, 1e-3, 0.05, 1.0]))), rows)


def test_what_is_shared_is_there_once_where_pairs_are_cheap() -> None:
    trees = plant(ROWS, 0.0)
    prefixes = {row[: k + 1] for row in ROWS for k in range(len(row))}
    assert nodes_of(trees) == len(prefixes) == trees.ids.numel()


def test_dear_pairs_leave_each_sequence_a_row() -> None:
    unlike = [tuple([i] * (5 + i % 2)) for i in range(8)]
    assert plant(unlike, 1e-3).mask is not None
    for rows, pairs in ((unlike, 100.0), (ROWS, None)):
        trees = plant(rows, pairs)
        assert trees.mask is None
        assert trees.ids.shape == (len(rows), max(map(len, rows)))
        check(trees, rows)


def test_a_long_beginning_is_shared_and_long_ends_stand_apart() -> None:
    beginning = tuple(range(100))
    for end, apart in ((5, False), (1500, True)):
        rows = [beginning + tuple([i] * end) for i in range(8)]
        trees = plant(rows, 1 / 1728)
        assert (trees.mask is None) is apart
        check(trees, rows)


def test_sequences_of_unlike_length_fill_each_other_s_padding() -> None:
    rows = [tuple([i] * (300 if i == 0 else 20)) for i in range(16)]
    trees = plant(rows, 1 / 1728)
    assert trees.ids.numel() == 600
    check(trees, rows)


def test_masks_are_bounded() -> None:
    beginning = tuple(range(9000))
    rows = [beginning + tuple([i] * 1000) for i in range(4)]
    assert plant(rows, 1e-5).mask is None
    assert plant([row[6000:] for row in rows], 1e-5).ids.shape == (1, 7000)
