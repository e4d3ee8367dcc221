"""Tool calls as models write them, read out of a turn: Hermes, the JSON of OpenAI's API, and fenced JSON.

The thinking is split off first, so a call that is only thought of never runs, and what is not whole JSON is never
mended: a call that cannot be read is an error for the model to see.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tetrathlon.envs.grading.thinking import visible

OPEN, CLOSE = "<tool_call>", "</tool_call>"
MOST_CALLS = 64
"""Calls that are read in one turn; what follows them is left unread."""
_LONGEST_NUMBER = 400
_BLANK = re.compile(r"\s*")
_FENCE = re.compile(r"```(?:json|tool_calls?|tool_code)?[ \t]*\r?\n", re.IGNORECASE)
_FENCE_END = re.compile(r"\s*```")
_LIKE_A_CALL = re.compile(r'"(?:name|function)"\s*:.*"(?:arguments|parameters|tool_calls)"\s*:?', re.DOTALL)
_HEAD = 4_000
"""How much of a broken JSON text is looked at to tell whether it was meant as a call."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a turn, or what is wrong with it."""

    name: str = ""
    """The tool; empty where it cannot be read."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """As they were written, not yet looked at."""
    error: str = ""
    """What is wrong, for the model to read; empty for a call that can be tried."""
    kind: str = ""
    """``invalid_json``, or ``invalid_call`` for JSON that is no call; empty where there is no error."""


def read_calls(text: str) -> list[Call]:
    """Return the calls of a turn in the order in which they stand there; none for a turn without one.

    - Hermes: JSON between ``<tool_call>`` and ``</tool_call>``. JSON decides where a call ends, so a closing tag
      inside a string is text. The last closing tag may be missing or cut where the text ends behind whole JSON:
      engines that stop at the tag take it away.
    - OpenAI: all of the text is one JSON object or a list of them, ``{"name": ..., "arguments": {...}}``,
      ``{"function": {...}}`` or ``{"tool_calls": [...]}``.
    - Fenced: the same in a block ```` ```json ```` or ```` ```tool_call ````.

    ``parameters`` stands for ``arguments`` too. Arguments that are a text are read as JSON once more, as OpenAI's API
    writes them, and null is none. Line ends inside strings are let through. A key that comes twice, NaN and infinite
    numbers are errors.

    Args:
        text: What the model wrote, of any length; the time taken is linear in it.
    """
    seen = visible(text)
    if seen is None:
        return []
    if OPEN in seen:
        return _capped(_hermes(seen))
    if "{" not in seen:
        return []
    if fenced := _capped(_fenced(seen)):
        return fenced
    bare = seen.strip()
    return _capped(_bare(bare)) if bare[:1] in ("{", "[") else []


def write_call(name: str, arguments: dict[str, Any]) -> str:
    """Return a call in the Hermes form; a tag inside a string is written so that no reader takes it for the end."""
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"{OPEN}{body.replace(OPEN, _escaped(OPEN)).replace(CLOSE, _escaped(CLOSE))}{CLOSE}"


def _escaped(tag: str) -> str:
    return "\\u003c" + tag[1:]


class _Twice(ValueError):
    """A key comes twice in an object."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _Twice(f"the key {next(key for key in keys if keys.count(key) > 1)!r} comes twice")
    return found


