"""Tasks out of rows of HumanEval, MBPP, APPS and their like."""

from __future__ import annotations

import ast
import builtins
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tetrathlon.envs.language.dataset import MissingField, Row
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.rubric import GraderError
from tetrathlon.envs.text.coding.data import LONGEST_JSON
from tetrathlon.envs.text.coding.grader import Asserts, Budget, Streams, Tests

_MAGIC = frozenset(dir(builtins)) | {"__name__"}


@dataclass(frozen=True, slots=True)
class ReadProgram:
    """Makes a task of a row; the names of its fields say of which kind it is.

    Args:
        budget: What the tests may cost.
        verify: Whether the row's own solution must pass its tests.
    """

    budget: Budget
    verify: bool

    def __call__(self, row: Row) -> Task:
        """Make the task of ``row``.

        Raises:
            MissingField: It has the fields of none of the kinds.
            ValueError: Nobody can be graded on it.
        """
        if "entry_point" in row.fields:
            question, solution, tests = _humaneval(row)
        elif "test_list" in row.fields:
            question, solution, tests = _mbpp(row)
        elif {"inputs", "input_output"} & row.fields.keys():
            question, solution, tests = _streams(row)
        else:
            raise MissingField(
                f"{row.place}: a row needs entry_point and test (as in HumanEval), test_list (MBPP), or inputs and "
                f"outputs (APPS); the fields are {', '.join(map(repr, row.fields)) or 'none'}"
            )
        if self.verify:
            _verify(solution, tests, self.budget)
        return Task(question, solution, {"tests": tests})


def _verify(solution: str, tests: Tests, budget: Budget) -> None:
    if not solution:
        raise ValueError("there is no solution to verify the tests with")
    try:
        verdict = tests.judge(solution, budget)
    except GraderError as error:
        raise ValueError(f"the tests cannot run: {error}") from error
    if not verdict.is_right:
        raise ValueError(f"the row's own solution fails its tests ({verdict.note})")


def _humaneval(row: Row) -> tuple[str, str, Tests]:
    prompt, test, name = _source(row, "prompt"), _source(row, "test"), row.text("entry_point")
    for what, text in (("prompt", prompt), ("test", test)):
        _parse(what, text)
    question = f"Complete this Python function:\n\n{prompt.strip()}"
    solution = prompt + _source(row, "canonical_solution") if "canonical_solution" in row.fields else ""
    return question, solution, Asserts((name,), (f"check({name})",), prompt, test)


def _mbpp(row: Row) -> tuple[str, str, Tests]:
    tests = tuple(_texts("test_list", row.fields["test_list"]))
    if not tests:
        raise ValueError("test_list must hold at least one test, got none")
    shown = tests[0]
    if row.fields.get("challenge_test_list"):
        tests += tuple(_texts("challenge_test_list", row.fields["challenge_test_list"]))
    setup = "\n".join(_texts("test_imports", row.fields.get("test_imports") or []))
    setup += "\n" + str(row.fields.get("test_setup_code") or "")
    solution = _source(row, "code") if row.fields.get("code") else ""
    names, modules = _names("\n".join((setup, *tests)), solution)
    setup = "".join(f"import {module}\n" for module in modules) + setup
    question = f"{row.text('text', 'prompt')}\n\nThe program must pass this test, and others:\n\n{shown.strip()}"
    return question, solution, Asserts(names, tests, setup=setup)


def _names(tests: str, solution: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the functions that ``tests`` take from the tested code, and the modules that they forgot to import."""
    tree = _parse("tests", tests)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    free = used - _bound(tree)
    if solution:
        body = _parse("code", solution).body
        names = free & {node.name for node in body if isinstance(node, ast.FunctionDef)}
    else:
        names = (free & called) - _MAGIC
    free -= names | _MAGIC
    modules = {name for name in free if name in sys.stdlib_module_names}
    if free > modules:
        raise ValueError(f"the tests use {sorted(free - modules)[0]!r}, which is neither theirs nor a tested function")
    if not names:
        raise ValueError("the tests call no function of the tested code")
    return tuple(sorted(names)), tuple(sorted(modules))


def _bound(tree: ast.AST) -> set[str]:
    """Return the names that ``tree`` gives a meaning itself."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    return names


def _streams(row: Row) -> tuple[str, str, Tests]:
    given: Any = row.fields
    if "inputs" not in given:
        given = _json("input_output", given["input_output"])
        if not isinstance(given, dict):
            raise ValueError("input_output must hold an object with inputs and outputs")
        if given.get("fn_name"):
            raise ValueError("input_output asks for calls of a function (fn_name); programs read standard input")
    inputs, outputs = (_texts(name, _json(name, given.get(name))) for name in ("inputs", "outputs"))
    if not inputs or len(inputs) != len(outputs):
        raise ValueError(f"there must be as many outputs as inputs, at least one; got {len(inputs)} and {len(outputs)}")
    if (longest := max(len(text.encode("utf-8", "surrogatepass")) for text in outputs)) > LONGEST_JSON:
        raise ValueError(f"an output has {longest} bytes, and a program may print {LONGEST_JSON}")
    solutions = _json("solutions", row.fields.get("solutions") or [])
    solution = str(row.fields.get("solution") or (_texts("solutions", solutions) or [""])[0])
    question = f"{row.text('question', 'prompt')}\n\nWrite a Python program that reads standard input and prints."
    return question, solution, Streams(tuple(zip(inputs, outputs, strict=True)))


def _source(row: Row, name: str) -> str:
    """Return a field that holds source text, whose blanks count."""
    text = row.get(name)
    if not isinstance(text, str):
        raise ValueError(f"the field {name!r} must hold source text, got {str(text)[:200]!r}")
    return text.replace("\r\n", "\n")


def _texts(name: str, value: Any) -> Sequence[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"the field {name!r} must hold a list of texts, got {str(value)[:200]!r}")
    return value


def _json(name: str, value: Any) -> Any:
    """Return ``value``, read as JSON where it is text: some data sets hold lists so."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError(f"the field {name!r} must hold JSON, got {value[:200]!r}") from None


def _parse(what: str, text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"the {what} cannot be parsed ({error})") from error
