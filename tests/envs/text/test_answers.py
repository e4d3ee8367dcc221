"""The answer rule: what is the final answer of a completion, and is it the number that was asked for."""

from __future__ import annotations

import time

import pytest

from tetrathlon.envs.text.answers import final_answer, integer, last_number, plain, plain_answer, same_text, visible


def right(completion: str, gold: str) -> bool:
    """Grade as a numeric or a text task with a boxed or tagged answer does."""
    answer = final_answer(completion)
    if answer is None:
        return False
    return integer(answer) == int(gold) if gold.lstrip("-").isdigit() else same_text(answer, gold)


M05 = [
    ("15", r"I get \boxed{12}. That forgot 3, so it is \boxed{15}.", True),
    ("12", r"I get \boxed{12}. That forgot 3, so it is \boxed{15}.", False),
    ("6", r"\boxed{5} or \boxed{6} or \boxed{7}", False),
    ("B", "<answer>A or B or C</answer>", False),
]
M06 = [
    ("9", r"<think>Perhaps \boxed{9}. Check: 9*", False),
    ("9", r"<think>Perhaps \boxed{9}.</think> Final: \boxed{8}", False),
    ("9", r"<think>Perhaps \boxed{8}.</think> Final: \boxed{9}", True),
    ("9", "First guess.</think>\nFinal: \\boxed{9}", True),
]
MORE = [
    # several fields
    ("5", r"\boxed{5}", True),
    ("5", r"\boxed{5} \boxed{5}", True),
    ("5", "so \\boxed{5}.\n\n**Final answer:** \\boxed{5}", True),
    ("7", r"\boxed{5} or \boxed{6} or \boxed{7}", False),
    ("5", r"\boxed{5} or \boxed{6} or \boxed{7}", False),
    ("6", r"\boxed{6}, \boxed{5}", False),
    ("6", r"\boxed{5}\boxed{6}", False),
    ("56", r"\boxed{5}\boxed{6}", False),
    ("12500", r"\boxed{12},\boxed{500}", False),
    ("-5", r"\boxed{-}\boxed{5}", False),
    ("6", r"\boxed{5} oder \boxed{6}", False),
    ("6", r"\boxed{5} ou \boxed{6}", False),
    ("6", r"\boxed{5} o \boxed{6}", False),
    ("6", r"\boxed{5} или \boxed{6}", False),
    ("6", r"\boxed{5} 或 \boxed{6}", False),
    ("6", r"\boxed{5} \text{ or } \boxed{6}", False),
    ("6", r"\boxed{5}, maybe \boxed{6}", False),
    ("6", r"\boxed{5} / \boxed{6}", False),
    ("6", "<answer>5</answer> or <answer>6</answer>", False),
    ("6", r"<answer>5</answer> or \boxed{6}", False),
    ("6", r"<answer>5</answer> was wrong; it is \boxed{6}", True),
    ("6", r"First \boxed{5} or \boxed{4}; then I checked and it is \boxed{6}", True),
    # inside a field
    ("6", r"\boxed{5 or 6}", False),
    ("6", r"\boxed{5, 6}", False),
    ("6", r"\boxed{6 or 6}", False),
    ("6", r"\boxed{\boxed{6}}", True),
    ("6", r"<answer>\boxed{6}</answer>", True),
    ("6", r"\boxed{<answer>6</answer>}", True),
    ("6", r"<answer>\boxed{5} or \boxed{6}</answer>", False),
    ("6", r"\boxed{$6$}", True),
    ("6", r"\boxed{**6**}", True),
    ("6", r"\boxed{6.}", True),
    ("6", r"\boxed{6.0}", True),
    ("6", r"\boxed{6.5}", False),
    ("6", r"\boxed{}", False),
    ("6", r"\boxed{ 6 }", True),
    ("6", r"\boxed {6}", True),
    ("6", r"\fboxed{6}", True),
    ("6", "boxed{6}", False),
    ("6", "<ANSWER> 6 </Answer>", True),
    ("6", "< answer >6< / answer >", True),
    ("6", "<answer><answer>6</answer></answer>", True),
    ("x", r"\boxed{\{x\}}", False),
    # cut
    ("6", r"\boxed{6", False),
    ("6", r"\boxed{6} and then \boxed{6", False),
    ("6", "<answer>6", False),
    ("6", r"<answer>\boxed{6}", False),
    ("6", "", False),
    # thinking
    ("6", r"<think>\boxed{6}</think>", False),
    ("6", r"<think>a</think><think>b</think>\boxed{6}", True),
    ("6", r"<think>a</think><think>\boxed{6}", False),
    ("6", r"<thinking>\boxed{5}</thinking>\boxed{6}", True),
    ("6", r"<THINK>\boxed{5}</THINK>\boxed{6}", True),
    ("6", r"[THINK]\boxed{5}[/THINK]\boxed{6}", True),
    ("6", r"[THINK]\boxed{6}", False),
    ("6", r"<reasoning>\boxed{5}</reasoning>\boxed{6}", True),
    ("6", r"<scratchpad>\boxed{6}", False),
    ("6", r"\boxed{6}</think>", False),
    ("6", r"\boxed{6} <think>", False),
    # numbers
    ("-17", r"\boxed{−17}", True),
    ("17", r"\boxed{−17}", False),
    ("17", r"\boxed{+17}", True),
    ("12500", r"\boxed{12,500}", True),
    ("12500", r"\boxed{12{,}500}", True),
    ("12500", r"\boxed{12\,500}", True),
    ("1250", r"\boxed{12,50}", False),
    ("4", r"\boxed{0,4}", False),
    ("42", r"\boxed{4²}", False),
    ("42", r"\boxed{4₂}", False),
    ("12", r"\boxed{①②}", False),
    ("42", r"\boxed{4\,2}", False),
    ("42", r"\boxed{4$2}", False),
    ("42", r"\boxed{\$42}", True),
    ("42", r"\boxed{42}", True),
    ("42", r"\boxed{0x2a}", False),
    ("42", r"\boxed{4_2}", False),
    ("42", r"\boxed{6*7}", False),
    ("42", r"\boxed{42 apples}", False),
    ("golden retriever", "<think>dog</think><answer>Golden  Retriever</answer>", True),
    ("golden retriever", "<think>dog</think><answer>e</answer>", False),
    ("golden retriever", "<think>dog</think><answer></answer>", False),
    ("cat", "<answer>cat</answer> <answer>dog</answer>", False),
]


