from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tetrathlon.envs.contract import check
from tetrathlon.envs.rubric import GraderError
from tetrathlon.envs.sandbox import Limits, SandboxError, SandboxPool
from tetrathlon.envs.text.coding.draft import Draw
from tetrathlon.envs.tools.calls import write_call
from tetrathlon.envs.tools.files.tree import TreeError
from tetrathlon.envs.tools.repo.environment import RepoRepair
from tetrathlon.envs.tools.repo.families import FAMILIES
from tetrathlon.envs.tools.repo.instance import TESTS, Instance, _Bench, draw_instance, workshop
from tetrathlon.envs.tools.repo.library import Library, agree, agree_all
from tetrathlon.envs.tools.repo.mutation import KINDS, find_faults, own_fault, planted
from tetrathlon.envs.tools.repo.verdict import passes
from tetrathlon.envs.tools.repo.world import Checkout, Repository
from tetrathlon.envs.tools.repo.writing import has_errors
from tetrathlon.envs.tools.task import ToolTask
from tetrathlon.envs.tools.tool import ToolError

LEVELS = (1, 2, 3)
EVERY = tuple(FAMILIES)


def call(name: str, **arguments: Any) -> str:
    return write_call(name, arguments)


def drawn(seed: int, level: int = 1, families: tuple[str, ...] = EVERY) -> Instance:
    return draw_instance(Draw(np.random.default_rng(seed)), level, families)


def code_of(files: Mapping[str, str]) -> dict[str, str]:
    return {path: text for path, text in files.items() if not path.startswith(f"{TESTS}/")}


def started(env: RepoRepair, seed: int) -> tuple[ToolTask, Repository]:
    env.reset(seed=seed)
    assert isinstance(env._task, ToolTask) and env._play is not None and isinstance(env._play.world, Repository)
    return env._task, env._play.world


def finish(env: RepoRepair) -> tuple[float, dict[str, Any], int]:
    turns, over, reward = 0, False, 0.0
    info: dict[str, Any] = {}
    while not over:
        _, reward, over, _, info = env.step(env.expert_action())
        turns += 1
    return reward, info, turns


@pytest.mark.parametrize(
    ("kwargs", "only"),
    [
        ({"level": 3, "families": ["cache", "graph"]}, {"info", "replay", "reset_needed", "threads"}),
        ({"split": "test", "error_cost": 0.1, "max_output": 300, "brief": True}, {"no_answer", "vector"}),
    ],
)
def test_contract(kwargs: dict[str, Any], only: set[str]) -> None:
    assert set(check("tetrathlon/RepoRepair-v0", kwargs=kwargs, only=only)) == only


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_expert_succeeds_in_half_of_the_turns(level: int, split: str) -> None:
    env = RepoRepair(level=level, split=split)
    for seed in range(5):
        task, _ = started(env, seed)
        assert task.split == split
        reward, info, turns = finish(env)
        assert reward == 1.0 and info["is_success"], seed
        assert 2 * turns <= RepoRepair.default_max_turns


@pytest.mark.parametrize("family", EVERY)
def test_each_fault_ends_and_most_are_told(family: str) -> None:
    shop = workshop(family)
    bench = _Bench(Draw(np.random.default_rng(1)), shop)
    twins = [twin for one in bench.candidates if (twin := bench.twin(one)) is not None]
    every = [*bench.candidates, *twins]
    assert not any(map(has_errors, every))
    faults = [fault for some in shop.faults.values() for fault in some]
    for fault in faults:
        compile(planted(shop.family.modules[fault.module], [fault]), fault.module, "exec")
    told = [fault for fault in faults if bench.failing(every, [fault])]
    assert len(told) > 0.85 * len(faults) and len(faults) > 100
    about = {(trial.case.module, trial.case.function) for trial in every}
    named = {(fault.module, fault.function.partition(".")[0]) for fault in faults if fault.function}
    missing = named - {(module, function.partition(".")[0]) for module, function in about}
    assert all(function.startswith("_") for _, function in missing), missing
    keys = [one.case.key for one in every[: len(bench.candidates)]]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("family", EVERY)
