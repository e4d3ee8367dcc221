"""PPO that walks, beside Stable-Baselines3: ``python -m tetrathlon.benchmarks.locomotion --peers PYTHON --out FILE``.

HalfCheetah-v5 and Hopper-v5 of Gymnasium; seed by seed and in turns. See docs/benchmark.md.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from tetrathlon.agents.statistics import stratified_bootstrap
from tetrathlon.benchmarks import machine
from tetrathlon.benchmarks.contender import ContenderError, learn
from tetrathlon.envs.episode import write_aside

_PROGRAMS = Path(__file__).parent / "assets" / "locomotion"
CONTENDERS = ("ours", "sb3")

_POLICY = {"hidden": [256, 256], "activation": "relu", "log_std": -2.0, "normalize_observations": True}
_SHARED = {"groups": 8, "horizon": 64, "piece": 1, "minibatches": 4, "epochs": 10, "scale_rewards": True}
PRESETS: dict[str, dict[str, Any]] = {
    "HalfCheetah-v5": {
        "policy": _POLICY,
        "options": {
            **_SHARED,
            "gamma": 0.98,
            "lam": 0.92,
            "lr": 6e-5,
            "value_lr": 1e-4,
            "entropy_coef": 0.000401762,
            "clip_low": 0.1,
            "clip_high": 0.1,
            "max_grad_norm": 0.8,
            "value_coef": 1.16192,
        },
    },
    "Hopper-v5": {
        "policy": _POLICY,
        "options": {
            **_SHARED,
            "gamma": 0.999,
            "lam": 0.99,
            "lr": 2e-4,
            "value_lr": 2e-4,
            "entropy_coef": 0.00229519,
            "max_grad_norm": 0.7,
            "value_coef": 1.67134,
        },
    },
}
"""Ours: networks, discounts, coefficients and 512 environment steps a batch are the peer's (our value loss is half of
its). These steps come from 8 slots instead of one, and are learnt in fewer, larger minibatches at a larger learning
rate; chosen on seeds 10 and 11."""


@dataclass(frozen=True, kw_only=True)
class Locomotion:
    """Measure what PPO reaches and how fast, beside Stable-Baselines3, on this machine.

    What is in the file of the result already is not run again.
    """

    peers: Annotated[Path, tyro.conf.arg(metavar="PYTHON")]
    """The interpreter of the virtual environment that holds stable-baselines3 and gymnasium[mujoco]."""
    out: Annotated[Path, tyro.conf.arg(metavar="FILE")]
    """Where the result goes, as JSON, after each run."""
    envs: Annotated[tuple[str, ...], tyro.conf.arg(metavar="ID ...")] = tuple(PRESETS)
    """Where they learn."""
    seeds: Annotated[tuple[int, ...], tyro.conf.arg(metavar="N ...")] = (0, 1, 2, 3, 4)
    """Seeds of the runs, the same for both."""
    env_steps: int = 300_000
    """Environment steps of a run."""

    def run(self) -> int:
        """Measure what is missing, write the result, print the table.

        Returns:
            0 where on each environment ours is within the peer's interval or above it, and at least as fast; else 1.

        Raises:
            ContenderError: A contender failed; or there is no such environment; or the file holds runs with other
                settings.
        """
        if strange := [env_id for env_id in self.envs if env_id not in PRESETS]:
            raise ContenderError(f"envs must be of {', '.join(PRESETS)}; got {', '.join(strange)}")
        runs = self._found()
        for seed in self.seeds:
            for env_id in self.envs:
                for name in CONTENDERS:
                    if _of(runs, env_id, name, seed):
                        continue
                    load = round(os.getloadavg()[0], 2)
                    found = _learn(self._python(name), name, self._options(env_id, name, seed))
                    runs.append({"env": env_id, "contender": name, "seed": seed, "load": load, **found})
                    self._write(runs)
        verdicts = [_verdict(runs, env_id, self.seeds) for env_id in self.envs]
        _show(verdicts, Console())
        return int(not all(verdict["within"] and verdict["as_fast"] for verdict in verdicts))

    def _found(self) -> list[dict[str, Any]]:
        if not self.out.exists():
            return []
        data = json.loads(self.out.read_text("utf-8"))
        if (data["env_steps"], data["presets"]) != (self.env_steps, json.loads(json.dumps(PRESETS))):
            raise ContenderError(f"{self.out} holds runs with other presets or other than {self.env_steps} steps")
        return list(data["runs"])

    def _write(self, runs: list[dict[str, Any]]) -> None:
        result = {
            "command": f"python -m tetrathlon.benchmarks.locomotion --peers PYTHON --out FILE --envs "
            f"{' '.join(self.envs)} --seeds {' '.join(map(str, self.seeds))} --env-steps {self.env_steps}",
            "made": machine.now(),
            "commit": machine.commit(),
            **machine.describe(),
            "env_steps": self.env_steps,
            "presets": PRESETS,
            "runs": runs,
        }
        write_aside(self.out, (json.dumps(result, indent=1) + "\n").encode())  # a kill in between loses no run

    def _python(self, name: str) -> Path:
        return Path(sys.executable) if name == "ours" else self.peers

    def _options(self, env_id: str, name: str, seed: int) -> dict[str, Any]:
        own = PRESETS[env_id] if name == "ours" else {}
        return {"env_id": env_id, "env_steps": self.env_steps, "seed": seed, **own}


def _of(runs: list[dict[str, Any]], env_id: str, name: str, seed: int) -> dict[str, Any] | None:
    """Return a run that was made already."""
    return next((run for run in runs if (run["env"], run["contender"], run["seed"]) == (env_id, name, seed)), None)


def _learn(python: Path, program: str, options: dict[str, Any]) -> dict[str, Any]:
    """Let one contender learn."""
    return learn(python, _PROGRAMS / f"{program}.py", options)


def _verdict(runs: list[dict[str, Any]], env_id: str, seeds: tuple[int, ...]) -> dict[str, Any]:
    """Return mean and interval over seeds of what each contender reached, its pace, and how ours compares."""
    told: dict[str, Any] = {"env": env_id}
    for name in CONTENDERS:
        chosen = [run for seed in seeds if (run := _of(runs, env_id, name, seed)) is not None]
        reached = stratified_bootstrap({name: [fmean(run["returns"]) for run in chosen]}, statistic=np.mean)
        spent = sum(run["cpu_seconds"] for run in chosen)
        told[name] = {
            **reached._asdict(),
            "cpu_seconds": spent / len(chosen),
            "pace": sum(run["env_steps"] for run in chosen) / spent,
        }
    ours, peer = told["ours"], told["sb3"]
    return {**told, "within": ours["mean"] >= peer["low"], "as_fast": ours["pace"] >= peer["pace"]}


def _show(verdicts: list[dict[str, Any]], console: Console) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("environment", "", "return", "95 %", "CPU s a run", "steps a CPU s"):
        table.add_column(heading, justify="right" if heading[:1] in "rC9s" and heading else "left", no_wrap=True)
    for verdict in verdicts:
        for name in CONTENDERS:
            one = verdict[name]
            interval = f"{one['low']:.0f} to {one['high']:.0f}"
            where = verdict["env"] if name == CONTENDERS[0] else ""
            table.add_row(
                where, name, f"{one['mean']:.0f}", interval, f"{one['cpu_seconds']:.0f}", f"{one['pace']:.0f}"
            )
    console.print(table)


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        return tyro.cli(Locomotion, prog="python -m tetrathlon.benchmarks.locomotion").run()
    except (ContenderError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
