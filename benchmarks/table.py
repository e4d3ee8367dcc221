"""The outcome of a run in the terminal, readable in 80 columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tetrathlon.benchmarks.excerpt import line

_NAME = 20
_NUMBERS = 14
_GAP = 2


def show(results: Mapping[str, Any], folder: Path, console: Console) -> None:
    """Print success and intervals of each policy in each entry, and where the report lies.

    Args:
        results: What ``results.json`` holds.
        folder: The folder of the run.
        console: Where to print.
    """
    there = [policy["name"] for policy in results["policies"] if policy["name"] in results["aggregate"]]
    title = f"{results['suite']} v{results['version']} · success in %, with 95 % intervals"
    console.print(Text(title, style="bold"))
    # As many policies side by side as the terminal is wide; the others go below.
    abreast = max(1, (console.width - _NAME) // (_NUMBERS + _GAP))
    for start in range(0, len(there), abreast):
        console.print(_table(results, there[start : start + abreast]))
    for entry in results["unavailable"]:
        console.print(Text(f"{entry['name']} is unavailable: {entry['reason']}", style="yellow"))
    for policy in results["policies"]:
        if policy["reason"]:
            console.print(Text(f"{policy['name']} is unavailable: {policy['reason']}", style="yellow"))
    for row in results["entries"]:
        if row["grader_errors"] or row["crashes"]:
            console.print(
                Text(
                    f"{row['policy']} in {row['name']}: {row['grader_errors']} grader errors and "
                    f"{row['crashes']} crashes are left out",
                    style="yellow",
                )
            )
    console.print(Text(f"report: {folder / 'report.html'}"), soft_wrap=True)


def _table(results: Mapping[str, Any], policies: list[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    table.add_column("environment", no_wrap=True, overflow="ellipsis", max_width=_NAME)
    for policy in policies:
        table.add_column(Text(line(policy, _NUMBERS)), justify="right", no_wrap=True, min_width=_NUMBERS)
    rows = {(r["name"], r["policy"]): r for r in results["entries"]}
    for name in dict.fromkeys(name for name, _ in rows):
        cells = [_cell(rows[name, policy]["success"]) if (name, policy) in rows else "–" for policy in policies]
        table.add_row(Text(line(name, 40)), *cells)
    table.add_section()
    totals = [results["aggregate"][policy] for policy in policies]
    table.add_row("suite mean", *(_cell(total["success"]) for total in totals), style="bold")
    if any(total["normalised"]["overall"] for total in totals):
        table.add_row("normalised (IQM)", *(_score(total["normalised"]["overall"]) for total in totals))
    return table


def _cell(rate: Mapping[str, Any]) -> Text:
    if rate["mean"] is None:
        return Text("–")
    return _number(100 * rate["mean"], 100 * rate["low"], 100 * rate["high"])


def _score(normalised: Mapping[str, Any] | None) -> Text:
    if normalised is None:
        return Text("–")
    if normalised["iqm"].get("fixed"):
        return Text(f"{normalised['iqm']['mean']:.0f}" + " " * 11)
    return _number(*(normalised["iqm"][key] for key in ("mean", "low", "high")))


def _number(point: float, low: float, high: float) -> Text:
    return Text.assemble(f"{point:.0f} ", (f"[{low:3.0f},{high:4.0f}]", "dim"))
