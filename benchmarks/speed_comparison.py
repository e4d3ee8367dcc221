"""A speed comparison: contenders that take turns in rounds, and the ratios of each round."""

from __future__ import annotations

import contextlib
import math
import os
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tetrathlon.benchmarks.speed_contender import Contender, Lap, Runner

_FIRST_LAP = 0.1  # share of a round that is long enough to tell the rate from


@dataclass(frozen=True, slots=True)
class Comparison:
    """Who is measured against whom, at what."""

    name: str
    """A name to choose it by."""
    task: str
    """What an episode is, in a line."""
    ours: Contender
    """Runs in this interpreter."""
    peers: Sequence[Contender]
    """Run in the interpreter of the peers."""
    target: float | None = None
    """How many times the speed of the first peer is asked of ours."""

    def run(self, pythons: tuple[str, str], rounds: int, seconds: float) -> dict[str, Any]:
        """Warm everybody up, then let them play in turn.

        Args:
            pythons: Our interpreter, and that of the peers.
            rounds: How often each has its turn.
            seconds: About how long a turn is.

        Returns:
            JSON: laps, medians and ratios.

        Raises:
            ContenderError: Somebody fails.
        """
        everybody = (self.ours, *self.peers)
        with contextlib.ExitStack() as stack:
            runners = [stack.enter_context(Runner(one, pythons[i > 0])) for i, one in enumerate(everybody)]
            episodes = [_episodes_in(runner, seconds) for runner in runners]
            turns = []
            for _ in range(rounds):
                laps = [runner.play(n) for runner, n in zip(runners, episodes, strict=True)]
                turns.append((laps, round(os.getloadavg()[0], 2)))
        by_runner = list(zip(*(laps for laps, _ in turns), strict=True))
        return {
            "name": self.name,
            "task": self.task,
            "target": self.target,
            "load": [load for _, load in turns],
            "contenders": [
                _summary(runner, laps, by_runner[0]) for runner, laps in zip(runners, by_runner, strict=True)
            ],
        }


def chosen(comparisons: Sequence[Comparison], only: Sequence[str], rounds: int, seconds: float) -> list[Comparison]:
    """Return the comparisons that a command line asks for: all, or those named by ``--only``.

    Raises:
        ValueError: There is none of a name, or ``--rounds`` or ``--seconds`` is out of its range.
    """
    names = [comparison.name for comparison in comparisons]
    if unknown := [name for name in only if name not in names]:
        raise ValueError(f"--only must name some of {', '.join(names)}, got {', '.join(unknown)}")
    if rounds < 1 or not seconds > 0:
        raise ValueError(f"--rounds must be at least 1 and --seconds above 0, got {rounds} and {seconds}")
    return [comparison for comparison in comparisons if not only or comparison.name in only]


def _episodes_in(runner: Runner, seconds: float) -> int:
    """Warm ``runner`` up and return how many episodes it plays in about ``seconds``."""
    episodes = 1
    while (lap := runner.play(episodes)).seconds < _FIRST_LAP * seconds:
        episodes *= 2 if lap.seconds > 0.01 * seconds else 8
    return max(1, math.ceil(lap.rate * seconds))


def _summary(runner: Runner, laps: Sequence[Lap], ours: Sequence[Lap]) -> dict[str, Any]:
    ratios = [our.rate / lap.rate for our, lap in zip(ours, laps, strict=True)]
    return {
        "name": runner.contender.name,
        "program": runner.contender.program.name,
        "options": dict(runner.contender.options),
        "versions": runner.versions,
        "rate": statistics.median(lap.rate for lap in laps),
        "cpu_rate": statistics.median(lap.cpu_rate for lap in laps),
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "cpu_ratio": statistics.median(our.cpu_rate / lap.cpu_rate for our, lap in zip(ours, laps, strict=True)),
        "laps": [asdict(lap) for lap in laps],
    }
