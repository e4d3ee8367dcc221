"""Reach a target from given numbers."""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
import numpy as np

from tetrathlon.envs.arguments import whole
from tetrathlon.envs.grading.writing import plain, spaced
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.text.bandit import TextBandit
from tetrathlon.envs.text.expression import LONGEST, value

_MOST_TRIES = 2_000
_EQUALS = re.compile(r"([^=]*)=\s*(\d{1,12})\s*", re.ASCII)


class Countdown(TextBandit):
    r"""Write an expression that uses each given number exactly once and equals the target.

    ## Description
    The answer is an expression of the given numbers, ``+ - * /`` (also ``× · ÷ −``, ``\times``, ``\cdot``,
    ``\div``, ``\frac``, and an ``x`` between numbers) and round brackets. It is read by a parser of this package and
    worked out in exact fractions; nothing in it is ever run.

    * Each number is used exactly once; there are no other numbers, no names and no powers.
    * Numbers are never glued (``5 0`` is not 50, ``5(3)`` is no product) and have no leading zeros.
    * One minus sign may stand before a number or a bracket (``-3 + 7 * 8``), a plus sign or two minus signs not.
    * ``= 71`` may follow if 71 is the target; any other ``=`` makes the answer wrong.
    * A division by zero, and an answer of more than 1,000 characters, is wrong.

    ## Observation Space
    `UnicodeText`: ``Write an expression that equals 71. Use each of the numbers 3, 7, 50 exactly once. You may use
    + - * / and brackets.``, then the format that is asked for.

    ## Action Space
    `UnicodeText`: the completion.

    ## Rewards
    1 if the final answer is such an expression of the target, else 0.

    ## Starting State
    The numbers are uniform from ``low`` to ``high`` and stand in ascending order, so the same numbers in another
    order are the same instance. The target is the value of a random expression of them whose parts are all positive
    integers; draws with a target outside ``target_low`` to ``target_high`` are thrown away. The default setting has
    22,100 choices of numbers with about 6 targets each, 120,000 instances; a setting has
    C(high - low + numbers, numbers) choices of numbers.

    ## Episode End
    Terminated after one step.

    ## Arguments
    ``numbers``: how many, 2 to 8; ``low``, ``high``: their range, within 1 to 1,000; ``target_low``,
    ``target_high``: the target's range, within 1 to 1,000,000; and those of ``TextBandit``.

    ## Version History
    * v0: first version.

    Raises:
        ValueError: An argument is out of its range.
        gymnasium.error.Error: On reset, where the ranges leave no instance.
    """

    default_max_tokens = 128

    def __init__(
        self,
        *,
        numbers: int = 3,
        low: int = 1,
        high: int = 50,
        target_low: int = 10,
        target_high: int = 100,
        **kwargs: Any,
    ) -> None:
        self.numbers = whole("numbers", numbers, 2, 8)
        self.high = whole("high", high, 1, 1_000)
        self.low = whole("low", low, 1, self.high)
        self.target_high = whole("target_high", target_high, 1, 1_000_000)
        self.target_low = whole("target_low", target_low, 1, self.target_high)
        super().__init__(**kwargs)

    def generate(self, rng: np.random.Generator) -> Task:
        """Draw numbers, and a target that they reach."""
        for _ in range(_MOST_TRIES):
            draws = rng.random(4 * self.numbers).tolist()
            span = self.high - self.low + 1
            numbers = sorted(self.low + int(span * draw) for draw in draws[: self.numbers])
            target, solution = _combine(numbers, draws[self.numbers :])
            if self.target_low <= target <= self.target_high:
                break
        else:
            raise gym.error.Error(
                f"no target from {self.target_low} to {self.target_high} came out of {_MOST_TRIES} draws of "
                f"{self.numbers} numbers from {self.low} to {self.high}; widen the ranges"
            )
        listed = ", ".join(map(str, numbers))
        question = (
            f"Write an expression that equals {target}. Use each of the numbers {listed} exactly once. "
            "You may use + - * / and brackets."
        )
        return Task(question, solution, {"numbers": tuple(numbers), "target": target})

    def is_right(self, task: Task, answer: str) -> bool:
        """Tell whether ``answer`` is an expression of the numbers that equals the target."""
        if len(answer) > LONGEST:
            return False
        answer = spaced(plain(answer))
        target = task.data["target"]
        if suffix := _EQUALS.fullmatch(answer):
            if int(suffix.group(2)) != target:
                return False
            answer = suffix.group(1)
        return value(answer, task.data["numbers"]) == target


def _combine(numbers: list[int], draws: list[float]) -> tuple[int, str]:
    """Join the numbers by random operators until one is left; every part is a positive integer."""
    parts = [(number, str(number), 3) for number in numbers]  # value, as written, how tightly it binds
    draw = iter(draws)
    while len(parts) > 1:
        left = parts.pop(int(len(parts) * next(draw)))
        right = parts.pop(int(len(parts) * next(draw)))
        if left[0] < right[0]:
            left, right = right, left
        (a, a_text, a_binds), (b, b_text, b_binds) = left, right
        operators = "+*" + "-" * (a > b) + "/" * (a % b == 0)
        operator = operators[int(len(operators) * next(draw))]
        binds = 1 if operator in "+-" else 2
        left_text = f"({a_text})" if a_binds < binds else a_text
        right_text = f"({b_text})" if b_binds < binds + (operator in "-/") else b_text
        total = {"+": a + b, "-": a - b, "*": a * b, "/": a // b}[operator]
        parts.append((total, f"{left_text} {operator} {right_text}", binds))
    return parts[0][0], parts[0][1]
