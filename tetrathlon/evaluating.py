"""The subcommands that play many episodes: to measure a policy, and to record what it does."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from tetrathlon.commands import Folder, Id, Number, Seed, Settings, failed
from tetrathlon.usage import (
    UsageError,
    as_trained,
    at_least,
    check_temperature,
    environment,
    made,
    new_folder,
    policy_of,
)

Episodes = Annotated[int, tyro.conf.arg(metavar="N")]
Who = Annotated[str, tyro.conf.arg(metavar="NAME")]


@dataclass(frozen=True, kw_only=True)
class Eval:
    """Measure a policy in an environment."""

    id: Id
    """Environment; tetrathlon envs lists them."""
    policy: Who
    """random, expert, mpc, smollm2, hf:PATH_OR_ID, openai:URL#MODEL, sb3:FILE, run:DIR, bc:N, control, vla, char or
    module:object."""
    episodes: Episodes = 100
    """Instances, each with a seed of its own."""
    split: str = "test"
    """Which instances, where the environment has splits."""
    samples: Annotated[int, tyro.conf.arg(metavar="K")] = 1
    """Episodes an instance; gives pass@k, pass^k and majority@k."""
    seed: Seed = 0
    """Seed of the instances and of the policy."""
    temperature: Annotated[float | None, tyro.conf.arg(metavar="T", help_behavior_hint="")] = None
    """Sample a language model at this temperature; default: greedy with one sample, 1.0 with more."""
    greedy: bool = False
    """Take the most likely actions."""
    slots: Number = None
    """Episodes under way at once; default: up to 16."""
    env: Settings = ()
    """Arguments of the environment; those that are not given are the run's own, of a policy run:DIR."""
    out: Folder = None
    """Save the episodes there as they finish, and result.json."""
    resume: bool = False
    """Go on with the evaluation in that folder, which stopped or is to have more episodes."""
    full_only: bool = False
    """Of a vision task, leave out the other variants of the same instances, which tell what the answers depend on and
    take four times as long as the full pictures."""
    json: bool = False
    """Print nothing but JSON."""

    def run(self) -> int:
        """Evaluate."""
        from rich.console import Console

        from tetrathlon.agents.dependence import OTHERS, dependence, has_variants
        from tetrathlon.agents.evaluation import evaluate
        from tetrathlon.terminal import result_table

        for name in ("episodes", "samples", "slots"):
            at_least(name, getattr(self, name), 1)
        at_least("seed", self.seed, 0)
        if self.greedy and (self.samples > 1 or self.temperature is not None):
            raise UsageError("--greedy takes the one most likely answer: leave out --samples and --temperature")
        if self.resume and self.out is None:
            raise UsageError("--resume goes on with the evaluation in a folder: name it by --out")
        temperature = check_temperature(1.0 if self.temperature is None else self.temperature)
        env_id, kwargs = environment(self.id, self.split, self.env)
        kwargs = as_trained(self.policy, env_id, kwargs)
        out = new_folder(self.out)
        probe = made(env_id, kwargs)
        looks = not self.full_only and has_variants(probe) and self.samples == 1 and "variant" not in kwargs
        # What is cloned on the spot is cloned once; what goes on draws on from where it was, for which it is made anew.
        player = policy_of(self.policy, probe, self.seed, temperature) if looks and not self.resume else self.policy
        probe.close()
        found: dict[str, Any] = {}
        with _played(self.episodes * (self.samples + looks * len(OTHERS)), out) as advance:
            result = evaluate(
                player,
                env_id,
                label=self.policy,
                kwargs=kwargs,
                episodes=self.episodes,
                split=self.split,
                samples=self.samples,
                seed=self.seed,
                greedy=True if self.greedy else None if self.temperature is None else False,
                temperature=temperature,
                slots=self.slots,
                out=out,
                resume=self.resume,
                on_episode=lambda _: advance(),
            )
            if looks and result.episodes_played:
                found["dependence"] = dependence(
                    player,
                    env_id,
                    kwargs=kwargs,
                    full=result.episodes_played,
                    split=self.split,
                    seed=self.seed,
                    greedy=result.greedy,
                    temperature=temperature,
                    slots=self.slots,
                    on_episode=lambda _: advance(),
                ).as_dict()
        told = {**result.to_json(), **found}
        if self.json:
            print(json.dumps(told, indent=1, allow_nan=False))
        else:
            Console(highlight=False).print(result_table(told))
            if out is not None:
                Console(highlight=False).print(f"saved in {out}", markup=False, soft_wrap=True)
        if not result.episodes_played:
            return failed(f"every episode crashed: {result.crashes['messages'][0]}")
        return 0


