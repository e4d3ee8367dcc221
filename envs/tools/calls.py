"""Tool calls as models write them, read out of a turn: Hermes, the JSON of OpenAI's API, and fenced JSON.

A call that is only thought of never runs, and what is not whole JSON is never mended: a call that cannot be read is
an error for the model to see.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tetrathlon.envs.grading.thinking import visible
from tetrathlon.envs.tools.decoding import BrokenJson, decode, decode_whole, skip_blanks

OPEN, CLOSE = "<tool_call>", "</tool_call>"
MOST_CALLS = 64
"""Calls that are read in one turn; one error stands for all that follow."""
_OPENING = re.compile(r"(?P<hermes><tool_call>)|(?P<fence>(?i:```(?:json|tool_calls?|tool_code)?[ \t]*+\r?\n))")
_BARE = re.compile(r"(?:\A|[>\]▷])\s*+(?=[{\[])")
"""Bare JSON begins the turn, or stands behind a mark that ends the thinking."""
_MOST_BARE = 64
"""How many such places are looked at."""
_MOST_PLACES = 1_000
"""Tags and fences that are looked at, those in the thinking included: the decoder counts lines up to each error."""
_FENCE_END = re.compile(r"\s*+```")
_NAME_KEY = re.compile(r'"(?:name|function)"\s*+:')
_REST_KEY = re.compile(r'"(?:arguments|parameters|tool_calls)"')
_HEAD = 4_000
"""How much of a broken JSON text is looked at to tell whether it was meant as a call."""
_MARKS = str.maketrans("<[◁", "   ")
"""What a mark of thinking begins with."""
_RISKY = re.compile(r"[\ud800-\udfff]|</?(?=tool_call>)")
_RISKY_IN_THOUGHT = re.compile(r"[\ud800-\udfff<◁]|\[(?=/*THINK)", re.IGNORECASE)


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

    - Hermes: JSON between ``<tool_call>`` and ``</tool_call>``. The last closing tag may be missing or cut where the
      text ends behind whole JSON: engines that stop at the tag take it away.
    - OpenAI: all of the text behind the thinking is one JSON object or a list of them, ``{"name": ..., "arguments":
      {...}}``, ``{"function": {...}}`` or ``{"tool_calls": [...]}``.
    - Fenced: the same in a block ```` ```json ```` or ```` ```tool_call ````, where no Hermes call is.

    JSON decides where a call ends, so that tags, fences and marks of thinking inside its strings are text.
    ``parameters`` stands for ``arguments`` too. Arguments that are a text are read as JSON once more, as OpenAI's API
    writes them, and null is none. Which JSON is taken is said at :func:`~tetrathlon.envs.tools.decoding.decode`.

    Args:
        text: What the model wrote, of any length; the time taken is linear in it, and it never raises.
    """
    if "{" not in text and OPEN not in text:
        return []
    begin = _find_bare(text)
    if begin is not None:
        return _capped(_calls(decode(text, begin)[0], sure=False))
    found = list(islice(_find(text), _MOST_PLACES))
    seen = visible(_without_marks(text, found))
    if seen is None:
        return []
    start = len(text) - len(seen)
    for form in ("hermes", "fence"):
        some = (one for one in found if one.form == form and one.start >= start)
        if calls := _capped(call for one in some for call in _read(text, one)):
            return calls
    return _capped(_read_cut(text, skip_blanks(text, start)))


def write_call(name: str, arguments: dict[str, Any]) -> str:
    """Return a call in the Hermes form, which :func:`read_calls` reads as the same call.

    A tag or a mark of thinking inside a string is written so that no reader takes it for one.
    """
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    body = _RISKY.sub(_escaped, body)
    if visible(body) != body:
        body = _RISKY_IN_THOUGHT.sub(_escaped, body)
    return f"{OPEN}{body}{CLOSE}"


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0][0]):04x}{match[0][1:]}"


@dataclass(frozen=True, slots=True)
class _Found:
    """A place where a call may stand."""

    form: str
    """``hermes`` or ``fence``."""
    start: int
    """Where its tag or fence begins."""
    begin: int
    """Where its JSON begins."""
    end: int = 0
    """Where its JSON ends, if it is whole."""
    value: Any = None
    """The JSON, if it is whole."""
    is_closed: bool = False
    """Whether what follows the JSON is what must follow it."""
    error: str = ""
    """Why the JSON is not whole."""


def _find_bare(text: str) -> int | None:
    """Return where the JSON begins that is all of a turn behind its thinking."""
    if not text.rstrip().endswith(("}", "]")):
        return None
    for place in islice(_BARE.finditer(text), _MOST_BARE):
        try:
            _, end = decode(text, place.end())
        except BrokenJson:
            continue
        if skip_blanks(text, end) == len(text):
            before = visible(text[: place.end()])
            return place.end() if before is not None and not before.strip() else None
    return None


