"""MCP servers for tests, run as programs of their own: ``mcp_echo_server.py HOW``.

``good`` is one of the package ``mcp``; the others are written by hand, start at once, and are bad in one way each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any


def good() -> None:
    """Serve the tools."""
    from mcp.server.mcpserver import MCPServer
    from mcp_types import AudioContent, CallToolResult, ImageContent, TextContent

    server = MCPServer("echo")

    @server.tool()
    def add(a: int, b: int = 10) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    def echo(text: str) -> str:
        """Say it again."""
        return text

    @server.tool(name="say twice!")
    def twice(text: str) -> list[str]:
        """Say it twice."""
        return [text, text]

    @server.tool(name="say_twice_")
    def other(text: str) -> str:
        """Have a name that looks like another's."""
        return f"other {text}"

    @server.tool()
    def boom() -> str:
        """Fail."""
        raise ValueError("it went off")

    @server.tool()
    def slow(seconds: float) -> str:
        """Take a while."""
        time.sleep(seconds)
        return "done"

    @server.tool(structured_output=False)
    def image() -> Any:
        """Show and play."""
        return CallToolResult(
            content=[
                TextContent(text="before"),
                ImageContent(data="aGVsbG8=", mime_type="image/png"),
                AudioContent(data="aGVsbA==", mime_type="audio/wav"),
                TextContent(text="after"),
            ]
        )

    @server.tool(structured_output=False)
    def nothing() -> None:
        """Say nothing."""

    @server.tool()
    def die() -> str:
        """End the process."""
        print("I die now", file=sys.stderr, flush=True)
        os._exit(3)

    server.run("stdio")


RESULT = '"result": {"content": [{"type": "text", "text": %s}]}'
INITIALIZED = (
    '"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": '
    '{"name": "hand", "version": "1"}}'
)
LISTED = '"result": {"tools": [{"name": "one", "inputSchema": %s}]%s}'
OBJECT = '{"type": "object"}'


def serve(call: Callable[[], str], listed: str = LISTED % (OBJECT, "")) -> None:
    """Serve one tool by hand: ``call`` gives what stands in the answer."""
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        if "id" not in request:
            continue
        said = {"initialize": lambda: INITIALIZED, "tools/list": lambda: listed, "tools/call": call}.get(
            request["method"], lambda: '"error": {"code": -32601, "message": "unknown method"}'
        )()
        print(f'{{"jsonrpc": "2.0", "id": {json.dumps(request["id"])}, {said}}}', flush=True)


def write(stream: int, data: bytes, times: int = 10**9) -> Callable[[], str]:
    """Write, for ever unless said otherwise, and then say nothing."""

    def call() -> str:
        for _ in range(times):
            os.write(stream, data)
        time.sleep(300)
        return ""

    return call


def children() -> str:
    """Start a child that starts another, both in sessions of their own and deaf to signals; say who they are."""
    code = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "print(subprocess.Popen(['sleep', '300'], start_new_session=True).pid, flush=True); time.sleep(300)"
    )
    child = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    return RESULT % json.dumps(f"{os.getpid()} {child.pid} {child.stdout.readline().strip()}")


def loud() -> str:
    """Say a lot, within the limits, among lines that are no message."""
    print("a line of a log", flush=True)
    print("x" * 100_000, file=sys.stderr, flush=True)
    return RESULT % json.dumps("日" * 300_000)


def silent() -> None:
    """Say nothing, and end for nobody."""
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(300)


def deaf() -> str:
    """Close the input, and go on."""
    os.close(0)
    time.sleep(300)
    return ""


def babble() -> None:
    """Write what is no message, for ever."""
    while True:
        print("lorem ipsum", flush=True)


def late() -> None:
    """Serve after a while."""
    time.sleep(0.3)
    serve(lambda: RESULT % '"late"')


def fleeting() -> None:
    """Serve, and end after a moment, whatever is asked."""
    threading.Timer(0.2, lambda: os._exit(0)).start()
    serve(lambda: RESULT % '"one"')


def end() -> None:
    """End with an error."""
    sys.exit("no module named x")


SERVERS: dict[str, Callable[[], None]] = {
    "good": good,
    "silent": silent,
    "babble": babble,
    "end": end,
    "late": late,
    "fleeting": fleeting,
    "variables": lambda: serve(lambda: RESULT % json.dumps(" ".join(os.environ))),
    "loud": lambda: serve(loud),
    "deaf": lambda: serve(deaf),
    "children": lambda: serve(children),
    "hang": lambda: serve(write(1, b"", 0)),
    "exit": lambda: serve(lambda: sys.exit("I am done")),
    "flood_line": lambda: serve(write(1, b"x" * 65_536)),
    "flood_lines": lambda: serve(write(1, b'{"jsonrpc":"2.0","method":"notifications/x"}\n' * 1_000)),
    "flood_blank": lambda: serve(write(1, b"\n" * 65_536)),
    "flood_error": lambda: serve(write(2, b"e" * 65_536)),
    "text": lambda: serve(write(1, b"hello\n", 100)),
    "binary": lambda: serve(write(1, b"\xff\x00\xfe\n", 100)),
    "deep": lambda: serve(write(1, b"[" * 5_000 + b"\n", 100)),
    "pages": lambda: serve(loud, LISTED % (OBJECT, ', "nextCursor": "more"')),
    "many": lambda: serve(
        loud,
        '"result": {"tools": ['
        + ", ".join(f'{{"name": "t{n}", "inputSchema": {OBJECT}}}' for n in range(1_001))
        + "]}",
    ),
    "bad_schema": lambda: serve(loud, LISTED % ('{"type": "object", "properties": {"a": {"minimum": "x"}}}', "")),
    "no_object": lambda: serve(loud, LISTED % ('{"type": "string"}', "")),
    "bad_list": lambda: serve(loud, '"result": {"tools": 7}'),
    "bad_result": lambda: serve(lambda: '"result": {"content": 7}'),
    "bad_id": lambda: serve(lambda: '"result": {"content": []}, "id": 12345'),
    "error": lambda: serve(lambda: '"error": {"code": -32602, "message": "no such city"}'),
    "closed": lambda: serve(lambda: '"error": {"code": -32000, "message": "Connection closed"}'),
    "is_error": lambda: serve(lambda: '"result": {"content": [], "isError": true}'),
    "structured": lambda: serve(lambda: '"result": {"content": [], "structuredContent": {"a": "日"}}'),
    "resources": lambda: serve(
        lambda: (
            '"result": {"content": ['
            '{"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}, '
            '{"type": "resource", "resource": {"uri": "file:///b", "mimeType": "a/zip", "blob": "aGVsbG8="}}, '
            '{"type": "resource_link", "uri": "file:///c", "name": "the third"}]}'
        )
    ),
}

if __name__ == "__main__":
    SERVERS[sys.argv[1]]()
