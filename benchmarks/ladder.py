"""Imitation, DAgger and reinforcement learning of a robot task: ``python -m tetrathlon.benchmarks.ladder --out FILE``.

PushToZone from pixels and words. Each rung trains one policy; beside what learns on stands what learns as many episodes
and steps from demonstrations alone. What is in the file of the result already is not run again. See docs/benchmark.md.
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import torch
import tyro
from rich.console import Console
from rich.table import Table

from tetrathlon.agents.statistics import wilson
from tetrathlon.agents.vla import VLAPolicy
from tetrathlon.algos import BC, GRPO, PPO, DAgger
from tetrathlon.benchmarks import machine
from tetrathlon.benchmarks.ladder_plays import EPISODES, TASK, arguments, demonstrations, loss, measure
from tetrathlon.benchmarks.rungs import RUNGS, Rung
from tetrathlon.envs.episode import Episode, write_aside
from tetrathlon.envs.registry import make
from tetrathlon.envs.robots.senses import Observation

_LEARNERS: Mapping[str, Any] = {"bc": BC, "dagger": DAgger, "ppo": PPO, "grpo": GRPO}


class _Seed:
    """One seed: what it was shown, and the weights of its rungs.

    Args:
        seed: Of everything.
        folder: Of the weights.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed, self.folder = seed, folder
        self._known: dict[tuple[Observation, bool], list[Episode]] = defaultdict(list)

    def run(self, rung: Rung) -> dict[str, Any]:
        """Train a rung, keep its weights, and return how it does."""
        policy = self._policy(rung)
        shown = self._shown(rung)
        started, cpu = time.perf_counter(), time.process_time()
        given = {"demonstrations": shown} if rung.learner in ("bc", "dagger") else {}
        kwargs = {**arguments(rung.observation), **rung.kwargs}
        learner = partial(_LEARNERS[rung.learner], policy, TASK, kwargs=kwargs, **given)
        if rung.critic_updates:
            with contextlib.closing(learner(seed=self._first + 600_000, **{**rung.options, "lr": 0.0})) as critic:
                critic.learn(rung.critic_updates)
        trainer = learner(seed=self._first + 400_000, **rung.options)
        with contextlib.closing(trainer):
            history = trainer.learn(rung.updates)
        spent = {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - cpu}
        torch.save(policy.state_dict(), self._weights(rung.name))
        kept = [{name: value for name, value in line.items() if name in _CURVE} for line in history]
        tried = measure(policy, rung.observation)
        return {**spent, "loss": loss(policy, rung.observation), "tried": tried, "train": kept}

    @property
    def _first(self) -> int:
        """Seeds of episodes are from this one on, below that of the next."""
        return 1_000_000 * (self.seed + 1)

    def _shown(self, rung: Rung) -> list[Episode]:
        """Return the demonstrations of a rung: those of fewer are among those of more."""
        shown: list[Episode] = []
        for narrow, n in ((True, rung.narrow), (False, rung.wide)):
            known = self._known[rung.observation, narrow]
            if (more := n - len(known)) > 0:
                first = self._first + 200_000 * narrow
                known += demonstrations(rung.observation, first, more, narrow=narrow, skip=len(known))
            shown += known[:n]
        return shown

    def _policy(self, rung: Rung) -> VLAPolicy:
        env = make(TASK, **arguments(rung.observation))
        policy = VLAPolicy(env.observation_space, env.action_space, head=rung.head, log_std=-1.0, seed=self.seed)
        env.close()
        if rung.start is not None:
            weights = torch.load(self._weights(rung.start), weights_only=False)
            policy.load_state_dict(weights, strict=rung.deviation is None)  # what L1 says becomes a Gaussian's mean
        if rung.frozen:
            policy.add_critic("shared")
            policy.trunk.requires_grad_(False)
        if rung.deviation is not None:
            policy.get_parameter("distribution.of.log_std").data.fill_(math.log(rung.deviation))
        return policy

    def _weights(self, name: str) -> Path:
        return self.folder / f"{name}-{self.seed}.pt"


