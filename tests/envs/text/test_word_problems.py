"""Word problems: every answer worked out again from the text alone, the forms, the English, the variety."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from math import prod

import numpy as np
import pytest

from tetrathlon.envs.language.task import Task
from tetrathlon.envs.text.stories import STORIES, Draws, decimal
from tetrathlon.envs.text.word_problems import FORMS, LEVELS, TENTHS, WordProblem, make_word_problem, write_number

levels = pytest.mark.parametrize("level", LEVELS)
forms = pytest.mark.parametrize("form", FORMS)
_NUMBER = re.compile(r"\d+/\d+|\d+(?:\.\d+)?")


def draw(level: int, count: int, seed: int = 0) -> list[WordProblem]:
    rng = np.random.default_rng(seed)
    return [make_word_problem(rng, level) for _ in range(count)]


def shopping(text: str, n: list[Fraction]) -> Fraction:
    if "back" in text:
        return n[4] - n[0] * n[1] - n[2] * n[3]
    return sum((n[i] * n[i + 1] for i in range(0, len(n), 2)), Fraction(0))


def travel(text: str, n: list[Fraction]) -> Fraction:
    if "altogether" in text:
        stop = n[2] / 60 if "stops" in text else 0
        return n[0] / n[1] + stop + (n[3] / n[4] if "another" in text else 0)
    if "left" in text:
        return n[0] - n[1] * n[2] - n[3] * n[4]
    return n[0] * n[1] + (n[2] * n[3] if len(n) > 2 else 0)


def ratio(text: str, n: list[Fraction]) -> Fraction:
    total, parts = (n[0], n[1:]) if "share" in text else (n[-1], n[:-1])
    one = total / sum(parts)
    if "together" in text:
        return one * (parts[0] + parts[2])
    return one * (parts[0] - parts[1] if " more " in text else parts[0])


def percentage(text: str, n: list[Fraction]) -> Fraction:
    part, rest = n[0] * n[1] / 100, n[0] * (1 - n[1] / 100)
    if "helmet" in text:
        return part - part * n[2] / 100
    if "goes bad" in text:
        return rest * n[2] / 100
    return rest if "do not" in text or "are left" in text else part


def mixture(text: str, n: list[Fraction]) -> Fraction:
    if "fraction of the drink" in text:
        syrup = n[0] + (n[3] if len(n) > 3 else 0)
        return syrup / sum(n)
    return sum((n[i] * n[i + 1] / 100 for i in range(0, len(n), 2)), Fraction(0))


def time(text: str, n: list[Fraction]) -> Fraction:
    minutes = (n[2] - n[0]) * 60 + n[3] - n[1] - (n[4] if "break" in text else 0)
    return minutes * (n[5] if len(n) > 5 else 1) / (60 if "How many hours" in text else 1)


def conversion(text: str, n: list[Fraction]) -> Fraction:
    big, small = re.findall(r"\d (\w+)", text)[:2]
    size = 100 if small == "centimetres" else 1_000
    each = n[0] + n[1] / size
    total = each if len(n) == 2 else each * n[-1] if len(n) == 3 else n[-2] * each + n[-1] * (n[2] + n[3] / size)
    asked = re.search(r"in (\w+)\?", text)
    assert asked is not None and asked[1] in (big, small)
    return total * (size if asked[1] == small else 1)


def geometry(text: str, n: list[Fraction]) -> Fraction:
    if "tank" in text:
        return n[2] / n[0] / n[1]
    if "other side" in text:
        return n[0] / n[1]
    if "has an area" in text:
        return 2 * (n[0] / n[1] + n[1])
    if "perimeter" in text:
        return 2 * (n[0] + n[1])
    if "paved" in text:
        assert n[2] <= n[0] and n[3] <= n[1]
        return n[0] * n[1] - n[2] * n[3]
    return Fraction(prod(n))


def average(text: str, n: list[Fraction]) -> Fraction:
    if "together" in text:
        return (n[0] * n[1] + n[2] * n[3]) / (n[0] + n[2])
    assert len(n) == n[0] + 1
    return sum(n[1:]) / n[0]


def work(text: str, n: list[Fraction]) -> Fraction:
    times = n.pop() if "times" in text else Fraction(1)
    hours = times / sum(1 / each for each in n)
    assert sum(hours / each for each in n) == times
    return hours


def sharing(text: str, n: list[Fraction]) -> Fraction:
    boxes = n.pop(0) if "boxes" in text else Fraction(1)
    return (boxes * n[0] - (n[1] if "away" in text else 0)) / n[-1]


def discount(text: str, n: list[Fraction]) -> Fraction:
    cost = n[0] * (1 - n[1] / 100)
    return cost * (1 + n[2] / 100 if "tax" in text else 1) * (n[3] if len(n) > 3 else 1)


def probability(text: str, n: list[Fraction]) -> Fraction:
    a, b = int(n[0]), int(n[1])
    bag = [True] * a + [False] * b
    if "both" in text:
        pairs = [(x, y) for x in bag for y in bag]
        return Fraction(sum(x and y for x, y in pairs), len(pairs))
    if "Two" in text:
        pairs = [(x, y) for i, x in enumerate(bag) for j, y in enumerate(bag) if i != j]
        return Fraction(sum(x != y for x, y in pairs), len(pairs))
    return Fraction(sum(bag), len(bag))


def saving(text: str, n: list[Fraction]) -> Fraction:
    return n[0] + n[1] * n[-1] - (n[2] if "spends" in text else 0) + (n[3] if "gift" in text else 0)


def recipe(text: str, n: list[Fraction]) -> Fraction:
    cups = n[1] + (n[2] if "both" in text or "the two" in text else 0)
    return cups / n[0] * n[-1] - (n[3] if "already" in text else 0)


SOLVERS: dict[str, Callable[[str, list[Fraction]], Fraction]] = {
    solver.__name__: solver
    for solver in (
        *(shopping, travel, ratio, percentage, mixture, time, conversion, geometry, average, work, sharing, discount),
        *(probability, saving, recipe),
    )
}


def test_there_is_a_solver_for_every_story() -> None:
    assert {topic for stories in STORIES.values() for topic, _ in stories} == set(SOLVERS)
    assert len(SOLVERS) == 15


@levels
def test_answers_follow_from_the_text(level: int) -> None:
    solved: Counter[tuple[str, str]] = Counter()
    for problem in draw(level, 3_000):
        numbers = [Fraction(number) for number in _NUMBER.findall(problem.question)]
        assert SOLVERS[problem.topic](problem.question, numbers) == problem.answer, problem.question
        solved[problem.form, problem.topic] += 1
    assert set(solved) == {(form, topic) for form, stories in STORIES.items() for topic, _ in stories}
    assert min(solved.values()) > 40


@levels
@pytest.mark.parametrize("split", ["train", "test"])
def test_forms_come_in_fixed_shares_in_both_splits(level: int, split: str) -> None:
    problems = [problem for problem in draw(level, 6_000, seed=1) if Task(problem.question, "").split == split]
    counts = Counter(problem.form for problem in problems)
    assert len(problems) > 1_000
    for form, tenths in TENTHS.items():
        assert counts[form] / len(problems) == pytest.approx(tenths / 10, abs=0.05)


@levels
def test_answers_have_the_form_that_is_asked_for(level: int) -> None:
    patterns = {"integer": r"[1-9]\d*", "decimal": r"(0|[1-9]\d*)\.\d{0,2}[1-9]", "fraction": r"[1-9]\d*/[1-9]\d*"}
    for problem in draw(level, 3_000, seed=2):
        written = write_number(problem.answer, problem.form)
        assert re.fullmatch(patterns[problem.form], written), (written, problem.question)
        assert Fraction(written) == problem.answer > 0
        assert problem.question.endswith(f"? {FORMS[problem.form]}")


@levels
def test_no_answer_and_no_number_of_the_text_is_a_good_guess(level: int) -> None:
    problems = draw(level, 3_000, seed=3)
    answers = Counter(problem.answer for problem in problems)
    assert answers.most_common(1)[0][1] < 0.02 * len(problems)
    for place in (0, -1):
        guesses = [Fraction(_NUMBER.findall(problem.question)[place]) for problem in problems]
        assert sum(guess == problem.answer for guess, problem in zip(guesses, problems, strict=True)) < 80


@levels
def test_the_english(level: int) -> None:
    for problem in draw(level, 3_000, seed=4):
        text = problem.question
        assert not re.search(r"\b[Aa] [aeiouAEIOU]|\b[Aa]n [^aeiou ]", text), text
        assert not re.search(r"\b1 [a-z]+s\b|(?<![\d.])0[ %]|  | [.,?]|\{|\}|None|\bin in\b", text), text
        assert all(re.match(r"[A-Z]", sentence) for sentence in re.split(r"(?<=[.?]) ", text)), text
        assert text.count("?") == 1


@levels
def test_instances_are_many(level: int) -> None:
    """As many as if this many were equally likely (of n draws, n * n / 2 / collisions)."""
    count = 15_000
    pairs = sum(n * (n - 1) // 2 for n in Counter(problem.question for problem in draw(level, count, seed=5)).values())
    assert count * count / 2 / max(pairs, 1) > {1: 500_000, 2: 1_500_000, 3: 5_000_000}[level]


@forms
@levels
def test_no_story_draws_long(level: int, form: str) -> None:
    draws = Draws(np.random.default_rng(6))
    for topic, story in STORIES[form]:
        tries = 0
        for _ in range(50):
            found = False
            while not found:
                tries += 1
                answer = story(draws, level, form)[1]
                found = answer > 0 and Fraction(write_number(answer, form)) == answer
                found = found and (answer.denominator == 1) == (form == "integer")
        assert tries < 50 * 40, (topic, tries)


@pytest.mark.parametrize(
    ("number", "written"), [("12", "12"), ("5/2", "2.5"), ("1/8", "0.125"), ("20001/1000", "20.001"), ("1/100", "0.01")]
)
def test_decimals(number: str, written: str) -> None:
    assert decimal(Fraction(number)) == written
