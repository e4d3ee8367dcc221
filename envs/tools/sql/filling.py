"""Rows of a domain, drawn."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np

from tetrathlon.envs.language.chance import Chance
from tetrathlon.envs.tools.sql.table import Column, Domain, Table

Rows = dict[str, list[list[Any]]]
"""Name of a table -> its rows; NULL is None."""
_SHARES = (0, 0, 1, 1, 2, 3, 5, 8)
"""How often one row is referred to, against the others: some never are, and some are ahead."""


def fill(rng: np.random.Generator, domain: Domain, child: bool) -> Rows:
    """Draw the rows of a domain's tables.

    Args:
        rng: Of which alone they depend.
        domain: The domain.
        child: Whether its child table is among them.
    """
    rows: Rows = {}
    for table in domain.tables(child):
        low, high = table.rows
        rows[table.name] = _draw_table(rng, table, Chance(rng).between(low, high), rows)
    return rows


def _draw_table(rng: np.random.Generator, table: Table, n: int, rows: Rows) -> list[list[Any]]:
    is_crowd = bool(table.all("gap"))  # people: two may share a name
    columns: list[list[Any]] = []
    for column in table.columns:
        if column.role == "key":
            values: list[Any] = list(range(1, n + 1))
        elif column.role == "name":
            values = _draw_names(rng, column, n, unique=not is_crowd)
        elif column.role == "ref":
            values = _draw_references(rng, rows[column.of[0]], n, even=bool(table.all("name")))
        elif column.role == "end":
            days = columns[table.columns.index(table["day"])]
            values = [_later(day, 1 + more) for day, more in zip(days, _many(rng, column.of[0], n), strict=True)]
        else:
            values = _draw_values(rng, column, n)
        if column.missing:
            lost = rng.random(n) < column.missing
            values = [None if is_lost else value for value, is_lost in zip(values, lost.tolist(), strict=True)]
        columns.append(values)
    return [list(row) for row in zip(*columns, strict=True)]


def _many(rng: np.random.Generator, below: int, n: int) -> list[int]:
    """Return n integers from 0 to below - 1."""
    many: list[int] = (below * rng.random(n)).astype(int).tolist()
    return many


def _draw_names(rng: np.random.Generator, column: Column, n: int, unique: bool) -> list[str]:
    draw, (first, last) = Chance(rng), column.of
    names: list[str] = []
    while len(names) < n:
        name = f"{draw.pick(first)} {draw.pick(last)}" if last else draw.pick(first)
        if not unique or name not in names:
            names.append(name)
    return names


def _draw_references(rng: np.random.Generator, targets: list[list[Any]], n: int, even: bool) -> list[int]:
    """Return n keys of ``targets``; ``even``: all are as likely."""
    shares = [1 if even else _SHARES[at] for at in _many(rng, len(_SHARES), len(targets))]
    pool = [row[0] for row, share in zip(targets, shares, strict=True) for _ in range(share)] or [targets[0][0]]
    return [pool[at] for at in _many(rng, len(pool), n)]


def _draw_values(rng: np.random.Generator, column: Column, n: int) -> list[Any]:
    if column.role == "kind":
        return [column.of[at] for at in _many(rng, len(column.of), n)]
    if column.role == "day":
        first, last = date(column.of[0], 1, 1).toordinal(), date(column.of[1], 12, 31).toordinal()
        return [date.fromordinal(first + at).isoformat() for at in _many(rng, last - first + 1, n)]
    if column.role == "gap":
        form, low, high = column.of
        numbers = [low + at for at in _many(rng, high - low + 1, n)]
        return [form.format(number) for number in numbers] if form else numbers
    low, high, places = column.of
    if not places:
        return [low + at for at in _many(rng, high - low + 1, n)]
    return [(100 * low + at) / 100 for at in _many(rng, 100 * (high - low) + 1, n)]


def _later(day: str, days: int) -> str:
    return date.fromordinal(date.fromisoformat(day).toordinal() + days).isoformat()
