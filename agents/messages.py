"""Observations, actions and tools as messages of the OpenAI chat format, and replies as actions."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image

from tetrathlon.envs.codec import is_image
from tetrathlon.envs.grading.thinking import visible
from tetrathlon.envs.tools.calls import CLOSE, OPEN, Call, read_calls

_MARK = re.compile(r"<(?=/?tool_call>)")
_THINK_MARK = re.compile(r"<(?=[|\s/]{0,8}+(?:\w{1,8}+:)?think)", re.IGNORECASE)
_TEXTS = ("text", "output_text")
"""Parts of a reply that are its text; others are its reasoning, or what else a server thinks of."""
_MAIN = frozenset({"text", "instruction"})
"""Parts of an observation that say themselves what they are."""
_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""What servers take for the name of a function."""
_ELSEWHERE = "The answer stands with the other call of this turn."


def content_of(observation: Any, *, shown: bool = True) -> Any:
    """Return an observation as the content of a message.

    A string stays one. A picture (uint8, H x W x 1, 3 or 4), bare or in a dict, becomes a PNG; the texts of a dict
    follow its pictures, under their names unless they are called ``text`` or ``instruction``; so do numbers.

    Args:
        observation: The observation.
        shown: Whether it shows the pictures of its dict; else they are blank, and left out.

    Raises:
        TypeError: It is none of those.
    """
    if isinstance(observation, str):
        return clean(observation)
    if is_image(observation):
        return [_picture(observation)]
    if not isinstance(observation, Mapping):
        raise TypeError(
            "ChatPolicy acts on text, pictures and dicts of them, "
            f"got an observation of type {type(observation).__name__}"
        )
    if not shown:
        observation = {name: value for name, value in observation.items() if not is_image(value)}
    pictures = {name: value for name, value in observation.items() if is_image(value)}
    parts: list[dict[str, Any]] = []
    for name, value in pictures.items():
        parts += [_text(f"{name}:")] if len(pictures) > 1 else []
        parts.append(_picture(value))
    said = [_said(str(name), value) for name, value in observation.items() if name not in pictures]
    if not parts:
        return clean("\n".join(said))
    return parts + ([_text("\n".join(said))] if said else [])


def slot_of(observations: Any, i: int) -> Any:
    """Return the ``i``-th of a batch of observations."""
    if isinstance(observations, Mapping):
        return {name: slot_of(value, i) for name, value in observations.items()}
    return observations[i]


def tool_of(tool: Any) -> dict[str, Any]:
    """Return a tool of ``info["tools"]`` in the form that servers take.

    Raises:
        ValueError: It is no description of a function.
    """
    function = tool.get("function", tool) if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise ValueError(f"a tool must be a dict with 'name', 'description' and 'parameters', got {tool!r:.200}")
    return {"type": "function", "function": dict(function)}


def turn_of(action: str, tools: Sequence[Any], number: int) -> dict[str, Any]:
    """Return an action as the assistant's message; its tool calls count from ``number``.

    Calls in ``<tool_call>``, as environments read them, become ``tool_calls``, and what stands before them the content.
    Without tools, or where a server would refuse one of them and with it all that follows (what is no call, a name of
    other letters), the text stays as it is; so it does with calls in another form.
    """
    whole = {"role": "assistant", "content": clean(action)}
    seen = visible(action) if tools else None
    if seen is None or OPEN not in seen:
        return whole
    calls: list[dict[str, Any]] = []
    for call in read_calls(action):
        function = _function(call)
        if function is None:
            return whole
        # Nine letters and digits: some servers take nothing else for an id.
        calls.append({"id": f"call{number + len(calls):05d}", "type": "function", "function": function})
    before = action[: len(action) - len(seen)] + seen[: seen.index(OPEN)]
    return {"role": "assistant", "content": clean(before.strip()), "tool_calls": calls} if calls else whole


