"""The fast ways to read an answer read what the slow ones do."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetrathlon.envs.language.formats import NUMBER, VALUE, PlainFormat

_PIECES = st.sampled_from(
    ["####", "#", " ", "\t", "\n", "-", "+", "0", "42", "123456789012345", "٣", "²", ".", ",", "a"]
)
REPLIES = st.one_of(
    st.from_regex(r"\A(####[ \t]?)?-?[0-9]{1,16}\Z"),
    st.lists(_PIECES, max_size=5).map("".join),
    st.text("#- 0123456789\n.", max_size=24),
)


@pytest.mark.parametrize("format", [NUMBER, VALUE])
@given(reply=REPLIES, echoes=st.lists(st.text("#- 0123456789", max_size=12), max_size=2), part=st.booleans())
@settings(max_examples=400, deadline=None)
def test_a_quick_reply_is_read_as_any_other(format: PlainFormat, reply: str, echoes: list[str], part: bool) -> None:
    slow = PlainFormat(format.reader, format.is_answer)
    asked = [*echoes, reply[:9]] if part else echoes
    assert format.read(reply, asked) == slow.read(reply, asked)


@pytest.mark.parametrize("format", [NUMBER, VALUE])
def test_quick_replies_are_such(format: PlainFormat) -> None:
    assert format.quick is not None
    for reply, answer in (("#### 42", "42"), ("42", "42"), ("-17", "-17"), ("####-7", "-7")):
        match = format.quick.fullmatch(reply)
        assert match is not None and match[1] == answer == format.read(reply)
    assert format.read("12345678", ["12345678"]) is None  # a copy of the prompt