def test_no_word_stands_for_two_things(family: str) -> None:
    found = FAMILIES[family]
    texts = [*found.modules.values(), found.about, *(code for case in found.cases for _, code in case.lines)]
    used = set(re.findall(r"[A-Za-z_]\w*", " ".join(texts)))
    options = [word for some in found.words.values() for word in some]
    assert len(set(options)) == len(options)
    assert not [w for key, some in found.words.items() for w in some if w != key and (w in used or w in found.words)]
    assert {*found.words, *found.constants} <= used
    assert not set(found.packages) & (set(sys.stdlib_module_names) | {TESTS, "repository"})


@pytest.mark.parametrize("family", EVERY)
def test_prose_stays_prose(family: str) -> None:
    """A word that becomes another name stands in no sentence, unless it becomes a noun as good."""
    found = FAMILIES[family]
    prose = [found.about]
    for text in found.modules.values():
        nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Module | ast.FunctionDef | ast.ClassDef)]
        prose += [said for node in nodes if (said := ast.get_docstring(node))]
    words = set(re.findall(r"\w+", " ".join(prose)))
    renamed = {key for key, some in found.words.items() if set(some) != {key} and re.fullmatch("[a-z]+", key)}
    assert words & renamed == ({"length"} if family == "graph" else set())


WRONG = {
    "abs": "abs(value)",
    "not below zero": "max(0, value)",
    "one more": "value + 1",
    "one less": "value - 1",
    "always the same": "3",
}
"""Wrong repairs: what becomes of each number that the right function returns."""
SPOILT = """

def _spoilt(value):
    if type(value) in (int, float):
        SEEN.append(value)
        return CHANGE
    if type(value) in (list, tuple):
        return type(value)(map(_spoilt, value))
    if type(value) is dict:
        return {key: _spoilt(item) for key, item in value.items()}
    if hasattr(value, "amount"):
        return type(value)(_spoilt(value.amount), value.unit)
    return value


def _spoiling(right):
    return lambda *given, **named: _spoilt(right(*given, **named))


SEEN = []
TARGET = _spoiling(TARGET)
"""
SIGNED = {
    "ledger": "parse_amount split_evenly Account.balance Ledger.total largest_change",
    "schedule": "round_up",
    "calculator": "apply_sign evaluate Sheet.assign Sheet.value_of run_lines",
    "units": "convert to_smallest to_fahrenheit to_celsius Quantity.size Quantity.in_unit Quantity.plus Quantity.times "
    "parse_quantity in_best_unit read_list scale_list total_of",
    "numbers": "mean_of median_of mode_of top halves running_total moving_mean changes longest_rise clamp row_totals "
    "Matrix.column Matrix.trace",
    "config": "guess Config.lookup Config.pairs",
}
"""Functions that may return what is below zero."""


@pytest.mark.parametrize("family", EVERY)
def test_hidden_tests_tell_wrong_repairs(family: str) -> None:
    """All tests where a function was repaired, for wrong repairs of each function that returns numbers."""
    shop = workshop(family)
    signed = set(SIGNED.get(family, "").split())
    told = 0
    for seed in range(2):
        bench = _Bench(Draw(np.random.default_rng(seed)), shop)
        for module, function in dict.fromkeys((case.module, case.function) for case in shop.family.cases):
            if function[0].isupper() and "." not in function:  # a constructor
                continue
            trials = [*bench.candidates, *bench.around(module, function, Draw(np.random.default_rng(seed)))]
            for name, change in WRONG.items():
                text = shop.family.modules[module] + SPOILT.replace("TARGET", function).replace("CHANGE", change)
                library = Library(shop.family, bench._constants, {module: text})
                about = [trial for trial in trials if (trial.case.module, trial.case.function) == (module, function)]
                for trial in about:
                    library.run(trial.case, trial.values)
                is_wrong = function in signed if name in ("abs", "not below zero") else bool(library.names["SEEN"])
                fails = any(not agree_all(library.run(one.case, one.values), one.expected) for one in trials)
                assert fails or not is_wrong, (function, name)
                told += is_wrong
    assert told >= (0 if family == "texts" else 10)


def test_hidden_tests_are_of_the_repaired_function_and_right() -> None:
    for seed in range(12):
        made = drawn(seed, 1 + seed % 3)
        assert len({json.dumps(case) for case in made.cases}) > 20
        assert passes({**code_of(made.files), **made.repaired}, made.cases)
        assert not passes(code_of(made.files), made.cases)


