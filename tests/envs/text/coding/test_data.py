"""Plain data between processes: encoding, bounds, comparison."""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict, namedtuple
from contextlib import suppress
from typing import Any

import pytest

from tetrathlon.envs.text.coding.data import DataError, KindError, decode, encode, read, same, write

Pair = namedtuple("Pair", "a b")

VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -7,
    2**53,
    -(10**5000),
    0.1,
    -0.0,
    math.inf,
    1 + 2j,
    "",
    'é\n"\\\ud800',
    b"\x00\xff",
    [],
    [1, [2.0, (3,)]],
    (),
    (1, "a"),
    {},
    {1: "a", "b": [None], (1, 2): {3}},
    set(),
    {1, "a", (2,)},
    frozenset({b"x"}),
    {"i": "0x1", "nonce": 5},
]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_plain_data_come_back_the_same(value: Any) -> None:
    back = decode(read(write(encode(value))))
    assert back == value and type(back) is type(value)
    assert same(read(write(encode(value))), value)


def test_subclasses_go_as_their_bases() -> None:
    for value, base in ((Counter("aab"), {"a": 2, "b": 1}), (OrderedDict(a=1), {"a": 1}), (Pair(1, 2), (1, 2))):
        assert same(encode(value), base)


def test_order_in_sets_and_dicts_does_not_count() -> None:
    assert encode({3, 1, 2, "a"}) == encode({"a", 2, 1, 3})
    assert encode({"b": 1, "a": 2}) == encode({"a": 2, "b": 1})


@pytest.mark.parametrize(
    "value", [object(), iter([0]), range(3), len, {1: object()}, [bytearray()], type], ids=lambda v: str(type(v))
)
def test_what_is_no_plain_data_is_refused(value: Any) -> None:
    with pytest.raises(KindError, match="of the type"):
        encode(value)


def test_deep_and_large_values_are_refused() -> None:
    deep: Any = 1
    for _ in range(40):
        deep = [deep]
    encode(deep)
    with pytest.raises(DataError, match="deeper than 40"):
        encode([deep])
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(DataError, match="deeper"):
        encode(loop)
    with pytest.raises(DataError, match="100000 parts"):
        encode([0] * 100_000)
    encode([0] * 99_999)


@pytest.mark.parametrize(
    "line",
    ["", "[", "x", "[" * 100_000, '{"a":' * 5_000, "1" * 5_000, '"' + "a" * 1_000_001, '"\\', "[" * 161 + "]" * 161],
)
def test_messages_that_are_none_are_refused(line: str) -> None:
    with pytest.raises(DataError, match="message"):
        read(line)


@pytest.mark.parametrize(
    "line",
    ['"' + '\\"' * 499_000, '"' + '\\"' * 499_000 + "\\", '"' + "\\\n" * 300_000, '"a' * 499_999, "\\" * 999_999,
     "[" + "[]," * 333_000 + "[]]", '{"a":' * 150 + "1" * 900_000, "1" * 900_000 + ".5", "0." + "1" * 900_000,
     "[" + ",".join(["9" * 4_300] * 230) + "]", " " * 999_999, '"' + "\\u00e9" * 160_000 + '"'],
    ids=range(12),
)  # fmt: skip
def test_every_message_is_read_in_linear_time(line: str) -> None:
    begun = time.monotonic()
    with suppress(DataError):
        same(read(line), {1: {2, (3, "a")}, "b": [1.5]})
    assert time.monotonic() - begun < 6  # the slowest takes 0.5 s; a square would take minutes


def test_large_values_are_compared_in_linear_time() -> None:
    begun = time.monotonic()
    many = read('{"s":[' + ",".join(str(number * (2**61 - 1)) for number in range(40_000)) + "]}")
    assert not same(many, {1, 2})
    pairs = read('{"d":[' + ",".join("[[1],2]" for _ in range(20_000)) + "]}")
    assert not same(pairs, dict.fromkeys(range(20_000), 2))
    assert time.monotonic() - begun < 4


def test_brackets_in_texts_are_not_deep() -> None:
    assert read(write("[" * 1_000 + '"{')) == "[" * 1_000 + '"{'


@pytest.mark.parametrize(
    "actual, expected, right",
    [
        (1, 1, True),
        (True, 1, False),
        (1, True, False),
        (0, False, False),
        (0, None, False),
        (1.0, 1, False),
        (1, 1.0, True),
        (True, 1.0, False),
        (10**20, 1e20, False),  # beyond what a float holds exactly
        (0.1 + 0.2, 0.3, True),
        (1.0000009, 1.0, True),
        (1.000002, 1.0, False),
        (1_000_000.9, 1_000_000.0, True),
        (math.nan, math.nan, False),
        (math.nan, 1.0, False),
        (math.inf, math.inf, True),
        (-math.inf, math.inf, False),
        (1e308, math.inf, False),
        (math.inf, 1.0, False),
        ("1", 1, False),
        ("a", "a", True),
        ("a", "A", False),
        ([1], (1,), False),
        ((1,), [1], False),
        ([True], [1], False),
        ([1, 2], [1], False),
        ([], (), False),
        ({}, [], False),
        ({1}, frozenset({1}), False),
        ({True}, {1}, False),
        ({1: 0.3}, {1: 0.1 + 0.2}, True),
        ({True: 1}, {1: 1}, False),
        ({1: 1, 2: 2}, {1: 1}, False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1.0}, {"a": 1}, False),
        (b"a", "a", False),
        (1j, 1j, True),
        ([[0.5, None], "x"], [[0.5, None], "x"], True),
    ],
)
def test_equality_minds_types(actual: Any, expected: Any, right: bool) -> None:
    assert same(encode(actual), expected) is right


@pytest.mark.parametrize("expected", VALUES, ids=range(len(VALUES)))
def test_forged_encodings_equal_nothing(expected: Any) -> None:
    forged = [
        {"f": "1" * 100},
        {"f": [1]},
        {"t": 5},
        {"d": [[1], 2]},
        {"d": [[[1], 2, 3]]},
        {"q": 1},
        {"s": [1, 1]},
        1.5,
    ]
    forged += [{"f": "x"}, {"i": 1}, {"t": [1], "d": []}, {"d": [[1, 2], [1, 3]]}, {"z": "abc"}, {"b": None}]
    assert not any(same(item, expected) for item in forged)
