"""Printed output against expected output."""

from __future__ import annotations

import time

import pytest

from tetrathlon.envs.grading.outputs import same_output

EXPECTED = "0.333333333333\nYES\n"


@pytest.mark.parametrize(
    "actual, right",
    [
        ("0.333333\nYES", True),
        ("0.333333333333 \nYES\n\n", True),
        ("0.3333\nYES", False),
        ("0.333333\nYes", False),
        ("0.333333 YES", False),  # line by line
        ("0.333333\r\nYES\r\n", True),
        ("0.333333\nYES\n\n \n\t\n", True),
        ("\n0.333333\nYES", False),
        ("0.333333\n\nYES", False),
        ("0.333333\nYES\nYES", False),
        ("0.333333", False),
        ("", False),
    ],
)
def test_lines_and_tokens(actual: str, right: bool) -> None:
    assert same_output(actual, EXPECTED) is right


@pytest.mark.parametrize(
    "actual, expected, right",
    [
        ("1.0", "1", True),
        ("1e3", "1000", True),
        ("+5", "5", True),
        ("007", "7", True),
        (".5", "0.5", True),
        ("5.", "5", True),
        ("-0.0000001", "0", True),
        ("0.000002", "0", False),
        ("1000000.9", "1000000", True),  # relative
        ("1000002.1", "1000000", False),
        ("10000001", "10000000", False),  # integers are exact
        ("100000000000000000001", "100000000000000000000", False),
        ("nan", "nan", True),
        ("nan", "1", False),
        ("NaN", "nan", False),
        ("inf", "1e999", False),
        ("1e999", "1e998", False),
        ("1e9999", "1e9999", True),
        ("1_000", "1000", False),
        ("0x10", "16", False),
        ("١", "1", False),
        ("1,5", "1.5", False),
        ("9" * 41, "9" * 40 + "8", False),
        ("a  b", "a b", True),
        ("  a", "a", True),
        ("a\x0cb", "a b", True),  # a blank, and no end of a line
        ("", "", True),
        ("\n\n", "", True),
        ("True", "1", False),
    ],
)
def test_numbers_and_text(actual: str, expected: str, right: bool) -> None:
    assert same_output(actual, expected) is right


def test_the_tolerance_is_an_argument() -> None:
    assert same_output("1.04", "1", tolerance=0.05)
    assert not same_output("1.06", "1", tolerance=0.05)
    assert not same_output("1.0000001", "1", tolerance=0)
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="tolerance"):
            same_output("1", "1", tolerance=wrong)


@pytest.mark.parametrize(
    "unit", ["0.5 ", "0.5\n", "9", " ", "\n", "-", "1e", ".", "9.", "a ", "\r\n", "1e5\n", "\u2028", "+1 "]
)
def test_a_megabyte_takes_linear_time(unit: str) -> None:
    size = 1_000_000 // len(unit)
    begun = time.process_time()
    same_output(unit * size + "x", unit * size + "y")
    same_output(unit * size, EXPECTED)
    assert time.process_time() - begun < 5
