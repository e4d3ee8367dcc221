"""What a finished run holds, by the questions that its reports ask."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tetrathlon.benchmarks import plots
from tetrathlon.benchmarks.excerpt import line
from tetrathlon.benchmarks.files import load_results
from tetrathlon.benchmarks.results import CEILING, FLOOR


class Run:
    """What ``results.json`` holds, by the questions that both reports ask."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        path = self.folder / "results.json"
        if not path.exists():
            raise FileNotFoundError(f"{self.folder} holds no results.json; give the folder of a finished bench")
        self.results = load_results(path)
        self.rows: list[dict[str, Any]] = self.results["entries"]
        self.aggregate: dict[str, Any] = self.results["aggregate"]
        there = [p["name"] for p in self.results["policies"] if p["name"] in self.aggregate]
        self.models = [name for name in there if name not in (FLOOR, CEILING)]
        self.policies = self.models + [name for name in there if name in (FLOOR, CEILING)]
        """Models first: on a narrow screen the others are a swipe away."""
        self.missing = [p for p in self.results["policies"] if not p["available"] and p["reason"]]
        self.names = list(dict.fromkeys(row["name"] for row in self.rows))
        self.number = {name: i + 1 for i, name in enumerate(self.names)}
        self.by = {(row["name"], row["policy"]): row for row in self.rows}
        self.series = plots.series(self.policies)
        self.focus = (self.models or self.policies[:1] or [None])[0]
        """Whose episodes are shown."""

    @property
    def title(self) -> str:
        """The suite and its version."""
        return f"{self.results['suite']} suite, version {self.results['version']}"

    def left_out(self) -> list[str]:
        """Return what was not measured, in sentences."""
        said = [f"{p['name']} was unavailable: {p['reason']}." for p in (*self.missing, *self.results["unavailable"])]
        lost = [
            f"{row['name']}, {row['policy']}: {row['grader_errors']} grader failures, {row['crashes']} crashes"
            for row in self.rows
            if row["grader_errors"] or row["crashes"]
        ]
        if lost:
            more = f"; and {len(lost) - 6} more" if len(lost) > 6 else ""
            said.append(f"Episodes that are left out: {'; '.join(lost[:6])}{more}.")
        return said

    def setting(self) -> str:
        """Return how much was measured, where and when, in a sentence."""
        repeat = self.results["repeat"]
        episodes = sum(row["success"]["n"] for row in self.rows)
        seconds = sum(row["seconds"] for row in self.rows)
        many = f"{len(self.names)} environments" if len(self.names) != 1 else "1 environment"
        return (
            f"{many}, {len(self.policies)} policies, {episodes:,} episodes on held-out instances in "
            f"{_duration(seconds)}, on {repeat['cpu']['count']} CPU cores ({line(repeat['cpu']['model'])}). "
            f"Finished {repeat['finished'][:16].replace('T', ' ')} UTC."
        )

    def repeat(self) -> list[tuple[str, str]]:
        """Return what must be the same for the same numbers, name by name."""
        repeat = self.results["repeat"]
        versions = ", ".join(f"{name} {found or 'not installed'}" for name, found in repeat["versions"].items())
        models = [f"{p['name']}: {p['source']}" for p in self.results["policies"] if p["source"]]
        rows = [
            ("seed", str(repeat["seed"])),
            ("model", "; ".join(models)),
            ("versions", versions),
            ("platform", repeat["platform"]),
            ("processor", f"{repeat['cpu']['model']}, {repeat['cpu']['count']} cores"),
            ("commit", repeat["commit"] or ""),
            ("started", repeat["started"]),
            ("finished", repeat["finished"]),
        ]
        if len(repeat["parts"]) > 1:
            rows.append(("resumed", f"{len(repeat['parts']) - 1} times; times are first start and last finish"))
        return [(name, value) for name, value in rows if value]


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"
