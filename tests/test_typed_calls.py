"""Calls as a person types them."""

from __future__ import annotations

import pytest

from tetrathlon.envs.tools.calls import read_calls
from tetrathlon.typed_calls import CallError, OpenQuote, manual, typed_call


@pytest.mark.parametrize(
    ("line", "name", "arguments"),
    [
        ("/lookup name='Ann Lee' attribute=mayor", "lookup", {"name": "Ann Lee", "attribute": "mayor"}),
        ('/add {"a": 1, "b": [2]}', "add", {"a": 1, "b": [2]}),
        ("/add a=1 b=2.5 c=true d=x=y", "add", {"a": 1, "b": 2.5, "c": True, "d": "x=y"}),
        ("/list", "list", {}),
        ("/say text='</tool_call>'", "say", {"text": "</tool_call>"}),
        ("/python code='x = \"a\"\n\nprint(x)\n'", "python", {"code": 'x = "a"\n\nprint(x)\n'}),
        ('/python {"code": "x = 1\\nprint(x)"}', "python", {"code": "x = 1\nprint(x)"}),
    ],
)
def test_a_line_is_a_call(line: str, name: str, arguments: dict[str, object]) -> None:
    (call,) = read_calls(typed_call(line))
    assert (call.name, call.arguments, call.error) == (name, arguments, "")


@pytest.mark.parametrize("line", ["/", "/add 1", "/add {", "/say text='open"])
def test_what_is_no_call_is_told(line: str) -> None:
    with pytest.raises(CallError):
        typed_call(line)


@pytest.mark.parametrize("line", ["/say text='open", '/python code="x = 1'])
def test_an_open_quote_may_go_on(line: str) -> None:
    with pytest.raises(OpenQuote):
        typed_call(line)


def test_the_manual_says_how_each_tool_is_typed() -> None:
    parameters = {"properties": {"a": {}, "b": {}}, "required": ["a"]}
    tool = {"type": "function", "function": {"name": "f", "description": "Adds.\nMore.", "parameters": parameters}}
    assert manual([tool]) == ["/f a= [b=]  Adds."]
