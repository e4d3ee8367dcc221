"""A database that can be looked at and asked, and not be changed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from tetrathlon.envs import sqlite
from tetrathlon.envs.tools.sql.database import Tables, as_bytes
from tetrathlon.envs.tools.tool import ToolDown, ToolError, tool
from tetrathlon.envs.tools.world import World

SECONDS = 1.0
"""How long a query may take."""
MOST_SLOW = 4
"""Queries that may fail after all of that time; then no more are run, or one turn of many could take a minute."""
MOST_SHOWN = 50
"""Rows of a result that are shown."""
_SAMPLE = 3
_LONGEST_CELL = 200
_SHOWN_NAME = 60


class Analysis(World):
    """A database that can be looked at and asked, and not be changed.

    Args:
        tables: See :data:`~tetrathlon.envs.tools.sql.database.Tables`.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.listed = False
        """Whether the tables were listed."""
        self.described: list[str] = []
        """Which of them were described."""
        self.asked = ""
        """The last query that did not fail."""
        self.slow = 0
        """How many queries were stopped at the end of their time."""
        self._bytes: bytes | None = None

    @tool
    def list_tables(self) -> str:
        """List the tables of the database, with their numbers of rows."""
        self.listed = True
        return "\n".join(f"{name}: {len(table['rows'])} rows" for name, table in self.tables.items())

    @tool
    def describe_table(self, table: str) -> str:
        """Show the columns of a table, with their types and keys, and its first rows.

        Args:
            table: The name of the table.
        """
        name = next((name for name in self.tables if name == table.strip().strip("\"'`").lower()), None)
        if name is None:
            raise ToolError(f"there is no table {table[:_SHOWN_NAME]!r}; there are {', '.join(self.tables)}")
        if name not in self.described:
            self.described.append(name)
        known = self.tables[name]
        columns = "\n".join(" ".join(part for part in column if part) for column in known["columns"])
        head = " | ".join(column[0] for column in known["columns"])
        rows = "\n".join(_line(row) for row in known["rows"][:_SAMPLE])
        return f"{columns}\n\nThe first of {len(known['rows'])} rows:\n{head}\n{rows}"

    @tool
    def query(self, sql: str) -> str:
        """Run one SELECT of SQLite and show the names of its columns, then its rows, a line each.

        Nothing can be written, and there is neither chance nor today. A query may take one second and return 1000 rows,
        of which the first 50 are shown. After four queries that took longer, no more are run.

        Args:
            sql: The query; it may begin with WITH.
        """
        if self.slow >= MOST_SLOW:
            raise ToolError(f"{MOST_SLOW} queries took too long; no more are run")
        if self._bytes is None:
            self._bytes = as_bytes(self.tables)
        start = time.monotonic()
        try:
            rows = sqlite.query(self._bytes, sql, seconds=SECONDS, exact=True)
        except sqlite.QueryError as error:
            self.slow += time.monotonic() - start >= SECONDS
            raise ToolError(str(error)) from error
        except OSError as error:
            raise ToolDown(f"no query can be run: {error}") from error
        self.asked = sql
        count = f"{len(rows)} row{'' if len(rows) == 1 else 's'}"
        lines = [_line(row) for row in (rows.columns, *rows[:MOST_SHOWN])]
        note = f"({count}, the first {MOST_SHOWN} are shown)" if len(rows) > MOST_SHOWN else f"({count})"
        return "\n".join([*lines, note])

    def get_state(self) -> Any:
        """See :meth:`World.get_state`; the database never changes."""
        return {"listed": self.listed, "described": list(self.described), "asked": self.asked, "slow": self.slow}

    def set_state(self, state: Any) -> None:
        """See :meth:`World.set_state`."""
        self.listed, self.described = state["listed"], list(state["described"])
        self.asked, self.slow = state["asked"], state["slow"]


def _line(row: Sequence[Any]) -> str:
    return " | ".join(map(_cell, row))


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        more = "..." if len(value) > _LONGEST_CELL else ""
        return f"X'{value[:_LONGEST_CELL].hex()}{more}'"
    text = str(value)
    if len(text) > _LONGEST_CELL:
        text = f"{text[:_LONGEST_CELL]}... ({len(text)} characters)"
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
