"""A transformers causal language model as a policy: token ids in, token ids out, text at the border."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import torch

from tetrathlon.agents.engine import Completion, Sampling, TorchEngine, eos_ids
from tetrathlon.agents.policy import Acted

_THINK, _THINK_END = "<think>", "</think>"
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The memory of one episode."""

    ids: tuple[int, ...] = ()
    """All tokens so far, given and sampled, verbatim."""
    recorded: int = 0
    """How many of them are in the records of decisions so far."""
    system: str = ""
    """As the reset's info said."""
    tools: tuple[Any, ...] = ()
    """As the reset's info said."""
    limit: int | None = None
    """Most tokens of a turn, as the newest info that names one said."""


class Chat:
    """Turns messages into ids, one message at a time, through the tokenizer's own chat template.

    Data is data: a control token spelled out in a message or a tool's description (``<|im_end|>``) is encoded as
    the text that it is. Lone surrogates, which no tokenizer takes, become U+FFFD. A template puts in what it
    puts in: one that writes a default system message where none is given (SmolLM2's does) keeps doing so.

    Without a template the text is the system message, the tools as JSON and the observation, separated by blank
    lines, and later messages follow as they are.

    Args:
        tokenizer: A transformers tokenizer.
        eos: Ids that end a turn.
    """

    def __init__(self, tokenizer: Any, eos: frozenset[int]) -> None:
        self.tokenizer = tokenizer
        self.eos = eos
        control = {i: str(token) for i, token in tokenizer.added_tokens_decoder.items() if token.special}
        control |= {i: tokenizer.convert_ids_to_tokens(i) for i in eos}
        names = sorted((re.escape(name) for name in control.values() if name), key=len, reverse=True)
        self._names = re.compile("|".join(names) or r"(?!)")
        # A tokenizer that is at a loss says "unknown", which is no control token unless it has a second job.
        self._control = set(control) - ({tokenizer.unk_token_id} - eos)

    def first(self, system: str, tools: Sequence[Any], observation: str) -> tuple[list[int], str]:
        """Return the ids of a whole first prompt, and the text with which it opens the answer (``<think>``)."""
        if self.tokenizer.chat_template is None:
            parts = [system, *(json.dumps(tool, ensure_ascii=False) for tool in tools), observation]
            text = _clean("\n\n".join(part for part in parts if part))
            start = [i for i in self.tokenizer.encode("")[:1] if i == self.tokenizer.bos_token_id]
            return start + self.text(text), ""
        marks = _Marks(self._names, [system, tools, observation])
        system, tools, observation = (marks.hide(part) for part in (system, tools, observation))
        messages = [*_system(system), {"role": "user", "content": observation}]
        prompt = self._render(messages, tools, True)
        if tools and prompt == self._render(messages, (), True):
            warnings.warn(
                "this tokenizer's chat template leaves tools out; describe them in the system message",
                stacklevel=2,
            )
        opened = _opened(prompt, self._render(messages, tools, False))
        return self._encode(prompt, marks), opened

    def later(self, dialogue: Dialogue, role: str, observation: str) -> tuple[list[int], str]:
        """Return the ids that a new message adds after the model's last turn, and how they open the answer.

        The template is rendered with a stand-in for that turn, and what it writes behind the stand-in is what is
        appended; nothing that was sampled is encoded again.

        Raises:
            ValueError: The template rewrites what it wrote before the new message, so it cannot be appended to.
        """
        if self.tokenizer.chat_template is None:
            return self.text(_clean(observation)), ""
        marks = _Marks(self._names, [dialogue.system, dialogue.tools, observation])
        system, tools, observation = (marks.hide(part) for part in (dialogue.system, dialogue.tools, observation))
        before = [*_system(system), {"role": "user", "content": "x"}]
        turn = [*before, {"role": "assistant", "content": marks.word}]
        message = {"role": role, "content": observation}
        whole = self._render([*turn, message], tools, True)
        closed = self._render(turn, tools, False)
        after, end = whole.split(marks.word), closed.split(marks.word)
        if (
            len(after) != 2
            or len(end) != 2
            or not whole.startswith(self._render(before, tools, False))
            or not after[1].startswith(end[1])
        ):
            raise ValueError(
                f"the chat template cannot be appended to: with a new {role} message it changes what it wrote "
                "before; use a template that only appends (ChatML does)"
            )
        opened = _opened(whole, self._render([*turn, message], tools, False))
        last = dialogue.ids[-1] if dialogue.ids else None
        name = self.tokenizer.convert_ids_to_tokens(last) if last in self.eos else None
        if name is None or name not in end[1]:  # the turn was cut, or ended in a way that the template does not
            return self._encode(after[1], marks), opened
        # The template's own end of turn was sampled already. It is encoded with what follows, as in a whole prompt.
        ids = self._encode(after[1][end[1].index(name) :], marks)
        return ids[1:] if ids[0] == last else ids, opened

    def text(self, text: str) -> list[int]:
        """Return the ids of plain text; none of them is a control token."""
        ids = self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
        if self._control.isdisjoint(ids):
            return ids
        # A vocabulary that spells a control token as a word of its own: letter by letter it cannot appear.
        return [
            i
            for letter in text
            for i in self.tokenizer.encode(letter, add_special_tokens=False, split_special_tokens=True)
            if i not in self._control
        ]

    def forced(self, text: str, opened: str) -> list[int]:
        """Return the ids of a turn that somebody else wrote, its end of turn included.

        Thinking that the prompt ``opened`` is closed where ``text`` does not go on with it.
        """
        if opened:
            text = text[len(opened) :] if text.startswith(opened) else f"{_THINK_END}\n\n{text}"
        return [*self.text(_clean(text)), *self._end_of_turn()]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of a completion without its special tokens."""
        ids = list(ids)
        if ids and ids[-1] in self.eos:  # one that the tokenizer does not call special goes as well
            ids.pop()
        return self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def _end_of_turn(self) -> list[int]:
        if self.tokenizer.chat_template is not None:
            word = "assistantturn"
            turn = [{"role": "user", "content": "x"}, {"role": "assistant", "content": word}]
            rest = self._render(turn, (), False).rpartition(word)[2]
            if found := [i for i in self.tokenizer.encode(rest, add_special_tokens=False) if i in self.eos]:
                return found[:1]
        return [] if self.tokenizer.eos_token_id is None else [self.tokenizer.eos_token_id]

    def _render(self, messages: list[dict[str, Any]], tools: Sequence[Any], ask: bool) -> str:
        return self.tokenizer.apply_chat_template(
            messages, tools=list(tools) or None, add_generation_prompt=ask, tokenize=False
        )

    def _encode(self, rendered: str, marks: _Marks) -> list[int]:
        """Encode a rendered template: control tokens count where the template wrote them."""
        if not marks.hidden:
            return self.tokenizer.encode(rendered, add_special_tokens=False)
        ids: list[int] = []
        at = 0
        for match in self._names.finditer(rendered):  # all the template's own: those of the data are hidden
            ids += self.text(marks.show(rendered[at : match.start()]))
            ids += self.tokenizer.encode(match.group(), add_special_tokens=False)
            at = match.end()
        return ids + self.text(marks.show(rendered[at:]))


class _Marks:
    """Stand-ins for control tokens in data, of letters that appear nowhere in it, so that any template copies them."""

    def __init__(self, names: re.Pattern[str], data: Any) -> None:
        used = set(re.findall("mark([0-9]+)x", json.dumps(data, ensure_ascii=False)))
        self._names = names
        self._stem = next(f"mark{number}x" for number in count() if str(number) not in used)
        self.word = f"{self._stem}turn"
        self.hidden: list[str] = []

    def hide(self, data: Any) -> Any:
        """Return ``data`` (JSON) cleaned, with stand-ins for its control tokens."""
        if isinstance(data, str):
            return self._names.sub(self._replace, _clean(data))
        if isinstance(data, dict):
            return {self.hide(key): self.hide(value) for key, value in data.items()}
        if isinstance(data, list | tuple):
            return [self.hide(value) for value in data]
        return data

    def show(self, text: str) -> str:
        """Undo :meth:`hide`."""
        return re.sub(f"{self._stem}([0-9]+)z", lambda match: self.hidden[int(match.group(1))], text)

    def _replace(self, match: re.Match[str]) -> str:
        self.hidden.append(match.group())
        return f"{self._stem}{len(self.hidden) - 1}z"


class LanguagePolicy:
    """A causal language model that acts in text environments.

    It is token-in, token-out: an episode's memory is the ids that the model saw and sampled, later messages are
    appended to them, and nothing sampled is ever decoded and encoded again. What it reads of an info is
    ``system``, ``tools`` (at an episode's start), ``limits["tokens"]`` (most tokens of a turn, kept until another
    info names another), and ``role`` of a later observation (``"user"``, the default, or ``"tool"``).

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
            ValueError: The chat template cannot be appended to, or a role is unknown.
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
        limit = info.get("limits", {}).get("tokens", old.limit if old is not None else None)
        if old is None:
            system, tools = info.get("system", ""), tuple(info.get("tools", ()))
            new, opened = self.chat.first(system, tools, observation)
            old = Dialogue(system=system, tools=tools)
            # A model cannot go on from nothing: an empty text begins, as every text, after an end of text.
            new = new or [self.tokenizer.eos_token_id or 0]
        else:
            role = info.get("role", "user")
            if role not in ("user", "tool"):
                raise ValueError(f"info['role'] must be 'user' or 'tool', got {role!r}")
            new, opened = self.chat.later(old, role, observation)
        return replace(old, ids=(*old.ids, *new), limit=limit), opened


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


def _system(text: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": text}] if text else []


def _clean(text: str) -> str:
    return _SURROGATE.sub("\ufffd", text)


def _opened(prompt: str, without: str) -> str:
    """Return the thinking that the generation prompt opened and left open, or ``""``."""
    added = prompt[len(without) :] if prompt.startswith(without) else ""
    at = added.rfind(_THINK)
    return added[at:] if at >= 0 and _THINK_END not in added[at:] else ""
