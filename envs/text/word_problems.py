"""Word problems: a story, exact numbers, and an answer in a wanted form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tetrathlon.envs.text.stories import STORIES, Draws, decimal

FORMS: Mapping[str, str] = {
    "integer": "Give the answer as a whole number.",
    "decimal": "Give the answer as a decimal.",
    "fraction": "Give the answer as a fraction in lowest terms.",
}
"""What a problem may ask for, and how it says so."""
TENTHS: Mapping[str, int] = {"integer": 4, "decimal": 3, "fraction": 3}
"""How often each form is asked for, in ten problems; the answer of a decimal or a fraction is never an integer."""
LEVELS = (1, 2, 3)
_FORM_BAG = tuple(form for form, tenths in TENTHS.items() for _ in range(tenths))
_MOST_TRIES = 10_000
_LARGEST_DENOMINATOR = 250


@dataclass(frozen=True, slots=True)
class WordProblem:
    """A question and its answer."""

    question: str
    """The story, what is asked, and the form of the answer."""
    answer: Fraction
    """The exact answer, above 0."""
    form: str
    """One of :data:`FORMS`."""
    topic: str
    """Which of the stories it is."""


def make_word_problem(rng: np.random.Generator, level: int = 1) -> WordProblem:
    """Draw a word problem: first the form of its answer by :data:`TENTHS`, then a story, then the numbers.

    Args:
        rng: All randomness comes from it.
        level: 1, 2 or 3: how many steps a solution takes, with larger numbers.
    """
    draws = Draws(rng)
    form = draws.one(_FORM_BAG)
    topic, story = draws.one(STORIES[form])
    for _ in range(_MOST_TRIES):
        text, answer = story(draws, level, form)
        if _has_form(answer, form):
            return WordProblem(f"{text} {FORMS[form]}", answer, form, topic)
    raise AssertionError(f"the story {topic!r} gave no {form} in {_MOST_TRIES} draws")


def write_number(number: Fraction, form: str) -> str:
    """Return ``number`` in a form: ``12``, ``2.5`` or ``3/4``."""
    return decimal(number) if form == "decimal" else str(number)


def _has_form(answer: Fraction, form: str) -> bool:
    bottom = answer.denominator
    if answer <= 0 or form == "integer":
        return answer > 0 and bottom == 1
    return bottom > 1 and (1_000 % bottom == 0 if form == "decimal" else bottom <= _LARGEST_DENOMINATOR)
