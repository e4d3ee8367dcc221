"""Ways around things, for scripted controllers: N hands at once."""

from __future__ import annotations

import numpy as np


def length(vectors: np.ndarray) -> np.ndarray:
    """Return the lengths of vectors [..., D], in the last axis."""
    return np.sqrt((vectors * vectors).sum(axis=-1))


def around(
    at: np.ndarray, goal: np.ndarray, obstacles: np.ndarray, clearance: float, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Return where to go first so that the way to the goal keeps clear of obstacles.

    Args:
        at: Where the hands are, [N, 2].
        goal: Where they are going, [N, 2].
        obstacles: Where the obstacles are, [N, M, 2].
        clearance: Metres to keep from their centres.
        low: Lower corner of where hands may go, [2].
        high: Upper corner, [2].

    Returns:
        The goal, or a point beside the first obstacle in the way, [N, 2].
    """
    chosen = goal.copy()
    nearest = np.full(len(at), np.inf)
    way = goal - at
    far = length(way)
    ahead = way / np.maximum(far, 1e-9)[:, None]
    side = np.stack([-ahead[:, 1], ahead[:, 0]], axis=-1)
    for m in range(obstacles.shape[1]):
        offset = obstacles[:, m] - at
        along = (offset * ahead).sum(axis=-1)
        across = (offset * side).sum(axis=-1)
        blocks = (along > 0) & (along < far + 0.5 * clearance) & (np.abs(across) < clearance) & (along < nearest)
        # Past it on the side that the hand is on already, unless there is no room.
        step = side * np.where(across > 0, -1.3 * clearance, 1.3 * clearance)[:, None]
        beside = obstacles[:, m] + step
        fits = ((beside >= low) & (beside <= high)).all(axis=-1)
        beside = np.where(fits[:, None], beside, obstacles[:, m] - step)
        chosen = np.where(blocks[:, None], beside, chosen)
        nearest = np.where(blocks, along, nearest)
    return chosen
