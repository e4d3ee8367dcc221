"""The subcommands: each a dataclass whose fields are its options, and what it does."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import tyro

from tetrathlon.envs.registry import domain_of, listings, make
from tetrathlon.usage import (
    UsageError,
    at_least,
    check_temperature,
    check_video,
    environment,
    made,
    nearest,
    new_folder,
    policy_of,
)

Id = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ID")]
Run = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
Text = Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="")]
Folder = Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")]
Number = Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="")]
Seed = Annotated[int, tyro.conf.arg(metavar="S")]
Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...", help_behavior_hint="")]
Settings = Annotated[tuple[str, ...], tyro.conf.arg(metavar="KEY=VALUE ...", help_behavior_hint="")]


@dataclass(frozen=True, kw_only=True)
class Envs:
    """List the environments."""

    domain: Text = None
    """Only those of one domain: text, tools, vision or robots."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """List them."""
        domains = sorted({listing.domain for listing in listings()} | {"other"})
        if self.domain is not None and self.domain not in domains:
            raise UsageError(
                f"there is no domain {self.domain!r}{nearest(self.domain, domains)} (there are {', '.join(domains)})"
            )
        rows = [
            {"id": name, "domain": domain_of(name), "description": _summary(name)}
            for name in [*(listing.id for listing in listings()), *_foreign_ids()]
            if self.domain in (None, domain_of(name))
        ]
        if self.json:
            print(json.dumps(rows, indent=1))
            return 0
        from rich.console import Console

        from tetrathlon.terminal import envs_table

        Console().print(envs_table(rows, Console().width))
        return 0


@dataclass(frozen=True, kw_only=True)
class Play:
    """Be the agent of one episode, or watch a policy."""

    id: Id
    """Environment; tetrathlon envs lists them."""
    policy: Text = None
    """Who acts: random, expert, smollm2, hf:PATH_OR_ID, openai:URL#MODEL, run:DIR, control, char or module:object;
    without it, you."""
    seed: Number = None
    """Seed of the instance; without it a new one each time."""
    split: str = "train"
    """Which instances, where the environment has splits."""
    env: Settings = ()
    """Arguments of the environment."""
    temperature: float = 1.0
    """Sampling temperature of a language model."""
    greedy: bool = False
    """Take the most likely actions."""
    video: Annotated[Path | None, tyro.conf.arg(metavar="FILE.gif", help_behavior_hint="")] = None
    """Write what is rendered to a GIF file."""

    def run(self) -> int:
        """Play."""
        from rich.console import Console

        from tetrathlon.agents.rollout import Start
        from tetrathlon.play import Quit, play, write_gif

        env_id, kwargs = environment(self.id, self.split, self.env)
        if self.video is not None:
            check_video(env_id, self.video)
            kwargs["render_mode"] = "rgb_array"
        seed = self.seed if self.seed is not None else int.from_bytes(os.urandom(4), "little")
        at_least("seed", seed, 0)
        probe = made(env_id, kwargs)
        fps = float(probe.metadata.get("render_fps") or 20)
        policy = policy_of(self.policy, probe, seed, self.temperature) if self.policy is not None else None
        probe.close()
        console = Console(highlight=False)
        frames: list[Any] | None = [] if self.video is not None else None
        console.print(f"{env_id} · seed {seed}", style="dim", markup=False)
        try:
            outcome = play(
                lambda: make(env_id, **kwargs),
                policy,
                console=console,
                start=Start(seed=seed),
                greedy=self.greedy,
                frames=frames,
            )
        except Quit:
            console.print("no answer given: the episode ends here", style="dim")
            return 0
        if isinstance(outcome, str):
            return _failed(f"the environment crashed: {outcome}")
        if self.video is not None and frames:
            write_gif(self.video, frames, fps)
            console.print(f"{len(frames)} frames in {self.video}", markup=False, soft_wrap=True)
        return 0


@dataclass(frozen=True, kw_only=True)
class Eval:
    """Measure a policy in an environment."""

    id: Id
    """Environment; tetrathlon envs lists them."""
    policy: Annotated[str, tyro.conf.arg(metavar="NAME")]
    """random, expert, smollm2, hf:PATH_OR_ID, openai:URL#MODEL, run:DIR, control, char or module:object."""
    episodes: Annotated[int, tyro.conf.arg(metavar="N")] = 100
    """Instances, each with a seed of its own."""
    split: str = "test"
    """Which instances, where the environment has splits."""
    samples: Annotated[int, tyro.conf.arg(metavar="K")] = 1
    """Episodes an instance; gives pass@k and majority@k."""
    seed: Seed = 0
    """Seed of the instances and of the policy."""
    temperature: Annotated[float | None, tyro.conf.arg(metavar="T", help_behavior_hint="")] = None
    """Sample a language model at this temperature; default: greedy with one sample, 1.0 with more."""
    greedy: bool = False
    """Take the most likely actions."""
    slots: Number = None
    """Episodes under way at once; default: up to 16."""
    env: Settings = ()
    """Arguments of the environment."""
    out: Folder = None
    """Save the episodes there as they finish, and result.json."""
    resume: bool = False
    """Go on with the evaluation in that folder, which stopped or is to have more episodes."""
    json: bool = False
    """Print nothing but JSON."""

    def run(self) -> int:
        """Evaluate."""
        from rich.console import Console

        from tetrathlon.agents.evaluation import evaluate
        from tetrathlon.agents.journal import JournalError
        from tetrathlon.agents.naming import PolicyError
        from tetrathlon.agents.server import ServerError
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
        out = new_folder(self.out)
        made(env_id, kwargs).close()
        try:
            with _progress(self.episodes * self.samples) as advance:
                result = evaluate(
                    self.policy,
                    env_id,
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
        except (PolicyError, JournalError) as error:
            raise UsageError(str(error)) from error
        except OSError as error:  # of a server, or of a disk that is full
            if out is not None and (out / "unfinished.jsonl").exists():
                return _failed(f"{error}; the finished episodes are in {out}, the same command with --resume goes on")
            if out is None and isinstance(error, ServerError):
                return _failed(f"{error}; with --out DIR the finished episodes would be kept")
            raise
        text = json.dumps(result.to_json(), indent=1, allow_nan=False)
        if self.json:
            print(text)
        else:
            Console(highlight=False).print(result_table(result.to_json()))
            if out is not None:
                Console(highlight=False).print(f"saved in {out}", markup=False, soft_wrap=True)
        if not result.episodes_played:
            return _failed(f"every episode crashed: {result.crashes['messages'][0]}")
        return 0


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Run the benchmark suite and write its report."""

    suite: str = "quick"
    """Which suite."""
    domains: Names = ()
    """Only these domains; default: all."""
    policies: Names = ()
    """Who is measured; default: the suite's own."""
    out: Folder = None
    """Folder of the run; default: runs/bench-SUITE."""
    episodes: Number = None
    """Episodes an entry and seed, in place of the suite's."""
    seed: Seed = 0
    """Added to the suite's seeds."""
    resume: bool = False
    """Go on with the run in the folder."""

    def run(self) -> int:
        """Run it."""
        from tetrathlon.agents.server import ServerError
        from tetrathlon.benchmarks.bench import run

        at_least("episodes", self.episodes, 1)
        at_least("seed", self.seed, 0)
        try:
            run(
                suite=self.suite,
                domains=list(self.domains) or None,
                policies=list(self.policies) or None,
                out=self.out,
                episodes=self.episodes,
                seed=self.seed,
                resume=self.resume,
            )
        except (ValueError, FileExistsError, gym.error.Error) as error:  # what run() says of wrong arguments
            raise UsageError(str(error)) from error
        except ServerError as error:
            return _failed(f"{error}; the finished episodes are kept, the same command with --resume goes on")
        return 0


@dataclass(frozen=True, kw_only=True)
class View:
    """Look at a run: its numbers and its episodes, and a page of them."""

    run_folder: Run
    """Folder of a training run, an evaluation, a recording or a run of the suite."""
    episode: Annotated[tuple[int, ...], tyro.conf.arg(metavar="N ...", help_behavior_hint="")] = ()
    """Show these episodes turn by turn, counted from 0."""
    open: bool = False
    """Open the page in a browser."""

    def run(self) -> int:
        """Show it."""
        from rich.console import Console

        from tetrathlon.benchmarks.files import load_result, load_results
        from tetrathlon.benchmarks.history import find_history
        from tetrathlon.benchmarks.report import write_view
        from tetrathlon.benchmarks.table import show
        from tetrathlon.benchmarks.training_page import write_training_report
        from tetrathlon.benchmarks.training_table import show_training
        from tetrathlon.envs.episode import load_episodes
        from tetrathlon.terminal import episodes_table, result_table, show_episode

        folder, console = self.run_folder, Console(highlight=False)
        suite, result, episodes = (folder / n for n in ("results.json", "result.json", "episodes.jsonl"))
        if folder.is_file():
            raise UsageError(f"{str(folder)!r} is a file; give its folder, {str(folder.parent)!r}")
        if not folder.is_dir():
            raise UsageError(f"there is no folder {str(folder)!r}")
        try:
            history = find_history(folder)
            if history is None and not suite.exists() and not episodes.exists():
                raise UsageError(
                    f"{str(folder)!r} holds no training run, no episodes.jsonl and no results.json: it is no run"
                )
            played = load_episodes(folder) if episodes.exists() else []
            loaders = {suite: load_results, result: load_result}
            found = {path: load(path) for path, load in loaders.items() if path.exists()}
        except ValueError as error:  # a file that is none of ours, or was cut
            raise UsageError(str(error)) from error
        if wrong := [number for number in self.episode if not 0 <= number < len(played)]:
            where = "" if episodes.exists() else f"; those of a suite are in {folder / 'cells'}/*"
            raise UsageError(f"there is no episode {wrong[0]}: {str(folder)!r} holds {len(played)}{where}")
        page = folder / "report.html"
        if suite in found:
            show(found[suite], folder, console)
        if result in found:
            console.print(result_table(found[result]))
        if history is not None and not self.episode:
            show_training(history, console)
        elif episodes.exists() and not self.episode:
            console.print(episodes_table(played))
        for number in self.episode:
            show_episode(console, played[number], number)
        if history is not None or episodes.exists():
            page = write_view(folder) if history is None else write_training_report(folder)
            console.print(f"page: {page}", markup=False, soft_wrap=True)
        if self.open:
            import webbrowser

            webbrowser.open(page.resolve().as_uri())
        return 0


def _foreign_ids() -> list[str]:
    """Return what other packages registered, plug-ins above all."""
    own = {listing.id for listing in listings()}
    homes = {name: getattr(spec.entry_point, "__module__", spec.entry_point) for name, spec in gym.registry.items()}
    return sorted(name for name, home in homes.items() if name not in own and not str(home).startswith("gymnasium"))


def _summary(env_id: str) -> str:
    """Return the first line of an environment's manual page."""
    from tetrathlon.envs.registry import creator_of

    try:
        creator = creator_of(env_id)
    except (ImportError, ValueError) as error:
        return f"(not available: {error})"
    return (inspect.getdoc(creator) or "").partition("\n")[0].replace("``", "")


def _failed(message: str) -> int:
    print(f"tetrathlon: {' '.join(message.split())}", file=sys.stderr)
    return 1


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
