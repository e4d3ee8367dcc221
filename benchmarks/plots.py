"""Figures as inline SVG that takes its font and its colours from the page, light or dark."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tetrathlon.benchmarks.excerpt import escape, line
from tetrathlon.benchmarks.figures import Figure
from tetrathlon.benchmarks.history import Floats

_WIDTH = 4.7  # inches; as wide as a column of the page, so that its letters keep their size on a phone
_ROW = 0.36
_INK, _FAINT, _GROUND = "#010101", "#020202", "#030303"
_COLOURS: Mapping[str, str] = {_INK: "var(--ink)", _FAINT: "var(--rule)", _GROUND: "var(--ground)"}
_SERIES = tuple(f"#0400{i:02x}" for i in range(8))
_MARKERS = "oDsv^PX<"
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
_CURVES = (2, 3, 1, 4, 7, 5)  # numbers of colours that are easily told apart
_MOST_POINTS = 400
MOST_SERIES = len(_SERIES)


def series(policies: Sequence[str]) -> dict[str, int]:
    """Return the number of each policy's colour, ``--s0`` and so on; random and expert always have the same."""
    fixed = {"random": 0, "expert": 1}
    others = [policy for policy in policies if policy not in fixed]
    numbers = {policy: 2 + i % (len(_SERIES) - 2) for i, policy in enumerate(others)}
    return {policy: fixed.get(policy, numbers.get(policy, 2)) for policy in policies}


def success(rows: Sequence[Mapping[str, Any]], policies: Sequence[str]) -> str:
    """Draw the success rate of each policy in each entry, with its interval.

    Args:
        rows: Rows of ``results.json``.
        policies: Which, in order.

    Returns:
        An ``<svg>`` element.
    """
    names = list(dict.fromkeys(row["name"] for row in rows))
    place = {name: i for i, name in enumerate(names)}
    numbers = series(policies)

    def draw(axes: Any) -> None:
        step = 0.22 if len(policies) < 4 else 0.66 / len(policies)
        for order, policy in enumerate(policies):
            shown = [row for row in rows if row["policy"] == policy and row["success"]["mean"] is not None]
            shift = (order - (len(policies) - 1) / 2) * step
            colour = _SERIES[numbers[policy]]
            at = [place[row["name"]] + shift for row in shown]
            rates = [row["success"] for row in shown]
            axes.hlines(
                at, [100 * r["low"] for r in rates], [100 * r["high"] for r in rates], color=colour, lw=1.6, alpha=0.55
            )
            axes.plot(
                [100 * r["mean"] for r in rates], at, _MARKERS[numbers[policy]], color=colour, ms=5, ls="none",
                clip_on=False, label=_plain(line(policy, 14)),
            )  # fmt: skip
        for i in range(1, len(names)):
            axes.axhline(i - 0.5, color=_FAINT, lw=0.6)
        _rows(axes, names)
        axes.set_xlim(-2, 102)
        axes.set_xlabel("success in %, with 95 % interval")
        _legend(axes)

    return _svg(draw, len(names), "Success rate by environment and policy", 0.95)


def lengths(rows: Sequence[Mapping[str, Any]], title: str) -> str:
    """Draw how long replies are when they are right and when they are wrong.

    Args:
        rows: Mappings with ``name``, ``right`` and ``wrong``, mean lengths or None.
        title: What the lengths are, with their unit.
    """
    names = [row["name"] for row in rows]

    def draw(axes: Any) -> None:
        for i, row in enumerate(rows):
            if row["right"] is not None and row["wrong"] is not None:
                axes.plot([row["right"], row["wrong"]], [i, i], color=_FAINT, lw=2.2, zorder=1)
        for outcome, marker, colour in (("right", "o", _SERIES[1]), ("wrong", "X", _SERIES[3])):
            known = [(row[outcome], i) for i, row in enumerate(rows) if row[outcome] is not None]
            axes.plot(
                [x for x, _ in known], [y for _, y in known], marker, color=colour, ms=5.5, ls="none",
                label=outcome, zorder=2,
            )  # fmt: skip
        _rows(axes, names)
        axes.set_xlim(left=0)
        axes.margins(x=0.06)
        axes.set_xlim(left=0)
        axes.set_xlabel(_plain(title))
        _legend(axes)

    return _svg(draw, len(names), title, 0.95)


