"""A place to run code that a model wrote: limits, no network, no files but its own, and nothing left behind.

A warm worker (`sandbox_worker.py`), a bare interpreter that holds nothing of the caller, sends each program into a
process that waits for one (`sandbox_keeper.py`); what surrounds it is in `sandbox_isolation.py` and `sandbox_cell.py`,
and the walls and their holes are listed in docs/sandbox.md. Programs see Python's standard library and no other
package. Linux only.
"""

from __future__ import annotations

import atexit
import functools
import math
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import TracebackType

from tetrathlon.envs.sandbox_link import Link, connect
from tetrathlon.envs.sandbox_request import pack
from tetrathlon.envs.sandbox_worker import RESULT, SECONDS, STATUSES

_ISOLATIONS = ("auto", "bwrap", "none")


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


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one program may use.

    Raises:
        ValueError: A limit is not a positive number, or too small for an interpreter to live with.
    """

    seconds: float = 5.0
    """Wall time of a run, or of each request of a session."""
    cpu_seconds: float = 5.0
    """Processor time of each process, rounded up to whole seconds."""
    memory_mb: int = 512
    """Address space of each process."""
    processes: int = 16
    """Processes and threads at a time, the program's first one among them."""
    file_mb: int = 16
    """Size of one file."""
    disk_mb: int = 64
    """Size of everything in the scratch folder."""
    open_files: int = 64
    """Open files of each process."""
    output_bytes: int = 100_000
    """What is kept of stdout and of stderr, and how long a reply may be; the rest is read and thrown away."""

    def __post_init__(self) -> None:
        least = {"memory_mb": 64, "open_files": 16}
        for field in fields(self):
            value, low = getattr(self, field.name), least.get(field.name, 1)
            if field.type == "float":
                is_right = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
                wanted = "a positive number"
            else:
                is_right = isinstance(value, int) and not isinstance(value, bool) and low <= value < 1 << 31
                wanted = f"an integer from {low}"
            if not is_right:
                raise ValueError(f"{field.name} must be {wanted}, got {value!r}")


@dataclass(frozen=True)
class Run:
    """What became of a program."""

    status: str
    """``ok``: it exited with 0. ``error``: it ended otherwise, by an exception, ``sys.exit`` or a signal; limits on
    memory, disk, processes and files show as errors of its own. ``timeout``: killed at ``Limits.seconds``. ``cpu``:
    killed at ``Limits.cpu_seconds``. ``reply``: killed for a reply longer than ``Limits.output_bytes``. ``closed``: its
    session was closed."""
    exit_code: int | None
    """Its exit code, or minus the signal that ended it; None: it was killed for its ``status``."""
    stdout: str
    """What it printed, with a marker where it was cut."""
    stderr: str
    """Likewise, with the traceback of what it raised."""
    seconds: float
    """Wall time, from when it was sent in to the end of all its processes."""
    cpu_seconds: float
    """Processor time of the program and the children it waited for."""


class Sandbox:
    """One worker, and one program at a time.

    Args:
        limits: What each program may use, unless a call says otherwise.
        isolation: ``"bwrap"``: behind namespaces; ``"none"``: without them; ``"auto"``: the first where it works, else
            the second with a ``RuntimeWarning``.

    Raises:
        ValueError: There is no such isolation.
    """

    def __init__(self, limits: Limits = Limits(), *, isolation: str = "auto") -> None:
        if isolation not in _ISOLATIONS:
            raise ValueError(f"isolation must be one of {_ISOLATIONS}, got {isolation!r}")
        self.limits = limits
        self._isolation = isolation
        self._link: Link | None = None
        self._lock = threading.Lock()

    @property
    def isolation(self) -> str:
        """How programs are isolated, ``"bwrap"`` or ``"none"``; starts the worker."""
        with self._lock:
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
            SandboxError: The sandbox lost its worker twice, or cannot start one.
        """
        limits = limits or self.limits
        request = pack(code, stdin, files, limits)
        with self._lock:
            return _result(self._exchange(b"R", request, limits.seconds), limits)

    def open(
        self, code: str, *, files: Mapping[str, str | bytes] | None = None, limits: Limits | None = None
    ) -> Session:
        """Start ``code`` as a script that reads lines from fd 3 and answers each with a line on fd 4.

        The sandbox is busy until the session is closed.

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
        at_end: Callable[[], None],
    ) -> Session:
        limits = limits or self.limits
        request = pack(code, "", files, limits)

        def release() -> None:
            self._lock.release()
            at_end()

        self._lock.acquire()
        try:
            self._exchange(b"O", request, limits.seconds)
        except BaseException:
            self._lock.release()
            raise
        assert self._link is not None
        return Session(self._link, limits, release)

    def close(self) -> None:
        """End the worker; a later call starts another."""
        with self._lock:
            if self._link is not None:
                self._link.stop()

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

    def __init__(self, link: Link, limits: Limits, release: Callable[[], None]) -> None:
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
            ValueError: ``message`` is more than one line.
            SandboxEnded: The program ended, took too long or wrote too much.
            SandboxError: The worker was lost.
        """
        if "\n" in message:
            raise ValueError(f"a request must be one line, got {message[:200]!r}")
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
            SandboxError: The worker was lost.
        """
        return self._run or self._finish(self._exchange(b"C", b"", 0.0)[1])

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._link.is_open:
            self.close()

    def _exchange(self, kind: bytes, payload: bytes, seconds: float) -> tuple[bytes, bytes]:
        if not self._link.is_open:
            raise SandboxError("the session's worker is lost")
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
        self._run = _result(payload, self._limits)
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

    def __init__(self, size: int | None = None, limits: Limits = Limits(), *, isolation: str = "auto") -> None:
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
        """End the workers of all sandboxes, those at work when they have done; later calls start others."""
        for sandbox in self._sandboxes:
            sandbox.close()

    def __enter__(self) -> SandboxPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _take(self) -> Sandbox:
        with self._free:
            self._free.wait_for(lambda: self._idle)
            return self._idle.pop()

    def _give(self, sandbox: Sandbox) -> None:
        with self._free:
            self._idle.append(sandbox)
            self._free.notify()


@functools.cache
def _pool_of(process: int) -> SandboxPool:
    pool = SandboxPool()
    atexit.register(lambda: pool.close() if os.getpid() == process else None)
    return pool


def shared() -> SandboxPool:
    """Return this process's own pool; a fork makes another on first use."""
    return _pool_of(os.getpid())


def _result(payload: bytes, limits: Limits) -> Run:
    status, code, seconds, cpu, size, out_cut, err_cut = RESULT.unpack_from(payload)
    texts = payload[RESULT.size : RESULT.size + size], payload[RESULT.size + size :]
    mark = f"\n[cut at {limits.output_bytes} bytes]"
    out, err = (
        text.decode(errors="replace") + (mark if is_cut else "")
        for text, is_cut in zip(texts, (out_cut, err_cut), strict=True)
    )
    name = STATUSES[status]
    return Run(name, code if name in ("ok", "error") else None, out, err, seconds, cpu)
