"""Where thinking ends: marks of many models, paired by name."""

from __future__ import annotations

import pytest

from tetrathlon.envs.grading.answers import final_answer
from tetrathlon.envs.grading.thinking import count_thoughts, visible


def test_opened_thinking_must_end() -> None:
    assert final_answer(r"\boxed{9}", opened=True) is None
    assert final_answer(r"no \boxed{8}</think>\boxed{9}", opened=True) == "9"
    assert visible("a", opened=True) is None


MARKS = [
    ('<think type="x">', "</think>"),
    ("<thoughts>", "</thoughts>"),
    ("<thinking_process>", "</thinking_process>"),
    ("<|think|>", "<|/think|>"),
    ("<seed:think>", "</seed:think>"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
    ("[THINK]", "[/THINK]"),
    ("<think>", "</think>"),
]


@pytest.mark.parametrize(("begin", "end"), MARKS)
def test_marks_of_thinking(begin: str, end: str) -> None:
    assert final_answer(begin + r"so \boxed{9}") is None
    assert final_answer(begin + r"a <reflection>b</reflection> so \boxed{9}") is None
    assert final_answer(begin + r"so \boxed{8}" + end + r"\boxed{9}") == "9"
    assert final_answer(begin + r"so \boxed{8}" + end) is None
    assert count_thoughts(begin + "a" + end + "b") == 1


def test_thinking_is_paired_by_name() -> None:
    assert final_answer(r"<think>a<think>b</think>\boxed{9}") is None
    assert final_answer(r"<think>a<think>b</think>c</think>\boxed{9}") == "9"
    assert final_answer(r"<think/>\boxed{9}") == "9"
    assert final_answer(r'<think type="x"/>\boxed{9}') == "9"
    assert final_answer(r"a <reflection>b</reflection> \boxed{8}</think>\boxed{9}") == "9"
    assert final_answer(r"a <reflection>b</reflection> \boxed{8}", opened=True) is None
    assert final_answer(r"\boxed{9}<|end|>") == "9"
    harmony = r"<|channel|>analysis<|message|>\boxed{8}<|end|><|start|>assistant<|channel|>final<|message|>\boxed{9}"
    assert final_answer(harmony) == "9"
    assert count_thoughts(harmony) == 1