@dataclass(frozen=True, kw_only=True)
class Record:
    """Record what a policy does, to learn from or to look at."""

    id: Id
    """Environment; tetrathlon envs lists them."""
    policy: Who
    """random, expert, mpc, smollm2, hf:PATH_OR_ID, openai:URL#MODEL, sb3:FILE, run:DIR, bc:N, control, vla, char or
    module:object."""
    episodes: Episodes = 100
    """How many, each from a reset of its own."""
    out: Folder = None
    """Save them there as they finish, in the form that tetrathlon view, BC and DAgger read."""
    minari: Annotated[str | None, tyro.conf.arg(metavar="ID", help_behavior_hint="")] = None
    """Make them a Minari dataset of this id, such as push/expert-v0, below MINARI_DATASETS_PATH or ~/.minari."""
    split: str = "train"
    """Which instances, where the environment has splits."""
    seed: Seed = 0
    """Seed of the instances and of the policy."""
    temperature: float = 1.0
    """Sampling temperature of a language model."""
    greedy: bool = False
    """Take the most likely actions."""
    slots: Number = None
    """Episodes under way at once; default: up to 16."""
    env: Settings = ()
    """Arguments of the environment; those that are not given are the run's own, of a policy run:DIR."""
    resume: bool = False
    """Go on with the recording in the folder."""

    def run(self) -> int:
        """Record."""
        from rich.console import Console

        from tetrathlon.agents.evaluation import evaluate

        for name in ("episodes", "slots"):
            at_least(name, getattr(self, name), 1)
        at_least("seed", self.seed, 0)
        if self.out is None and self.minari is None:
            raise UsageError("say where the episodes go: --out DIR, --minari ID-v0 or both")
        if self.resume and self.out is None:
            raise UsageError("--resume goes on with the recording in a folder: name it by --out")
        env_id, kwargs = environment(self.id, self.split, self.env)
        kwargs = as_trained(self.policy, env_id, kwargs)
        out = new_folder(self.out)
        probe = made(env_id, kwargs)
        if self.minari is not None:
            from tetrathlon.envs.minari import check_dataset, storable

            try:  # before an hour of episodes, not after it
                check_dataset(self.minari)
                for space in (probe.observation_space, probe.action_space):
                    storable(space)
            except (ValueError, TypeError, FileExistsError) as error:
                raise UsageError(f"--minari: {error}") from error
        probe.close()
        with _played(self.episodes, out) as advance:
            result = evaluate(
                self.policy,
                env_id,
                kwargs=kwargs,
                episodes=self.episodes,
                split=self.split,
                seed=self.seed,
                greedy=self.greedy,
                temperature=check_temperature(self.temperature),
                slots=self.slots,
                out=out,
                resume=self.resume,
                on_episode=lambda _: advance(),
            )
        episodes = result.episodes_played
        if not episodes:
            return failed(f"every episode crashed: {result.crashes['messages'][0]}")
        steps = sum(map(len, episodes))
        console = Console(highlight=False)
        console.print(f"{len(episodes)} episodes, {steps} steps, mean reward {result.reward['mean']:.4g}", markup=False)
        if out is not None:
            console.print(f"saved in {out}", markup=False, soft_wrap=True)
        if self.minari is not None:
            from tetrathlon.envs.minari import save_minari

            path = save_minari(episodes, self.minari, algorithm=self.policy)
            console.print(f"Minari dataset {self.minari} in {path}", markup=False, soft_wrap=True)
        if result.crashes["count"]:
            return failed(f"{result.crashes['count']} episodes crashed: {result.crashes['messages'][0]}")
        return 0


@contextlib.contextmanager
def _played(total: int, out: Path | None) -> Iterator[Callable[[], None]]:
    """Show a bar, and say of what goes wrong where the finished episodes are; yields what moves the bar on by one."""
    from tetrathlon.agents.journal import JournalError
    from tetrathlon.agents.naming import PolicyError
    from tetrathlon.agents.server import ServerError

    try:
        with _progress(total) as advance:
            yield advance
    except (PolicyError, JournalError) as error:
        raise UsageError(str(error)) from error
    except OSError as error:  # of a server, or of a disk that is full
        if out is not None and (out / "unfinished.jsonl").exists():
            said = f"{error}; the finished episodes are in {out}, the same command with --resume goes on"
            raise OSError(said) from error
        if out is None and isinstance(error, ServerError):
            raise OSError(f"{error}; with --out DIR the finished episodes would be kept") from error
        raise


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """Show a bar on standard error; yields what moves it on by one."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("episodes"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=total)
        yield lambda: progress.advance(task)
