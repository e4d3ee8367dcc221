"""The program inside the sandbox: a bare interpreter that sends each program into a cell of its keepers.

It talks to its host over the socket on fd 0: a frame is a kind (one byte), a length (four bytes) and a payload. What
comes from the host is trusted; what a program prints is bytes, which are bounded here and passed on.

Runs in a bare interpreter: the standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import select
import signal
import struct
import time

from tetrathlon.envs.sandbox_cell import Cell
from tetrathlon.envs.sandbox_keeper import Keeper, rehearse
from tetrathlon.envs.sandbox_script import prepare

FRAME = struct.Struct("<cI")
RESULT = struct.Struct("<BiddIBB")
"""Status, exit code, seconds, processor seconds, bytes of stdout, whether stdout and stderr were cut."""
HEAD = struct.Struct("<ddQ")
"""What the worker needs of a request: seconds, processor seconds, bytes of output."""
SECONDS = struct.Struct("<d")
STATUSES = ("ok", "error", "timeout", "cpu", "reply", "closed")

_LOWEST_FD = 10  # the numbers below are for the program
_CHUNK = 1 << 16
_SOON = 0.003


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
        os.set_blocking(fd, False)
        self.fd = fd
        self.most = most
        self.data = bytearray()
        self.is_cut = False
        self.is_open = True

    def read(self) -> bool:
        """Take a chunk of what is there; False if nothing was left."""
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
        return len(part) == _CHUNK


class _Program:
    """A running program.

    Args:
        keeper: Who has a cell for it.
        host: The host, which is heard while the program runs.
        request: The head and the marshalled rest, as `sandbox_request.py` packs them.
        talks: Whether it gets requests on fd 3 and replies on fd 4.
    """

    def __init__(self, keeper: Keeper, host: _Socket, request: bytes, talks: bool) -> None:
        self._keeper = keeper
        self._host = host
        self._occupant = occupant = keeper.take()
        self.seconds, self._cpu_seconds, most = HEAD.unpack_from(request)
        self._out, self._err = _Output(occupant.out, most), _Output(occupant.err, most)
        self._requests, self._replies = -1, None
        theirs: list[int] = []
        if talks:
            reader, self._requests = os.pipe()
            replies, writer = os.pipe()
            self._replies = _Output(replies, most + 1)
            os.set_blocking(self._requests, False)
            theirs = [reader, writer]
        self._unsent = memoryview(b"")
        self._ended: tuple[int, float] | None = None
        self._start = time.monotonic()
        with contextlib.suppress(BrokenPipeError):  # it is over; the end will tell why
            occupant.admit(request[HEAD.size :], theirs)
        for fd in theirs:
            os.close(fd)

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

    def is_soon_over(self) -> bool:
        """Tell whether it ends within milliseconds, as most do.

        What it writes stays in its pipes meanwhile: one wake instead of three.
        """
        if self._keeper.speaks(min(_SOON, self.seconds)):
            self._hear()
        return self._ended is not None

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
        for fd in (self._keeper.fd, self._host.fd):
            poll.register(fd, select.POLLIN)
        for fd in streams:
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
            if self._keeper.fd in ready:
                self._hear()
            if self._ended:
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

    def _hear(self) -> None:
        self._ended = self._keeper.hear()
        if self._keeper.failure:
            raise ChildProcessError(self._keeper.failure)

    def end(self, reason: str) -> bytes:
        """Kill what is left of the program and return its result as a payload.

        Raises:
            ChildProcessError: The program never started, for lack of something outside of it.
        """
        self._occupant.kill()
        while not self._ended:
            self._hear()
        status, cpu = self._ended
        seconds = time.monotonic() - self._start
        for stream in (self._out, self._err):
            while stream.is_open and stream.read():
                pass
        has_started = self._occupant.has_started()
        self._occupant.close()
        if self._replies:
            os.close(self._requests)
            os.close(self._replies.fd)
        if not has_started and reason == "end":
            raise ChildProcessError(self._err.data.decode(errors="replace") or f"a child ended with status {status}")
        code = os.waitstatus_to_exitcode(status)
        if reason == "end":
            reason = "ok" if code == 0 else "error"
            # The kernel counts ticks for the limit and nanoseconds for `usage`; under load they differ by tenths.
            if code == -signal.SIGKILL and cpu >= self._cpu_seconds / 2:
                reason = "cpu"
        head = (STATUSES.index(reason), code, seconds, cpu, len(self._out.data), self._out.is_cut, self._err.is_cut)
        return RESULT.pack(*head) + self._out.data + self._err.data


def _answer(keepers: list[Keeper], host: _Socket, kind: bytes, request: bytes) -> None:
    """Run a program and tell the host about it."""
    try:
        program = _Program(_who_has_a_cell(keepers), host, request, talks=kind == b"O")
        if kind == b"O":
            host.send(b"S", b"")
            host.send(b"E", _converse(program, host))
            return
        reason = "end" if program.is_soon_over() else program.wait(program.seconds)
        if reason == "host":
            raise _HostGone
        host.send(b"E", program.end(reason))
    except (ChildProcessError, MemoryError) as error:
        host.send(b"F", str(error).encode(errors="replace"))


def _who_has_a_cell(keepers: list[Keeper]) -> Keeper:
    """Wait for a cell.

    Raises:
        ChildProcessError: There will be none.
    """
    while True:
        for keeper in keepers:
            if keeper.failure:
                raise ChildProcessError(keeper.failure)
            if keeper.waits:
                return keeper
        ready, _, _ = select.select(keepers, (), ())
        for keeper in ready:
            keeper.hear()


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
    prepare(cell.folder)
    rehearse()
    gc.collect()
    gc.freeze()
    gc.disable()
    # Without namespaces nothing keeps a program from the cell that waits: it is made when the program is over.
    keepers = [Keeper(cell) for _ in range(2 if cell.has_namespaces else 1)]
    with contextlib.suppress(_HostGone, ConnectionError):
        while True:
            _answer(keepers, host, *host.receive())  # what comes is held no longer than that
    for keeper in keepers:
        keeper.close()
    cell.close()
