"""Arguments of constructors, checked."""

from __future__ import annotations

from typing import Any

import numpy as np


def whole(name: str, value: Any, low: int, high: int) -> int:
    """Return ``value``, an argument called ``name``, as an int.

    Raises:
        ValueError: It is no integer from ``low`` to ``high``.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise ValueError(f"{name} must be an integer from {low} to {high}, got {value!r}")
    return int(value)
