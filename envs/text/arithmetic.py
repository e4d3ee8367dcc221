"""Integer arithmetic in words that every model knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tetrathlon.envs.arguments import whole
from tetrathlon.envs.grading.writing import integer
from tetrathlon.envs.language.formats import NUMBER, AnswerFormat, answer_formats
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.text.bandit import TextBandit

_OPERATORS = "+-*"
_SPARE_BITS = 40  # so much larger is the number than all choices: none is likelier than another by more than 2**-40
_SPANS = {1: (0, 10), **{digits: (10 ** (digits - 1), 9 * 10 ** (digits - 1)) for digits in range(2, 13)}}
"""The lowest number of so many digits, and how many there are."""


class Arithmetic(TextBandit):
    r"""Work out an expression of integers.

    ## Description
    The agent is asked for the value of ``a + b``, or of a longer expression over the chosen operators, and
    answers with an integer. The usual precedence holds (``*`` before ``+`` and ``-``).

    ## Observation Space
    `UnicodeText`: ``What is 3 + 4?``, then the format that is asked for.

    ## Action Space
    `UnicodeText`: the completion.

    ## Rewards
    1 if the final answer is the value, else 0.

    ## Starting State
    Each number is uniform over those of ``digits`` digits (0 to 9 for one digit), each operator uniform over
    ``operators``; where ``digits`` or ``terms`` is a range, one number out of it is drawn for an expression. With
    ``operators="+-", digits=(1, 4), terms=(2, 6)`` these are the sums of reasoning-gym's ``chain_sum``.

    A setting has N ** terms * len(operators) ** (terms - 1) instances, N = 10 for one digit and 9 * 10 ** (digits - 1)
    for more: one-digit addition of two terms only 100 (about 80 train, 20 test).

    ## Episode End
    Terminated after one step.

    ## Arguments
    ``operators``: some of ``+-*``; ``digits``: 1 to 12, or a pair (low, high), by default (1, 2); ``terms``: 2 to 8, or
    a pair; and those of ``TextBandit``, whose ``answer_format`` is ``"plain"`` here by default: a small model writes no
    box before it has learnt to.

    ## Version History
    * v0: first version.

    Raises:
        ValueError: An argument is out of its range.
    """

    formats: Mapping[str, AnswerFormat] = {"plain": NUMBER, **answer_formats(NUMBER)}
    default_max_tokens = 16

    def __init__(
        self,
        *,
        operators: str = "+",
        digits: int | Sequence[int] = (1, 2),
        terms: int | Sequence[int] = 2,
        **kwargs: Any,
    ) -> None:
        if not isinstance(operators, str) or not operators or not set(operators) <= set(_OPERATORS):
            raise ValueError(f"operators must be some of {_OPERATORS!r}, got {operators!r}")
        self.operators = operators
        self.digits = _range("digits", digits, 1, 12)
        self.terms = _range("terms", terms, 2, 8)
        choices = _SPANS[self.digits[1]][1] ** self.terms[1] * len(operators) ** self.terms[1] * 100
        self._words = -(-(choices.bit_length() + _SPARE_BITS) // 64)
        super().__init__(**kwargs)

    def generate(self, rng: np.random.Generator) -> Task:
        """Draw an expression."""
        # All choices come out of one large number, digit by digit: calls of the generator would take most of the time.
        raw = rng.bit_generator.random_raw
        bits = raw()
        for _ in range(self._words - 1):
            bits = bits << 64 | raw()
        (terms, most), (digits, longest) = self.terms, self.digits
        if terms < most:
            bits, chosen = divmod(bits, most - terms + 1)
            terms += chosen
        if digits < longest:
            bits, chosen = divmod(bits, longest - digits + 1)
            digits += chosen
        low, span = _SPANS[digits]
        operators, choices = self.operators, len(self.operators)
        bits, number = divmod(bits, span)
        total, product = 0, low + number
        written = f"What is {product}"
        for _ in range(terms - 1):
            bits, number = divmod(bits, span)
            number += low
            bits, chosen = divmod(bits, choices)
            operator = operators[chosen]
            written = f"{written} {operator} {number}"
            if operator == "*":
                product *= number
            else:
                total += product
                product = number if operator == "+" else -number
        return Task(written + "?", str(total + product))

    def is_right(self, task: Task, answer: str) -> bool:
        """Tell whether ``answer`` is the value."""
        return answer == task.answer or integer(answer) == int(task.answer)


def _range(name: str, value: int | Sequence[int], low: int, high: int) -> tuple[int, int]:
    """Return the lowest and the highest number that an argument allows."""
    if not isinstance(value, Sequence):
        number = whole(name, value, low, high)
        return number, number
    if isinstance(value, str) or len(value) != 2:
        raise ValueError(f"{name} must be an integer or a pair (low, high), got {value!r}")
    first = whole(f"{name}[0]", value[0], low, high)
    return first, whole(f"{name}[1]", value[1], first, high)
