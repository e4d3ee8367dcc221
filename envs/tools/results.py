"""What became of the calls of a turn, and how the agent reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tetrathlon.envs.tools.calls import Call
from tetrathlon.envs.tools.coercion import ArgumentError
from tetrathlon.envs.tools.tool import Tool, ToolError

ERRORS = ("invalid_json", "invalid_call", "unknown_tool", "invalid_arguments", "tool_error", "not_run")
"""What can be wrong with a call."""
_LONGEST_NAME = 64
_LONGEST_MESSAGE = 1_000_000
_SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one call."""

    name: str
    """The tool, as it was named."""
    content: str
    """What the agent reads."""
    error: str = ""
    """One of :data:`ERRORS`, or empty."""


def run(call: Call, tools: Mapping[str, Tool], longest: int) -> Result:
    """Try a call; whatever is wrong with it is its result.

    Args:
        call: The call.
        tools: By name.
        longest: Most characters of what the agent reads.

    Raises:
        tetrathlon.envs.tools.tool.ToolDown: The tool does not work.
    """
    name = cut(call.name[:_LONGEST_NAME], _LONGEST_NAME)
    if call.error:
        return failed(name, call.error, call.kind, longest)
    found = tools.get(call.name)
    if found is None:
        return failed(name, f"there is no tool {name!r}; there are {', '.join(tools)}", "unknown_tool", longest)
    try:
        return Result(name, cut(found.call(call.arguments), longest))
    except ArgumentError as error:
        return failed(name, str(error), "invalid_arguments", longest)
    except ToolError as error:
        return failed(name, str(error), "tool_error", longest)


def failed(name: str, error: str, kind: str, longest: int) -> Result:
    """Return the result of a call that came to nothing."""
    return Result(cut(name[:_LONGEST_NAME], _LONGEST_NAME), cut(f"Error: {error}", longest), kind)


def cut(text: str, longest: int) -> str:
    """Return ``text`` in at most ``longest`` characters, its end kept too, with a note of how much is left out.

    Halves of characters, which no tokenizer takes, are replaced.
    """
    if len(text) <= longest:
        return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
    note = f"\n[... {len(text):,} characters in all, cut to {longest:,} ...]\n"
    if len(note) >= longest:
        return cut(text[:longest], longest)
    room = longest - len(note)
    tail = room // 4
    return cut(text[: room - tail] + note + (text[-tail:] if tail else ""), longest)


def spoken(results: Sequence[Result], longest: int = _LONGEST_MESSAGE) -> str:
    """Return the results of a turn as one message of at most ``longest`` characters, in the order of the calls."""
    if len(results) == 1:
        return cut(results[0].content, longest)
    parts = (f"[{number}] {result.name}\n{result.content}" for number, result in enumerate(results, 1))
    return cut("\n".join(parts), longest)