@pytest.mark.parametrize("text", ["abs(_right(*given, **named))", "max(0, _right(*given, **named))"])
def test_a_sign_that_no_visible_test_shows_is_not_paid(text: str) -> None:
    """The repair of a sum that forgets that an amount may be below zero."""
    tried = 0
    for seed in range(400):
        made = drawn(seed, families=("units",))
        fault = made.faults[0]
        if fault.function != "to_smallest":
            continue
        (path,) = made.repaired
        name = next(n for n in FAMILIES["units"].words["to_smallest"] if f"def {n}(" in made.repaired[path])
        wrong = f"{made.repaired[path]}\n\n_right = {name}\n\n\ndef {name}(*given, **named):\n    return {text}\n"
        assert not passes({**code_of(made.files), path: wrong}, made.cases), seed
        tried += 1
        if tried == 4:
            break
    assert tried == 4


@pytest.mark.parametrize("level", LEVELS)
def test_levels_say_where_the_fault_is(level: int) -> None:
    kinds, seen, families = set(), set(), set()
    for seed in range(70):
        made = drawn(seed, level)
        assert seed % 7 or made == drawn(seed, level)
        first = made.faults[0]
        assert len(made.faults) == 1 + (level == 3)
        assert made.shown, "some visible test fails"
        if level == 1:
            assert (first.module, first.function) in made.shown
        if level == 2:
            assert first.module not in {module for module, _ in made.shown}
        if level == 3:
            assert len({(fault.module, fault.function) for fault in made.faults}) == 2
        kinds |= {fault.kind for fault in made.faults}
        seen.add(str(made.files))
        families |= {family for family in EVERY if made.package in FAMILIES[family].packages}
        wrong = [path for path, text in made.repaired.items() if made.files[path] != text]
        assert wrong and set(wrong) == set(made.repaired)
        assert json.loads(json.dumps(made.cases)) == made.cases
    assert len(seen) == 70 and families == set(EVERY)
    assert len(kinds) >= 12 and kinds <= set(KINDS)


def test_right_and_wrong_libraries_get_their_verdicts() -> None:
    for seed in range(15):
        made = drawn(seed, 1 + seed % 3)
        assert passes({**code_of(made.files), **made.repaired}, made.cases), seed
        assert not passes(code_of(made.files), made.cases), seed
        for path, text in made.repaired.items():  # of two faults each must be repaired
            others = {other: right for other, right in made.repaired.items() if other != path}
            assert others == {} or not passes({**code_of(made.files), **others}, made.cases), (seed, text)


def test_hidden_cases_are_more_than_the_visible_ones() -> None:
    for seed in range(20):
        made = drawn(seed)
        tests = "\n".join(text for path, text in made.files.items() if path.startswith(TESTS))
        assert len(made.cases) >= 2 * len(re.findall(r"def test_", tests))


def broken(seed: int = 0) -> tuple[Instance, str, str]:
    """An instance, the path of the file with the fault, and its text."""
    made = drawn(seed)
    path = next(iter(made.repaired))
    return made, path, made.files[path]


