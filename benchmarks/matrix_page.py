"""What came of the matrix, as a page and in Markdown: the cells, their curves, what they cost, how to repeat them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tetrathlon.benchmarks import plots
from tetrathlon.benchmarks.excerpt import escape
from tetrathlon.benchmarks.figures import Curve, Figure
from tetrathlon.benchmarks.page import facts, page, table
from tetrathlon.envs.episode import write_aside

FAMILIES: Mapping[str, str] = {
    "grpo": "GRPO",
    "ppo": "PPO + GAE",
    "dagger": "DAgger",
    "offline": "offline RL",
}
"""What stands in the columns; which algorithm is offline RL differs by domain."""

_COSTS = ("Episodes played", "Labels asked", "CPU seconds")
Cells = Mapping[tuple[str, str], Mapping[str, Any]]

_BANDIT = (
    "Where an episode is one step, DAgger is behaviour cloning with a budget of queries: no state depends on what was "
    "done before."
)
_READ = (
    "Each cell begins with the weights of its domain's start and is looked at on the same held-out instances before "
    "and after. In brackets the 95 % Wilson interval of as many instances as one seed plays; the gain is paired over "
    "seeds, with its t interval: where it holds 0, the cell did not improve for sure."
)


def write_matrix_page(folder: Path, found: Mapping[str, Any]) -> None:
    """Write ``report.html`` and ``report.md`` beside ``results.json``.

    Args:
        folder: The folder.
        found: What ``results.json`` holds.
    """
    cells: Cells = {(cell["domain"], cell["family"]): cell for cell in found["cells"]}
    domains = list(dict.fromkeys(domain for domain, _ in cells))
    body = [
        "<h1>The matrix</h1>",
        f"<p>Four families of algorithms in four domains. {escape(_READ)}</p>",
        table(_head(), [("", [_row(domain, cells) for domain in domains])]),
        f"<p>{escape(_BANDIT)}</p>",
        '<h2 id="curves">Learning curves</h2><div class="plots">',
        *(_curves(domain, cells) for domain in domains),
        '</div><h2 id="cost">What it cost</h2>',
        table(
            ["<th></th>", *(f'<th class="n">{name}</th>' for name in _COSTS)],
            [("", [_cost(cell) for cell in found["cells"]])],
        ),
        '<h2 id="repeat">How to repeat it</h2>',
        facts(_facts(found)),
    ]
    write_aside(folder / "report.html", page("tetrathlon · the matrix", "\n".join(body)).encode())
    write_aside(folder / "report.md", _markdown(found, cells, domains).encode())


def _head() -> list[str]:
    return ["<th></th>", *(f"<th>{escape(family)}</th>" for family in FAMILIES.values())]


def _row(domain: str, cells: Cells) -> str:
    shown = []
    for family in FAMILIES:
        cell = cells.get((domain, family))
        if cell is None:
            shown.append("<td>not run</td>")
            continue
        before, after = (f"{_rate(cell[when])} <small>{_reach(cell[when])}</small>" for when in ("before", "after"))
        gain = f"{_named(cell)}gain {_gain(cell['gain'])}"
        parts = (f"{before} →", after, f"<small>{gain},</small>", f"<small>{cell['seeds']} seeds</small>")
        shown.append(f"<td>{' '.join(map(_whole, parts))}</td>")
    return f'<tr><th scope="row">{escape(domain)}</th>{"".join(shown)}</tr>'


def _whole(markup: str) -> str:
    """Return markup that no line break parts."""
    return f'<span style="white-space: nowrap">{markup}</span>'


def _named(cell: Mapping[str, Any]) -> str:
    """Return which algorithm a cell is of, where its column does not say so."""
    return f"{cell['algorithm'].upper()}: " if cell["family"] == "offline" else ""


def _rate(told: Mapping[str, float]) -> str:
    return f"{100 * told['mean']:.0f}"


def _reach(told: Mapping[str, float]) -> str:
    return f"[{100 * told['low']:.0f}, {100 * told['high']:.0f}]"


def _gain(told: Mapping[str, float | None]) -> str:
    if told["low"] is None or told["high"] is None:
        return f"{100 * (told['mean'] or 0):+.0f}"
    return f"{100 * (told['mean'] or 0):+.0f} [{100 * told['low']:+.0f}, {100 * told['high']:+.0f}]"


def _curves(domain: str, cells: Cells) -> str:
    figure = _figure(domain, cells)
    drawn = plots.curves(figure, f"Success in {domain}", along="updates in % of the budget")
    return f"<figure>{drawn}<figcaption><strong>{escape(domain)}</strong>. {escape(figure.look)}</figcaption></figure>"


def _figure(domain: str, cells: Cells) -> Figure:
    drawn = []
    for family, title in FAMILIES.items():
        if (cell := cells.get((domain, family))) is None:
            continue
        looks = [{look["updates"]: look["success"] for look in run} for run in cell["test"]]
        at = sorted(set.intersection(*map(set, looks)))
        values = np.array([[run[update] for update in at] for run in looks])
        mean = values.mean(axis=0)
        done = np.array(at, dtype=np.float64) / max(at)  # budgets differ in updates, not in what they may cost
        drawn.append(Curve(title, 100 * done, mean, mean, values.min(axis=0), values.max(axis=0)))
    return Figure(
        title=domain,
        axis="success in %",
        look="Means over seeds, from the lowest to the highest of them.",
        curves=tuple(drawn),
        is_share=True,
    )


def _cost(cell: Mapping[str, Any]) -> str:
    name = f"{cell['domain']}, {FAMILIES[cell['family']]}"
    numbers = (cell["episodes"], cell["labels"], cell["cpu_seconds"])
    shown = "".join(f'<td class="n">{number:,.0f}</td>' for number in numbers)
    return f'<tr><th scope="row">{escape(name)}</th>{shown}</tr>'


def _facts(found: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    machine = found["machine"]
    commits = sorted({str(run["commit"]) for of_cell in found["runs"].values() for run in of_cell.values()})
    return [
        ("suite", f"{found['suite']}, version {found['version']}"),
        ("command", f"<code>{escape(found['command'])}</code>"),
        ("machine", escape(f"{machine.get('cpu')}, {machine.get('platform')}")),
        ("versions", escape(", ".join(f"{name} {told}" for name, told in machine.get("versions", {}).items() if told))),
        ("commits", escape(", ".join(commits))),
    ]


def _markdown(found: Mapping[str, Any], cells: Cells, domains: Sequence[str]) -> str:
    lines = [f"| | {' | '.join(FAMILIES.values())} |", f"|---{'|---' * len(FAMILIES)}|"]
    for domain in domains:
        row = []
        for family in FAMILIES:
            cell = cells.get((domain, family))
            if cell is None:
                row.append("not run")
                continue
            rates = " → ".join(f"{_rate(cell[when])} {_reach(cell[when])}" for when in ("before", "after"))
            row.append(f"{_named(cell)}{rates}, gain {_gain(cell['gain'])}")
        lines.append(f"| {domain} | {' | '.join(row)} |")
    return "\n".join([f"# Matrix, version {found['version']}", "", _READ, "", *lines, "", _BANDIT, ""])
