"""How a training run went: its configuration and its metrics, as columns."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tetrathlon.benchmarks.files import read_json

Floats = NDArray[np.float64]
_CONFIG, _METRICS = "config.json", "metrics.jsonl"
_LEAST = 20
"""Updates from which on a mean is taken over several."""


@dataclass(frozen=True, eq=False)
class Column:
    """One metric, at the N updates that told it."""

    update: Floats
    """[N], counted from 1, rising."""
    value: Floats
    """[N]; NaN where the metric was not a finite number."""

    def __len__(self) -> int:
        return len(self.update)

    @property
    def width(self) -> int:
        """Over how many updates a moving mean goes: an odd number, about a twentieth of all; 1 for a short run."""
        return 1 if len(self) < _LEAST else max(len(self) // 20 // 2 * 2 + 1, 3)

    @property
    def mean(self) -> Floats:
        """The moving mean, [N]; NaN where there is no value."""
        return moving_mean(self.value, self.width)

    @property
    def ends(self) -> tuple[float, float]:
        """The means of the first and of the last values, as many as a moving mean takes; NaN where there are none."""
        found = self.value[~np.isnan(self.value)]
        return _mean(found[: self.width]), _mean(found[-self.width :])

    def best(self, sign: int) -> tuple[float, int] | None:
        """Return the highest moving mean (the lowest where ``sign`` is -1) and its update; None without a value."""
        mean = sign * self.mean
        if np.isnan(mean).all():
            return None
        at = int(np.nanargmax(mean))
        return float(sign * mean[at]), int(self.update[at])


class History:
    """What a training run wrote so far.

    Args:
        folder: The folder of the run, finished or under way.

    Raises:
        FileNotFoundError: There is no ``config.json`` in it.
        ValueError: That is not the configuration of a training run.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        path = self.folder / _CONFIG
        if not path.is_file():
            raise FileNotFoundError(f"{self.folder} holds no {_CONFIG}; give the folder of a training run")
        self.config: dict[str, Any] = read_json(path)
        if not _is_training(self.config):
            raise ValueError(f"{path} is not the configuration of a training run: no 'algorithm'")
        lines: dict[int, Mapping[str, Any]] = {}
        self.damaged = 0
        """Lines that are not metrics: a kill may have left one half written."""
        for line in _lines(self.folder / _METRICS):
            if line is None:
                self.damaged += 1
            else:
                lines[line["update"]] = line  # the last one counts: an update may have been done again
        told: dict[str, dict[int, float]] = {}
        for update in sorted(lines):
            for name, value in lines[update].items():
                if name != "update" and (number := _number(value)) is not None:
                    told.setdefault(name, {})[update] = number
        self.columns = {
            name: Column(np.array(list(at), np.float64) + 1, np.array(list(at.values()), np.float64))
            for name, at in told.items()
        }
        """By the names of the metrics."""
        self.done = max(lines, default=-1) + 1
        """How many updates are done."""

    @property
    def updates(self) -> int | None:
        """How many updates were asked for; None where the run does not say."""
        asked = self.config.get("updates")
        return asked if isinstance(asked, int) and not isinstance(asked, bool) else None

    @property
    def title(self) -> str:
        """The algorithm and the environment."""
        return f"{self.config['algorithm']} · {str(self.config.get('env', '')).rpartition('/')[2]}"

    @property
    def progress(self) -> str:
        """How far it got, in words."""
        done = f"{self.done:,} of {self.updates:,}" if self.updates else f"{self.done:,}"
        return f"{done} updates" if self.done != 1 or self.updates else "1 update"

    def total(self, name: str) -> float:
        """Return the sum of a metric over all updates; 0 where there is none."""
        return float(np.nansum(self.columns[name].value)) if name in self.columns else 0.0

    @property
    def seconds(self) -> float:
        """How long it took, all phases together."""
        return sum(self.total(name) for name in self.columns if name.startswith("seconds_"))


def find_history(folder: str | os.PathLike[str]) -> History | None:
    """Return what a training run wrote into ``folder``; None where there is none (an evaluation has no algorithm).

    Raises:
        ValueError: ``config.json`` is not JSON.
    """
    path = Path(folder) / _CONFIG
    return History(folder) if path.is_file() and _is_training(read_json(path)) else None


def _is_training(config: Any) -> bool:
    return isinstance(config, dict) and isinstance(config.get("algorithm"), str)


def moving_mean(values: Floats, width: int) -> Floats:
    """Return the mean of the ``width`` values around each of N, of as many as there are at the ends.

    NaN takes no part, and stays where it is.

    Args:
        values: [N].
        width: An odd number of at most N.
    """
    if width == 1:
        return values
    known = ~np.isnan(values)
    means = moving_sum(values, width) / np.maximum(moving_sum(known.astype(np.float64), width), 1.0)
    return np.where(known, means, np.nan)


def moving_sum(values: Floats, width: int) -> Floats:
    """Return the sum of the ``width`` values around each of N, NaN counting as 0.

    Args:
        values: [N].
        width: An odd number of at most N.
    """
    # Summed anew for each place: with running sums one huge value would spoil all that come after it.
    return np.convolve(np.nan_to_num(values, nan=0.0), np.ones(width), "same")


def _lines(path: Path) -> Iterator[dict[str, Any] | None]:
    """Yield what each line says; None for one that says nothing."""
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        is_update = isinstance(found, dict) and type(found.get("update")) is int
        yield found if is_update else None


def _number(value: Any) -> float | None:
    """Return a metric, NaN for one that was not finite; None for what is none."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan
