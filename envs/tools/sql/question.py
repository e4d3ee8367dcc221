"""A question about a database, with the query that answers it; what its draft is made of."""

from __future__ import annotations

from calendar import month_name, monthrange
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np

from tetrathlon.envs.language.chance import Chance
from tetrathlon.envs.tools.sql.filling import Rows
from tetrathlon.envs.tools.sql.table import Column, Domain, Table

YEARS = (2021, 2022, 2023)
"""Of which events are asked."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What rows of a table are asked for: those with a value from ``low`` to ``high`` in a column."""

    said: str
    """As a question says it, behind the rows."""
    table: str
    column: str
    low: str
    """The least value; equal to the greatest for one value."""
    high: str

    @property
    def sql(self) -> str:
        """As a query says it."""
        name = f"{self.table}.{self.column}"
        return f"{name} = '{self.low}'" if self.low == self.high else f"{name} BETWEEN '{self.low}' AND '{self.high}'"


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the query that answers it."""

    text: str
    """What is asked, without the form of the answer."""
    sql: str
    """The query that answers it, without a limit to its rows."""
    tables: tuple[str, ...]
    """Of which the query reads."""
    form: str
    """What the answer is: "Answer with ...", without what is said of numbers."""
    shown: int = 1
    """How many of its first columns are the answer."""
    take: int = 0
    """How many of its first rows are the answer; 0: all of them."""
    ordered: bool = True
    """Whether the order of what is listed counts."""
    percent: bool = False
    """Whether the answer is a percentage."""
    parts: dict[str, Any] = field(default_factory=dict)
    """What was drawn for it: conditions, columns and numbers by name."""

    @property
    def gold(self) -> str:
        """The query, with the limit to its rows."""
        return f"{self.sql} LIMIT {self.take}" if self.take else self.sql


NUMBER = "the number alone"
NUMBERS = "both numbers in this order, separated by a comma"


class Draft(Chance):
    """What a template draws from.

    Args:
        rng: Of which alone a question depends, beside the rows.
        domain: The domain.
        rows: Of its tables.
    """

    def __init__(self, rng: np.random.Generator, domain: Domain, rows: Rows) -> None:
        super().__init__(rng)
        self.domain, self.rows = domain, rows

    def column(self, table: Table, *roles: str) -> Column:
        """Return a column of one of some roles."""
        column: Column = self.pick(table.all(*roles))
        return column

    def whole(self, table: Table) -> Column:
        """Return a column of whole numbers, whose comparisons are exact."""
        column: Column = self.pick([column for column in table.all("number") if not column.of[2]])
        return column

    def kind(self, table: Table) -> Condition:
        """Return the condition that a row is of some kind."""
        column = self.column(table, "kind")
        value = self.pick(column.of)
        return Condition(f"whose {column.said} is {value}", table.name, column.name, value, value)

    def group(self) -> Condition:
        """Return the condition that an item belongs to some group."""
        group = self.domain.group
        name = self.pick(self.rows[group.name])[group.columns.index(group["name"])]
        return Condition(f"of the {group.one} {name}", group.name, group["name"].name, name, name)

    def year(self, table: Table, year: int | None = None) -> Condition:
        """Return the condition that the day of a row is in a year; None: in any."""
        year = self.pick(YEARS) if year is None else year
        return self._period(table, f"in {year}", f"{year}-01-01", f"{year}-12-31")

    def month(self, table: Table) -> Condition:
        """Return the condition that the day of a row is in some month."""
        year, month = self.pick(YEARS), self.between(1, 12)
        first = date(year, month, 1)
        last = first.replace(day=monthrange(year, month)[1])
        return self._period(table, f"in {_MONTHS[month - 1]} {year}", first.isoformat(), last.isoformat())

    def span(self, table: Table) -> Condition:
        """Return the condition that the day of a row is from some day to another."""
        first = date(YEARS[0], 1, 1).toordinal() + self.between(0, 500)
        low, high = (date.fromordinal(day).isoformat() for day in (first, first + self.between(150, 550)))
        return self._period(table, f"from {low} to {high}, both included", low, high)

    def period(self, table: Table) -> Condition:
        """Return the condition that the day of a row is in some year or span."""
        return self.year(table) if self.between(0, 1) else self.span(table)

    def _period(self, table: Table, said: str, low: str, high: str) -> Condition:
        column = table["day"]
        return Condition(f"whose {column.said} is {said}", table.name, column.name, low, high)


_MONTHS = tuple(month_name)[1:]


def pair(table: Table) -> str:
    """Return the form of an answer that is a row of a table and its number."""
    return f"the {table['name'].name} and that number, separated by a comma"


def names(table: Table, order: str) -> str:
    """Return the form of an answer that is several rows of a table.

    Args:
        table: The table.
        order: Which comes first.
    """
    return f"the {table['name'].name}s alone, separated by commas, {order}"


def link(left: Table, right: Table) -> str:
    """Return the JOIN that adds ``right``, to which ``left`` refers or which refers to ``left``."""
    if any(column.of == (right.name,) for column in left.all("ref")):
        return f"JOIN {right.name} ON {right.name}.id = {left.name}.{right.name}_id"
    return f"JOIN {right.name} ON {right.name}.{left.name}_id = {left.name}.id"
