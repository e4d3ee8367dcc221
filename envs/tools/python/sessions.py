"""Live sessions of interpreters: so many at a time, for whoever needs one now."""

from __future__ import annotations

import atexit
import contextlib
import functools
import marshal
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tetrathlon.envs.sandbox import Limits, SandboxEnded, SandboxError, SandboxPool, Session
from tetrathlon.envs.sandbox_run import Run
from tetrathlon.envs.tools.python import notebook

MOST_LIVE = 16
"""Sessions of one process at a time; each holds about 10 MB, and what its cells hold."""


class Lost(Exception):
    """A session is of no more use; the message says why."""


class Seat:
    """A place for one session.

    Args:
        pool: Where it comes from.
    """

    def __init__(self, pool: SandboxPool) -> None:
        self._pool = pool
        self._session: Session | None = None
        self.cells: tuple[str, ...] = ()
        """What has run in the session."""
        self.is_busy = False

    @property
    def is_live(self) -> bool:
        """Whether it has a session."""
        return self._session is not None

    def start(self, files: Mapping[str, str | bytes], limits: Limits) -> None:
        """Start a session in place of the one there is.

        Raises:
            SandboxError: The sandbox does not work.
        """
        self.end()
        self._session = self._pool.open(_program(), files=files, limits=limits)

    def ask(self, code: str, number: int, seconds: float) -> tuple[bool, str]:
        """Run a cell; :attr:`cells` is the caller's to keep.

        Args:
            code: Its code.
            number: By which tracebacks name it.
            seconds: How long it may take.

        Returns:
            Whether it raised nothing, and what it has shown.

        Raises:
            Lost: The session is over.
            SandboxError: The sandbox does not work.
        """
        assert self._session is not None
        nonce = secrets.token_hex(8)
        try:
            reply = self._session.request(f"{nonce} {number} {_hex(code)}", seconds)
        except SandboxEnded as error:
            raise Lost(_why(error.run, seconds)) from None
        said = _read(reply, nonce)
        if said is None:
            raise Lost("the code wrote to the channel of the interpreter")
        return said

    def end(self) -> None:
        """End the session, if there is one."""
        session, self._session, self.cells = self._session, None, ()
        if session is not None:
            with contextlib.suppress(SandboxError):  # its worker is gone already
                session.close()


class Sessions:
    """Seats by who has them; where all are taken, who used theirs longest ago loses it.

    Safe in threads. Who needs a seat waits only while every one is busy with a cell, which its limits end.

    Args:
        most: How many.
    """

    def __init__(self, most: int = MOST_LIVE) -> None:
        self._pool = SandboxPool(most)
        self._most = most
        self._seats: OrderedDict[object, Seat] = OrderedDict()
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def held(self, key: object) -> Iterator[Seat]:
        """Hold the seat of ``key``, of which nobody takes the session meanwhile; it may have none."""
        seat = self._take(key)
        try:
            yield seat
        finally:
            self._give(key, seat)

    def drop(self, key: object) -> None:
        """End the session of ``key``, if it has one."""
        with self._changed:
            if key not in self._seats:
                return
        with self.held(key) as seat:
            seat.end()

    def close(self) -> None:
        """End every session."""
        self._pool.close()

    def __len__(self) -> int:
        """Return how many seats are taken."""
        return len(self._seats)

    def _take(self, key: object) -> Seat:
        with self._changed:
            while (seat := self._found(key)) is None:
                self._changed.wait()
            seat.is_busy = True
            is_other = self._seats.get(key) is not seat
            if is_other:
                self._seats[key] = seat
            self._seats.move_to_end(key)
        if is_other:
            seat.end()  # it was another's
        return seat

    def _found(self, key: object) -> Seat | None:
        """Return a seat for ``key`` that nobody uses now, taken from another if need be."""
        if (mine := self._seats.get(key)) is not None:
            return None if mine.is_busy else mine
        if len(self._seats) < self._most:
            return Seat(self._pool)
        oldest = next((other for other, seat in self._seats.items() if not seat.is_busy), None)
        return None if oldest is None else self._seats.pop(oldest)

    def _give(self, key: object, seat: Seat) -> None:
        with self._changed:
            seat.is_busy = False
            if not seat.is_live:
                del self._seats[key]
            self._changed.notify_all()


_made: dict[int, Sessions] = {}


def sessions() -> Sessions:
    """Return this process's own sessions; a fork makes others on first use."""
    process = os.getpid()
    return _made.get(process) or _made.setdefault(process, Sessions())


@atexit.register
def _close() -> None:
    if os.getpid() in _made:
        _made[os.getpid()].close()


@functools.cache
def _program() -> str:
    source = Path(str(notebook.__file__)).read_text(encoding="utf-8")
    code = marshal.dumps(compile(source, "notebook", "exec", dont_inherit=True))  # the sandbox has this interpreter
    names = "{'__name__': 'notebook', '__builtins__': dict(vars(__import__('builtins')))}"
    # One expression, so that the cells, which run in the same module, find no name of it.
    return f"(lambda names: (exec(__import__('marshal').loads({code!r}), names), names['main']()))({names})"


def _hex(code: str) -> str:
    return code.encode("utf-8", "surrogatepass").hex()


def _read(reply: str, nonce: str) -> tuple[bool, str] | None:
    """Return what a reply says; None for what the program did not write."""
    parts = reply.split(" ")
    if len(parts) != 3 or parts[0] != nonce or parts[1] not in ("0", "1"):
        return None
    try:
        return parts[1] == "1", bytes.fromhex(parts[2]).decode(errors="replace")
    except ValueError:
        return None


def _why(run: Run, seconds: float) -> str:
    if run.status == "timeout":
        return f"the cell took longer than {seconds:g} seconds"
    if run.status == "cpu":
        return "the cells have used up their processor time"
    if run.status == "reply":
        return "the code wrote to the channel of the interpreter"
    return f"the process of the interpreter ended (exit code {run.exit_code})"
