"""The answer rule: what is the final answer of a completion, and is it the number that was asked for."""

from __future__ import annotations

import time

import pytest

from tetrathlon.envs.grading.answers import final_answer, plain_answer
from tetrathlon.envs.grading.numbers import last_number
from tetrathlon.envs.grading.writing import integer, same_text


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


HEDGED = [
    "\\boxed{16} or it could be \\boxed{15}",
    "$x = \\boxed{16}$ or $x = \\boxed{15}$",
    "The answer is \\boxed{16} or the answer is \\boxed{15}",
    "Option 1: \\boxed{16}. Option 2: \\boxed{15}",
    "(a) \\boxed{16} (b) \\boxed{15}",
    "\\boxed{16}; if not, \\boxed{15}",
    "\\boxed{16}, otherwise \\boxed{15}",
    "\\boxed{15} or 16",
    "\\boxed{15} or sixteen",
    "either 14, 16 or \\boxed{15}",
    "14 or \\boxed{15}",
    "\\boxed{16}" + " " * 300 + r"or \boxed{15}",
    "\\boxed{16}" + "or " * 100 + r"\boxed{15}",
    "\\boxed{16} or, if that is wrong, \\boxed{15}",
    "\\boxed{16} = \\boxed{15}",
    "\\boxed{16} \\lor \\boxed{15}",
    "\\boxed{16}. Answer 2: \\boxed{15}",
    "\\boxed{16} oppure \\boxed{15}",
    "\\boxed{16} lub \\boxed{15}",
    "\\boxed{16} eller \\boxed{15}",
    "\\boxed{16} veya \\boxed{15}",
    "\\boxed{16} 또는 \\boxed{15}",
    "\\boxed{16} hoặc \\boxed{15}",
    "\\boxed{16} atau \\boxed{15}",
    "\\boxed{16} أو \\boxed{15}",
    "\\boxed{16} или же \\boxed{15}",
    "\\boxed{16} および \\boxed{15}",
    "\\boxed{16} oder auch \\boxed{15}",
    "\\boxed{16} ou bien \\boxed{15}",
    "\\boxed{16} या \\boxed{15}",
    "\\boxed{16} または \\boxed{15}",
]
ONE_ANSWER = [
    "I get \\boxed{12}. That forgot 3, so it is \\boxed{15}.",
    "Put your final answer in \\boxed{}.\n\\boxed{15}",
    "I will put it between <answer> and </answer>.\n\n<answer>15</answer>",
    "\\boxed{\\text{15}}",
    "\\boxed{\\mathrm{15}}",
    "\\boxed{\\mathbf{15}}",
    "\\boxed{{15}}",
    "\\boxed{\\displaystyle 15}",
    "\\boxed{\\ 15}",
    "\\boxed{~15~}",
    "\\boxed{(15)}",
    "\\boxed{**$15$**}",
    "\\boxed{15}\n\n<answer>15.</answer>",
    "\\boxed{15} = \\boxed{15.0}",
    "\\boxed{7}+\\boxed{8}=\\boxed{15}",
    '<answer id="1">15</answer>',
    "\\fboxed{15}",
    "\\boxed{1\u200b5}",
    "\\boxed{15} or 15 apples",
    "It is odd or even; \\boxed{15}",
    "7 + 8: \\boxed{15}.",
]


@pytest.mark.parametrize("completion", HEDGED)
def test_hedges_are_no_answer(completion: str) -> None:
    assert not right(completion, "15")
    assert not right(completion, "16")


@pytest.mark.parametrize("completion", ONE_ANSWER)
def test_one_answer_in_other_words(completion: str) -> None:
    assert right(completion, "15")


def test_an_empty_last_field_is_no_answer() -> None:
    assert not right(r"\boxed{15} \boxed{}", "15")
    assert not right("<answer>15</answer> <answer></answer>", "15")


def test_answers_of_several_lines_keep_their_inside() -> None:
    grid = "1 2\n 3 4\n\n5  6"
    assert final_answer(f"<answer>\n{grid}\n</answer>") == grid
    assert final_answer(f"\\boxed{{{grid}}}") == grid
    assert final_answer('<answer>{"a": "}"}</answer>') == '{"a": "}"}'
    assert final_answer(r'\boxed{{"a": {"b": 1}}}') == '{"a": {"b": 1}}'
    assert final_answer(r"\boxed{\frac{1}{2}}") == r"\frac{1}{2}"
    assert final_answer("<answer>3 < 4 > 2</answer>") == "3 < 4 > 2"


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
        "<answer>5<" + "\n" * 40_000,
        "<answer" + " " * 40_000,
        "<answer x",
        "<think x",
        "< / think",
        "<|channel|>analysis",
        "or ",
        "\\boxed{5} or" + " " * 300,
        "either 5 or ",
        "**5",
        "\\text{",
        "\\boxed{5} = ",
        "-$ ",
        "é\u0301\u200b",
    ],
)
def test_time_is_linear(unit: str) -> None:
    for text in (unit * (1_000_000 // len(unit)), "\\boxed{" + unit * (1_000_000 // len(unit)) + "}"):
        started = time.process_time()
        final_answer(text)
        last_number(text)
        plain_answer(text)
        integer(text)
        same_text(text, "5")
        assert time.process_time() - started < 5.0


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        (r"negative \boxed{3}", "negative 3"),
        (r"It is half of $\boxed{6}$", "of $ 6 $"),
        (r"\boxed{5} million", "5 million"),
        (r"The answer is \boxed{35}\%.", "35%"),
        (r"\boxed{12} percent", "12%"),
        (r"\boxed{35\%}", r"35\%"),
        (r"The answer is \boxed{5}. Plus, it is nice", "5"),
        (r"Half of 10 is \boxed{5}", "5"),
        (r"So 10 minus 5 is \boxed{5}", "5"),
        (r"\boxed{5} apples", "5"),
    ],
)
def test_words_right_beside_a_field_bear_on_it(completion: str, answer: str) -> None:
    assert final_answer(completion) == answer
