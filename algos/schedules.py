"""How settings change over the updates of a run."""

from __future__ import annotations

import math
from dataclasses import replace

from tetrathlon.algos.options import Decay, Options


def rate(update: int, updates: int | None, *, warmup: int = 0, decay: Decay = "constant") -> float:
    """Return by what the learning rates of an update are multiplied: from 0 up to 1, and down to 0.

    Args:
        update: Number of the update, from 0.
        updates: How many there will be; None: nobody knows, and nothing decays.
        warmup: Updates over which the rates grow.
        decay: How they fall afterwards.
    """
    if update < warmup:
        return (update + 1) / warmup
    if decay == "constant" or updates is None:
        return 1.0
    left = 1 - (update - warmup) / max(updates - warmup, 1)
    left = min(max(left, 0.0), 1.0)
    return left if decay == "linear" else 0.5 * (1 - math.cos(math.pi * left))


def between(start: float, end: float | None, update: int, updates: int | None) -> float:
    """Return the value at an update on the line from ``start`` at the first to ``end`` at the last.

    Args:
        start: At update 0.
        end: At update ``updates - 1``; None: the value stays.
        update: Number of the update, from 0.
        updates: How many there will be; None: nobody knows, and the value stays.
    """
    if end is None or updates is None:
        return start
    return start + (end - start) * min(update / max(updates - 1, 1), 1.0)


def at(options: Options, update: int, updates: int | None) -> Options:
    """Return the options of one update, in which every coefficient that has a schedule has its value."""
    return replace(
        options,
        kl_coef=between(options.kl_coef, options.kl_coef_end, update, updates),
        entropy_coef=between(options.entropy_coef, options.entropy_coef_end, update, updates),
    )