def answers_to(turn: Mapping[str, Any], content: Any, results: Any = ()) -> list[dict[str, Any]]:
    """Return the messages by which an observation answers the assistant's ``turn``.

    Servers want an answer to each call. Where there is no result for each, the first gets all that the environment
    said, and the others point there. A tool's message holds text alone, so pictures follow as a user's message.

    Args:
        turn: The assistant's message.
        content: What the environment said.
        results: ``info["tool_results"]``, one a call, with ``content``.
    """
    ids = [call["id"] for call in turn.get("tool_calls", ())]
    if not ids:
        return [{"role": "user", "content": content}]
    said_of = [str(result.get("content")) for result in results or () if isinstance(result, Mapping)]
    if isinstance(content, str) and len(said_of) == len(ids):
        each = zip(ids, said_of, strict=True)
        return [{"role": "tool", "tool_call_id": name, "content": clean(text)} for name, text in each]
    said = content if isinstance(content, str) else "The answer is in the next message."
    answers = [
        {"role": "tool", "tool_call_id": name, "content": _ELSEWHERE if number else said}
        for number, name in enumerate(ids)
    ]
    return answers if isinstance(content, str) else [*answers, {"role": "user", "content": content}]


def action_of(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return a server's message as the thinking and the rest of an action; nothing in it is trusted.

    Reasoning that a server keeps apart (``reasoning_content``, ``reasoning``) becomes a ``<think>`` block; marks inside
    it that would end the block are defused, so that no answer can slip out of it. Tool calls become
    ``<tool_call>{"name": ..., "arguments": ...}</tool_call>`` behind the text. A refusal is a text.
    """
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    thinking = ""
    if isinstance(reasoning, str) and reasoning.strip():
        thinking = f"<think>\n{_THINK_MARK.sub('‹', reasoning.strip())}\n</think>\n\n"
    content = message.get("content") or message.get("refusal")
    parts = [content] if isinstance(content, str) and content else []
    if isinstance(content, list):  # some servers answer in parts, as they are asked
        said = [part for part in content if isinstance(part, dict) and part.get("type", "text") in _TEXTS]
        texts = [part.get("text") for part in said]
        parts = ["".join(text for text in texts if isinstance(text, str))]
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            parts.append(_written(function.get("name"), function.get("arguments")))
    return thinking, "\n".join(parts)


def clean(text: str) -> str:
    """Replace lone surrogates, which no request can carry, by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _written(name: Any, arguments: Any) -> str:
    if isinstance(arguments, str):
        # What is no JSON stays a string: the environment says so, and it costs a turn.
        parsed = _json(arguments) if arguments.strip() else {}
        arguments = arguments if parsed is None else parsed
    try:
        call = _dump({"name": name, "arguments": arguments})
    except RecursionError:  # what was just read may still be too deep to be written
        call = _dump({"name": None, "arguments": None})
    return OPEN + _MARK.sub(r"\\u003c", call) + CLOSE  # a mark in a string must not end the call


def _function(call: Call) -> dict[str, str] | None:
    """Return a call as servers take it back; None where they would not."""
    if call.error or not _NAME.fullmatch(call.name):
        return None
    try:
        return {"name": call.name, "arguments": clean(json.dumps(call.arguments, ensure_ascii=False))}
    except RecursionError:
        return None


def _json(text: str) -> Any:
    """Return what JSON says, or None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _dump(value: Any) -> str:
    return clean(json.dumps(value, ensure_ascii=False))


def _said(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value if name in _MAIN else f"{name}: {value}"
    if isinstance(value, Mapping):
        return "\n".join(_said(f"{name}.{part}", inner) for part, inner in value.items())
    return f"{name}: {json.dumps(np.asarray(value).tolist(), default=str)}"


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": clean(text)}


def _picture(array: np.ndarray) -> dict[str, Any]:
    written = io.BytesIO()
    Image.fromarray(array.squeeze(-1) if array.shape[-1] == 1 else array).save(written, "PNG")
    data = base64.b64encode(written.getvalue()).decode("ascii")
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
