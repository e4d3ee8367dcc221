"""One question to a program of ours in the sandbox, and its reply, which foreign code may have written."""

from __future__ import annotations

import functools
import marshal
import secrets
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from tetrathlon.envs.sandbox import Limits, SandboxEnded, SandboxError, shared
from tetrathlon.envs.text.coding import data, holder
from tetrathlon.envs.text.coding.data import DataError
from tetrathlon.envs.text.coding.held import Line
from tetrathlon.envs.tools.files.tree import Content
from tetrathlon.envs.tools.repo import prober, runner

_TRIES = 2


class Lost(Exception):
    """There is no reply; the message says why, for the agent to read."""


def ask(program: ModuleType, files: Mapping[str, Content], message: Mapping[str, Any], limits: Limits) -> Any:
    """Return the reply of a program that is given a repository in a fresh sandbox.

    Code may break the sandbox that it is in, but not one that it is not in: where the sandbox fails on it twice, and
    then works without it, that is the code's doing.

    Args:
        program: One of ours, with a ``main``.
        files: The repository.
        message: What it is asked.
        limits: Of the program, and all that it starts.

    Raises:
        Lost: There is none.
        SandboxError: The sandbox does not work.
    """
    texts = {path: text for path, text in files.items() if isinstance(text, str)}
    for _ in range(_TRIES):
        try:
            return _ask(program, {**message, "files": texts}, limits)
        except SandboxError:
            continue
    shared().run("", limits=limits)
    raise Lost("the sandbox fails on this code, and on no other")


def _ask(program: ModuleType, message: Mapping[str, Any], limits: Limits) -> Any:
    nonce = secrets.token_hex(8)
    try:
        with shared().open(_program(program.__name__), limits=limits) as session:
            reply = Line(session, limits.seconds).ask({**message, "nonce": nonce})
    except SandboxEnded as error:
        run = error.run
        if run.status in ("timeout", "cpu"):
            raise Lost(f"it took longer than {limits.seconds:g} seconds") from None
        raise Lost(f"the process ended early ({run.status}, exit code {run.exit_code})") from None
    except DataError as error:
        raise Lost(f"the code replied with {error}") from None
    if not isinstance(reply, dict) or reply.get("nonce") != nonce:
        raise Lost("the code wrote to the channel of the replies")
    return reply


@functools.cache
def _program(name: str) -> str:
    """Return a program of ours with the modules it imports, as one text."""
    codes = []
    for module in (data, holder, prober, runner):
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        codes.append((module.__name__, compile(source, module.__name__, "exec", dont_inherit=True)))
        if module.__name__ == name:
            break
    # The sandbox has this interpreter. Our programs need `typing` for nothing but names, and it takes long to import.
    return f"""
import marshal, sys, types
stub = sys.modules["typing"] = types.ModuleType("typing")
stub.Any = None
for name, code in marshal.loads({marshal.dumps(codes)!r}):
    module = sys.modules[name] = types.ModuleType(name)
    exec(code, module.__dict__)
del sys.modules["typing"]
module.main()
"""
