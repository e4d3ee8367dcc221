"""The subcommands: each a dataclass whose fields are its options, and what it does."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import gymnasium as gym
import tyro

from tetrathlon.envs.registry import domain_of, listings, make
from tetrathlon.usage import (
    UsageError,
    as_trained,
    at_least,
    environment,
    made,
    nearest,
    policy_of,
    render_modes,
)

if TYPE_CHECKING:
    from tetrathlon.benchmarks.video import Film

Id = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ID")]
Run = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
Text = Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="")]
Folder = Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")]
Number = Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="")]
Seed = Annotated[int, tyro.conf.arg(metavar="S")]
Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...", help_behavior_hint="")]
Settings = Annotated[tuple[str, ...], tyro.conf.arg(metavar="KEY=VALUE ...", help_behavior_hint="")]
_FPS = 20.0
"""Frames a second where an environment does not say."""


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
    """Who acts: random, expert, mpc, smollm2, hf:PATH_OR_ID, openai:URL#MODEL, sb3:FILE, run:DIR, bc:N, control, vla,
    char or module:object; without it, you."""
    seed: Number = None
    """Seed of the instance; without it a new one each time."""
    split: str = "train"
    """Which instances, where the environment has splits."""
    env: Settings = ()
    """Arguments of the environment; those that are not given are the run's own, of a policy run:DIR."""
    temperature: float = 1.0
    """Sampling temperature of a language model."""
    greedy: bool = False
    """Take the most likely actions."""
    video: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = None
    """Film it, *.gif or *.mp4: what is rendered, else the picture that is observed."""
    picture: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = None
    """Where the picture is saved that a task is about; default where you answer it: runs/play.png."""

    def run(self) -> int:
        """Play."""
        from rich.console import Console

        from tetrathlon.agents.rollout import Start
        from tetrathlon.play import Quit, play

        env_id, kwargs = environment(self.id, self.split, self.env)
        if self.policy is not None:
            kwargs = as_trained(self.policy, env_id, kwargs)
        is_rendered = self.video is not None and "rgb_array" in render_modes(env_id)
        if is_rendered:
            kwargs["render_mode"] = "rgb_array"
        seed = self.seed if self.seed is not None else int.from_bytes(os.urandom(4), "little")
        at_least("seed", seed, 0)
        probe = made(env_id, kwargs)
        film = self._film(env_id, probe, is_rendered)
        policy = policy_of(self.policy, probe, seed, self.temperature) if self.policy is not None else None
        probe.close()
        console = Console(highlight=False)
        console.print(f"{env_id} · seed {seed}", style="dim", markup=False)
        try:
            with film or contextlib.nullcontext():
                outcome = play(
                    lambda: make(env_id, **kwargs),
                    policy,
                    console=console,
                    start=Start(seed=seed),
                    greedy=self.greedy,
                    film=film,
                    picture=self._picture(env_id),
                )
        except Quit:
            console.print("no answer given: the episode ends here", style="dim")
            return 0
        if isinstance(outcome, str):
            blind = is_rendered and "mujoco" in sys.modules and "MUJOCO_GL" not in os.environ
            hint = "; without a screen, MUJOCO_GL=egl or MUJOCO_GL=osmesa says how to render" if blind else ""
            return failed(f"the environment crashed: {outcome}{hint}")
        if film is not None:
            console.print(f"{film.frames} frames in {film.path}", markup=False, soft_wrap=True)
        return 0

    def _picture(self, env_id: str) -> Path | None:
        is_asked = self.policy is None and domain_of(env_id) == "vision"
        return self.picture or (Path("runs") / "play.png" if is_asked else None)

    def _film(self, env_id: str, probe: gym.Env[Any, Any], is_rendered: bool) -> Film | None:
        """Return the film to be made, or say why there can be none."""
        from tetrathlon.benchmarks.video import Film, picture_in
        from tetrathlon.envs.spaces import null_sample

        if self.video is None:
            return None
        if not is_rendered and picture_in(null_sample(probe.observation_space)) is None:
            raise UsageError(
                "--video needs an environment that renders 'rgb_array' or whose observation is a picture or has one as "
                f"its 'image'; {env_id} renders {render_modes(env_id)} and shows {probe.observation_space}"
            )
        try:
            return Film(self.video, float(probe.metadata.get("render_fps") or _FPS))
        except ValueError as error:
            raise UsageError(f"--video: {error}") from error


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Run the benchmark suite and write its report.

    tetrathlon bench compare RUN OTHER tells two runs apart.
    """

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
    cells: Names = ()
    """Of the suite matrix, which trains: only these cells, such as text-grpo; default: all."""

    def run(self) -> int:
        """Run it."""
        from tetrathlon.agents.server import ServerError
        from tetrathlon.benchmarks import matrix
        from tetrathlon.benchmarks.bench import run

        at_least("episodes", self.episodes, 1)
        at_least("seed", self.seed, 0)
        try:
            if self.suite == matrix.NAME:
                if self.policies or self.episodes is not None or self.seed:
                    raise UsageError(
                        "the matrix trains policies of its own: it takes no --policies, --episodes, --seed"
                    )
                matrix.run(self.out, cells=self.cells or None, domains=self.domains or None, resume=self.resume)
                return 0
            if self.cells:
                raise UsageError(
                    f"--cells are those of the suite {matrix.NAME}; {self.suite} has --domains, --policies"
                )
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
            return failed(f"{error}; the finished episodes are kept, the same command with --resume goes on")
        return 0


@dataclass(frozen=True, kw_only=True)
class Compare:
    """Compare two runs of one suite: who is better, where, and how sure that is."""

    first: Run
    """Folder of a run, or its results.json."""
    second: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="OTHER")]
    """Of another one, of the same suite and version."""
    policies: Names = ()
    """Whom to look at in the first and in the second; default: each policy that is in both."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Compare them."""
        from rich.console import Console

        from tetrathlon.benchmarks.compare import compare, show_comparison

        if len(self.policies) not in (0, 2):
            raise UsageError(f"--policies names one of each run, two in all; got {list(self.policies)}")
        try:
            found = compare(self.first, self.second, (self.policies[0], self.policies[1]) if self.policies else None)
        except ValueError as error:
            raise UsageError(str(error)) from error
        if self.json:
            print(json.dumps(found))
        else:
            show_comparison(found, Console(highlight=False))
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


def failed(message: str) -> int:
    """Say that something failed; return the exit code."""
    print(f"tetrathlon: {' '.join(message.split())}", file=sys.stderr)
    return 1
