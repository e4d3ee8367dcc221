"""The matrix: four families of algorithms in four domains, each cell from the same start of its domain.

``tetrathlon bench --suite matrix`` trains every cell with several seeds and tells success on held-out instances before
and after. What a kill interrupts goes on from its last checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

from tetrathlon.agents.lock import lock_folder
from tetrathlon.benchmarks import lookups, machine, pushes, sums
from tetrathlon.benchmarks.experiments import Experiment
from tetrathlon.benchmarks.files import read_json
from tetrathlon.benchmarks.learning import train
from tetrathlon.benchmarks.matrix_page import FAMILIES, write_matrix_page
from tetrathlon.benchmarks.results import rate
from tetrathlon.benchmarks.sights import SIGHTS
from tetrathlon.envs.codec import fingerprint
from tetrathlon.envs.episode import write_aside

NAME, VERSION = "matrix", 1
SEEDS = (0, 1, 2)


@dataclass(frozen=True, kw_only=True)
class Domain:
    """Where a row of the matrix is learnt, and from what."""

    name: str
    """Its name."""
    env: str
    """Where."""
    kwargs: Mapping[str, Any]
    """Constructor arguments of the environment."""
    policy: str
    """Name of the start."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """With which it is made."""
    own_start: bool = True
    """Whether each seed has a start of its own."""
    greedy: bool = False
    """Whether the likeliest actions are looked at, not samples."""
    offline: str
    """Which algorithm stands for offline RL: where a reward comes many tokens later, one that looks at how it ended,
    since values that are learnt step by step need many updates for the way back."""
    options: Mapping[str, Mapping[str, Any]]
    """Updates and options of each family."""


_PAID: Mapping[str, Any] = {"groups": 32, "group_size": 8, "lr": 1e-3, "epochs": 4}
_ASKED: Mapping[str, Any] = {"beta": 1.0, "beta_decay": 0.0, "batch_size": 64}
_LOG: Mapping[str, Any] = {"gamma": 1.0, "beta": 5.0, "lr": 1e-3, "value_lr": 1e-3, "batch_size": 64}

DOMAINS = (
    Domain(
        name="text",
        env=f"{sums.__name__}:{sums.ID}",
        kwargs={},
        policy=f"{sums.__name__}:near",
        offline="iql",
        own_start=False,
        options={
            "grpo": {"updates": 25, **_PAID},
            "ppo": {"updates": 25, **_PAID},
            "dagger": {"updates": 25, **_ASKED, "episodes": 64, "steps": 10, "lr": 1e-3},
            "offline": {"updates": 10, **_LOG, "episodes": 2048, "steps": 40, "polyak": 0.05},
        },
    ),
    Domain(
        name="tools",
        env=lookups.ENV,
        kwargs={**lookups.settings(2), "progress_weight": 0.5},
        policy=f"{lookups.__name__}:near",
        offline="awr",
        arguments={"hops": 2},
        options={
            "grpo": {"updates": 16, **_PAID, "minibatches": 1, "entropy_coef": 0.01},
            "ppo": {"updates": 16, **_PAID, "minibatches": 1, "entropy_coef": 0.01, "credit": "turn"},
            "dagger": {"updates": 16, **_ASKED, "episodes": 32, "steps": 10, "lr": 1e-3},
            "offline": {"updates": 6, **_LOG, "episodes": 2048, "steps": 25, "lam": 1.0, "value_steps": 25},
        },
    ),
    Domain(
        name="vision",
        env=SIGHTS["point"].env,
        kwargs=SIGHTS["point"].kwargs,
        policy="tetrathlon.benchmarks.sights:near",
        offline="awr",
        arguments={"name": "point", "folder": "runs/sights"},
        options={
            "grpo": {"updates": 60, **_PAID, "minibatches": 1, "entropy_coef": 0.01, "decay": "linear"},
            "ppo": {"updates": 60, **_PAID, "minibatches": 1, "entropy_coef": 0.01, "decay": "linear"},
            "dagger": {"updates": 30, **_ASKED, "episodes": 64, "steps": 10, "lr": 1e-3},
            "offline": {  # as many episodes as are played for GRPO and PPO
                "updates": 10,
                **_LOG,
                "episodes": 15_360,
                "steps": 50,
                "lam": 1.0,
                "value_steps": 50,
                "batch_size": 128,
                "decay": "cosine",
            },
        },
    ),
    Domain(
        name="robots",
        env=pushes.ENV,
        kwargs=pushes.SETTINGS,
        policy=f"{pushes.__name__}:near",
        offline="iql",
        greedy=True,
        options={
            "grpo": {
                "updates": 40,
                "groups": 32,
                "group_size": 8,
                "lr": 2e-4,
                "epochs": 2,
                "minibatches": 4,
                "reduction": "decision_mean",
            },
            "ppo": {
                "updates": 60,
                "groups": 128,
                "horizon": 32,
                "piece": 1,
                "minibatches": 16,
                "epochs": 6,
                "lr": 1e-4,
                "gamma": 0.99,
            },
            "dagger": {"updates": 10, "beta": 0.5, "beta_decay": 0.8, "episodes": 15, "steps": 200, "lr": 1e-3},
            "offline": {  # an advantage is a few hundredths of what an episode is paid
                "updates": 10,
                "episodes": 3000,
                "steps": 1000,
                "gamma": 0.99,
                "beta": 60.0,
                "expectile": 0.7,
                "lr": 1e-3,
                "polyak": 0.02,
                "value_lr": 1e-3,
            },
        },
    ),
)


def _cell(domain: Domain, family: str) -> Experiment:
    settings = dict(domain.options[family])
    updates: int = settings.pop("updates")
    return Experiment(
        name=f"{domain.name}-{family}",
        what=f"{FAMILIES[family]} in {domain.name}",
        algorithm=domain.offline if family == "offline" else family,
        env=domain.env,
        kwargs=domain.kwargs,
        policy=domain.policy,
        arguments=domain.arguments,
        own_start=domain.own_start,
        options=settings,
        updates=updates,
        test_every=max(updates // 5, 1),
        test_episodes=400,
        greedy=domain.greedy,
    )


CELLS: Mapping[str, Experiment] = {
    cell.name: cell for domain in DOMAINS for cell in (_cell(domain, family) for family in FAMILIES)
}
"""By name: a domain and a family."""


def run(
    out: Path | None = None,
    *,
    cells: Sequence[str] | None = None,
    domains: Sequence[str] | None = None,
    seeds: Sequence[int] = SEEDS,
    resume: bool = False,
    console: Console | None = None,
) -> Path:
    """Train what is missing in a folder, and write what came of it: ``results.json``, ``report.md``, ``report.html``.

    Args:
        out: The folder; None: ``runs/bench-matrix``.
        cells: Which cells; None: all.
        domains: Only cells of these; None: all.
        seeds: With which seeds.
        resume: Go on with an earlier run, whose finished trainings are kept.
        console: Where lines go.

    Returns:
        The folder.

    Raises:
        FileExistsError: There is a result in the folder and ``resume`` is false.
        ValueError: There is no such cell or domain, the folder is of another version of the matrix, or somebody is at
            work in it.
    """
    out = Path("runs") / f"bench-{NAME}" if out is None else out
    chosen = _chosen(cells, domains)
    console = console or Console(highlight=False)
    path = out / "results.json"
    if path.exists() and not resume:
        raise FileExistsError(f"{out} holds an earlier run; go on with it by --resume, or give another folder by --out")
    out.mkdir(parents=True, exist_ok=True)
    lock = lock_folder(out)
    if lock is None:
        raise ValueError(f"another bench is at work in {out}; wait for it, or give another folder by --out")
    with lock:
        known: Any = read_json(path) if path.exists() else {"suite": NAME, "version": VERSION, "runs": {}}
        if not isinstance(known, dict) or (known.get("suite"), known.get("version")) != (NAME, VERSION):
            raise ValueError(f"{path} is not of the suite {NAME} in version {VERSION}; give another folder by --out")
        found: dict[str, Any] = known
        for seed in seeds:
            for name in chosen:
                runs = found["runs"].setdefault(name, {})
                recipe = _recipe(CELLS[name])
                if runs.get(str(seed), {}).get("recipe") != recipe:
                    told = train(CELLS[name], seed, out / "runs" / f"{name}-{seed}-{recipe}")
                    runs[str(seed)] = {"recipe": recipe, "made": machine.now(), "commit": machine.commit(), **told}
                    found |= {"machine": machine.describe()}
                    found["command"] = f"tetrathlon bench --suite {NAME}"
                    _write(path, found)
                before, after = (runs[str(seed)][when]["success"] for when in ("before", "after"))
                console.print(f"{name} seed {seed}: {before:.3f} -> {after:.3f}", soft_wrap=True)
        _write(path, found)
        write_matrix_page(out, found)
    console.print(_table(found["cells"]))
    console.print(f"report: {out / 'report.html'}", soft_wrap=True)
    return out


def _write(path: Path, found: dict[str, Any]) -> None:
    """Write what is known, with each cell over its seeds."""
    found["cells"] = _told(found["runs"])
    write_aside(path, (json.dumps(found, indent=1) + "\n").encode())


def _recipe(cell: Experiment) -> str:
    """Return a hash of what a cell is: a run of another one is none of it."""
    return fingerprint(cell.as_dict())[:16]


def _chosen(cells: Sequence[str] | None, domains: Sequence[str] | None) -> list[str]:
    """Return the names of the cells that are asked for."""
    known = [domain.name for domain in DOMAINS]
    for what, asked, there in (("cell", cells, list(CELLS)), ("domain", domains, known)):
        if unknown := [name for name in asked or () if name not in there]:
            raise ValueError(f"the matrix has no {what} {unknown[0]!r} (there are {', '.join(there)})")
    named = list(CELLS) if cells is None else list(dict.fromkeys(cells))
    chosen = [name for name in named if domains is None or name.partition("-")[0] in domains]
    if not chosen:
        raise ValueError(f"no cell of {named} is in the domains {list(domains or ())}")
    return chosen


def _told(runs: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each cell over its seeds."""
    cells = []
    for name, cell in CELLS.items():
        if not (of_seed := [run for run in runs.get(name, {}).values() if run["recipe"] == _recipe(cell)]):
            continue
        domain, _, family = name.partition("-")
        gains = [run["after"]["success"] - run["before"]["success"] for run in of_seed]
        cells.append(
            {
                "domain": domain,
                "family": family,
                "algorithm": cell.algorithm,
                "env": cell.env,
                "seeds": len(of_seed),
                **{when: _pooled([run[when]["success"] for run in of_seed], cell) for when in ("before", "after")},
                "gain": _paired(gains),
                **{
                    what: float(np.mean([sum(filter(None, run["train"].get(what, ()))) for run in of_seed]))
                    for what in ("episodes", "labels")
                },
                "cpu_seconds": float(np.mean([run["cpu_seconds"] for run in of_seed])),
                "test": [run["test"] for run in of_seed],
            }
        )
    return cells


