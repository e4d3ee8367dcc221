"""A training run in the terminal, readable in 80 columns."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tetrathlon.benchmarks.excerpt import line
from tetrathlon.benchmarks.history import Floats, History
from tetrathlon.benchmarks.milestones import milestones

_BARS, _PLAIN = "▁▂▃▄▅▆▇█", "_.-=+*#@"
_COLUMNS = 24


def show_training(history: History, console: Console) -> None:
    """Print where the figures of a run began, where they are, their best, and how they got there.

    Args:
        history: The run.
        console: Where to print.
    """
    policy = history.config.get("policy")
    told = [history.title, *([str(policy)] if policy else []), history.progress]
    console.print(Text(line(" · ".join(told), 200), style="bold"))
    stones = milestones(history)
    if not stones:
        console.print(Text("no update is done yet"))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("figure", no_wrap=True)
    for name in ("start", "end", "best"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("over the run", no_wrap=True)
    for stone in stones:
        best = "" if stone.best is None else stone.say(stone.best[0])
        curve = sparkline(history.columns[stone.name].mean, _PLAIN if console.options.ascii_only else _BARS)
        table.add_row(stone.label, stone.say(stone.start), stone.say(stone.end), best, curve)
    console.print(table)


def sparkline(values: Floats, bars: str = _BARS) -> str:
    """Return a curve of one line, its lowest value at the lowest bar and a gap as a space.

    Args:
        values: [N]; means of neighbours are drawn where there are more than 24.
        bars: From low to high.
    """
    parts = np.array_split(values, min(len(values), _COLUMNS))
    means = np.array([np.nan if np.isnan(part).all() else np.nanmean(part) for part in parts])
    if np.isnan(means).all():
        return ""
    low, high = np.nanmin(means), np.nanmax(means)
    heights = (means - low) / (high - low) if high > low else np.where(np.isnan(means), np.nan, 0.0)
    return "".join(" " if np.isnan(h) else bars[min(int(h * len(bars)), len(bars) - 1)] for h in heights)
