"""Tool calls as a person types them: ``/lookup name="Ann Lee" attribute=mayor``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from tetrathlon.envs.tools.calls import write_call


class CallError(ValueError):
    """A line is no call; the message says what would be one."""


class OpenQuote(CallError):
    """A quote is not closed: the value may go on in the next line."""


FORMS = (
    "quotes stand around a value with blanks; one of several lines goes on until its quote is closed",
    'or all arguments are JSON: /python {"code": "x = 1\\nprint(x)"}',
)
"""How values are written that are not one word, for who types calls."""


def manual(tools: Sequence[Any]) -> list[str]:
    """Return a line for each tool of ``info["tools"]``: how it is typed, and what it does."""
    lines = []
    for tool in tools:
        function = tool.get("function", tool) if isinstance(tool, Mapping) else {}
        parameters = function.get("parameters") or {}
        required = parameters.get("required") or ()
        typed = [f"{key}=" if key in required else f"[{key}=]" for key in parameters.get("properties") or {}]
        about = str(function.get("description") or "").partition("\n")[0]
        lines.append(" ".join(["/" + str(function.get("name")), *typed]) + (f"  {about}" if about else ""))
    return lines


def typed_call(line: str) -> str:
    """Return the call that a line which begins with ``/`` stands for, as models write it.

    Args:
        line: ``/NAME key=value ...``, with quotes around values with blanks or line ends, or ``/NAME {JSON}``. A value
            that is JSON is that, any other is a text.

    Raises:
        OpenQuote: A quote is not closed.
        CallError: It is neither.
    """
    name, _, rest = line.lstrip().removeprefix("/").partition(" ")
    name, rest = name.strip(), rest.strip()
    if not name:
        raise CallError("write /NAME key=value ..., or /NAME {JSON}")
    if rest.startswith("{"):
        try:
            arguments = json.loads(rest)
        except json.JSONDecodeError as error:
            raise CallError(f"not JSON: {error}") from error
        return write_call(name, arguments)
    try:
        words = shlex.split(rest)
    except ValueError as error:
        kind = OpenQuote if "closing quotation" in str(error) else CallError
        raise kind(f"{error} in {rest!r}") from error
    if bare := [word for word in words if "=" not in word]:
        raise CallError(f"write key=value, with quotes around a value with blanks, got {bare[0]!r}")
    return write_call(name, {key: _value(value) for key, _, value in (word.partition("=") for word in words)})


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
