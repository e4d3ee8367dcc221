"""The processes that make cells ahead: one program runs in the cell of one keeper while the other makes its next one.

A keeper is a child of the worker. It does as little as can be, since each page that it touches after a fork is copied:
it forks a cell, waits for the end of it, tells the worker, clears up, and starts again. The cell itself sends the
worker the ends of its pipes, and waits for its program.

Runs in the worker's bare interpreter: the standard library only.
"""

from __future__ import annotations

import _socket  # `socket` would import much that every fork then carries
import contextlib
import marshal
import os
import select
import signal
import struct

from tetrathlon.envs import sandbox_script as script
from tetrathlon.envs.sandbox_cell import Cell

TYPE_CHECKING = False
if TYPE_CHECKING:  # every fork would carry `typing`
    from typing import Any, NoReturn

_NEW, _END, _FAILED = b"N", b"E", b"F"
_ENDED = struct.Struct("<id")
"""Wait status, processor seconds."""
_SIZE = 8
"""Bytes of the length before a request."""
_MOST = 1 << 16
_REHEARSALS = 10
_LOWEST_FD = 10  # the numbers below are for the program


class Occupant:
    """The worker's ends of a cell.

    Args:
        channel: The request goes in; a byte comes out when the program starts.
        out: Reads its stdout.
        err: Reads its stderr.
        process: To kill it by.
    """

    def __init__(self, channel: int, out: int, err: int, process: int) -> None:
        self._channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, channel)
        self.out = out
        self.err = err
        self._process = process

    def admit(self, request: bytes, fds: list[int]) -> None:
        """Send a program in.

        Args:
            request: A marshalled tuple: the code, then what :meth:`Cell.enter` takes.
            fds: What it gets as fd 3 and 4.
        """
        data = memoryview(len(request).to_bytes(_SIZE, "little") + request)
        sent = self._channel.sendmsg([data], [_rights(fds)] if fds else [])
        if sent < len(data):
            self._channel.sendall(data[sent:])

    def has_started(self) -> bool:
        """Whether the program was reached; to be asked when it is over."""
        try:
            return bool(self._channel.recv(1, _socket.MSG_DONTWAIT))
        except OSError:  # it ended with something unread
            return False

    def kill(self) -> None:
        """Kill the program."""
        with contextlib.suppress(ProcessLookupError):  # it is over
            signal.pidfd_send_signal(self._process, signal.SIGKILL)

    def close(self) -> None:
        """Close all ends."""
        self._channel.close()
        for fd in (self.out, self.err, self._process):
            os.close(fd)


class Keeper:
    """The worker's view of a keeper, which it starts.

    Args:
        cell: What surrounds programs.
    """

    def __init__(self, cell: Cell) -> None:
        self._door, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        self.fd = self._door.fileno()
        """What is readable when there is something to hear."""
        self._poll = select.poll()
        self._poll.register(self.fd, select.POLLIN)
        self._pid = os.fork()
        if not self._pid:
            _keep(cell, theirs)
        theirs.close()
        self.waits: Occupant | None = None
        """Who waits for a program."""
        self._runs: Occupant | None = None
        self.failure = ""
        """Why it makes no more cells."""

    def fileno(self) -> int:
        """As ``select`` asks for it."""
        return self.fd

    def speaks(self, seconds: float) -> bool:
        """Tell whether there is something to hear within ``seconds``."""
        return bool(self._poll.poll(seconds * 1000))

    def take(self) -> Occupant:
        """Return who waited; it is to run a program now, and to be closed by the caller when that is over."""
        assert self.waits is not None
        self._runs, self.waits = self.waits, None
        return self._runs

    def hear(self) -> tuple[int, float] | None:
        """Take one message of the keeper.

        Returns:
            Wait status and processor seconds of a program that has ended; None: it was another message.
        """
        message, rights, *_ = self._door.recvmsg(_MOST, _socket.CMSG_SPACE(16))
        if message[:1] == _NEW:
            self.waits = Occupant(*struct.unpack("4i", rights[0][2]))
        elif message[:1] == _END:
            if self.waits is not None:  # it died before a program came
                self.waits.close()
            self.waits = self._runs = None
            return _ENDED.unpack(message[1:])
        else:
            self.failure = message[1:].decode(errors="replace") or "a keeper of cells is gone"
        return None

    def close(self) -> None:
        """End it and its program; nothing of them is left alive."""
        self._door.close()
        for occupant in (self.waits, self._runs):
            if occupant is not None:
                occupant.kill()
        os.waitpid(self._pid, 0)


