"""Observations of a control environment as rows of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces


def feature_count(space: spaces.Space[Any]) -> int:
    """Return F, how many numbers :func:`features` makes of one observation.

    Raises:
        TypeError: The space, or a part of it, is none that :func:`features` takes.
    """
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return math.prod(space.shape)
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return int(space.nvec.sum())
    if isinstance(space, spaces.Dict):
        return sum(feature_count(part) for part in space.values())
    raise TypeError(f"observations must be Box, Discrete, MultiDiscrete, MultiBinary, or a Dict of those, got {space}")


def features(space: spaces.Space[Any], batch: Any) -> np.ndarray:
    """Return N observations as float32 [N, F].

    Boxes and switches are flattened, a choice becomes a one-hot, and the parts of a ``Dict`` stand side by side in
    the order of the space.

    Args:
        space: The space of a single observation.
        batch: N observations, batched as a ``VectorEnv`` batches them.
    """
    if isinstance(space, spaces.Dict):
        assert isinstance(batch, Mapping)
        return np.concatenate([features(part, batch[name]) for name, part in space.items()], axis=1)
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        sizes = np.atleast_1d(space.n if isinstance(space, spaces.Discrete) else space.nvec).ravel()
        chosen = np.asarray(batch).reshape(-1, len(sizes)) - np.atleast_1d(space.start).ravel()
        flat = np.zeros((len(chosen), int(sizes.sum())), dtype=np.float32)
        np.put_along_axis(flat, chosen + np.cumsum(sizes) - sizes, 1.0, axis=1)
        return flat
    assert space.shape is not None
    return np.asarray(batch, dtype=np.float32).reshape(-1, math.prod(space.shape))
