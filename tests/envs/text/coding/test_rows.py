"""Rows of public data sets: what is read, what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tetrathlon.envs.language.dataset import MissingField, Row
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.text.coding.environment import Code
from tetrathlon.envs.text.coding.grader import Asserts, Budget, Streams
from tetrathlon.envs.text.coding.rows import ReadProgram

BUDGET = Budget(seconds=3.0)
HUMANEVAL = {
    "task_id": "HumanEval/38",
    "prompt": "from typing import List\n\n\ndef twice(text: str) -> str:\n    return text * 2\n\n\n"
    'def half(text: str) -> str:\n    """ Undo twice.\n    >>> half(twice("ab"))\n    \'ab\'\n    """\n',
    "entry_point": "half",
    "canonical_solution": "    return text[: len(text) // 2]\n",
    "test": "\n\nMETADATA = {}\n\n\ndef check(candidate):\n    from random import choice\n"
    "    for n in range(5):\n        text = ''.join(choice('abc') for _ in range(n))\n"
    "        assert candidate(twice(text)) == text\n",
}
MBPP = {
    "task_id": 602,
    "text": "Write a python function to add two numbers.",
    "code": "def add(a,b):\r\n  return a+b",
    "test_list": ["assert add(1,2)==3", "assert add(-1,1)==0", "assert add(0,0)==0"],
    "test_setup_code": "",
    "challenge_test_list": [],
}
APPS = {
    "question": "Add the two numbers of a line.",
    "inputs": ["1 2\n", "3 4\n"],
    "outputs": ["3\n", "7\n"],
    "solutions": ["print(sum(map(int, input().split())))"],
}


def task_of(row: Mapping[str, Any], verify: bool = False) -> Task:
    return ReadProgram(BUDGET, verify)(Row(row, "rows.jsonl, line 1"))


