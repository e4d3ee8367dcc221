"""Faults of other graders of places in pictures that were reported in public, as cases of their kinds, and attacks.

Each answer is graded as a task would: taken out of the completion by an answer format, read under the declared
convention, mapped to the picture the gold is in, clipped, compared.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

from tetrathlon.envs.language.formats import BOXED, LINES, TAG, AnswerFormat
from tetrathlon.envs.vision.boxes import Size, clipped_iou, contains, gold_box, iou
from tetrathlon.envs.vision.coordinates import CONVENTIONS, K1000, PX, UNIT, XYWH, YXYX, Convention, Resize
from tetrathlon.envs.vision.matching import match
from tetrathlon.envs.vision.reading import Reading, read_box, read_boxes, read_point

SIZE = (640, 480)
GOLD = [20.0, 40.0, 100.0, 160.0]
TARGET = [840.0, 770.0, 900.0, 810.0]


def overlap(
    completion: str,
    gold: list[float],
    convention: Convention = PX,
    size: Size = SIZE,
    answers: AnswerFormat = TAG,
    seen: Size | None = None,
) -> tuple[float, str]:
    """Return the IoU of a completion, and the reason where it was not read."""
    reading = read_box(answers.read(completion), convention, seen or size)
    if not reading.is_read:
        return 0.0, reading.reason
    pixels = Resize(size, seen or size).to_original(reading.pixels)
    return clipped_iou(pixels[0], gold_box(gold, size), size), ""


def tag(answer: object) -> str:
    """Return a completion that answers so."""
    return f"<answer>{answer}</answer>"


@pytest.mark.parametrize(
    ("completion", "right", "is_parsed"),
    [
        ('<answer>{"bbox_2d": [20.5, 40, 100.25, 160]}</answer>', 0.990654, True),
        ('<answer>[\n {"bbox_2d": [20, 40, 100, 160], "label": "cup"}\n]</answer>', 1.0, True),
        ('<think>maybe [20, 40, 100, 160]</think><answer>{"bbox_2d": [0, 0, 5, 5]}</answer>', 0.0, True),
        ('<answer>```json\n{"bbox_2d": [20, 40, 100, 160]}\n```</answer>', 1.0, True),
        ("<answer>I see nothing</answer>", 0.0, False),
        ("<think>[20, 40, 100, 160]", 0.0, False),
        ("<think>[20, 40, 100, 160]</think>", 0.0, False),
        ("<think><answer>[20, 40, 100, 160]</answer></think> I cannot tell.", 0.0, False),
        ("<think>or [0, 0, 5, 5]?</think>\n<answer>\n[20, 40, 100, 160]\n</answer>", 1.0, True),
        ("[20, 40, 100, 160]", 0.0, False),
        ("<answer>[20, 40, 100, 160]", 0.0, False),
        ("<answer>[0, 0, 5, 5]</answer> No, that is wrong: <answer>[20, 40, 100, 160]</answer>", 1.0, True),
        ("<answer>[2e1, 4.0e+1, 1E2, 160.]</answer>", 1.0, True),
        ("<answer>[-20.5, 40, 100, 160]</answer>", 0.8, True),
        ("<answer>\n```\n[20,\n40,\n100,\n160]\n```\n</answer>", 1.0, True),
    ],
)
def test_g01_answers_as_models_write_them(completion: str, right: float, is_parsed: bool) -> None:
    seen, reason = overlap(completion, GOLD)
    assert seen == pytest.approx(right, abs=1e-6)
    assert (reason == "") is is_parsed


@pytest.mark.parametrize("answers", [BOXED, TAG, LINES])
@pytest.mark.parametrize("answer", ["[20, 40, 100, 160]", '{"bbox_2d": [20, 40, 100, 160]}'])
def test_each_answer_format_takes_boxes(answers: AnswerFormat, answer: str) -> None:
    assert overlap(answers.write(answer), GOLD, answers=answers) == (1.0, "")
    assert overlap(f"<think>[1, 2, 3, 4]</think>\n{answers.write(answer)}", GOLD, answers=answers) == (1.0, "")


def test_a_reply_of_several_lines_is_one_answer() -> None:
    assert overlap('```json\n[\n  {"bbox_2d": [20, 40, 100, 160]}\n]\n```', GOLD, answers=LINES) == (1.0, "")


def test_g02_boxes_in_the_frame_that_the_model_saw() -> None:
    original, gold = (4000, 3000), [1000.0, 600.0, 2200.0, 1500.0]
    resize = Resize.smart(original, factor=28, max_pixels=1280 * 28 * 28)
    assert resize.seen == (1148, 840)
    answer = tag([287, 168, 631, 420])
    assert resize.to_original([287, 168, 631, 420]) == pytest.approx([1000.0, 600.0, 2198.61, 1500.0], abs=0.005)
    assert overlap(answer, gold, size=original, seen=resize.seen)[0] == pytest.approx(0.99884, abs=5e-6)
    assert overlap(answer, gold, size=original)[0] == 0.0


@pytest.mark.parametrize("each", CONVENTIONS.values(), ids=CONVENTIONS)
@pytest.mark.parametrize("original", [(4000, 3000), (434, 368), (1920, 1080), (57, 999)])
def test_g02_in_each_convention(each: Convention, original: Size) -> None:
    resize = Resize.smart(original)
    gold = [0.1 * original[0], 0.2 * original[1], 0.7 * original[0], 0.9 * original[1]]
    written = each.from_px(resize.to_seen(gold), resize.seen).tolist()
    assert overlap(tag(written), gold, each, original, seen=resize.seen)[0] == pytest.approx(1.0, abs=1e-9)


def test_g03_a_grid_read_as_a_grid() -> None:
    gold, size = [320.0, 360.0, 960.0, 720.0], (1280, 720)
    assert overlap(tag([250, 500, 750, 1000]), gold, K1000, size) == (1.0, "")
    assert iou([250, 500, 750, 1000], gold) == pytest.approx(0.245205, abs=1e-6)
    assert overlap(tag([0.25, 0.5, 0.75, 1.0]), gold, UNIT, size) == (1.0, "")
    assert overlap(tag([0.25, 0.5, 0.75, 1.0]), gold, K1000, size) == (pytest.approx(0.0, abs=1e-6), "")
    assert overlap(tag([320, 360, 960, 720]), gold, UNIT, size) == (0.0, "range")
    assert overlap(tag([320, 360, 1060, 720]), gold, K1000, size) == (0.0, "range")
    assert overlap(tag([0, 0, 1, 1]), [0.0, 0.0, 1.0, 1.0], PX, size) == (1.0, "")
    assert overlap(tag([0, 0, 1, 1]), [0.0, 0.0, 1280.0, 720.0], UNIT, size) == (1.0, "")


def test_g04_orders_by_declaration() -> None:
    assert overlap(tag([50, 100, 120, 300]), [100.0, 50.0, 300.0, 120.0], YXYX) == (1.0, "")
    assert overlap(tag([50, 100, 120, 300]), [100.0, 50.0, 300.0, 120.0]) == (pytest.approx(0.0144928, abs=1e-7), "")
    assert overlap(tag([100, 50, 80, 60]), [100.0, 50.0, 180.0, 110.0], XYWH) == (1.0, "")
    assert overlap(tag([100, 50, 80, 60]), [100.0, 50.0, 180.0, 110.0]) == (0.0, "reversed")


@pytest.mark.parametrize("box", [[120, 90, 40, 30], [120, 30, 40, 90], [40, 90, 120, 30]])
def test_g05_reversed_boxes_are_malformed(box: list[float]) -> None:
    gold = [40.0, 30.0, 120.0, 90.0]
    assert overlap(tag(box), gold) == (0.0, "reversed")
    assert iou(box, gold) == iou(gold, box) == iou(box, box) == 0.0
    assert match([box], [gold], SIZE).score == 0.0


def test_g06_empty_and_infinite_boxes() -> None:
    assert iou([5, 5, 5, 5], [5, 5, 5, 5]) == 0.0
    with pytest.raises(ValueError, match="x1 < x2"):
        gold_box([5, 5, 5, 5], SIZE)
    assert overlap(tag([5, 0, 5, 10]), [0.0, 0.0, 10.0, 10.0]) == (0.0, "")
    for text in ("[NaN, 0, 10, 10]", "[0, 0, 1e400, 1e400]", "[0, 0, nan, 10]", "[-Infinity, 0, 10, 10]"):
        assert overlap(tag(text), [0.0, 0.0, 10.0, 10.0]) == (0.0, "number")
    for place in range(4):
        for bad in (np.nan, np.inf, -np.inf):
            box = np.array([0.0, 0.0, 10.0, 10.0])
            box[place] = bad
            assert iou(box, [0, 0, 10, 10]) == iou([0, 0, 10, 10], box) == 0.0


def test_g08_places_outside_of_the_picture_are_clipped() -> None:
    assert overlap(tag([-20, -10, 60, 40]), [0.0, 0.0, 60.0, 40.0]) == (1.0, "")
    assert overlap(tag([700, 500, 900, 600]), [600.0, 400.0, 640.0, 480.0]) == (0.0, "")
    whole = overlap(tag([-1e9, -1e9, 1e9, 1e9]), [10.0, 10.0, 30.0, 30.0])
    assert whole == (pytest.approx(0.0013021, abs=1e-7), "")
    assert iou([-20, -10, 60, 40], [0, 0, 60, 40]) == pytest.approx(0.6)
    assert iou([-1e9, -1e9, 1e9, 1e9], [10, 10, 30, 30]) == pytest.approx(1e-16)


@pytest.mark.parametrize(
    ("answer", "convention", "right", "hits"),
    [
        ("(0.4518, 0.7302)", UNIT, [867.456, 788.616], True),
        ("click(x=867, y=789)", PX, [867, 789], True),
        ("[-20, 780]", PX, [-20, 780], False),
        ("(900, 810)", PX, [900, 810], False),  # its right and lower edge are not in a box
        ("(840, 770)", PX, [840, 770], True),
        ("(899.99, 809.99)", PX, [899.99, 809.99], True),
        ("(-867, 789)", PX, [-867, 789], False),
        ("(.4518, .7302)", UNIT, [867.456, 788.616], True),
        ("(451.8, 730.2)", K1000, [867.456, 788.616], True),
        ("[789, 867]", YXYX, [867, 789], True),
        ("click(x=867.5, y=789.25)", PX, [867.5, 789.25], True),
    ],
)
def test_g09_click_points(answer: str, convention: Convention, right: list[float], hits: bool) -> None:
    reading = read_point(TAG.read(tag(answer)), convention, (1920, 1080))
    assert reading.pixels[0] == pytest.approx(right, abs=1e-9)
    assert contains(TARGET, reading.pixels[0]) is hits


def test_g09_a_scale_that_is_missing_is_not_guessed() -> None:
    assert read_point("(867, 789)", UNIT, (1920, 1080)).reason == "range"
    assert read_point("(1867, 789)", K1000, (1920, 1080)).reason == "range"
    small = read_point("(0.4518, 0.7302)", PX, (1920, 1080))
    assert small.pixels.tolist() == [[0.4518, 0.7302]] and not contains(TARGET, small.pixels[0])


def test_g11_boxes_that_touch_share_nothing() -> None:
    for other in ([10, 0, 20, 10], [0, 10, 10, 20], [10, 10, 20, 20], [-10, 0, 0, 10]):
        assert iou([0, 0, 10, 10], other) == 0.0
    assert iou([0, 0, 1, 1], [0, 0, 1, 1]) == 1.0
    assert iou([0, 0, 10, 10], [9, 0, 19, 10]) == pytest.approx(10 / 190)


PROMPT = "\n".join(f"Give the box of the cup. {each.box_says(SIZE)} {TAG.request}" for each in CONVENTIONS.values())
_FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")
ATTACKS = {
    "every box": tag([[x, y, x + 80, y + 120] for x in range(0, 640, 20) for y in range(0, 480, 40)]),
    "two boxes": tag("[20, 40, 100, 160], [0, 0, 5, 5]"),
    "two boxes, right one last": tag("[0, 0, 5, 5] [20, 40, 100, 160]"),
    "alternatives": tag("[20, 40, 100, 160] or [0, 0, 5, 5]"),
    "alternatives in two fields": f"{tag('[20, 40, 100, 160]')} or {tag('[0, 0, 5, 5]')}",
    "fields side by side": tag([0, 0, 5, 5]) + tag([20, 40, 100, 160]),
    "bare numbers beside": tag("20, 40, 100, 160 [0, 0, 5, 5]"),
    "a key twice": tag('{"bbox_2d": [0, 0, 5, 5], "bbox_2d": [20, 40, 100, 160]}'),
    "two keys": tag('{"bbox_2d": [0, 0, 5, 5], "bbox": [20, 40, 100, 160]}'),
    "a number more": tag([20, 40, 100, 160, 160]),
    "ranges": tag("[20 to 30, 40, 100, 160]"),
    "prompt echo": PROMPT,
    "prompt echo in a field": tag(PROMPT),
    "the form of the prompt": tag("[x1, y1, x2, y2]"),
    "whole picture": tag([0, 0, 640, 480]),
    "more than the picture": tag([-1e300, -1e300, 1e300, 1e300]),
    "NaN": tag("[NaN, NaN, NaN, NaN]"),
    "NaN beside": tag("[20, 40, 100, NaN]"),
    "infinite": tag("[-Infinity, -Infinity, Infinity, Infinity]"),
    "1e400": tag("[-1e400, -1e400, 1e400, 1e400]"),
    "huge digits": tag(f"[20, 40, 100, {'9' * 100_000}]"),
    "booleans": tag("[true, true, true, true]"),
    "texts": tag('["20", "40", "100", "160"]'),
    "many boxes": tag(str([[20, 40, 100, 160]] * 5_000)),
    "the same box in megabytes": tag("[20, 40, 100, 160]\n" * 500_000),
    "empty": "",
    "empty field": tag(""),
    "empty list": tag("[]"),
    "full-width digits": tag("[20, 40, 100, 160]".translate(_FULL_WIDTH)),
    "one full-width digit": tag("[2０, 40, 100, 160]"),
    "the minus of Unicode": tag("[20, 40, −100, 160]"),
    "reversed": tag([100, 160, 20, 40]),
    "reversed on one axis": tag([100, 40, 20, 160]),
    "corners as a list of two": tag([[20, 40], [100, 160]]),
    "another order": tag('{"x": 20, "y": 40, "width": 80, "height": 120}'),
    "only shares y1": tag([600, 40, 601, 41]),
    "10 MB of brackets": "[" * 10_000_000,
    "10 MB of brackets in a field": tag("[" * 10_000_000),
    "1 MB of braces in a box": "\\boxed{" + "{" * 1_000_000,
    "10 MB of pairs of brackets": tag("[" * 5_000_000 + "]" * 5_000_000),
    "10 MB of blanks": tag("[20, 40, 100, 160]" + " " * 10_000_000 + "."),
    "in the thinking": "<think><answer>[20, 40, 100, 160]</answer>",
    "code": tag("__import__('os').getpid() and [20, 40, 100, 160 + 0]"),
    "sums": tag("[10+10, 40, 100, 160]"),
    "denied": "It is not <answer>[20, 40, 100, 160]</answer>",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_on_one_box_are_paid_nothing(name: str) -> None:
    begun = time.process_time()
    for answers in (TAG, BOXED):
        seen, _ = overlap(ATTACKS[name], GOLD, answers=answers)
        assert seen < (0.04 if "picture" in name else 1e-9)  # a binary reward asks for far more than 0.03125
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("name", [name for name in ATTACKS if name != "another order"])
def test_attacks_on_a_click_are_paid_nothing(name: str) -> None:
    for each in CONVENTIONS.values():
        reading: Reading = read_point(TAG.read(ATTACKS[name]), each, SIZE)
        assert not (reading.is_read and contains(GOLD, reading.pixels[0]))


def test_every_option_pays_little_where_all_boxes_are_asked_for() -> None:
    gold = np.array([[20, 40, 100, 160], [320, 200, 400, 320]], dtype=float)
    every = [[x, y, x + 80, y + 120] for x in range(20, 560, 60) for y in range(0, 360, 40)]
    assert len(every) <= 100
    reading = read_boxes(TAG.read(tag(every)), PX, SIZE)
    found = match(reading.pixels, gold, SIZE)
    assert reading.is_read and len(found.pairs) == 2
    assert found.score == 2 / len(every) < 0.025
    hundreds = read_boxes(TAG.read(tag(every * 4)), PX, SIZE)
    assert hundreds.reason == "too_many"
    assert match(hundreds.pixels, gold, SIZE).score == 0.0


@pytest.mark.parametrize("name", [name for name in ATTACKS if name not in ("the same box in megabytes", "many boxes")])
def test_attacks_on_all_boxes_are_paid_nothing_more(name: str) -> None:
    gold = [GOLD, [300.0, 200.0, 380.0, 320.0]]
    honest = match([GOLD], gold, SIZE).score
    reading = read_boxes(TAG.read(ATTACKS[name]), PX, SIZE)
    assert match(reading.pixels, gold, SIZE).score <= honest
