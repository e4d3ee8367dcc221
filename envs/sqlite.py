"""Read-only SQLite for queries that a model wrote, and comparison of what they return."""

from __future__ import annotations

import math
import os
import re
import sqlite3
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

Row = tuple[Any, ...]

_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_DENIED_FUNCTIONS = {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"}
_STEPS_BETWEEN_LOOKS = 1000
_LONGEST_VALUE = 1_000_000
_LONGEST_QUERY = 100_000
_LARGEST_RESULT = 10_000_000
_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^]]*]|--[^\n]*|/\*.*?(?:\*/|\Z)|(?P<word>\w+)|[^\s\w]""", re.DOTALL
)


class QueryError(Exception):
    """A query was refused or failed; the message is fit to be shown to who wrote it."""


def query(
    database: str | os.PathLike[str] | sqlite3.Connection, sql: str, *, seconds: float = 1.0, rows: int = 1000
) -> list[Row]:
    """Run one SELECT, which can write nothing, open no other file and not run on for ever.

    Args:
        database: A file, or a connection, which is left as it was but without authorizer and progress handler.
        sql: The query.
        seconds: How long it may take.
        rows: How many rows it may return.

    Raises:
        QueryError: The query is wrong, is not one SELECT, took too long, or returned more or longer than allowed.
        FileNotFoundError: There is no such file.
    """
    if isinstance(database, sqlite3.Connection):
        return _run(database, sql, seconds, rows)
    path = Path(database).resolve(strict=True)
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        return _run(connection, sql, seconds, rows)
    finally:
        connection.close()


def _run(connection: sqlite3.Connection, sql: str, seconds: float, rows: int) -> list[Row]:
    if len(sql) > _LONGEST_QUERY:
        raise QueryError(f"the query has {len(sql)} characters, more than {_LONGEST_QUERY}")
    deadline = time.monotonic() + seconds
    longest = connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    connection.set_authorizer(_authorize)
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_LOOKS)
    cursor = connection.cursor()
    cursor.row_factory = None
    try:
        found = _fetch(cursor.execute(sql), rows)
        if cursor.description is None:
            raise QueryError("the query is empty; write one SELECT")
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
        if time.monotonic() > deadline and "interrupted" in str(error):
            raise QueryError(f"the query took longer than {seconds:g} seconds") from error
        raise QueryError(f"{type(error).__name__}: {error}") from error
    finally:
        cursor.close()
        connection.set_progress_handler(None, 0)
        connection.set_authorizer(None)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)
    return found


def _fetch(cursor: sqlite3.Cursor, rows: int) -> list[Row]:
    found: list[Row] = []
    size = 0
    for row in cursor:
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(found) == rows or size > _LARGEST_RESULT:
            raise QueryError(f"the query returned more than {rows} rows or {_LARGEST_RESULT} characters")
        found.append(row)
    return found


def _authorize(action: int, first: str | None, second: str | None, schema: str | None, trigger: str | None) -> int:
    is_allowed = action in _ALLOWED and not (action == sqlite3.SQLITE_FUNCTION and second in _DENIED_FUNCTIONS)
    return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY


def same_rows(
    found: Sequence[Sequence[Any]],
    gold: Sequence[Sequence[Any]],
    *,
    ordered: bool = False,
    keys: Sequence[int] | None = None,
    tolerance: float = 1e-6,
) -> bool:
    """Tell whether two results are the same: the same rows, each as often.

    Numbers are equal by value, 1 and 1.0 too; text and numbers never are; NULL equals NULL.

    Args:
        found: Rows.
        gold: Rows that are right.
        ordered: Whether their order counts too: :func:`is_ordered` of the right query.
        keys: The columns that the right query orders by, where they are known: rows that tie in them may swap.
        tolerance: Relative tolerance of floats.
    """
    if len(found) != len(gold) or any(len(a) != len(b) for a, b in zip(found, gold, strict=True)):
        return False
    if ordered:
        pairs = list(zip(found, gold, strict=True))
        if keys is None:
            return all(_same(a, b, tolerance) for a, b in pairs)
        if not all(_same([a[key] for key in keys], [b[key] for key in keys], tolerance) for a, b in pairs):
            return False
    left = sorted(found, key=_order)
    for row in sorted(gold, key=_order):  # mostly the first one fits; numbers that differ a little may sort apart
        match = next((at for at, other in enumerate(left) if _same(other, row, tolerance)), None)
        if match is None:
            return False
        del left[match]
    return True


def is_ordered(sql: str) -> bool:
    """Tell whether a query has an ORDER BY of its own: outside of brackets, strings and comments."""
    depth, words = 0, []
    for token in _TOKEN.finditer(sql):
        text = token[0]
        depth += (text == "(") - (text == ")")
        if depth == 0 and token["word"]:
            words.append(text.lower())
    return any(pair == ("order", "by") for pair in pairwise(words))


def _order(row: Sequence[Any]) -> list[tuple[int, Any]]:
    return [(0, 0) if v is None else (1, v) if isinstance(v, int | float) else (2, str(v)) for v in row]


def _same(row: Sequence[Any], other: Sequence[Any], tolerance: float) -> bool:
    return all(_same_value(a, b, tolerance) for a, b in zip(row, other, strict=True))


def _same_value(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, int | float) and isinstance(b, int | float) and (isinstance(a, float) or isinstance(b, float)):
        return math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-12)  # absolute for sums that cancel out
    return bool(a == b)
