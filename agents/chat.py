"""Messages as token ids: a tokenizer's own chat template, appended to one message at a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from tetrathlon.agents.dialogue import Dialogue, message_of, with_message
from tetrathlon.agents.marks import Marks, clean
from tetrathlon.agents.picture import Picture
from tetrathlon.agents.tool_manual import with_manual

_THINK, _THINK_END = "<think>", "</think>"
_TURNS = 16
"""Turns of the made-up dialogue that tells whether a template keeps what is long past."""


class Rewrites(ValueError):
    """A chat template writes what is past otherwise than before, so that nothing can be appended to it."""


class Chat:
    """Turns messages into ids, one message at a time, through the tokenizer's own chat template.

    Data is data: a control token spelled out in a message or a tool's description (``<|im_end|>``) is encoded as
    the text that it is. Lone surrogates, which no tokenizer takes, become U+FFFD. A template puts in what it
    puts in: one that writes a default system message where none is given (SmolLM2's does) keeps doing so. Where it
    knows no system message (Gemma's refuses one), that becomes the beginning of the first user message. A dialogue
    begins with one BOS where the tokenizer puts one before its texts, whether the template writes it or not.

    Where a template has no place for tools, the system message describes them and how they are called; where it knows
    no tool's message, that is a user's.

    Without a template the text is the system message with the tools, the examples and the observation, separated by
    blank lines, and later messages follow as they are.

    A picture stands before the text of its message, which is the user's: templates know no others with pictures. Where
    the template writes a placeholder, its codes stand; a placeholder that a text spells out is a text.

    Args:
        tokenizer: A transformers tokenizer.
        eos: Ids that end a turn.
        image: The token that the template writes for a picture, and its id; None: it knows no pictures.
    """

    def __init__(self, tokenizer: Any, eos: frozenset[int], image: tuple[str, int] | None = None) -> None:
        self.tokenizer = tokenizer
        self.eos = eos
        self.image = image
        control = {i: str(token) for i, token in tokenizer.added_tokens_decoder.items() if token.special}
        control |= {i: tokenizer.convert_ids_to_tokens(i) for i in eos}
        control |= {} if image is None else {image[1]: image[0]}
        names = sorted((re.escape(name) for name in control.values() if name), key=len, reverse=True)
        self._names = re.compile("|".join(names) or r"(?!)")
        self._thoughtful: dict[str, bool] = {}
        # A tokenizer that is at a loss says "unknown", which is no control token unless it has a second job.
        self._control = set(control) - ({tokenizer.unk_token_id} - eos)

    def first(
        self,
        system: str,
        tools: Sequence[Any],
        past: Sequence[dict[str, Any]],
        observation: str,
        role: str = "user",
        picture: Picture | None = None,
    ) -> tuple[list[int], str]:
        """Return the ids of a whole prompt, and the text with which it opens the answer (``<think>``).

        Args:
            system: The system message, or nothing.
            tools: As ``info["tools"]`` holds them.
            past: Messages before the observation: worked examples, or all of a dialogue.
            observation: The newest message.
            role: Whose message that is.
            picture: What it shows.

        Raises:
            ValueError: An example is no message, or the chat template refuses the messages or rewrites their text.
        """
        for number, message in enumerate(past):
            _check_example(number, message)
        if tools and not self._shows_tools:
            system, tools = with_manual(system, tools), ()
        said = [*past, message_of(role, observation, picture)]
        shown = [message["picture"] for message in said if "picture" in message]
        if self.tokenizer.chat_template is None:
            return [*self._bos, *self._plain(system, said)], ""
        said = [self._told(message) for message in said]
        marks = Marks(self._names, [system, tools, said])
        system, tools, said = (marks.hide(part) for part in (system, tools, said))
        messages = self._begin(system, said)
        prompt = self._render(messages, tools, True)
        self._check_marks(marks, prompt, messages, tools)
        opened = _opened(prompt, self._render(messages, tools, False))
        ids = self._shown(self._encode(prompt, marks), shown)
        # What the data say is hidden behind marks, so a BOS at the beginning is the template's own.
        wrote = bool(self._bos) and prompt.lstrip().startswith(self.tokenizer.bos_token)
        return ids if wrote else [*self._bos, *ids], opened

    def heard(
        self, dialogue: Dialogue, role: str, observation: str, picture: Picture | None = None
    ) -> tuple[Dialogue, str]:
        """Return a dialogue with a new message in it, and how the answer to it is opened.

        What the model read and said stays as it is, and the message is appended. Where the template would write the
        past otherwise now (without its thinking, or its beginning), it is written anew, all of it, and what the model
        reads begins there: a branch, in which what was sampled before is text that it is given.

        Raises:
            ValueError: The chat template refuses the messages or rewrites their text.
        """
        try:
            new, opened = self.later(dialogue, role, observation, picture)
        except Rewrites:
            new, opened = self.first(dialogue.system, dialogue.tools, dialogue.messages, observation, role, picture)
            dialogue = replace(dialogue, ids=(), recorded=0, is_fresh=True)
        return replace(with_message(dialogue, role, observation, picture), ids=(*dialogue.ids, *new)), opened

    def later(
        self, dialogue: Dialogue, role: str, observation: str, picture: Picture | None = None
    ) -> tuple[list[int], str]:
        """Return the ids that a new message adds after the model's last turn, and how they open the answer.

        The template is rendered with a stand-in for that turn, and what it writes behind the stand-in is what is
        appended; nothing that was sampled is encoded again.

        Raises:
            Rewrites: The template rewrites what it wrote before the new message.
            ValueError: It refuses the messages or rewrites their text.
        """
        if self.tokenizer.chat_template is None:
            return self._plain("", [message_of(role, observation, picture)]), ""
        if not self._keeps_the_past:
            raise Rewrites(f"of a dialogue of {_TURNS} turns the chat template leaves out or changes the beginning")
        message = self._told(message_of(role, observation, picture))
        role = message["role"]
        thought = any(_THINK_END in said["content"] for said in dialogue.messages if said["role"] == "assistant")
        if thought and not self._keeps_thinking(role):
            raise Rewrites(f"with a new {role} message the chat template takes the thinking out of the turns before")
        marks = Marks(self._names, [dialogue.system, dialogue.tools, message])
        system, tools, message = (marks.hide(part) for part in (dialogue.system, dialogue.tools, message))
        before = self._begin(system, [{"role": "user", "content": "x"}])
        turn = [*before, {"role": "assistant", "content": marks.word}]
        whole = self._render([*turn, message], tools, True)
        closed = self._render(turn, tools, False)
        self._check_marks(marks, whole, [*turn, message], tools)
        after, end = whole.split(marks.word), closed.split(marks.word)
        if (
            len(after) != 2
            or len(end) != 2
            or not whole.startswith(self._render(before, tools, False))
            or not after[1].startswith(end[1])
        ):
            raise Rewrites(f"with a new {role} message the chat template changes what it wrote before")
        opened = _opened(whole, self._render([*turn, message], tools, False))
        shown = [] if picture is None else [picture]
        last = dialogue.ids[-1] if dialogue.ids else None
        name = self.tokenizer.convert_ids_to_tokens(last) if last in self.eos else None
        if name is None or name not in end[1]:  # the turn was cut, or ended in a way that the template does not
            return self._shown(self._encode(after[1], marks), shown), opened
        # The template's own end of turn was sampled already. It is encoded with what follows, as in a whole prompt.
        ids = self._shown(self._encode(after[1][end[1].index(name) :], marks), shown)
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
        return [*self.text(clean(text)), *self._end_of_turn()]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of a completion without its special tokens."""
        ids = list(ids)
        if ids and ids[-1] in self.eos:  # one that the tokenizer does not call special goes as well
            ids.pop()
        return self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def _plain(self, system: str, said: Sequence[dict[str, Any]]) -> list[int]:
        """Return the ids of messages without a template: texts with blank lines between, a picture before its own."""
        runs: list[Any] = [[system]]
        for message in said:
            runs += [message["picture"], []] if "picture" in message else []
            runs[-1].append(message["content"])
        texts = ["\n\n".join(part for part in run if part) if isinstance(run, list) else "" for run in runs]
        ids: list[int] = []
        for run, text in zip(runs, texts, strict=True):
            ids += self.text(clean(text)) if isinstance(run, list) else run.codes
        return ids

    def _told(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return a message as JSON that says whether it shows a picture, with the role that the template knows."""
        shows = "picture" in message
        told = {**message, "role": "user" if shows else self._role(message["role"])}
        return {**told, "picture": True} if shows else told

    def _parted(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return a message as the template takes it."""
        shows = "picture" in message
        if not shows and (self.image is None or self._takes_strings):
            return message
        text = [{"type": "text", "text": message["content"]}] if message["content"] else []
        parted = {name: value for name, value in message.items() if name != "picture"}
        return {**parted, "content": [{"type": "image"}] * shows + text}

    @cached_property
    def _takes_strings(self) -> bool:
        """Whether the template shows a content that is a string; some know nothing but parts."""
        from jinja2.exceptions import TemplateError

        try:
            return "word0x" in self.tokenizer.apply_chat_template(
                [{"role": "user", "content": "word0x"}], add_generation_prompt=True, tokenize=False
            )
        except TemplateError:
            return False

    def _shown(self, ids: list[int], pictures: Sequence[Picture]) -> list[int]:
        """Put the codes of pictures where the template wrote placeholders."""
        if self.image is None:
            return ids
        token, token_id = self.image
        if (count := ids.count(token_id)) != len(pictures):
            raise ValueError(f"the chat template writes {token!r} {count} times for {len(pictures)} pictures")
        rest = iter(pictures)
        return [code for i in ids for code in (next(rest).codes if i == token_id else (i,))]

    def _end_of_turn(self) -> list[int]:
        if self.tokenizer.chat_template is not None:
            word = "assistantturn"
            turn = [{"role": "user", "content": "x"}, {"role": "assistant", "content": word}]
            rest = self._render(turn, (), False).rpartition(word)[2]
            if found := [i for i in self.tokenizer.encode(rest, add_special_tokens=False) if i in self.eos]:
                return found[:1]
        return [] if self.tokenizer.eos_token_id is None else [self.tokenizer.eos_token_id]

    @cached_property
    def _has_system_role(self) -> bool:
        user = {"role": "user", "content": "x"}
        try:
            one, two = (self._render([{"role": "system", "content": text}, user], (), True) for text in "01")
        except ValueError:
            return False
        return one != two  # a template may also leave it out without a word

    def _role(self, role: str) -> str:
        """Return the role that the template knows for ``role``."""
        return "user" if role == "tool" and not self._has_tool_role else role

    @cached_property
    def _has_tool_role(self) -> bool:
        turns = [
            {"role": role, "content": word} for role, word in (("user", "x"), ("assistant", "y"), ("tool", "word0x"))
        ]
        try:
            return "word0x" in self._render(turns, (), True)
        except ValueError:
            return False

    @cached_property
    def _shows_tools(self) -> bool:
        if self.tokenizer.chat_template is None:
            return False
        about = {"name": "word0x", "description": "x", "parameters": {"type": "object", "properties": {}}}
        user = {"role": "user", "content": "x"}
        return "word0x" in self._render([user], [{"type": "function", "function": about}], True)

    @cached_property
    def _keeps_the_past(self) -> bool:
        """Whether a long dialogue is rendered from its beginning and with all turns in it.

        What :meth:`later` renders is short, so a template that keeps the newest messages alone would not show there.
        """
        words = [f"word{number}x" for number in range(2 * _TURNS + 1)]
        turns = [{"role": ("user", "assistant")[at % 2], "content": word} for at, word in enumerate(words)]
        whole = self._render(turns, (), True)
        found = re.findall("word[0-9]+x", whole, re.IGNORECASE)
        return whole.startswith(self._render(turns[:1], (), False)) and {word.lower() for word in found} == set(words)

    def _keeps_thinking(self, role: str) -> bool:
        """Whether what a turn thought stays in it when a message of ``role`` comes after it."""
        if role not in self._thoughtful:
            turn = {"role": "assistant", "content": f"{_THINK}\nword0x\n{_THINK_END}\n\nword1x"}
            user, message = ({"role": speaker, "content": "x"} for speaker in ("user", role))
            self._thoughtful[role] = "word0x" in self._render([user, turn, message], (), True).lower()
        return self._thoughtful[role]

    @cached_property
    def _bos(self) -> list[int]:
        """What the tokenizer puts before a text: its BOS, or nothing."""
        return [i for i in self.tokenizer.encode("")[:1] if i == self.tokenizer.bos_token_id]

    def _begin(self, system: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Put the system message first, or into the first user message where the template has no role for it."""
        if not system:
            return messages
        if self._has_system_role:
            return [{"role": "system", "content": system}, *messages]
        at = next(i for i, message in enumerate(messages) if message["role"] == "user")
        user = messages[at] | {"content": f"{system}\n\n{messages[at]['content']}"}
        return [*messages[:at], user, *messages[at + 1 :]]

    def _render(self, messages: list[dict[str, Any]], tools: Sequence[Any], ask: bool) -> str:
        from jinja2.exceptions import TemplateError

        try:
            return self.tokenizer.apply_chat_template(
                [self._parted(message) for message in messages],
                tools=list(tools) or None,
                add_generation_prompt=ask,
                tokenize=False,
            )
        except TemplateError as error:
            raise ValueError(f"the chat template refuses these messages: {error}") from error

    def _check_marks(self, marks: Marks, rendered: str, messages: list[dict[str, Any]], tools: Sequence[Any]) -> None:
        """Raise a ValueError where the template does not copy the stand-ins in ``rendered`` as they are.

        It is rendered again with others, of another length. What is shown must be the same; it is not where a
        template changes or cuts them, and it is where a template leaves out a whole message or the tools.
        """
        if marks.hidden and marks.show(rendered) != marks.show(
            self._render(marks.swap(messages), marks.swap(list(tools)), True), marks.other
        ):
            raise ValueError(
                f"the chat template changes or cuts the text of messages, so the control token {marks.hidden[0]!r} in "
                "one of them cannot be told from the template's own; use a template that copies text as it is, or "
                "leave control tokens out of the messages"
            )

    def _encode(self, rendered: str, marks: Marks) -> list[int]:
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


def _check_example(number: int, message: Any) -> None:
    if not isinstance(message, dict):
        raise ValueError(f"example {number} must be a message with 'role' and 'content', got {message!r}")
    for key in ("role", "content"):
        if not isinstance(message.get(key), str):
            raise ValueError(f"{key!r} of example {number} must be a string ('' for nothing), got {message.get(key)!r}")


def _opened(prompt: str, without: str) -> str:
    """Return the thinking that the generation prompt opened and left open, or ``""``."""
    added = prompt[len(without) :] if prompt.startswith(without) else ""
    at = added.rfind(_THINK)
    return added[at:] if at >= 0 and _THINK_END not in added[at:] else ""
