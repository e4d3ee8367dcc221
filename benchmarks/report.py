"""The report of a run: one page in HTML, one in Markdown."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tetrathlon.benchmarks import plots
from tetrathlon.benchmarks.excerpt import escape, excerpt, line, visible
from tetrathlon.benchmarks.page import dot, facts, page, table
from tetrathlon.benchmarks.report_run import Run
from tetrathlon.benchmarks.report_tables import costs, looks, passes
from tetrathlon.benchmarks.results import CEILING, FLOOR
from tetrathlon.benchmarks.table import means
from tetrathlon.benchmarks.view import Pictures, episode_html, write_view
from tetrathlon.envs.episode import Episode, load_episodes, write_aside

__all__ = ["write_markdown", "write_report", "write_view"]

_SAMPLES = 2
"""Episodes of each outcome that are shown for an entry."""
_WHAT = ("success", "normalised")
_UNITS = {"tokens": "tokens a reply", "characters": "characters a reply", "steps": "steps an episode"}


def write_report(folder: str | os.PathLike[str]) -> Path:
    """Write ``report.html`` beside the ``results.json`` of a run.

    Returns:
        The path of the page, which needs no other file and no network.

    Raises:
        FileNotFoundError: There is no ``results.json`` in the folder.
        ValueError: It is none.
    """
    run = Run(folder)
    sections = [
        _head(run),
        f'<h2 id="table">Success by environment</h2>{_table(run)}{_footnote(run)}',
        f'<h2 id="plots">Plots</h2><div class="plots">{_plots(run)}</div>',
        f'<h2 id="stops">How episodes ended</h2>{_stops(run)}',
        passes(run),
        costs(run),
        looks(run),
        f'<h2 id="samples">Sample episodes</h2>{_samples(run)}',
        '<h2 id="repeat">How to repeat it</h2>'
        f'<pre class="command">{escape(run.results["repeat"]["command"])}</pre><p></p>'
        + facts([(name, escape(value)) for name, value in run.repeat()]),
        "<footer>Every number of this page is in <code>results.json</code>, every episode below <code>cells/</code>."
        "</footer>",
    ]
    path = run.folder / "report.html"
    write_aside(path, page(f"tetrathlon · {run.title}", "\n".join(sections)).encode("utf-8"))
    return path


def _head(run: Run) -> str:
    cards = []
    for policy in run.policies:
        total = run.aggregate[policy]
        # One number a card: of the suite, or of the first domain of a policy that cannot play all of it.
        domain = next(iter(total["success"]["domains"]), "")
        is_part = total["success"]["overall"]["mean"] is None and domain
        rate, score = (
            total[what]["domains"].get(domain) if is_part else total[what]["overall"]
            for what in ("success", "normalised")
        )
        more = (
            f"normalised {_number(score['iqm'], 1)} (IQM)" if score and policy not in (FLOOR, CEILING) else
            {FLOOR: "0 of the normalised scale", CEILING: "100 of the normalised scale"}.get(policy, "")
        )  # fmt: skip
        cards.append(
            f'<div class="card" style="--c: var(--s{run.series[policy]})"><div class="who">{escape(line(policy))}'
            f"{f' · {escape(domain)}' if is_part else ''}</div>"
            f'<div class="big">{_big(rate)}</div><div class="more">{more}</div></div>'
        )
    warnings = "".join(f'<p class="warn">{escape(excerpt(text, 800))}</p>' for text in run.left_out())
    links = (
        ("table", "Table"),
        ("plots", "Plots"),
        ("stops", "Endings"),
        ("samples", "Episodes"),
        ("repeat", "Repeat"),
    )
    nav = "".join(f'<a href="#{name}">{text}</a>' for name, text in links)
    return (
        f'<header><div class="brand">tetrathlon benchmark</div><h1>{escape(run.title)}</h1>'
        f'<p class="dim">{escape(run.setting())}</p><nav>{nav}</nav></header>\n'
        f'<p class="note">Mean success over the environments, with 95 % intervals.</p>'
        f'<div class="cards">{"".join(cards)}</div>{warnings}'
    )


def _table(run: Run) -> str:
    head = ['<th class="k"></th><th>environment</th>']
    head += [f'<th class="n">{dot(run.series[policy])}{escape(line(policy, 24))}</th>' for policy in run.policies]
    rows = []
    for name in run.names:
        some = next(row for row in run.rows if row["name"] == name)
        arguments = ", ".join(f"{key}={value!r}" for key, value in some["kwargs"].items())
        what = f"{some['env'].removeprefix('tetrathlon/')}  {arguments}"
        cells = [_rate_cell(run.by.get((name, policy))) for policy in run.policies]
        rows.append(
            f'<tr><td class="k">{run.number[name]}</td><td>{escape(line(name))}'
            f'<code class="env">{escape(line(what, 200))}</code></td>{"".join(cells)}</tr>'
        )
    totals = []
    for name, success, normalised in means([run.aggregate[policy] for policy in run.policies]):
        totals.append(_total(f"{name} mean", success, 100))
        if any(normalised):
            totals.append(_total(f"{name}, normalised (IQM)", normalised, 1))
    return table(head, [("", rows), ("total", totals)])


def _total(name: str, spreads: Sequence[Mapping[str, Any] | None], scale: float) -> str:
    cells = "".join(f'<td class="n">{_interval(spread, scale)}</td>' for spread in spreads)
    return f"<tr><td></td><td>{escape(name)}</td>{cells}</tr>"


def _rate_cell(row: Mapping[str, Any] | None) -> str:
    return f'<td class="n">{_interval(row["success"] if row else None, 100)}</td>'


def _interval(spread: Mapping[str, Any] | None, scale: float) -> str:
    if spread is None or spread["mean"] is None:
        return "–<small></small>"
    point, low, high = (scale * spread[key] for key in ("mean", "low", "high"))
    if spread.get("fixed"):
        return f"{point:.0f} <small></small>"
    return f"{point:.0f} <small>[{low:.0f}, {high:.0f}]</small>"


def _big(spread: Mapping[str, Any]) -> str:
    if spread["mean"] is None:
        return "–"
    point, low, high = (100 * spread[key] for key in ("mean", "low", "high"))
    return f"{point:.1f} % <small>[{low:.1f}, {high:.1f}]</small>"


def _number(spread: Mapping[str, Any], scale: float) -> str:
    point, low, high = (scale * spread[key] for key in ("mean", "low", "high"))
    return f"{point:.1f} [{low:.1f}, {high:.1f}]"


def _footnote(run: Run) -> str:
    said = [
        "Success in %, with 95 % Wilson intervals over the different instances that were asked; that of the suite "
        "mean joins them by squares."
    ]
    if any(run.aggregate[policy]["normalised"]["domains"] for policy in run.policies):
        said.append(
            f"Normalised: 0 is {FLOOR}, 100 the {CEILING}; IQM is the mean of the middle half of the environments; "
            "its interval is that of draws of each rate from Beta(right + 1/2, wrong + 1/2) over different instances."
        )
    repeated = [
        f"{row['name']} ({row['success']['distinct']})"
        for row in run.rows
        if row["policy"] == run.policies[0] and row["success"]["distinct"] < row["success"]["n"]
    ]
    if repeated:
        said.append(f"Fewer different instances than episodes: {', '.join(repeated)}.")
    return f'<p class="note">{escape(" ".join(said))}</p>'


def _plots(run: Run) -> str:
    figures = [_figure(plots.success(run.rows, run.policies), "Each mark is a policy, each line its interval.")]
    own = [run.by[name, run.focus] for name in run.names if (name, run.focus) in run.by] if run.models else []
    units = {row["lengths"]["unit"] for row in own}
    if len(units) == 1:
        lengths = [
            {"name": row["name"], "right": row["lengths"]["success"], "wrong": row["lengths"]["failure"]} for row in own
        ]
        unit = _UNITS.get(next(iter(units)), "length")
        said = f"How long {escape(line(run.focus))} goes on when it is right and when it is wrong."
        figures.append(_figure(plots.lengths(lengths, unit), said))
    reasons = list(dict.fromkeys(reason for row in own for reason in row["stop_reasons"]))
    if 1 < len(reasons) <= plots.MOST_SERIES:
        said = f"Why the episodes of {escape(line(run.focus))} ended."
        figures.append(_figure(plots.endings(own, reasons), said))
    points = [
        {
            "number": run.number[row["name"]],
            "policy": row["policy"],
            "seconds": max(row["seconds"] / row["episodes"], 1e-5),
            "success": row["success"]["mean"],
        }
        for row in run.rows
        if row["success"]["mean"] is not None
    ]
    if points:
        figures.append(_figure(plots.cost(points, run.policies), "Wall-clock time, with up to 16 episodes at once."))
    return "".join(figures)


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{caption}</figcaption></figure>"


def _stops(run: Run) -> str:
    shown = run.models or run.policies
    reasons = list(dict.fromkeys(r for row in run.rows if row["policy"] in shown for r in row["stop_reasons"]))
    head = ['<th class="k"></th><th>environment</th><th>policy</th>']
    head += [f'<th class="n">{escape(line(reason, 24))}</th>' for reason in reasons]
    head.append('<th class="n">tokens</th><th class="n">seconds</th>')
    rows = []
    for name in run.names:
        for policy in shown:
            if (row := run.by.get((name, policy))) is None:
                continue
            counts = "".join(f'<td class="n">{row["stop_reasons"].get(reason, "–")}</td>' for reason in reasons)
            tokens = "–" if row["tokens"] is None else f"{row['tokens']:.1f}"
            rows.append(
                f'<tr><td class="k">{run.number[name]}</td><td>{escape(line(name))}</td>'
                f"<td>{dot(run.series[policy])}{escape(line(policy, 24))}</td>{counts}"
                f'<td class="n">{tokens}</td><td class="n">{row["seconds"] / row["episodes"]:.2f}</td></tr>'
            )
    return (
        table(head, [("", rows)])
        + '<p class="note">Episodes by stop reason; sampled tokens and wall-clock seconds an episode.</p>'
    )


def _samples(run: Run) -> str:
    if run.focus is None:
        return '<p class="note">Nothing was measured.</p>'
    pictures = Pictures(4_000_000)
    parts = [
        f'<p class="note">What {escape(line(run.focus))} did: the first {_SAMPLES} right and the first {_SAMPLES} '
        "wrong episodes of each environment, one at least for each reason why they ended.</p>"
    ]
    for name in run.names:
        if (row := run.by.get((name, run.focus))) is None:
            continue
        episodes = _chosen(run.folder, row)
        cards = "".join(episode_html(episode, pictures, turns=8) for episode in episodes)
        rate = row["success"]
        right = "" if rate["mean"] is None else f"<small>{round(rate['mean'] * rate['n'])} of {rate['n']} right</small>"
        is_open = " open" if name == run.names[0] else ""
        parts.append(
            f"<details{is_open}><summary>{run.number[name]} · {escape(line(name))} {right}</summary>"
            f'<div class="inside"><div class="episodes">{cards}</div></div></details>'
        )
    return "".join(parts)


def _chosen(folder: Path, row: Mapping[str, Any]) -> list[Episode]:
    """Return the first episodes of each outcome, one at least for each reason why they ended."""
    episodes = [episode for cell in row["cells"] for episode in load_episodes(folder / "cells" / cell)]
    chosen: list[Episode] = []
    for outcome in (True, False):
        own = [episode for episode in episodes if episode.is_success == outcome]
        firsts = {episode.stop_reason: number for number, episode in reversed(list(enumerate(own)))}.values()
        numbers = list(dict.fromkeys([*sorted(firsts), *range(len(own))]))[: max(_SAMPLES, len(firsts))]
        chosen += [own[number] for number in sorted(numbers)]
    return chosen


def write_markdown(folder: str | os.PathLike[str]) -> Path:
    """Write ``report.md`` beside the ``results.json`` of a run.

    Returns:
        Its path.

    Raises:
        FileNotFoundError: There is no ``results.json`` in the folder.
        ValueError: It is none.
    """
    run = Run(folder)
    lines = [f"# tetrathlon: {_cell(run.title)}", "", _cell(run.setting()), ""]
    lines += [f"> {_cell(text)}\n" for text in run.left_out()]
    heads = ["environment", *map(_cell, run.policies)]
    lines += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in run.names:
        cells = [_mark(row["success"] if (row := run.by.get((name, p))) else None, 100) for p in run.policies]
        lines.append(f"| {' | '.join([_cell(name), *cells])} |")
    for name, success, normalised in means([run.aggregate[policy] for policy in run.policies]):
        lines.append(f"| **{name} mean** | {' | '.join(_mark(one, 100) for one in success)} |")
        if any(normalised):
            lines.append(f"| {name}, normalised (IQM) | {' | '.join(_mark(one, 1) for one in normalised)} |")
    lines += ["", _cell("Success in %, with 95 % intervals."), "", "## How to repeat it", ""]
    lines += [*(f"    {text}" for text in visible(run.results["repeat"]["command"]).split("\n")), ""]
    lines += [f"- {name}: {_cell(value)}" for name, value in run.repeat()]
    path = run.folder / "report.md"
    write_aside(path, ("\n".join(lines) + "\n").encode("utf-8"))
    return path


def _mark(spread: Mapping[str, Any] | None, scale: float) -> str:
    if spread is None or spread["mean"] is None:
        return "–"
    if spread.get("fixed"):
        return f"{scale * spread['mean']:.0f}"
    return "{:.0f} [{:.0f}, {:.0f}]".format(*(scale * spread[key] for key in ("mean", "low", "high")))


def _cell(text: str) -> str:
    """Return ``text`` on one line, with what Markdown or HTML would take as its own escaped."""
    marked = "".join(f"\\{letter}" if letter in r"\|`*_[]#" else letter for letter in line(text, 600))
    return html.escape(marked, quote=False)  # last: the # of an entity must not be escaped in turn