def _finite(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(f"the number {written[:40]} is too large")
    return number


def _integer(written: str) -> int:
    if len(written) > _LONGEST_NUMBER:
        raise ValueError(f"a number has {len(written)} digits")
    return int(written)


def _constant(written: str) -> Any:
    raise ValueError(f"{written} is no JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_float=_finite, parse_int=_integer, parse_constant=_constant, strict=False
)


def _decode(text: str, at: int) -> tuple[Any, int]:
    """Return the JSON value that begins at ``at`` and where it ends.

    Raises:
        ValueError: There is none.
    """
    try:
        return _DECODER.raw_decode(text, at)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _broken(error: ValueError, begin: int) -> Call:
    where = f"{error.msg} at character {error.pos - begin}" if isinstance(error, json.JSONDecodeError) else str(error)
    return Call(error=f"the call is not valid JSON: {where}", kind="invalid_json")


def _capped(calls: Iterator[Call]) -> list[Call]:
    return [call for call, _ in zip(calls, range(MOST_CALLS), strict=False)]


def _hermes(text: str) -> Iterator[Call]:
    at = text.find(OPEN)
    while at >= 0:
        begin = _skip(text, at + len(OPEN))
        try:
            value, end = _decode(text, begin)
        except ValueError as error:
            yield _broken(error, begin)
            end = begin
        else:
            tail = _skip(text, end)
            rest = text[tail : tail + len(CLOSE)]
            if rest == CLOSE or CLOSE.startswith(text[tail:].rstrip()):
                yield from _calls(value)
            else:
                yield Call(
                    error=f"the call is not valid JSON: {CLOSE} must follow its JSON, got {rest!r}", kind="invalid_json"
                )
        # What is broken may hold tags in strings; from its closing tag on, or where a new call opens, all is new.
        closing, opening = text.find(CLOSE, end), text.find(OPEN, end)
        at = opening if closing < 0 or opening < closing else text.find(OPEN, closing)


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _fenced(text: str) -> Iterator[Call]:
    at = 0
    while opened := _FENCE.search(text, at):
        begin = at = _skip(text, opened.end())
        if text[begin : begin + 1] not in ("{", "["):
            continue
        try:
            value, end = _decode(text, begin)
        except ValueError as error:
            if _LIKE_A_CALL.search(text, begin, begin + _HEAD):
                yield _broken(error, begin)
            continue
        at = end
        if _FENCE_END.match(text, end) or not text[end:].strip():
            yield from _calls(value, sure=False)


def _bare(text: str) -> Iterator[Call]:
    try:
        value, end = _decode(text, 0)
    except ValueError as error:
        if _LIKE_A_CALL.search(text, 0, _HEAD):
            yield _broken(error, 0)
        return
    if not text[end:].strip():
        yield from _calls(value, sure=False)


def _calls(value: Any, sure: bool = True) -> Iterator[Call]:
    """Yield the calls that a JSON value is.

    Args:
        value: The value.
        sure: Whether it can be nothing else; False: what does not look like a call is none.
    """
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        value, sure = value["tool_calls"], True
    for one in value if isinstance(value, list) else [value]:
        call = one.get("function", one) if isinstance(one, dict) else None
        is_one = isinstance(call, dict) and "name" in call and ("arguments" in call or "parameters" in call)
        if is_one or sure:
            yield _call(call)


def _call(call: Any) -> Call:
    wanted = 'write {"name": the tool, "arguments": {its arguments}}'
    if not isinstance(call, dict):
        return _no_call(f"a call is an object, got {_shown(call)}; {wanted}")
    name = call.get("name")
    if not isinstance(name, str) or not name:
        return _no_call(f"the name of a tool is a text, got {_shown(name)}; {wanted}")
    keys = [key for key in ("arguments", "parameters") if key in call]
    if len(keys) > 1:
        return Call(name, error="give arguments or parameters, not both", kind="invalid_call")
    arguments = call[keys[0]] if keys else {}
    if isinstance(arguments, str):
        text = arguments.strip()
        try:
            arguments, end = _decode(text, 0) if text else ({}, 0)
            if text[end:].strip():
                raise ValueError(f"there is more after character {end}")
        except ValueError as error:
            return Call(name, error=f"the arguments are not valid JSON: {error}"[:500], kind="invalid_json")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        return Call(name, error=f"arguments are an object, got {_shown(arguments)}; {wanted}", kind="invalid_call")
    return Call(name, arguments)


def _no_call(error: str) -> Call:
    return Call(error=error, kind="invalid_call")


def _shown(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "nothing"}
    return kinds.get(type(value), "a number")
