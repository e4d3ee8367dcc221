"""Arguments of constructors and options of resets, checked."""

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


def index_option(value: Any) -> int:
    """Return ``value``, a reset's option ``index``, as an int.

    Raises:
        ValueError: It is no integer from 0.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise ValueError(f"options['index'] must be an integer from 0, got {value!r}")
    return int(value)