def endings(rows: Sequence[Mapping[str, Any]], reasons: Sequence[str]) -> str:
    """Draw which share of the episodes of each entry stopped for which reason.

    Args:
        rows: Rows of ``results.json`` of one policy.
        reasons: Stop reasons, in order; at most as many as there are colours.
    """

    def draw(axes: Any) -> None:
        left = [0.0] * len(rows)
        for number, reason in enumerate(reasons):
            counts = [row["stop_reasons"].get(reason, 0) for row in rows]
            shares = [100 * n / max(sum(row["stop_reasons"].values()), 1) for n, row in zip(counts, rows, strict=True)]
            colour = _SERIES[(2, 3, 5, 4, 6, 7, 1, 0)[number]]
            axes.barh(range(len(rows)), shares, 0.55, left, color=colour, label=_plain(line(reason, 14)))
            left = [a + b for a, b in zip(left, shares, strict=True)]
        _rows(axes, [row["name"] for row in rows])
        axes.set_xlim(0, 100)
        axes.set_xlabel("episodes in %")
        _legend(axes)

    return _svg(draw, len(rows), "Stop reasons by environment", 0.95 + 0.2 * ((len(reasons) - 1) // 3))


def cost(points: Sequence[Mapping[str, Any]], policies: Sequence[str]) -> str:
    """Draw success against seconds an episode.

    Args:
        points: Mappings with ``number`` (of the entry), ``policy``, ``seconds`` and ``success`` (0 to 1).
        policies: Which, in order.
    """
    numbers = series(policies)

    def draw(axes: Any) -> None:
        from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

        for policy in policies:
            own = [point for point in points if point["policy"] == policy]
            axes.plot(
                [point["seconds"] for point in own], [100 * point["success"] for point in own],
                _MARKERS[numbers[policy]], color=_SERIES[numbers[policy]], ms=5, ls="none", clip_on=False,
                label=_plain(line(policy, 14)),
            )  # fmt: skip
            for point in own if policy not in ("random", "expert") else ():
                place = (point["seconds"], 100 * point["success"])
                axes.annotate(str(point["number"]), place, (4, 3), textcoords="offset points", fontsize=7.5)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=9))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_ylim(-3, 103)
        axes.set_xlabel("seconds an episode (log scale); numbers as in the table")
        axes.set_ylabel("success in %")
        axes.grid(color=_FAINT, lw=0.6)
        _legend(axes)

    return _svg(draw, 9, "Success against seconds an episode", 0.6)


def curves(figure: Figure, title: str, *, along: str = "update") -> str:
    """Draw what a training run told of itself over its updates.

    What was told is drawn faintly, its moving mean on top. Of a long run the faint part is a band from the lowest to
    the highest value of a few neighbours.

    Args:
        figure: At most six curves.
        title: What to call it, as no other figure of the page is called.
        along: What the axis from left to right is.

    Returns:
        An ``<svg>`` element.
    """
    scale = 100 if figure.is_share else 1

    def draw(axes: Any) -> None:
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        for number, curve in enumerate(figure.curves):
            colour = _SERIES[_CURVES[number % len(_CURVES)]]
            least, most = _thinned(scale * curve.value)
            at, mean = (_middles(each) for each in (curve.update, scale * curve.mean))
            if len(at) < len(curve.update):
                axes.fill_between(at, least, most, color=colour, alpha=0.2, lw=0)
            elif not np.array_equal(curve.value, curve.mean, equal_nan=True):
                axes.plot(at, least, color=colour, lw=0.7, alpha=0.4)
            if curve.low is not None and curve.high is not None:
                low, high = (_middles(scale * each) for each in (curve.low, curve.high))
                if len(at) > 1:
                    axes.fill_between(at, low, high, color=colour, alpha=0.13, lw=0)
                else:
                    axes.vlines(at, low, high, color=colour, lw=1.6, alpha=0.55)
            axes.plot(
                at, mean, ls=_DASHES[number % len(_DASHES)], color=colour, lw=1.5, label=_plain(line(curve.label, 24)),
                marker=_MARKERS[number], ms=3.5 if len(at) <= 25 else 0,
            )  # fmt: skip
            alone = _alone(mean) if len(at) > 25 else np.zeros(len(at), np.bool_)
            axes.plot(at[alone], mean[alone], ".", color=colour, ms=4)  # a line has no width where it has no length
        if figure.log:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
            axes.yaxis.set_minor_formatter(FuncFormatter(lambda y, _: ""))
        if figure.is_share and axes.get_ylim()[1] > 50:
            axes.set_ylim(-3, 103)
        elif figure.is_share:
            axes.set_ylim(bottom=-0.03 * max(axes.get_ylim()[1], 1), top=max(axes.get_ylim()[1], 1))
        elif figure.least is not None and axes.get_ylim()[0] < figure.least:
            axes.set_ylim(bottom=figure.least)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axes.set_xlabel(along)
        axes.set_ylabel(_plain(figure.axis) + (" (log scale)" if figure.log else ""))
        axes.grid(color=_FAINT, lw=0.6)
        if len(figure.curves) > 1:
            _legend(axes)

    return _svg(draw, 5, title, 0.6)


