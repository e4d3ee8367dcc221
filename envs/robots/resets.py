"""What a reset of N copies is asked for: which of them, with which seeds and options."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

OPTIONS = ("index", "instance", "counterfactual", "reset_mask")
"""Names of options."""


def refuse_unknown(options: Mapping[str, Any]) -> None:
    """Raise where there is an option of another name.

    Raises:
        ValueError: There is, or these are no options by their names.
    """
    if not isinstance(options, Mapping):
        raise ValueError(f"options must be a dict of some of {', '.join(map(repr, OPTIONS))}, got {options!r}")
    if unknown := sorted(map(repr, set(options) - set(OPTIONS))):
        raise ValueError(f"options may be {', '.join(map(repr, OPTIONS))}, got {', '.join(unknown)}")


def asked(mask: Any, n: int) -> np.ndarray:
    """Return which of N copies a mask is about; None: all.

    Raises:
        ValueError: It is no mask of N, or is true nowhere.
    """
    if mask is None:
        return np.arange(n)
    mask = np.asarray(mask)
    if mask.shape != (n,) or mask.dtype != bool or not mask.any():
        raise ValueError(f"options['reset_mask'] must be {n} booleans, one of them true, got {mask!r}")
    return np.flatnonzero(mask)


def seeds_of(seed: int | Sequence[int | None] | None, n: int) -> list[int | None]:
    """Return one seed a copy: of one number s, copy i gets s + i.

    Raises:
        ValueError: There are not N of them, or one is no integer.
    """
    if seed is None:
        return [None] * n
    if isinstance(seed, int | np.integer):
        return [int(seed) + i for i in range(n)]
    try:
        seeds = [None if number is None else operator.index(number) for number in seed]
    except TypeError as error:
        raise ValueError(f"seed must be an integer, or an integer or None a copy, got {seed!r}") from error
    if len(seeds) != n:
        raise ValueError(f"seed must be one number or one a copy, got {len(seeds)} for {n} copies")
    return seeds
