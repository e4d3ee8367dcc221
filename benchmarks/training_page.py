"""The report of a training run: one page, while it is under way and when it is done."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from tetrathlon.benchmarks import plots
from tetrathlon.benchmarks.excerpt import escape, excerpt, line
from tetrathlon.benchmarks.figures import Figure, figures
from tetrathlon.benchmarks.files import load_tokens
from tetrathlon.benchmarks.history import History
from tetrathlon.benchmarks.milestones import Milestone, milestones
from tetrathlon.benchmarks.page import facts, page, table
from tetrathlon.benchmarks.token_page import tokens_html
from tetrathlon.benchmarks.view import Pictures, episode_html
from tetrathlon.envs.episode import Episode, load_episodes, write_aside

_SAMPLES = 4
"""Episodes of each outcome that are shown."""


def write_training_report(folder: str | os.PathLike[str]) -> Path:
    """Write ``report.html`` into the folder of a training run, from what is there so far.

    Args:
        folder: Holds ``config.json``, and where they are written already ``metrics.jsonl``, ``episodes.jsonl`` and
            ``tokens.json``.

    Returns:
        The path of the page, which needs no other file and no network.

    Raises:
        FileNotFoundError: There is no ``config.json`` in the folder.
        ValueError: That is not the configuration of a training run.
    """
    history = History(folder)
    drawn = {f"section-{number}": section for number, section in enumerate(figures(history))}
    body = [_head(history, {name: heading for name, (heading, _) in drawn.items()})]
    body.append(f'<h2 id="key">Key figures</h2>{_key_figures(history)}')
    numbers = count(1)
    for name, (heading, of_section) in drawn.items():
        parts = "".join(_figure(figure, next(numbers)) for figure in of_section)
        body.append(f'<h2 id="{name}">{escape(heading)}</h2><div class="plots">{parts}</div>')
    if tokens := _tokens(history):
        body.append(f'<h2 id="tokens">What changed, token by token</h2>{tokens}')
    body += [
        f'<h2 id="samples">Sample episodes</h2>{_samples(history)}',
        f'<h2 id="config">Configuration</h2>{facts(_settings(history.config))}',
        "<footer>Every number of this page is in <code>metrics.jsonl</code>, the episodes in "
        "<code>episodes.jsonl</code>.</footer>",
    ]
    path = history.folder / "report.html"
    write_aside(path, page(f"tetrathlon · {line(history.title)}", "\n".join(body)).encode("utf-8"))
    return path


def _figure(figure: Figure, number: int) -> str:
    title = f"Figure {number}. {line(figure.title)}."
    caption = f"<strong>{escape(title)}</strong> {escape(figure.look)}"
    return f"<figure>{plots.curves(figure, title)}<figcaption>{caption}</figcaption></figure>"


def _head(history: History, sections: Mapping[str, str]) -> str:
    told = [history.progress]
    if (policy := history.config.get("policy")) is not None:
        told.insert(0, str(policy))
    if episodes := history.total("episodes"):
        told.append(f"{episodes:,.0f} episodes")
    if history.seconds:
        told.append(_duration(history.seconds))
    links = {"key": "Key figures", **sections, "samples": "Episodes", "config": "Configuration"}
    nav = "".join(f'<a href="#{name}">{escape(text)}</a>' for name, text in links.items())
    return (
        f'<header><div class="brand">tetrathlon training</div><h1>{escape(line(history.title, 100))}</h1>'
        f'<p class="dim">{escape(line(" · ".join(told), 300))}</p><nav>{nav}</nav></header>'
        f'<div class="cards">{"".join(_cards(history))}</div>{"".join(_warnings(history))}'
    )


def _cards(history: History) -> Iterator[str]:
    shown = {stone.name: stone for stone in milestones(history)}
    for name, colour in (("test/success", 3), ("success", 2), ("test/reward", 3), ("episode_reward", 2)):
        if (stone := shown.get(name)) is None or math.isnan(stone.start):
            continue
        start, end, interval = stone.start, stone.end, ""
        if name == "test/success" and "test/low" in history.columns and "test/high" in history.columns:
            # An interval is that of one measurement, so the number above it is too.
            start, end = history.columns[name].value[[0, -1]].tolist()
            low, high = (history.columns[f"test/{side}"].value[-1] for side in ("low", "high"))
            interval = f"; at the end [{stone.say(low)}, {stone.say(high)}]"
        yield (
            f'<div class="card" style="--c: var(--s{colour})"><div class="who">{escape(stone.label)}</div>'
            f'<div class="big">{stone.say(end)}</div>'
            f'<div class="more">{stone.say(start)} at the start{interval}</div></div>'
        )


def _warnings(history: History) -> Iterator[str]:
    said = []
    if history.updates is not None and history.done < history.updates:
        said.append(f"{history.progress} are done: the run is under way, or it was stopped.")
    if history.damaged:
        said.append(f"Lines of metrics.jsonl that cannot be read and are left out: {history.damaged:,}.")
    if (column := history.columns.get("test/shortcut")) is not None and column.value[-1] == 1:
        said.append(
            "Shortcut: success has risen, and being right on both a picture and its twin has not. What is learnt does "
            "not come from the pictures."
        )
    gaps = [name for name, column in history.columns.items() if math.isnan(column.value[-1])]
    if gaps:
        names = ", ".join(line(name) for name in gaps[:6]) + (f" and {len(gaps) - 6} more" if len(gaps) > 6 else "")
        said.append(f"Not a number at the last update: {names}.")
    for text in said:
        yield f'<p class="warn">{escape(text)}</p>'


def _key_figures(history: History) -> str:
    stones = milestones(history)
    if not stones:
        return '<p class="note">No update is done yet.</p>'
    head = ["<th>figure</th>", *(f'<th class="n">{name}</th>' for name in ("start", "end", "best", "at update"))]
    rows = [_row(stone) for stone in stones]
    wide = max(column.width for column in history.columns.values())
    note = "Start and end are those of the first and the last update that told a figure."
    if wide > 1:
        note = (
            f"Start and end are means over the first and the last {wide} updates, best is the best such mean; of a "
            "figure that was told fewer than 20 times they are single values."
        )
    return f'{table(head, [("", rows)])}<p class="note">{note}</p>'


def _row(stone: Milestone) -> str:
    best, at = ("–", "–") if stone.best is None else (stone.say(stone.best[0]), f"{stone.best[1]:,}")
    cells = "".join(f'<td class="n">{text}</td>' for text in (stone.say(stone.start), stone.say(stone.end), best, at))
    return f"<tr><td>{escape(stone.label)}</td>{cells}</tr>"


def _tokens(history: History) -> str:
    path = history.folder / "tokens.json"
    if not path.is_file():
        return ""
    try:
        return tokens_html(load_tokens(path))
    except ValueError as error:
        return f'<p class="warn">{escape(excerpt(error, 400))}</p>'


def _samples(history: History) -> str:
    try:
        episodes = load_episodes(history.folder)
    except FileNotFoundError:
        return '<p class="note">There are none yet: they are kept with each checkpoint.</p>'
    except ValueError as error:  # a run under way may just be writing others
        return f'<p class="warn">{escape(excerpt(error, 400))}</p>'
    pictures = Pictures(4_000_000)
    cards = "".join(episode_html(episode, pictures, turns=8) for episode in _chosen(episodes))
    kept = f"of {len(episodes):,} that were kept"
    chosen = f"the first {_SAMPLES} episodes {kept}"
    if any(episode.last_info.get("is_success") is not None for episode in episodes):
        right = sum(episode.is_success for episode in episodes)
        chosen = f"the first {_SAMPLES} right and the first {_SAMPLES} other episodes {kept}, {right:,} of them right"
    return f'<p class="note">Of the newest checkpoint: {chosen}.</p><div class="episodes">{cards}</div>'


def _chosen(episodes: list[Episode]) -> list[Episode]:
    """Return the first episodes of each outcome, from as many starts as there are."""
    met: Counter[int | None] = Counter()
    turns = []
    for episode in episodes:
        turns.append(met[episode.group])
        met[episode.group] += episode.group is not None
    episodes = [episodes[at] for at in sorted(range(len(episodes)), key=lambda at: turns[at])]
    right = [episode for episode in episodes if episode.is_success]
    others = [episode for episode in episodes if not episode.is_success]
    return [*right[:_SAMPLES], *others[:_SAMPLES]]


def _settings(config: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield what was asked for, nested settings by their path."""
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from _settings(value, f"{above}{name}.")
        else:
            yield line(f"{above}{name}", 60), f"<code>{escape(excerpt(value, 300, 4))}</code>"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
