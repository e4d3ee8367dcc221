"""Arguments of constructors and options of resets, checked."""

from __future__ import annotations

from collections.abc import Collection
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


def share(name: str, value: Any, last: bool = False) -> float:
    """Return ``value``, an argument called ``name``, as a float.

    Args:
        name: The argument.
        value: Its value.
        last: Whether it may be 1.

    Raises:
        ValueError: It is no number from 0 to less than 1, or to 1.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not (0 <= value < 1 or (last and value == 1)):
        raise ValueError(f"{name} must be a number from 0 to {'1' if last else 'less than 1'}, got {value!r}")
    return float(value)


def flag(name: str, value: Any) -> bool:
    """Return ``value``, an argument called ``name``, as a bool.

    Raises:
        ValueError: It is neither True nor False.
    """
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def some_of(name: str, values: Collection[str] | None, known: Collection[str]) -> tuple[str, ...]:
    """Return ``values``, an argument called ``name``, as a tuple; of None all that are known.

    Raises:
        ValueError: It is no list of some of ``known``.
    """
    chosen = tuple(known if values is None else values)
    if isinstance(values, str) or not chosen or any(value not in known for value in chosen):
        raise ValueError(f"{name} must be a list of some of {', '.join(known)}, got {values!r}")
    return chosen
