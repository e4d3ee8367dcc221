"""What an info tells a policy that writes."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any


def given(info: Mapping[str, Any], name: str, kind: Any, what: str, default: Any) -> Any:
    """Return ``info[name]``, or ``default`` where it is missing or None.

    Raises:
        ValueError: It is not ``what`` it must be: no ``kind``.
    """
    value = info.get(name)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise ValueError(f"info[{name!r}] must be {what}, got {value!r}")
    return value


def token_limit(info: Mapping[str, Any], default: int | None, name: str = "tokens") -> int | None:
    """Return the token limit that ``info`` names, else ``default``; a whole number may come as a float.

    Args:
        info: The info.
        default: What it is where the info names none.
        name: ``tokens``: of a turn; ``episode_tokens``: of all turns together.

    Raises:
        ValueError: The limit is no whole number.
    """
    tokens = given(info, "limits", Mapping, "a dict such as {'tokens': 256}", {}).get(name)
    if tokens is None:
        return default
    is_whole = isinstance(tokens, Real) and not isinstance(tokens, bool) and tokens % 1 == 0
    if not is_whole:
        raise ValueError(f"info['limits'][{name!r}] must be a whole number such as 256, got {tokens!r}")
    return int(tokens)


def least(one: int | None, other: int | None) -> int | None:
    """Return the smaller of two limits; None: there is none."""
    return min((limit for limit in (one, other) if limit is not None), default=None)