def without(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


@pytest.mark.parametrize("row", [HUMANEVAL, MBPP, APPS], ids=["humaneval", "mbpp", "apps"])
def test_the_rows_own_solution_passes(row: Mapping[str, Any]) -> None:
    task = task_of(row, verify=True)
    assert task.data["tests"].judge(task.answer, BUDGET).is_right


def test_humaneval() -> None:
    task = task_of(HUMANEVAL)
    tests = task.data["tests"]
    assert task.question.startswith("Complete this Python function:\n\nfrom typing import List")
    assert "check" not in task.question and tests.names == ("half",) and len(tests) == 1
    assert tests.judge("def half(text: str): return text[:len(text) // 2]", BUDGET).is_right
    assert tests.judge("def half(text: List): return twice(text)[:len(text) // 2]", BUDGET).is_right  # its helpers
    assert not tests.judge(HUMANEVAL["prompt"], BUDGET).is_right
    assert not tests.judge("def half(text): return text", BUDGET).is_right
    assert not tests.judge("def twice(text): return text\ndef half(text): return text", BUDGET).is_right


@pytest.mark.parametrize(
    "code, passed",
    [
        ("import sys; sys.exit(0)", 0),
        ('import os; print("ok"); os._exit(0)', 0),
        ('raise SystemExit("all 3 tests passed")', 0),
        ("def add(a,b): return a+b", 3),
        ("def add(a, b): return {(1, 2): 3}.get((a, b))", 1),  # what is shown, by heart
    ],
)
def test_mbpp(code: str, passed: int) -> None:
    task = task_of(MBPP)
    assert "assert add(1,2)==3" in task.question and "add(-1,1)" not in task.question
    assert task.data["tests"].judge(code, BUDGET).passed == passed


def test_mbpp_in_its_other_forms() -> None:
    row = without(MBPP, "text") | {
        "prompt": "Add.",
        "test_imports": ["import math"],
        "challenge_test_list": ["assert math.isclose(add(0.1, 0.2), 0.3)", "assert operator.eq(add(2, 2), 4)"],
    }
    tests = task_of(row, verify=True).data["tests"]
    assert len(tests) == 5 and "import operator" in tests.setup  # forgotten by the row
    assert task_of(without(row, "code")).data["tests"].names == ("add",)
    shadow = {"code": "def sum(a, b): return a + b", "test_list": ["assert sum(1, 2) == 3"]}
    assert task_of(MBPP | shadow, verify=True).data["tests"].names == ("sum",)


def test_apps_in_its_other_forms() -> None:
    given = json.dumps({"inputs": APPS["inputs"], "outputs": APPS["outputs"]})
    row = {"question": "Add.", "input_output": given, "solutions": json.dumps(APPS["solutions"])}
    task = task_of(row, verify=True)
    assert isinstance(task.data["tests"], Streams) and task.data["tests"].cases == (("1 2\n", "3\n"), ("3 4\n", "7\n"))
    assert task_of(without(row, "solutions")).answer == ""
    assert task_of(row | {"solution": "pass"}).answer == "pass"


@pytest.mark.parametrize(
    "row, why",
    [
        (HUMANEVAL | {"test": "def check(candidate:"}, "the test cannot be parsed"),
        (HUMANEVAL | {"prompt": "def f("}, "the prompt cannot be parsed"),
        (HUMANEVAL | {"test": 5}, "'test' must hold source text, got '5'"),
        (MBPP | {"test_list": []}, "at least one test"),
        (MBPP | {"test_list": "assert add(1, 2) == 3"}, "must hold a list of texts"),
        (MBPP | {"test_list": ["assert add(1,"]}, "the tests cannot be parsed"),
        (MBPP | {"test_list": ["assert 1 == 1"]}, "call no function"),
        (MBPP | {"test_list": ["assert sub(1, 2) == 3"]}, "'sub', which is neither theirs nor a tested function"),
        (MBPP | {"code": "class add: pass"}, "'add', which is neither"),
        (APPS | {"outputs": ["3\n"]}, "as many outputs as inputs, at least one; got 2 and 1"),
        (APPS | {"inputs": [], "outputs": []}, "got 0 and 0"),
        (APPS | {"outputs": ["3", "x" * 1_000_001]}, "an output has 1000001 bytes, and a program may print 1000000"),
        (APPS | {"inputs": [[1]], "outputs": ["1"]}, "'inputs' must hold a list of texts"),
        ({"question": "q", "input_output": "{"}, "'input_output' must hold JSON"),
        ({"question": "q", "input_output": "[]"}, "object with inputs and outputs"),
        ({"question": "q", "input_output": {"fn_name": "f", "inputs": [], "outputs": []}}, "fn_name"),
    ],
)
def test_rows_that_nobody_can_be_graded_on_are_refused(row: Mapping[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        task_of(row)


@pytest.mark.parametrize(
    "row, why",
    [
        (HUMANEVAL | {"canonical_solution": "    return text\n"}, "own solution fails its tests"),
        (without(HUMANEVAL, "canonical_solution"), "no solution to verify"),
        (MBPP | {"test_setup_code": "import no_such_module"}, "the tests cannot run: ModuleNotFoundError"),
        (APPS | {"solutions": ["print(1)"]}, r"fails its tests \(test 1 of 2: a wrong output\)"),
    ],
)
def test_verify_refuses_rows_whose_solution_fails(row: Mapping[str, Any], why: str) -> None:
    task_of(row)
    with pytest.raises(ValueError, match=why):
        task_of(row, verify=True)


def test_other_rows_name_what_is_missing() -> None:
    with pytest.raises(MissingField, match=r"line 1: a row needs entry_point and test.*the fields are 'answer'"):
        task_of({"answer": 1})
    with pytest.raises(MissingField, match="'text' or 'prompt'"):
        task_of(without(MBPP, "text"))
    with pytest.raises(MissingField, match="'prompt'"):
        task_of(without(HUMANEVAL, "prompt"))


def test_an_environment_of_rows(tmp_path: Path) -> None:
    paths = {}
    for split, row in (("train", MBPP), ("test", HUMANEVAL)):
        paths[split] = tmp_path / f"{split}.jsonl"
        paths[split].write_text(json.dumps(row) + "\n")
    for split in paths:
        env = Code(data=paths, split=split, verify=True)
        observation, info = env.reset(seed=0)
        assert isinstance(env.dataset is not None and env.dataset.splits[split][0].data["tests"], Asserts)
        assert observation.endswith("Reply with the whole program in one ```python block.")
        assert env.step(env.expert_action())[1] == 1.0
        env.reset(options={"index": 0})
        _, reward, _, _, info = env.step("```python\nimport os\nprint('ok')\nos._exit(0)\n```")
        assert reward == 0.0 and info["scores"] == {"correct": 0.0, "tests": 0.0} and "grader_error" not in info


def test_tests_that_cannot_run_make_no_wrong_answer(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(MBPP | {"test_setup_code": "raise OSError('gone')"}) + "\n")
    split = task_of(MBPP).split
    env = Code(data=path, split=split)
    env.reset(seed=0)
    _, reward, _, _, info = env.step("```python\ndef add(a, b): return a + b\n```")
    assert reward == 0.0 and "OSError: gone" in info["grader_error"] and info["verdict"] == "nothing was judged"


def test_rows_without_a_solution_have_no_expert(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(without(MBPP, "code")) + "\n")
    env = Code(data=path, split=task_of(MBPP).split)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="holds no solution"):
        env.expert_action()
    assert env.step("```python\ndef add(a, b): return a + b\n```")[1] == 1.0
