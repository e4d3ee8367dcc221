"""Symbolic: four operations with one exact answer each."""

from __future__ import annotations

from typing import Any

import pytest

from tetrathlon.envs.language.task import Task
from tetrathlon.envs.text.symbolic import OPERATIONS, Symbolic


def grade(operation: str, gold: str, answer: str) -> bool:
    return Symbolic().is_right(Task("q", gold, {"operation": operation}), answer)


@pytest.mark.parametrize(
    ("operation", "gold", "answer", "expected"),
    [
        ("reverse", "z k a d q", "z k a d q", True),
        ("reverse", "z k a d q", "zkadq", True),
        ("reverse", "z k a d q", "z, k, a, d, q", True),
        ("reverse", "z k a d q", "Z K A D Q", True),
        ("reverse", "z k a d q", "q d a k z", False),
        ("reverse", "z k a d q", "z k a d", False),
        ("reverse", "z k a d q", "z k a d q q", False),
        ("reverse", "z k a d q", "z k a d q or q d a k z", False),
        ("reverse", "z k a d q", "z-k-a-d-q", False),
        ("copy", "q d a k z", r"\text{q d a k z}", True),
        ("copy", "q d a", r"q\ d\ a", True),
        ("copy", "q d a", r"q\ d\ a\ a", False),
        ("sort", "8, 27, 90", r"8,\ 27,\ 90", True),
        ("sort", "8, 27, 90", r"\{8, 27, 90\}", True),
        ("sort", "8, 27, 90", r"\{8, 27, 91\}", False),
        ("copy", "a a", "a", False),
        ("copy", "a a", "aa", True),
        ("copy", "a a", "", False),
        ("larger", "451", "451", True),
        ("larger", "451", "451.", True),
        ("larger", "451", "27 or 451", False),
        ("larger", "451", "451, 27", False),
        ("larger", "451", "27", False),
        ("sort", "8, 27, 90", "8, 27, 90", True),
        ("sort", "8, 27, 90", "8 27 90", True),
        ("sort", "8, 27, 90", "8,27,90", True),
        ("sort", "8, 27, 90", "[8, 27, 90]", True),
        ("sort", "8, 27, 90", "8 < 27 < 90", True),
        ("sort", "8, 27, 90", "8; 27; 90.", True),
        ("sort", "8, 27, 90", "8\n27\n90", True),
        ("sort", "8, 27, 90", "90, 27, 8", False),
        ("sort", "8, 27, 90", "8, 27", False),
        ("sort", "8, 27, 90", "8, 27, 90, 91", False),
        ("sort", "8, 27, 90", "8, 27, 27, 90", False),
        ("sort", "8, 27, 90", "8, 27 or 28, 90", False),
        ("sort", "8, 27, 90", "8 > 27 > 90", False),
        ("sort", "8, 27, 90", "8,, 27, 90", False),
        ("sort", "8, 27, 90", "82790", False),
        ("sort", "8, 27, 90", "-8, 27, 90", False),
        ("sort", "8, 27, 90", "8, 2 7, 90", False),
        ("sort", "8, 27, 90", "8, 27, 90" + " " * 3_000, False),
    ],
)
def test_grading(operation: str, gold: str, answer: str, expected: bool) -> None:
    assert grade(operation, gold, answer) is expected


def test_fields_of_a_list_are_not_glued() -> None:
    env = Symbolic(operations=["sort"])
    env.reset(options={"task": Task("q", "1, 2, 3", {"operation": "sort"})})
    assert env.step(r"\boxed{1}\boxed{2}\boxed{3} or \boxed{1, 2, 3}")[1] == 0.0


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_expert_is_right_and_an_echo_is_not(operation: str) -> None:
    env = Symbolic(operations=(operation,), size=5)
    echoes = 0.0
    for index in range(200):
        prompt, _ = env.reset(options={"index": index})
        assert env.step(env.expert_action())[1] == 1.0
        env.reset(options={"index": index})
        echoes += env.step(rf"\boxed{{{prompt.splitlines()[0].split(': ')[-1]}}}")[1]
    assert echoes == (200 if operation == "copy" else pytest.approx(0, abs=5))


def test_what_is_asked() -> None:
    questions = {op: Symbolic(operations=[op]).reset(seed=1)[0].splitlines()[0] for op in OPERATIONS}
    assert questions["copy"].startswith("Copy these letters: ")
    assert questions["reverse"].startswith("Write these letters in reverse order: ")
    assert questions["larger"].startswith("Which number is larger, ")
    assert questions["sort"].startswith("Sort these numbers from smallest to largest: ")
    letters = questions["copy"].split(": ")[1].split()
    assert len(letters) == 5 and all(len(letter) == 1 for letter in letters)


def test_the_stated_number_of_instances_is_there() -> None:
    env = Symbolic(operations=["larger"], largest=9, split="train")
    other = Symbolic(operations=["larger"], largest=9, split="test")
    train = {env.reset(options={"index": index})[0] for index in range(1_500)}
    test = {other.reset(options={"index": index})[0] for index in range(600)}
    assert len(train | test) == 10 * 9
    assert not train & test


@pytest.mark.parametrize(
    "kwargs",
    [
        {"operations": []},
        {"operations": "copy"},
        {"operations": ["copy", "copy"]},
        {"operations": ["swap"]},
        {"length": 0},
        {"length": 65},
        {"alphabet": "a"},
        {"alphabet": "aab"},
        {"alphabet": "ab,"},
        {"largest": 3},
        {"largest": 1_000_000},
        {"size": 1},
        {"size": 33},
        {"length": 2.5},
        {"size": True},
        {"largest": "9"},
        {"alphabet": 5},
    ],
)
def test_arguments_out_of_range(kwargs: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(kwargs))):
        Symbolic(**kwargs)
