"""An OpenAI-compatible server as many requests at once meet it: in time, within its limits, with its faults."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import random
import re
import threading
import time
import weakref
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn

from tetrathlon.agents.quota import Quota

INSTALL_CHAT = 'pip install "tetrathlon[chat]"'
_MOST_BYTES = 16 * 2**20
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0
_MOST_PATIENCE = 300.0
"""Seconds of ``Retry-After`` beyond which a run had better stop and be resumed."""
_LETTERS_A_TOKEN, _TOKENS_A_PICTURE = 4, 1000
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
"""Statuses that may pass."""
_OVERFLOW = re.compile(
    r"context[ _-]?(?:length|window|size)|maximum context|max_model_len|prompt is too long|input is too long",
    re.IGNORECASE,
)
_INSTEAD = {"max_tokens": "max_completion_tokens", "seed": None}
"""Parameter that some servers refuse -> what they take in its place. All servers understand the first form or say so;
the second is left unread by some without a word."""
_FILTERS = frozenset({"content_filter", "content_policy_violation"})


class ServerError(OSError):
    """A server cannot be reached, refuses the request, or answers what is no answer."""


@dataclass(slots=True)
class Usage:
    """What a server was asked for so far, and what it counted."""

    requests: int = 0
    """Requests sent, those of retries among them."""
    retries: int = 0
    """Requests sent again after a fault that may pass."""
    filtered: int = 0
    """Replies that the server's content filter kept or cut."""
    prompt_tokens: int = 0
    """As the server says."""
    completion_tokens: int = 0
    """As the server says."""


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


