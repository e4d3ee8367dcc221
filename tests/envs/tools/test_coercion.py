"""Arguments made to fit a schema: what means the same is taken, all else is refused by name."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetrathlon.envs.tools.coercion import ArgumentError, coerce

TEXT, WHOLE, NUMBER, TRUTH, NULL = ({"type": t} for t in ("string", "integer", "number", "boolean", "null"))
HUGE = 10**400
REFUSED = object()


def fit(schema: Any, value: Any) -> Any:
    parameters = {"type": "object", "properties": {"x": schema}, "required": ["x"], "additionalProperties": False}
    try:
        return coerce(parameters, {"x": value})["x"]
    except ArgumentError as error:
        assert "argument 'x" in str(error)
        return REFUSED


@pytest.mark.parametrize(
    ("schema", "value", "fitted"),
    [
        (TEXT, "a", "a"),
        (TEXT, "", ""),
        (TEXT, 7, "7"),
        (TEXT, 2.5, "2.5"),
        (TEXT, HUGE, str(HUGE)),
        (TEXT, "\ud800", "\ud800"),
        (TEXT, True, REFUSED),
        (TEXT, None, REFUSED),
        (TEXT, ["a"], REFUSED),
        (TEXT, {}, REFUSED),
        (WHOLE, 3, 3),
        (WHOLE, 3.0, 3),
        (WHOLE, -0.0, 0),
        (WHOLE, 1e300, int(1e300)),
        (WHOLE, HUGE, HUGE),
        (WHOLE, -HUGE, -HUGE),
        (WHOLE, " -3 ", -3),
        (WHOLE, "+3", 3),
        (WHOLE, str(HUGE - 1), HUGE - 1),
        (WHOLE, "9" * 401, REFUSED),
        (WHOLE, "9" * 100_000, REFUSED),
        (WHOLE, 3.5, REFUSED),
        (WHOLE, math.inf, REFUSED),
        (WHOLE, math.nan, REFUSED),
        (WHOLE, True, REFUSED),
        (WHOLE, False, REFUSED),
        (WHOLE, "3.0", REFUSED),
        (WHOLE, "1_000", REFUSED),
        (WHOLE, "0x10", REFUSED),
        (WHOLE, "٣", REFUSED),
        (WHOLE, "three", REFUSED),
        (WHOLE, "", REFUSED),
        (WHOLE, None, REFUSED),
        (WHOLE, [3], REFUSED),
        (NUMBER, 3, 3),
        (NUMBER, 2.5, 2.5),
        (NUMBER, "2.5", 2.5),
        (NUMBER, "-.5e-3", -0.0005),
        (NUMBER, "1.", 1.0),
        (NUMBER, "1e999", REFUSED),
        (NUMBER, "nan", REFUSED),
        (NUMBER, "Infinity", REFUSED),
        (NUMBER, math.nan, REFUSED),
        (NUMBER, -math.inf, REFUSED),
        (NUMBER, HUGE, REFUSED),
        (NUMBER, True, REFUSED),
        (NUMBER, "1,5", REFUSED),
        (NUMBER, "", REFUSED),
        (TRUTH, True, True),
        (TRUTH, "true", True),
        (TRUTH, " False ", False),
        (TRUTH, 1, REFUSED),
        (TRUTH, 0.0, REFUSED),
        (TRUTH, "yes", REFUSED),
        (TRUTH, None, REFUSED),
        (NULL, None, None),
        (NULL, "null", REFUSED),
        (NULL, 0, REFUSED),
    ],
)
def test_scalars(schema: Any, value: Any, fitted: Any) -> None:
    seen = fit(schema, value)
    assert type(seen) is type(fitted) and seen == fitted


@pytest.mark.parametrize(
    ("schema", "value", "fitted"),
    [
        ({"type": "array", "items": WHOLE}, ["1", 2.0, 3], [1, 2, 3]),
        ({"type": "array", "items": WHOLE}, "[1, 2]", [1, 2]),
        ({"type": "array", "items": WHOLE}, [True], REFUSED),
        ({"type": "array", "items": WHOLE}, [[1]], REFUSED),
        ({"type": "array", "items": WHOLE}, 1, REFUSED),
        ({"type": "array", "items": WHOLE}, "1, 2", REFUSED),
        ({"type": "array", "items": WHOLE}, {"0": 1}, REFUSED),
        ({"type": "array", "items": {"type": "array", "items": WHOLE}}, '["[1]", ["2"]]', [[1], [2]]),
        ({"type": "array"}, [1, "a", None, [HUGE]], [1, "a", None, [HUGE]]),
        ({"type": "array"}, "[NaN]", REFUSED),
        ({"type": "array"}, '[{"a": 1, "a": 2}]', REFUSED),
        ({"type": "array"}, "[1e999]", REFUSED),
        ({"type": "array"}, "[" * 70 + "]" * 70, REFUSED),
        ({"type": "array"}, "[" * 100_000, REFUSED),
        ({"type": "object", "additionalProperties": WHOLE}, {"a": "1"}, {"a": 1}),
        ({"type": "object", "additionalProperties": WHOLE}, '{"a": 1.0}', {"a": 1}),
        ({"type": "object", "additionalProperties": WHOLE}, {"a": "b"}, REFUSED),
        ({"type": "object"}, {"a": [None]}, {"a": [None]}),
        ({"type": "object"}, [], REFUSED),
        ({"type": "object"}, None, REFUSED),
        ({"type": "object"}, "a", REFUSED),
        ({"properties": {"a": WHOLE}, "required": ["a"]}, {"a": "1"}, {"a": 1}),
        ({"properties": {"a": WHOLE}, "required": ["a"]}, '{"a": "1"}', {"a": 1}),
        ({"properties": {"a": WHOLE}, "required": ["a"]}, {}, REFUSED),
        ({}, {"a": 1}, {"a": 1}),
        (True, [None], [None]),
        ({"enum": ["a", "b"], "type": "string"}, "a", "a"),
        ({"enum": ["a", "b"], "type": "string"}, "c", REFUSED),
        ({"enum": ["a", "b"], "type": "string"}, "A", REFUSED),
        ({"enum": [1, 2], "type": "integer"}, "2", 2),
        ({"enum": [1, 2], "type": "integer"}, True, REFUSED),
        ({"enum": [1, "a", None]}, True, REFUSED),
        ({"enum": [True]}, 1, REFUSED),
        ({"enum": [1, "a", None]}, None, None),
        ({"const": 3}, 4, REFUSED),
        ({"type": "integer", "minimum": 1, "maximum": 5}, "5", 5),
        ({"type": "integer", "minimum": 1, "maximum": 5}, 0, REFUSED),
        ({"type": "integer", "minimum": 1, "maximum": 5}, HUGE, REFUSED),
        ({"type": "number", "minimum": 0.5}, 0, REFUSED),
        ({"anyOf": [WHOLE, NULL]}, None, None),
        ({"anyOf": [WHOLE, NULL]}, "3", 3),
        ({"anyOf": [WHOLE, NULL]}, "x", REFUSED),
        ({"anyOf": [WHOLE, TEXT]}, "3", "3"),
        ({"anyOf": [TEXT, WHOLE]}, 3, 3),
        ({"anyOf": [WHOLE, NUMBER]}, 2.0, 2.0),
        ({"oneOf": [TRUTH, WHOLE]}, 1, 1),
        ({"type": ["integer", "null"]}, None, None),
        ({"type": ["integer", "null"], "minimum": 2}, "1", REFUSED),
        ({"anyOf": [{"type": "array", "items": WHOLE}, WHOLE]}, "4", 4),
        ({"anyOf": [{"type": "array", "items": WHOLE}, WHOLE]}, ["4"], [4]),
        ({"allOf": [{"type": "integer"}, {"minimum": 3}]}, "3", 3),
        ({"allOf": [{"type": "integer"}, {"minimum": 3}]}, "2", REFUSED),
        (
            {"type": "object", "properties": {"a": WHOLE}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"a": "1"},
            {"a": 1},
        ),
        ({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"c": 1}, REFUSED),
        ({"$ref": "#/nowhere"}, 3, 3),
        ({"$ref": "#"}, {"x": 3}, REFUSED),
        ({"type": "strange"}, 3, 3),
    ],
)
def test_what_is_put_together(schema: Any, value: Any, fitted: Any) -> None:
    assert fit(schema, value) == fitted


def test_missing_and_unknown_arguments_are_named() -> None:
    schema = {
        "type": "object",
        "properties": {"path": TEXT, "more": {"type": "object", "properties": {"n": WHOLE}, "required": ["n"]}},
        "required": ["path"],
        "additionalProperties": False,
    }
    for arguments, said in (
        ({}, "argument 'path' is missing"),
        ({"file": "a"}, "there is no argument 'file'; there are path, more"),
        ({"path": "a", "self": 1}, "there is no argument 'self'; there are path, more"),
        ({"path": None}, "argument 'path' must be of type string, got null"),
        ({"path": "a", "more": {}}, "argument 'more.n' is missing"),
        ({"path": "a", "more": {"n": [1]}}, r"argument 'more.n' must be of type integer, got \[1\]"),
        ({"p" * 100_000: 1}, "there is no argument 'p{100}'; there are path, more"),
        ({"path": [1] * 100_000}, r"got \[1, 1, .{60,80}\.\.\.$"),
    ):
        with pytest.raises(ArgumentError, match=said):
            coerce(schema, arguments)
    with pytest.raises(ArgumentError, match="there are none"):
        coerce({"type": "object", "additionalProperties": False}, {"a": 1})
    assert coerce(schema, {"path": "a"}) == {"path": "a"}


TREE: Mapping[str, Any] = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/tree"}},
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {"value": WHOLE, "left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#/$defs/tree"}},
            "additionalProperties": False,
        },
        "loop": {"$ref": "#/$defs/loop"},
        "both": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/both"}}] * 2 + [WHOLE]},
    },
}


def test_references() -> None:
    assert coerce(TREE, {"tree": {"value": "1", "left": {"value": 2.0}}}) == {
        "tree": {"value": 1, "left": {"value": 2}}
    }
    with pytest.raises(ArgumentError, match=r"'tree.left.up'"):
        coerce(TREE, {"tree": {"left": {"up": 1}}})
    deep: Any = {}
    for _ in range(50):
        deep = {"left": deep}
    with pytest.raises(ArgumentError, match="too deep"):
        coerce(TREE, {"tree": deep})
    with pytest.raises(ArgumentError, match="too deep"):
        coerce({**TREE, "properties": {"x": {"$ref": "#/$defs/loop"}}}, {"x": 1})


def test_no_schema_and_no_value_take_long() -> None:
    both = {**TREE, "properties": {"x": {"$ref": "#/$defs/both"}}}
    deep: Any = "1"
    for _ in range(20):
        deep = [deep]
    begun = time.process_time()
    with contextlib.suppress(ArgumentError):
        coerce(both, {"x": deep})
    with pytest.raises(ArgumentError, match="too many parts"):
        coerce({"type": "object", "properties": {"x": {"type": "array", "items": WHOLE}}}, {"x": [1] * 500_000})
    assert time.process_time() - begun < 4.0


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(HUGE) | st.floats() | st.text(max_size=5) | st.just("[1]"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
SCHEMAS = st.recursive(
    st.sampled_from([TEXT, WHOLE, NUMBER, TRUTH, NULL, {}, {"enum": [1, "a"]}, {"type": "integer", "minimum": 2}]),
    lambda inner: (
        st.builds(lambda item: {"type": "array", "items": item}, inner)
        | st.builds(lambda item: {"type": "object", "additionalProperties": item}, inner)
        | st.builds(lambda *items: {"anyOf": list(items)}, inner, inner)
    ),
    max_leaves=4,
)


@given(SCHEMAS, VALUES)
@settings(max_examples=200, deadline=None)
def test_what_fits_fits_again_and_nothing_else_raises(schema: Any, value: Any) -> None:
    fitted = fit(schema, value)
    if fitted is not REFUSED and fitted == fitted:
        again = fit(schema, fitted)
        assert again is not REFUSED and str(again) == str(fitted)
