"""PPO on CartPole-v1 beside Stable-Baselines3: ``python -m tetrathlon.benchmarks.cartpole --peers PYTHON --out FILE``.

Each learns, seed by seed and in turns, until its greedy episodes last 475 steps. See docs/benchmark.md.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from tetrathlon.benchmarks import machine
from tetrathlon.benchmarks.contender import ContenderError, learn

_PROGRAMS = Path(__file__).parent / "assets" / "cartpole"

PRESET: dict[str, Any] = {
    "groups": 32,
    "horizon": 32,
    "epochs": 10,
    "minibatches": 2,
    "gamma": 0.98,
    "lam": 0.9,
    "lr": 3e-3,
    "value_lr": 5e-3,
    "decay": "linear",
    "max_grad_norm": 0.5,
}
"""Options of our PPO, chosen on seeds 10 to 13. Twenty optimizer steps of 512 decisions follow on 1,024 environment
steps, at a larger learning rate; in the peer's preset twenty of 256 follow on 256."""


@dataclass(frozen=True, kw_only=True)
class CartPole:
    """Measure the processor seconds until PPO balances the pole, beside Stable-Baselines3, on this machine."""

    peers: Annotated[Path, tyro.conf.arg(metavar="PYTHON")]
    """The interpreter of the virtual environment that holds stable-baselines3."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Where the result goes, as JSON; default: only the table is printed."""
    seeds: Annotated[tuple[int, ...], tyro.conf.arg(metavar="N ...")] = (0, 1, 2)
    """Seeds of the runs, the same for both."""
    env_steps: int = 100_000
    """Most environment steps of a run; learning rates fall to 0 over them."""
    interval: int = 1024
    """Environment steps from one check to the next."""

    def run(self) -> int:
        """Measure, write the result, print the table.

        Returns:
            0 where ours took no more processor seconds than the peer on each seed, else 1.

        Raises:
            ContenderError: A contender failed.
        """
        runs = []
        options = {"env_steps": self.env_steps, "interval": self.interval}
        for seed in self.seeds:
            ours = _learn(Path(sys.executable), "ours", {**options, **PRESET, "seed": seed})
            peer = _learn(self.peers, "sb3", {**options, "seed": seed})
            within = _within(ours, peer)
            runs.append(
                {"seed": seed, "within": within, "load": round(os.getloadavg()[0], 2), "ours": ours, "sb3": peer}
            )
            _show(runs[-1], Console())
        result = {"command": self._command(), "made": machine.now(), "commit": machine.commit(), **machine.describe()}
        if self.out is not None:
            self.out.write_text(json.dumps({**result, "preset": PRESET, "runs": runs}, indent=1) + "\n", "utf-8")
        return int(not all(run["within"] for run in runs))

    def _command(self) -> str:
        """Return the command that repeats this run, without the paths of this machine."""
        seeds = " ".join(map(str, self.seeds))
        return (
            f"python -m tetrathlon.benchmarks.cartpole --peers PYTHON --out FILE --seeds {seeds} "
            f"--env-steps {self.env_steps} --interval {self.interval}"
        )


def _learn(python: Path, program: str, options: dict[str, Any]) -> dict[str, Any]:
    """Let one contender learn."""
    return learn(python, _PROGRAMS / f"{program}.py", options)


def _within(ours: dict[str, Any], peer: dict[str, Any]) -> bool:
    """Tell whether ours reached the goal in the processor seconds of the peer, or at all where the peer did not."""
    if ours["reached"] is None:
        return False
    return peer["reached"] is None or ours["reached"]["cpu_seconds"] <= peer["reached"]["cpu_seconds"]


def _show(run: dict[str, Any], console: Console) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in (f"seed {run['seed']}", "CPU seconds", "environment steps", "confirmed", "CPU s per 1000"):
        table.add_column(heading, justify="left" if heading.startswith("seed") else "right", no_wrap=True, min_width=8)
    for name in ("ours", "sb3"):
        last, reached = run[name]["curve"][-1], run[name]["reached"]
        pace = f"{1000 * last['cpu_seconds'] / last['env_steps']:.3f}"
        told = ("not reached", "", "")
        if reached is not None:
            told = (f"{reached['cpu_seconds']:.1f}", f"{reached['env_steps']:,}", f"{reached['confirmed']:.0f}")
        table.add_row(name, *told, pace)
    console.print(table)


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        return tyro.cli(CartPole, prog="python -m tetrathlon.benchmarks.cartpole").run()
    except (ContenderError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