_CURVE = ("success", "own_success", "episodes", "labels", "queries", "interventions", "dataset", "bc_loss", "entropy")


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """Train the rungs, seed by seed, and try each policy on the test split."""

    out: Annotated[Path, tyro.conf.arg(metavar="FILE")]
    """Where the result goes, as JSON, after each rung."""
    weights: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("runs/ladder")
    """Where weights are kept; a rung that begins with those of another finds them there."""
    rungs: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")] = tuple(rung.name for rung in RUNGS)
    """Which rungs."""
    seeds: Annotated[tuple[int, ...], tyro.conf.arg(metavar="N ...")] = (0, 1, 2)
    """Seeds."""

    def run(self) -> int:
        """Run what is missing, and print each rung.

        Raises:
            ValueError: There is no such rung.
        """
        known = {rung.name: rung for rung in RUNGS}
        if strange := [name for name in self.rungs if name not in known]:
            raise ValueError(f"rungs are {', '.join(known)}; got {', '.join(strange)}")
        torch.set_num_threads(1)
        self.weights.mkdir(parents=True, exist_ok=True)
        console = Console(highlight=False, width=None if sys.stdout.isatty() else 150)
        runs = json.loads(self.out.read_text("utf-8"))["runs"] if self.out.exists() else []
        for number in self.seeds:
            seed = _Seed(number, self.weights)
            for name in self.rungs:
                if any((run["rung"], run["seed"]) == (name, number) for run in runs):
                    continue
                runs.append({"rung": name, "seed": number, **seed.run(known[name])})
                self._write(runs)
                console.print(_line(runs[-1]), soft_wrap=True)
        console.print(table(runs))
        return 0

    def _write(self, runs: list[dict[str, Any]]) -> None:
        used = {run["rung"] for run in runs}
        result = {
            "command": f"python -m tetrathlon.benchmarks.ladder --out FILE --seeds {' '.join(map(str, self.seeds))}",
            "made": machine.now(),
            "commit": machine.commit(),
            **machine.describe(),
            "task": {"id": TASK, "tried": EPISODES},
            "rungs": [asdict(rung) for rung in RUNGS if rung.name in used],
            "runs": runs,
        }
        write_aside(self.out, (json.dumps(result, indent=1) + "\n").encode())  # a kill in between loses no rung


def _line(run: Mapping[str, Any]) -> str:
    told = ", ".join(f"{kind} {each['success']['mean']:.3f}" for kind, each in run["tried"].items())
    return f"{run['rung']} seed {run['seed']}: {told}; loss {run['loss']:.3f}; {run['cpu_seconds']:.0f} CPU s"


def table(runs: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of rungs: over all seeds, success with its Wilson interval, and what else counts."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    headings = ("rung", "test", "95 %", "recovery", "blank", "swapped", "other", "steps", "cost", "CVaR", "collisions")
    for heading in (*headings, "loss", "CPU s"):
        shown.add_column(heading, justify="left" if heading == "rung" else "right", no_wrap=True)
    for rung in dict.fromkeys(run["rung"] for run in runs):
        chosen = [run for run in runs if run["rung"] == rung]

        mean = partial(_mean, chosen)
        tests = [run["tried"]["test"]["success"] for run in chosen]
        count = sum(test["n"] for test in tests)
        rate = sum(test["mean"] * test["n"] for test in tests) / count
        low, high = wilson(rate * count, count)
        success = [mean("tried", kind, "success", "mean") for kind in ("recovery", "blank", "swapped", "other")]
        costs = [mean("tried", "test", "costs", *part) for part in (("total", "mean"), ("total", "cvar"))]
        cells = [
            f"{100 * rate:.1f}",
            f"{100 * low:.1f} to {100 * high:.1f}",
            *("" if value is None else f"{100 * value:.0f}" for value in success),
            f"{mean('tried', 'test', 'steps') or 0.0:.0f}",
            *(f"{cost or 0.0:.1f}" for cost in costs),
            f"{100 * (mean('tried', 'test', 'costs', 'collision', 'share') or 0.0):.0f}",
            f"{mean('loss'):.2f}",
            f"{mean('cpu_seconds'):.0f}",
        ]
        shown.add_row(rung, *cells)
    return shown


def _mean(runs: Sequence[Mapping[str, Any]], *path: str) -> float | None:
    """Return the mean over runs of what is at a path; None where there is nothing."""
    found: list[Any] = list(runs)
    for key in path:
        found = [part.get(key) for part in found if part is not None]
    known = [float(value) for value in found if value is not None]
    return fmean(known) if known else None


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        return tyro.cli(Ladder, prog="python -m tetrathlon.benchmarks.ladder").run()
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
