"""Environment steps a second of the tool tasks: ``python -m tetrathlon.benchmarks.tool_speed --out FILE``.

A scripted policy, the expert, plays each task: alone, and 64 episodes side by side, as a rollout plays them.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from tetrathlon.agents.policy import ExpertPolicy
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.benchmarks import machine
from tetrathlon.envs.registry import listings, make
from tetrathlon.envs.slots import Slots

SIDE_BY_SIDE = 64
_FIRST_SEED = 1_000


@dataclass(frozen=True, slots=True)
class Lap:
    """One turn of one task."""

    steps: int
    """Environment steps."""
    seconds: float
    """Wall time."""
    cpu_seconds: float
    """Processor time, that of processes that ran tools included."""

    def __add__(self, other: Lap) -> Lap:
        return Lap(self.steps + other.steps, self.seconds + other.seconds, self.cpu_seconds + other.cpu_seconds)


def lap(env_id: str, n: int, threads: int, seconds: float, first: int) -> Lap:
    """Let the expert play for about ``seconds``.

    Args:
        env_id: The task.
        n: Episodes side by side.
        threads: Threads that step them; 0: one after the other.
        seconds: At least how long.
        first: Seed of the first episode; the others follow.
    """
    with closing(Slots(lambda: make(env_id), n, threads=threads)) as slots:
        Rollout(ExpertPolicy(slots.action_space), slots, [Start(seed=seed) for seed in range(n)]).episodes()  # warm
        total = Lap(0, 0.0, 0.0)
        while total.seconds < seconds:
            starts = [Start(seed=first + number) for number in range(n)]
            first += n
            wall, cpu = time.perf_counter(), _cpu()
            episodes = Rollout(ExpertPolicy(slots.action_space), slots, starts).episodes()
            total += Lap(sum(map(len, episodes)), time.perf_counter() - wall, _cpu() - cpu)
            if not all(episode.is_success for episode in episodes) or len(episodes) < n:
                raise RuntimeError(f"{env_id}: not all of the expert's episodes succeeded")
    return total


def _cpu() -> float:
    """Return the processor time of this process and of those that it waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


@dataclass(frozen=True, kw_only=True)
class ToolSpeed:
    """Measure environment steps a second of the tool tasks, on this machine."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Where the result goes, as JSON; default: only the table is printed."""
    rounds: int = 5
    """How often each task has its turn; medians count."""
    seconds: float = 2.0
    """About how long a turn is."""
    threads: int = 2
    """Threads that step the episodes that are side by side."""
    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="ID ...")] = ()
    """Ids of tasks; default: all."""

    def run(self) -> int:
        """Measure, write the result, print the table.

        Raises:
            ValueError: There is no such task, or an option is below its least value.
        """
        ids = [listing.id for listing in listings("tools")]
        if unknown := set(self.only) - set(ids):
            raise ValueError(f"tasks must be among {ids}, got {sorted(unknown)}")
        if self.rounds < 1 or self.seconds <= 0 or self.threads < 0:
            raise ValueError(f"rounds, seconds and threads must be positive, got {self}")
        rows: list[dict[str, Any]] = []
        for env_id in [name for name in ids if name in self.only or not self.only]:
            row: dict[str, Any] = {"env": env_id}
            for name, n, threads in (("alone", 1, 0), ("side_by_side", SIDE_BY_SIDE, self.threads)):
                laps = [lap(env_id, n, threads, self.seconds, _FIRST_SEED * (r + 1)) for r in range(self.rounds)]
                row[name] = {
                    "episodes": n,
                    "threads": threads,
                    "rate": median(one.steps / one.seconds for one in laps),
                    "cpu_rate": median(one.steps / one.cpu_seconds for one in laps),
                    "laps": [[one.steps, one.seconds, one.cpu_seconds] for one in laps],
                }
            rows.append(row)
        result = {
            "command": f"python -m tetrathlon.benchmarks.tool_speed --out FILE --rounds {self.rounds} "
            f"--seconds {self.seconds:g} --threads {self.threads}",
            "made": machine.now(),
            "commit": machine.commit(),
            **machine.describe(),
            "tasks": rows,
        }
        if self.out is not None:
            self.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
        _show(rows, Console())
        return 0


def _show(rows: list[dict[str, Any]], console: Console) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("steps a second", no_wrap=True)
    for heading in ("alone", "per CPU s", f"{SIDE_BY_SIDE} side by side", "per CPU s"):
        table.add_column(heading, justify="right")
    for row in rows:
        rates = [f"{row[name][key]:,.0f}" for name in ("alone", "side_by_side") for key in ("rate", "cpu_rate")]
        table.add_row(row["env"], *rates)
    console.print(table)


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        return tyro.cli(ToolSpeed, prog="python -m tetrathlon.benchmarks.tool_speed").run()
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