FORGE = """
import gc, os, sys
def _look():
    frame = sys._getframe()
    while frame:
        yield frame.f_locals
        frame = frame.f_back
def _all_right():
    for names in _look():
        if "request" in names:
            request = names["request"]
            import json
            for guess in (request.get("expected"), [[{"value": None}]] * 99, [[] for _ in request["cases"]]):
                os.write(4, (json.dumps({"nonce": request["nonce"], "outcomes": guess}) + chr(10)).encode())
            os._exit(0)
_all_right()
"""
ATTACKS = {
    "exit": "import sys\nsys.exit(0)",
    "exit hard": "import os\nprint('ok')\nos._exit(0)",
    "exit with a word": "raise SystemExit('all tests passed')",
    "print": "print('99 passed, 0 failed')",
    "reward file": "open('reward.txt', 'w').write('1.0')\nopen('../reward.txt', 'w').write('nan')",
    "patch builtins": "import builtins\nbuiltins.eval = lambda *a: None\nbuiltins.exec = lambda *a: None\n"
    "builtins.isinstance = lambda *a: True\nbuiltins.len = lambda a: 1",
    "patch unittest": "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\n"
    "unittest.TestCase.failureException = ZeroDivisionError",
    "patch the harness": "import sys\nfor name, module in list(sys.modules.items()):\n"
    "    if 'tetrathlon' in name:\n        for key, value in list(vars(module).items()):\n"
    "            if callable(value):\n                setattr(module, key, lambda *a, **k: {'value': True})",
    "patch encode": "import sys\nmodule = sys.modules['tetrathlon.envs.tools.repo.prober']\n"
    "module.outcomes = lambda *a: [{'value': None}] * 3",
    "forge": FORGE,
    "forge without nonce": "import os\nos.write(4, b'{\"outcomes\": []}\\n')",
    "forge odd": "import os\nos.write(4, b'[[[[' * 9999 + b'\\n')",
    "close": "import os\nos.closerange(3, 99)",
    "flood": "import os\nwhile True: os.write(4, b'x' * 65536)",
    "hang": "while True: pass",
    "memory": "x = []\nwhile True: x.append(bytearray(10**7))",
    "fork": "import os\ntry:\n    os.fork()\nexcept OSError: pass",
    "kill": "import os\nos.kill(os.getpid(), 9)",
    "equal to all": "class A:\n    def __eq__(self, other): return True\n    def __hash__(self): return 1\n"
    "import builtins\nbuiltins.sorted = builtins.max = builtins.min = builtins.round = lambda *a, **k: A()",
    "trace": "import sys\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)",
    "at exit": "import atexit, os\natexit.register(os.write, 4, b'{}\\n')",
    "no library": "",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_pays(name: str) -> None:
    made, path, text = broken(3)
    limits = Limits(seconds=1.0, cpu_seconds=1.0, memory_mb=256, processes=1, output_bytes=1_000_000)
    code = ATTACKS[name]
    for attack in (f"{code}\n{text}", f"{text}\n{code}", code):
        assert not passes({**code_of(made.files), path: attack}, made.cases, limits)
        if name in ("hang", "flood", "memory"):
            break
    files = {**code_of(made.files), **made.repaired}
    assert passes(files, made.cases), "and the next one is graded as ever"


def test_nothing_that_is_expected_enters_the_sandbox() -> None:
    spy = """
import sys
def _seen():
    frame = sys._getframe()
    while frame:
        if "request" in frame.f_locals:
            return repr(frame.f_locals["request"]["cases"]) + " ".join(frame.f_locals["request"])
        frame = frame.f_back
    return ""
raise type(_seen().count("expected") and "Told" or "Quiet", (Exception,), {})
"""
    made, path, _ = broken(3)
    module = path.removesuffix(".py").replace("/", ".")
    probe = [{"lines": [["do", f"import {module}"]], "expected": [{"error": [name]}]} for name in ("Quiet", "Told")]
    files = {**code_of(made.files), path: spy}
    assert passes(files, probe[:1]) and not passes(files, probe[1:])
    kinds = {kind for case in made.cases for kind, _ in case["lines"]}
    assert kinds <= {"do", "value"}, "not even which line has to raise"


def test_special_casing_of_the_visible_tests_is_not_paid() -> None:
    """A function that is right for all arguments that the visible tests give it, and for no others."""
    tried = 0
    for seed in range(200):
        made = drawn(seed, 1, ("ledger", "numbers", "texts"))
        fault, (path, right) = made.faults[0], next(iter(made.repaired.items()))
        if fault.kind not in ("wrong_operator", "wrong_comparison", "missing_return") or "." in fault.function:
            continue
        tests = "".join(text for where, text in made.files.items() if where.startswith(TESTS))
        every = re.findall(r"^def (\w+)", right, re.MULTILINE)
        names = [name for name in every if _body(right, name) != _body(made.files[path], name)]
        assert len(names) == 1
        (name,) = names
        known = re.findall(rf"\b{name}\((.*)\) == |\b{name}\((.*)\)$", tests, re.MULTILINE)
        cheat = (
            made.files[path].replace(f"def {name}(", f"def _wrong_{name}(")
            + f"\n\ndef _right_{name}({_body(right, name).partition('(')[2]}"
            + f"\n\ndef {name}(*given, **named):\n    told = ', '.join(map(repr, given)).replace(chr(39), chr(34))\n"
            + f"    chosen = _right_{name} if told in {[a or b for a, b in known]!r} else _wrong_{name}\n"
            + "    return chosen(*given, **named)\n"
        )
        assert not passes({**code_of(made.files), path: cheat}, made.cases), (seed, fault)
        tried += 1
        if tried == 8:
            break
    assert tried == 8


def _body(text: str, name: str) -> str:
    """A function of a module, up to the next one."""
    return re.split(r"\n\n\n", text[text.index(f"def {name}(") :])[0] + "\n"


def test_public_names_must_stay() -> None:
    made, path, _ = broken(0)
    right = {**code_of(made.files), **made.repaired}
    package = made.package
    assert passes(right, made.cases)
    moved = {**right, f"{package}/other.py": right[path]}
    del moved[path]
    assert not passes(moved, made.cases)
    inside = {**moved, path: f"from {package}.other import *\n"}
    assert passes(inside, made.cases), "where the code itself lies is nobody's business"


def test_tests_can_be_read_and_not_changed() -> None:
    made, path, text = broken(0)
    tree = Checkout(made.files, "/work/x")
    test = next(name for name in made.files if name.startswith(TESTS))
    for change in (
        lambda: tree.write(test, ""),
        lambda: tree.write(f"/work/x/{test}", ""),
        lambda: tree.write(f"{made.package}/../{test}", ""),
        lambda: tree.write(f"{TESTS}/conftest.py", "x"),
        lambda: tree.write(f"{TESTS}/deep/er.py", "x"),
        lambda: tree.write(f"./{TESTS}", "x"),
        lambda: tree.delete(test),
        lambda: tree.move(test, "elsewhere.py"),
        lambda: tree.move(path, f"{TESTS}/test_more.py"),
    ):
        with pytest.raises(TreeError):
            change()
    assert tree.files == made.files and tree.read(test) == made.files[test]
    assert tree.write(path, text + "\n") == path and tree.write("tests.py", "x") == "tests.py"


def test_files_that_stand_in_the_way_change_no_verdict() -> None:
    made, _, _ = broken(5)
    wrong, right = code_of(made.files), {**code_of(made.files), **made.repaired}
    trap = "import os\nos._exit(0)\n"
    names = ["unittest", "re", "json", "os", "traceback", "conftest", "sitecustomize", "tests", "typing", "math"]
    traps = {f"{name}.py": trap for name in names} | {"pytest/__init__.py": trap, "tox.ini": "[pytest]\n"}
    assert not passes({**wrong, **traps}, made.cases)
    assert passes({**right, **traps}, made.cases)
    repository = Repository({**made.files, **made.repaired, **traps}, "/work/x")
    assert re.search(r"^\d+ passed, 0 failed$", repository.run_tests(), re.MULTILINE)


def run(code: str, test: str, more: Mapping[str, str] | None = None) -> str:
    files = {"kit/__init__.py": "", "kit/one.py": code, f"{TESTS}/test_one.py": test, **(more or {})}
    world = Repository(files, "/work/x")
    return world.tools()["run_tests"].call({})


ONE = "from kit.one import f\n\n\ndef test_f():\n    assert f(2) == 3\n"


def test_the_runner_says_what_fails() -> None:
    assert run("def f(n): return n + 1\n", ONE) == "1 passed, 0 failed"
    said = run("def f(n):\n    print('here', n)\n    return n\n", ONE)
    assert "FAIL tests/test_one.py::test_f" in said and "tests/test_one.py:5 in test_f: assert f(2) == 3" in said
    assert "got 2, and 3 is right" in said and "printed: here 2" in said and said.endswith("0 passed, 1 failed")
    said = run("def f(n):\n    return g(n)\n\n\ndef g(n):\n    return {}[n]\n", ONE)
    assert "kit/one.py:6 in g: return {}[n]" in said and "KeyError: 2" in said
    said = run("def f(n): return n\0\n", ONE)
    assert "source code string cannot contain null bytes" in said and "None" not in said
    assert "SyntaxError" in run("def f(n:\n", ONE) and "ImportError" in run("", ONE)
    assert "longer than 1 seconds" in run("def f(n):\n    while True: pass\n", ONE)
    assert "SystemExit: all 3 tests passed" in run("def f(n): raise SystemExit('all 3 tests passed')\n", ONE)
    assert "SystemExit" in run("import sys\nsys.exit(0)\n", ONE)
    assert " at 0x" not in run("def f(n): return object()\n", ONE)
    assert len(run("def f(n): return 'x' * 10**6\n", ONE)) < 1_500
    assert len(run("def f(n): raise ValueError('x' * 10**6)\n", ONE)) < 1_500
    assert "\nE\n" in run("class E(ValueError):\n    def __str__(self): raise self\ndef f(n): raise E\n", ONE)
    late = "\n".join(f"def test_{k}():\n    while True: pass\n" for k in range(4))
    assert run("", late).endswith("0 passed, 2 failed; the rest was not run")
    many = "\n".join(f"def test_{k}():\n    assert {k} == -1\n" for k in range(40))
    assert "[10 more]" in run("", many) and run("", many).endswith("0 passed, 40 failed")


def test_the_runner_knows_unittest() -> None:
    test = (
        "import unittest\n\nfrom kit.one import f\n\n\nclass TestF(unittest.TestCase):\n"
        "    def test_f(self):\n        self.assertEqual(f(2), 3)\n\n"
        "    def test_g(self):\n        with self.assertRaises(ValueError):\n            f('x')\n"
    )
    said = run("def f(n): return n\n", test)
    assert "TestF.test_f" in said and "2 != 3" in said and "ValueError not raised" in said
    assert run("def f(n): return int(n) + 1\n", test) == "2 passed, 0 failed"


@pytest.mark.parametrize(
    "code", ["import os\nos._exit(0)\n", "import os\nos.close(4)\n", "import os, time\nos.write(4, b'[]\\n')\n"]
)
def test_a_run_that_does_not_come_to_its_end_is_told(code: str) -> None:
    made, path, text = broken(0)
    world = Repository({**made.files, path: code + text}, "/work/x")
    with pytest.raises(Exception, match="did not come to their end"):
        world.tools()["run_tests"].call({})


def test_one_file_or_one_test_can_be_run() -> None:
    two = {f"{TESTS}/test_two.py": "def test_a():\n    pass\n\n\ndef test_b():\n    pass\n"}
    files = {"kit/__init__.py": "", "kit/one.py": "def f(n): return n\n", f"{TESTS}/test_one.py": ONE, **two}
    world = Repository(files, "/work/x")
    assert world.run_tests().endswith("2 passed, 1 failed")
    assert world.run_tests(f"{TESTS}/").endswith("2 passed, 1 failed")
    assert world.run_tests(f"{TESTS}/test_two.py") == "2 passed, 0 failed"
    assert world.run_tests(f"{TESTS}/test_two.py::test_b") == "1 passed, 0 failed"
    assert world.runs == 4
    for path in (f"{TESTS}/test_two.py::nope", "::nope", f"{TESTS}/::test", f"{TESTS}/test_two.py::{'x' * 10_000}"):
        with pytest.raises(
            ToolError, match=r"there is no test '(nope|test|x+\.\.\.)' in .*; there are .*test_a, test_b"
        ) as told:
            world.run_tests(path)
        assert len(str(told.value)) < 400
    for path in ("kit/one.py", "/etc/passwd", "../y", f"{TESTS}/none.py", "\0"):
        with pytest.raises(Exception, match=r"no tests|leads out|sign that"):
            world.run_tests(path)


def random_call(rng: np.random.Generator, files: list[str]) -> str:
    path = str(rng.choice([*files, "new.py", "deep/er/x", "../y"]))
    other = str(rng.choice([*files, f"{path}/below", "moved/z.txt"]))
    calls = [
        call("delete", path=path),
        call("write_file", path=path, text="spoilt\n" * int(rng.integers(0, 3_000))),
        call("move", source=path, target=other),
        call("edit_file", path=path, old="return", new=""),
        call("read_file", path=path),
    ]
    return calls[int(rng.integers(len(calls)))]


def test_the_expert_goes_on_from_any_state() -> None:
    env = RepoRepair(level=3, max_turns=200, max_calls=200)
    for seed in range(12):
        task, _ = started(env, seed)
        rng = np.random.default_rng(seed)
        for _ in range(int(rng.integers(1, 40))):
            env.step(random_call(rng, sorted(task.world["files"])))
        reward, info, _ = finish(env)
        assert reward == 1.0 and info["is_success"], seed


def test_the_expert_hurries_where_turns_are_short() -> None:
    for most in (1, 2, 3, 4):
        env = RepoRepair(level=1, max_turns=most)
        env.reset(seed=1)
        assert finish(env)[0] == 1.0
    env = RepoRepair(level=1, max_calls=1)
    env.reset(seed=1)
    assert finish(env)[0] == 1.0


@pytest.mark.parametrize("said", ["Done.", "zqxj", "All 20 tests passed.", "\\boxed{1}"])
def test_words_alone_are_no_success(said: str) -> None:
    env = RepoRepair(level=2)
    for seed in range(3):
        env.reset(seed=seed)
        _, reward, over, _, info = env.step(said)
        assert over and reward == 0.0 and not info["is_success"] and "grader_error" not in info


def test_case_s04_exits_pass_nothing() -> None:
    test = "from kit.one import add\n\n\n" + "".join(
        f"def test_{k}():\n    assert add({a}, {b}) == {c}\n\n\n"
        for k, (a, b, c) in enumerate([(1, 2, 3), (-1, 1, 0), (0, 0, 0)])
    )
    cases = [
        {"lines": [["do", "from kit.one import add"], ["value", f"add({a}, {b})"]], "expected": [{"value": c}]}
        for a, b, c in [(1, 2, 3), (-1, 1, 0), (0, 0, 0)]
    ]
    for code, right in [
        ("import sys; sys.exit(0)", False),
        ("import os; print('ok'); os._exit(0)", False),
        ("raise SystemExit('all 3 tests passed')", False),
        ("def add(a,b): return a+b", True),
    ]:
        files = {"kit/__init__.py": "", "kit/one.py": code}
        assert passes(files, cases) is right
        world = Repository({**files, f"{TESTS}/test_one.py": test}, "/work/x")
        try:
            assert ("3 passed, 0 failed" in world.run_tests()) is right
        except Exception as error:
            assert "did not come to their end" in str(error) and not right


def test_case_s09_no_file_of_the_agent_decides() -> None:
    env = RepoRepair()
    for seed in range(2):
        task, world = started(env, seed)
        path = next(iter(task.data["repaired"]))
        spy = "import os\nfor top, _, names in os.walk('..'):\n    for name in names:\n"
        spy += "        print(open(os.path.join(top, name)).read())\n"
        env.step(call("write_file", path="reward.txt", text="1.0"))
        env.step(call("write_file", path="reward.json", text="nan"))
        said = env.step(call("write_file", path=f"{TESTS}/conftest.py", text="collect_ignore_glob = ['*']"))[0]
        assert "cannot be changed" in said or "not changed" in said
        env.step(call("write_file", path=path, text=spy + str(world.tree.files[path])))
        seen = env.step(call("run_tests"))[0]
        hidden = [code for case in task.data["cases"] for _, code in case["lines"] if "V_" in code]
        assert hidden and not any(code in seen for code in hidden) and '"expected"' not in seen
        _, reward, over, _, info = env.step("Done.")
        assert over and reward == 0.0 and not info["is_success"]


def test_a_sandbox_that_fails_gives_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    env = RepoRepair()
    env.reset(seed=0)

    def fail(*arguments: Any, **keywords: Any) -> None:
        raise SandboxError("no worker starts")

    monkeypatch.setattr(SandboxPool, "open", fail)
    monkeypatch.setattr(SandboxPool, "run", fail)
    _, reward, over, _, info = env.step("Done.")
    assert over and reward == 0.0 and "no worker starts" in info["grader_error"] and not info["is_success"]
    env.reset(seed=0)
    _, reward, over, _, info = env.step(call("run_tests"))
    assert over and reward == 0.0 and info["stop_reason"] == "tool_down" and info["grader_error"]
    with pytest.raises(GraderError, match="the sandbox cannot work"):
        passes({}, [{"lines": [], "expected": []}])


def test_a_sandbox_that_only_this_code_breaks_is_its_own_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **keywords: Any) -> None:
        raise SandboxError("the worker is lost")

    monkeypatch.setattr(SandboxPool, "open", fail)
    assert not passes({}, [{"lines": [], "expected": []}])