class Server:
    """A model on an OpenAI-compatible server. Threads may share one.

    Its requests run in an event loop on a thread of its own, so they can be asked for from anywhere, and the first
    that fails for good stops the others of its call.

    Args:
        base_url: Where its API begins; mostly ends in ``/v1``.
        model: What the server calls the model.
        api_key: The key; None: the environment variable ``OPENAI_API_KEY``, else a word that servers without keys take.
        max_concurrency: Most requests under way at once.
        timeout_s: Seconds from a request to the last byte of its answer.
        retries: How often a request is sent again after a fault that may pass.
        requests_per_minute: Most requests in any minute; None: no limit.
        tokens_per_minute: Most tokens in any minute, by estimate until the server has counted; None: no limit.
        seed: Seed of the jitter between retries.

    Raises:
        ImportError: The package openai is not installed.
        ValueError: A value is out of range.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        max_concurrency: int = 16,
        timeout_s: float = 60.0,
        retries: int = 5,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        seed: int = 0,
    ) -> None:
        if not re.match(r"https?://[^/\s]", base_url):
            raise ValueError(f"base_url must be such as 'http://localhost:8000/v1', got {base_url!r}")
        if not model:
            raise ValueError("model must be the server's name of a model, got ''")
        for name, value, least in (("max_concurrency", max_concurrency, 1), ("retries", retries, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
        for name, limit in (
            ("timeout_s", timeout_s),
            ("requests_per_minute", requests_per_minute),
            ("tokens_per_minute", tokens_per_minute),
        ):
            if limit is not None and not 0 < limit < math.inf:
                raise ValueError(f"{name} must be above 0, got {limit!r}")
        self.base_url, self.model = base_url, model
        self.timeout_s, self.retries = timeout_s, retries
        self.usage = Usage()
        self._key, self._client = _client(base_url, api_key, timeout_s)
        self._jitter = random.Random(seed)
        self._names: dict[str, str | None] = {}
        """Parameter -> what this server takes in its place, as found out."""
        self._room = asyncio.Semaphore(max_concurrency)
        self._requests = Quota(requests_per_minute) if requests_per_minute is not None else None
        self._tokens = Quota(tokens_per_minute) if tokens_per_minute is not None else None
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=_turn, args=(self._loop,), name="tetrathlon-server", daemon=True).start()
        self.close = weakref.finalize(self, _stop, self._loop, self._client)
        """Close the connections; happens by itself when nobody holds the server any more."""

    def ask(self, bodies: Sequence[dict[str, Any]]) -> list[Reply]:
        """Send requests, all at once, and wait for all replies.

        Args:
            bodies: ``messages`` and whatever else each request says; ``max_tokens`` is its token limit.

        Raises:
            ServerError: One of them failed for good; the message says where, how, and what would be right.
        """
        asked = asyncio.run_coroutine_threadsafe(self._ask_all(bodies), self._loop)
        try:
            return asked.result()
        except BaseException:  # above all ctrl-C, which comes to this thread alone
            asked.cancel()
            raise

    async def _ask_all(self, bodies: Sequence[dict[str, Any]]) -> list[Reply]:
        tasks = [asyncio.create_task(self._ask(body)) for body in bodies]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()

    async def _ask(self, body: dict[str, Any]) -> Reply:
        import openai

        body = {"model": self.model, **body}
        unlimited, failed = False, 0
        while True:
            sent = {self._names.get(name, name): value for name, value in body.items()}
            sent.pop(None, None)
            try:
                reply = await self._send({str(name): value for name, value in sent.items()})
            except openai.APIStatusError as error:
                said, code = _said(error), error.status_code
                if error.code in _FILTERS:
                    self.usage.filtered += 1
                    return Reply(finish="content_filter")
                if code in (400, 413, 422) and (error.code == "context_length_exceeded" or _OVERFLOW.search(said)):
                    if "max_tokens" not in body:
                        return Reply(finish="context")
                    # Prompt and limit together may be too much; whatever room is left is less than the limit.
                    del body["max_tokens"]
                    unlimited = True
                    continue
                refused = [name for name in _INSTEAD if name in sent and _names(error.param, said, name)]
                if code in (400, 422) and refused:
                    self._names |= {name: _INSTEAD[name] for name in refused}
                    continue
                if code not in _PASSING or error.code == "insufficient_quota":
                    self._fail(f"status {code}: {said}", _hint(code, self.base_url), error)
                failed += 1
                await self._wait(failed, f"status {code}: {said}", _hint(code, self.base_url), error)
            except TimeoutError as error:
                failed += 1
                what = f"no whole answer within {self.timeout_s:g} s"
                await self._wait(failed, what, "raise timeout_s or lower max_concurrency", error)
            except (openai.APIConnectionError, _Garbled) as error:
                failed += 1
                await self._wait(failed, _cause(error), "is an OpenAI-compatible server running there?", error)
            else:
                self.usage.filtered += reply.finish == "content_filter"
                if unlimited and reply.finish == "length":
                    return Reply(reply.message, "context", reply.prompt_tokens, reply.completion_tokens)
                return reply

    async def _send(self, body: dict[str, Any]) -> Reply:
        """Send one request once."""
        import httpx2

        async with self._room:
            taken = await self._tokens.take(_estimate(body)) if self._tokens is not None else None
            if self._requests is not None:
                await self._requests.take(1)
            self.usage.requests += 1
            # The client's own timeout is one of each read: a server that drips would hold us for ever.
            async with asyncio.timeout(self.timeout_s):
                response = await self._client.post("/chat/completions", cast_to=httpx2.Response, body=body)
        reply = _read(response.content)
        self.usage.prompt_tokens += reply.prompt_tokens or 0
        self.usage.completion_tokens += reply.completion_tokens or 0
        if self._tokens is not None and taken is not None and reply.prompt_tokens is not None:
            self._tokens.settle(taken, reply.prompt_tokens + (reply.completion_tokens or 0))
        return reply

    async def _wait(self, failed: int, what: str, hint: str, error: Exception) -> None:
        """Wait before the next try, or raise if there is none."""
        if failed > self.retries:
            self._fail(f"{what} ({failed} tries)", hint, error)
        wait = min(_FIRST_WAIT * 2.0 ** min(failed - 1, 30), _LONGEST_WAIT) * (1 - 0.5 * self._jitter.random())
        asked = _retry_after(getattr(error, "response", None))
        if asked is not None and asked > _MOST_PATIENCE:
            self._fail(f"{what}; it asks to wait {asked:.0f} s", hint, error)
        self.usage.retries += 1
        await asyncio.sleep(max(wait, asked or 0.0))

    def _fail(self, what: str, hint: str, error: Exception) -> NoReturn:
        said = f"{self.base_url} (model {self.model!r}): {what}; {hint}"
        raise ServerError(said.replace(self._key, "***")) from error


class _Garbled(Exception):
    """An answer is no chat completion."""


def _client(base_url: str, api_key: str | None, timeout_s: float) -> tuple[str, Any]:
    """Return the key and a client; retries are ours, for the client's own do not cover a body that breaks off."""
    import os

    try:
        import openai
    except ModuleNotFoundError as error:
        raise ImportError(f"a server's model needs {error.name}: {INSTALL_CHAT}", name=error.name) from error
    key = api_key or os.environ.get("OPENAI_API_KEY") or "no-key-given"
    http: Any = openai.DefaultAsyncHttpxClient(event_hooks={"response": [_bound]}, timeout=timeout_s)
    return key, openai.AsyncOpenAI(
        base_url=base_url,
        api_key=key,
        max_retries=0,
        timeout=timeout_s,
        http_client=http,
        default_headers={"Accept-Encoding": "identity"},
    )


