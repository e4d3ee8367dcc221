"""The program that runs visible tests for an agent: it runs in the sandbox, together with the tested code.

What it says is for the agent to read and decides nothing, so code that lies to it lies to the agent alone.
"""

from __future__ import annotations

import ast
import io
import os
import re
import signal
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from tetrathlon.envs.text.coding.holder import Channel
from tetrathlon.envs.tools.repo.prober import FOLDER, settle

_TEST_SECONDS = 1.0
_MOST_OVERTIME = 2
"""So many tests may take too long before the rest is left out."""
_LATE = f"the test takes longer than {_TEST_SECONDS:g} seconds"
_FRAMES = 4
_LONGEST_VALUE = 200
_LONGEST_FAILURE = 1_200
_LONGEST_PRINTED = 300
_MOST_FAILURES = 30
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_SHOWN = "__tetrathlon_shown__"


class _Overtime(BaseException):
    """A test takes too long."""


class _Asserts(ast.NodeTransformer):
    """Makes ``assert a == b`` say what its sides are."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Give an assertion without a message one."""
        test = node.test
        if node.msg is not None or not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return node
        left, right = "__left__", "__right__"
        test.left = ast.NamedExpr(ast.Name(left, ast.Store()), test.left)
        test.comparators[0] = ast.NamedExpr(ast.Name(right, ast.Store()), test.comparators[0])
        sides: list[ast.expr] = [ast.Name(left, ast.Load()), ast.Name(right, ast.Load())]
        node.msg = ast.Call(ast.Name(_SHOWN, ast.Load()), sides, [])
        return ast.fix_missing_locations(node)


def shown(left: Any, right: Any) -> str:
    """Return what an assertion says of its sides."""
    return f"got {_repr(left)}, and {_repr(right)} is right"


def load(path: str) -> dict[str, Any]:
    """Return the names of a file of tests."""
    with open(os.path.join(FOLDER, path), encoding="utf-8") as file:
        source = file.read()
    module = types.ModuleType(path)
    module.__dict__[_SHOWN] = shown
    where = os.path.join(os.getcwd(), FOLDER, path)
    exec(compile(_Asserts().visit(ast.parse(source, where)), where, "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


def tests(names: dict[str, Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the tests among the names of a file, each with its own."""
    for name, value in names.items():
        if name.startswith("test") and callable(value):
            yield name, value
        elif isinstance(value, type) and callable(getattr(value, "assertEqual", None)):
            for method in vars(value):
                if method.startswith("test"):
                    yield f"{name}.{method}", getattr(value(method), method)


def attempt(test: Callable[[], Any]) -> str:
    """Run a test; return what is wrong with it, or nothing."""
    printed = io.StringIO()
    signal.setitimer(signal.ITIMER_REAL, _TEST_SECONDS)
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            test()
        return ""
    except BaseException as error:  # whatever it is, it is the test's
        said = printed.getvalue()[:_LONGEST_PRINTED]
        return told(error) + (f"\nprinted: {said.rstrip()}" if said.strip() else "")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def told(error: BaseException) -> str:
    """Return what was raised, and where: the innermost lines of the repository."""
    try:
        top = os.path.join(os.getcwd(), FOLDER) + os.sep
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(top)]
        lines = [f"{f.filename[len(top) :]}:{f.lineno} in {f.name}: {f.line}" for f in frames[-_FRAMES:]]
        if isinstance(error, SyntaxError):
            said = f"SyntaxError: {error.msg}"
            if error.filename and error.lineno:  # of some errors, such as a null byte, Python says neither
                said += f" (line {error.lineno} of {os.path.relpath(str(error.filename), top)})"
        elif isinstance(error, _Overtime):
            said = _LATE
        else:
            text = str(error)
            said = f"{type(error).__name__}: {text}" if text else type(error).__name__
        return _ADDRESS.sub("", "\n".join([*lines, said]))[:_LONGEST_FAILURE]
    except BaseException:  # the error itself raises
        return type(error).__name__[:_LONGEST_VALUE]


def run(path: str, only: str, names: list[str]) -> Iterator[tuple[str, str]]:
    """Run the tests of a file; yield the name of each, and what is wrong with it, if anything is.

    Args:
        path: The file.
        only: The one test to run; empty: all.
        names: The names of all tests are added here.
    """
    try:
        found = list(tests(load(path)))
    except BaseException as error:  # it cannot be imported
        yield path, told(error)
        return
    names += [name for name, _ in found]
    for name, test in found:
        if not only or name == only or name.rpartition(".")[2] == only:
            yield f"{path}::{name}", attempt(test)


def main() -> None:
    """Answer the one message: the files, which of them are tests, and which test is asked for."""
    channel = Channel()
    request = channel.hear()
    settle(request["files"], FOLDER)
    signal.signal(signal.SIGALRM, _stop)
    failed: list[str] = []
    names: list[str] = []
    count = late = 0
    for name, said in (one for path in request["tests"] for one in run(path, request["only"], names)):
        count += 1
        failed += [f"FAIL {name}\n{said}\n"] if said else []
        late += _LATE in said
        if late >= _MOST_OVERTIME:
            break
    lines = failed[:_MOST_FAILURES]
    lines += [f"[{len(failed) - _MOST_FAILURES} more]"] if len(failed) > _MOST_FAILURES else []
    rest = "; the rest was not run" if late >= _MOST_OVERTIME else ""
    lines.append(f"{count - len(failed)} passed, {len(failed)} failed{rest}")
    if request["only"] and not count:
        shown = [*names[:_MOST_FAILURES], *(["..."] if len(names) > _MOST_FAILURES else [])]
        lines = [f"there are {', '.join(shown) or 'no tests in this file'}"]
    channel.say({"nonce": request["nonce"], "report": "\n".join(lines), "count": count})
    sys.exit()


def _stop(number: int, frame: Any) -> None:
    raise _Overtime


def _repr(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
