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
from collections.abc import Callable
from functools import lru_cache
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
_NEVER_THE_SAME = {"random", "randomblob", "current_date", "current_time", "current_timestamp"}
_DAYS = {"date": 0, "time": 0, "datetime": 0, "julianday": 0, "strftime": 1}
"""Functions of days -> where their first day stands; a day that is left out is now."""
if sqlite3.sqlite_version_info >= (3, 38):
    _DAYS["unixepoch"] = 0
if sqlite3.sqlite_version_info >= (3, 43):
    _DAYS["timediff"] = 0
_MOST_DAYS_KEPT = 2_000
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


class _Refusals:
    """What a query may not do, and the first thing that it tried all the same.

    Args:
        is_exact: Whether it must give the same whenever and wherever it is run.
    """

    def __init__(self, is_exact: bool) -> None:
        self.is_exact = is_exact
        self.said = ""

    def authorize(
        self, action: int, first: str | None, second: str | None, schema: str | None, trigger: str | None
    ) -> int:
        """Tell SQLite whether something is allowed."""
        is_allowed = action in _ALLOWED
        if action == sqlite3.SQLITE_FUNCTION:
            is_allowed = second not in _DENIED_FUNCTIONS
            if self.is_exact and second is not None and second.lower() in _NEVER_THE_SAME:
                self.refuse(f"{second} is another each time that it is asked for")
                is_allowed = False
        return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY

    def refuse(self, why: str) -> None:
        """Note why a query is refused."""
        self.said = self.said or f"{why}; a query must give the same whenever it is run"

    def replace_days(self, connection: sqlite3.Connection) -> None:
        """Put functions in place of SQLite's that refuse today, and the place of the clock, but know all other days."""
        apart = sqlite3.connect(":memory:", check_same_thread=False)
        for name, place in _DAYS.items():
            connection.create_function(name, -1, self._day_function(apart, name, place), deterministic=True)

    def _day_function(self, apart: sqlite3.Connection, name: str, place: int) -> Callable[..., Any]:
        cursor = apart.cursor()

        @lru_cache(maxsize=_MOST_DAYS_KEPT, typed=True)
        def function(*given: Any) -> Any:
            words = [_word(value) for value in given]
            if len(given) <= place or "now" in words[place:]:
                self.refuse(f"{name}() of now is another each time")
            elif not {"localtime", "utc"}.isdisjoint(words[place + 1 :]):
                self.refuse(f"{name}() with localtime or utc depends on where it is run")
            if self.said:
                raise ValueError
            return cursor.execute(f"SELECT {name}({', '.join('?' * len(given))})", given).fetchone()[0]

        return function


def _word(value: Any) -> str:
    """Return what SQLite reads a value as where it looks for a word."""
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    return text.split("\0")[0].strip().lower() if isinstance(text, str) else ""


def run(database: str | bytes, sql: str, seconds: float, rows: int, is_exact: bool = False) -> Found | str:
    """Return the names of the columns and the rows that a query gives, or what is wrong with it.

    Args:
        database: A path, or what a file would hold.
        sql: The query.
        seconds: How long it may take.
        rows: How many rows it may return.
        is_exact: Whether it must give the same whenever it is run.
    """
    deadline = time.monotonic() + seconds
    refusals = _Refusals(is_exact)
    try:
        connection = _connect(database, seconds)
        try:
            if is_exact:
                refusals.replace_days(connection)
            return _fetch(connection, sql, deadline, rows, refusals)
        finally:
            connection.close()
    except MemoryError:
        return _TOO_MUCH
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
        if time.monotonic() > deadline and "interrupted" in str(error):
            return f"the query took longer than {seconds:g} seconds"
        if refusals.said:
            return refusals.said
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


def _fetch(connection: sqlite3.Connection, sql: str, deadline: float, rows: int, refusals: _Refusals) -> Found | str:
    connection.set_authorizer(refusals.authorize)
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
