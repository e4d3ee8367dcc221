r"""Answer formats: what a prompt asks for, how an answer is written so, and how it is read out of a completion."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping

from tetrathlon.envs.grading.answers import fields, final_answer, plain_answer
from tetrathlon.envs.grading.numbers import is_value, last_number, last_value
from tetrathlon.envs.grading.thinking import count_thoughts, visible
from tetrathlon.envs.grading.writing import integer

_SHORTEST_ECHO = 8  # shorter questions are no echo, but words of an answer


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
        answers = [field for field in fields(after) or () if field.content]
        return len(answers) == 1 and answers[0].kind == self.kind and not answers[0].holds_field


class PlainFormat(AnswerFormat):
    """The reply is the answer; a field in it is read all the same.

    Args:
        reader: Returns the answer of a reply without fields.
        is_answer: Tells whether a stripped reply is an answer and nothing else.
        request: See :class:`AnswerFormat`.
    """

    def __init__(
        self,
        reader: Callable[[str], str | None],
        is_answer: Callable[[str], bool],
        request: str = "Reply with the answer only.",
    ) -> None:
        super().__init__(request, "%s")
        self.reader, self.is_answer = reader, is_answer

    def read(self, completion: str, echoes: Iterable[str] = ()) -> str | None:
        """See :meth:`AnswerFormat.read`."""
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


BOXED = FieldFormat("boxed", r"Put your final answer in \boxed{}.", r"\boxed{%s}")
TAG = FieldFormat("tag", "Put your final answer between <answer> and </answer>.", "<answer>%s</answer>")
LINE = PlainFormat(plain_answer, lambda reply: not fields(reply) and len(reply.splitlines()) == 1)
"""Of a reply its last line counts."""
LINES = PlainFormat(lambda text: plain_answer(text, lines=True), lambda reply: not fields(reply))
"""All of a reply counts."""
NUMBER = PlainFormat(last_number, lambda reply: integer(reply) is not None)
"""Of a reply its last number counts."""
VALUE = PlainFormat(last_value, is_value)
"""Of a reply the value that it gives counts: a number of any kind, a set, an interval, an expression."""


def answer_formats(plain: PlainFormat = LINE) -> Mapping[str, AnswerFormat]:
    """Return the usual formats by name, the first the default.

    Args:
        plain: How the task's plain replies are read.
    """
    return {"boxed": BOXED, "tag": TAG, "plain": plain}
