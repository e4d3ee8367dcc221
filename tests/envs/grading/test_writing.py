"""One answer, written in many ways."""

from __future__ import annotations

import pytest

from tetrathlon.envs.grading.writing import integer, plain, same_text


@pytest.mark.parametrize(
    ("text", "gold"),
    [
        (r"\text{B}", "B"),
        ("**$5$**", "5"),
        ("e\u0301", "é"),
        ("é", "e\u0301"),
        ("a\u200bb\ufeff", "ab"),
        (r"\mathrm{B}.", "b"),
        ("ｄｏｇ", "dog"),
    ],
)
def test_the_same_text_written_otherwise(text: str, gold: str) -> None:
    assert same_text(text, gold)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("- 15", -15),
        (r"1{\,}500", 1500),
        (r"1\!,\!500", 1500),
        ("(15)", 15),
        (r"\$15", 15),
        ("(1,5)", None),
        ("~15", None),
        ("{1}{5}", None),
    ],
)
def test_integers_written_otherwise(text: str, number: int | None) -> None:
    assert integer(text) == number


def test_numbers_have_a_bound() -> None:
    assert integer("9" * 300) == int("9" * 300)
    assert integer("9" * 500) is None
    assert integer("0" * 20_000 + "7") is None
    assert integer(" " * 20_000 + "7") is None


def test_long_texts_are_never_equal_by_their_beginnings() -> None:
    assert not same_text("a" * 10_000 + "b", "a" * 10_000)
    assert plain("$$a$$") == "a"
    assert plain("a.") == "a"
    assert plain("$") == "$"
