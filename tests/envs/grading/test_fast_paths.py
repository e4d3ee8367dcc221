"""The fast ways to read answers and numbers find what the slow ones do."""

from __future__ import annotations

import re
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from tetrathlon.envs.grading import reading
from tetrathlon.envs.grading.answers import _FIELD, _final_answer, fields, final_answer, has_field
from tetrathlon.envs.grading.rationals import rational
from tetrathlon.envs.grading.writing import _INTEGER, _LONGEST_NUMBER, integer

_PIECES = [
    *(
        "\\boxed{",
        "\\fbox{",
        "\\boxed {",
        "<answer>",
        "</answer>",
        "<think>",
        "</think>",
        "{",
        "}",
        "\\{",
        "\\}",
        "\\\\",
    ),
    *(
        "\\",
        "\\frac{1}{2}",
        "42",
        "-7",
        "and",
        "or",
        " ",
        "\n",
        "=",
        "$",
        ".",
        "not ",
        "either 3 or ",
        " is wrong",
        "So it is ",
    ),
    *("＜", "ſ", "[", "◁", "5 or "),
]
TEXTS = st.lists(st.sampled_from(_PIECES), max_size=9).map("".join)
BOXES = st.builds("{}\\boxed{{{}}}{}".format, TEXTS, TEXTS, TEXTS)
NUMBERS = st.one_of(
    st.text("+-0123456789., $()\\", max_size=8),
    st.from_regex(r"\A[+-]? ?[0-9]{1,18}(\.[0-9]{0,3})?\Z"),
    st.from_regex(r"\A-?[0-9]{1,3}(,[0-9]{3}){1,2}(\.0)?\Z"),
    st.sampled_from(["٣", "-٣", "²", "-²", "--5", "-", "", "-0", "-007", "−5", "9" * 399, "9" * 401, "-" + "9" * 16]),
)


@given(TEXTS | BOXES, st.booleans())
@settings(max_examples=600, deadline=None)
def test_final_answers(text: str, opened: bool) -> None:
    assert final_answer(text, opened) == _final_answer(text, opened)


def _closed(text: str, position: int) -> int | None:
    """Return where a box ends that opened before ``position``, sign by sign."""
    depth = 1
    while position < len(text):
        if text[position] == "\\" and text[position + 1 : position + 2] in ("{", "}", "\\"):
            position += 1
        else:
            depth += (text[position] == "{") - (text[position] == "}")
            if depth == 0:
                return position
        position += 1
    return None


@given(TEXTS | BOXES)
@settings(max_examples=400, deadline=None)
def test_boxes_end_where_their_braces_do(text: str) -> None:
    match = re.search(r"\\f?boxed\s?\{", text)
    if match is None or "<" in text[: match.start()]:
        return
    end, found = _closed(text, match.end()), fields(text)
    assert (end is None and found is None) or found is None or found[0].end == (end or -1) + 1


@given(TEXTS | BOXES)
def test_a_field_has_its_signs(text: str) -> None:
    assert has_field(text) == (_FIELD.search(text) is not None)


@given(NUMBERS)
@settings(max_examples=400)
def test_integers(text: str) -> None:
    # A full stop at the end is taken away, and then the whole rule is asked.
    assert integer(text) == integer(text + "." if text[-1:].isdigit() else text)
    if len(text) <= _LONGEST_NUMBER and _INTEGER.fullmatch(text):
        assert integer(text) == Fraction(text.replace(",", ""))


@given(NUMBERS)
@settings(max_examples=400)
def test_values(text: str) -> None:
    reading._read.cache_clear()
    if not reading._PROSE.search(text):
        assert reading.read(text) == reading._read(text, False)


@given(st.from_regex(r"\A[+-]?[0-9]{0,20}\.[0-9]{1,20}\Z") | st.from_regex(r"\A[+-]?[0-9]{1,30}\Z"))
def test_decimals(text: str) -> None:
    if not text.isascii():
        return
    assert rational(text) == Fraction(text)
