"""Hidden tests on foreign code: what is right passes, and nothing else does, whatever it tries."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tetrathlon.envs.rubric import GraderError
from tetrathlon.envs.sandbox import SandboxError, shared
from tetrathlon.envs.text.coding import grader, held
from tetrathlon.envs.text.coding.grader import LONGEST_CODE, Asserts, Budget, Calls, Streams, Tests
from tetrathlon.envs.text.coding.tasks import Case

BUDGET = Budget(seconds=3.0)
SQUARES = Calls("f", tuple(Case((number,), number * number + 1) for number in range(12)))
RIGHT = "def f(n):\n    return n * n + 1\n"
ADD = Asserts(("add",), ("assert add(1,2)==3", "assert add(-1,1)==0", "assert add(0,0)==0"))


@pytest.mark.parametrize(
    "code, passed",
    [
        ("import sys; sys.exit(0)", 0),
        ('import os; print("ok"); os._exit(0)', 0),
        ('raise SystemExit("all 3 tests passed")', 0),
        ("def add(a,b): return a+b", 3),
        ("def add(a,b): return a-b", 1),
        ("def add(a,b): return 0", 2),
        ("def add(a, b):\n    import sys\n    sys.exit(0)", 0),
        ("def add(a, b):\n    import os\n    os._exit(0)", 0),
        ("def add(a, b):\n    if a == 0: raise SystemExit\n    return a + b", 2),
        ("def add(a, b):\n    if a < 0:\n        import os\n        os._exit(0)\n    return a + b", 1),
        ("add = lambda a, b: a + b", 3),
        ("class add:\n    def __new__(cls, a, b): return a + b", 3),
        ("add = 3", 0),
        ("def sub(a, b): return a + b", 0),
        ("def add(a, b): return (", 0),
        ("", 0),
    ],
)
def test_only_what_the_tests_themselves_report_counts(code: str, passed: int) -> None:
    verdict = ADD.judge(code, BUDGET)
    assert (verdict.passed, verdict.total, verdict.is_right) == (passed, 3, passed == 3)


@pytest.mark.parametrize(
    "code, passed, note",
    [
        (RIGHT, 12, "all 12 tests passed"),
        ("def f(n): return n * n", 0, "test 1 of 12: a wrong value"),
        ("def f(n): return 1", 1, "test 2 of 12: a wrong value"),
        ("def f(n): return float(n * n + 1)", 0, "test 1 of 12: a wrong value"),
        ("def f(n): yield n * n + 1", 0, "test 1 of 12: returned a value of the type generator"),
        ("def f(n): return 1 / n", 0, "test 1 of 12: raised ZeroDivisionError"),
        ("def f(n): return f(n)", 0, "test 1 of 12: raised RecursionError"),
        ("def f(): return 1", 0, "test 1 of 12: raised TypeError"),
        ("def g(n): return n * n + 1", 0, "test 1 of 12: the code raised NameError when it was loaded"),
        ("def f(n) return 1", 0, "test 1 of 12: the code raised SyntaxError when it was loaded"),
        ("import numpy\n" + RIGHT, 0, "test 1 of 12: the code raised ModuleNotFoundError when it was loaded"),
        ("def f(n):\n    print('x' * 100_000)\n    return n * n + 1", 12, "all 12 tests passed"),
        (RIGHT + "if __name__ == '__main__':\n    1 / 0", 12, "all 12 tests passed"),
        ("import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: 'int'\n" + RIGHT, 12, "all 12"),
        ("json = sys = encode = decode = write = main = None\n" + RIGHT, 12, "all 12 tests passed"),
        ("calls = []\ndef f(n):\n    calls.append(n)\n    return n * n + len(calls) - len(calls) + 1", 12, "all 12"),
        ("#" * LONGEST_CODE + RIGHT, 0, "the code has more than 100000 characters"),
        ("\ud800", 0, "test 1 of 12: the code raised"),
        ("\0", 0, "test 1 of 12: the code raised"),
    ],
)
def test_a_verdict_says_why(code: str, passed: int, note: str) -> None:
    verdict = SQUARES.judge(code, BUDGET)
    assert verdict.passed == passed and verdict.note.startswith(note)


def test_what_is_done_to_arguments_stays_there() -> None:
    given = [3, 1, 2]
    tests = Calls("f", (Case((given,), [1, 2, 3]), Case((given,), [1, 2, 3])))
    assert tests.judge("def f(a):\n    a.sort()\n    return a", BUDGET).is_right and given == [3, 1, 2]


def test_endless_loops_end_in_time() -> None:
    begun = time.monotonic()
    for code in ("while True: pass", "import time\ntime.sleep(60)", "def f(n):\n    while True: pass"):
        assert re.search("the code ended: (timeout|cpu)$", SQUARES.judge(code, Budget(seconds=0.5)).note)
    assert time.monotonic() - begun < 6


def test_the_time_is_that_of_all_tests_together() -> None:
    begun = time.monotonic()
    code = "import time\ndef f(n):\n    time.sleep(0.2)\n    return n * n + 1"
    verdict = SQUARES.judge(code, Budget(seconds=0.5))
    assert 1 <= verdict.passed <= 3 and verdict.note.endswith("timeout")
    assert time.monotonic() - begun < 3


@pytest.mark.parametrize(
    "code",
    [
        "class A:\n    def __eq__(self, other): return True\n    __ne__ = lambda *a: False\ndef f(n): return A()",
        "import builtins\nbuiltins.AssertionError = Exception\ndef f(n): return 0",
        "def f(n): raise AssertionError",
        "import sys\nsys.modules['tests'] = sys\ndef f(n): return 0",
    ],
)
def test_given_tests_meet_plain_data_only(code: str) -> None:
    tests = Asserts(("f",), ("assert f(1) == 5", "assert not f(1) != 5", "assert [f(1)] == [5]"))
    assert tests.judge(code, BUDGET).passed == 0


def test_given_tests_see_values_keywords_and_exceptions() -> None:
    code = (
        "def f(a, *, b=0):\n    if a < 0: raise ValueError('no')\n    return {'a': (a, b), 'b': {a}}\n"
        "class Own(Exception): pass\ndef g():\n    raise Own"
    )
    tests = Asserts(
        ("f", "g"),
        (
            "assert f(1) == {'a': (1, 0), 'b': {1}}",
            "assert f(1, b=two()) == {'a': (1, 2), 'b': {1}} and type(f(1)['a']) is tuple",
            "try:\n    f(-1)\nexcept ValueError:\n    pass\nelse:\n    assert False",
            "try:\n    g()\nexcept Exception as error:\n    assert type(error) is Exception",
            "import math\nassert math.isclose(f(1)['a'][0], 1)",
            "assert f(1) == 2",
        ),
        setup="def two(): return 2",
    )
    verdict = tests.judge(code, BUDGET)
    assert verdict.passed == 5 and verdict.note == "test 6 of 6: the test raised AssertionError"


def test_a_preamble_serves_the_code_and_the_tests() -> None:
    preamble = "from typing import List\ndef double(n): return 2 * n\ndef f(n: List[int]) -> int:\n    ...\n"
    check = "def check(candidate):\n    assert candidate([1]) == double(1)\n"
    tests = Asserts(("f",), ("check(f)",), preamble, check)
    assert tests.judge("def f(n: List[int]): return double(n[0])", BUDGET).is_right
    assert tests.judge("x = 1", BUDGET).note.endswith("the code raised NameError when it was loaded")  # no stub


@pytest.mark.parametrize(
    "tests, why",
    [
        (Asserts(("f",), ("assert f(1) ==",)), "SyntaxError"),
        (Asserts(("f",), ("assert f(1)",), setup="import no_such_module"), "ModuleNotFoundError"),
        (Asserts(("f",), ("assert f(lambda: 1) == 1",)), "f is called with a value of the type function"),
        (Asserts(("f",), ("assert f(f(1)) == 1\nf(len)",)), "type builtin_function_or_method"),
        (Asserts(("f",), ("try:\n    f(object())\nexcept Exception:\n    pass",)), "type object"),
        (Asserts(("f",), ("while True: pass",)), "the tests ended: (timeout|cpu)"),
        (Asserts(("f",), ("import os; os._exit(0)",)), "the tests ended: ok"),
    ],
)
def test_tests_that_fail_by_themselves_are_an_error_of_the_grader(tests: Asserts, why: str) -> None:
    with pytest.raises(GraderError, match=why):
        tests.judge("def f(n): return 1", Budget(seconds=1.0))


def test_a_value_that_breaks_the_tests_is_wrong() -> None:
    tests = Asserts(("f",), ("n = f(1)\nwhile n: pass", "assert f(1) == 0"))
    assert tests.judge("def f(n): return 5", Budget(seconds=0.5)).passed == 0
    own = Asserts(("f",), ("assert f(1) == 0",), setup="assert f(1) == 0")
    assert own.judge("def f(n): return 5", BUDGET).passed == 0
    assert tests.judge("def f(n): return 0", BUDGET).passed == 2


STREAMS = Streams((("1 2\n", "3\n"), ("5 5\n", "10\n"), ("0 1\n", "1\n")))


@pytest.mark.parametrize(
    "code, passed, note",
    [
        ("a, b = map(int, input().split())\nprint(a + b)", 3, "all 3 tests passed"),
        ("a, b = map(int, input().split())\nprint(f'{a + b:.9f} ')\nprint()", 3, "all 3"),
        ("if __name__ == '__main__':\n    print(sum(map(int, open(0).read().split())))\n    exit(0)", 3, "all 3"),
        ("print(3)", 1, "test 2 of 3: a wrong output"),
        ("print(sum(map(int, input().split())))\nexit(1)", 0, "test 1 of 3: the program ended: error"),
        ("print(3, file=__import__('sys').stderr)", 0, "test 1 of 3: a wrong output"),
        ("while True: pass", 0, "test 1 of 3: the program ended: (timeout|cpu)"),
        ("import os; os.write(1, b'3\\n'); os._exit(0)", 1, "test 2 of 3: a wrong output"),
    ],
)
def test_programs_read_and_print(code: str, passed: int, note: str) -> None:
    verdict = STREAMS.judge(code, Budget(seconds=1.0))
    assert verdict.passed == passed and re.match(note, verdict.note)


def test_streams_share_their_time() -> None:
    begun = time.monotonic()
    assert STREAMS.judge("import time; time.sleep(60)", Budget(seconds=0.5)).note.endswith("timeout")
    assert time.monotonic() - begun < 3


@pytest.mark.parametrize("tests", [SQUARES, ADD, STREAMS], ids=["calls", "asserts", "streams"])
def test_a_broken_sandbox_is_no_wrong_answer(tests: Tests, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def run(self, *arguments: Any, **keywords: Any) -> Any:
            raise SandboxError("there is no bubblewrap")

        open = run

    for module in (grader, held):
        monkeypatch.setattr(module, "shared", Broken)
    with pytest.raises(GraderError, match="there is no bubblewrap"):
        tests.judge(RIGHT, BUDGET)


@pytest.mark.parametrize(
    "start",
    ["if os.fork() == 0:\n        os.setsid()\n        spin()", "threading.Thread(target=spin).start()"],
)
def test_no_code_can_make_the_tests_fail_by_themselves(start: str) -> None:
    code = f"import os, threading\ndef spin():\n    while True: pass\nfor _ in range(15):\n  try:\n    {start}\n"
    code += "  except (OSError, RuntimeError): pass\ndef f(n): return 0\n"
    slow = "import time\nwhile time.process_time() < 0.6: pass"
    tests = Asserts(("f",), ("assert f(1) == 5", "assert f(2) == 6"), setup=slow)
    assert tests.judge(code, Budget(seconds=4.0)).passed == 0
    assert tests.judge("def f(n): return n + 4", Budget(seconds=4.0)).is_right


def test_code_that_overloads_the_process_of_the_tests_is_wrong() -> None:
    code = (  # numbers of one hash: a set of them takes for ever to build
        "import os, sys\ndef f(n):\n    frame = sys._getframe()\n"
        "    while 'request' not in frame.f_locals: frame = frame.f_back\n"
        "    many = ','.join(str(number * (2**61 - 1)) for number in range(40_000))\n"
        "    nonce = frame.f_locals['request']['nonce']\n"
        '    os.write(4, f\'{{"nonce": "{nonce}", "value": {{"s": [{many}]}}}}\\n\'.encode())\n'
        "    os._exit(0)"
    )
    verdict = Asserts(("f",), ("assert f(1) == 5",)).judge(code, Budget(seconds=0.7))
    assert verdict.passed == 0 and re.fullmatch("test 1 of 1: the tests ended: (timeout|cpu)", verdict.note)


def test_a_start_of_the_tests_that_fails_on_the_values_of_the_code_is_wrong() -> None:
    tests = Asserts(("f",), ("assert f(1) == 5",), setup="assert f(0) == 4, 'it is 4'")
    assert tests.judge("def f(n): return 0", BUDGET).note == "test 1 of 1: the tests cannot start with its values"
    assert tests.judge("def f(n): return n + 4", BUDGET).is_right


class Fragile:
    """A pool whose sandboxes fail, on some code only."""

    def __init__(self, failures: int, on: str = "") -> None:
        self.failures, self.on = failures, on

    def run(self, code: str, **keywords: Any) -> Any:
        if self.failures and self.on in code:
            self.failures -= 1
            raise SandboxError("the worker is gone")
        return shared().run(code, **keywords)


@pytest.mark.parametrize(
    "failures, on, outcome",
    [(1, "", "all 3 tests passed"), (9, "BOMB", "the sandbox fails on this code, and on no other"), (9, "", None)],
)
def test_a_sandbox_that_fails_on_one_code_alone_makes_it_wrong(
    failures: int, on: str, outcome: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = Fragile(failures, on)
    monkeypatch.setattr(grader, "shared", lambda: pool)
    code = "print(sum(map(int, input().split())))  # BOMB"
    if outcome is None:
        with pytest.raises(GraderError, match="the worker is gone"):
            STREAMS.judge(code, BUDGET)
    else:
        verdict = STREAMS.judge(code, BUDGET)
        assert verdict.note == outcome and verdict.is_right is outcome.startswith("all")


def test_programs_may_have_a_large_stack() -> None:
    code = (
        "import sys, threading\nsys.setrecursionlimit(10**6)\nthreading.stack_size(1 << 29)\n"
        "def main(): print(sum(map(int, input().split())))\n"
        "thread = threading.Thread(target=main)\nthread.start()\nthread.join()"
    )
    assert STREAMS.judge(code, BUDGET).is_right


def test_many_threads_grade_at_once() -> None:
    verdicts: list[int] = []

    def judge(tests: Tests, code: str) -> Callable[[], None]:
        return lambda: verdicts.append(tests.judge(code, Budget(seconds=20.0)).passed)

    jobs = [judge(ADD, "def add(a, b): return a + b"), judge(SQUARES, RIGHT)] * 6
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(verdicts) == [3] * 6 + [12] * 6
