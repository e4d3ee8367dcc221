"""The tools of an MCP server, as tools of a world."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import math
import os
import re
import threading
import weakref
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from typing import Any

from tetrathlon.envs.tools.mcp_process import ServerProcess, told
from tetrathlon.envs.tools.results import cut
from tetrathlon.envs.tools.tool import Tool, ToolDown, ToolError

_ODD = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 4_000
_MOST_PAGES, _MOST_TOOLS = 100, 1_000
_JOIN_SECONDS = 10.0
_MOST_STARTS = 3
"""How often a server that does not come up, or ends before it was asked anything, is started again in a row."""


class MCPServer:
    """A server of the Model Context Protocol on standard streams, for synchronous code and threads.

    ::

        with MCPServer([sys.executable, "server.py"]) as server:
            tools = server.tools()

    It needs the package ``mcp``. A world takes such tools by returning them in its
    :meth:`~tetrathlon.envs.tools.world.World.tools`, and asks for them anew each time. What the server keeps is no part
    of a world's state: copies share the server, and an expert that looks ahead calls it for good. So a server suits
    tools that change nothing, or one server an episode.

    A server that dies, does not answer in time, writes without end or speaks no MCP is ended, with all processes that
    it started. Its tools are down from then on; :meth:`tools` starts it afresh, and so does the next episode of a world
    that asks for them, in whatever process that is. One that does not come up, or ends before it was asked anything, is
    given up after a few starts in a row.

    Args:
        command: The program and its arguments.
        env: Environment variables for it, beside a few such as PATH.
        cwd: The folder that it starts in; None: this process's own.
        prefix: Stands before the name of each tool.
        seconds: How long a call may take.
        start_seconds: How long the start may take.

    Raises:
        ValueError: ``command`` is empty, or a time is no positive number.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        prefix: str = "",
        seconds: float = 30.0,
        start_seconds: float = 60.0,
    ) -> None:
        if isinstance(command, str) or not command:
            raise ValueError(f"command must be a list, the program first, got {command!r}")
        for name, value in (("seconds", seconds), ("start_seconds", start_seconds)):
            if not 0 < value < math.inf:
                raise ValueError(f"{name} must be a positive number, got {value!r}")
        self.command, self.env, self.cwd, self.prefix = list(command), env, cwd, prefix
        self.seconds, self.start_seconds = float(seconds), float(start_seconds)
        self._lock = threading.Lock()
        self._connection: _Connection | None = None
        self._is_wanted = False
        self._starts = 0  # in a row, of which none came to a call

    def start(self) -> MCPServer:
        """Start the server if it is not running, and return this; :meth:`close` is yours then.

        Raises:
            ImportError: There is no package ``mcp``.
            ToolDown: It does not start, or not in time; the message says why.
        """
        try:
            import mcp  # noqa: F401
        except ImportError as error:
            raise ImportError("MCPServer needs the package mcp: pip install mcp") from error
        with self._lock:
            if self._connection is None or not self._connection.is_open:
                self._connect()
            self._is_wanted, self._starts = True, 0
        return self

    def close(self) -> None:
        """End the server; its tools are down from then on."""
        with self._lock:
            self._is_wanted = False
            if self._connection is not None:
                self._connection.close()

    def tools(self, taken: Collection[str] = ()) -> list[Tool]:
        """Return the server's tools, in its order; a server that has ended by itself is started again.

        A name keeps letters, digits, ``_`` and ``-``, 64 characters at most; one that is taken gets a number.

        Args:
            taken: Names that others have.

        Raises:
            ToolDown: The server was not started or was closed, or ends whenever it is started.
        """
        connection = self._running()
        names, tools = set(taken), []
        for said in connection.listed.result():
            name = _name(f"{self.prefix}{said.name}", names)
            names.add(name)
            description = cut(said.description or "", _LONGEST_DESCRIPTION)
            tools.append(Tool(name, description, said.input_schema, connection.function(said.name)))
        return tools

    def _running(self) -> _Connection:
        """Return the connection, a new one where it is of no use any more.

        Raises:
            ToolDown: See :meth:`tools`.
        """
        with self._lock:
            connection = self._connection
            if connection is not None and connection.is_open:
                return connection
            if not self._is_wanted:
                if connection is not None:
                    connection.check()
                raise ToolDown("the MCP server was not started; call start()")
            if connection is not None and connection.was_asked:
                self._starts = 0
            while connection is None or not connection.is_open:
                if self._starts >= _MOST_STARTS:
                    why = "" if connection is None else f"; the last time {connection.fault}"
                    raise ToolDown(
                        f"the MCP server was started {_MOST_STARTS} times in a row and ended before it was asked "
                        f"anything{why}; see what is wrong with {self.command[:4]}, then call start()"
                    )
                self._starts += 1
                with contextlib.suppress(ToolDown):  # counted, and said by the connection
                    self._connect()
                connection = self._connection
            return connection

    def _connect(self) -> None:
        self._connection = connection = _Connection(ServerProcess(self.command, self.env, self.cwd), self.seconds)
        connection.wait(self.start_seconds)

    def __getstate__(self) -> dict[str, Any]:
        """Return all but the running server: a copy in another process has one of its own, once its tools are asked."""
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_connection", "_starts")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`__getstate__` returned."""
        vars(self).update(state, _lock=threading.Lock(), _connection=None, _starts=0)

    def __enter__(self) -> MCPServer:
        """Start it."""
        return self.start()

    def __exit__(self, *raised: object) -> None:
        """End it."""
        self.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> MCPServer:
        """Return this: a copy of a world talks to the same server."""
        return self