def _find(text: str) -> Iterator[_Found]:
    at = 0
    while opened := _OPENING.search(text, at):
        form, at = opened.lastgroup or "", opened.end()
        begin = skip_blanks(text, at)
        if form == "fence" and text[begin : begin + 1] not in ("{", "["):
            continue
        try:
            value, end = decode(text, begin)
        except BrokenJson as error:
            yield _Found(form, opened.start(), begin, error=str(error))
            # A tag inside what was read is text, but behind the closing tag all is new: a quote may be missing.
            closing = text.find(CLOSE if form == "hermes" else "```", at, error.at)
            at = closing if closing >= 0 else max(at, error.at)
        else:
            yield _Found(form, opened.start(), begin, end, value, _closes(text, end, form))
            at = end


def _closes(text: str, end: int, form: str) -> bool:
    """Tell whether the JSON that ends at ``end`` is followed by what must follow it."""
    tail = skip_blanks(text, end)
    if form == "fence":
        return tail == len(text) or _FENCE_END.match(text, end) is not None
    rest = text[tail : tail + len(CLOSE)].rstrip()
    return rest == CLOSE or (CLOSE.startswith(rest) and skip_blanks(text, tail + len(rest)) == len(text))


def _without_marks(text: str, found: Sequence[_Found]) -> str:
    """Return ``text`` with no mark of thinking inside the JSON of calls, and every place where it was."""
    parts, at = [], 0
    for one in found:
        if one.is_closed:
            parts += [text[at : one.begin], text[one.begin : one.end].translate(_MARKS)]
            at = one.end
    return "".join([*parts, text[at:]]) if parts else text


def _read(text: str, found: _Found) -> Iterator[Call]:
    if found.error:
        if found.form == "hermes" or _is_meant(text, found.begin):
            yield Call(error=f"the call is not valid JSON: {found.error}", kind="invalid_json")
    elif found.is_closed:
        yield from _calls(found.value, sure=found.form == "hermes")
    elif found.form == "hermes" or (found.form == "fence" and any(_calls(found.value, sure=False))):
        mark, tail = CLOSE if found.form == "hermes" else "```", skip_blanks(text, found.end)
        said = f"{mark} must follow its JSON, got {text[tail : tail + len(CLOSE)]!r}"
        yield Call(error=f"the call is not valid JSON: {said}", kind="invalid_json")


def _read_cut(text: str, begin: int) -> Iterator[Call]:
    """Yield an error where bare JSON begins and is not whole."""
    if text[begin : begin + 1] not in ("{", "["):
        return
    try:
        decode(text, begin)
    except BrokenJson as error:
        yield from _read(text, _Found("bare", begin, begin, error=str(error)))


def _is_meant(text: str, begin: int) -> bool:
    """Tell whether broken JSON was meant as a call."""
    fence = text.find("```", begin, begin + _HEAD)
    end = fence if fence >= 0 else begin + _HEAD
    return all(key.search(text, begin, end) for key in (_NAME_KEY, _REST_KEY))


def _capped(calls: Iterator[Call]) -> list[Call]:
    read = list(islice(calls, MOST_CALLS))
    if next(calls, None) is not None:
        read.append(_no_call(f"not read, nor any after it: there are more than {MOST_CALLS} calls in this turn"))
    return read


def _calls(value: Any, sure: bool) -> Iterator[Call]:
    """Yield the calls that a JSON value is.

    Args:
        value: The value.
        sure: Whether it can be nothing else; False: what does not look like a call is none.
    """
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        value, sure = value["tool_calls"], True
    if sure and value == []:
        yield _no_call(f"there is no call in the list; {_WANTED}")
    for one in value if isinstance(value, list) else [value]:
        call = one.get("function", one) if isinstance(one, dict) else one
        is_one = isinstance(call, dict) and "name" in call and ("arguments" in call or "parameters" in call)
        if is_one or sure:
            yield _call(call)


_WANTED = 'write {"name": the tool, "arguments": {its arguments}}'


def _call(call: Any) -> Call:
    if not isinstance(call, dict):
        return _no_call(f"a call is an object, got {_shown(call)}; {_WANTED}")
    name = call.get("name")
    if not isinstance(name, str) or not name:
        return _no_call(f"the name of a tool is a text, got {_shown(name)}; {_WANTED}")
    keys = [key for key in ("arguments", "parameters") if key in call]
    if len(keys) > 1:
        return Call(name, error="give arguments or parameters, not both", kind="invalid_call")
    arguments = call[keys[0]] if keys else {}
    if isinstance(arguments, str):
        try:
            arguments = decode_whole(arguments) if arguments.strip() else {}
        except BrokenJson as error:
            return Call(name, error=f"the arguments are not valid JSON: {error}", kind="invalid_json")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        return Call(name, error=f"arguments are an object, got {_shown(arguments)}; {_WANTED}", kind="invalid_call")
    return Call(name, arguments)


def _no_call(error: str) -> Call:
    return Call(error=error, kind="invalid_call")


def _shown(value: Any) -> str:
    if value == "":
        return "an empty text"
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "nothing"}
    return kinds.get(type(value), "a number")
