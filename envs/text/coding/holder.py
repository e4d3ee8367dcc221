"""The program that holds a model's code: it runs in the sandbox and calls the code when it is asked to.

Nothing of value is in its process. Whatever the code does to it, it can only change what the code itself answers.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable
from functools import partial
from typing import Any

from tetrathlon.envs.text.coding.data import DataError, decode, encode, read, write

REQUESTS, REPLIES = 3, 4
NAME = "solution"
"""Name of the module that the code becomes; not ``__main__``, so what only a script does is left out."""


class Channel:
    """One line of JSON in, one line out."""

    def __init__(self) -> None:
        self._lines = os.fdopen(REQUESTS, "rb", closefd=False)

    def hear(self) -> Any:
        """Return the next message; the program ends where there is none."""
        if not (line := self._lines.readline()):
            sys.exit()
        return read(line.decode())

    def say(self, message: Any) -> None:
        """Send ``message``."""
        data = memoryview(write(message).encode() + b"\n")
        while data:
            data = data[os.write(REPLIES, data) :]


def answer(job: Callable[[], Any]) -> dict[str, Any]:
    """Return what ``job`` gives, or the name of what it raises, ``SystemExit`` and ``KeyboardInterrupt`` as well."""
    try:
        return {"value": encode(job())}
    except DataError as error:
        return {"error": "TypeError", "reason": f"returned {error}"}
    except BaseException as error:  # foreign code raises whatever there is; none of it may end the program
        return {"error": type(error).__name__[:100]}


def load(module: types.ModuleType, request: dict[str, Any]) -> None:
    """Fill ``module`` by the preamble and then the code; of the preamble the tested names are forgotten.

    Raises:
        NameError: The code has none of them.
    """
    for part in ("preamble", "code"):
        exec(compile(request[part], f"<{part}>", "exec", dont_inherit=True), module.__dict__)
        if part == "preamble":
            for name in request["names"]:
                module.__dict__.pop(name, None)
    missing = [name for name in request["names"] if not callable(module.__dict__.get(name))]
    if missing:
        raise NameError(f"there is no function {missing[0]}")


def call(module: types.ModuleType, request: dict[str, Any]) -> Any:
    """Return what a function of ``module`` returns."""
    arguments = [decode(item) for item in request["arguments"]]
    keywords = {name: decode(item) for name, item in request["keywords"].items()}
    return getattr(module, request["name"])(*arguments, **keywords)


def main() -> None:
    """Load the code of the first message, then call it as the others say."""
    channel = Channel()
    module = sys.modules[NAME] = types.ModuleType(NAME)
    job: Callable[..., Any] = load
    while True:
        request = channel.hear()
        channel.say({**answer(partial(job, module, request)), "nonce": request["nonce"]})
        job = call
