"""Reading tool calls: every form, what is not one, and what nobody should send."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetrathlon.envs.grading.thinking import count_thoughts, visible
from tetrathlon.envs.tools.calls import MOST_CALLS, Call, read_calls, write_call

PAY = '<tool_call>{"name":"pay","arguments":{"amt":5}}</tool_call>'
PAID = [Call("pay", {"amt": 5})]
ADD = '{"name": "add", "arguments": {"a": 1, "b": 2}}'
ADDED = [Call("add", {"a": 1, "b": 2})]
SECONDS = 2.0  # for the longest actions; on this machine each takes less than half a second


def kinds(text: str) -> list[str]:
    return [call.kind or call.name for call in read_calls(text)]


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>{ADD}</tool_call>",
        f"I add.\n<tool_call>\n{ADD}\n</tool_call>\nDone. <answer>3</answer>",
        f"<tool_call>[{ADD}]</tool_call>",
        '<tool_call>{"name": "add", "parameters": {"a": 1, "b": 2}}</tool_call>',
        '<tool_call>{"arguments": {"a": 1, "b": 2}, "name": "add", "id": "call_1"}</tool_call>',
        '<tool_call>{"function": {"name": "add", "arguments": "{\\"a\\": 1, \\"b\\": 2}"}, "id": "1"}</tool_call>',
        ADD,
        f" \n{ADD}\n ",
        f"[{ADD}]",
        '{"type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": 2}}}',
        '{"content": null, "tool_calls": [{"function": {"name": "add", "arguments": "{\\"a\\":1,\\"b\\":2}"}}]}',
        f"<think>I must add.</think>{ADD}",
        f"Look:\n```json\n{ADD}\n```\nSo.",
        f"```tool_call\n{ADD}\n```",
        f"```JSON \r\n[{ADD}]```",
        f"```\n{ADD}\n```",
        f"```json\n{ADD}",
    ],
)
def test_every_form_is_the_same_call(text: str) -> None:
    assert read_calls(text) == ADDED


@pytest.mark.parametrize(
    "text",
    [
        "",
        "42",
        "<answer>42</answer>",
        "{}",
        "[]",
        '{"name": "Bob", "age": 3}',
        '```json\n{"answer": 3}\n```',
        "```python\nadd(1, 2)\n```",
        "f(x) = {x | x > 3}",
        "</tool_call>",
        "I would call {add}.",
        f"The form is {ADD}, as everybody knows.",
        '{"name": "x"',
        "\ud800{",
    ],
)
def test_what_is_no_call_is_none(text: str) -> None:
    assert read_calls(text) == []


def test_closing_tags_in_strings_are_text() -> None:  # t01
    body = '{"name":"write_file","arguments":{"path":"doc.md","text":"close with </tool_call> tag"}}'
    assert read_calls(f"<tool_call>{body}</tool_call>") == [
        Call("write_file", {"path": "doc.md", "text": "close with </tool_call> tag"})
    ]


INSIDE = [
    "</tool_call>",
    "<tool_call>",
    PAY,
    "```",
    f"```json\n{ADD}\n```",
    "</think>",
    "<think>",
    "<think>x</think>",
    "[/THINK]",
    "[THINK]",
    "◁/think▷",
    "<|channel|>analysis<|message|>",
    "<|end|>",
    '"',
    "\\",
    'a "quoted \\" word"',
    "}]}",
    "\n\t",
    "日本🙂",
    "\u2028\x00\x7f",
]


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("form", ["%s", "<tool_call>%s</tool_call>", "<tool_call>%s", "```json\n%s\n```", "x\n```\n%s"])
@pytest.mark.parametrize("before", ["", "<think>a {plan}</think>\n"])
def test_marks_inside_strings_are_text(inside: str, form: str, before: str) -> None:
    arguments = {"text": inside, inside: [inside]}
    call = {"name": "write", "arguments": arguments}
    for text in (json.dumps(call), json.dumps(call, ensure_ascii=False)):
        assert read_calls(before + form % text) == [Call("write", arguments)]


def test_line_ends_in_strings_are_let_through() -> None:
    assert read_calls('<tool_call>{"name":"run","arguments":{"code":"a = 1\nb = 2\t"}}</tool_call>') == [
        Call("run", {"code": "a = 1\nb = 2\t"})
    ]


@pytest.mark.parametrize("code", ['{"path": "a.txt"}', ' {"path":\n"a.txt"} '])
def test_arguments_in_a_text_are_read_once_more(code: str) -> None:  # t02
    assert read_calls(write_call("read_file", {}).replace("{}", json.dumps(code))) == [
        Call("read_file", {"path": "a.txt"})
    ]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ("[1,2]", "invalid_call"),
        ("5", "invalid_call"),
        ("true", "invalid_call"),
        ('"[1]"', "invalid_call"),
        ('"3"', "invalid_call"),
        ('"\\"{}\\""', "invalid_call"),
        ('"x"', "invalid_json"),
        ('"{"', "invalid_json"),
        ('"{} {}"', "invalid_json"),
        ('"{\\"a\\": 1, \\"a\\": 2}"', "invalid_json"),
        ('"{\\"a\\": NaN}"', "invalid_json"),
    ],
)
def test_arguments_of_another_kind_are_an_error(arguments: str, kind: str) -> None:  # t02
    (call,) = read_calls(f'<tool_call>{{"name":"read_file","arguments":{arguments}}}</tool_call>')
    assert (call.name, call.arguments, call.kind) == ("read_file", {}, kind) and call.error


@pytest.mark.parametrize("arguments", ["null", '""', '" "', '"null"', "{}", '"{}"'])
def test_no_arguments_are_none(arguments: str) -> None:  # t02
    assert read_calls(f'<tool_call>{{"name":"now","arguments":{arguments}}}</tool_call>') == [Call("now")]


def test_a_call_without_arguments_is_one_between_its_tags() -> None:
    assert read_calls('<tool_call>{"name": "now"}</tool_call>') == [Call("now")]
    assert read_calls('{"name": "now"}') == []


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name":"delete","arguments":{"id": }}</tool_call>',
        '<tool_call>{"name":"write_file","arguments":{"path":"r.md","text":"1. Intro',
        "<tool_call>{'name':'delete','arguments':{'id':3}}</tool_call>",
        '<tool_call>{"name":"delete","arguments":{"id":3},}</tool_call>',
        '<tool_call>{"name":"delete","arguments":{"id":3}</tool_call>',
        '<tool_call>{"name":"delete","arguments":{"id":3}}}</tool_call>',
        '<tool_call>{"name":"delete","arguments":{"id":03}}</tool_call>',
        '<tool_call>{"name":"delete","arguments":{"id":3}} and more',
        '<tool_call>{"name":"delete","arguments":{"id":3}} {"name":"delete","arguments":{"id":4}}</tool_call>',
        '<tool_call>{name:"delete","arguments":{"id":3}}</tool_call>',
        '<tool_call>{"name":"delete","arguments":{"id":3}} // now</tool_call>',
        "<tool_call>delete(3)</tool_call>",
        "<tool_call></tool_call>",
        "<tool_call>",
        "<tool_call> \n",
        "<tool_call>{",
        '<tool_call>{"name":"calc","arguments":{"x":"2+3"}',  # t07
        '{"name":"delete","arguments":{"id":3}',
        '```json\n{"name":"delete","arguments":{"id":3},}\n```',
        '```json\n{"name":"delete","arguments":{"id":3}}\n{"name":"delete","arguments":{"id":4}}\n```',
        '{"tool_calls":[{"function":{"name":"delete","arguments":"{}"}}',
        '<tool_call>{"name":"pay","arguments":{"amt":1,"amt":1000}}</tool_call>',
        '<tool_call>{"name":"delete","name":"pay","arguments":{}}</tool_call>',
        '<tool_call>{"name":"pay","arguments":{"a":[{"b":1,"b":1}]}}</tool_call>',
        '<tool_call>{"name":"pay","arguments":{"amt":NaN}}</tool_call>',
        '<tool_call>{"name":"pay","arguments":{"amt":Infinity}}</tool_call>',
        '<tool_call>{"name":"pay","arguments":{"amt":-Infinity}}</tool_call>',
        '<tool_call>{"name":"pay","arguments":{"amt":1e999}}</tool_call>',
        '<tool_call>{"name":"pay","arguments":{"amt":-1e999}}</tool_call>',
        f'<tool_call>{{"name":"pay","arguments":{{"amt":{"9" * 5_000}}}}}</tool_call>',
        f'<tool_call>{{"name":"pay","arguments":{{"amt":{"[" * 65}{"]" * 65}}}}}</tool_call>',
        f'<tool_call>{{"name":"pay","arguments":{{"amt":{"[" * 100_000}',
        f"<tool_call>{'[' * 900}{']' * 900}</tool_call>",
    ],
)
def test_what_is_no_whole_json_never_runs_and_is_one_error(text: str) -> None:  # t03
    (call,) = read_calls(text)
    assert call.kind == "invalid_json" and "not valid JSON" in call.error and len(call.error) < 300


def test_errors_say_where() -> None:
    (call,) = read_calls('Well: <tool_call>{"name":"delete","arguments":{"id": }}</tool_call>')
    assert call.error == "the call is not valid JSON: Expecting value at character 36"
    (call,) = read_calls('<tool_call>{"name":"pay","arguments":{"amt":1,"amt":2}}</tool_call>')
    assert call.error == "the call is not valid JSON: the key 'amt' comes twice"


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>null</tool_call>",
        "<tool_call>3</tool_call>",
        '<tool_call>"add"</tool_call>',
        "<tool_call>[]</tool_call>",
        "<tool_call>[[]]</tool_call>",
        "<tool_call>{}</tool_call>",
        '<tool_call>{"tool_calls": []}</tool_call>',
        '<tool_call>{"arguments": {}}</tool_call>',
        '<tool_call>{"name": "", "arguments": {}}</tool_call>',
        '<tool_call>{"name": null, "arguments": {}}</tool_call>',
        '<tool_call>{"name": ["add"], "arguments": {}}</tool_call>',
        '<tool_call>{"name": true}</tool_call>',
        '<tool_call>{"function": "add", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "add", "arguments": {}, "parameters": {}}</tool_call>',
        '{"name": 3, "arguments": {}}',
    ],
)
def test_json_that_is_no_call_is_an_error(text: str) -> None:
    (call,) = read_calls(text)
    assert call.kind == "invalid_call" and call.error and not call.arguments


THOUGHTS = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<THINK>", "</THINK>"),
    ("<reasoning>", "</reasoning>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
]


@pytest.mark.parametrize(("opens", "closes"), THOUGHTS)
@pytest.mark.parametrize("form", [PAY, '```json\n{"name":"pay","arguments":{"amt":5}}\n```'])
def test_thought_of_calls_never_run(opens: str, closes: str, form: str) -> None:  # t04
    assert read_calls(f"{opens}I will try {form} next.{closes}{form}") == PAID
    assert read_calls(f"{opens}plan {form}{closes}Done.") == []
    assert read_calls(f"{opens}go {form}") == []
    assert read_calls(f"{opens}go <tool_call>{{broken{closes}{form}") == PAID
    assert (
        read_calls(f"{opens}{form}{closes}{form}{opens}{form}{closes}") == []
    )  # and so has the answer it is read with
    if opens[1] != "|":
        assert read_calls(f"the prompt opened it: {form}{closes}{form}") == PAID


@pytest.mark.parametrize(("opens", "closes"), THOUGHTS[:4])
def test_bare_json_behind_thinking_counts(opens: str, closes: str) -> None:
    assert read_calls(f"{opens}{ADD}{closes} {ADD}") == ADDED
    assert read_calls(f"{opens}{ADD}{closes}") == []
    assert read_calls(f"{opens}{ADD}") == []
    assert read_calls(f"{opens}x{closes}Then {ADD}") == []


@pytest.mark.parametrize(
    ("tail", "runs"),
    [
        ("", True),
        ("\n ", True),
        ("<", True),
        ("</tool_c", True),
        ("</tool_call", True),
        ("</tool_call \n", True),
        ("</tool_call>", True),
        ("</tool_d", False),
        ("<tool", False),
        ("x", False),
        ("</tool_c x", False),
    ],
)
def test_an_engine_may_have_cut_the_closing_tag(tail: str, runs: bool) -> None:  # t07
    (call,) = read_calls(f'<tool_call>{{"name":"calc","arguments":{{"x":"2+3"}}}}{tail}')
    assert (call == Call("calc", {"x": "2+3"})) is runs and (call.kind == "invalid_json") is not runs


def test_several_calls_come_in_order() -> None:
    assert [c.arguments["n"] for c in read_calls("".join(write_call("f", {"n": n}) for n in range(5)))] == [*range(5)]
    assert kinds(f"{PAY} <tool_call>{{</tool_call> {PAY} <tool_call>3</tool_call> <tool_call>{ADD}") == [
        "pay",
        "invalid_json",
        "pay",
        "invalid_call",
        "add",
    ]
    assert kinds(f"<tool_call>[{ADD}, 3, {ADD}]</tool_call>") == ["add", "invalid_call", "add"]
    assert kinds(f"[{ADD}, 3, {ADD}]") == ["add", "add"]
    assert kinds(f"```json\n{ADD}\n```\nand\n```json\n{ADD}\n```") == ["add", "add"]
    assert kinds(f"For example\n```json\n{ADD}\n```\n{PAY}") == ["pay"]
    assert kinds(f'<tool_call>{{"name": "x", "arg <tool_call></tool_call>{PAY}') == ["invalid_json", "pay"]
    assert kinds(f"<tool_call>{ADD}{PAY}") == ["invalid_json", "pay"]


def test_nothing_inside_a_broken_call_runs() -> None:
    inside = '{"name":"write","arguments":{"text":"<tool_call>{"name":"pay","arguments":{"amt":5}}</tool_call>"}}'
    assert kinds(f"<tool_call>{inside}</tool_call>") == ["invalid_json"]
    cut = '<tool_call>{"name":"write","arguments":{"text":"no end}}</tool_call>\n'
    assert kinds(f"{cut}{PAY}") == ["invalid_json", "pay"]
    assert kinds(f"```json\n{cut[11:-13]}\n```\n```json\n{ADD}\n```") == ["invalid_json", "add"]
    twice = '{"a": 1, "a": "<tool_call>3</tool_call>"}'
    assert kinds(f"<tool_call>{twice}</tool_call>{PAY}") == ["invalid_json", "pay"]


def test_calls_beyond_the_limit_are_told_of() -> None:  # t08
    assert len(read_calls(PAY * MOST_CALLS)) == MOST_CALLS
    for calls in (read_calls(PAY * (MOST_CALLS + 1)), read_calls(f"[{', '.join([ADD] * 1_000)}]")):
        assert len(calls) == MOST_CALLS + 1 and not calls[MOST_CALLS - 1].error
        assert calls[-1].kind == "invalid_call" and "more than 64" in calls[-1].error


LONG: dict[str, str] = {
    "open tags": "<tool_call>" * 90_000,
    "open tags with JSON": '<tool_call>{"a":' * 60_000,
    "open tags and strings": '<tool_call>"a' * 70_000,
    "open tags and escapes": '<tool_call>"\\"' * 70_000,
    "whole without an end": "<tool_call>1" * 80_000,
    "empty calls": "<tool_call></tool_call>" * 40_000,
    "calls": PAY * 15_000,
    "a tag and blanks": "<tool_call>" + " " * 990_000,
    "a call and blanks": PAY[:-12] + " " * 900_000 + "x",
    "thoughts of calls": "<think>" + PAY * 15_000 + "</think>" + PAY,
    "open fences": '```json\n{"name": x\n' * 50_000,
    "fences without an end": "```json\n{}x" * 90_000,
    "fences and strings": '```json\n{"a":"' * 70_000,
    "fences and depth": ("```json\n" + "[" * 900) * 1_000,
    "ticks": "`" * 999_999 + "{",
    "deep": "<tool_call>" + '{"a":' * 150_000 + "</tool_call>",
    "deep bare": "[" * 500_000 + "]" * 500_000 + "{}",
    "brackets": "][" * 490_000 + "{}",
    "braces": ">{" * 490_000 + "}",
    "keys": "<tool_call>{" + ",".join(f'"{n}":1' for n in range(80_000)) + ',"79999":1}</tool_call>',
    "lists": "<tool_call>[" + "1," * 400_000 + "1]</tool_call>",
    "objects": "[" + "{}," * 300_000 + "{}]",
    "a long text": write_call("f", {"x": "<think>" * 100_000}),
    "a long number": f'<tool_call>{{"name":"f","arguments":{{"x":1.{"3" * 900_000}}}}}</tool_call>',
    "a long exponent": f'<tool_call>{{"name":"f","arguments":{{"x":1e{"3" * 900_000}}}}}</tool_call>',
    "a long integer": f'<tool_call>{{"name":"f","arguments":{{"x":{"3" * 900_000}}}}}</tool_call>',
}


@pytest.mark.parametrize("name", LONG)
def test_no_text_takes_long(name: str) -> None:
    begun = time.process_time()
    calls = read_calls(LONG[name])
    assert time.process_time() - begun < SECONDS
    assert len(calls) <= MOST_CALLS + 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8) | st.sampled_from(INSIDE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.sampled_from(INSIDE), inner),
    max_leaves=6,
)  # fmt: skip
ARGUMENTS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(st.text(max_size=5), JSON, max_size=3)


@given(st.text(min_size=1, max_size=10), ARGUMENTS, st.sampled_from(["", "So: ", "<think>hm</think>", "x</think>\n"]))
@settings(max_examples=150, deadline=None)
def test_what_is_written_is_read(name: str, arguments: dict[str, Any], before: str) -> None:
    written = write_call(name, arguments)
    assert read_calls(before + written) == [Call(name, arguments)]
    assert read_calls(before + written[: -len("</tool_call>")]) == [Call(name, arguments)]
    assert read_calls(before + written + written) == [Call(name, arguments)] * 2
    assert visible(written) == written and count_thoughts(written) == 0  # nor does another reader see marks in it
    assert written.count("<tool_call>") == written.count("</tool_call>") == 1


def test_written_text_has_no_halves_of_characters() -> None:
    written = write_call("say", {"text": "a\ud800b"})
    assert written.isascii() and read_calls(written) == [Call("say", {"text": "a\ud800b"})]


PIECES = [
    "<tool_call>", "</tool_call>", "<think>", "</think>", "[THINK]", "```json\n", "```", "{", "}", "[", "]", '"', "\\",
    ":", ",", '"name"', '"arguments"', '"function"', '"tool_calls"', "null", "1", "NaN", " ", "\n", "x", "\ud800",
    ADD, PAY,
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text())
@settings(max_examples=250, deadline=None)
def test_reading_never_raises(text: str) -> None:
    for call in read_calls(text):
        assert bool(call.error) == bool(call.kind)
        assert call.error or (call.name and isinstance(call.arguments, dict))


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
@settings(max_examples=50, deadline=None)
def test_nothing_runs_out_of_thinking_that_never_ends(text: str) -> None:
    assert read_calls("◁think▷" + text) == []
