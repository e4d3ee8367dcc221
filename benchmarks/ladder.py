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
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import tyro
from rich.console import Console

from tetrathlon.agents.chunks import Head
from tetrathlon.agents.vla import VLAPolicy
from tetrathlon.algos import BC, GRPO, PPO, DAgger
from tetrathlon.benchmarks import machine
from tetrathlon.benchmarks.ladder_plays import EPISODES, TASK, arguments, demonstrations, loss, measure
from tetrathlon.envs.episode import Episode, write_aside
from tetrathlon.envs.registry import make
from tetrathlon.envs.robots.senses import Observation

_LEARNERS: Mapping[str, Any] = {"bc": BC, "dagger": DAgger, "ppo": PPO, "grpo": GRPO}
_BC_UPDATES = 20  # the learning rate falls from one update to the next


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One way of training."""

    name: str
    """Its name."""
    what: str
    """What it learns from, in a few words."""
    learner: Literal["bc", "dagger", "ppo", "grpo"] = "bc"
    """How it learns."""
    head: Head = "l1"
    """How the policy decides."""
    observation: Observation = "pixels"
    """What it sees."""
    start: str | None = None
    """Whose weights it begins with; None: it begins from nothing."""
    narrow: int = 0
    """Demonstrations in which the hand begins behind the object."""
    wide: int = 0
    """Demonstrations from all starts."""
    updates: int = _BC_UPDATES
    """How many."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the algorithm."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Of the environment that is learnt in."""
    deviation: float | None = None
    """Standard deviation of the actions with which play begins; None: as it was learnt."""
    critic_updates: int = 0
    """Updates before the others in which the critic alone learns."""
    frozen: bool = False
    """Whether what sees and reads stays as it is, and the critic sees by it."""


_BC = {"lr": 2e-3, "decay": "cosine"}
_PPO = {"horizon": 32, "piece": 1, "minibatches": 16, "lr": 3e-4, "gamma": 0.99, "lam": 0.95}
_DAGGER = {"beta": 0.5, "beta_decay": 0.8, "lr": 1e-3}
_DENSE = {"reward": "dense"}

RUNGS: tuple[Rung, ...] = (
    Rung(name="narrow", what="300 narrow demonstrations", narrow=300, options={**_BC, "steps": 75}),
    Rung(
        name="dagger",
        what="narrow, then 10 times 30 labelled episodes from all starts that it shares with the expert",
        learner="dagger",
        start="narrow",
        narrow=300,
        updates=10,
        options={**_DAGGER, "episodes": 30, "slots": 30, "steps": 150},
        kwargs={"max_steps": 60},
    ),
    Rung(name="narrow-more", what="600 narrow demonstrations", narrow=600, options={**_BC, "steps": 150}),
    Rung(
        name="narrow-and-wide",
        what="300 narrow demonstrations, 300 from all starts",
        narrow=300,
        wide=300,
        options={**_BC, "steps": 150},
    ),
    Rung(name="more", what="1,000 demonstrations", wide=1_000, options={**_BC, "steps": 200}),
    Rung(name="start", what="500 demonstrations", wide=500, options={**_BC, "steps": 50}),
    Rung(
        name="ppo",
        what="start, then its own play for progress, with frozen eyes",
        learner="ppo",
        head="gaussian",
        start="start",
        updates=80,
        options={**_PPO, "groups": 64, "epochs": 4},
        kwargs=_DENSE,
        deviation=0.37,
        critic_updates=10,
        frozen=True,
    ),
    Rung(
        name="numbers-narrow",
        what="150 narrow demonstrations",
        observation="state",
        narrow=150,
        options={"lr": 1e-3, "decay": "cosine", "steps": 100},
    ),
    Rung(
        name="numbers-dagger",
        what="numbers-narrow, then 10 times 15 labelled episodes from all starts that it shares with the expert",
        observation="state",
        learner="dagger",
        start="numbers-narrow",
        narrow=150,
        updates=10,
        options={**_DAGGER, "episodes": 15, "slots": 15, "steps": 200},
        kwargs={"max_steps": 60},
    ),
    Rung(
        name="numbers-narrow-more",
        what="300 narrow demonstrations",
        observation="state",
        narrow=300,
        options={"lr": 1e-3, "decay": "cosine", "steps": 200},
    ),
    Rung(
        name="numbers-narrow-and-wide",
        what="150 narrow demonstrations, 150 from all starts",
        observation="state",
        narrow=150,
        wide=150,
        options={"lr": 1e-3, "decay": "cosine", "steps": 200},
    ),
    Rung(
        name="numbers-start",
        what="120 demonstrations",
        observation="state",
        head="gaussian",
        wide=120,
        options={"lr": 1e-3, "decay": "cosine", "steps": 100},
    ),
    Rung(
        name="numbers-ppo",
        what="numbers-start, then its own play for progress",
        observation="state",
        learner="ppo",
        head="gaussian",
        start="numbers-start",
        updates=100,
        options={**_PPO, "groups": 128, "epochs": 6},
        kwargs=_DENSE,
        deviation=0.37,
        critic_updates=10,
    ),
    Rung(
        name="numbers-grpo",
        what="numbers-start, then its own play for progress in groups",
        observation="state",
        learner="grpo",
        head="gaussian",
        start="numbers-start",
        updates=100,
        options={"groups": 32, "lr": 2e-4, "epochs": 2, "minibatches": 4, "reduction": "decision_mean"},
        kwargs=_DENSE,
        deviation=0.37,
    ),
    Rung(
        name="numbers-longer",
        what="numbers-start, then as many steps of PPO's on the same demonstrations",
        observation="state",
        head="gaussian",
        start="numbers-start",
        wide=120,
        options={"lr": 1e-3, "decay": "cosine", "steps": 480},
    ),
    Rung(
        name="numbers-more",
        what="1,000 demonstrations",
        observation="state",
        head="gaussian",
        wide=1_000,
        options={"lr": 1e-3, "decay": "cosine", "steps": 480},
    ),
)
"""Written down before they were run on the seeds of the result; tried out on seed 10. A minibatch of a PPO step is 128
decisions (256 from numbers), of cloning 64."""


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
        console = Console(highlight=False)
        runs = json.loads(self.out.read_text("utf-8"))["runs"] if self.out.exists() else []
        for number in self.seeds:
            seed = _Seed(number, self.weights)
            for name in self.rungs:
                if any((run["rung"], run["seed"]) == (name, number) for run in runs):
                    continue
                runs.append({"rung": name, "seed": number, **seed.run(known[name])})
                self._write(runs)
                console.print(_line(runs[-1]), soft_wrap=True)
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


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        return tyro.cli(Ladder, prog="python -m tetrathlon.benchmarks.ladder").run()
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