class _Connection:
    """A running server and the thread that talks to it."""

    def __init__(self, process: ServerProcess, seconds: float) -> None:
        self.listed: Future[list[Any]] = Future()
        self._process, self._seconds, self._owner = process, seconds, os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Any = None
        self.was_asked = False
        _OPEN.add(self)
        self._thread = threading.Thread(target=self._run, name="mcp", daemon=True)
        self._thread.start()

    @property
    def is_open(self) -> bool:
        return self._owner == os.getpid() and not self._process.fault

    @property
    def fault(self) -> str:
        return self._process.fault

    def check(self) -> None:
        """Raise ToolDown where the server is of no use here."""
        if self._owner != os.getpid():
            raise ToolDown("the MCP server belongs to another process; call start() in this one")
        if self._process.fault:
            raise self._down()

    def wait(self, seconds: float) -> None:
        """Wait for the list of tools."""
        try:
            self.listed.result(seconds)
        except TimeoutError:
            self.close(f"it was not ready within {seconds:g} s")
            raise self._down() from None
        except ToolDown:
            self.close()
            raise

    def function(self, name: str) -> Any:
        """Return a function that calls a tool."""

        def function(**arguments: Any) -> str:
            return _said(self.call(name, arguments))

        return function

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Return what the server's tool ``name`` returns."""
        from mcp import MCPError

        self.check()
        _refuse(arguments)
        self._process.expect()
        self.was_asked = True
        asked = self._client.call_tool(name, arguments)
        try:
            assert self._loop is not None
            return asyncio.run_coroutine_threadsafe(asked, self._loop).result(self._seconds)
        except TimeoutError:
            self.close(f"it did not answer within {self._seconds:g} s")
        except MCPError as error:
            if not self._process.fault:  # it answered, with an error
                raise ToolError(str(error)) from error
        except (Exception, CancelledError) as error:  # whatever the client makes of what is no answer
            asked.close()
            self.close(f"it answered with what is no result: {type(error).__name__}: {str(error)[:200]}")
        raise self._down()

    def close(self, why: str = "it was closed") -> None:
        """End the server and the thread, in bounded time; the first reason stays."""
        if self._owner != os.getpid():
            return
        loop = self._loop
        if why != "it was closed":
            self._process.fault = self._process.fault or why
            self._process.kill()
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                loop.call_soon_threadsafe(self._process.give_up, why)
        self._thread.join(_JOIN_SECONDS)
        _OPEN.discard(self)

    def _down(self) -> ToolDown:
        said = self._process.said()
        return ToolDown(f"the MCP server is down: {self._process.fault}{f' ({said})' if said else ''}")

    def _run(self) -> None:
        why = "it ended"
        try:
            asyncio.run(self._talk())
        except BaseException as error:  # the thread's last: whoever waits is told
            why = told(error)
        self._process.fault = self._process.fault or why
        self._process.kill()
        if not self.listed.done():
            self.listed.set_exception(self._down())

    async def _talk(self) -> None:
        from mcp import Client

        self._loop = asyncio.get_running_loop()
        async with Client(self._process, cache=None) as client:
            self._client = client
            self.listed.set_result(await _list(client))
            await self._process.wait()


_OPEN: weakref.WeakSet[_Connection] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for connection in list(_OPEN):
        connection.close("the program ends")


async def _list(client: Any) -> list[Any]:
    found: dict[str, Any] = {}
    cursor = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        found |= {tool.name: tool for tool in page.tools if tool.name not in found}
        cursor = page.next_cursor
        if cursor is None or len(found) > _MOST_TOOLS:
            break
    if cursor is not None or len(found) > _MOST_TOOLS:
        raise ToolDown(f"it lists more than {_MOST_TOOLS:,} tools or {_MOST_PAGES} pages of them")
    for tool in found.values():
        _check_schema(tool.name, tool.input_schema)
    return list(found.values())


def _check_schema(name: str, schema: Any) -> None:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except Exception as error:  # a foreign schema, of any depth
        raise ToolDown(f"the schema of its tool {name[:100]!r} is none: {str(error)[:200]}") from error


def _name(wanted: str, taken: Collection[str]) -> str:
    base = _ODD.sub("_", wanted)[:_LONGEST_NAME] or "tool"
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base[: _LONGEST_NAME - len(str(number)) - 1]}_{number}"
    return name


def _refuse(value: Any) -> None:
    """Refuse what a server may not be able to read: the caller's fault must not look like its own."""
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ToolError("a text in the arguments holds half a character") from None
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ToolError("an integer in the arguments has more than 64 bits")
    elif isinstance(value, dict | list):
        for one in (*value, *value.values()) if isinstance(value, dict) else value:
            _refuse(one)


def _said(result: Any) -> str:
    """Return a result as text.

    Raises:
        ToolError: The server says that it is an error.
    """
    text = "\n".join(map(_described, result.content))
    if not result.content and result.structured_content is not None:
        text = json.dumps(result.structured_content, ensure_ascii=False)
    if result.is_error:
        raise ToolError(text or "the tool failed and did not say why")
    return text


def _described(part: Any) -> str:
    if part.type == "text":
        return str(part.text)
    if part.type in ("image", "audio"):
        return f"[{part.type} of type {part.mime_type}, {_size(part.data):,} bytes]"
    if part.type == "resource_link":
        return f"[link to {part.uri}: {part.name}]"
    resource = part.resource
    if hasattr(resource, "text"):
        return str(resource.text)
    return f"[{resource.uri} of type {resource.mime_type}, {_size(resource.blob):,} bytes]"


def _size(base64: str) -> int:
    return len(base64.rstrip("=")) * 3 // 4
