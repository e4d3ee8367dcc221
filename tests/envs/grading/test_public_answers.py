"""Faults of other graders that were reported in public, each as a case of its kind."""

from __future__ import annotations

import threading
import time

import pytest

from tests.envs.grading.attacks import is_paid
from tetrathlon.envs.grading.answers import final_answer
from tetrathlon.envs.grading.gold import read_gold, same_answer
from tetrathlon.envs.language.formats import VALUE
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.text.mathematics import Math

CASES = [
    # commas: pairs are no numbers, thousands are
    ("0,4", r"\boxed{(0,4)}", True),
    ("0,4", r"\boxed{4}", False),
    ("0,4", r"\boxed{04}", False),
    ("12500", r"\boxed{12,500}", True),
    ("12500", r"\boxed{12{,}500}", True),
    ("1250", r"\boxed{12,50}", False),
    # the minus of Unicode
    ("-17", "−17", True),
    ("-17", r"The answer is \boxed{−17}", True),
    ("-3/4", "−3/4", True),
    ("17", "−17", False),
    # percents are hundredths
    ("35%", "35%", True),
    ("35%", r"35\%", True),
    ("35%", "0.35", True),
    ("35%", "7/20", True),
    ("35%", "3500%", False),
    ("35%", "3.5", False),
    ("35%", "35", False),
    ("35", "35%", False),
    ("0.35", "35%", True),
    # several boxes
    ("15", r"I get \boxed{12}. That forgot 3, so it is \boxed{15}.", True),
    ("12", r"I get \boxed{12}. That forgot 3, so it is \boxed{15}.", False),
    ("6", r"\boxed{5} or \boxed{6} or \boxed{7}", False),
    ("B", "<answer>A or B or C</answer>", False),
    # thinking
    ("9", r"<think>Perhaps \boxed{9}. Check: 9*", False),
    ("9", r"<think>Perhaps \boxed{9}.</think> Final: \boxed{8}", False),
    ("9", r"<think>Perhaps \boxed{8}.</think> Final: \boxed{9}", True),
    ("9", "First guess.</think>\nFinal: \\boxed{9}", True),
    # all of several values
    ("8 and 27", "27", False),
    ("8 and 27", "8", False),
    ("8 and 27", "8, 27", True),
    ("8 and 27", "27 and 8", True),
    ("8 and 27", "8, 27, 64", False),
    # replies without a box
    ("-3", "2 - 5 = -3\n#### -3", True),
    ("-3", "#### 3", False),
    ("72", "The total is 72 clips, altogether.", True),
    ("42", "#### 42\n" + "This agrees with the sum above. " * 12, True),
    ("5", "It was $5.", True),
]


@pytest.mark.parametrize(("gold", "completion", "is_right"), CASES)
def test_public_cases(gold: str, completion: str, is_right: bool) -> None:
    assert is_paid(gold, completion) is is_right


def test_percent_points_are_an_option_with_a_name() -> None:
    for text in ("35%", "35"):
        gold = read_gold(text, percent="points")
        assert [same_answer(answer, gold) for answer in ("35", r"35\%", "0.35")] == [True, True, False]


@pytest.mark.parametrize("text", ["see figure", "", "no idea", "dunno", "yes", "?", "...", "nan", "1/0", r"\boxed{3}"])
def test_an_unreadable_gold_is_refused_when_it_is_read(text: str) -> None:
    with pytest.raises(ValueError, match="cannot be read") as error:
        read_gold(text)
    assert repr(text) in str(error.value)


TOWERS = [
    r"\boxed{\frac{7^{7^{7^{7}}}-7}{6}}",
    r"\boxed{9^{9^{9}}}",
    r"\boxed{100000000!}",
    r"\boxed{" + "(" * 400 + "7" + ")" * 400 + "}",
]


@pytest.mark.parametrize("completion", TOWERS)
def test_towers_are_wrong_at_once(completion: str) -> None:
    assert not is_paid("7", r"\boxed{\sqrt{48}}")  # the prover is up
    started = time.monotonic()
    assert not is_paid("7", completion)
    assert time.monotonic() - started < 10.0  # a second of processor time, on a machine that may be busy


def test_a_worker_thread_scores_as_the_main_thread_does() -> None:
    pairs = [
        ("5", r"\boxed{5}"),
        ("5", r"\boxed{6}"),
        (r"\frac13", r"\boxed{1/3}"),
        (r"\sqrt{8}", r"\boxed{2\sqrt{2}}"),
    ]
    scores: list[list[bool]] = []
    threads = [
        threading.Thread(target=lambda: scores.append([is_paid(gold, completion) for gold, completion in pairs]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert scores == [[True, False, True, True]] * 4


def test_a_label_in_a_tag_is_paid_once_and_whole() -> None:
    completions = [
        "<think>dog</think><answer></answer>",
        "<think>dog</think><answer>e</answer>",
        "<think></think><answer></answer>",
        "<think>a</think><think>b</think><answer>cat</answer><answer>golden retriever</answer>",
        "<think>dog</think><answer>Golden Retriever</answer>",
    ]
    gold = read_gold("golden retriever", kind="text")
    answers = [final_answer(completion) for completion in completions]
    assert [answer is not None and same_answer(answer, gold) for answer in answers] == [False] * 4 + [True]
    env = Math(answer_kind="text", answer_format="tag", format_weight=0.25)
    for answer, paid in (("golden retriever", [0, 0, 0, 0, 1]), ("e", [0, 1, 0, 0, 1])):  # options are letters
        scores = []
        for completion in completions:
            env.reset(options={"task": Task("Which of them is it?", answer)})
            scores.append(env.step(completion)[4]["scores"]["format"])
        assert scores == paid


def test_a_reply_that_is_the_answer_keeps_the_plain_format() -> None:
    kept = ["27 and 8", r"35\%", "(0,4)", "−3/4", r"$\frac{1}{2}$", "42"]
    lost = ["It was $5.", "5 or 6", r"\boxed{5}", "", "no idea"]
    assert [VALUE.keeps(reply) for reply in kept + lost] == [True] * 6 + [False] * 5
