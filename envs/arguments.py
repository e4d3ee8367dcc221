"""Arguments of constructors and options of resets, checked."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Collection, Iterable, Mapping, Sequence
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

    A set, whose order is another in each process, is brought into the order of ``known``.

    Raises:
        ValueError: It is no list of some of ``known``.
    """
    if values is None:
        return tuple(known)
    is_list = isinstance(values, Collection) and not isinstance(values, str | bytes | Mapping)
    if not is_list or not values or not all(isinstance(value, str) and value in known for value in values):
        raise ValueError(f"{name} must be a list of some of {', '.join(known)}, got {values!r}")
    return tuple(values) if isinstance(values, Sequence) else tuple(value for value in known if value in values)


def check_names(env: type[Any], given: Iterable[str], known: Collection[str]) -> None:
    """Refuse an argument that an environment does not have.

    Args:
        env: Its class.
        given: Names of what it is given.
        known: Names of what it takes.

    Raises:
        TypeError: One is none of those, as in any call; the message names the environment and its arguments.
    """
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise TypeError(f"{env.__name__} has no argument {name!r}{hint} (it takes {', '.join(sorted(known))})")


def names_of(env: type[Any]) -> frozenset[str]:
    """Return the names of the arguments that a class takes, those of its bases too where it passes others on."""
    names: set[str] = set()
    for base in env.__mro__:
        if base is object or "__init__" not in vars(base):
            continue
        parameters = list(inspect.signature(vars(base)["__init__"]).parameters.values())[1:]  # without self
        names |= {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return frozenset(names)
