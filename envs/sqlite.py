"""Read-only SQLite for queries that a model wrote, and comparison of what they return."""

from __future__ import annotations

import atexit
import contextlib
import marshal
import math
import os
import re
import select
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from tetrathlon.envs import sqlite_worker
from tetrathlon.envs.sqlite_worker import SIZE

Row = tuple[Any, ...]


class Rows(list[Row]):
    """What a query returns: rows, and the names of their columns.

    Attributes:
        columns: As SQLite names them: by the alias, or else by the text of the query.
    """

    def __init__(self, columns: Sequence[str], rows: Iterable[Row]) -> None:
        super().__init__(rows)
        self.columns = tuple(columns)


LARGEST_COPY = 64_000_000
"""Bytes of a database that is handed over; a larger one is given as a path."""
_LONGEST_QUERY = 100_000
_GRACE_SECONDS = 0.25
"""How long a query that SQLite does not interrupt may go on before its process is killed."""
_TOKEN = re.compile(  # whatever is not closed goes to the end, so that nothing is read twice
    r"""'(?:[^']|'')*+(?:'|\Z)|"(?:[^"]|"")*+(?:"|\Z)|`[^`]*+(?:`|\Z)|\[[^]]*+(?:]|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)|"""
    r"""(?P<word>\w+)|[^\s\w]""",
    re.DOTALL,
)


class QueryError(Exception):
    """A query was refused or failed; the message is fit to be shown to who wrote it."""


def query(
    database: str | os.PathLike[str] | bytes | sqlite3.Connection,
    sql: str,
    *,
    seconds: float = 1.0,
    rows: int = 1000,
    exact: bool = False,
) -> Rows:
    """Run one SELECT, which can write nothing, open no other file, and take neither time nor memory without end.

    It runs in a process of its own, which stays for the next one, and is killed where SQLite itself does not stop in
    time. Safe in threads. ``json_each`` and ``json_tree`` may be read, tables of pragmas may not.

    Args:
        database: A file, which is read under SQLite's locks, with its write-ahead log if there is one; or the bytes of
            one; or an open connection, whose main database is copied for each query, with what is not yet committed.
            Functions and collations that a connection was given do not go with it.
        sql: The query.
        seconds: How long it may take, a lock of others on the file included.
        rows: How many rows it may return.
        exact: Whether the same query must give the same whenever and wherever it is run: ``random()``, today and the
            time zone are refused.

    Raises:
        QueryError: The query is wrong, is not one SELECT, took too long or too much memory, or returned more or longer
            than allowed.
        FileNotFoundError: There is no such file.
        ValueError: ``seconds`` is no positive number, or the database is too large to be copied.
    """
    if not 0 < seconds < math.inf:
        raise ValueError(f"seconds must be a positive number, got {seconds!r}")
    if len(sql) > _LONGEST_QUERY:
        raise QueryError(f"the query has {len(sql)} characters, more than {_LONGEST_QUERY}")
    found = _ask(marshal.dumps((_handed(database), sql, float(seconds), rows, exact)), seconds)
    if isinstance(found, str):
        raise QueryError(found)
    return Rows(*found)


def _handed(database: str | os.PathLike[str] | bytes | sqlite3.Connection) -> str | bytes:
    """Return the path or the bytes that stand for ``database`` in another process."""
    if isinstance(database, sqlite3.Connection):
        cursor = database.cursor()
        cursor.row_factory = None
        has_pages = cursor.execute("PRAGMA main.page_count").fetchone() != (0,)
        database = database.serialize() if has_pages else b""
    if not isinstance(database, bytes):
        return str(Path(database).resolve(strict=True))
    if len(database) > LARGEST_COPY:
        raise ValueError(f"a database of {len(database)} bytes is more than {LARGEST_COPY}; give the path of a file")
    return database


_Found = tuple[list[str], list[Row]]


class _Ended(Exception):
    """A worker is gone before it was asked, or while it worked."""


class _Worker:
    """A process that runs queries, one at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", sqlite_worker.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            start_new_session=True,  # ctrl-C is for the parent, which ends this one
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in: IO[bytes] = self._process.stdin
        self._out: IO[bytes] = self._process.stdout
        if not self._out.read(SIZE.size):
            self.stop()
            raise ChildProcessError(f"the process that runs queries ended with {self._process.returncode} at its start")

    def ask(self, request: bytes, seconds: float) -> _Found | str:
        """Return what the query of ``request`` gives, or what is wrong with it.

        Raises:
            TimeoutError: There is no answer.
            _Ended: There is no worker.
        """
        try:
            self._in.write(SIZE.pack(len(request)) + request)
            self._in.flush()
        except BrokenPipeError:
            raise _Ended from None
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        if not poll.poll((seconds + _GRACE_SECONDS) * 1000):
            raise TimeoutError
        head = self._out.read(SIZE.size)
        reply = self._out.read(*SIZE.unpack(head)) if head else b""
        if not reply:
            raise _Ended
        found: _Found | str = marshal.loads(reply)
        return found

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._close()

    def leave(self) -> None:
        """Leave the process to the parent that this one was forked from."""
        self._process.returncode = 0  # it is no child of this one
        self._close()

    def _close(self) -> None:
        for stream in (self._in, self._out):
            with contextlib.suppress(BrokenPipeError):  # what was not yet written has no reader
                stream.close()


_idle: list[_Worker] = []
_MOST_IDLE = os.cpu_count() or 1


def _ask(request: bytes, seconds: float) -> _Found | str:
    for _ in range(2):
        try:  # not by first looking whether there is one: other threads take some too
            worker = _idle.pop()
        except IndexError:
            worker = _Worker()
        try:
            found = worker.ask(request, seconds)
        except TimeoutError:
            worker.stop()
            return f"the query took longer than {seconds:g} seconds"
        except _Ended:
            worker.stop()  # somebody killed it, perhaps before it was asked: once more
            continue
        except BaseException:  # an interrupt in the middle of an answer: the next one would be this one's
            worker.stop()
            raise
        if len(_idle) < _MOST_IDLE:
            _idle.append(worker)
        else:
            worker.stop()
        return found
    return "the query ended the process that ran it"


def _stop_all() -> None:
    while _idle:
        _idle.pop().stop()


def _leave_all() -> None:
    while _idle:
        _idle.pop().leave()


atexit.register(_stop_all)
os.register_at_fork(after_in_child=_leave_all)


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
