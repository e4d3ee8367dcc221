"""A tool: what calling it gives, whatever it is given and whatever it does; and the world that it belongs to."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest

from tetrathlon.envs.tools.coercion import ArgumentError
from tetrathlon.envs.tools.tool import Tool, ToolDown, ToolError, is_tool, tool
from tetrathlon.envs.tools.world import World


def returning(value: Any) -> Tool:
    return Tool("give", "", {"type": "object", "properties": {}}, lambda: value)


def raising(error: BaseException) -> Tool:
    def fail() -> str:
        raise error

    return Tool.of(fail)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a\nb", "a\nb"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (2.5, "2.5"),
        (math.inf, "inf"),
        (math.nan, "nan"),
        ([1, "日"], '[1, "日"]'),
        ({"a": None}, '{"a": null}'),
        ((1, 2), "[1, 2]"),
        (b"x", "\"b'x'\""),
    ],
)
def test_results_are_text_or_json(value: Any, said: str) -> None:
    assert returning(value).call({}) == said


def test_results_that_cannot_be_said_are_errors_of_the_tool() -> None:
    loop: list[Any] = []
    loop.append(loop)
    deep: Any = []
    for _ in range(sys.getrecursionlimit() * 50):
        deep = [deep]
    for value in (loop, deep, 10**5_000, {(1, 2): 3}):
        with pytest.raises(ToolError, match=r"\w+Error: "):
            returning(value).call({})
    while deep:  # a list this deep must not be left to the interpreter
        deep = deep.pop()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no such file"), "ValueError: no such file"),
        (KeyError("a"), "KeyError: 'a'"),
        (RecursionError("deep"), "RecursionError: deep"),
        (MemoryError(), "MemoryError: "),
        (AssertionError(), "AssertionError: "),
        (StopIteration(3), "StopIteration: 3"),
        (SystemExit(0), "SystemExit: 0"),
        (ToolError("the card was refused"), "the card was refused"),
    ],
)
def test_whatever_a_tool_raises_is_an_error_to_read(error: BaseException, said: str) -> None:
    with pytest.raises(ToolError) as seen:
        raising(error).call({})
    assert str(seen.value) == said


def test_a_tool_that_is_down_and_a_key_that_is_pressed_go_through() -> None:
    with pytest.raises(ToolDown, match="no network"):
        raising(ToolDown("no network")).call({})
    with pytest.raises(KeyboardInterrupt):
        raising(KeyboardInterrupt()).call({})


def test_arguments_are_fitted_first() -> None:
    def times(a: int, b: float = 2.0) -> float:
        return a * b

    assert Tool.of(times).call({"a": "3"}) == "6.0"
    for arguments in ({}, {"a": "x"}, {"a": 1, "c": 2}, {"a": None}, {"a": 1, "b": 10**400}):
        with pytest.raises(ArgumentError):
            Tool.of(times).call(arguments)
    with pytest.raises(ToolError, match="OverflowError"):
        Tool.of(times).call({"a": 10**399})


def test_the_schema_is_fresh() -> None:
    def say(words: list[str]) -> str:
        """Say it."""
        return " ".join(words)

    one = Tool.of(say)
    seen = one.schema()
    assert seen["type"] == "function" and seen["function"]["name"] == "say"
    assert seen["function"]["description"] == "Say it."
    seen["function"]["parameters"]["properties"].clear()
    seen["function"]["parameters"]["required"].clear()
    assert one.schema()["function"]["parameters"]["required"] == ["words"]
    assert one.call({"words": ["a"]}) == "a"


class Counter(World):
    def __init__(self, start: int) -> None:
        self.count = start
        self.log: list[str] = []

    @tool
    def more(self, by: int = 1) -> int:
        """Count on."""
        self.count += by
        self.log.append("more")
        return self.count

    def secret(self) -> int:
        """No tool."""
        return self.count

    @tool
    def less(self) -> int:
        """Count back."""
        return self.more(-1)


class Louder(Counter):
    @tool
    def shout(self, text: str) -> str:
        """Shout."""
        return text.upper()

    @tool
    def more(self, by: int = 10) -> int:
        """Count on faster."""
        return super().more(by)


def test_the_tools_of_a_world() -> None:
    world = Counter(3)
    assert list(world.tools()) == ["more", "less"] and is_tool(Counter.more) and not is_tool(Counter.secret)
    assert world.tools()["more"].call({"by": "4"}) == "7" and world.count == 7
    assert world.tools()["less"].call({}) == "6"
    with pytest.raises(ArgumentError, match="no argument 'self'"):
        world.tools()["more"].call({"self": 1})
    assert Counter(0).tools()["more"].call({}) == "1"
    assert World().tools() == {}


def test_a_world_inherits_and_replaces_tools() -> None:
    tools = Louder(0).tools()
    assert list(tools) == ["more", "less", "shout"]
    assert tools["more"].description == "Count on faster." and tools["more"].call({}) == "10"
    assert list(Counter(0).tools()) == ["more", "less"]


def test_the_state_of_a_world_is_a_copy() -> None:
    world = Counter(3)
    state = world.get_state()
    world.more()
    later = world.get_state()
    world.set_state(state)
    assert (world.count, world.log) == (3, [])
    world.more(5)
    assert state == {"count": 3, "log": []}
    other = Counter(0)
    other.set_state(later)
    other.less()
    assert (other.count, other.log) == (3, ["more", "more"]) and later["log"] == ["more"]
    world.close()
