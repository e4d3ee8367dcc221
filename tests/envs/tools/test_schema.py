"""The schema of a function: every type, descriptions, and what cannot be described."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Annotated, Any, Dict, List, Literal, Optional, Union  # noqa: UP035

import pytest

from tetrathlon.envs.tools.schema import SchemaError, describe

NUMBERS = {"anyOf": [{"type": "integer"}, {"type": "null"}]}


def one(hint: Any) -> Any:
    def function(x: Any) -> None: ...

    function.__annotations__ = {"x": hint}
    return describe(function)["parameters"]["properties"]["x"]


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (int | None, NUMBERS),
        (Optional[int], NUMBERS),  # noqa: UP045
        (Union[int, None], NUMBERS),  # noqa: UP007
        ("int | None", NUMBERS),
        (Annotated[int, "seconds"], {"type": "integer"}),
        (list, {"type": "array"}),
        (List, {"type": "array"}),  # noqa: UP006
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (Sequence[int], {"type": "array", "items": {"type": "integer"}}),
        (list[list[int | None]], {"type": "array", "items": {"type": "array", "items": NUMBERS}}),
        (list[Any], {"type": "array", "items": {}}),
        (dict, {"type": "object"}),
        (Dict, {"type": "object"}),  # noqa: UP006
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (Mapping[str, list[int]], {"type": "object", "additionalProperties": one(list[int])}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (Literal["a", 1, None], {"enum": ["a", 1, None]}),
        (Literal[True], {"type": "boolean", "enum": [True]}),
    ],
)
def test_types(hint: Any, schema: Any) -> None:
    assert one(hint) == schema


@pytest.mark.parametrize(
    "hint", [bytes, complex, tuple[int, int], set[str], dict[int, str], object, Iterator[int], type]
)
def test_types_that_json_does_not_know_are_refused_by_name(hint: Any) -> None:
    with pytest.raises(SchemaError, match=r"tool 'function': parameter 'x' has the type .*take str, int"):
        one(hint)


def test_a_whole_function() -> None:
    def search(query: str, limit: int = 5, tags: list[str] | None = None, *, exact: bool = False) -> str:
        """Search the shop.

        What is sold out is left out.

        Args:
            query: What to look for,
                in any words: names too.
            limit (int): Most results.
            exact: Whether all words must occur.

        Returns:
            Names.

        Raises:
            ValueError: Never.
        """
        return query

    said = describe(search)
    assert said["name"] == "search"
    assert said["description"] == "Search the shop.\n\nWhat is sold out is left out."
    assert said["parameters"] == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for, in any words: names too."},
            "limit": {"type": "integer", "description": "Most results.", "default": 5},
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            "exact": {"type": "boolean", "description": "Whether all words must occur.", "default": False},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    json.dumps(said)


def test_a_method_without_docstring_and_parameters() -> None:
    class Shop:
        def close(self) -> None: ...

    assert describe(Shop.close) == {
        "name": "close",
        "description": "",
        "parameters": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
    }
    assert describe(Shop().close) == describe(Shop.close)


def test_parameters_that_no_call_can_name_are_refused() -> None:
    def many(*names: str) -> None: ...
    def more(**names: str) -> None: ...
    def first(name: str, /) -> None: ...
    def bare(name) -> None: ...

    for function in (many, more, first):
        with pytest.raises(SchemaError, match=f"tool '{function.__name__}': .* cannot be given by its name"):
            describe(function)
    with pytest.raises(SchemaError, match="parameter 'name' needs a type, such as name: str"):
        describe(bare)


def test_functions_that_return_no_result_when_called_are_refused() -> None:
    async def later(x: int) -> int:
        return x

    async def several(x: int) -> AsyncIterator[int]:
        yield x

    def slowly(x: int) -> Iterator[int]:
        yield x

    for function in (later, several, slowly):
        with pytest.raises(SchemaError, match="take a plain function"):
            describe(function)
