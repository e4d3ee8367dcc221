"""What learning did to a language model, as HTML: its tokens in the colour of how their probability changed."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tetrathlon.benchmarks.excerpt import escape, excerpt, visible
from tetrathlon.benchmarks.page import table

_STEPS = (1.1, 1.5, 3.0, 10.0)
"""From which factor on a token has the next colour."""
_MOST_EPISODES = 12
_MOST_TOKENS = 1500
_MOST_ROWS = 10


@dataclass(slots=True)
class _Token:
    """All that was sampled of one id."""

    text: str = ""
    entropies: list[float] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)


def tokens_html(data: Mapping[str, Any]) -> str:
    """Return the token view of a run.

    Args:
        data: What ``tokens.json`` holds.
    """
    if not data["episodes"]:
        return '<p class="note">No token was sampled in these episodes.</p>'
    shown = data["episodes"][:_MOST_EPISODES]
    articles = "".join(_article(episode) for episode in shown)
    many = (
        f"The first {len(shown)} of {len(data['episodes']):,} episodes. " if len(shown) < len(data["episodes"]) else ""
    )
    return (
        f'<p class="note">{many}What the policy sampled, coloured by how likely it is now beside what it was at the '
        f"start, at temperature {data['temperature']:g}; what it was given is grey. A solid line says likelier, a "
        "dotted one less likely, and it is thicker the more it changed; the numbers of a token appear as the pointer "
        f"rests on it. ◌ is a part of the character that follows.</p>{_legend()}"
        f'<div class="episodes">{articles}</div><div class="plots tables">{"".join(_tables(data["episodes"]))}</div>'
    )


def _article(episode: Mapping[str, Any]) -> str:
    word, kind = {True: ("right", "right"), False: ("wrong", "wrong"), None: ("over", "none")}[episode["success"]]
    head = [f'<span class="badge {kind}">{word}</span>']
    if episode["seed"] is not None:
        head.append(f'<span class="dim">seed {episode["seed"]}</span>')
    if episode["reward"] is not None:
        head.append(f'<span class="dim">reward {episode["reward"]:g}</span>')
    left = _MOST_TOKENS
    parts = []
    for part in episode["parts"]:
        if "given" in part:
            parts.append(f'<span class="given">{escape(excerpt(part["given"], 1200, 30))}</span>')
            continue
        tokens = part["tokens"]
        rows = list(_rows(tokens))
        parts += [_span(*row) for row in rows[:left]]
        if len(rows) > left:
            parts.append(f'<span class="given">[… {len(rows) - left:,} tokens left out …]</span>')
        left -= min(left, len(rows))
    return (
        f'<article class="episode"><div class="head">{" ".join(head)}</div><pre class="tokens">{"".join(parts)}</pre>'
        "</article>"
    )


def _rows(tokens: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, float | None, float | None, float | None]]:
    """Yield text, log-probability, the one at the start, and entropy of each token."""
    yield from zip(tokens["text"], tokens["logp"], tokens["start_logp"], tokens["entropy"], strict=True)


def _span(text: str, logp: float | None, start: float | None, entropy: float | None) -> str:
    said = f"{_share(start)} at the start, {_share(logp)} now"
    if entropy is not None:
        said += f"; entropy {entropy:.2f} nats"
    shown = escape(excerpt(text, 200)).replace("\n", "↵\n") if text else "◌"
    kind = "" if logp is None or start is None else _kind(logp - start)
    return f'<span class="t{kind}" title="{escape(said)}">{shown}</span>'


def _kind(change: float) -> str:
    """Return the class of a change of the log-probability: ``u1`` to ``u4`` likelier, ``d1`` to ``d4`` less likely."""
    step = sum(abs(change) >= math.log(factor) for factor in _STEPS)
    return f" {'u' if change > 0 else 'd'}{step}" if step else ""


def _legend() -> str:
    names = [f"{a:g} to {b:g}" for a, b in pairwise(_STEPS)] + [f"{_STEPS[-1]:g} and more"]
    less = [f'<span class="t d{n + 1}">{names[n]}</span>' for n in reversed(range(len(names)))]
    more = [f'<span class="t u{n + 1}">{name}</span>' for n, name in enumerate(names)]
    return (
        f'<p class="legend">less likely, by a factor of {" ".join(less)} <span class="t">about the same</span> '
        f"{' '.join(more)} likelier</p>"
    )


def _tables(episodes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield tables of the tokens that are least certain, and of those that changed most; means over all episodes."""
    found: dict[int, _Token] = defaultdict(_Token)
    for episode in episodes:
        for part in episode["parts"]:
            tokens = part.get("tokens") or {"id": ()}
            for number, row in zip(tokens["id"], _rows(tokens) if tokens["id"] else (), strict=True):
                text, logp, start, entropy = row
                token = found[number]
                token.text = token.text or text
                if entropy is not None:
                    token.entropies.append(entropy)
                if logp is not None and start is not None:
                    token.changes.append(logp - start)
    for title, unit, values, sign, say in (
        ("Highest entropy", "nats", {n: token.entropies for n, token in found.items()}, 1, "{:.2f}".format),
        ("Likelier than at the start", "factor", {n: token.changes for n, token in found.items()}, 1, _factor),
        ("Less likely than at the start", "factor", {n: token.changes for n, token in found.items()}, -1, _factor),
    ):
        means = {number: sum(of_token) / len(of_token) for number, of_token in values.items() if of_token}
        first = sorted(means, key=lambda number: -sign * means[number])[:_MOST_ROWS]
        rows = [(number, say(means[number]), len(values[number])) for number in first if sign * means[number] > 0]
        yield _table(title, unit, rows, found)


def _table(title: str, unit: str, rows: Sequence[tuple[int, str, int]], found: Mapping[int, _Token]) -> str:
    head = ["<th>token</th>", f'<th class="n">{unit}</th>', '<th class="n">sampled</th>']
    body = [
        f'<tr><td>{_name(number, found[number].text)}</td><td class="n">{value}</td><td class="n">{n:,}</td></tr>'
        for number, value, n in rows
    ]
    return f"<div><h3>{title}</h3>{table(head, [('', body)]) if body else '<p>None.</p>'}</div>"


def _name(number: int, text: str) -> str:
    if not text:
        return f'<span class="dim">part of a character, id {number}</span>'
    return f"<code>{escape(json.dumps(visible(text[:40]), ensure_ascii=False))}</code>"


def _share(logp: float | None) -> str:
    if logp is None:
        return "unknown"
    share = 100 * math.exp(min(logp, 0.0))
    return f"{share:.3g} % (log {logp:.3f})"


def _factor(change: float) -> str:
    return f"× {math.exp(max(min(change, 99.0), -99.0)):.3g}"
