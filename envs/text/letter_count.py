"""Count a letter in a word."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from tetrathlon.envs.arguments import whole
from tetrathlon.envs.grading.writing import integer
from tetrathlon.envs.language.formats import NUMBER, answer_formats
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.text.bandit import TextBandit

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SHARES = (0.2, 0.35, 0.3, 0.15)
"""How often the letter is there 0, 1, 2, and 3 or more times."""


class LetterCount(TextBandit):
    """Count how often a letter appears in a word.

    ## Description
    The agent is asked about a common English word of lower-case letters and answers with an integer, in digits.

    ## Observation Space
    `UnicodeText`: ``How many times does the letter 'r' appear in 'strawberry'?``, after worked examples if there are
    any, then the format that is asked for.

    ## Action Space
    `UnicodeText`: the completion.

    ## Rewards
    1 if the final answer is the count, else 0.

    ## Starting State
    First how often the letter is to be there (0: 20 %, once: 35 %, twice: 30 %, three times or more: 15 %), then
    one of all pairs of a word and a letter with that count, uniform. The word list of the package (1,737 words)
    gives 45,162 instances: 36,277 with count 0, 7,728 with 1, 952 with 2, 205 with 3 or more. Who always answers 1
    is right 35 % of the time.

    ## Episode End
    Terminated after one step.

    ## Arguments
    ``shortest``, ``longest``: how many letters a word may have, within 4 to 12; and those of ``TextBandit``.

    ## Version History
    * v0: first version.

    Raises:
        ValueError: An argument is out of its range, or no word of that length holds a letter three times.
    """

    formats = answer_formats(NUMBER)

    def __init__(self, *, shortest: int = 4, longest: int = 12, **kwargs: Any) -> None:
        shortest = whole("shortest (letters)", shortest, 4, 12)
        longest = whole("longest (from shortest)", longest, shortest, 12)
        self.shortest, self.longest = shortest, longest
        self._pairs = _pairs_by_count(shortest, longest)
        if not all(self._pairs):
            raise ValueError(
                f"words of {shortest} to {longest} letters must hold letters 0 to 3 times; allow longer words"
            )
        super().__init__(**kwargs)

    def generate(self, rng: np.random.Generator) -> Task:
        """Draw a count, then a word and a letter with it."""
        first, second = rng.random(2).tolist()
        bucket = int(np.searchsorted(np.cumsum(_SHARES[:-1]), first, side="right"))
        pairs = self._pairs[bucket]
        word, letter = pairs[int(len(pairs) * second)]
        return Task(f"How many times does the letter '{letter}' appear in '{word}'?", str(word.count(letter)))

    def is_right(self, task: Task, answer: str) -> bool:
        """Tell whether ``answer`` is the count."""
        return integer(answer) == int(task.answer)


@cache
def words() -> tuple[str, ...]:
    """Return the words, sorted."""
    return tuple(files(__package__).joinpath("assets/words.txt").read_text(encoding="ascii").split())


@cache
def _pairs_by_count(shortest: int, longest: int) -> tuple[list[tuple[str, str]], ...]:
    """Return the pairs of a word and a letter, by whether the letter is there 0, 1, 2, or more times."""
    pairs: tuple[list[tuple[str, str]], ...] = tuple([] for _ in _SHARES)
    for word in words():
        if shortest <= len(word) <= longest:
            for letter in _LETTERS:
                pairs[min(word.count(letter), len(_SHARES) - 1)].append((word, letter))
    return pairs
