"""Sequences that begin alike, laid out so that what they share is read once: trees of tokens, packed in rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

_STEP = 1.25  # from one width that is tried to the next
_MOST_PAIRS = 2**27
"""Largest mask. It is there as bool and in the type of the weights: 0.7 GB."""


@dataclass(frozen=True, slots=True)
class Trees:
    """R rows of W nodes. A node is a token after all that came before it, its ancestors; a row holds several trees."""

    ids: Tensor
    """int [R, W]: the token of each node; 0 at padding."""
    places: Tensor
    """int [R, W]: how many ancestors it has."""
    mask: Tensor | None
    """bool [R, 1, W, W]: whether a node (third axis) sees another (last axis): itself and its ancestors; padding sees
    itself. None: every row is one sequence, and a node sees all before it."""
    nodes: list[np.ndarray]
    """The nodes of each sequence in order, counted over the R * W of all rows."""


def plant(sequences: Sequence[tuple[int, ...]], pairs: float | None) -> Trees:
    """Lay out B sequences at the least estimated cost.

    A token costs 1 and a pair of tokens of one row ``pairs``, padding too. Sequences in order of their tokens fill row
    after row, so those that begin alike adjoin; what is chosen is how wide rows are, or that every sequence has a row
    of its own.

    Args:
        sequences: Tuples of ids, none of them empty.
        pairs: What it costs that one node sees another, beside the cost of a node. Of a transformer it is about one
            through three times its width, from the arithmetic of its layers. None: every sequence gets a row.
    """
    order = sorted(range(len(sequences)), key=sequences.__getitem__)
    common = [0] + [_common(sequences[a], sequences[b]) for a, b in pairwise(order)]
    lengths = [len(sequences[b]) for b in order]
    width, total = max(lengths), sum(lengths)
    # One sequence a row needs no mask, so that half of all pairs are never looked at.
    best = [[i] for i in range(len(order))]
    least = 0.0 if pairs is None else len(order) * width * (1 + pairs * width / 2)
    room = float(width)
    while pairs is not None and room < _STEP * total:
        rows, used = _filled(lengths, common, int(room))
        if len(rows) * used**2 <= _MOST_PAIRS and (cost := len(rows) * used * (1 + pairs * used)) < least:
            best, least = rows, cost
        room *= _STEP
    return _laid([[(order[i], common[i]) for i in row] for row in best], sequences)


def _common(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """Return how many tokens two sequences begin with alike."""
    most = min(len(one), len(other))
    return next((k for k in range(most) if one[k] != other[k]), most)


def _filled(lengths: list[int], common: list[int], room: int) -> tuple[list[list[int]], int]:
    """Fill rows of at most ``room`` nodes; return them and the widest."""
    rows: list[list[int]] = []
    used = widest = 0
    for i, (length, shared) in enumerate(zip(lengths, common, strict=True)):
        if rows and used + length - shared <= room:
            rows[-1].append(i)
            used += length - shared
        else:
            rows.append([i])
            used = length
        widest = max(widest, used)
    return rows, widest


def _laid(rows: list[list[tuple[int, int]]], sequences: Sequence[tuple[int, ...]]) -> Trees:
    """Lay out rows of (sequence, how much of it the one before it in the row begins with)."""
    paths: list[np.ndarray] = [np.empty(0, dtype=np.int64)] * len(sequences)
    new = [0] * len(sequences)  # how many nodes are not of an earlier sequence
    ends = []
    for row in rows:
        end, path = 0, np.empty(0, dtype=np.int64)
        for at, (b, shared) in enumerate(row):
            kept = path[: shared if at else 0]
            fresh = len(sequences[b]) - len(kept)
            path = paths[b] = np.concatenate([kept, np.arange(end, end + fresh)])
            new[b] = fresh
            end += fresh
        ends.append(end)
    width = max(ends)
    ids = np.zeros((len(rows), width), dtype=np.int64)
    places = np.zeros_like(ids)
    is_plain = all(len(row) == 1 for row in rows)
    mask = None if is_plain else np.broadcast_to(np.eye(width, dtype=np.bool_), (len(rows), width, width)).copy()
    for r, row in enumerate(rows):
        for b, _ in row:
            path, count = paths[b], len(paths[b])
            ids[r, path] = sequences[b]
            places[r, path] = np.arange(count)
            if mask is not None:
                old = count - new[b]
                mask[r][np.ix_(path[old:], path)] = np.tri(new[b], count, old, dtype=np.bool_)
            paths[b] = path + r * width
    return Trees(
        torch.from_numpy(ids),
        torch.from_numpy(places),
        None if mask is None else torch.from_numpy(mask)[:, None],
        paths,
    )