def _pooled(successes: Sequence[float], cell: Experiment) -> dict[str, float]:
    """Return the success of all seeds together, with the interval of so many instances of one seed."""
    count = round(float(np.mean(successes)) * cell.test_episodes)
    told = rate(count, cell.test_episodes, cell.test_episodes)
    return {"mean": float(np.mean(successes)), "low": told["low"], "high": told["high"]}


def _paired(gains: Sequence[float]) -> dict[str, float | None]:
    """Return the mean of after less before, seed by seed, with its t interval of 95 %; None where one seed is all."""
    mean = float(np.mean(gains))
    if len(gains) < 2:
        return {"mean": mean, "low": None, "high": None}
    reach = float(stats.t.ppf(0.975, len(gains) - 1) * np.std(gains, ddof=1) / len(gains) ** 0.5)
    return {"mean": mean, "low": mean - reach, "high": mean + reach}


def _table(cells: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("", *FAMILIES.values(), title="success on held-out instances, before and after")
    known = {(cell["domain"], cell["family"]): cell for cell in cells}
    for domain in DOMAINS:
        row = [known.get((domain.name, family)) for family in FAMILIES]
        table.add_row(
            domain.name,
            *("" if cell is None else f"{cell['before']['mean']:.0%} -> {cell['after']['mean']:.0%}" for cell in row),
        )
    return table
