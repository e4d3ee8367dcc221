"""The subcommand that trains: one for each algorithm, whose options are those of the algorithm."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, make_dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import tyro

from tetrathlon.usage import UsageError, arguments, at_least, environment, made, nearest, policy_of

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from tetrathlon.agents.policy import Policy
    from tetrathlon.agents.trainable import TrainablePolicy
    from tetrathlon.algos.callbacks import Callback
    from tetrathlon.algos.tracking import Tracker
    from tetrathlon.envs.episode import Episode

_SHOWN = (
    *("success", "episode_reward", "bc_loss", "agreement", "queries", "entropy"),
    *("kl_old", "clip_fraction", "pairs", "accuracy", "margin", "grad_norm", "cut", "useful_groups"),
)
_SHOWN_EPISODES = 12
_MINARI = "minari:"


@dataclass(frozen=True, kw_only=True)
class Train:
    """Train a policy."""

    algorithm: ClassVar[str] = ""

    env_id: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ID")]
    """Environment; tetrathlon envs lists them."""
    policy: Annotated[str, tyro.conf.arg(metavar="NAME")]
    """smollm2, hf:PATH_OR_ID, control, vla, char, run:DIR or module:object: a policy that can be trained; bc:N is none,
    train bc and name its run."""
    model: Annotated[tuple[str, ...], tyro.conf.arg(metavar="KEY=VALUE ...", help_behavior_hint="")] = ()
    """Arguments of the policy. A language model takes dtype, lora, checkpointing, compiled, critic; char size, layers,
    heads, context; control takes hidden; vla head, memory, critic."""
    updates: Annotated[int, tyro.conf.arg(metavar="N")] = 100
    """Updates in all, those of a resumed run included."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder of the run; default: runs/ALGO-ID."""
    resume: bool = False
    """Go on with the run in the folder."""
    checkpoint_every: Annotated[int, tyro.conf.arg(metavar="N")] = 10
    """Updates from one checkpoint to the next."""
    test_episodes: Annotated[int, tyro.conf.arg(metavar="N")] = 64
    """Instances of the test split that are played before and after; 0: none."""
    test_every: Annotated[int, tyro.conf.arg(metavar="N")] = 0
    """Updates from one look at the test split to the next; 0: only before and after."""
    target: Annotated[float | None, tyro.conf.arg(metavar="X")] = None
    """Success on the test split at which to stop."""
    patience: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Looks at the test split without a better success after which to stop."""
    min_entropy: Annotated[float | None, tyro.conf.arg(metavar="X")] = None
    """Entropy that ends the run when three updates in a row stay below it."""
    track: tuple[Literal["tensorboard", "wandb", "none"], ...] = (
        ("tensorboard",) if find_spec("tensorboard") else ("none",)
    )
    """Where metrics go beside metrics.jsonl."""
    env: Annotated[tuple[str, ...], tyro.conf.arg(metavar="KEY=VALUE ...", help_behavior_hint="")] = ()
    """Arguments of the environment."""

    def run(self) -> int:
        """Train."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        from tetrathlon.agents.trainable import TrainablePolicy
        from tetrathlon.algos import ALGORITHMS
        from tetrathlon.algos.learner import NotFinite

        for name, low in (("updates", 1), ("checkpoint-every", 1), ("test-episodes", 0), ("test-every", 0)):
            at_least(name, getattr(self, name.replace("-", "_")), low)
        algorithm = ALGORITHMS[self.algorithm]
        options = {option.name: getattr(self, option.name) for option in fields(algorithm.Options)}
        env_id, kwargs = environment(self.env_id, options["split"], self.env)
        kwargs.pop("split", None)
        console = Console(highlight=False)
        folder = self.out or Path("runs") / f"{self.algorithm}-{env_id.rpartition('/')[2]}"
        if next((path for path in (folder, *folder.parents) if path.exists()), folder).is_file():
            raise UsageError(f"--out must be a folder, {str(folder)!r} is none")
        policy = self._named(self.policy, env_id, kwargs, options["seed"], arguments("model", self.model))
        if not isinstance(policy, TrainablePolicy):
            raise UsageError(f"policy {self.policy!r} cannot be trained: it is no TrainablePolicy")
        columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
        progress = Progress(*columns, console=console)
        bar = progress.add_task(self.algorithm, total=self.updates)
        try:
            trainer = algorithm(
                policy,
                env_id,
                kwargs=kwargs,
                run=folder,
                resume=self.resume,
                checkpoint_every=self.checkpoint_every,
                trackers=[_Shown(progress, bar), *self._trackers(folder)],
                callbacks=self._callbacks(policy, env_id, kwargs),
                name=self.policy,
                arguments=arguments("model", self.model),
                **self._others(env_id, kwargs, options["seed"]),
                **options,
            )
        except (ValueError, TypeError, ImportError, FileNotFoundError) as error:
            raise UsageError(str(error)) from error
        with progress:
            started = time.perf_counter()
            try:
                if not trainer.learn(self.updates):
                    console.print(f"all {self.updates} updates are done; --updates says how many there are to be")
            except NotFinite as error:
                raise UsageError(str(error)) from error
            finally:
                trainer.close()
        seconds = time.perf_counter() - started
        self._report(policy, env_id, kwargs, folder, options["seed"])
        console.print(f"{seconds:.0f} s; saved in {folder}", markup=False, soft_wrap=True)
        console.print(f"report: {folder / 'report.html'}", markup=False, soft_wrap=True)
        return 0

    def _named(
        self, name: str, env_id: str, kwargs: dict[str, Any], seed: int, given: Mapping[str, Any] | None = None
    ) -> Policy:
        """Return the policy of a name, as it is before it learns."""
        probe = made(env_id, kwargs)
        try:
            return policy_of(name, probe, seed, 1.0, given)
        finally:
            probe.close()

    def _others(self, env_id: str, kwargs: dict[str, Any], seed: int) -> dict[str, Any]:
        """Return what else the algorithm is given, beside its options."""
        return {}

    def _report(self, policy: TrainablePolicy, env_id: str, kwargs: dict[str, Any], folder: Path, seed: int) -> None:
        """Write what changed in the tokens, where the policy has any, and the page."""
        from tetrathlon.agents.token_view import token_view
        from tetrathlon.benchmarks.training_page import write_training_report
        from tetrathlon.envs.episode import load_episodes, write_aside

        start = self._named(self.policy, env_id, kwargs, seed, arguments("model", self.model))
        one_a_group = {episode.group: episode for episode in load_episodes(folder)}
        view = token_view(policy, start, list(one_a_group.values())[:_SHOWN_EPISODES])
        if view is not None:
            write_aside(folder / "tokens.json", json.dumps(view).encode())
        write_training_report(folder)

    def _callbacks(self, policy: TrainablePolicy, env_id: str, kwargs: dict[str, Any]) -> list[Callback]:
        """Return what is done between updates; the looks at the test split come before what reads them."""
        from tetrathlon.agents.dependence import has_variants
        from tetrathlon.algos.callbacks import EarlyStop, Evaluate, Guard
        from tetrathlon.algos.twins import EvaluateTwins

        found: list[Callback] = []
        if self.test_episodes:
            probe = made(env_id, kwargs)
            look = EvaluateTwins if has_variants(probe) and "variant" not in kwargs else Evaluate
            probe.close()
            found.append(look(policy, env_id, kwargs=kwargs, every=self.test_every, episodes=self.test_episodes))
        if self.target is not None or self.patience is not None:
            if not (self.test_episodes and self.test_every):
                raise UsageError("--target and --patience read the looks at the test split; give --test-every")
            found.append(EarlyStop(patience=self.patience, target=self.target))
        if self.min_entropy is not None:
            found.append(Guard("entropy", low=self.min_entropy))
        return found

    def _trackers(self, folder: Path) -> list[Tracker]:
        from tetrathlon.algos.tracking import TensorBoard, WandB

        trackers: dict[str, Callable[[], Tracker]] = {
            "tensorboard": lambda: TensorBoard(folder / "tensorboard"),
            "wandb": lambda: WandB(name=folder.name),
        }
        return [trackers[name]() for name in self.track if name in trackers]


