"""The program inside the sandbox: a bare interpreter that forks one child for each run.

It talks to its host over the socket on fd 0: a frame is a kind (one byte), a length (four bytes) and a payload. What
comes from the host is trusted; what a program prints is bytes, which are bounded here and passed on.

Runs in a bare interpreter: the standard library only.
"""

from __future__ import annotations

import _sitebuiltins
import atexit
import builtins
import fcntl
import gc
import json
import linecache
import marshal
import os
import select
import signal
import struct
import sys
import time
import traceback
import types
from typing import IO, Any

from tetrathlon.envs.sandbox_cell import Cell

FRAME = struct.Struct("<cI")
RESULT = struct.Struct("<BiddIBB")
"""Status, exit code, seconds, processor seconds, bytes of stdout, whether stdout and stderr were cut."""
SECONDS = struct.Struct("<d")
STATUSES = ("ok", "error", "timeout", "cpu", "reply", "closed")

_PRELOADED = (json,)  # what programs import most, and what costs a fork nothing: `random` and `threading` have hooks
_LOWEST_FD = 10  # the numbers below are for the program
_CHUNK = 1 << 16
_SCRIPT = "main.py"


class _HostGone(Exception):
    """The host closed its end."""


class _Socket:
    """Frames from and to the host."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = os.read(self.fd, min(size - len(data), 1 << 20))
            if not part:
                raise _HostGone
            data += part
        return bytes(data)

    def receive(self) -> tuple[bytes, bytes]:
        kind, size = FRAME.unpack(self._read(FRAME.size))
        return kind, self._read(size)

    def send(self, kind: bytes, payload: bytes) -> None:
        data = memoryview(FRAME.pack(kind, len(payload)) + payload)
        while data:
            data = data[os.write(self.fd, data) :]


class _Output:
    """The first bytes of a stream."""

    def __init__(self, fd: int, most: int) -> None:
        self.fd = fd
        self.most = most
        self.data = bytearray()
        self.is_cut = False
        self.is_open = True

    def read(self) -> bool:
        """Take what is there; False if there was nothing."""
        try:
            part = os.read(self.fd, _CHUNK)
        except BlockingIOError:
            return False
        if not part:
            self.is_open = False
            return False
        room = self.most - len(self.data)
        self.data += part[:room]
        self.is_cut |= len(part) > room
        return True


class _Program:
    """A running program.

    Args:
        cell: Where it runs.
        host: The host, which is heard while the program runs.
        request: ``code``, ``stdin``, ``files``, ``limits``.
        talks: Whether it gets requests on fd 3 and replies on fd 4.
    """

    def __init__(self, cell: Cell, host: _Socket, request: dict[str, Any], talks: bool) -> None:
        self._cell = cell
        self._host = host
        self._limits = limits = request["limits"]
        pipes = [os.pipe() for _ in range(5 if talks else 3)]
        started, out, err = pipes[:3]
        self._start = time.monotonic()
        self._pid = cell.fork()
        if not self._pid:
            ends = [-1, out[1], err[1], *((pipes[3][0], pipes[4][1]) if talks else ())]
            _run(cell, request, ends, started[1])
        self._process = os.pidfd_open(self._pid)
        self._ends = [pipes[k][k == 3] for k in range(len(pipes))]
        for k, pipe in enumerate(pipes):
            os.close(pipe[k != 3])
        for fd in self._ends:
            os.set_blocking(fd, False)
        self._started = started[0]
        most = limits["output_bytes"]
        self._out, self._err = _Output(out[0], most), _Output(err[0], most)
        self._requests = self._ends[3] if talks else -1
        self._replies = _Output(self._ends[4], most + 1) if talks else None
        self._unsent = memoryview(b"")

    def ask(self, message: bytes) -> None:
        """Send the program a request; :meth:`wait` does it."""
        self._unsent = memoryview(message + b"\n")

    def take_reply(self) -> bytes | None:
        """Return the next reply, without its newline, if the program has written one."""
        assert self._replies is not None
        line, newline, rest = self._replies.data.partition(b"\n")
        if not newline:
            return None
        self._replies.data = rest
        return bytes(line)

    def wait(self, seconds: float | None, *, listens: bool = True) -> str:
        """Read what the program writes until something happens.

        Args:
            seconds: How long at most.
            listens: Whether replies are read.

        Returns:
            ``end``: the program ended; ``reply``: there is a reply, or too much of one; ``host``: the host said
            something; ``timeout``.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        streams = {stream.fd: stream for stream in self._streams(listens) if stream.is_open}
        poll = select.poll()
        for fd in (*streams, self._process, self._host.fd):
            poll.register(fd, select.POLLIN)
        if self._unsent:
            poll.register(self._requests, select.POLLOUT)
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            events = poll.poll(None if left is None else left * 1000)
            for fd, _ in events:
                if fd in streams:
                    stream = streams[fd]
                    stream.read()
                    if not stream.is_open:
                        poll.unregister(fd)
                elif fd == self._requests and not self._write():
                    poll.unregister(fd)
            ready = {fd for fd, _ in events}
            if listens and self._replies and (b"\n" in self._replies.data or self._replies.is_cut):
                return "reply"
            if self._process in ready:
                while listens and self._replies and self._replies.is_open and self._replies.read():
                    pass
                return "end"
            if self._host.fd in ready:
                return "host"
            if deadline is not None and time.monotonic() >= deadline:
                return "timeout"

    def _streams(self, listens: bool) -> list[_Output]:
        return [self._out, self._err, *([self._replies] if listens and self._replies else [])]

    def _write(self) -> bool:
        try:
            self._unsent = self._unsent[os.write(self._requests, self._unsent) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:  # it closed its fd 3: it never replies
            self._unsent = memoryview(b"")
        return bool(self._unsent)

    def end(self, reason: str) -> bytes:
        """Kill what is left of the program and return its result as a payload.

        Raises:
            ChildProcessError: The program never started, for lack of something outside of it.
        """
        status, usage = self._cell.sweep(self._pid)
        seconds = time.monotonic() - self._start
        for stream in (self._out, self._err):
            while stream.is_open and stream.read():
                pass
        try:
            has_started = bool(os.read(self._started, 1))
        except BlockingIOError:
            has_started = False
        for fd in (*self._ends, self._process):
            os.close(fd)
        if not has_started and reason == "end":
            raise ChildProcessError(self._err.data.decode(errors="replace") or f"a child ended with status {status}")
        cpu = usage.ru_utime + usage.ru_stime
        code = os.waitstatus_to_exitcode(status)
        if reason == "end":
            reason = "ok" if code == 0 else "error"
            # The kernel counts ticks for the limit and nanoseconds for `usage`; under load they differ by tenths.
            if code == -signal.SIGKILL and cpu >= self._limits["cpu_seconds"] / 2:
                reason = "cpu"
        head = (STATUSES.index(reason), code, seconds, cpu, len(self._out.data), self._out.is_cut, self._err.is_cut)
        return RESULT.pack(*head) + self._out.data + self._err.data


def _run(cell: Cell, request: dict[str, Any], ends: list[int], started: int) -> None:
    """Be the program; never returns."""
    code = 1
    try:
        os.dup2(ends[2], 2)
        ends[0] = cell.enter(request["limits"], request["files"], request["stdin"])
        for number, fd in enumerate((*ends, started)):
            os.dup2(fd, number)
        started = len(ends)
        os.closerange(started + 1, os.sysconf("SC_OPEN_MAX"))
        cell.seal(request["limits"])
        os.write(started, b".")
        os.close(started)
        code = _execute(request["code"])
    except BaseException as error:  # whatever it was, a child must not go on as a second worker
        os.write(2, f"{type(error).__name__}: {error}".encode(errors="replace"))
    finally:
        os._exit(code)


def _prepare(cwd: str) -> None:
    """Make this interpreter look as a script finds it; done once, since a child pays for each page that it touches."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "tetrathlon"]:
        del sys.modules[name]
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.modules["__main__"].__dict__.update(__builtins__=builtins, __file__=_SCRIPT)
    sys.argv = [_SCRIPT]
    sys.path.insert(0, cwd)
    for name in ("exit", "quit"):  # what `site` adds
        setattr(builtins, name, _sitebuiltins.Quitter(name, "Ctrl-D (i.e. EOF)"))
    null = os.dup(0)
    reader, writer = os.pipe()
    for fd, end in enumerate((reader, writer, writer)):  # streams ask now whether they can seek: a pipe cannot
        os.dup2(end, fd, inheritable=False)
    sys.stdin = sys.__stdin__ = _stream(0, "r", "surrogateescape")  # type: ignore[assignment,misc]
    sys.stdout = sys.__stdout__ = _stream(1, "w", "surrogateescape")  # type: ignore[assignment,misc]
    sys.stderr = sys.__stderr__ = _stream(2, "w", "backslashreplace")  # type: ignore[assignment,misc]
    for fd in range(3):
        os.dup2(null, fd, inheritable=False)
    for fd in (reader, writer, null):
        os.close(fd)


def _stream(fd: int, mode: str, errors: str) -> IO[str]:
    return open(fd, mode, buffering=1 if fd == 2 else -1, encoding="utf-8", errors=errors, closefd=False)


def _execute(code: str) -> int:
    """Run foreign code as an interpreter runs a script, and return its exit code."""
    gc.enable()
    exit_code = 0
    try:
        exec(compile(code, _SCRIPT, "exec", dont_inherit=True), sys.modules["__main__"].__dict__)
    except BaseException as error:  # whatever it is, it is the program's
        exit_code = _report(error, code)
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()  # waits for threads, as every interpreter does
        atexit._run_exitfuncs()
    except BaseException as error:
        exit_code = _report(error, code)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):  # the program closed or replaced it
            continue
    return exit_code


def _report(error: BaseException, code: str) -> int:
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        print(error.code, file=sys.stderr)
        return 1
    linecache.cache[_SCRIPT] = (len(code), None, code.splitlines(keepends=True), _SCRIPT)
    shown = error.__traceback__.tb_next if error.__traceback__ else None  # without the frame of the worker
    traceback.print_exception(type(error), error, shown)
    return 1


def _serve(cell: Cell, host: _Socket) -> None:
    while True:
        kind, payload = host.receive()
        request = marshal.loads(payload)
        try:
            program = _Program(cell, host, request, talks=kind == b"O")
            if kind == b"O":
                host.send(b"S", b"")
                host.send(b"E", _converse(program, host))
                continue
            reason = program.wait(request["limits"]["seconds"])
            if reason == "host":
                raise _HostGone
            host.send(b"E", program.end(reason))
        except (ChildProcessError, BlockingIOError, MemoryError) as error:
            host.send(b"F", str(error).encode(errors="replace"))


def _converse(program: _Program, host: _Socket) -> bytes:
    """Carry requests and replies until the program ends or the host has enough; return the result."""
    while program.wait(None, listens=False) == "host":
        kind, payload = host.receive()
        if kind == b"C":
            return program.end("closed")
        (seconds,) = SECONDS.unpack_from(payload)
        program.ask(payload[SECONDS.size :])
        reason = program.wait(seconds)
        if reason == "host":
            raise _HostGone
        reply = program.take_reply()
        if reply is None:
            return program.end(reason)
        host.send(b"A", reply)
    result = program.end("end")
    host.receive()  # the result answers whatever is asked next
    return result


def main(mode: str, box: str, uid: int) -> None:
    """Serve the host on fd 0 until it goes away."""
    host = _Socket(fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, _LOWEST_FD))
    null = fcntl.fcntl(os.open("/dev/null", os.O_RDWR), fcntl.F_DUPFD_CLOEXEC, _LOWEST_FD)
    for fd in {*range(_LOWEST_FD)} - {2}:  # so that whatever is opened from here on gets a higher number
        os.dup2(null, fd, inheritable=False)
    cell = Cell(mode, box, uid)
    host.send(b"S", b"")
    _prepare(cell.folder)
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        _serve(cell, host)
    except (_HostGone, ConnectionError):
        cell.close()
