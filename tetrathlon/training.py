"""The subcommand that trains: one for each algorithm, whose options are those of the algorithm."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import tyro

from tetrathlon.usage import UsageError, at_least, environment, made, nearest, policy_of

_SHOWN = ("success", "episode_reward", "entropy", "kl_old", "clip_fraction", "grad_norm", "cut", "useful_groups")


@dataclass(frozen=True, kw_only=True)
class Train:
    """Train a policy."""

    algorithm: ClassVar[str] = ""

    env_id: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ID")]
    """Environment; tetrathlon envs lists them."""
    policy: Annotated[str, tyro.conf.arg(metavar="NAME")]
    """smollm2, hf:PATH_OR_ID or module:object: a policy that can be trained."""
    updates: Annotated[int, tyro.conf.arg(metavar="N")] = 100
    """Updates in all, those of a resumed run included."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder of the run; default: runs/ALGO-ID."""
    resume: bool = False
    """Go on with the run in the folder."""
    checkpoint_every: Annotated[int, tyro.conf.arg(metavar="N")] = 10
    """Updates from one checkpoint to the next."""
    test_episodes: Annotated[int, tyro.conf.arg(metavar="N")] = 64
    """Instances of the test split that are asked before and after; 0: none."""
    env: Annotated[tuple[str, ...], tyro.conf.arg(metavar="KEY=VALUE ...", help_behavior_hint="")] = ()
    """Arguments of the environment."""

    def run(self) -> int:
        """Train."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        from tetrathlon.agents.evaluation import evaluate
        from tetrathlon.agents.trainable import TrainablePolicy
        from tetrathlon.algos.on_policy import ALGORITHMS
        from tetrathlon.algos.run import RunError

        at_least("updates", self.updates, 1)
        at_least("checkpoint-every", self.checkpoint_every, 1)
        at_least("test-episodes", self.test_episodes, 0)
        algorithm = ALGORITHMS[self.algorithm]
        options = {option.name: getattr(self, option.name) for option in fields(algorithm.Options)}
        env_id, kwargs = environment(self.env_id, options["split"], self.env)
        kwargs.pop("split", None)
        console = Console(highlight=False)
        folder = self.out or Path("runs") / f"{self.algorithm}-{env_id.rpartition('/')[2]}"
        probe = made(env_id, kwargs)
        try:
            policy = policy_of(self.policy, probe, options["seed"], 1.0)
        finally:
            probe.close()
        if not isinstance(policy, TrainablePolicy):
            raise UsageError(f"policy {self.policy!r} cannot be trained: it is no TrainablePolicy")
        try:
            trainer = algorithm(
                policy,
                env_id,
                kwargs=kwargs,
                run=folder,
                resume=self.resume,
                checkpoint_every=self.checkpoint_every,
                **options,
            )
        except (RunError, TypeError) as error:
            raise UsageError(str(error)) from error

        def success() -> str:
            if not self.test_episodes:
                return ""
            result = evaluate(policy, env_id, kwargs=kwargs, episodes=self.test_episodes, greedy=False)
            found = result.success
            if found["mean"] is None:
                return f"test reward {result.reward['mean']:.3f}"
            return f"test success {found['mean']:.1%} [{found['low']:.1%}, {found['high']:.1%}]"

        if not self.resume:
            console.print(f"before: {success()}")
        columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
        started = time.perf_counter()
        with Progress(*columns, console=console) as progress:
            bar = progress.add_task(self.algorithm, total=self.updates)

            def after(number: int, metrics: dict[str, float]) -> None:
                told = "  ".join(f"{name} {metrics[name]:.3g}" for name in _SHOWN if name in metrics)
                progress.update(bar, completed=number + 1)
                progress.console.print(f"{number + 1:5d}  {told}", soft_wrap=True)

            trainer.after = after
            trainer.learn(self.updates)
        trainer.close()
        console.print(f"after: {success()}  ({time.perf_counter() - started:.0f} s)")
        console.print(f"saved in {folder}", markup=False, soft_wrap=True)
        return 0


def train_command(words: list[str]) -> tuple[type[Any], list[str]]:
    """Return the command of the algorithm that ``words`` begin with, and the other words.

    Raises:
        UsageError: There is no such algorithm.
    """
    from tetrathlon.algos.on_policy import ALGORITHMS

    if not words or words[0].startswith("-"):
        raise UsageError(f"say which algorithm: tetrathlon train ALGO ID; there are {', '.join(ALGORITHMS)}")
    name = words[0].lower()
    if name not in ALGORITHMS:
        raise UsageError(
            f"there is no algorithm {name!r}{nearest(name, ALGORITHMS)} (there are {', '.join(ALGORITHMS)})"
        )
    algorithm = ALGORITHMS[name]
    command = make_dataclass(
        f"Train{algorithm.__name__}",
        [],
        bases=(Train, algorithm.Options),
        namespace={"algorithm": name, "__doc__": algorithm.__doc__},
        frozen=True,
        kw_only=True,
    )
    return command, words[1:]
