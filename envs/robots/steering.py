"""Ways around things, for scripted controllers: N hands at once."""

from __future__ import annotations

import numpy as np


def length(vectors: np.ndarray) -> np.ndarray:
    """Return the lengths of vectors [..., D], in the last axis."""
    return np.sqrt((vectors * vectors).sum(axis=-1))


def direction(vectors: np.ndarray) -> np.ndarray:
    """Return vectors [N, D] brought to length 1; one of no length stays."""
    return vectors / np.maximum(length(vectors), 1e-6)[:, None]


def quarter_turn(vectors: np.ndarray) -> np.ndarray:
    """Return vectors [N, 2] turned to the left by a right angle."""
    return np.stack([-vectors[:, 1], vectors[:, 0]], axis=-1)


def limit(vectors: np.ndarray) -> np.ndarray:
    """Return vectors [N, D], those that are longer than 1 shortened to it."""
    return vectors / np.maximum(length(vectors), 1.0)[:, None]


def ramp(x: np.ndarray, low: float | np.ndarray, high: float | np.ndarray) -> np.ndarray:
    """Return 0 up to ``low``, 1 from ``high`` on, and a line between them."""
    return np.clip((x - low) / (high - low), 0.0, 1.0)


def bend(
    velocity: np.ndarray,
    at: np.ndarray,
    centre: np.ndarray,
    radius: float,
    *,
    soft: float,
    towards: np.ndarray | None = None,
) -> np.ndarray:
    """Return velocities that keep out of discs: what went inwards goes along the edge, and who is inside goes out.

    Args:
        velocity: Where the hands want to go, [N, 2].
        at: Where they are, [N, 2].
        centre: Of the discs, [N, 2].
        radius: Of the discs, in metres.
        soft: Metres around a disc over which its influence grows from nothing.
        towards: On which side of the discs, as directions from their centres, the way along the edge ends, [N, 2];
            None: where the velocity points.
    """
    offset = at - centre
    far = np.maximum(length(offset), 1e-6)[:, None]
    out = offset / far
    along = quarter_turn(out)
    aim = velocity if towards is None else towards
    sense = np.where((along * aim).sum(axis=-1, keepdims=True) >= 0, 1.0, -1.0)
    inwards = np.maximum(-(velocity * out).sum(axis=-1, keepdims=True), 0.0) * ramp(-far, -radius - soft, -radius)
    return velocity + inwards * (out + sense * along) + ramp(-far, -radius, -radius + 0.02) * out


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
    side = quarter_turn(ahead)
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
