"""Tables of a domain: columns, what they hold, and how a question speaks of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    """In SQL."""
    role: str
    """What it is to a question: ``key``, ``ref``, ``name``, ``kind`` (one of a few texts), ``number``, ``day``, ``end``
    (a later day, or none yet), or ``gap`` (a value that some rows lack)."""
    said: str = ""
    """How a question calls it."""
    of: tuple[Any, ...] = ()
    """What its values are drawn from; see ``filling.py``."""
    missing: float = 0.0
    """The share of NULL."""

    @property
    def type(self) -> str:
        """Its type in SQL."""
        if self.role in ("key", "ref") or (self.role == "gap" and not self.of[0]):
            return "INTEGER"
        if self.role == "number":
            return "REAL" if self.of[2] else "INTEGER"
        return "TEXT"

    @property
    def rule(self) -> str:
        """What stands behind its type in SQL."""
        if self.role == "key":
            return "PRIMARY KEY"
        if self.role == "ref":
            return f"NOT NULL REFERENCES {self.of[0]}(id)"
        return "" if self.missing else "NOT NULL"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a domain."""

    name: str
    """In SQL."""
    one: str
    """What a row is."""
    many: str
    """What rows are."""
    rows: tuple[int, int]
    """The least number of rows, and the most."""
    columns: tuple[Column, ...]
    """The key first."""

    def __getitem__(self, role: str) -> Column:
        """Return the first column of a role."""
        return self.all(role)[0]

    def all(self, *roles: str) -> list[Column]:
        """Return the columns of some roles."""
        return [column for column in self.columns if column.role in roles]


@dataclass(frozen=True, slots=True)
class Domain:
    """Five tables that hang together: what happened between two kinds of things, and what came of it."""

    place: str
    """Whose database it is."""
    group: Table
    """To one of whose rows each item belongs."""
    item: Table
    """What an event is about."""
    actor: Table
    """Who takes part in an event."""
    event: Table
    """Refers to an actor and an item."""
    child: Table
    """Refers to an event; some events have several, and some none."""
    to_actor: str
    """Between an event and its actor: sales *to* customers."""
    to_item: str
    """Between an event and its item: sales *of* products."""

    def tables(self, child: bool) -> list[Table]:
        """Return the tables, each after those that it refers to.

        Args:
            child: Whether the child is among them.
        """
        return [self.group, self.item, self.actor, self.event, *([self.child] if child else [])]
