"""Small jobs on letters and numbers that have one exact answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tetrathlon.envs.arguments import whole
from tetrathlon.envs.grading.writing import integer, plain, spaced
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.text.bandit import TextBandit

OPERATIONS = ("copy", "reverse", "larger", "sort")
_ALPHABET = frozenset("abcdefghijklmnopqrstuvwxyz")
_BRACKETS = (("[", "]"), ("(", ")"), ("{", "}"))
_BETWEEN_LETTERS = re.compile(r"[\s,]+")
_BETWEEN_NUMBERS = re.compile(r"\s*[,;<]\s*|\s+")


class Symbolic(TextBandit):
    """Copy letters, reverse them, pick the larger number, sort numbers.

    ## Description
    Each question asks for one of ``operations``:

    * copy: ``Copy these letters: q d a k z``, answer ``q d a k z``;
    * reverse: ``Write these letters in reverse order: q d a k z``, answer ``z k a d q``;
    * larger: ``Which number is larger, 27 or 451?``, answer ``451``;
    * sort: ``Sort these numbers from smallest to largest: 27, 451, 8, 90``, answer ``8, 27, 90, 451``.

    Letters are set apart by blanks, so that each is a token of its own and nobody has to know how a tokenizer cut a
    word. An answer may leave blanks out or put commas between letters: each letter is one item either way, and their
    order counts. Numbers of a sorted list may be set apart by blanks, commas, semicolons or ``<`` and stand in
    brackets; a missing, extra, doubled or misplaced number is wrong, and so is any word.

    ## Observation Space
    `UnicodeText`: the question, then the format that is asked for.

    ## Action Space
    `UnicodeText`: the completion.

    ## Rewards
    1 if the final answer is exactly what was asked for, else 0.

    ## Starting State
    The operation is uniform over ``operations``; letters are uniform over ``alphabet`` and may repeat; numbers are
    uniform from 0 to ``largest`` and all different. With A letters in the alphabet and N = ``largest`` + 1 numbers
    there are A ** length instances of copy and of reverse (default 26 ** 5 = 11,881,376), N * (N - 1) of larger
    (default 999,000) and N! / (N - size)! of sort (default 994,010,994,000).

    ## Episode End
    Terminated after one step.

    ## Arguments
    ``operations``: some of ``copy``, ``reverse``, ``larger``, ``sort``; ``length``: letters to copy or reverse, 1 to
    64; ``alphabet``: two or more different letters from a to z; ``largest``: the largest number, up to 999,999, and
    at least ``size``; ``size``: numbers to sort, 2 to 32; and those of ``TextBandit``.

    ## Version History
    * v0: first version.

    Raises:
        ValueError: An argument is out of its range.
    """

    def __init__(
        self,
        *,
        operations: Sequence[str] = OPERATIONS,
        length: int = 5,
        alphabet: str = "abcdefghijklmnopqrstuvwxyz",
        largest: int = 999,
        size: int = 4,
        **kwargs: Any,
    ) -> None:
        if isinstance(operations, str) or not operations or not set(operations) <= set(OPERATIONS):
            raise ValueError(f"operations must be some of {OPERATIONS}, got {operations!r}")
        if len(set(operations)) < len(operations):
            raise ValueError(f"operations must differ, got {operations!r}")
        if (
            not isinstance(alphabet, str)
            or len(set(alphabet)) < max(2, len(alphabet))
            or not set(alphabet) <= _ALPHABET
        ):
            raise ValueError(f"alphabet must be two or more different letters from a to z, got {alphabet!r}")
        self.operations, self.alphabet = tuple(operations), alphabet
        self.length = whole("length", length, 1, 64)
        self.size = whole("size", size, 2, 32)
        self.largest = whole("largest (at least size)", largest, self.size, 999_999)
        super().__init__(**kwargs)

    def generate(self, rng: np.random.Generator) -> Task:
        """Draw an operation and what it is to be done on."""
        operation = self.operations[int(rng.integers(len(self.operations)))]
        if operation in ("copy", "reverse"):
            letters = [self.alphabet[i] for i in rng.integers(len(self.alphabet), size=self.length).tolist()]
            asked = "Copy these letters" if operation == "copy" else "Write these letters in reverse order"
            answer = letters if operation == "copy" else letters[::-1]
            return Task(f"{asked}: {' '.join(letters)}", " ".join(answer), {"operation": operation})
        count = 2 if operation == "larger" else self.size
        numbers: list[int] = []
        while len(numbers) < count:
            number = int(rng.integers(self.largest + 1))
            if number not in numbers:
                numbers.append(number)
        if operation == "larger":
            question = f"Which number is larger, {numbers[0]} or {numbers[1]}?"
            return Task(question, str(max(numbers)), {"operation": operation})
        question = f"Sort these numbers from smallest to largest: {', '.join(map(str, numbers))}"
        return Task(question, ", ".join(map(str, sorted(numbers))), {"operation": operation})

    def is_right(self, task: Task, answer: str) -> bool:
        """Tell whether ``answer`` is exactly what was asked for."""
        if len(answer) > 2_000:
            return False
        operation = task.data["operation"]
        if operation == "larger":
            return integer(answer) == int(task.answer)
        text = spaced(plain(answer)).replace(r"\{", "{").replace(r"\}", "}")
        if operation == "sort":
            for left, right in _BRACKETS:
                if text.startswith(left) and text.endswith(right):
                    text = text[1:-1].strip()
            numbers = _BETWEEN_NUMBERS.split(text)
            return numbers == task.answer.split(", ")
        return _BETWEEN_LETTERS.sub("", text).lower() == task.answer.replace(" ", "")