@dataclass(frozen=True, kw_only=True)
class TrainOnPolicy(Train):
    """Train a policy by what it is paid."""

    max_kl: Annotated[float | None, tyro.conf.arg(metavar="X")] = None
    """Divergence from the reference, or from the last policy where there is no reference, that ends the run when three
    updates in a row exceed it."""
    reward_model: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """A policy by its name, as a rule run:DIR of bradleyterry, whose critic scores finished episodes; paid beside what
    the environment pays."""

    def _others(self, env_id: str, kwargs: dict[str, Any], seed: int) -> dict[str, Any]:
        if self.reward_model is None:
            return {}
        from tetrathlon.agents.reward_model import RewardModel

        judge: Any = self._named(self.reward_model, env_id, kwargs, seed)
        if getattr(judge, "critic", None) is None:
            raise UsageError(
                f"policy {self.reward_model!r} has no critic that could score episodes: train one by bradleyterry"
            )
        return {"scorers": {"reward_model": RewardModel(judge).score}}

    def _callbacks(self, policy: TrainablePolicy, env_id: str, kwargs: dict[str, Any]) -> list[Callback]:
        from tetrathlon.algos.callbacks import Guard

        found = super()._callbacks(policy, env_id, kwargs)
        if self.max_kl is not None:
            has_reference = bool(getattr(self, "kl_coef") or getattr(self, "kl_coef_end"))  # noqa: B009
            found.append(Guard("kl_ref" if has_reference else "kl_old", high=self.max_kl))
        return found


