"""One HTML page that needs nothing but itself, and the few elements that the pages share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template

from tetrathlon.benchmarks.excerpt import escape


def page(title: str, body: str) -> str:
    """Return a whole page.

    Its policy (CSP) lets no script run and nothing be loaded, whatever a model wrote.

    Args:
        title: Plain text.
        body: Safe HTML.
    """
    assets = files("tetrathlon.benchmarks") / "assets"
    template = Template((assets / "page.html").read_text("utf-8"))
    return template.substitute(title=escape(title), style=(assets / "page.css").read_text("utf-8"), body=body)


def table(head: Sequence[str], groups: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Return a table that scrolls inside a container of its own.

    Args:
        head: ``<th>`` elements.
        groups: Class and ``<tr>`` elements of each ``<tbody>``.
    """
    bodies = "\n".join(f"<tbody{_class(name)}>\n" + "\n".join(rows) + "\n</tbody>" for name, rows in groups)
    return f'<div class="wide" tabindex="0"><table>\n<thead><tr>{"".join(head)}</tr></thead>\n{bodies}\n</table></div>'


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and values; the values are safe HTML."""
    rows = [f'<tr><th class="key" scope="row">{escape(name)}</th><td>{value}</td></tr>' for name, value in pairs]
    return f'<div class="wide" tabindex="0"><table><tbody>\n{"".join(rows)}\n</tbody></table></div>'


def dot(number: int) -> str:
    """Return a dot in the colour of a series."""
    return f'<span class="dot" style="--c: var(--s{number})"></span>'


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""
