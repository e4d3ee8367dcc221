from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tetrathlon.envs.codec import decode, encode, fingerprint, is_image
from tetrathlon.envs.subject import equal

TEXT = st.text(alphabet=st.characters(exclude_categories=())) | st.sampled_from(
    ["", "\0", "\ud800", "\udc00\ud800", "\ud83d\ude00", "a\ud83d\ude00b😀", "$array", "$text", "$dict", "\u2028\r\n"]
)
DTYPES = st.sampled_from(
    [
        *("bool", "int8", "uint8", "int16", ">i4", "int32", "uint32", "int64", "uint64", "float16", "float32"),
        *(">f8", "float64", "complex64", "complex128", "U3", "S2", "datetime64[s]", "timedelta64[ms]"),
    ]
)
ARRAYS = DTYPES.flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.binary(max_size=5)
KEYS = TEXT | st.integers() | st.tuples(st.integers(), TEXT)


def nested(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.lists(children, max_size=3)
        | st.lists(children, max_size=3).map(tuple)
        | st.dictionaries(TEXT, children, max_size=3)
        | st.dictionaries(KEYS, children, max_size=3)
    )


VALUES = st.recursive(SCALARS | ARRAYS, nested, max_leaves=8)


def through_json(value: Any) -> Any:
    text = json.dumps(encode(value), allow_nan=False, ensure_ascii=True)
    return decode(json.loads(text.encode("ascii")))


@settings(max_examples=300, deadline=None)
@given(VALUES)
@example({"$array": ["<f4", [1], [2.0]]})
@example({"$tuple": [1], "other": {1: 2}})
@example({"\ud83d\ude00": 1})
@example([np.float64("nan"), np.float32("inf"), -0.0, float("-inf"), 2**80])
@example(np.zeros((0, 3), dtype=np.complex64))
@example([np.float64(1.5), np.bool_(True), np.array(2.5), np.complex64(1j)])
def test_round_trip(value: Any) -> None:
    back = through_json(value)
    assert equal(back, value)
    assert fingerprint(back) == fingerprint(value)


@settings(max_examples=100, deadline=None)
@given(VALUES, VALUES)
def test_equal_fingerprints_mean_equal_values(one: Any, other: Any) -> None:
    if fingerprint(one) == fingerprint(other):
        assert equal(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (True, 1),
        ([1], (1,)),
        (0.0, -0.0),
        (np.float32(1), 1.0),
        (np.float32(1), np.array(1, np.float32)),
        (np.zeros(2, np.float32), np.zeros(2)),
        ("1", 1),
        (np.zeros((1, 2, 3), np.uint8), np.zeros((2, 1, 3), np.uint8)),
        (np.zeros((1, 2, 3), np.uint8), np.zeros((1, 2, 3), np.int8)),
    ],
)
def test_values_that_only_look_equal_differ(one: Any, other: Any) -> None:
    assert fingerprint(one) != fingerprint(other)


def test_decoded_arrays_can_be_written_to() -> None:
    for array in (np.zeros(3), np.array([np.nan, 1.0])):
        decoded = through_json(array)
        decoded[0] = 5
        assert decoded[0] == 5


UNPORTABLE: list[Any] = [
    np.zeros(2, dtype="f4,i4"),
    np.zeros((), dtype="V3"),
    np.zeros(2, dtype=np.longdouble),
    np.longdouble(1) / 3,
    np.zeros(2, dtype=np.clongdouble),
]


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, np.array([None]), [print], {"x": {"y": lambda: 0}}, 1j, *UNPORTABLE]
)
def test_what_cannot_be_written_raises(value: Any) -> None:
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        encode(value)


def test_pictures_go_to_the_sink() -> None:
    kept: dict[str, np.ndarray] = {}

    def keep(array: np.ndarray) -> str:
        kept[name := f"p{len(kept)}"] = array
        return name

    pictures = [np.full((2, 3, channels), channels, np.uint8) for channels in (1, 3, 4)]
    others = [np.zeros((2, 3, 2), np.uint8), np.zeros((2, 3), np.uint8), np.zeros((0, 3, 3), np.uint8)]
    assert [is_image(array) for array in pictures + others] == [True] * 3 + [False] * 3
    data = encode({"a": pictures, "b": others}, keep)
    assert len(kept) == 3
    assert equal(decode(data, kept.__getitem__), {"a": pictures, "b": others})
    with pytest.raises(ValueError, match="no folder to read it from"):
        decode(data)


def test_a_fingerprint_is_equal_in_every_process() -> None:
    value = {"b": [1, 2.5, "😀\ud800"], "a": (np.arange(4, dtype=np.float32), None, b"x"), "c": {"y": 1, "x": {}}}
    picture = {"image": np.arange(60, dtype=np.uint8).reshape(4, 5, 3)}
    code = (
        "import numpy as np; from tetrathlon.envs.codec import fingerprint\n"
        "value = {'c': {'x': {}, 'y': 1}, 'a': (np.arange(4, dtype=np.float32), None, b'x'), "
        "'b': [1, 2.5, '😀\\ud800']}\n"
        "picture = {'image': np.arange(60, dtype=np.uint8).reshape(4, 5, 3)}\n"
        "print(fingerprint(value), fingerprint(picture))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "77"},
    )
    assert done.stdout.split() == [fingerprint(value), fingerprint(picture)]
    # Pinned: golden files and the names of saved pictures rest on it.
    assert fingerprint("tetrathlon")[:16] == "d592d2e87a282c95"
    assert fingerprint(picture)[:16] == "82d14d0bb9aa4f19"
