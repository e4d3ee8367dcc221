r"""Answer formats: what a prompt asks for, how an answer is written so, and how it is read out of a completion."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping

from tetrathlon.envs.grading.answers import fields, final_answer, plain_answer
from tetrathlon.envs.grading.choices import choice, last_choice
from tetrathlon.envs.grading.numbers import is_value, last_number, last_value
from tetrathlon.envs.grading.thinking import count_thoughts, visible
from tetrathlon.envs.grading.writing import integer, plain

_SHORTEST_ECHO = 8  # shorter questions are no echo, but words of an answer
_STRAY = re.compile(r"<\s{0,8}/\s{0,8}answer", re.IGNORECASE)
_COMMAND = re.compile(r"\\[A-Za-z]+")
_SYMBOL = re.compile(r"\\(?:infty|emptyset|varnothing|pi|[Dd]elta|[Tt]heta|alpha|beta|lambda)|[∅∞]|\\\{\s?\\\}")
_INTEGER = re.compile(r"(?:####[ \t]?)?(-?\d{1,15})", re.ASCII)


def says_something(answer: str) -> bool:
    """Tell whether an answer has a letter, a digit or a sign that stands for something."""
    text = plain(answer)
    return any(map(str.isalnum, _COMMAND.sub("", text))) or _SYMBOL.search(text) is not None


def is_one_letter(answer: str) -> bool:
    """Tell whether an answer is a letter from a to z, in whatever marks."""
    signs = [sign for sign in plain(answer) if sign.isalnum()]
    return len(signs) == 1 and signs[0].isascii() and signs[0].isalpha()


class AnswerFormat(ABC):
    """One way to give an answer.

    Args:
        request: What the prompt asks for; may be empty.
        pattern: How an answer is written, with ``%s`` where it stands.
    """

    def __init__(self, request: str, pattern: str) -> None:
        self.request, self.pattern = request, pattern

    def write(self, answer: str) -> str:
        """Return a completion that answers ``answer``."""
        return self.pattern % answer

    @abstractmethod
    def read(self, completion: str, echoes: Iterable[str] = ()) -> str | None:
        """Return the answer of ``completion``, or None where it has none.

        Args:
            completion: What a model wrote, of any length.
            echoes: The prompt and its parts; where all of a reply counts, copies of them are nobody's answer.
        """

    @abstractmethod
    def keeps(self, completion: str) -> bool:
        """Tell whether ``completion`` gives one non-empty answer in this format, after at most one thought."""


class FieldFormat(AnswerFormat):
    r"""The answer stands in a field, ``\boxed{...}`` or ``<answer>...</answer>``.

    Args:
        kind: ``boxed`` or ``tag``; every field is read, whichever kind was asked for.
        request: See :class:`AnswerFormat`.
        pattern: See :class:`AnswerFormat`.
    """

    def __init__(self, kind: str, request: str, pattern: str) -> None:
        super().__init__(request, pattern)
        self.kind = kind

    def read(self, completion: str, echoes: Iterable[str] = ()) -> str | None:
        """See :meth:`AnswerFormat.read`."""
        return final_answer(completion)

    def keeps(self, completion: str) -> bool:
        """See :meth:`AnswerFormat.keeps`."""
        after = visible(completion)
        if after is None or count_thoughts(completion) > 1:
            return False
        found = fields(after)
        if not found or len(found) > 1 or found[0].kind != self.kind or found[0].holds_field or found[0].is_blank:
            return False
        outside = after[: found[0].start] + after[found[0].end :]
        return bool(plain(found[0].content)) and _STRAY.search(outside) is None


class PlainFormat(AnswerFormat):
    """The reply is the answer; a field in it is read all the same.

    Args:
        reader: Returns the answer of a reply without fields.
        is_answer: Tells whether a stripped reply is an answer and nothing else.
        request: See :class:`AnswerFormat`.
        quick: Matches replies whose answer is the first group, as ``reader`` would find in more time; None: it reads
            them all.
    """

    def __init__(
        self,
        reader: Callable[[str], str | None],
        is_answer: Callable[[str], bool],
        request: str = "Reply with the answer only.",
        quick: re.Pattern[str] | None = None,
    ) -> None:
        super().__init__(request, "%s")
        self.reader, self.is_answer, self.quick = reader, is_answer, quick

    def read(self, completion: str, echoes: Iterable[str] = ()) -> str | None:
        """See :meth:`AnswerFormat.read`."""
        if self.quick is not None and (match := self.quick.fullmatch(completion)):
            for echo in echoes:
                if len(echo) >= _SHORTEST_ECHO and echo in completion:
                    break
            else:
                return match[1]
        answer = final_answer(completion)
        if answer is not None:
            return answer
        for echo in echoes:
            if len(echo) >= _SHORTEST_ECHO:
                completion = completion.replace(echo, "\n")
        return self.reader(completion)

    def keeps(self, completion: str) -> bool:
        """See :meth:`AnswerFormat.keeps`."""
        after = visible(completion)
        if after is None or count_thoughts(completion) > 1 or fields(after) is None:
            return False
        reply = after.strip()
        return bool(reply) and self.is_answer(reply)


# No lambdas: environments are pickled with their formats.


def whole_answer(reply: str) -> str | None:
    """Return all of a reply as its answer."""
    return plain_answer(reply, lines=True)


def is_anything(reply: str) -> bool:
    """Tell that a reply is an answer, whatever it says."""
    return True


def _is_bare(reply: str) -> bool:
    return not fields(reply)


def _is_line(reply: str) -> bool:
    return not fields(reply) and len(reply.splitlines()) == 1


def _is_integer(reply: str) -> bool:
    return integer(reply) is not None


def _is_choice(reply: str) -> bool:
    return not fields(reply) and choice(reply) is not None


BOXED = FieldFormat("boxed", r"Put your final answer in \boxed{}.", r"\boxed{%s}")
TAG = FieldFormat("tag", "Put your final answer between <answer> and </answer>.", "<answer>%s</answer>")
LINE = PlainFormat(plain_answer, _is_line)
"""Of a reply its last line counts."""
LINES = PlainFormat(whole_answer, _is_bare)
"""All of a reply counts."""
NUMBER = PlainFormat(last_number, _is_integer, quick=_INTEGER)
"""Of a reply its last number counts."""
VALUE = PlainFormat(last_value, is_value, quick=_INTEGER)
"""Of a reply the value that it gives counts: a number of any kind, a set, an interval, an expression."""
CHOICE = PlainFormat(last_choice, _is_choice)
"""Of a reply the letter that it chooses counts."""


def answer_formats(plain: PlainFormat = LINE) -> Mapping[str, AnswerFormat]:
    """Return the usual formats by name, the first the default.

    Args:
        plain: How the task's plain replies are read.
    """
    return {"boxed": BOXED, "tag": TAG, "plain": plain}
