"""The program that runs queries for `sqlite.py`: a process that may be killed, with a bound on its memory.

Some queries never come back to where SQLite looks at the clock: while they are prepared, in ``LIKE``, ``instr`` or
``replace``. No file of ours but this one is loaded, in a bare interpreter: the standard library only.
"""

from __future__ import annotations

import marshal
import resource
import sqlite3
import struct
import sys
import time
from pathlib import Path
from typing import Any

SIZE = struct.Struct("<Q")
"""Stands before each marshalled message."""
MEMORY_MB = 512
"""Address space of the process."""
LARGEST_RESULT = 10_000_000
"""Characters of all values together."""

Found = tuple[list[str], list[tuple[Any, ...]]]
"""Names of columns, and rows."""

_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_DENIED_FUNCTIONS = {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"}
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 250,  # of tables too, and there are honest ones of 115
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
}
_STEPS_BETWEEN_LOOKS = 1000
_SPARE_CPU_SECONDS = 2
_LONGEST_ERROR = 500
_TOO_MUCH = f"the query took more than {MEMORY_MB} MB of memory"


def run(database: str | bytes, sql: str, seconds: float, rows: int) -> Found | str:
    """Return the names of the columns and the rows that a query gives, or what is wrong with it.

    Args:
        database: A path, or what a file would hold.
        sql: The query.
        seconds: How long it may take.
        rows: How many rows it may return.
    """
    deadline = time.monotonic() + seconds
    try:
        connection = _connect(database, seconds)
        try:
            return _fetch(connection, sql, deadline, rows)
        finally:
            connection.close()
    except MemoryError:
        return _TOO_MUCH
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
        if time.monotonic() > deadline and "interrupted" in str(error):
            return f"the query took longer than {seconds:g} seconds"
        return f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]


def _connect(database: str | bytes, seconds: float) -> sqlite3.Connection:
    if isinstance(database, bytes):
        connection = sqlite3.connect(":memory:")
        if database:
            connection.deserialize(_unlogged(database))
    else:
        connection = sqlite3.connect(_address(database), uri=True, timeout=seconds)
    connection.execute("PRAGMA temp_store = MEMORY")  # what is sorted counts as memory, and fills no disk
    connection.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')")  # makes them known; a query may not
    for limit, most in _LIMITS.items():
        connection.setlimit(limit, most)
    return connection


def _address(path: str) -> str:
    """Return the URI that a file is read by.

    A reader of a file in WAL mode makes two more beside it, unless it says that nobody writes: where there is no log,
    nobody has it open.
    """
    with open(path, "rb") as file:
        is_logged = file.read(20)[18:] == b"\2\2"
    is_still = is_logged and not Path(f"{path}-wal").exists()
    return f"{Path(path).as_uri()}?mode=ro{'&immutable=1' if is_still else ''}"


def _unlogged(data: bytes) -> bytes:
    """Return a database that is not in WAL mode, which cannot be in memory."""
    return data[:18] + b"\1\1" + data[20:]


def _fetch(connection: sqlite3.Connection, sql: str, deadline: float, rows: int) -> Found | str:
    connection.set_authorizer(_authorize)
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_LOOKS)
    found: list[tuple[Any, ...]] = []
    cursor = connection.execute(sql)
    if cursor.description is None:
        return "the query is empty; write one SELECT"
    columns = [column[0] for column in cursor.description]
    size = sum(map(len, columns))
    for row in cursor:
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(found) == rows or size > LARGEST_RESULT:
            return f"the query returned more than {rows} rows or {LARGEST_RESULT} characters"
        found.append(row)
    return columns, found


def _authorize(action: int, first: str | None, second: str | None, schema: str | None, trigger: str | None) -> int:
    is_allowed = action in _ALLOWED and not (action == sqlite3.SQLITE_FUNCTION and second in _DENIED_FUNCTIONS)
    return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY


def _limit_cpu(seconds: float) -> None:
    """Let the kernel end this process where nobody is left who would."""
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + seconds) + _SPARE_CPU_SECONDS, resource.RLIM_INFINITY))


def main() -> None:
    """Say that all is ready, then answer each message on stdin, the arguments of :func:`run`, by one on stdout."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MB << 20, MEMORY_MB << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _send(b"")
    while head := sys.stdin.buffer.read(SIZE.size):
        try:
            request = marshal.loads(sys.stdin.buffer.read(*SIZE.unpack(head)))
            _limit_cpu(request[2])
            reply = marshal.dumps(run(*request))
        except MemoryError:
            reply = marshal.dumps(_TOO_MUCH)
        _send(reply)


def _send(message: bytes) -> None:
    for part in (SIZE.pack(len(message)), message):
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
