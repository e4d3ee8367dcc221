"""The letter of a plain reply."""

from __future__ import annotations

import time

import pytest

from tetrathlon.envs.grading.choices import last_choice


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("B", "B"),
        ("(B).", "B"),
        ("b", "b"),
        ("**B**", "B"),
        ("#### B", "B"),
        ("Answer: B", "B"),
        ("The answer is **B**.", "B"),
        ("The correct option is (d).", "d"),
        ("The answer is B, a dog.", "B"),
        ("Option B is correct", "B"),
        ("The best choice is A because it is small", "A"),
        ("B) 12", "B"),
        ("A. golden retriever", "A"),
        ("C) is too large.\nThe correct answer is option B", "B"),
        ("<think>A</think>B", "B"),
        ("A or B", None),
        ("A, B", None),
        ("(A)(B)", None),
        ("A) 3 B) 4", None),
        ("The answer is B or C", None),
        ("The answer is B and C", None),
        ("The answer is B, C", None),
        ("The answer is A. The answer is B.", None),
        ("The answer is not B", None),
        ("The answer is B is wrong", None),
        ("The answer is a bit unclear", None),
        ("The answer is I don't know", None),
        ("A dog", None),
        ("12", None),
        ("", None),
        (r"so \boxed{B", None),
        ("<think>B", None),
    ],
)
def test_last_choice(reply: str, letter: str | None) -> None:
    assert last_choice(reply) == letter


@pytest.mark.parametrize("unit", ["A", "A) ", "answer is ", "the answer is A ", " ", "(", "option option "])
def test_time_is_linear(unit: str) -> None:
    text = unit * (300_000 // len(unit))
    started = time.process_time()
    last_choice(text)
    assert time.process_time() - started < 4.0
