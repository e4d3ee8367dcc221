"""An OpenAI-compatible server as many requests at once meet it: in time, within its limits, with its faults."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import random
import re
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import urlsplit

from tetrathlon.agents.quota import Quota, Window
from tetrathlon.agents.replies import Garbled, Reply, bound, cause_of, read, retry_after, said_of

INSTALL_CHAT = 'pip install "tetrathlon[chat]"'
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0
_MOST_PATIENCE = 300.0
"""Seconds of ``Retry-After`` beyond which a run had better stop and be resumed."""
_LEAST_KEY = 8
"""Letters of a key that can be a secret."""
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
        _check_url(base_url)
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
        self._requests = Window(requests_per_minute) if requests_per_minute is not None else None
        self._tokens = Window(tokens_per_minute) if tokens_per_minute is not None else None
        self._quota = Quota()
        self._process = os.getpid()
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
        # Else it would wait for ever for a thread that is not there.
        if os.getpid() != self._process:
            raise RuntimeError("this server was made in another process; make one in each process that asks")
        if not self.close.alive:
            raise RuntimeError("this server was closed; make another")
        asked = asyncio.run_coroutine_threadsafe(self._ask_all(bodies), self._loop)
        try:
            return asked.result()
        except BaseException:  # above all ctrl-C, which comes to this thread alone
            asked.cancel()
            raise

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Server cannot be copied or pickled, it holds connections and a key; make another")

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
                said, code = self._hidden(said_of(error))[:500], error.status_code
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
                    self._fail(f"status {code}: {said}", _hint(code, self.base_url))
                failed += 1
                await self._wait(failed, f"status {code}: {said}", _hint(code, self.base_url), error)
            except TimeoutError as error:
                failed += 1
                what = f"no whole answer within {self.timeout_s:g} s"
                await self._wait(failed, what, "raise timeout_s or lower max_concurrency", error)
            except (openai.APIConnectionError, Garbled) as error:
                failed += 1
                await self._wait(failed, cause_of(error), "is an OpenAI-compatible server running there?", error)
            else:
                self.usage.filtered += reply.finish == "content_filter"
                if unlimited and reply.finish == "length":
                    return Reply(reply.message, "context", reply.prompt_tokens, reply.completion_tokens)
                return reply

    async def _send(self, body: dict[str, Any]) -> Reply:
        """Send one request once."""
        import httpx2

        async with self._room:
            taken = await self._quota.take((self._requests, 1), (self._tokens, _estimate(body)))
            self.usage.requests += 1
            # The client's own timeout is one of each read: a server that drips would hold us for ever.
            async with asyncio.timeout(self.timeout_s):
                response = await self._client.post("/chat/completions", cast_to=httpx2.Response, body=body)
        reply = read(response.content)
        self.usage.prompt_tokens += reply.prompt_tokens or 0
        self.usage.completion_tokens += reply.completion_tokens or 0
        if self._tokens is not None and reply.prompt_tokens is not None:
            self._tokens.settle(taken[-1], reply.prompt_tokens + (reply.completion_tokens or 0))
        return reply

    async def _wait(self, failed: int, what: str, hint: str, error: Exception) -> None:
        """Wait before the next try, or raise if there is none."""
        if failed > self.retries:
            self._fail(f"{what} ({failed} tries)", hint)
        wait = min(_FIRST_WAIT * 2.0 ** min(failed - 1, 30), _LONGEST_WAIT) * (1 - 0.5 * self._jitter.random())
        asked = retry_after(getattr(error, "response", None))
        if asked is not None and asked > _MOST_PATIENCE:
            self._fail(f"{what}; it asks to wait {asked:.0f} s", hint)
        self.usage.retries += 1
        await asyncio.sleep(max(wait, asked or 0.0))

    def _fail(self, what: str, hint: str) -> NoReturn:
        said = self._hidden(f"{self.base_url} (model {self.model!r}): {what}; {hint}")
        # A traceback would show the error's own words, in which some servers repeat the key.
        raise ServerError(said) from None

    def _hidden(self, said: str) -> str:
        """Return ``said`` without the key; a short one is no secret, and may be a part of any word."""
        return said.replace(self._key, "***") if len(self._key) >= _LEAST_KEY else said


def _client(base_url: str, api_key: str | None, timeout_s: float) -> tuple[str, Any]:
    """Return the key and a client; retries are ours, for the client's own do not cover a body that breaks off."""
    try:
        import httpx2
        import openai
    except ModuleNotFoundError as error:
        raise ImportError(f"a server's model needs {error.name}: {INSTALL_CHAT}", name=error.name) from error
    key = (api_key or os.environ.get("OPENAI_API_KEY") or "").strip() or "no-key-given"
    if not (key.isascii() and key.isprintable()):
        raise ValueError("api_key must be of printable ASCII letters; the one given, or in OPENAI_API_KEY, is not")
    try:
        http: Any = openai.DefaultAsyncHttpxClient(event_hooks={"response": [bound]}, timeout=timeout_s)
        return key, openai.AsyncOpenAI(
            base_url=base_url,
            api_key=key,
            max_retries=0,
            timeout=timeout_s,
            http_client=http,
            default_headers={"Accept-Encoding": "identity"},
        )
    except httpx2.InvalidURL as error:
        raise ValueError(f"base_url must be such as 'http://localhost:8000/v1', got {base_url!r}: {error}") from error


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port or an address that is none
        is_right = False
    if is_right and "@" in parts.netloc:  # it would stand in files and errors; hence it is not shown here
        raise ValueError("base_url must hold no name and no password; give the key as api_key or in OPENAI_API_KEY")
    if not is_right or re.search(r"[\s?#]", url):
        raise ValueError(f"base_url must be such as 'http://localhost:8000/v1', got {url!r}")


def _estimate(body: dict[str, Any]) -> int:
    """Return about how many tokens a request will use."""

    def tokens(value: Any) -> float:
        if isinstance(value, str):
            return _TOKENS_A_PICTURE if value.startswith("data:image/") else len(value) / _LETTERS_A_TOKEN
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
        return sum(map(tokens, parts))

    asked = body.get("max_tokens") or body.get("max_completion_tokens") or 0
    return round(tokens(body["messages"]) + tokens(body.get("tools", ()))) + asked


def _names(param: Any, said: str, name: str) -> bool:
    return param == name or (param is None and re.search(rf"(?<!\w){name}(?!\w)", said) is not None)


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


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


def _stop(loop: asyncio.AbstractEventLoop, client: Any) -> None:
    async def stop() -> None:
        try:
            asked = asyncio.all_tasks() - {asyncio.current_task()}
            for task in asked:  # whoever waits for one must not wait for ever
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
            with contextlib.suppress(OSError):
                await client.close()
        finally:
            loop.stop()

    def begin() -> None:
        stopping.append(loop.create_task(stop()))

    stopping: list[Any] = []  # a loop holds its tasks weakly
    loop.call_soon_threadsafe(begin)
