"""A chat server on a real socket that answers as it is told: the faults that a real one cannot be asked for."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """What goes back."""

    message: dict[str, Any] = field(default_factory=lambda: {"role": "assistant", "content": "fine"})
    finish: str = "stop"
    usage: Any = field(default_factory=lambda: {"prompt_tokens": 7, "completion_tokens": 3})
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    """In place of a chat completion: bytes, or JSON data."""
    misbehave: Callable[[BaseHTTPRequestHandler], None] | None = None
    """Does all by itself."""


def refusal(status: int, message: str, code: str | None = None, param: str | None = None, **headers: str) -> Answer:
    body = {"error": {"message": message, "code": code, "param": param, "type": "invalid_request_error"}}
    return Answer(status=status, body=body, headers={name.replace("_", "-"): value for name, value in headers.items()})


class FaultServer:
    """Answers request after request with what ``script`` says of its body and its number, counted from 0."""

    def __init__(self, script: Callable[[dict[str, Any], int], Answer]) -> None:
        self.script = script
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.open = 0
        self.most_open = 0
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with outer._lock:
                    number = len(outer.bodies)
                    outer.bodies.append(body)
                    outer.headers.append({**dict(self.headers), "path": self.path})
                    outer.open += 1
                    outer.most_open = max(outer.most_open, outer.open)
                try:
                    answer = outer.script(body, number)
                    if answer.misbehave is not None:
                        answer.misbehave(self)
                        self.close_connection = True
                        return
                    self._answer(answer)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True
                finally:
                    with outer._lock:
                        outer.open -= 1

            def _answer(self, answer: Answer) -> None:
                data = answer.body
                if data is None:
                    choice = {"index": 0, "message": answer.message, "finish_reason": answer.finish}
                    data = {"choices": [choice], "usage": answer.usage}
                if not isinstance(data, bytes):
                    data = json.dumps(data).encode()
                self.send_response(answer.status)
                for name, value in {"content-type": "application/json", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self) -> FaultServer:
        return self

    def __exit__(self, *error: Any) -> None:
        self._http.shutdown()
        self._http.server_close()
