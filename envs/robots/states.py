"""Exact states of copies: what one is made of, and which ones a batch takes."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tetrathlon.envs.robots.instance import Instance

_PARTS = ("of", "arrays", "instance", "rng")
_SHOWN = 200  # characters of what was given instead of a state


class Saved(NamedTuple):
    """What copy ``i`` is to become."""

    i: int
    arrays: list[np.ndarray]
    instance: Instance | None
    rng: np.random.Generator | None


def kind_of(name: str, robot: str, is_randomized: bool) -> str:
    """Return in words between which environments states go to and fro.

    The sizes of their arrays do not tell: tasks of as many objects and places have the same.

    Args:
        name: Of the task's environments.
        robot: Name of the robot.
        is_randomized: Whether there is domain randomisation, at whatever level.
    """
    return f"{name} with robot={robot!r} and {'' if is_randomized else 'no '}randomization"


def state_of(
    kind: str, i: int, arrays: Sequence[np.ndarray], instance: Instance | None, rng: np.random.Generator | None
) -> dict[str, Any]:
    """Return the state of copy ``i``.

    Args:
        kind: See :func:`kind_of`.
        i: Its number.
        arrays: All that N copies are at a moment, with leading N.
        instance: Its instance; None before the first.
        rng: Its generator; None where nothing was drawn yet.
    """
    return {
        "of": kind,
        "arrays": [array[i].copy() for array in arrays],
        "instance": instance,
        "rng": None if rng is None else rng.bit_generator.state,
    }


def copies_of(ids: Iterable[int], n: int) -> list[int]:
    """Return ``ids`` as numbers of copies.

    Raises:
        ValueError: One of them is no number from 0 to N - 1.
    """
    try:
        found = [operator.index(i) for i in ids]
    except TypeError as error:
        raise ValueError(f"ids must be a list of integers from 0 to {n - 1}, got {ids!r}") from error
    if strange := [i for i in found if not 0 <= i < n]:
        raise ValueError(f"ids must be integers from 0 to {n - 1}, got {strange}")
    return found


def read_states(
    kind: str, arrays: Sequence[np.ndarray], ids: Iterable[int], states: Sequence[Mapping[str, Any]]
) -> list[Saved]:
    """Return what copies are to become; nothing changes yet.

    Args:
        kind: See :func:`kind_of`; of those who are to become it.
        arrays: Theirs, see :func:`state_of`.
        ids: Which copies.
        states: One each.

    Raises:
        ValueError: There is not one state a copy, a copy is named twice or is not there, or a state is none or is one
            of another kind.
    """
    ids, states = copies_of(ids, len(arrays[0])), list(states)
    if len(set(ids)) < len(ids):
        raise ValueError(f"ids must name a copy once, got {ids}")
    if len(states) != len(ids):
        raise ValueError(f"states must be one a copy, got {len(states)} for {len(ids)} copies, {ids}")
    shapes = [array.shape[1:] for array in arrays]
    return [_read(kind, shapes, i, state) for i, state in zip(ids, states, strict=True)]


def _read(kind: str, shapes: Sequence[tuple[int, ...]], i: int, state: Any) -> Saved:
    wanted = f"a state for copy {i} must be what get_state() of {kind} returned"
    if not isinstance(state, Mapping) or "of" not in state:
        raise ValueError(f"{wanted}, got {repr(state)[:_SHOWN]}")
    if state["of"] != kind:
        raise ValueError(f"{wanted}, got one of {str(state['of'])[:_SHOWN]}")
    if missing := [part for part in _PARTS if part not in state]:
        raise ValueError(f"{wanted}, got one without {', '.join(missing)}")
    values, instance = state["arrays"], state["instance"]
    given = [np.shape(value) for value in values]
    if given != shapes:
        raise ValueError(f"{wanted}, got one with arrays of the shapes {given} in place of {shapes}")
    if not isinstance(instance, Instance | None):
        raise ValueError(f"{wanted}, got one with the instance {repr(instance)[:_SHOWN]}")
    rng = None
    if (drawn := state["rng"]) is not None:
        rng = np.random.Generator(np.random.PCG64(0))
        try:
            rng.bit_generator.state = drawn
        except (TypeError, ValueError, KeyError) as error:
            raise ValueError(f"{wanted}, got one with the generator {repr(drawn)[:_SHOWN]}") from error
    return Saved(i, list(values), instance, rng)
