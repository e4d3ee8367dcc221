"""Countdown: the parser, the rules, the instances."""

from __future__ import annotations

import re
import time
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tetrathlon.envs.language.task import Task
from tetrathlon.envs.text.countdown import Countdown
from tetrathlon.envs.text.expression import parse, value

TASK = Task("q", "50 + 7 * 3", {"numbers": (3, 7, 50), "target": 71})

M17 = [
    ("50 + 7*3", True),
    ("7*3 + 50 = 71", True),  # documented
    ("71", False),
    ("50+7+7+7", False),
    ("50+21", False),
    ("(3*7+50)*1", False),
    ('__import__("os").getpid()*0+71', False),
    ("9**9**9", False),
    ("73-5+3", False),
]
MORE = [
    ("50 + 7 × 3", True),
    ("50 + 7 · 3", True),
    ("50 + 7 ⋅ 3", True),
    (r"50 + 7 \times 3", True),
    (r"\left(50\right) + 7 \cdot 3", True),
    ("$50 + 7*3$", True),
    ("50 + 7*3.", True),
    ("((50)) + (7*3)", True),
    ("50 − −7*3", True),
    ("-(-50) + 7*3", True),
    ("-7*-3 + 50", True),
    ("50+7*3=71", True),
    ("50+7*3 = 72", False),
    ("50+7*3 = 50+21 = 71", False),
    ("71 = 50+7*3", False),
    ("50+7*3 =", False),
    ("50-7*3 = 71", False),
    ("5 0 + 7*3", False),
    ("50 + 7*3 or 71", False),
    ("50 + 7*3, 50 + 3*7", False),
    ("50 + 7(3)", False),
    ("(50) + (7)(3)", False),
    ("50 + 7x3", True),
    ("50 + 7 x 3", True),
    (r"50\,+\,7\times 3", True),
    (r"50 + 7 \cdot{} 3", True),
    (r"\text{50 + 7*3}", True),
    (r"\frac{50}{1} + 7*3", False),
    ("50 + 7x", False),
    ("50 + 7{3}", False),
    ("050 + 7*3", False),
    ("50.0 + 7*3", False),
    ("5e1 + 7*3", False),
    ("50 + + 7*3", False),
    ("+50 + 7*3", False),
    ("50 - -(-(-7))*3", True),
    ("50 --7*3", True),
    ("50 ---7*3", False),
    ("50 + 7**3", False),
    ("50 + 7^3", False),
    ("50 + 7*3 # done", False),
    ("50 // 7 * 3", False),
    ("50 + 7*3)", False),
    ("(50 + 7*3", False),
    ("()50 + 7*3", False),
    ("50 + 7*3 +", False),
    ("", False),
    ("50/(7-7)+3", False),
    ("７*3+50", True),
    ("7*３+5⁰", False),
    ("50+7*3²", False),
    ("x*3+50", False),
    ("max(50,7,3)", False),
]


@pytest.mark.parametrize(("answer", "expected"), M17 + MORE)
def test_grading(answer: str, expected: bool) -> None:
    env = Countdown()
    env.reset(options={"task": TASK})
    assert env.step(f"<answer>{answer}</answer>")[1] == float(expected)


def test_division_is_exact_and_by_zero_is_wrong() -> None:
    assert value("8/(3-8/3)", [3, 3, 8, 8]) == 24
    assert value(r"\frac{6}{3}", [3, 6]) == 2
    assert value(r"\dfrac{6 + 4}{\frac{4}{2}}", [2, 4, 4, 6]) == 5
    assert value(r"\frac{" * 200 + "6" + "}{3}" * 200, [3, 6]) is None
    assert value("1/3", [1, 3]) == Fraction(1, 3)
    assert value("3/(2-2)", [2, 2, 3]) is None
    assert value("3÷(2−1)", [1, 2, 3]) == 3
    assert value("2-1-3", [1, 2, 3]) == -2
    assert value("12/2/3", [2, 3, 12]) == 2
    assert value("-2*3+4", [2, 3, 4]) == -2


def test_hostile_answers_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr("os.system", ran.append)
    env = Countdown()
    hostile = [
        '__import__("os").system("true")*0+71',
        "9**9**9**9",
        "(" * 100_000 + "50+7*3" + ")" * 100_000,
        "-" * 1_000_000,
        "50+7*3" + "+0" * 100_000,
        "9" * 1_000_000,
        "[" * 5_000,
        "\0\ud800",
        "lambda: 71",
    ]
    started = time.process_time()
    for answer in hostile:
        env.reset(options={"task": TASK})
        _, reward, _, _, info = env.step(f"<answer>{answer}</answer>")
        assert reward == 0.0
        assert "grader_error" not in info
    assert time.process_time() - started < 1.0
    assert not ran
    deep = "(" * 480 + "50+7*3" + ")" * 480
    assert value(deep, (3, 7, 50)) == 71


def test_precedence_of_powers_and_signs() -> None:
    tokens = parse("2^3^2", ())
    assert tokens is not None and [token.text for token in tokens] == ["2", "3", "2", "^", "^"]
    tokens = parse("-2^2", ())
    assert tokens is not None and [token.text for token in tokens] == ["2", "2", "^", "neg"]
    tokens = parse("2^-x*3", ("x",))
    assert tokens is not None and [token.text for token in tokens] == ["2", "x", "neg", "^", "3", "*"]


@pytest.mark.parametrize("kwargs", [{}, {"numbers": 2}, {"numbers": 6, "high": 10, "target_high": 999}, {"numbers": 8}])
def test_every_instance_is_solved_by_its_expert_and_stays_in_range(kwargs: dict[str, Any]) -> None:
    env = Countdown(**kwargs)
    for index in range(200):
        prompt, _ = env.reset(options={"index": index})
        match = re.match(
            r"Write an expression that equals (\d+)\. Use each of the numbers ([\d, ]+) exactly once\.", prompt
        )
        assert match is not None
        numbers = [int(number) for number in match.group(2).split(", ")]
        assert numbers == sorted(numbers) and len(numbers) == env.numbers
        assert env.low <= numbers[0] and numbers[-1] <= env.high
        assert env.target_low <= int(match.group(1)) <= env.target_high
        assert env.step(env.expert_action())[1] == 1.0


def test_the_target_alone_is_never_paid() -> None:
    env = Countdown()
    for index in range(50):
        prompt, _ = env.reset(options={"index": index})
        target = prompt.split("equals ")[1].split(".")[0]
        assert env.step(rf"\boxed{{{target}}}")[1] == 0.0


def test_the_order_of_the_numbers_makes_no_other_instance() -> None:
    env = Countdown(numbers=2, high=6, target_low=1, target_high=12)
    questions = {env.generate(np.random.default_rng(seed)).question for seed in range(3_000)}
    keys = set()
    for question in questions:
        numbers = re.findall(r"\d+", question)
        keys.add((numbers[0], *sorted(numbers[1:])))
    assert len(keys) == len(questions)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"numbers": 1},
        {"numbers": 9},
        {"low": 0},
        {"low": 9, "high": 8},
        {"high": 1_001},
        {"target_low": 0},
        {"target_high": 9},
        {"target_high": 1_000_001},
        {"low": 1.5},
        {"numbers": True},
        {"high": "9"},
        {"target_low": None},
    ],
)
def test_arguments_out_of_range(kwargs: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Countdown(**kwargs)


def test_ranges_that_leave_no_instance() -> None:
    env = Countdown(numbers=2, high=2, target_low=500, target_high=600)
    with pytest.raises(gym.error.Error, match="widen the ranges"):
        env.reset(seed=0)
