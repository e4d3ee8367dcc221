"""Sums of two small digits behind a tag, which a tiny language model learns in seconds: ``k3+4=``, answered ``7``."""

from __future__ import annotations

import copy
from functools import cache
from string import ascii_lowercase
from typing import Any

import gymnasium as gym
import numpy as np

from tetrathlon.agents.char_lm import char_lm
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.algos.imitation import clone
from tetrathlon.envs.episode import Episode, Step
from tetrathlon.envs.language.formats import PlainFormat
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.rubric import Rubric, Term
from tetrathlon.envs.text.bandit import TextBandit

DIGITS = 5
"""Digits are below this, so an answer has one of its own."""
CHARACTERS = "0123456789+-=." + ascii_lowercase
MOST_DOTS = 6
CHANCE = 1 / DIGITS
"""How often the likeliest sum, said whatever is asked, is right."""


ID = "Sums-v0"
"""Known once this module is imported, as by ``tetrathlon.benchmarks.sums:Sums-v0``."""
if ID not in gym.registry:
    gym.register(ID, entry_point=f"{__name__}:Sums")


class Sums(TextBandit):
    """One of 26 tags before one of 25 sums; a fifth of these strings, by hash, is the test split.

    Args:
        dots: How many dots an answer may have before its number, which mean nothing.
        pay: What a right answer pays. It is a success whatever it pays.
        **kwargs: Those of ``TextBandit``.
    """

    formats = {"plain": PlainFormat(str, bool, request="")}  # noqa: RUF012
    default_max_tokens = 3

    def __init__(self, *, dots: int = 0, pay: float = 1.0, **kwargs: Any) -> None:
        self.dots, self.pay = dots, pay
        kwargs.setdefault("max_tokens", self.default_max_tokens + dots)
        super().__init__(**kwargs)

    def make_rubric(self, format_weight: float) -> Rubric:
        """See :meth:`TextBandit.make_rubric`."""
        return Rubric(Term("correct", self._grade_answer, self.pay))

    def generate(self, rng: np.random.Generator) -> Task:
        """See :meth:`TextBandit.generate`."""
        tag, a, b = rng.integers((len(ascii_lowercase), DIGITS, DIGITS)).tolist()
        return Task(f"{ascii_lowercase[tag]}{a}+{b}=", str(a + b))

    def is_right(self, task: Task, answer: str) -> bool:
        """See :meth:`TextBandit.is_right`."""
        number = answer.lstrip(".")
        return number == task.answer and len(answer) - len(number) <= self.dots


def near_misses(n: int, seed: int, dots: int = 0) -> list[Episode]:
    """Return n demonstrations of the train split whose answers are off by -2 to 2: a fifth of them are right.

    Args:
        n: How many.
        seed: Of the questions and the errors.
        dots: Most dots before an answer; any number up to it is as likely as another.
    """
    env = Sums(dots=dots)
    rng = np.random.default_rng(seed)
    errors, before = rng.integers(-2, 3, size=n), rng.integers(0, dots + 1, size=n)
    env.reset(seed=seed)
    episodes = []
    for error, lead in zip(errors.tolist(), before.tolist(), strict=True):
        question, info = env.reset()
        said = "." * lead + str(int(env.expert_action()) + error)
        episodes.append(Episode(steps=[Step(question, said, 0.0, terminated=True)], info=info))
    return episodes


@cache
def _cloned(dots: int) -> LanguagePolicy:
    policy = char_lm(characters=CHARACTERS, context=16 + dots, max_tokens=3 + dots, batch_size=256)
    clone(policy, near_misses(2000, 0, dots), steps=150, lr=2e-3)
    return policy


def near() -> LanguagePolicy:
    """Return a model of characters that was shown answers which are off by up to 2."""
    return copy.deepcopy(_cloned(0))


def near_with_dots() -> LanguagePolicy:
    """Return one that was shown such answers behind 0 to 6 dots."""
    return copy.deepcopy(_cloned(MOST_DOTS))
