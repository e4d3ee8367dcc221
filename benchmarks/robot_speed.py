"""Environment steps a second of our batch of robots: ``python -m tetrathlon.benchmarks.robot_speed --out FILE``.

N copies of PushToZone in the batch, and N single environments in Gymnasium's vectors, take turns with random actions.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tetrathlon.benchmarks import machine
from tetrathlon.benchmarks.contender import ContenderError
from tetrathlon.benchmarks.speed_comparison import Comparison, chosen
from tetrathlon.benchmarks.speed_contender import Contender

_PROGRAM = Path(__file__).parent / "assets" / "robot_speed" / "steps.py"
_TASK = "tetrathlon/PushToZone-v0"
TARGETS: dict[int, dict[str, float]] = {16: {"sync": 2.5, "async": 3.5}, 64: {"sync": 3.0, "async": 4.0}}
"""How many times the speed of a peer is asked of the batch on two threads in state mode, by N."""


def _comparison(robot: str, observation: str, n: int) -> Comparison:
    kwargs = {"robot": robot, "observation": observation, "reward": "dense"}

    def contender(name: str, kind: str, **options: Any) -> Contender:
        return Contender(name, _PROGRAM, {"kind": kind, "env_id": _TASK, "n": n, "kwargs": kwargs, **options})

    return Comparison(
        f"{robot}-{observation}-{n}",
        f"{n} of {_TASK} with the {robot}, {'pictures of 64 x 64' if observation == 'pixels' else 'numbers alone'}",
        contender("batch, 2 threads", "batch", threads=2),
        (
            contender("sync", "sync"),
            contender("async", "async"),
            contender("batch, 1 thread", "batch", threads=1),
            contender("single", "single"),
        ),
    )


COMPARISONS = tuple(
    _comparison(robot, observation, n)
    for robot, observation, n in (
        ("pusher", "state", 16),
        ("pusher", "state", 64),
        ("arm", "state", 16),
        ("arm", "state", 64),
        ("pusher", "pixels", 16),
        ("pusher", "pixels", 64),
    )
)


@dataclass(frozen=True, kw_only=True)
class RobotSpeed:
    """Measure environment steps a second of the batch of robots beside Gymnasium's vectors, on this machine."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Where the result goes, as JSON; default: only the table is printed."""
    rounds: int = 7
    """How often each contender has its turn; medians count."""
    seconds: float = 2.0
    """About how long a turn is."""
    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")] = ()
    """Names of comparisons; default: all."""

    def run(self, comparisons: tuple[Comparison, ...] = COMPARISONS) -> int:
        """Measure, write the result, print the table.

        Returns:
            0, or 1 where a target was missed.

        Raises:
            ContenderError: A contender failed.
            ValueError: An option is out of its range.
        """
        measured = []
        for comparison in chosen(comparisons, self.only, self.rounds, self.seconds):
            row = comparison.run((sys.executable, sys.executable), self.rounds, self.seconds)
            measured.append(_in_steps(row, comparison.ours.options))
            _show(measured[-1], Console())
        result = {"command": self._command(), "made": machine.now(), "commit": machine.commit(), **machine.describe()}
        if self.out is not None:
            self.out.write_text(json.dumps({**result, "comparisons": measured}, indent=1) + "\n", "utf-8")
        return int(not all(met(one) for one in measured))

    def _command(self) -> str:
        """Return the command that repeats this run, without the paths of this machine."""
        only = f" --only {' '.join(self.only)}" if self.only else ""
        return (
            f"python -m tetrathlon.benchmarks.robot_speed --out FILE --rounds {self.rounds} "
            f"--seconds {self.seconds:g}{only}"
        )


def _in_steps(measured: dict[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Count environment steps, of which what a program calls an episode is N, and ask for a speed by peer."""
    n = options["n"]
    for row in measured["contenders"]:
        row["rate"], row["cpu_rate"] = n * row["rate"], n * row["cpu_rate"]
        row["laps"] = [
            {"steps": n * lap["episodes"], "seconds": lap["seconds"], "cpu_seconds": lap["cpu_seconds"]}
            for lap in row["laps"]
        ]
    del measured["target"]
    return {**measured, "targets": TARGETS.get(n, {}) if options["kwargs"]["observation"] == "state" else {}}


def met(measured: Mapping[str, Any]) -> bool:
    """Tell whether the batch is as many times as fast as each peer as was asked."""
    ratios = {row["name"]: row["ratio"] for row in measured["contenders"]}
    return all(ratios[peer] >= target for peer, target in measured["targets"].items())


def _show(measured: Mapping[str, Any], console: Console) -> None:
    console.print(Text(f"\n{measured['name']}: {measured['task']}", style="bold"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True, min_width=16)
    for heading in ("steps/s", "ratio", "rounds", "asked", "per CPU s", "CPU ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    for i, row in enumerate(measured["contenders"]):
        ratios = (f"{row['ratio']:.2f}", f"{min(row['ratios']):.2f} - {max(row['ratios']):.2f}") if i else ("", "")
        asked = measured["targets"].get(row["name"])
        table.add_row(
            Text(row["name"]),
            f"{row['rate']:,.0f}",
            *ratios,
            f"{asked:g}" if asked else "",
            f"{row['cpu_rate']:,.0f}",
            f"{row['cpu_ratio']:.2f}" if i else "",
        )
    console.print(table)


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        return tyro.cli(RobotSpeed, prog="python -m tetrathlon.benchmarks.robot_speed").run()
    except (ContenderError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
