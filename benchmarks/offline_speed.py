"""Updates of offline algorithms beside d3rlpy: ``python -m tetrathlon.benchmarks.offline_speed --peers PYTHON``.

Both learn from the same log with networks of the same size, in turns, each in a process of its own on one thread;
drawing the batch is part of an update. See docs/benchmark.md.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from tetrathlon.benchmarks import machine
from tetrathlon.benchmarks.contender import ContenderError, learn
from tetrathlon.envs.episode import write_aside

_PROGRAMS = Path(__file__).parent / "assets" / "offline"
TARGET = 1.5
"""How many times the updates a processor second of the peer are asked of ours."""


@dataclass(frozen=True, kw_only=True)
class OfflineSpeed:
    """Measure updates a processor second of IQL and TD3+BC beside d3rlpy, on this machine."""

    peers: Annotated[Path, tyro.conf.arg(metavar="PYTHON")]
    """The interpreter of the virtual environment that holds d3rlpy."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Where the result goes, as JSON; default: it is only printed."""
    rounds: int = 5
    """Turns of each; medians count."""
    steps: int = 500
    """Updates of a turn."""
    batch_size: int = 256
    """Transitions of an update."""

    def run(self) -> int:
        """Measure.

        Returns:
            0 where ours reached the target in both, else 1.
        """
        for name in ("rounds", "steps", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name.replace('_', '-')} must be at least 1, got {getattr(self, name)}")
        told = [self._measured(algorithm) for algorithm in ("iql", "td3bc")]
        if self.out is not None:
            result = {
                "command": "python -m tetrathlon.benchmarks.offline_speed --peers PYTHON --out FILE "
                f"--rounds {self.rounds} --steps {self.steps} --batch-size {self.batch_size}",
                "made": machine.now(),
                "commit": machine.commit(),
                **machine.describe(),
                "target": TARGET,
                "comparisons": told,
            }
            write_aside(self.out, (json.dumps(result, indent=1) + "\n").encode())
        return int(any(one["cpu_ratio"] < TARGET for one in told))

    def _measured(self, algorithm: str) -> dict[str, Any]:
        pythons = {"tetrathlon": Path(sys.executable), "d3rlpy": self.peers}
        laps: dict[str, list[dict[str, Any]]] = {name: [] for name in pythons}
        load = []
        for round_ in range(self.rounds):
            options = {"algorithm": algorithm, "steps": self.steps, "batch_size": self.batch_size, "seed": round_}
            for name, python in pythons.items():
                laps[name].append(learn(python, _PROGRAMS / f"update_{name}.py", options))
            load.append(round(os.getloadavg()[0], 2))
        rates = {
            name: {
                "updates_per_cpu_second": statistics.median(self.steps / lap["cpu_seconds"] for lap in of),
                "updates_per_second": statistics.median(self.steps / lap["seconds"] for lap in of),
                "cpu_seconds": [lap["cpu_seconds"] for lap in of],
                "versions": of[-1]["versions"],
            }
            for name, of in laps.items()
        }
        pairs = zip(*(laps[name] for name in pythons), strict=True)
        ratio = statistics.median(peer["cpu_seconds"] / ours["cpu_seconds"] for ours, peer in pairs)
        Console(highlight=False).print(
            f"{algorithm}: {rates['tetrathlon']['updates_per_cpu_second']:.0f} updates a CPU second, d3rlpy "
            f"{rates['d3rlpy']['updates_per_cpu_second']:.0f}: {ratio:.2f} times",
            soft_wrap=True,
        )
        return {"algorithm": algorithm, "cpu_ratio": ratio, "load": load, "contenders": rates}


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        return tyro.cli(OfflineSpeed, prog="python -m tetrathlon.benchmarks.offline_speed").run()
    except (ContenderError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
