"""Arithmetic: expressions, precedence, sizes."""

from __future__ import annotations

import re
from collections import Counter

import gymnasium as gym
import pytest

import tetrathlon  # noqa: F401
from tetrathlon.envs.text.arithmetic import Arithmetic


def test_values_are_those_of_python() -> None:
    env = Arithmetic(operators="+-*", digits=2, terms=5)
    for index in range(300):
        prompt, _ = env.reset(options={"index": index})
        written = re.match(r"What is ([-+* \d]+)\?\n", prompt)
        assert written is not None
        value = eval(written.group(1))  # our own text
        assert env.step(rf"\boxed{{{value}}}")[1] == 1.0
        env.reset(options={"index": index})
        assert env.step(rf"\boxed{{{value + 1}}}")[1] == 0.0


def test_numbers_have_the_asked_digits() -> None:
    for digits, low, high in [(1, 0, 9), (3, 100, 999)]:
        env = Arithmetic(digits=digits)
        numbers: list[int] = []
        for index in range(400):
            numbers += map(int, re.findall(r"\d+", env.reset(options={"index": index})[0]))
        assert min(numbers) < low + (high - low) * 0.05 + 1
        assert max(numbers) > high * 0.95 - 1
        assert low <= min(numbers) and max(numbers) <= high


def test_ranges_draw_a_length_and_a_size_for_each_expression() -> None:
    env = Arithmetic(operators="+-", digits=(1, 4), terms=(2, 6))
    drawn: Counter[int | str] = Counter()
    for index in range(1_000):
        numbers = re.findall(r"\d+", env.reset(options={"index": index})[0])
        drawn[len(numbers)] += 1
        digits = {len(number) for number in numbers}
        assert len(digits) == 1 and digits <= {1, 2, 3, 4}
        drawn["one digit"] += digits == {1}
    assert set(drawn) == {2, 3, 4, 5, 6, "one digit"}
    assert all(150 < drawn[n] < 250 for n in range(2, 7)) and 200 < drawn["one digit"] < 300
    assert Arithmetic(digits=3, terms=4).reset(seed=1) == Arithmetic(digits=(3, 3), terms=(4, 4)).reset(seed=1)


def test_one_digit_addition_has_a_hundred_instances() -> None:
    seen: dict[str, set[str]] = {"train": set(), "test": set()}
    for split, questions in seen.items():
        env = Arithmetic(digits=1, split=split)
        for index in range(1_500):
            questions.add(env.reset(options={"index": index})[0])
    assert len(seen["train"] | seen["test"]) == 100
    assert not seen["train"] & seen["test"]
    assert 10 <= len(seen["test"]) <= 30


@pytest.mark.parametrize(
    "kwargs",
    [
        {"operators": ""},
        {"operators": "+/"},
        {"digits": 0},
        {"digits": 13},
        {"terms": 1},
        {"terms": 9},
        {"digits": 1.5},
        {"digits": True},
        {"terms": "3"},
        {"terms": "36"},
        {"terms": (3,)},
        {"terms": (4, 3)},
        {"digits": (0, 3)},
        {"digits": (1, 13)},
        {"operators": 5},
    ],
)
def test_arguments_out_of_range(kwargs: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(kwargs))):
        Arithmetic(**kwargs)  # type: ignore[arg-type]


def test_registered() -> None:
    env = gym.make("tetrathlon/Arithmetic-v0", digits=1)
    prompt, _ = env.reset(seed=0)
    assert prompt.startswith("What is ")
