"""N slots of an environment by its id: its own batch where it has one, else N copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tetrathlon.envs.registry import has_seeded_batch, make, make_batched
from tetrathlon.envs.slots import Slots, SlotsLike
from tetrathlon.envs.vector_slots import VectorSlots


def make_slots(
    env_id: str, n: int, kwargs: Mapping[str, Any], *, vector: bool = True, seed: Callable[[], int] | None = None
) -> SlotsLike:
    """Make N slots.

    Args:
        env_id: As :func:`~tetrathlon.envs.registry.make` takes it.
        n: N.
        kwargs: Constructor arguments.
        vector: Whether the environment's own batch is used, where there is one.
        seed: Gives the one seed of a batch that cannot start a slot from a seed of its own; None: such a batch is not
            used.
    """
    is_seeded = has_seeded_batch(env_id)
    venv = make_batched(env_id, n, **kwargs) if vector and (is_seeded or seed is not None) else None
    if venv is None:
        return Slots(lambda: make(env_id, **kwargs), n)
    return VectorSlots(venv, seed=None if is_seeded or seed is None else seed())
