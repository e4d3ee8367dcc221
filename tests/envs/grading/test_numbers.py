"""The number of a plain reply."""

from __future__ import annotations

import pytest

from tetrathlon.envs.grading.numbers import last_number


@pytest.mark.parametrize(
    ("completion", "number"),
    [
        ("2 - 5 = -3\n#### -3", "-3"),
        ("#### 3", "3"),
        ("The total is 72 clips, altogether.", "72"),
        ("#### 42\n" + "This agrees with the 7 sums above. " * 40, "42"),
        ("It was $5.", "5"),
        ("it is -5", "-5"),
        ("it is −5", "-5"),
        ("12,500 it is", "12,500"),
        ("3.50", "3.50"),
        ("#### none, so 8", "8"),
        ("Adding 3 and 4 gives 7", "7"),
        ("5 or 6", None),
        ("either 5 or maybe 6", None),
        ("5, 6", None),
        ("5 / 6", None),
        ("5 oder 6", None),
        ("#### 5 or 6", None),
        ("none", None),
        ("", None),
        (r"so \boxed{7", None),
        ("<think>7", None),
    ],
)
def test_last_number(completion: str, number: str | None) -> None:
    assert last_number(completion) == number


NO_NUMBER = [
    "fourteen or 15",
    "maybe 15",
    "14 to 15",
    "14-15",
    "14–15",
    "14 ~ 15",
    "14 or it's 15",
    "14, or it may be 15",
    "14? 15?",
    "14 15 16 17",
    "5,\n6",
    "* 14\n* 15",
    "#### 5 or six",
    "not 5",
    "It is not 5.",
    "\\frac{1}{2}",
    "\\frac12",
    "2^{10}",
    "2**3",
    "\\sqrt{9}",
    "x_3",
    ".15",
    "1.000.015",
    "1 000 015",
    "12:30",
    "2024-01-05",
    "0x15",
    "5!",
    "5²",
    "1.2.3",
    "5±1",
    "7 != 5",
    "0 + 8",
    "2 - 5",
    "2-5",
    "580 percent",
    "~580",
    "580?",
    "5 or six",
    "14 oder 15",
    "- 14\n- 15",
    "x - 5",
    "x-5",
    "1/2",
    "5%",
    "2 + 5 =",
    "5 \\times 3",
    "#### 5 + 6",
    "5 e 6",
    "1. 000",
]


@pytest.mark.parametrize("reply", NO_NUMBER)
def test_a_fragment_or_one_of_several_is_no_number(reply: str) -> None:
    assert last_number(reply) is None


@pytest.mark.parametrize(
    ("reply", "number"),
    [
        ("x = - 3", "-3"),
        ("-$5", "-5"),
        ("It was -$5.", "-5"),
        ("- $5", "-5"),
        ("#### -$3", "-3"),
        ("2 + 4 = 6", "6"),
        ("It was $5.", "5"),
        ("The total is 72 clips, altogether.", "72"),
        ("#### 42\nlater text 7", "42"),
        ("１５", "15"),
        ("**5**", "5"),
        ("The answer is **5**.", "5"),
        ("$5$", "5"),
        ("2 - 5 = -3\n#### -3", "-3"),
        ("Answer: 5", "5"),
        ("Answer:5", "5"),
        ("-5", "-5"),
        ("it is -5", "-5"),
        ("3 + 4 = **7**.", "7"),
        ("3 + 4 = $7$", "7"),
        ("`7`", "7"),
        ("12,500 it is", "12,500"),
        ("3.50", "3.50"),
        ("#### none, so 8", "8"),
        ("Adding 3 and 4 gives 7", "7"),
        ("it is −5", "-5"),
        ("5\n", "5"),
        ("(5)", "5"),
        ("7 - done", "7"),
        ("3 + 4 =\n7", "7"),
        ("x = -5", "-5"),
        ("=> 5", "5"),
        ("$-5$", "-5"),
        ("####\n5", "5"),
        ("I have 3 or more things. So the total is 7", "7"),
        ("The sum is 7.\n", "7"),
    ],
)
def test_a_number_keeps_its_sign(reply: str, number: str) -> None:
    assert last_number(reply) == number
