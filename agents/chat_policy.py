"""A model on any OpenAI-compatible server as a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tetrathlon.agents.messages import action_of, answers_to, clean, content_of, slot_of, tool_of, turn_of
from tetrathlon.agents.observed import shows
from tetrathlon.agents.policy import Acted, slots_of
from tetrathlon.agents.server import Reply, Server, Usage
from tetrathlon.agents.told import given, token_limit


@dataclass(frozen=True, slots=True)
class Conversation:
    """The memory of one episode."""

    messages: tuple[dict[str, Any], ...] = ()
    """All messages so far, as the server gets them."""
    tools: tuple[dict[str, Any], ...] = ()
    """As the reset's info said."""
    limit: int | None = None
    """Most tokens of a turn, as the newest info that names one said."""
    left: int | None = None
    """How many tokens the episode has left, where the reset's info limited them and the server counts them."""
    calls: int = 0
    """Tool calls so far."""

    @property
    def most(self) -> int | None:
        """Most tokens of the next turn."""
        return min((limit for limit in (self.limit, self.left) if limit is not None), default=None)


class ChatPolicy:
    """A model on an OpenAI-compatible server: one request a slot, all at once.

    Of an info it reads what :class:`~tetrathlon.agents.language.LanguagePolicy` reads: ``system``, ``tools``,
    ``examples`` and ``limits["episode_tokens"]`` at an episode's start, and ``limits["tokens"]``. Observations are
    text, pictures (uint8, sent as PNG), or dicts of them, whose pictures are left out where an info says
    ``has_image=False``. Tool calls are actions in the Hermes form,
    ``<tool_call>{json}</tool_call>``, and go back to the server as tool calls, its observations as their answers: each
    of ``info["tool_results"]`` to its own call. Reasoning that a server keeps apart stands in ``<think>`` before the
    action, as environments expect it, and is not sent again.

    A turn that the token limit cut has the stop ``"length"``, as has one of more tokens than the limit where a server
    knows none; one for which the context has no room has ``"context"``. What a content filter cuts is acted upon as
    it is, an empty text where it kept all.

    A record holds ``prompt_tokens`` and ``completion_tokens`` (int64, as the server counts them); there is none
    where it says nothing. A policy that samples sends ``seed`` and a number for each request, which some servers use.

    Args:
        base_url: Where the server's API begins, such as ``http://localhost:8000/v1``.
        model: What the server calls the model.
        api_key: Its key; None: the environment variable ``OPENAI_API_KEY``.
        temperature: Of samples; ``greedy`` asks for 0.
        max_concurrency: Most requests under way at once.
        timeout_s: Seconds from a request to the last byte of its answer.
        retries: How often a request is sent again after a fault that may pass: a connection that breaks, a timeout, an
            answer that is none, status 429 or 5xx. The waits double from half a second up to 30, less a jitter; a
            ``Retry-After`` of up to five minutes is kept.
        requests_per_minute: Most requests in any minute; None: no limit.
        tokens_per_minute: Most tokens in any minute; None: no limit.
        seed: Seed of the samples, where the server takes one, and of the jitter; None: the server draws.
        extra: What else each request says, such as ``{"top_p": 0.9}``.

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
        temperature: float = 1.0,
        max_concurrency: int = 16,
        timeout_s: float = 60.0,
        retries: int = 5,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        seed: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        if not 0 <= temperature < float("inf"):
            raise ValueError(f"temperature must be at least 0, got {temperature!r}")
        if taken := {"messages", "model", "tools", "stream", "n", "temperature"} & (extra or {}).keys():
            raise ValueError(f"extra must not hold {min(taken)!r}: the policy sets it, or cannot read the answer")
        self.temperature, self.seed = temperature, seed
        self.extra = dict(extra or {})
        # What reports call it, and by what a folder knows whether it was this one that began there.
        self.__name__ = f"openai:{base_url}#{model}"
        self.server = Server(
            base_url,
            model,
            api_key=api_key,
            max_concurrency=max_concurrency,
            timeout_s=timeout_s,
            retries=retries,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            seed=seed or 0,
        )
        self._sampled = 0

    @property
    def usage(self) -> Usage:
        """What the server was asked for so far, and what it counted."""
        return self.server.usage

    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        """See :meth:`tetrathlon.agents.policy.Policy.act`. Memory is N of :class:`Conversation`.

        Raises:
            tetrathlon.agents.server.ServerError: The server cannot be reached, or refuses; retries did not help.
            TypeError: An observation is neither text nor a picture nor a dict of them.
            ValueError: An info holds something else than it should.
        """
        n = slots_of(observations, memory, infos)
        memory = memory if memory is not None else [None] * n
        infos = infos if infos is not None else [{}] * n
        forced = forced if forced is not None else [None] * n
        talks = [_heard(slot_of(observations, i), memory[i], infos[i]) for i in range(n)]
        own = [i for i in range(n) if forced[i] is None]
        replies = dict(zip(own, self.server.ask([self._request(talks[i], greedy) for i in own]), strict=True))
        acted = Acted([], [], [], [])
        for i, talk in enumerate(talks):
            thinking, said = action_of(replies[i].message) if i in replies else ("", str(forced[i]))
            turn = turn_of(said, talk.tools, talk.calls)
            calls = talk.calls + len(turn.get("tool_calls", ()))
            acted.actions.append(thinking + said)
            left = talk.left
            if left is not None and i in replies:
                left -= replies[i].completion_tokens or 0
            acted.memory.append(replace(talk, messages=(*talk.messages, turn), calls=calls, left=left))
            acted.records.append(_record(replies[i]) if i in replies else None)
            acted.stops.append(_stop(replies[i], talk) if i in replies else None)
        acted.actions = tuple(acted.actions)
        return acted

    def _request(self, talk: Conversation, greedy: bool) -> dict[str, Any]:
        body = {**self.extra, "messages": list(talk.messages), "temperature": 0.0 if greedy else self.temperature}
        if talk.tools:
            body["tools"] = list(talk.tools)
        if (most := talk.most) is not None:
            body["max_tokens"] = max(most, 1)
        if self.seed is not None and body["temperature"] > 0:
            # One number for all would give the same answer to each sample of an instance.
            drawn = np.random.SeedSequence((self.seed, self._sampled)).generate_state(1)[0]
            body["seed"] = int(drawn) >> 1
            self._sampled += 1
        return body


def _heard(observation: Any, old: Conversation | None, info: Mapping[str, Any]) -> Conversation:
    """Return the conversation with the new observation in it."""
    content = content_of(observation, shown=shows(info))
    limit = token_limit(info, old.limit if old is not None else None)
    if old is not None:
        answers = answers_to(old.messages[-1], content, info.get("tool_results"))
        return replace(old, messages=(*old.messages, *answers), limit=limit)
    system: str = given(info, "system", str, "a string", "")
    tools, examples = (given(info, name, list | tuple, "a list", ()) for name in ("tools", "examples"))
    messages = [{"role": "system", "content": clean(system)}] if system else []
    for number, message in enumerate(examples):
        if not isinstance(message, dict) or not all(isinstance(message.get(key), str) for key in ("role", "content")):
            raise ValueError(f"example {number} must be a message with 'role' and 'content', got {message!r}")
        messages.append({"role": message["role"], "content": clean(message["content"])})
    messages.append({"role": "user", "content": content})
    return Conversation(tuple(messages), tuple(map(tool_of, tools)), limit, token_limit(info, None, "episode_tokens"))


def _record(reply: Reply) -> dict[str, Any] | None:
    counts = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens}
    record = {name: np.asarray(count, dtype=np.int64) for name, count in counts.items() if count is not None}
    return record or None


def _stop(reply: Reply, talk: Conversation) -> str | None:
    if reply.finish == "context":
        return reply.finish
    is_over = talk.most is not None and reply.completion_tokens is not None and reply.completion_tokens > talk.most
    if is_over or reply.finish == "length":
        return "length" if talk.left is None or talk.left != talk.most else "episode_length"
    return "eos" if reply.finish in ("stop", "tool_calls") else None
