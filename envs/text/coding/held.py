"""Tested code in a process of its own, in the sandbox, and what is said to such a process."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from tetrathlon.envs.sandbox import Limits, SandboxEnded, SandboxPool, Session, shared
from tetrathlon.envs.text.coding import data, holder
from tetrathlon.envs.text.coding.data import DataError, read, write

LEAST_SECONDS = 0.001
"""What is left of a time that is over."""


class Lost(Exception):
    """The process of the tested code is of no more use."""


class Line:
    """Messages to a program in the sandbox; only the time that it takes itself counts."""

    def __init__(self, session: Session, seconds: float) -> None:
        self._session = session
        self._left = seconds

    def ask(self, message: dict[str, Any]) -> Any:
        """Return the reply to ``message``.

        Raises:
            SandboxEnded: There is none.
            DataError: It is no message.
        """
        start = time.monotonic()
        try:
            return read(self._session.request(write(message), seconds=max(self._left, LEAST_SECONDS)))
        finally:
            self._left -= time.monotonic() - start


class Held:
    """Tested code, and its process from when it is loaded until the end of the block.

    Args:
        code: The code.
        preamble: Runs before it.
        names: The functions that it must have.
        limits: Of its process.
    """

    def __init__(self, code: str, preamble: str, names: Sequence[str], limits: Limits) -> None:
        self._request = {"code": code, "preamble": preamble, "names": list(names)}
        self._limits = limits
        self._line: Line | None = None
        self._stack = ExitStack()
        self.note = ""
        """What the last answer was, if no value."""

    @property
    def is_loaded(self) -> bool:
        """Whether foreign code has run."""
        return self._line is not None

    def load(self) -> None:
        """Load the code, if that is not done.

        Raises:
            Lost: It cannot be loaded.
        """
        if self._line is not None:
            return
        session = self._stack.enter_context(opened(shared(), holder, self._limits))
        self._line = Line(session, self._limits.seconds)
        reply = self._ask(self._line, self._request)
        if "value" not in reply:
            raise Lost(f"the code {fault(reply)} when it was loaded")

    def call(self, name: str, arguments: Sequence[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to a call; its encoded value is in it, or it has none.

        Raises:
            Lost: There is none.
        """
        self.load()
        assert self._line is not None
        reply = self._ask(self._line, {"name": name, "arguments": arguments, "keywords": keywords})
        self.note = "" if "value" in reply else fault(reply)
        return reply

    def _ask(self, line: Line, message: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to ``message``, and to no other.

        Raises:
            Lost: There is none.
        """
        nonce = secrets.token_hex(8)
        try:
            reply = line.ask({**message, "nonce": nonce})
        except SandboxEnded as error:
            raise Lost(f"the code ended: {error.run.status}") from None
        except DataError as error:
            raise Lost(f"the code replied with {error}") from None
        if not isinstance(reply, dict) or reply.get("nonce") != nonce:
            raise Lost("the code wrote to the channel of its replies")
        return reply

    def __enter__(self) -> Held:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()


def fault(reply: dict[str, Any]) -> str:
    """Say why ``reply`` has no value, in usual characters: the code may have written what it likes."""
    said = str(reply.get("reason") or f"raised {reply.get('error')}")[:200]
    return said.encode("utf-8", "replace").decode()


def opened(pool: SandboxPool, program: ModuleType, limits: Limits) -> Session:
    """Start a program of ours in a sandbox of ``pool``."""
    return pool.open(_bundle(program.__name__, str(program.__file__)), limits=limits)


@cache
def _bundle(name: str, file: str) -> str:
    """Return a program of ours with the modules it imports, as one text."""
    modules = {module.__name__: Path(str(module.__file__)) for module in (data, holder)} | {name: Path(file)}
    sources = [(module, path.read_text(encoding="utf-8")) for module, path in modules.items()]
    return f"""
import sys, types
for name, source in {sources!r}:
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
module.main()
"""
