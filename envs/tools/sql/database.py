"""A database as plain data, in which a task holds it, and as SQLite reads it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from tetrathlon.envs.tools.sql.filling import Rows
from tetrathlon.envs.tools.sql.table import Table

Tables = Mapping[str, Mapping[str, Any]]
"""Name -> ``columns``, each a name, a type and a rule, and ``rows``."""


def as_data(tables: list[Table], rows: Rows) -> dict[str, dict[str, Any]]:
    """Return tables and their rows as plain data, which JSON can say."""
    return {
        table.name: {
            "columns": [[column.name, column.type, column.rule] for column in table.columns],
            "rows": rows[table.name],
        }
        for table in tables
    }


def connect(tables: Tables) -> sqlite3.Connection:
    """Return an open database in memory; whoever asks closes it."""
    connection = sqlite3.connect(":memory:")
    for name, table in tables.items():
        columns = ", ".join(" ".join(part for part in column if part) for column in table["columns"])
        connection.execute(f"CREATE TABLE {name} ({columns})")
        marks = ", ".join("?" * len(table["columns"]))
        connection.executemany(f"INSERT INTO {name} VALUES ({marks})", table["rows"])
    connection.commit()
    return connection


def as_bytes(tables: Tables) -> bytes:
    """Return what a file of the database would hold."""
    connection = connect(tables)
    try:
        return connection.serialize()
    finally:
        connection.close()