@dataclass(frozen=True, kw_only=True)
class TrainImitator(Train):
    """Train a policy to do as an expert does."""

    expert: Annotated[str, tyro.conf.arg(metavar="NAME")] = "expert"
    """Who is imitated: expert (the environment's own), or any other policy by its name."""
    demonstrations: Annotated[str | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder of episodes, as tetrathlon record writes it, or minari:ID; default: the expert plays some."""

    def _others(self, env_id: str, kwargs: dict[str, Any], seed: int) -> dict[str, Any]:
        expert = None if self.expert == "expert" else self._named(self.expert, env_id, kwargs, seed)
        return {"expert": expert, "demonstrations": _played(self.demonstrations)}


@dataclass(frozen=True, kw_only=True)
class TrainBC(TrainImitator):
    """Train a policy on demonstrations."""


@dataclass(frozen=True, kw_only=True)
class TrainDAgger(TrainImitator):
    """Train a policy on what an expert says of the states that it visits."""

    proxy: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """A cheap stand-in of the expert, a policy by its name: for the query disagree."""

    def _others(self, env_id: str, kwargs: dict[str, Any], seed: int) -> dict[str, Any]:
        proxy = None if self.proxy is None else self._named(self.proxy, env_id, kwargs, seed)
        return super()._others(env_id, kwargs, seed) | {"proxy": proxy}


@dataclass(frozen=True, kw_only=True)
class TrainFromLog(Train):
    """Train a policy on a log of episodes."""

    log: Annotated[str | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder of episodes, as tetrathlon record writes it, or minari:ID, by whomever they were played; default: the
    policy plays some."""

    def _others(self, env_id: str, kwargs: dict[str, Any], seed: int) -> dict[str, Any]:
        return {"log": _played(self.log)}


def _played(named: str | None) -> str | list[Episode] | None:
    """Return episodes that somebody played: those of a Minari dataset that is on this machine, else their folder."""
    if named is None or not named.startswith(_MINARI):
        return named
    from tetrathlon.envs.minari import load_minari

    return load_minari(named.removeprefix(_MINARI))


@dataclass(frozen=True, kw_only=True)
class TrainPairs(Train):
    """Train a policy on pairs of episodes, of which one is preferred."""

    pairs: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder of episodes, several a start, as tetrathlon eval --samples K --out DIR writes it; default: some are
    played."""

    def _others(self, env_id: str, kwargs: dict[str, Any], seed: int) -> dict[str, Any]:
        return {"pairs": self.pairs}


@dataclass(frozen=True, kw_only=True)
class TrainBradleyTerry(TrainPairs):
    """Train a reward model."""

    test_episodes: Annotated[int, tyro.conf.arg(metavar="N")] = 0
    """Instances of the test split that are played before and after; 0: none, for a reward model plays nothing."""


_FROM_LOG = ("awr", "awac", "iql", "td3bc", "rebrac", "cql", "filteredbc")
_COMMANDS: Mapping[str, type[Train]] = {
    "bc": TrainBC,
    "dagger": TrainDAgger,
    "raft": Train,
    "bradleyterry": TrainBradleyTerry,
    **dict.fromkeys(_FROM_LOG, TrainFromLog),
    **dict.fromkeys(("dpo", "ipo", "kto", "simpo", "orpo"), TrainPairs),
}
"""What algorithms take on the command line beside their options, where that is more than all others do."""


class _Shown:
    """A tracker that prints a line an update, and moves the bar."""

    def __init__(self, progress: Progress, bar: TaskID) -> None:
        self._progress, self._bar = progress, bar

    def log(self, number: int, metrics: Mapping[str, float]) -> None:
        told = [f"{name} {metrics[name]:.3g}" for name in _SHOWN if name in metrics]
        if "test/success" in metrics:
            test, low, high = (metrics[f"test/{name}"] for name in ("success", "low", "high"))
            told.append(f"test success {test:.1%} [{low:.1%}, {high:.1%}]")
            if "test/pair" in metrics:
                told.append(f"both twins {metrics['test/pair']:.1%}")
        elif "test/reward" in metrics:
            told.append(f"test reward {metrics['test/reward']:.3f}")
        if metrics.get("test/shortcut"):
            told.append("SHORTCUT: success rises, pairs of twins do not")
        self._progress.update(self._bar, completed=number + 1)
        self._progress.console.print(f"{number + 1:5d}  {'  '.join(told)}", soft_wrap=True, markup=False)

    def close(self) -> None:
        self._progress.stop()


def train_command(words: list[str]) -> tuple[type[Any], list[str]]:
    """Return the command of the algorithm that ``words`` begin with, and the other words.

    Raises:
        UsageError: There is no such algorithm.
    """
    from tetrathlon.algos import ALGORITHMS

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
        bases=(algorithm.Options, _COMMANDS.get(name, TrainOnPolicy)),  # the fields of the last come first
        # What its constructor takes is said by the options.
        namespace={"algorithm": name, "__doc__": (algorithm.__doc__ or "").partition("Args:")[0].rstrip()},
        frozen=True,
        kw_only=True,
    )
    return command, words[1:]