async def _bound(response: Any) -> None:
    """Keep an answer from filling the memory: no compression, which hides how much will come, and a limit."""
    import httpx2

    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise _Garbled("it compresses its answers although it was told not to")

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        async def __aiter__(self) -> AsyncIterator[bytes]:
            held = 0
            async for part in self.inner:
                held += len(part)
                if held > _MOST_BYTES:
                    raise _Garbled(f"its answer is longer than {_MOST_BYTES} bytes")
                yield part

        async def aclose(self) -> None:
            await self.inner.aclose()

    response.stream = Bounded(response.stream)


def _read(data: bytes) -> Reply:
    """Return what an answer says; nothing in it is trusted."""
    try:
        answer = json.loads(data)
        choice = answer["choices"][0]
        message = choice["message"]
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        start = " ".join(data[:200].decode("utf-8", "replace").split())
        raise _Garbled(f"it answered with no chat completion: {start!r}") from error
    if not isinstance(message, dict):
        raise _Garbled(f"it answered with a message that is none: {message!r:.200}")
    usage = answer.get("usage")
    prompt, completion = (
        value if isinstance(usage, dict) and type(value := usage.get(name)) is int and 0 <= value < 2**31 else None
        for name in ("prompt_tokens", "completion_tokens")
    )
    return Reply(message, str(choice.get("finish_reason") or ""), prompt, completion)


def _estimate(body: dict[str, Any]) -> int:
    """Return about how many tokens a request will use."""

    def tokens(value: Any) -> float:
        if isinstance(value, str):
            return _TOKENS_A_PICTURE if value.startswith("data:image/") else len(value) / _LETTERS_A_TOKEN
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
        return sum(map(tokens, parts))

    asked = body.get("max_tokens") or body.get("max_completion_tokens") or 0
    return round(tokens(body["messages"]) + tokens(body.get("tools", ()))) + asked


def _said(error: Any) -> str:
    """Return what a server says of an error, on one line."""
    said: Any = error.body
    for name in ("error", "message", "detail", "msg"):  # OpenAI's form, FastAPI's, and some in between
        if isinstance(said, dict) and said.get(name):
            said = said[name]
    return " ".join(str(said if said else error.response.text)[:500].split())


def _names(param: Any, said: str, name: str) -> bool:
    return param == name or (param is None and re.search(rf"(?<!\w){name}(?!\w)", said) is not None)


def _cause(error: BaseException) -> str:
    """Return what a broken connection broke of: the innermost reason says it, the outer ones do not."""
    chain = [error]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) is not None and len(chain) < 10:
        chain.append(inner)
    garbled = next((link for link in chain if isinstance(link, _Garbled)), None)
    return str(garbled or next((str(link) for link in reversed(chain) if str(link)), type(error).__name__))


def _hint(status: int, base_url: str) -> str:
    if status in (401, 403):
        return "give a key of this server as api_key or in OPENAI_API_KEY"
    if status == 404:
        return (
            f"is that the model's name there (see {base_url.rstrip('/')}/models), and does its API begin at this "
            "URL, which mostly ends in /v1?"
        )
    if status == 429:
        return "lower max_concurrency, or set requests_per_minute or tokens_per_minute"
    return "the server's log may say more" if status >= 500 else "the request must be one that this server takes"


def _retry_after(response: Any) -> float | None:
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


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


def _stop(loop: asyncio.AbstractEventLoop, client: Any) -> None:
    async def stop() -> None:
        with contextlib.suppress(OSError):
            await client.close()
        loop.stop()

    def begin() -> None:
        stopping.append(loop.create_task(stop()))

    stopping: list[Any] = []  # a loop holds its tasks weakly
    loop.call_soon_threadsafe(begin)
