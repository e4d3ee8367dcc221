"""Boxes and points out of final answers."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetrathlon.envs.vision.coordinates import CONVENTIONS, K1000, PX, UNIT, XYWH, YXYX, Convention
from tetrathlon.envs.vision.literals import Pairs, parse
from tetrathlon.envs.vision.reading import LONGEST, MOST_BOXES, REASONS, Reading, read_box, read_boxes, read_point

SIZE = (1280, 720)
BOX = [20.0, 40.0, 100.0, 160.0]
POINT = [867.0, 789.0]


def box(answer: str | None, convention: Convention = PX) -> list[float] | str:
    """Return the box of an answer, or the reason why there is none."""
    return _one(read_box(answer, convention, SIZE))


def point(answer: str | None, convention: Convention = PX) -> list[float] | str:
    """Return the point of an answer, or the reason why there is none."""
    return _one(read_point(answer, convention, SIZE))


def boxes(answer: str | None) -> list[list[float]] | str:
    """Return the boxes of an answer, or the reason why there are none."""
    reading = read_boxes(answer, PX, SIZE)
    return reading.reason or reading.pixels.tolist()


def _one(reading: Reading) -> list[float] | str:
    assert reading.is_read == (len(reading.pixels) == 1) == (reading.said == "")
    found: list[float] | str = reading.pixels[0].tolist() if reading.is_read else reading.reason
    assert reading.is_read or reading.said == REASONS[reading.reason]
    return found


@pytest.mark.parametrize(
    "answer",
    [
        "[20, 40, 100, 160]",
        "(20, 40, 100, 160)",
        "[20.0,40.,+100,1.6e2]",
        "[20 40 100 160]",
        "[ 20 ,\n 40 ,\n 100 ,\n 160 ,\n]",
        "20, 40, 100, 160",
        "20 40 100 160",
        '{"bbox_2d": [20, 40, 100, 160]}',
        '[\n {"bbox_2d": [20, 40, 100, 160], "label": "cup"}\n]',
        '```json\n{"bbox_2d": [20, 40, 100, 160]}\n```',
        '```\n[{"bbox_2d": [20, 40, 100, 160], "label": "cup"}]\n```',
        "Here it is:\n```json\n[20, 40, 100, 160]\n```\nDone.",
        "[{'Position': [20, 40, 100, 160], 'Confidence': 0.9}]",
        '{"BBox": [20, 40, 100, 160]}',
        '{"answer": {"box": [20, 40, 100, 160]}}',
        '{"cup": [20, 40, 100, 160]}',
        '{"label": "cup [1, 2, 3, 4]", "bbox_2d": [20, 40, 100, 160], "score": 0.9, "id": 7, "seen": true}',
        '{"bbox_2d": "[20, 40, 100, 160]"}',
        '{"bbox_2d": [20, 40, 100, 160], "point_2d": [1, 2]}',
        '{"x1": 20, "y1": 40, "x2": 100, "y2": 160}',
        '{"y2": 160, "x2": 100, "y1": 40, "x1": 20}',
        '{"xmin": 20, "ymin": 40, "xmax": 100, "ymax": 160}',
        "x1=20, y1=40, x2=100, y2=160",
        "box(x1=20, y1=40, x2=100, y2=160)",
        "<box>(20,40),(100,160)</box>",
        "<|object_ref_start|>cup<|object_ref_end|><|box_start|>(20,40),(100,160)<|box_end|>",
        "<bbox>20 40 100 160</bbox>",
        "<box>[20, 40, 100, 160]</box>",
        '<box x1="20" y1="40" x2="100" y2="160" alt="cup 3"/>',
        "(20, 40), (100, 160)",
        "((20, 40), (100, 160))",
        "[[20, 40, 100, 160]]",
        "[[[20, 40, 100, 160]]]",
        "The box (in pixels) is [20, 40, 100, 160].",
        "bbox_2d: [20, 40, 100, 160]",
        "Cup 2 of 3 is at [20, 40, 100, 160], it's red",
        "[20, 40, 100, 160] and again [20, 40, 100, 160.0]",
        '{"bbox_2d": [20, 40, 100, 160], "id": ' + "9" * 5000 + ', "score": NaN}',
        r"\[20, 40, 100, 160\]",
        r"\[ [20, 40, 100, 160] \]",
        "[20, 40, 100, 160] (confidence 0.9)",
        "a) [20, 40, 100, 160] (cup 2)",
        "```20, 40, 100, 160```",
    ],
)
def test_a_box_as_models_write_it(answer: str) -> None:
    assert box(answer) == BOX


@pytest.mark.parametrize(
    "answer",
    [
        "click(x=867, y=789)",
        "click(867, 789)",
        "pyautogui.click(x=867, y=789)",
        "CLICK <point>[[867, 789]]</point>",
        "click(start_box='(867,789)')",
        "click(start_box='<|box_start|>(867,789)<|box_end|>')",
        "<point>867 789</point>",
        "<point>867, 789</point>",
        '<point x="867" y="789" alt="button 2">button</point>',
        "<point x=867 y=789/>",
        '<points x1="867" y1="789" alt="buttons">buttons</points>',
        '{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [867, 789]}}',
        '{"point_2d": [867, 789], "label": "button"}',
        '{"bbox_2d": [1, 2, 3, 4], "point_2d": [867, 789]}',
        '{"action": "click", "x": 867, "y": 789}',
        "x: 867\ny: 789",
        "(867, 789)",
        "[867.0, 789]",
        "867, 789",
        "(867, 789)\n(867, 789)",
    ],
)
def test_a_point_as_models_write_it(answer: str) -> None:
    assert point(answer) == POINT


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "no_answer"),
        ("", "nothing"),
        (" \n", "nothing"),
        ("I see nothing", "nothing"),
        ("I see 3 cups", "nothing"),
        ("[]", "nothing"),
        ("{}", "nothing"),
        ("click()", "nothing"),
        ("{\"label\": 'cup 2'}", "nothing"),
        ("[x1, y1, x2, y2]", "nothing"),
        ('{"bbox_2d": null}', "nothing"),
        ("[x1, y1, x2, y2, 5]", "syntax"),
        ("[20, 40, 100, 160", "syntax"),
        ("[20, 40, 100, 160)", "syntax"),
        ("[20,, 40, 100, 160]", "syntax"),
        ("[20, 40; DROP, 160]", "syntax"),
        ("{20, 40, 100, 160}", "syntax"),
        ("[20, 40, x2=100, y2=160]", "syntax"),
        ("[20%, 40%, 100%, 60%]", "syntax"),
        ("[" * 9 + "20, 40, 100, 160" + "]" * 9, "syntax"),
        ("20, 40, 100, 160)", "syntax"),
        ("[20, 40, 100, 160]]", "syntax"),
        ("[20, 40, 100, 160]}", "syntax"),
        ("[20, 40, 100, 160] (20 30)", "length"),
        ("[20, 40, 100, 160] (unseen)", "extra"),
        ('{"bbox_2d": [20, 40, 100, 160], "note": "unseen"}', "extra"),
        ("```5 20 40 100 160```", "length"),
        ('{"x1": 20, "y1": 40, "x2": 100, "y2": 160, "x": 9, "y": 9, "w": 10, "h": 10}', "convention"),
        ('<points x1="20" y1="40" x2="100" y2="160">', "nothing"),
        ("{\"box\": \"{'box': '[20, 40, 100, 160]'}\"}", "syntax"),
        ("[NaN, 0, 10, 10]", "number"),
        ("[0, 0, Infinity, 10]", "number"),
        ("[0, 0, -inf, 10]", "number"),
        ("[0, 0, 1e400, 1e400]", "number"),
        ("[0, 0, " + "9" * 5000 + ", 10]", "number"),
        ("[true, false, 100, 160]", "number"),
        ("[null, 40, 100, 160]", "number"),
        ('["20", "40", "100", "160"]', "number"),
        ("[20px, 40px, 100px, 160px]", "number"),
        ("[0x14, 40, 100, 160]", "number"),
        ("[2_0, 40, 100, 160]", "number"),
        ("[1.2.3, 40, 100, 160]", "number"),
        ("[20²,40,100,160]", "number"),
        ("[20, 40, 100, 160, NaN]", "number"),
        ('{"x1": 20, "y1": 40, "x2": "100", "y2": 160}', "number"),
        ('{"bbox_2d": null, "score": 0.5}', "number"),
        ("[20, 40, 100]", "length"),
        ("[20, 40, 100, 160, 180]", "length"),
        ("[[20, 40], [100, 160]]", "length"),
        ("[20, 40, [100, 160]]", "length"),
        ("[[20, 40, 100, 160], 5]", "length"),
        ("from (20, 40) to (100, 160)", "length"),
        ("(867, 789)", "length"),
        ("[20, 40, 100, 160] or 21, 40, 100, 160", "extra"),
        ("30 50, 100 160: [20, 40, 100, 160]", "extra"),
        ("[20, 40, 100, 160] or [21, 40, 100, 160]", "several"),
        ("[[20, 40, 100, 160], [21, 40, 100, 160]]", "several"),
        ('{"bbox_2d": [20, 40, 100, 160], "bbox_2d": [0, 0, 5, 5]}', "several"),
        ('{"bbox_2d": [20, 40, 100, 160], "box": [0, 0, 5, 5]}', "several"),
        ('{"x1": 20, "y1": 40, "x2": 100, "y2": 160, "x2": 200}', "several"),
        ('{"bbox_2d": "[20, 40, 100, 160] [0, 0, 5, 5]"}', "several"),
        ("<box>(20,40),(100,160)</box><box>(0,0),(5,5)</box>", "several"),
        ('{"x": 20, "y": 40, "width": 80, "height": 120}', "convention"),
        ("[20, 40, 100, 160] " * 101, "too_many"),
        ("[120, 90, 40, 30]", "reversed"),
        ("[120, 30, 40, 90]", "reversed"),
        ("[40, 90, 120, 30]", "reversed"),
    ],
)
def test_what_is_no_box_has_a_reason(answer: str | None, reason: str) -> None:
    assert box(answer) == reason


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("[20, 40, 100, 160]", "length"),
        ("867", "nothing"),
        ("(867, 789), (1, 2)", "several"),
        ("click(867, 789) then click(1, 2)", "several"),
        ("(867,789) 5, 6", "extra"),
        ("(86.7%, 78.9%)", "syntax"),
        ('<points x1="1" y1="2" x2="3" y2="4">', "several"),
        ('<points x1="1" y1="2" x1="3" y1="4">', "nothing"),
        ('<points x1="1" x2="2">', "nothing"),
        ('<points x1="1" y1="2" y2="3">', "nothing"),
        ('{"x": 867, "y": 789, "width": 11, "height": 11}', "convention"),
        ('<point x="867" y="789" w="3" h="4">', "convention"),
        ('{"x": 867, "y": 789, "x2": 900, "y2": 900}', "convention"),
        ("(nan, 789)", "number"),
        ("(八, 789)", "number"),
        ("x = nan, y = 789", "number"),
    ],
)
def test_what_is_no_point_has_a_reason(answer: str, reason: str) -> None:
    assert point(answer) == reason


@pytest.mark.parametrize("answer", ["[20, 40, 100, 160]", "20, 40, 100, 160", '{"bbox_2d": [20, 40, 100, 160]}'])
@pytest.mark.parametrize("zero", ["٠", "०", "０", "𝟎", "𝟘"])
def test_digits_of_other_scripts_are_no_numbers(answer: str, zero: str) -> None:
    there = str.maketrans({str(digit): chr(ord(zero) + digit) for digit in range(10)})
    assert isinstance(box(answer.translate(there)), str)
    assert box(answer.replace("20", "20".translate(there))) == "number"
    assert box(f"[20, 40, 100, 160] {'1, 2, 3, 4'.translate(there)}") == "extra"


def test_numbers_are_in_the_declared_convention() -> None:
    assert box("[0.25, 0.5, 0.75, 1]", UNIT) == box("[250, 500, 750, 1000]", K1000) == [320, 360, 960, 720]
    assert box("[20, 40, 80, 120]", XYWH) == box("[40, 20, 160, 100]", YXYX) == BOX
    assert box("[20, 40, 100, 160]", UNIT) == "range"
    assert box("[20, 40, 100, 1160]", K1000) == "range"
    assert box("[-1, 40, 100, 160]", K1000) == "range"
    assert box("[20, 40, -80, 120]", XYWH) == "reversed"
    assert point("(0.5, 0.25)", UNIT) == [640, 180]
    assert point("(1.5, 0.25)", UNIT) == "range"
    assert point("[789, 867]", YXYX) == POINT


def test_names_say_which_number_is_which_and_may_not_contradict_the_convention() -> None:
    corners, sides = '{"x1": 20, "y1": 40, "x2": 100, "y2": 160}', '{"x": 20, "y": 40, "w": 80, "h": 120}'
    assert box(corners, YXYX) == BOX
    assert box(corners, XYWH) == "convention"
    assert box(sides, XYWH) == box(sides.replace('"w"', "width").replace('"h"', "height"), XYWH) == BOX
    assert box(sides, YXYX) == "convention"
    assert point('{"x": 867, "y": 789}', YXYX) == POINT


def test_places_outside_of_the_picture_are_read_as_they_are() -> None:
    assert point("[-20, 780]") == [-20, 780]
    assert box("[-20, -10.5, 60, 4000]") == [-20, -10.5, 60, 4000]
    assert box("[-1e9, -1e9, 1e9, 1e9]") == [-1e9, -1e9, 1e9, 1e9]
    assert box("[1e308, 0, 1e308, 1]", XYWH) == "number"


def test_a_box_without_area_is_read() -> None:
    assert box("[5, 5, 5, 5]") == [5, 5, 5, 5]


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("[[1,2,3,4],[5,6,7,8]]", [[1, 2, 3, 4], [5, 6, 7, 8]]),
        ("[1,2,3,4]", [[1, 2, 3, 4]]),
        ("[1,2,3,4] [1,2,3,4]", [[1, 2, 3, 4], [1, 2, 3, 4]]),
        ("1. [1,2,3,4]\n2. [5,6,7,8]", [[1, 2, 3, 4], [5, 6, 7, 8]]),
        ("cup 1: [1,2,3,4], cup 2: [5,6,7,8]", [[1, 2, 3, 4], [5, 6, 7, 8]]),
        ('[{"bbox_2d": [1,2,3,4]}, {"bbox_2d": [5,6,7,8]}]', [[1, 2, 3, 4], [5, 6, 7, 8]]),
        ('{"boxes": [[1,2,3,4],[5,6,7,8]]}', [[1, 2, 3, 4], [5, 6, 7, 8]]),
        ("<box>(1,2),(3,4)</box><box>(5,6),(7,8)</box>", [[1, 2, 3, 4], [5, 6, 7, 8]]),
        ("[]", []),
        ('```json\n{"boxes": []}\n```', []),
        ("none", "nothing"),
        ("{}", "nothing"),
        ("(confidence: 0.9)", "nothing"),
        ("[[1,2,3,4],[8,6,7,5]]", "reversed"),
        ("[[1,2,3,4],[5,6,7]]", "length"),
        ("[[1,2,3,4],[5,6,7,NaN]]", "number"),
        ("[[1,2,3,4]] 1, 2, 3", "extra"),
        (str([[0, 0, index, 5] for index in range(MOST_BOXES)]), [[0, 0, index, 5] for index in range(MOST_BOXES)]),
        (str([[0, 0, index, 5] for index in range(MOST_BOXES + 1)]), "too_many"),
        (str([[0, 0, index, 5] for index in range(3000)]), "too_many"),
    ],
    ids=range(20),
)
def test_all_boxes(answer: str, right: list[list[float]] | str) -> None:
    assert boxes(answer) == right


def test_how_many_boxes_are_looked_at_is_the_tasks_choice() -> None:
    assert read_boxes("[[1,2,3,4],[5,6,7,8]]", PX, SIZE, most=1).reason == "too_many"
    assert read_boxes("[[1,2,3,4],[5,6,7,8]]", PX, SIZE, most=2).is_read


def test_shapes() -> None:
    for answer in ("nothing", "[]"):
        assert read_box(answer, PX, SIZE).pixels.shape == read_boxes(answer, PX, SIZE).pixels.shape == (0, 4)
        assert read_point(answer, PX, SIZE).pixels.shape == (0, 2)
    assert read_boxes("[]", PX, SIZE).is_read


N = LONGEST
HOSTILE = {
    "brackets": "[" * N,
    "10 MB of brackets": "[" * 10_000_000,
    "10 MB of closed brackets": "[" * 5_000_000 + "]" * 5_000_000,
    "10 MB of boxes": "[20, 40, 100, 160]" * 600_000,
    "10 MB of digits": "9" * 10_000_000,
    "one too long": "[20, 40, 100, 160]" + " " * N,
    "opened lists": "[1," * (N // 3),
    "opened strings": '["' * (N // 2),
    "opened names": "{'a':" * (N // 5),
    "opened words": "(a" * (N // 2),
    "pairs": "(1,2)" * (N // 5),
    "boxes": "[1,2,3,4]" * (N // 9),
    "points": "1." * (N // 2),
    "fractions": ".1" * (N // 2),
    "numbers": "1 " * (N // 2),
    "commas": "[1" + "," * (N - 2),
    "digits": "9" * N,
    "blanks": "(" + " " * (N - 2) + "1",
    "tabs": "(1" + "\t" * (N - 4) + ",",
    "tags": "<point>" * (N // 7),
    "open tags": "<point " * (N // 7),
    "attributes": "<point " + "x=1 " * (N // 4 - 4) + ">",
    "points of a tag": "<points " + "x1=1 y1=1 " * (N // 10 - 4) + ">",
    "numbered words": "(a 1" * (N // 4),
    "words in a bracket": "(" + "a " * (N // 2 - 1),
    "number in a tag": "<box>" + "1" * (N - 9),
    "fences": "```" * (N // 3),
    "quotes": '"' * N,
    "backslashes": '["' + "\\" * (N - 2),
    "empty lists": "[1][]" * (N // 5),
    "words in brackets": "[a]" * (N // 3),
    "minus": "-" * N,
    "names": "{" + "a:1," * (N // 4 - 1) + "}",
    "NUL": "\0" * N,
    "surrogates": "[\ud800, 40, 100, 160]",
    "binary": bytes(range(256)).decode("latin-1") * 16,
    "deep": "[" * (N // 2) + "]" * (N // 2),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("read", [read_box, read_boxes, read_point])
def test_hostile_answers_are_malformed_and_fast(name: str, read: Callable[[str, Convention, object], Reading]) -> None:
    begun = time.process_time()
    reading = read(HOSTILE[name], PX, SIZE)
    assert time.process_time() - begun < 3
    assert reading.reason in REASONS


@pytest.mark.parametrize("piece", ["(1,2)", "[1,2,3,4]", "1.", ".1", "<point x=", "[]", '"', "1 ", "a:1 ", "(a", "[["])
def test_the_time_is_linear(piece: str) -> None:
    def seconds(length: int) -> float:
        text, best = piece * (length // len(piece)), float("inf")
        for _ in range(3):
            begun = time.process_time()
            read_boxes(text, PX, SIZE)
            best = min(best, time.process_time() - begun)
        return best

    assert seconds(LONGEST) < 40 * seconds(LONGEST // 8) + 0.01  # 64 times where it is quadratic


WRITTEN = st.text(alphabet="0123456789.,-+eE[](){}<>:=;\"'` \nxywhNaNinfpoitbx/２", max_size=80)


@settings(max_examples=500, deadline=None)
@given(st.one_of(WRITTEN, st.text(max_size=60)))
def test_no_text_raises(text: str) -> None:
    for convention in CONVENTIONS.values():
        for reading, width in (
            (read_box(text, convention, SIZE), 4),
            (read_boxes(text, convention, SIZE), 4),
            (read_point(text, convention, SIZE), 2),
        ):
            assert reading.pixels.shape[1] == width and np.isfinite(reading.pixels).all()
            assert reading.is_read or (reading.reason in REASONS and not len(reading.pixels))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-1e9, 1e9), min_size=4, max_size=4))
def test_any_numbers_come_back(numbers: list[float]) -> None:
    x, y = sorted(numbers[::2]), sorted(numbers[1::2])
    written = [x[0], y[0], x[1], y[1]]
    assert box(str(written)) == box(f"It is {written}") == box(str({"bbox_2d": written})) == written


def test_every_reason_is_given() -> None:
    answers = [None, "a" * (N + 1), "", "[1, 2", "[NaN]", "[1]", "[1,2,3,4] 1, 2", "[1,2,3,4] [1,2,3,5]", "[4,3,2,1]"]
    given = {box(answer) for answer in answers if isinstance(box(answer), str)}
    given |= {box('{"x": 1, "y": 2, "w": 3, "h": 4}'), box("[1,2,3,4]", UNIT), boxes("[1,2,3,4]" * 101)}  # type: ignore[arg-type]
    assert given == set(REASONS)


def test_a_wrong_size_is_the_programs_fault() -> None:
    with pytest.raises(ValueError, match="integers from 1"):
        read_box("[1, 2, 3, 4]", PX, (0, 5))


def test_literals() -> None:
    text = "{'a': [1, 'b', (2 -.5e1)], \"c\" = {d: nan}, e: '\\'', a: 3}"
    assert parse(text, 0) == (
        Pairs([("a", [1.0, "b", [2.0, -5.0]]), ("c", Pairs([("d", None)])), ("e", "\\'"), ("a", 3.0)]),
        len(text),
    )
    assert parse("..[1]..", 2) == ([1.0], 5)
    assert parse("[1e400]", 0) == ([None], 7)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("[10+10, 40, 100]", "syntax"),
        ("[20+40+100+160]", "syntax"),
        ("[20-40, 100-160]", "syntax"),
        ("[20, 40, 100, 160] or unseen", "extra"),
        ("unseen [20, 40, 100, 160]", "extra"),
        ("Unseen. [20, 40, 100, 160]", "extra"),
        ("[20, -40, 100, 160]", ""),
        ('{"x_min": 20, "y_min": 40, "x_max": 100, "y_max": 160}', ""),
        ("the unseenly thing: [20, 40, 100, 160]", ""),
    ],
)
def test_sums_ranges_and_two_answers_in_one_are_no_box(answer: str, reason: str) -> None:
    assert read_box(answer, PX, (640, 480)).reason == reason


def test_sums_and_ranges_are_no_point() -> None:
    assert [read_point(answer, PX, (640, 480)).reason for answer in ("(10+20)", "(10-20)", "(10, 20)")] == [
        "syntax",
        "syntax",
        "",
    ]
