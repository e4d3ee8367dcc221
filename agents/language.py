"""A transformers causal language model as a policy: token ids in, token ids out, text at the border."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import torch

from tetrathlon.agents.chat import Chat, Dialogue
from tetrathlon.agents.engine import Completion, Sampling, TorchEngine, eos_ids
from tetrathlon.agents.policy import Acted


class LanguagePolicy:
    """A causal language model that acts in text environments.

    It is token-in, token-out: an episode's memory is the ids that the model saw and sampled, later messages are
    appended to them, and nothing sampled is ever decoded and encoded again. What it reads of an info is
    ``system``, ``tools`` and ``examples`` (messages before the first observation) at an episode's start,
    ``limits["tokens"]`` (most tokens of a turn, kept until another info names another), and ``role`` of a later
    observation (``"user"``, the default, or ``"tool"``); None means that it says nothing.

    A record holds ``prompt`` (int32 [P], the ids given since the last record: a first prompt, a later message, a
    forced turn), ``ids`` (int32 [T], sampled), ``logps`` (float32 [T], at the temperature of the sample) and
    ``cut`` (bool [T], true at the last id of a completion that a limit stopped). The ``prompt`` and ``ids`` of an
    episode's records, one after another, are what the model had read at its last decision. A slot in which no
    token was sampled has no record.

    Samples depend on ``seed`` and the sequence of calls; two policies do not disturb each other.

    Args:
        model: A transformers causal language model.
        tokenizer: Its tokenizer.
        temperature: Divides the logits of samples.
        max_tokens: Most tokens of a turn.
        seed: Seed of the stream of samples.
        batch_size: Most rows generated at once.

    Raises:
        ValueError: A value is out of range.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        temperature: float = 1.0,
        max_tokens: int = 256,
        seed: int = 0,
        batch_size: int = 128,
    ) -> None:
        Sampling(max_tokens=max_tokens, temperature=temperature)
        self.model = model
        self.tokenizer = tokenizer
        self.temperature = temperature
        self.max_tokens = max_tokens
        eos = eos_ids(tokenizer, model)
        self.engine = TorchEngine(model, eos, seed=seed, batch_size=batch_size)
        self.chat = Chat(tokenizer, eos)

    @classmethod
    def from_pretrained(
        cls,
        source: Any,
        *,
        device: str = "auto",
        dtype: str = "auto",
        temperature: float = 1.0,
        max_tokens: int = 256,
        seed: int = 0,
        batch_size: int = 128,
    ) -> LanguagePolicy:
        """Load a model and its tokenizer.

        Args:
            source: A folder (``smollm2()`` gives one) or a hub id.
            device: ``"cpu"``, ``"cuda"``, ...; ``"auto"``: CUDA where there is one.
            dtype: ``"float32"``, ``"bfloat16"``, or ``"auto"``: bfloat16 on a CUDA device that has it, else
                float32 (on a CPU without bfloat16 instructions it is five times as fast).
            temperature: See the class.
            max_tokens: See the class.
            seed: See the class.
            batch_size: See the class.

        Raises:
            ValueError: ``dtype`` is none of those.
            OSError: There is no such model.
        """
        from transformers import AutoModelForCausalLM, AutoTokenizer

        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        if dtype == "auto":
            fast = torch.device(device).type == "cuda" and torch.cuda.is_bf16_supported()
            dtype = "bfloat16" if fast else "float32"
        if dtype not in ("float32", "bfloat16"):
            raise ValueError(f"dtype must be 'auto', 'float32' or 'bfloat16', got {dtype!r}")
        with _no_progress_bar():
            model: Any = AutoModelForCausalLM.from_pretrained(source, dtype=getattr(torch, dtype))
        return cls(
            model.to(device).eval(),
            AutoTokenizer.from_pretrained(source),
            temperature=temperature,
            max_tokens=max_tokens,
            seed=seed,
            batch_size=batch_size,
        )

    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        """See :meth:`tetrathlon.agents.policy.Policy.act`.

        Observations are N strings, memory N of :class:`Dialogue`. A forced turn enters the memory with its
        end-of-turn token.

        Returns:
            Actions are a tuple of N strings: a completion without special tokens, and with the ``<think>`` that
            the template opened for it.

        Raises:
            TypeError: An observation is not a string.
            ValueError: The chat template cannot be appended to, or does not take these messages, or an info holds
                something else than it should.
        """
        n = len(observations)
        memory = memory if memory is not None else [None] * n
        infos = infos if infos is not None else [{}] * n
        forced = forced if forced is not None else [None] * n
        dialogues, openings = [], []
        for observation, old, info in zip(observations, memory, infos, strict=True):
            dialogue, opened = self._read(observation, old, info)
            dialogues.append(dialogue)
            openings.append(opened)
        own = [i for i in range(n) if forced[i] is None]
        completions = self.engine.generate(
            [dialogues[i].ids for i in own],
            Sampling(max_tokens=self.max_tokens, temperature=self.temperature, greedy=greedy),
            [dialogues[i].limit for i in own],
        )
        sampled: dict[int, Completion] = dict(zip(own, completions, strict=True))
        acted = Acted([], [], [], [])
        for i, (dialogue, opened) in enumerate(zip(dialogues, openings, strict=True)):
            if i in sampled:
                action = opened + self.chat.decode(sampled[i].ids)
                new, record = sampled[i].ids, _record(dialogue, sampled[i])
            else:
                action, new, record = forced[i], self.chat.forced(forced[i], opened), None
            ids = (*dialogue.ids, *new)
            recorded = dialogue.recorded if record is None else len(ids)
            acted.actions.append(action)
            acted.memory.append(replace(dialogue, ids=ids, recorded=recorded))
            acted.records.append(record)
            acted.stops.append(sampled[i].stop if i in sampled else None)
        acted.actions = tuple(acted.actions)
        return acted

    def _read(self, observation: Any, old: Dialogue | None, info: dict[str, Any]) -> tuple[Dialogue, str]:
        """Return the dialogue with the new message in it, and how the prompt opens the answer."""
        if not isinstance(observation, str):
            raise TypeError(f"LanguagePolicy acts on text, got an observation of type {type(observation).__name__}")
        limit = _token_limit(info, old.limit if old is not None else None)
        if old is None:
            system: str = _given(info, "system", str, "a string", "")
            tools, examples = (tuple(_given(info, name, list | tuple, "a list", ())) for name in ("tools", "examples"))
            new, opened = self.chat.first(system, tools, examples, observation)
            old = Dialogue(system=system, tools=tools)
            # A model cannot go on from nothing: an empty text begins, as every text, after an end of text.
            new = new or [self.tokenizer.eos_token_id or 0]
        else:
            role = _given(info, "role", str, "'user' or 'tool'", "user")
            if role not in ("user", "tool"):
                raise ValueError(f"info['role'] must be 'user' or 'tool', got {role!r}")
            new, opened = self.chat.later(old, role, observation)
        return replace(old, ids=(*old.ids, *new), limit=limit), opened


@contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Keep transformers from drawing a bar for the second that loading takes; ours would stand beside it."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _given(info: Mapping[str, Any], name: str, kind: Any, what: str, default: Any) -> Any:
    """Return ``info[name]``, or ``default`` where it is missing or None."""
    value = info.get(name)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise ValueError(f"info[{name!r}] must be {what}, got {value!r}")
    return value


def _token_limit(info: Mapping[str, Any], default: int | None) -> int | None:
    """Return the token limit that ``info`` names, else ``default``; a whole number may come as a float."""
    tokens = _given(info, "limits", Mapping, "a dict such as {'tokens': 256}", {}).get("tokens")
    if tokens is None:
        return default
    is_whole = isinstance(tokens, Real) and not isinstance(tokens, bool) and tokens % 1 == 0
    if not is_whole:
        raise ValueError(f"info['limits']['tokens'] must be a whole number such as 256, got {tokens!r}")
    return int(tokens)


def _record(dialogue: Dialogue, completion: Completion) -> dict[str, Any] | None:
    if not completion.ids:
        return None
    cut = np.zeros(len(completion.ids), dtype=np.bool_)
    cut[-1] = completion.stop != "eos"
    return {
        "prompt": np.asarray(dialogue.ids[dialogue.recorded :], dtype=np.int32),
        "ids": np.asarray(completion.ids, dtype=np.int32),
        "logps": np.asarray(completion.logps, dtype=np.float32),
        "cut": cut,
    }
