"""The host's end of a sandbox worker: its process and the socket to it."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import socket
import subprocess
import time
import warnings

from tetrathlon.envs.sandbox_isolation import Launch, launches, modules
from tetrathlon.envs.sandbox_worker import FRAME

GRACE_SECONDS = 15.0
"""How much longer than its limit a run may take before its worker counts as lost."""
_START_SECONDS = 60.0


class Link:
    """A running worker and the socket to it.

    Args:
        launch: How the worker is started.

    Raises:
        OSError: It does not start; the message is what it said.
    """

    def __init__(self, launch: Launch) -> None:
        self.isolation = launch.isolation
        self._launch = launch
        self._owner = os.getpid()
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                launch.command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=launch.environment,
                cwd="/",
                start_new_session=True,
            )
        self._is_stopped = False
        assert self._process.stderr is not None
        with self._process.stderr as stderr:
            try:
                self._socket.settimeout(_START_SECONDS)
                self._socket.sendall(modules())
                self.receive(_START_SECONDS)
            except OSError as error:
                self.stop()
                raise OSError(stderr.read(10_000).decode(errors="replace").strip() or str(error)) from error

    @property
    def is_open(self) -> bool:
        """Whether this process may use it; a fork's copy is its parent's."""
        return not self._is_stopped and self._owner == os.getpid()

    def exchange(self, kind: bytes, payload: bytes, seconds: float) -> tuple[bytes, bytes]:
        """Send a frame and return the kind and the payload of the answer.

        Args:
            kind: One byte.
            payload: What it carries.
            seconds: How long the work may take.

        Raises:
            OSError: The worker is lost.
        """
        self._socket.settimeout(GRACE_SECONDS)
        self._socket.sendall(FRAME.pack(kind, len(payload)) + payload)
        return self.receive(seconds + GRACE_SECONDS)

    def receive(self, seconds: float) -> tuple[bytes, bytes]:
        """Return the kind and the payload of the next frame."""
        deadline = time.monotonic() + seconds
        kind, size = FRAME.unpack(self._read(FRAME.size, deadline))
        return kind, self._read(size, deadline)

    def _read(self, size: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            part = self._socket.recv(min(size - len(data), 1 << 20))
            if not part:
                raise ConnectionError("the worker of the sandbox is gone")
            data += part
        return bytes(data)

    def stop(self) -> None:
        """End the worker, and with it all that runs in it."""
        if not self.is_open:
            return
        self._is_stopped = True
        with contextlib.suppress(OSError):  # the worker may have gone
            self._socket.shutdown(socket.SHUT_RDWR)  # whoever else holds a copy of it
        self._socket.close()
        try:
            self._process.wait(GRACE_SECONDS)  # it ends its programs
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._launch.box, ignore_errors=True)


def connect(isolation: str) -> Link:
    """Start a worker.

    Args:
        isolation: ``"bwrap"``, ``"none"``, or ``"auto"``: without bubblewrap only where it does not work, and then with
            a warning.

    Raises:
        OSError: None starts; the message says why.
    """
    if isolation == "none":
        return Link(*launches("none"))
    why = "it is not installed"
    for launch in launches("bwrap"):
        try:
            return Link(launch)
        except OSError as error:
            why = str(error)
    if isolation == "bwrap":
        raise OSError(f"bubblewrap does not work: {why}")
    _warn(why)
    return connect("none")


@functools.cache
def _warn(why: str) -> None:
    warnings.warn(
        f"programs run without bubblewrap, which does not work here: {why}. So they can read your files and fill your "
        "disk; docs/sandbox.md lists what else. Install the Debian package bubblewrap, and allow user namespaces.",
        RuntimeWarning,
        stacklevel=2,
    )
