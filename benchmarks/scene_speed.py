"""Scenes a second of the vision tasks, one core: ``python -m tetrathlon.benchmarks.scene_speed --out FILE``.

A scene is a reset with its picture: an instance drawn with all its variants, and the full one rendered.
"""

from __future__ import annotations

import json
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

from tetrathlon.benchmarks import machine
from tetrathlon.envs.registry import listings, make

_WARM = 20


@dataclass(frozen=True, kw_only=True)
class SceneSpeed:
    """Measure scenes a second of the vision tasks, on this machine."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Where the result goes, as JSON; default: only the table is printed."""
    rounds: int = 5
    """How often each task has its turn; medians count."""
    scenes: int = 200
    """How many a turn."""

    def run(self) -> int:
        """Measure, write the result, print the table.

        Raises:
            ValueError: An option is below 1.
        """
        if self.rounds < 1 or self.scenes < 1:
            raise ValueError(f"rounds and scenes must be at least 1, got {self.rounds} and {self.scenes}")
        ids = [listing.id for listing in listings("vision")]
        laps: dict[str, list[tuple[float, float]]] = {env_id: [] for env_id in ids}
        sizes: dict[str, int] = {}
        for number in range(self.rounds):
            for env_id in ids:
                with closing(make(env_id)) as env:
                    sizes[env_id] = env.observation_space["image"].shape[0]  # type: ignore[index]
                    for seed in range(_WARM):
                        env.reset(seed=seed)
                    wall, cpu = time.perf_counter(), time.process_time()
                    for seed in range(self.scenes):
                        env.reset(seed=_WARM + number * self.scenes + seed)
                    laps[env_id].append((time.perf_counter() - wall, time.process_time() - cpu))
        rows: list[dict[str, Any]] = [
            {
                "env": env_id,
                "size": sizes[env_id],
                "rate": median(self.scenes / wall for wall, _ in found),
                "cpu_rate": median(self.scenes / cpu for _, cpu in found),
                "laps": [[self.scenes, wall, cpu] for wall, cpu in found],
            }
            for env_id, found in laps.items()
        ]
        result = {
            "command": "python -m tetrathlon.benchmarks.scene_speed --out FILE "
            f"--rounds {self.rounds} --scenes {self.scenes}",
            "made": machine.now(),
            "commit": machine.commit(),
            **machine.describe(),
            "tasks": rows,
        }
        if self.out is not None:
            self.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for heading in ("task", "pixels", "scenes/s", "per CPU s"):
            table.add_column(heading, justify="left" if heading == "task" else "right")
        for row in rows:
            table.add_row(row["env"], str(row["size"]), f"{row['rate']:,.0f}", f"{row['cpu_rate']:,.0f}")
        Console().print(table)
        return 0


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        return tyro.cli(SceneSpeed, prog="python -m tetrathlon.benchmarks.scene_speed").run()
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
