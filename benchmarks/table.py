"""The outcome of a run in the terminal, readable in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    for name, success, normalised in means(totals):
        table.add_row(f"{name} mean", *map(_cell, success), style="bold")
        if any(normalised):
            table.add_row("normalised (IQM)", *map(_score, normalised))
    return table


def means(totals: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """Give the rows of what policies come to: by domain where there are several, and for the suite.

    Args:
        totals: What ``aggregate`` of ``results.json`` holds of each policy.

    Returns:
        Of each row its name, the rates of success and the normalised scores; None where a policy has none.
    """
    domains = list(dict.fromkeys(domain for total in totals for domain in total["success"]["domains"]))
    for domain in domains if len(domains) > 1 else []:
        success, normalised = (
            [total[what]["domains"].get(domain) for total in totals] for what in ("success", "normalised")
        )
        yield domain, success, [score and score["iqm"] for score in normalised]
    whole = [total["normalised"]["overall"] for total in totals]
    yield "suite", [total["success"]["overall"] for total in totals], [score and score["iqm"] for score in whole]


def _cell(rate: Mapping[str, Any] | None) -> Text:
    if rate is None or rate["mean"] is None:
        return Text("–")
    return _number(100 * rate["mean"], 100 * rate["low"], 100 * rate["high"])


def _score(iqm: Mapping[str, Any] | None) -> Text:
    if iqm is None:
        return Text("–")
    if iqm.get("fixed"):
        return Text(f"{iqm['mean']:.0f}" + " " * 11)
    return _number(*(iqm[key] for key in ("mean", "low", "high")))


def _number(point: float, low: float, high: float) -> Text:
    return Text.assemble(f"{point:.0f} ", (f"[{low:3.0f},{high:4.0f}]", "dim"))
