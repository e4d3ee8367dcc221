"""Integer arithmetic in words that every model knows."""

from __future__ import annotations

from typing import Any

import numpy as np

from tetrathlon.envs.grading.writing import integer
from tetrathlon.envs.text.bandit import TextBandit, whole
from tetrathlon.envs.text.formats import NUMBER, answer_formats
from tetrathlon.envs.text.task import Task

_OPERATORS = "+-*"


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
    ``operators``. A setting has N ** terms * len(operators) ** (terms - 1) instances, N = 10 for one digit and
    9 * 10 ** (digits - 1) for more: one-digit addition of two terms only 100 (about 80 train, 20 test).

    ## Episode End
    Terminated after one step.

    ## Arguments
    ``operators``: some of ``+-*``; ``digits``: 1 to 12; ``terms``: 2 to 8; and those of ``TextBandit``.

    ## Version History
    * v0: first version.

    Raises:
        ValueError: An argument is out of its range.
    """

    formats = answer_formats(NUMBER)

    def __init__(self, *, operators: str = "+", digits: int = 2, terms: int = 2, **kwargs: Any) -> None:
        if not isinstance(operators, str) or not operators or not set(operators) <= set(_OPERATORS):
            raise ValueError(f"operators must be some of {_OPERATORS!r}, got {operators!r}")
        self.operators = operators
        self.digits = whole("digits", digits, 1, 12)
        self.terms = whole("terms", terms, 2, 8)
        super().__init__(**kwargs)

    def generate(self, rng: np.random.Generator) -> Task:
        """Draw an expression."""
        low = 0 if self.digits == 1 else 10 ** (self.digits - 1)
        span = 10**self.digits - low
        draws = rng.random(2 * self.terms - 1).tolist()
        numbers = [low + int(span * draw) for draw in draws[: self.terms]]
        operators = [self.operators[int(len(self.operators) * draw)] for draw in draws[self.terms :]]
        written = str(numbers[0])
        total, product = 0, numbers[0]
        for operator, number in zip(operators, numbers[1:], strict=True):
            written += f" {operator} {number}"
            if operator == "*":
                product *= number
            else:
                total, product = total + product, number if operator == "+" else -number
        return Task(f"What is {written}?", str(total + product))

    def is_right(self, task: Task, answer: str) -> bool:
        """Tell whether ``answer`` is the value."""
        return integer(answer) == int(task.answer)
