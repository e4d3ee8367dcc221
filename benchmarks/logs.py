"""Logs to learn from, of every domain: ``python -m tetrathlon.benchmarks.logs --out FOLDER``.

One task a domain, that of the matrix, played by those who know nothing, something and all:

- ``random``: random actions;
- ``medium``: samples of the domain's start, which imitates something near the expert;
- ``expert``: the expert of the environment;
- ``medium-replay``: samples of policies on the way from the start through ten updates of GRPO;
- ``mixed``: half ``medium``, half ``expert``.

Each is a folder of episodes, as ``tetrathlon record`` writes it, with what played noted where it has log-probabilities;
``log.json`` beside it names the task, seeds, versions, the content by a hash, and the mean reward and success of the
random policy and the expert over 100 episodes, between which scores are normalised. What is there is not made again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from tetrathlon.agents.evaluation import evaluate
from tetrathlon.agents.naming import make_policy
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos import GRPO
from tetrathlon.algos.dataset import Dataset
from tetrathlon.benchmarks import machine
from tetrathlon.benchmarks.matrix import DOMAINS, Domain
from tetrathlon.envs.episode import Episode, save_episodes, write_aside
from tetrathlon.envs.registry import make

_UPDATES = 10
_REFERENCE = 100
_FIRST_SEED = 70_000_000


class Logs:
    """Makes the logs of one domain.

    Args:
        domain: Which.
        episodes: How many episodes each has.
        seed: Of everything.
    """

    def __init__(self, domain: Domain, episodes: int, seed: int = 0) -> None:
        self.domain, self.episodes, self.seed = domain, episodes, seed
        self.makers: Mapping[str, Callable[[], list[Episode]]] = {
            "random": lambda: self._played("random"),
            "medium": lambda: self.medium,
            "expert": lambda: self.expert,
            "medium-replay": self.replay,
            "mixed": lambda: self.medium[: self.episodes // 2] + self.expert[self.episodes // 2 :],
        }

    @cached_property
    def medium(self) -> list[Episode]:
        """What the start plays."""
        return self._played(self._start())

    @cached_property
    def expert(self) -> list[Episode]:
        """What the expert plays."""
        return self._played("expert")

    def replay(self) -> list[Episode]:
        """Play what comes of the start, update by update."""
        policy = self._start()
        options = {key: value for key, value in self.domain.options["grpo"].items() if key != "updates"}
        each = -(-self.episodes // _UPDATES)
        kept: list[Episode] = []
        with closing(GRPO(policy, self.domain.env, kwargs=self.domain.kwargs, seed=self.seed, **options)) as trainer:
            for update in range(_UPDATES):
                kept += self._played(policy, each, update * each)
                trainer.learn(update + 1)
        return kept[: self.episodes]

    def reference(self, policy: str) -> dict[str, float]:
        """Return mean reward and success of a policy by name, over 100 test instances."""
        domain = self.domain
        found = evaluate(policy, domain.env, kwargs=dict(domain.kwargs), episodes=_REFERENCE, slots=50)
        return {"reward": found.reward["mean"], "success": found.success["mean"]}

    def _start(self) -> TrainablePolicy:
        domain = self.domain
        own = {"seed": self.seed} if domain.own_start else {}
        with closing(make(domain.env, **domain.kwargs)) as env:
            policy = make_policy(domain.policy, env, seed=self.seed, arguments={**domain.arguments, **own})
        assert isinstance(policy, TrainablePolicy)
        return policy

    def _played(self, policy: Any, count: int | None = None, first: int = 0) -> list[Episode]:
        played: list[Episode] = []
        evaluate(
            policy,
            self.domain.env,
            kwargs=dict(self.domain.kwargs),
            episodes=self.episodes if count is None else count,
            split="train",
            seed=_FIRST_SEED + self.seed + first,
            greedy=False,
            slots=50,
            on_episode=played.append,
        )
        return sorted(played, key=lambda episode: episode.seed or 0)


NAMES = ("random", "medium", "expert", "medium-replay", "mixed")


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Make the logs."""

    out: Annotated[Path, tyro.conf.arg(metavar="FOLDER")]
    """Where; each log is DOMAIN/NAME below it."""
    domains: tuple[str, ...] = tuple(domain.name for domain in DOMAINS)
    """Of which domains."""
    names: tuple[str, ...] = NAMES
    """Which logs."""
    episodes: int = 1000
    """Episodes of each."""
    seed: int = 0
    """Seed of everything."""

    def run(self) -> int:
        """Make what is missing."""
        if self.episodes < 2:
            raise ValueError(f"--episodes must be at least 2, got {self.episodes}")
        known = {domain.name: domain for domain in DOMAINS}
        for what, asked, there in (("domain", self.domains, tuple(known)), ("log", self.names, NAMES)):
            if unknown := [name for name in asked if name not in there]:
                raise ValueError(f"there is no {what} {unknown[0]!r} (there are {', '.join(there)})")
        console = Console(highlight=False)
        for name in self.domains:
            logs = Logs(known[name], self.episodes, self.seed)
            missing = [log for log in self.names if not (self.out / name / log / "log.json").exists()]
            reference = {policy: logs.reference(policy) for policy in ("random", "expert")} if missing else {}
            for log in missing:
                self._write(logs, log, reference, console)
        return 0

    def _write(self, logs: Logs, name: str, reference: Mapping[str, Any], console: Console) -> None:
        episodes = logs.makers[name]()
        folder = self.out / logs.domain.name / name
        save_episodes(folder, episodes)
        told = {
            "domain": logs.domain.name,
            "log": name,
            "env": logs.domain.env,
            "kwargs": dict(logs.domain.kwargs),
            "seed": self.seed,
            "reference": dict(reference),
            **content(episodes),
            "command": "python -m tetrathlon.benchmarks.logs --out FOLDER "
            f"--episodes {self.episodes} --seed {self.seed}",
            "made": machine.now(),
            "commit": machine.commit(),
            **machine.describe(),
        }
        write_aside(folder / "log.json", (json.dumps(told, indent=1) + "\n").encode())
        console.print(f"{folder}: {told['steps']} steps, success {told['success']:.3f}", soft_wrap=True)


def content(episodes: Sequence[Episode]) -> dict[str, Any]:
    """Return how much a log holds, how good it is, and a hash of what was seen, done and paid."""
    data = Dataset("action")
    data.add(episodes)
    return {
        "episodes": len(episodes),
        "steps": len(data),
        "reward": sum(episode.total_reward for episode in episodes) / len(episodes),
        "success": sum(episode.is_success for episode in episodes) / len(episodes),
        "digest": data.digest,
    }


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        return tyro.cli(Arguments, prog="python -m tetrathlon.benchmarks.logs").run()
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