def _rights(fds: list[int]) -> tuple[int, int, bytes]:
    return _socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds)


def _keep(cell: Cell, door: _socket.socket) -> NoReturn:
    """Be a keeper."""
    code = 1
    try:
        _close_others(_LOWEST_FD, door.fileno())
        cell.settle()
        while True:
            try:
                _house(cell, door)
            finally:
                cell.clear()
    except ConnectionError:  # the worker has closed the door
        code = 0
    except BaseException as error:  # whatever it was, a keeper must not go on as a second worker
        with contextlib.suppress(OSError):  # nobody listens
            door.send(_FAILED + f"{type(error).__name__}: {error}".encode(errors="replace")[:1000])
    finally:
        os._exit(code)


def _house(cell: Cell, door: _socket.socket) -> None:
    """Make a cell and see its program out.

    What it takes is made before the fork: of the pages that this touches the child then needs no copies.
    """
    cell.make()
    channel, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    null = os.open(os.devnull, os.O_RDONLY)
    out, stdout = os.pipe()
    err, stderr = os.pipe()
    for number, fd in enumerate((null, stdout, stderr)):
        os.dup2(fd, number)
        os.close(fd)
    pid = cell.fork()
    if not pid:
        _live(cell, channel)
    channel.close()
    ends = [theirs.detach(), out, err, os.pidfd_open(pid)]
    door.sendmsg([_NEW], [_rights(ends)])
    for fd in ends:
        os.close(fd)
    door.send(_END + _ENDED.pack(*cell.wait(pid)))


def _live(cell: Cell, channel: _socket.socket) -> NoReturn:
    """Be a cell: wait for a program, and then be that program."""
    exit_code = 1
    try:
        _close_others(3, channel.fileno())
        request, fds = _receive(channel)
        if not request:  # the worker is gone
            os._exit(0)
        code, *rest = request
        cell.enter(*rest)
        for number, fd in enumerate(fds, start=3):
            if number != fd:
                os.dup2(fd, number)
                os.close(fd)
        channel.send(b".")
        channel.close()
        exit_code = script.execute(code)
    except BaseException as error:  # whatever it was, a child must not go on as a second keeper
        os.write(2, f"{type(error).__name__}: {error}".encode(errors="replace"))
    finally:
        os._exit(exit_code)


def rehearse() -> None:
    """Do what every cell does, before there is any.

    What the interpreter remembers of it, specialized bytecode and where it found attributes, is then shared; otherwise
    each cell would write it down anew, into copies of the pages that hold it.
    """
    for _ in range(_REHEARSALS):
        script.warm_up()
        script.execute("")
        channel, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
        data = marshal.dumps(("", b"", {}, 1, (1, 1)))
        theirs.send(len(data).to_bytes(_SIZE, "little") + data)
        _receive(channel)
        channel.send(b".")
        channel.close()
        theirs.close()


def _close_others(lowest: int, kept: int) -> None:
    os.closerange(lowest, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))


def _receive(channel: _socket.socket) -> tuple[tuple[Any, ...], list[int]]:
    """Return the request, empty if the worker closed the channel, and the files that came with it."""
    data, rights, *_ = channel.recvmsg(_MOST, _socket.CMSG_SPACE(8))
    fds = list(struct.unpack("2i", rights[0][2])) if rights else []
    end = _SIZE + int.from_bytes(data[:_SIZE], "little")
    if len(data) < end:
        whole = bytearray(data)
        while len(whole) < end and (part := channel.recv(min(end - len(whole), 1 << 20))):
            whole += part
        data = bytes(whole)
    return (marshal.loads(data[_SIZE:]) if data and len(data) == end else ()), fds
