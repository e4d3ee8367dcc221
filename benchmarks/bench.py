"""Runs a suite: every entry with every policy, one finished cell at a time."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium import spaces
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

import tetrathlon
from tetrathlon.agents.dependence import dependence
from tetrathlon.agents.evaluation import evaluate
from tetrathlon.agents.naming import PolicyError, check_shows_text, make_policy
from tetrathlon.agents.policy import Policy
from tetrathlon.benchmarks import machine
from tetrathlon.benchmarks.cells import Cell, Ledger, identity_of
from tetrathlon.benchmarks.report import write_markdown, write_report
from tetrathlon.benchmarks.results import CEILING, FLOOR, aggregate, normalise, outcomes_of, row
from tetrathlon.benchmarks.suites import Entry, Suite, find
from tetrathlon.benchmarks.table import show
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.registry import known_id, make, split_argument

_REFERENCES = (FLOOR, CEILING)
_LOADED = ("smollm2", "hf:", "openai:", "run:")
"""Policies that take long to make and write text are made once; others anew for each entry, whose spaces they hold."""
_AT_ONCE = (*_REFERENCES, "bc:")
"""Policies whose cells begin anew rather than go on: with other draws than those of an unbroken run."""
_MISSING = (ModuleNotFoundError, gym.error.DependencyNotInstalled)


def run(
    suite: str | Suite = "quick",
    domains: Sequence[str] | None = None,
    policies: Sequence[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    episodes: int | None = None,
    seed: int = 0,
    resume: bool = False,
    console: Console | None = None,
) -> Path:
    """Run a suite and write its report.

    Args:
        suite: The name of a suite, or one of your own.
        domains: Only the entries of these; None: all.
        policies: Names of policies, as everywhere; None: the suite's, of which those that cannot be made here
            are reported as unavailable, as are entries whose package is missing.
        out: Folder of the run; None: ``runs/bench-SUITE``.
        episodes: Episodes an entry and seed in place of the suite's.
        seed: Added to the seeds of the entries.
        resume: Go on with the run in ``out``; finished cells are kept, in others the finished episodes, and policies
            and domains that were not asked for then are added.
        console: Where progress and table go; None: standard error and standard output.

    Returns:
        The folder, which holds ``results.json``, ``report.md``, ``report.html`` and the cells.

    Raises:
        FileExistsError: The folder is not empty and ``resume`` is false.
        ImportError: A policy of ``policies``, or every entry, needs a package that is not installed.
        gymnasium.error.Error: An entry's environment does not exist or cannot be made.
        ValueError: An argument is wrong, the run in ``out`` is another one or somebody else is at work in it, or
            the expert is no better than random in an entry.
    """
    chosen = find(suite) if isinstance(suite, str) else suite
    if episodes is not None and episodes < 1:
        raise ValueError(f"episodes must be at least 1, got {episodes}")
    chosen.of(domains)
    ledger = Ledger(out if out is not None else Path("runs") / f"bench-{chosen.name}")
    asked = list(dict.fromkeys(policies)) if policies is not None else None
    if asked is not None and not asked:
        raise ValueError("policies must name at least one policy")
    identity = identity_of(
        chosen,
        seed=seed,
        episodes=episodes,
        version=tetrathlon.__version__,
        policies=asked,
        domains=domains,
    )
    known = ledger.look(identity, chosen.policies, resume)
    bench = _Bench(ledger, chosen.of(known["domains"]), known["policies"], episodes, seed)
    part = {"started": machine.now(), "finished": None, "commit": machine.commit(), **machine.describe()}
    progress = console or Console(stderr=True)
    bench.prepare(asked or (), progress)  # before a word is written: a wrong name must not stay in the folder
    with ledger.locked():
        if ledger.look(identity, chosen.policies, resume) != known:
            raise ValueError(f"another bench has changed {ledger.folder} in the meantime; start again")
        known.setdefault("parts", []).append(part)
        ledger.begin(known)
        bench.play(progress)
        part["finished"] = machine.now()
        ledger.write_run(known)
        results = bench.results(chosen, known)
        ledger.write("results.json", results)
        write_markdown(ledger.folder)
        write_report(ledger.folder)
    show(results, ledger.folder, console or Console())
    return ledger.folder


@dataclass
class _Bench:
    ledger: Ledger
    entries: tuple[Entry, ...]
    policies: list[str]
    episodes: int | None
    seed: int
    made: dict[str, Policy] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    """Policy -> why it cannot be made here."""
    unavailable: dict[str, str] = field(default_factory=dict)
    """Name of an entry -> why it cannot be made here."""
    misfits: dict[tuple[str, str], PolicyError] = field(default_factory=dict)
    """Policy and name of an entry -> why the one cannot play the other."""

    def __post_init__(self) -> None:
        # The cheap references first: a useless entry is found before a model works on it.
        self.order = sorted(self.policies, key=lambda name: name not in _REFERENCES)

    def cells(self, policy: str) -> list[Cell]:
        fitting = [entry for entry in self.entries if (policy, entry.name) not in self.misfits]
        return [Cell(entry, policy, self.seed + s) for entry in fitting for s in entry.seeds]

    def prepare(self, asked: Sequence[str], console: Console) -> None:
        """Make everything that will be needed once, to find out now what cannot be made."""
        waiting = {policy: [c for c in self.cells(policy) if not self.ledger.has(c)] for policy in self.order}
        for entry in self.entries:
            players = [policy for policy in self.order if any(cell.entry is entry for cell in waiting[policy])]
            if not players:
                continue
            try:
                env = make(entry.env, **{**split_argument(known_id(entry.env), entry.split), **entry.kwargs})
                env.reset(seed=0)  # what is missing may be missed only here: OpenGL
            except _MISSING as error:
                self.unavailable[entry.name] = str(error)
                console.print(f"{entry.name} is unavailable: {error}", markup=False, highlight=False)
                continue
            try:
                for policy in players:
                    if policy not in self.missing:
                        self._make(policy, entry, env, policy in asked, console)
            finally:
                env.close()
        there = [entry.name for entry in self.entries if entry.name not in self.unavailable]
        for policy in self.order:
            if there and all((policy, name) in self.misfits for name in there):
                if policy in asked:
                    raise self.misfits[policy, there[0]]
                self.missing[policy] = str(self.misfits[policy, there[0]])
        if len(self.unavailable) == len(self.entries):
            raise ImportError(f"no entry is available: {next(iter(self.unavailable.values()))}")

    def play(self, console: Console) -> None:
        """Measure every cell that is not finished."""
        waiting: dict[str, list[Cell]] = {}
        for policy in self.order:
            waiting[policy] = []
            for cell in self.cells(policy):
                if policy in self.missing or cell.entry.name in self.unavailable:
                    continue
                if self.ledger.path(cell).exists():
                    if (fault := self.ledger.fault(cell)) is None:
                        continue
                    console.print(f"a damaged cell is played again: {fault}", markup=False, highlight=False)
                    self.ledger.drop(cell)
                waiting[policy].append(cell)
        total = sum(self._length(cell) * cell.entry.samples for cells in waiting.values() for cell in cells)
        with _progress(console) as progress:
            bar = progress.add_task("", total=total)
            for policy in self.order:
                for cell in waiting[policy]:
                    progress.update(bar, description=f"{policy} · {cell.entry.name}")
                    self._measure(cell, lambda _: progress.advance(bar))
                if policy in _REFERENCES:
                    normalise(self.rows())  # refuses what tells nobody apart
        if total == 0 and not self.missing and not self.unavailable:
            console.print("every cell was finished already", highlight=False)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of what is finished, in the order of the suite."""
        rows = []
        for entry in self.entries:
            for policy in self.policies:
                cells = [c for c in self.cells(policy) if c.entry is entry and self.ledger.has(c)]
                if len(cells) == len(entry.seeds):
                    rows.append(row(entry, policy, [self.ledger.result(c) for c in cells], [c.slug for c in cells]))
        return rows

    def results(self, suite: Suite, known: dict[str, Any]) -> dict[str, Any]:
        rows = self.rows()
        normalise(rows)
        parts = known["parts"]
        return {
            "suite": suite.name,
            "version": suite.version,
            "entries": rows,
            "unavailable": [{"name": name, "reason": reason} for name, reason in self.unavailable.items()],
            "policies": [
                {
                    "name": policy,
                    "source": machine.source_of(policy),
                    "available": policy not in self.missing,
                    "reason": self.missing.get(policy),
                }
                for policy in self.policies
            ],
            "aggregate": aggregate(rows),
            "repeat": {
                "command": _command(suite, known),
                "seed": self.seed,
                **{key: parts[-1][key] for key in ("versions", "platform", "cpu", "commit")},
                "started": parts[0]["started"],
                "finished": parts[-1]["finished"],
                "parts": parts,
            },
        }

    def _length(self, cell: Cell) -> int:
        return self.episodes or cell.entry.episodes

    def _make(self, policy: str, entry: Entry, env: gym.Env[Any, Any], asked: bool, console: Console) -> None:
        writes = isinstance(env.action_space, spaces.Text)
        try:
            if writes and policy in self.made:
                check_shows_text(policy, env, self.made[policy])
                return
            made = make_policy(policy, env, seed=self.seed)
            if writes and policy.startswith(_LOADED):
                self.made[policy] = made
        except PolicyError as error:
            if policy in _REFERENCES:  # an entry without them has no scale
                raise
            self.misfits[policy, entry.name] = error
        except ImportError as error:
            if asked:
                raise
            self.missing[policy] = str(error)
            console.print(f"{policy} is unavailable: {error}", markup=False, highlight=False)

    def _measure(self, cell: Cell, tick: Callable[[Episode], None]) -> None:
        entry = cell.entry
        player: str | Policy = self.made.get(cell.policy, cell.policy)
        if cell.policy.startswith(_AT_ONCE) or entry.samples > 1:
            shutil.rmtree(self.ledger.unfinished(cell), ignore_errors=True)
        if (reseed := getattr(getattr(player, "engine", None), "reseed", None)) is not None:
            reseed(cell.seed)  # what it samples depends on no other cell
        if entry.domain == "vision" and isinstance(player, str):  # several evaluations of one, be it learnt on the spot
            env = make(entry.env, **{**split_argument(known_id(entry.env), entry.split), **entry.kwargs})
            player = make_policy(player, env, seed=cell.seed)
            env.close()
        result = evaluate(
            player,
            entry.env,
            label=cell.policy,
            kwargs=dict(entry.kwargs),
            episodes=self._length(cell),
            samples=entry.samples,
            split=entry.split,
            seed=cell.seed,
            out=self.ledger.unfinished(cell),
            resume=True,
            on_episode=tick,
        )
        facts = {**result.to_json(), "entry": entry.name, "dependence": None}
        if entry.domain == "vision" and result.episodes_played:
            looked = dependence(
                player,
                entry.env,
                kwargs=entry.kwargs,
                full=result.episodes_played,
                split=entry.split,
                seed=cell.seed,
            )
            facts["dependence"] = looked.as_dict()
        self.ledger.keep(cell, {**facts, "outcomes": outcomes_of(result)})


def _command(suite: Suite, known: dict[str, Any]) -> str:
    words = ["tetrathlon", "bench", "--suite", suite.name, "--policies", *known["policies"]]
    if known["domains"] is not None:
        words += ["--domains", *known["domains"]]
    if known["episodes"] is not None:
        words += ["--episodes", str(known["episodes"])]
    return shlex.join([*words, "--seed", str(known["seed"])])


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