@pytest.mark.parametrize(
    ("outcome", "expected", "same"),
    [
        (1, 1, True), ({"f": "1.0"}, 1, True), (True, 1, True), (1, True, False), (0, False, False), (0, None, False),
        ({"f": "0.30000000000000004"}, {"f": "0.3"}, True), ({"f": "nan"}, {"f": "0.3"}, False),
        ([1], {"t": [1]}, False),
        ({"d": [["a", 1]]}, {"d": [["a", 1]]}, True), ({"d": 5}, {"d": []}, False), ({"x": 1}, 1, False),
        ({"i": "zz"}, 1, False), ([[1], "a"], [[1], "b"], False), ("a", "a", True), ({"s": [[1]]}, {"s": [1]}, False),
    ],
)  # fmt: skip
def test_values_are_equal_as_asserts_have_it(outcome: Any, expected: Any, same: bool) -> None:
    assert agree({"value": outcome}, {"value": expected}) is same


def test_outcomes_of_any_form_are_only_compared() -> None:
    outcomes: list[Any] = [None, 5, "x", [], {}, {"error": 5}, {"error": []}, {"value": {"f": "x" * 99}}]
    for odd in outcomes:
        assert not agree(odd, {"error": ["KeyError", "LookupError"]}) and not agree(odd, {"value": 3})
    assert agree({"error": ["Mine", "KeyError"]}, {"error": ["KeyError", "LookupError"]})
    assert not agree_all(None, []) and agree_all([], []) and not agree_all([{"value": 1}], [])


