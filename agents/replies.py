"""What comes back from a chat server: replies, errors and faults, none of it trusted."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

_MOST_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered to one request."""

    message: dict[str, Any] = field(default_factory=dict)
    """The assistant's message, as it came: untrusted."""
    finish: str = ""
    """``"stop"``, ``"length"``, ``"tool_calls"``, ``"content_filter"``, ..., or ``"context"``: there was no room."""
    prompt_tokens: int | None = None
    """As the server says; None where it says nothing."""
    completion_tokens: int | None = None
    """As the server says; None where it says nothing."""


class Garbled(Exception):
    """An answer is no chat completion."""


async def bound(response: Any) -> None:
    """Keep an answer from filling the memory: no compression, which hides how much will come, and a limit."""
    import httpx2

    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise Garbled("it compresses its answers although it was told not to")

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        async def __aiter__(self) -> AsyncIterator[bytes]:
            held = 0
            async for part in self.inner:
                held += len(part)
                if held > _MOST_BYTES:
                    raise Garbled(f"its answer is longer than {_MOST_BYTES} bytes")
                yield part

        async def aclose(self) -> None:
            await self.inner.aclose()

    response.stream = Bounded(response.stream)


def read(data: bytes) -> Reply:
    """Return what an answer says; nothing in it is trusted."""
    try:
        answer = json.loads(data)
        choice = answer["choices"][0]
        message = choice["message"]
        if not isinstance(message, dict):
            raise TypeError("a message is an object")
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        start = " ".join(data[:200].decode("utf-8", "replace").split())
        raise Garbled(f"it answered with no chat completion: {start!r}") from error
    usage = answer.get("usage")
    prompt, completion = (
        value if isinstance(usage, dict) and type(value := usage.get(name)) is int and 0 <= value < 2**31 else None
        for name in ("prompt_tokens", "completion_tokens")
    )
    finish = choice.get("finish_reason")
    return Reply(message, finish if isinstance(finish, str) else "", prompt, completion)


def said_of(error: Any) -> str:
    """Return what a server says of an error, on one line."""
    said: Any = error.body
    for name in ("error", "message", "detail", "msg"):  # OpenAI's form, FastAPI's, and some in between
        if isinstance(said, dict) and said.get(name):
            said = said[name]
    return " ".join((said if said and isinstance(said, str) else error.response.text).split())


def cause_of(error: BaseException) -> str:
    """Return what a broken connection broke of: the innermost reason says it, the outer ones do not."""
    chain = [error]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) is not None and len(chain) < 10:
        chain.append(inner)
    garbled = next((link for link in chain if isinstance(link, Garbled)), None)
    return str(garbled or next((str(link) for link in reversed(chain) if str(link)), type(error).__name__))


def retry_after(response: Any) -> float | None:
    """Return how many seconds a server asks to wait; None where it does not say, or no number that makes sense."""
    value = response.headers.get("retry-after") if response is not None else None
    if value is None:
        return None
    with contextlib.suppress(ValueError):
        seconds = float(value)
        return seconds if seconds >= 0 else None
    with contextlib.suppress(ValueError, OverflowError):
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    return None