@pytest.mark.parametrize(("gold", "completion", "expected"), M05 + M06 + MORE)
def test_final_answer(gold: str, completion: str, expected: bool) -> None:
    assert right(completion, gold) is expected


def test_opened_thinking_must_end() -> None:
    assert final_answer(r"\boxed{9}", opened=True) is None
    assert final_answer(r"no \boxed{8}</think>\boxed{9}", opened=True) == "9"
    assert visible("a", opened=True) is None


@pytest.mark.parametrize(
    ("completion", "number"),
    [
        ("2 - 5 = -3\n#### -3", "-3"),
        ("#### 3", "3"),
        ("The total is 72 clips, altogether.", "72"),
        ("#### 42\n" + "This agrees with the 7 sums above. " * 40, "42"),
        ("It was $5.", "5"),
        ("2-5", "5"),
        ("it is -5", "-5"),
        ("it is −5", "-5"),
        ("12,500 it is", "12,500"),
        ("3.50", "3.50"),
        ("#### none, so 8", "8"),
        ("Adding 3 and 4 gives 7", "7"),
        ("5 or 6", None),
        ("either 5 or maybe 6", None),
        ("5, 6", None),
        ("5 / 6", None),
        ("5 oder 6", None),
        ("#### 5 or 6", None),
        ("none", None),
        ("", None),
        (r"so \boxed{7", None),
        ("<think>7", None),
    ],
)
def test_last_number(completion: str, number: str | None) -> None:
    assert last_number(completion) == number


@pytest.mark.parametrize(
    ("completion", "line"),
    [
        ("a b c", "a b c"),
        ("Sure!\n\n a b c \n\n", "a b c"),
        ("<think>x</think>\na", "a"),
        ("<think>a", None),
        (r"\boxed{a", None),
        (" \n ", None),
    ],
)
def test_plain_answer(completion: str, line: str | None) -> None:
    assert plain_answer(completion) == line


def test_answers_of_several_lines_keep_their_inside() -> None:
    grid = "1 2\n 3 4\n\n5  6"
    assert final_answer(f"<answer>\n{grid}\n</answer>") == grid
    assert final_answer(f"\\boxed{{{grid}}}") == grid
    assert final_answer('<answer>{"a": "}"}</answer>') == '{"a": "}"}'
    assert final_answer(r'\boxed{{"a": {"b": 1}}}') == '{"a": {"b": 1}}'
    assert final_answer(r"\boxed{\frac{1}{2}}") == r"\frac{1}{2}"
    assert final_answer("<answer>3 < 4 > 2</answer>") == "3 < 4 > 2"


def test_numbers_have_a_bound() -> None:
    assert integer("9" * 300) == int("9" * 300)
    assert integer("9" * 500) is None
    assert integer("0" * 20_000 + "7") is None
    assert integer(" " * 20_000 + "7") is None


def test_long_texts_are_never_equal_by_their_beginnings() -> None:
    assert not same_text("a" * 10_000 + "b", "a" * 10_000)
    assert plain("$$a$$") == "a"
    assert plain("a.") == "a"
    assert plain("$") == "$"


@pytest.mark.parametrize(
    "unit",
    [
        "\\boxed{",
        "\\boxed{5} or ",
        "<answer>",
        "</answer>",
        "<think>",
        "</think>",
        "{",
        "< ",
        "<answer>5</answer>",
        "5, ",
        " ",
        "\\boxed{\\boxed{",
        "### ",
        "9",
        "\\boxed ",
        "<    /   ",
    ],
)
def test_time_is_linear(unit: str) -> None:
    for text in (unit * (1_000_000 // len(unit)), "\\boxed{" + unit * (1_000_000 // len(unit)) + "}"):
        started = time.perf_counter()
        final_answer(text)
        last_number(text)
        plain_answer(text)
        integer(text)
        same_text(text, "5")
        assert time.perf_counter() - started < 5.0
