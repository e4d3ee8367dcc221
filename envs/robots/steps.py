"""What a step of N copies is asked for: which actions."""

from __future__ import annotations

from typing import Any

import numpy as np

_SHOWN = 200  # characters of what was given instead of actions


def asked_actions(actions: Any, shape: tuple[int, ...], chunk: int) -> tuple[np.ndarray, np.ndarray]:
    """Return actions as they may be done, and which of them are any.

    Args:
        actions: One a copy.
        shape: What they have to have, (N, A) or (N, K, A).
        chunk: K.

    Returns:
        Actions from -1 to 1, float64 [N, K, A], 0 where a copy's has a number that is not finite; and bool [N], false
        for those.

    Raises:
        ValueError: They are not numbers of that shape.
    """
    told = f"actions must be numbers of the shape {shape}, an action a copy"
    try:
        given = np.asarray(actions, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{told}, got {repr(actions)[:_SHOWN]}") from error
    if given.shape != shape:
        raise ValueError(f"{told}, got the shape {given.shape}")
    given = given.reshape(len(given), chunk, -1)
    usable = np.asarray(np.isfinite(given).all(axis=(1, 2)))
    return np.clip(np.where(usable[:, None, None], given, 0.0), -1.0, 1.0), usable
