"""What the agent reads of its calls."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrathlon.envs.tools.calls import Call
from tetrathlon.envs.tools.results import ERRORS, Result, cut, failed, run, spoken
from tetrathlon.envs.tools.tool import Tool, ToolDown, ToolError


def echo(text: str, times: int = 1) -> str:
    """Say it again."""
    if text == "down":
        raise ToolDown("gone")
    if text == "boom":
        raise ToolError("it went off")
    return text * times


TOOLS = {"echo": Tool.of(echo)}


def test_a_result_of_each_kind() -> None:
    assert run(Call("echo", {"text": "a"}), TOOLS, 1_000) == Result("echo", "a")
    for call, kind, said in (
        (Call(error="no JSON", kind="invalid_json"), "invalid_json", "Error: no JSON"),
        (Call("echo", error="a list", kind="invalid_call"), "invalid_call", "Error: a list"),
        (Call("calc", {}), "unknown_tool", "Error: there is no tool 'calc'; there are echo"),
        (Call("echo", {}), "invalid_arguments", "Error: argument 'text' is missing"),
        (Call("echo", {"text": "boom"}), "tool_error", "Error: it went off"),
    ):
        result = run(call, TOOLS, 1_000)
        assert result == Result(call.name, said, kind) and kind in ERRORS
    with pytest.raises(ToolDown):
        run(Call("echo", {"text": "down"}), TOOLS, 1_000)


def test_names_and_errors_of_any_length_and_kind_are_fit_to_read() -> None:
    result = run(Call("日\ud800" * 1_000, {}), TOOLS, 200)
    assert len(result.name) == 64 and len(result.content) <= 200
    for text in (result.name, result.content, run(Call("echo", {"text": "\udc00a"}), TOOLS, 200).content):
        text.encode()
    result = run(Call("echo", {"x" * 100_000: 1}), TOOLS, 200)
    assert result.error == "invalid_arguments" and len(result.content) <= 200
    assert run(Call("__class__", {}), TOOLS, 200).error == "unknown_tool"


def test_long_output_is_cut_and_says_so() -> None:  # t09
    result = run(Call("echo", {"text": "日", "times": 5_000}), {"echo": TOOLS["echo"]}, 1_000)
    assert len(result.content) == 1_000 and "5,000 characters in all, cut to 1,000" in result.content
    assert set(re.sub(r"\n\[.*\]\n", "", result.content)) == {"日"}
    text = "日" * 5_000 + "END"
    assert cut(text, 1_000).endswith("END") and cut(text, 1_000).startswith("日" * 500)
    assert "5,003 characters" in cut(text, 1_000)
    assert cut("a" * 1_000, 1_000) == "a" * 1_000


@given(st.text(st.characters(), max_size=400), st.integers(0, 300))
def test_a_cut_text_is_unicode_and_no_longer_than_the_limit(text: str, longest: int) -> None:
    seen = cut(text, longest)
    seen.encode()
    assert len(seen) == min(len(text), longest)
    if longest >= 100:
        assert ("characters in all" in seen) == (len(text) > longest)


def test_results_are_spoken_in_order() -> None:
    assert spoken([Result("echo", "a")]) == "a"
    results = [Result("echo", "a"), failed("boom", "it went off", "tool_error", 100), Result("echo", "b")]
    assert spoken(results) == "[1] echo\na\n[2] boom\nError: it went off\n[3] echo\nb"
    long = spoken([Result("echo", "a" * 100_000)] * 64)
    assert len(long) == 1_000_000 and "characters in all, cut to 1,000,000" in long
