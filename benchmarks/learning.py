"""Whether it learns: ``python -m tetrathlon.benchmarks.learning [NAME ...] --out FOLDER``.

Each experiment trains with several seeds, from the same start or from one for each, looks at the test split before, on
the way and after, and leaves one JSON file. What a kill interrupts goes on from its last checkpoint.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console

from tetrathlon.agents.dependence import has_variants
from tetrathlon.agents.naming import make_policy
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos import ALGORITHMS
from tetrathlon.algos.callbacks import Evaluate
from tetrathlon.algos.run import noted
from tetrathlon.algos.twins import EvaluateTwins
from tetrathlon.benchmarks import machine
from tetrathlon.benchmarks.experiments import EXPERIMENTS, Experiment
from tetrathlon.envs.episode import write_aside
from tetrathlon.envs.registry import make

_CURVE = (
    "success",
    "entropy",
    "length_right",
    "length_wrong",
    "informative_groups",
    "useful_groups",
    "clip_fraction_low",
    "clip_fraction_high",
    "grad_norm",
    "episodes",
    "labels",
)
_LOOK = ("success", "low", "high", "twin", "pair")
_PHASES = ("play", "prepare", "optimize")
_LAST = 5


@dataclass
class _Clock:
    """Adds the CPU seconds of an update to its metrics."""

    begun: float = field(default_factory=time.process_time)

    def __call__(self, number: int, metrics: dict[str, float], /) -> None:
        now = time.process_time()
        metrics["seconds_cpu"], self.begun = now - self.begun, now


def train(experiment: Experiment, seed: int, folder: Path) -> dict[str, Any]:
    """Train with one seed, or go on with it; return what came of it.

    Args:
        experiment: What.
        seed: Of the starts, the dealing and the samples.
        folder: Of the run.
    """
    if len(done := noted(folder)) > experiment.updates:
        return _told(seed, done)
    arguments = {**experiment.arguments, **({"seed": seed} if experiment.own_start else {})}
    env = make(experiment.env, **experiment.kwargs)
    try:
        policy: Any = make_policy(experiment.policy, env, seed=seed, arguments=arguments)
        look: type[Evaluate] = EvaluateTwins if has_variants(env) else Evaluate
    finally:
        env.close()
    if not isinstance(policy, TrainablePolicy):
        raise TypeError(f"policy {experiment.policy!r} of {experiment.name!r} cannot be trained")
    looks = look(
        policy,
        experiment.env,
        kwargs=experiment.kwargs,
        every=experiment.test_every,
        episodes=experiment.test_episodes,
        greedy=experiment.greedy,
    )
    trainer = ALGORITHMS[experiment.algorithm](
        policy,
        experiment.env,
        kwargs=experiment.kwargs,
        run=folder,
        resume=True,
        checkpoint_every=10,
        callbacks=[_Clock(), looks],
        name=experiment.policy,
        arguments=arguments,
        seed=seed,
        **experiment.options,
    )
    try:
        trainer.learn(experiment.updates)
    finally:
        trainer.close()
    return _told(seed, noted(folder))


def _told(seed: int, lines: list[dict[str, Any]]) -> dict[str, Any]:
    looks = [
        {"updates": line["update"] + 1, **{name: line[f"test/{name}"] for name in _LOOK if f"test/{name}" in line}}
        for line in lines
        if "test/success" in line
    ]
    done = [line for line in lines if line["update"] >= 0]
    return {
        "seed": seed,
        "before": looks[0],
        "after": looks[-1],
        "test": looks,
        "train": {name: [line.get(name) for line in done] for name in _CURVE if any(name in line for line in done)},
        "cpu_seconds": sum(line["seconds_cpu"] for line in done),
        "wall_seconds": sum(line.get(f"seconds_{phase}", 0.0) for line in done for phase in _PHASES),
    }


def report(experiment: Experiment, runs: list[dict[str, Any]], command: str) -> dict[str, Any]:
    """Return what is kept of an experiment."""
    after = [run["after"]["success"] for run in runs]
    return {
        "experiment": experiment.as_dict(),
        "command": command,
        "machine": machine.describe(),
        "commit": machine.commit(),
        "summary": {
            "before": float(np.mean([run["before"]["success"] for run in runs])),
            "after": float(np.mean(after)),
            "least_after": min(after),
            **_pairs(runs),
            "aim": experiment.aim,
            "cpu_seconds": float(np.mean([run["cpu_seconds"] for run in runs])),
            "last": {name: _last([run["train"][name] for run in runs if name in run["train"]]) for name in _CURVE},
        },
        "runs": runs,
    }


def _pairs(runs: list[dict[str, Any]]) -> dict[str, float]:
    """Return how often pictures and their twins were both right, where there are twins."""
    return {
        f"pair_{when}": float(np.mean([run[when]["pair"] for run in runs]))
        for when in ("before", "after")
        if all("pair" in run[when] for run in runs)
    }


def _last(curves: list[list[float | None]]) -> dict[str, float] | None:
    """Return the mean over the last updates of each seed, its mean and deviation over the seeds."""
    ends = [[value for value in curve[-_LAST:] if value is not None] for curve in curves]
    means = [float(np.mean(end)) for end in ends if end]
    return {"mean": float(np.mean(means)), "std": float(np.std(means)), "seeds": len(means)} if means else None


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Train, and tell before and after on held-out instances."""

    names: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Which experiments; default: all."""
    out: Path
    """Folder for one JSON file an experiment."""
    runs: Path = Path("runs/learning")
    """Folder of the training runs; one that is there goes on."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds."""
    keep: bool = True
    """Keep the checkpoints of finished runs."""


def main(words: list[str]) -> int:
    """Run what the command line asks for."""
    arguments = tyro.cli(Arguments, args=words, prog="python -m tetrathlon.benchmarks.learning")
    known: Mapping[str, Experiment] = {experiment.name: experiment for experiment in EXPERIMENTS}
    if unknown := [name for name in arguments.names if name not in known]:
        print(f"there is no experiment {unknown[0]!r} (there are {', '.join(known)})", file=sys.stderr)
        return 2
    console = Console(highlight=False)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or known:
        experiment = known[name]
        runs = []
        for seed in arguments.seeds:
            folder = arguments.runs / f"{name}-{seed}"
            runs.append(train(experiment, seed, folder))
            if not arguments.keep:
                shutil.rmtree(folder / "checkpoints", ignore_errors=True)
            console.print(_line(name, runs[-1]), soft_wrap=True)
        command = f"python -m tetrathlon.benchmarks.learning {name} --seeds {' '.join(map(str, arguments.seeds))}"
        found = report(experiment, runs, f"{command} --out FOLDER")
        write_aside(arguments.out / f"{name}.json", (json.dumps(found, indent=1) + "\n").encode())
    return 0


def _line(name: str, run: Mapping[str, Any]) -> str:
    before, after = run["before"], run["after"]
    pairs = f", pairs {before['pair']:.3f} -> {after['pair']:.3f}" if "pair" in after else ""
    return (
        f"{name} seed {run['seed']}: {before['success']:.3f} [{before['low']:.3f}, {before['high']:.3f}] -> "
        f"{after['success']:.3f} [{after['low']:.3f}, {after['high']:.3f}]{pairs}, {run['cpu_seconds']:.0f} CPU s"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