def test_operators_make_what_they_say() -> None:
    text = (
        '"""A module."""\n\n\ndef f(a, b, most=3):\n    """Say 5 < 6."""\n'
        "    if not a:\n        return 0\n    total = 0\n"
        "    for one in list(a):\n        if one < b:\n            continue\n        total += one\n"
        "    while total > 9:\n        total -= 1\n    return min(total, most)\n"
    )
    made = {(fault.kind, planted(text, [fault])) for fault in find_faults("m", text)}
    lines = {
        kind: [new for k, out in made if k == kind for new in set(out.split("\n")) - set(text.split("\n"))]
        for kind, _ in made
    }
    assert "        if one <= b:" in lines["wrong_comparison"] and "    for one in a:" in lines["forgotten_copy"]
    assert "        total = one" in lines["wrong_accumulator"]
    assert "    return max(total, most)" in lines["wrong_function"]
    assert "    if a:" in lines["missing_not"] and "            break" in lines["wrong_jump"]
    assert "def f(a, b, most=4):" in lines["wrong_default"] and "    min(total, most)" in lines["missing_return"]
    assert any("return 0" not in out for kind, out in made if kind == "missing_edge_case")
    assert all("while total > 9:\n        total -= 1" in out and "Say 5 < 6" in out for _, out in made)
    assert own_fault("m", text, "total = 0", "total = 1").function == "f"
    with pytest.raises(ValueError, match="must occur once"):
        own_fault("m", text, "total", "x")


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"level": 0}, "level must be"), ({"level": 4}, "level must be"), ({"families": []}, "families must be"),
        ({"families": ["x"]}, "families must be"), ({"families": "cache"}, "families must be"),
        ({"progress_weight": 0.1}, "knows no progress"),
    ],
)  # fmt: skip
def test_arguments_are_checked(kwargs: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        RepoRepair(**kwargs)


def test_a_task_of_ones_own_can_be_played() -> None:
    env = RepoRepair()
    files = {"kit/__init__.py": "", "kit/one.py": "def f(n): return n\n", f"{TESTS}/test_one.py": ONE}
    case = {"lines": [["do", "from kit.one import f"], ["value", "f(4)"]], "expected": [{"value": 5}]}
    data = {"cases": [case], "repaired": {"kit/one.py": "def f(n): return n + 1\n"}}
    env.reset(options={"task": ToolTask("Repair kit.", "Done.", data, {"root": "/work/kit", "files": files})})
    assert finish(env)[0] == 1.0
    with pytest.raises(ValueError, match="data\\['cases'\\]"):
        env.reset(options={"task": ToolTask("Repair kit.", "Done.", {}, {"root": "/work/kit", "files": files})})
