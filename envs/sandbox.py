"""A place to run code that a model wrote: limits, no network, no files but its own, and nothing left behind.

A warm worker (`sandbox_worker.py`), a bare interpreter that holds nothing of the caller, sends each program into a
process that waits for one (`sandbox_keeper.py`); what surrounds it is in `sandbox_isolation.py` and `sandbox_cell.py`,
and the walls and their holes are listed in docs/sandbox.md. Programs see Python's standard library and no other
package. Linux only.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType

from tetrathlon.envs.sandbox_limits import MOST_SECONDS, Limits, is_duration
from tetrathlon.envs.sandbox_link import Link, connect
from tetrathlon.envs.sandbox_request import pack
from tetrathlon.envs.sandbox_run import Run, unpack
from tetrathlon.envs.sandbox_worker import SECONDS

_ISOLATIONS = ("auto", "bwrap", "none")
_LIMITS = Limits()
_PATIENCE_SECONDS = 300.0
"""How long to wait for sandboxes that are all in open sessions: nobody may be left to close these."""


class SandboxError(Exception):
    """The sandbox cannot work; whatever program was to run is not to blame."""


class SandboxEnded(Exception):
    """The program of a session is over, and answers no more.

    Args:
        run: What became of it.
    """

    def __init__(self, run: Run) -> None:
        super().__init__(f"the program is over: {run.status}, exit code {run.exit_code}")
        self.run = run


class Sandbox:
    """One worker, and one program at a time.

    Args:
        limits: What each program may use, unless a call says otherwise.
        isolation: ``"bwrap"``: behind namespaces; ``"none"``: without them; ``"auto"``: the first where it works, else
            the second with a ``RuntimeWarning``.

    Raises:
        ValueError: There is no such isolation.
    """

    def __init__(self, limits: Limits = _LIMITS, *, isolation: str = "auto") -> None:
        if isolation not in _ISOLATIONS:
            raise ValueError(f"isolation must be one of {_ISOLATIONS}, got {isolation!r}")
        self.limits = limits
        self._isolation = isolation
        self._link: Link | None = None
        self._free = threading.Condition()
        self._is_busy = False
        self._session: Session | None = None

    @property
    def isolation(self) -> str:
        """How programs are isolated, ``"bwrap"`` or ``"none"``; starts the worker."""
        if (link := self._link) is not None and link.is_open:
            return link.isolation
        with self._turn():
            return self._ready().isolation

    def run(
        self,
        code: str,
        *,
        stdin: str = "",
        files: Mapping[str, str | bytes] | None = None,
        limits: Limits | None = None,
    ) -> Run:
        """Run ``code`` as a script, and end everything it started.

        Args:
            code: Python.
            stdin: What it reads from stdin, before the end of file.
            files: What lies in its working folder, by relative names.
            limits: Instead of the sandbox's own.

        Raises:
            ValueError: A file's name leads elsewhere, or there is more than ``disk_mb`` of them.
            SandboxError: The sandbox lost its worker twice, cannot start one, or waited minutes for an open session.
        """
        limits = limits or self.limits
        request = pack(code, stdin, files, limits)
        with self._turn():
            return unpack(self._exchange(b"R", request, limits.seconds), limits)

    def open(
        self, code: str, *, files: Mapping[str, str | bytes] | None = None, limits: Limits | None = None
    ) -> Session:
        """Start ``code`` as a script that reads lines from fd 3 and answers each with a line on fd 4.

        The sandbox is busy until the session, or the sandbox, is closed.

        Raises:
            ValueError: As in :meth:`run`.
            SandboxError: As in :meth:`run`.
        """
        return self._open(code, files, limits, lambda: None)

    def _open(
        self,
        code: str,
        files: Mapping[str, str | bytes] | None,
        limits: Limits | None,
        at_end: Callable[[], object],
    ) -> Session:
        limits = limits or self.limits
        request = pack(code, "", files, limits)
        self._begin()
        try:
            self._exchange(b"O", request, limits.seconds)
            assert self._link is not None
            session = Session(self._link, limits, lambda: self._end(session) and at_end())
            with self._free:
                self._session = session
                self._free.notify_all()  # who closes the sandbox waits no longer
        except BaseException:
            self._end()
            raise
        return session

    def close(self) -> None:
        """End the worker, when a run in another thread is over; a later call starts another.

        An open session is lost: its next request is a :class:`SandboxError`.
        """
        with self._free:
            self._free.wait_for(lambda: not self._is_busy or self._session is not None)
            self._stop()
            session = self._session
        if session is not None:
            session._release()

    def _stop(self) -> None:
        """End the worker, whoever is waiting for it."""
        if (link := self._link) is not None:
            link.stop()

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        self._begin()
        try:
            yield
        finally:
            self._end()

    def _begin(self) -> None:
        with self._free:
            while self._is_busy:
                _wait(self._free, [self])
            self._is_busy = True

    def _end(self, session: Session | None = None) -> bool:
        """Let the next one have its turn; False: ``session`` had ended already."""
        with self._free:
            if self._session is not session:
                return False
            self._session, self._is_busy = None, False
            self._free.notify_all()
        return True

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _exchange(self, kind: bytes, request: bytes, seconds: float) -> bytes:
        """Send a request to a worker, if need be to a second one, and return its answer."""
        why = ""
        for _ in range(2):
            link = self._ready()
            try:
                answer, payload = link.exchange(kind, request, seconds)
            except OSError as error:
                why = str(error)
            except BaseException:  # an interrupt in the middle of an answer: the next one would be this one's
                link.stop()
                raise
            else:
                if answer != b"F":
                    return payload
                why = payload.decode(errors="replace")
            link.stop()
        raise SandboxError(f"two workers in turn failed: {why}")

    def _ready(self) -> Link:
        if self._link is None or not self._link.is_open:
            try:
                self._link = connect(self._isolation)
            except OSError as error:
                raise SandboxError(f"no worker starts: {error}") from error
            self._isolation = self._link.isolation  # a later one is never weaker than the first
        return self._link


class Session:
    """A program that answers requests; made by :meth:`Sandbox.open`."""

    def __init__(self, link: Link, limits: Limits, release: Callable[[], object]) -> None:
        self._link = link
        self._limits = limits
        self._release = release
        self._run: Run | None = None

    def request(self, message: str, seconds: float | None = None) -> str:
        """Send the program a line and return the line it answers with.

        Args:
            message: One line, without its end.
            seconds: How long it may take; None: ``Limits.seconds``.

        Raises:
            ValueError: ``message`` is more than one line, or ``seconds`` is no time that can be counted.
            SandboxEnded: The program ended, took too long or wrote too much.
            SandboxError: The worker was lost, or the sandbox was closed.
        """
        if "\n" in message:
            raise ValueError(f"a request must be one line, got {message[:200]!r}")
        if seconds is not None and not is_duration(seconds):
            raise ValueError(f"seconds must be a positive number up to {MOST_SECONDS} or None, got {seconds!r}")
        if self._run is not None:
            raise SandboxEnded(self._run)
        seconds = self._limits.seconds if seconds is None else seconds
        payload = SECONDS.pack(seconds) + message.encode("utf-8", "surrogatepass")
        kind, answer = self._exchange(b"Q", payload, seconds)
        if kind == b"A":
            return answer.decode(errors="replace")
        raise SandboxEnded(self._finish(answer))

    def close(self) -> Run:
        """End the program, if it has not ended, and return what became of it.

        Raises:
            SandboxError: The worker was lost, or the sandbox was closed.
        """
        return self._run or self._finish(self._exchange(b"C", b"", 0.0)[1])

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._link.is_open:
            self.close()

    def _exchange(self, kind: bytes, payload: bytes, seconds: float) -> tuple[bytes, bytes]:
        if not self._link.is_open:
            raise SandboxError("the session's worker is lost, or its sandbox was closed")
        try:
            answer = self._link.exchange(kind, payload, seconds)
        except BaseException as error:  # also an interrupt in the middle of an answer: the next one would be this one's
            self._link.stop()
            self._release()
            if isinstance(error, OSError):
                raise SandboxError(f"the session's worker is lost: {error}") from error
            raise
        if answer[0] == b"F":
            self._link.stop()
            self._release()
            raise SandboxError(f"the session's program could not start: {answer[1].decode(errors='replace')}")
        return answer

    def _finish(self, payload: bytes) -> Run:
        self._run = unpack(payload, self._limits)
        self._release()
        return self._run


class SandboxPool:
    """Sandboxes for many threads: each call takes an idle one, starts one, or waits for one.

    Args:
        size: How many at most; None: one for each processor.
        limits: As for :class:`Sandbox`.
        isolation: As for :class:`Sandbox`.

    Raises:
        ValueError: ``size`` is no positive integer.
    """

    def __init__(self, size: int | None = None, limits: Limits = _LIMITS, *, isolation: str = "auto") -> None:
        size = len(os.sched_getaffinity(0)) if size is None else size
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"size must be a positive integer, got {size!r}")
        self._sandboxes = [Sandbox(limits, isolation=isolation) for _ in range(size)]
        self._idle = list(reversed(self._sandboxes))
        self._free = threading.Condition()

    def run(
        self,
        code: str,
        *,
        stdin: str = "",
        files: Mapping[str, str | bytes] | None = None,
        limits: Limits | None = None,
    ) -> Run:
        """As :meth:`Sandbox.run`."""
        sandbox = self._take()
        try:
            return sandbox.run(code, stdin=stdin, files=files, limits=limits)
        finally:
            self._give(sandbox)

    def open(
        self, code: str, *, files: Mapping[str, str | bytes] | None = None, limits: Limits | None = None
    ) -> Session:
        """As :meth:`Sandbox.open`; the sandbox comes back to the pool when the session ends."""
        sandbox = self._take()
        try:
            return sandbox._open(code, files, limits, lambda: self._give(sandbox))
        except BaseException:
            self._give(sandbox)
            raise

    def close(self) -> None:
        """As :meth:`Sandbox.close`, for each."""
        for sandbox in self._sandboxes:
            sandbox.close()

    def _stop(self) -> None:
        for sandbox in self._sandboxes:
            sandbox._stop()

    def __enter__(self) -> SandboxPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _take(self) -> Sandbox:
        with self._free:
            while not self._idle:
                _wait(self._free, self._sandboxes)
            return self._idle.pop()

    def _give(self, sandbox: Sandbox) -> None:
        with self._free:
            self._idle.append(sandbox)
            self._free.notify()


def shared() -> SandboxPool:
    """Return this process's own pool; a fork makes another on first use."""
    return pool_of("shared")


def pool_of(name: str) -> SandboxPool:
    """Return another pool that is made like :func:`shared`: who has a session there never waits for itself here."""
    return _pool_of(os.getpid(), name)


@functools.cache
def _pool_of(process: int, name: str) -> SandboxPool:
    pool = SandboxPool()
    atexit.register(pool._stop)  # not `close`: what another thread runs may take for ever
    return pool


def _wait(free: threading.Condition, sandboxes: list[Sandbox]) -> None:
    """Wait until something has changed.

    Raises:
        SandboxError: Nothing does, while all of ``sandboxes`` are in open sessions.
    """
    held = [sandbox._session for sandbox in sandboxes]
    if free.wait(_PATIENCE_SECONDS) or None in held or held != [sandbox._session for sandbox in sandboxes]:
        return
    raise SandboxError(
        f"no sandbox is free: each of {len(held)} has been in the same open session for {_PATIENCE_SECONDS:g} seconds; "
        "close one, or use a pool of a larger size"
    )
