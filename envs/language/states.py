"""Exact states of language environments: whose a state is, checked before anything is changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from tetrathlon.envs.language.task import Task

_SHOWN = 200  # characters of what was given instead of a state


def check_state(env: str, state: Any, parts: Collection[str], task: type[Task] = Task) -> None:
    """Refuse what is no state of an environment; nothing changes.

    Args:
        env: Name of its class, which stands in its states under ``of``.
        state: What is given.
        parts: What a state has beside ``of``, ``rng`` and ``task``.
        task: The class of its tasks.

    Raises:
        ValueError: It is none, or one of another class; the message says what was given.
    """
    wanted = f"a state must be what get_state() of {env} returned"
    if not isinstance(state, Mapping) or "of" not in state:
        raise ValueError(f"{wanted}, got {repr(state)[:_SHOWN]}")
    if state["of"] != env:
        raise ValueError(f"{wanted}, got one of {str(state['of'])[:_SHOWN]}")
    if missing := [part for part in ("rng", "task", *parts) if part not in state]:
        raise ValueError(f"{wanted}, got one without {', '.join(missing)}")
    if not isinstance(state["task"], task | None):
        raise ValueError(f"{wanted}, got one with the task {repr(state['task'])[:_SHOWN]}")
    try:
        np.random.PCG64(0).state = state["rng"]
    except (TypeError, ValueError, KeyError) as error:
        raise ValueError(f"{wanted}, got one with the generator {repr(state['rng'])[:_SHOWN]}") from error
