"""The process of an MCP server: its pipes, read within limits, and its end, with all that it started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tetrathlon.envs.tools.tool import ToolDown

LONGEST_LINE = 16 << 20
"""Bytes of one message of a server."""
MOST_BYTES = 64 << 20
"""Bytes that a server may write from one request to the next, its standard error included."""
MOST_LINES = 20_000
"""Messages, likewise."""
_MOST_STRAYS = 32
"""Lines that are no message, such as a greeting."""
_GRACE_SECONDS = 1.0
"""How long a server may take to end by itself when its input is closed."""
_KILL_SECONDS = 2.0
_TAIL = 500
_MARK = "TETRATHLON_MCP_SERVER"
_INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")


class ServerProcess:
    """A process that speaks MCP on its standard streams, as a transport of the official client.

    It is given few of this process's environment variables, so that no key goes to it unasked.

    Args:
        command: The program and its arguments.
        env: Environment variables beside those.
        cwd: The folder that it starts in; None: this process's own.
    """

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str] | None = None, cwd: str | os.PathLike[str] | None = None
    ) -> None:
        self.fault = ""
        """Why it is of no use any more; empty while it is."""
        self._command, self._cwd = list(command), cwd
        self._mark = secrets.token_hex(16)
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        self._env = {**inherited, **(env or {}), _MARK: self._mark}
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._streams: list[Any] = []
        self._over = asyncio.Event()
        self._tail = b""
        self._bytes = self._lines = self._strays = 0

    async def __aenter__(self) -> tuple[Any, Any]:
        """Start it; see the transports of the package ``mcp``.

        Raises:
            OSError: It does not start.
        """
        import anyio

        pipe = asyncio.subprocess.PIPE
        self._process = process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            limit=LONGEST_LINE,
            env=self._env,
            cwd=self._cwd,
            start_new_session=True,
        )
        assert process.stdin and process.stdout and process.stderr
        inbox, received = anyio.create_memory_object_stream[Any](0)
        sent, outbox = anyio.create_memory_object_stream[Any](0)
        self._streams = [inbox, received, sent, outbox]
        listening = asyncio.create_task(self._listen(process.stderr))
        reading = asyncio.create_task(self._read(process.stdout, inbox, listening))
        self._tasks = [listening, reading, asyncio.create_task(self._write(process.stdin, outbox))]
        return received, sent

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """End it, by itself if it does so in time; no wait is without an end."""
        process = self._process
        assert process and process.stdin
        if error is not None:
            self.give_up(told(error))
        process.stdin.close()
        if not self.fault:
            await self._wait(_GRACE_SECONDS)
        self.give_up("it was closed")
        self.kill()
        await self._wait(_KILL_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks, timeout=_KILL_SECONDS)
        for stream in self._streams:
            stream.close()
        transport: Any = getattr(process, "_transport", None)  # or it warns when it is collected
        if transport is not None:
            transport.close()

    async def wait(self) -> None:
        """Return when the process is of no use any more."""
        await self._over.wait()

    def expect(self) -> None:
        """Count what it writes anew, since it was asked something."""
        self._bytes = self._lines = 0

    def give_up(self, why: str) -> None:
        """Say that it is of no use any more; the first reason stays. Only for the thread of its event loop."""
        self.fault = self.fault or why
        self._over.set()

    def said(self) -> str:
        """Return the end of what it wrote to its standard error, on one line."""
        return " ".join(self._tail.decode(errors="replace").split())

    def kill(self) -> None:
        """End it and all that it started, at once and in bounded time; safe in threads, and when it has ended."""
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        end = time.monotonic() + _KILL_SECONDS
        # What left the group is known by its environment, where there is a /proc.
        while (left := _marked(f"{_MARK}={self._mark}".encode())) and time.monotonic() < end:
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)

    async def _wait(self, seconds: float) -> None:
        # Not process.wait(), which waits for everyone that holds its pipes.
        end = time.monotonic() + seconds
        while self._process and self._process.returncode is None and time.monotonic() < end:
            await asyncio.sleep(0.01)

    def _count(self, data: bytes, lines: int) -> None:
        self._bytes += len(data)
        self._lines += lines
        if self._bytes > MOST_BYTES or self._lines > MOST_LINES:
            raise _NoUse(f"it wrote more than {MOST_BYTES:,} bytes or {MOST_LINES:,} messages for one request")

    async def _read(self, stdout: asyncio.StreamReader, inbox: Any, listening: asyncio.Task[None]) -> None:
        from anyio import BrokenResourceError, ClosedResourceError

        try:
            while True:
                line = await stdout.readuntil(b"\n")
                self._count(line, 1)
                if (message := self._message(line)) is not None:
                    await inbox.send(message)
        except asyncio.LimitOverrunError:
            self._stop(f"it wrote a line of more than {LONGEST_LINE:,} bytes")
        except (asyncio.IncompleteReadError, ConnectionError):
            await asyncio.wait([listening], timeout=0.2)  # which may say why
            self._stop("it ended")
        except _NoUse as error:
            self._stop(str(error))
        except (BrokenResourceError, ClosedResourceError):
            pass  # nobody asks any more
        finally:
            inbox.close()

    def _message(self, line: bytes) -> Any:
        """Return what a line says, or None for one that is no message."""
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        if not line.strip():
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            self._strays += 1
            if self._strays > _MOST_STRAYS:
                raise _NoUse(f"it speaks no MCP: {line[:80].decode(errors='replace')!r}") from None
            return None

    async def _write(self, stdin: asyncio.StreamWriter, outbox: Any) -> None:
        try:
            async for message in outbox:
                data: str = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                stdin.write(data.encode() + b"\n")
                await stdin.drain()
        except (ConnectionError, RuntimeError):
            self._stop("it closed its input")
        finally:
            outbox.close()

    async def _listen(self, stderr: asyncio.StreamReader) -> None:
        try:
            while data := await stderr.read(1 << 16):
                self._count(data, 0)
                self._tail = (self._tail + data)[-_TAIL:]
        except _NoUse as error:
            self._stop(str(error))

    def _stop(self, why: str) -> None:
        self.give_up(why)
        self.kill()


class _NoUse(Exception):
    """The process is of no use any more."""


def told(error: BaseException) -> str:
    """Return what an error says, or the first of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) if isinstance(error, ToolDown) else f"{type(error).__name__}: {str(error)[:200]}"


def _marked(mark: bytes) -> list[int]:
    """Return the processes that have ``mark`` in their environment; none where that cannot be seen."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if mark in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found