def _thinned(values: Floats) -> tuple[Floats, Floats]:
    """Return the lowest and the highest of each few neighbours, passing over NaN; as many as :func:`_middles` gives."""
    begins = _begins(len(values))
    return np.fmin.reduceat(values, begins), np.fmax.reduceat(values, begins)


def _middles(values: Floats) -> Floats:
    """Return the middle one of each few neighbours; values as they are where there are few."""
    begins = _begins(len(values))
    return values[(begins + np.append(begins[1:], len(values)) - 1) // 2]


def _begins(n: int) -> np.ndarray:
    return np.linspace(0, n, min(n, _MOST_POINTS), endpoint=False).astype(int)


def _alone(values: Floats) -> np.ndarray:
    """Return which values have no neighbour to draw a line to, bool [N]."""
    known = np.concatenate([[False], ~np.isnan(values), [False]])
    return known[1:-1] & ~known[:-2] & ~known[2:]


def _rows(axes: Any, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [_plain(line(name, 20)) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=_FAINT, lw=0.6)


def _legend(axes: Any) -> None:
    labels = axes.get_legend_handles_labels()[1]
    columns = 3 if max(map(len, labels), default=0) <= 11 else 2
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1.0), ncols=columns, frameon=False, borderaxespad=0.2,
        handletextpad=0.2, columnspacing=1.2, labelcolor=_INK, fontsize=8.5,
    )  # fmt: skip


def _plain(text: str) -> str:
    shown = line(text, 36)
    return f"\u200b{shown}" if shown.startswith("_") else shown  # matplotlib keeps such labels out of legends


def _svg(draw: Callable[[Any], None], rows: int, title: str, extra: float) -> str:
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    style: Any = {
        "svg.fonttype": "none",  # the page's own font
        "svg.hashsalt": title,  # ids that are the same every time, and different in each figure
        "font.size": 8.5,
        "text.parse_math": False,
        "text.color": _INK,
        "axes.labelcolor": _INK,
        "axes.edgecolor": _FAINT,
        "xtick.color": _INK,
        "ytick.color": _INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.spines.left": False,
        "axes.axisbelow": True,
    }
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(_WIDTH, max(_ROW * rows, 1.2) + extra), layout="constrained")
        FigureCanvasSVG(figure)
        figure.patch.set_visible(False)
        axes = figure.add_subplot()
        axes.patch.set_visible(False)
        draw(axes)
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = written.getvalue()
    svg = svg[svg.index("<svg") :]
    for number, colour in enumerate(_SERIES):
        svg = svg.replace(colour, f"var(--s{number})")
    for colour, variable in _COLOURS.items():
        svg = svg.replace(colour, variable)
    # The page sizes it; ids get a prefix of their own, as several figures share one page.
    prefix = re.sub(r"\W+", "-", title.lower())[:30]
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
    svg = re.sub(r'(xlink:href|href)="#', rf'\1="#{prefix}-', svg)
    svg = re.sub(r'^<svg [^>]*?viewBox="([^"]*)"[^>]*>', rf'<svg viewBox="\1" role="img" aria-label="{escape(title)}" '
                 r'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">', svg)  # fmt: skip
    # Its style sheet would be that of the whole page, whose own has the two lines.
    return re.sub(r"<(metadata|style)\b.*?</\1>", "", svg, flags=re.S).strip()
