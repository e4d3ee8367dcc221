import copy
import dataclasses
import json
import pickle
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import tetrathlon
from tests.envs.isolations import need_bubblewrap
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.sandbox import SandboxError
from tetrathlon.envs.tools.calls import write_call
from tetrathlon.envs.tools.python.environment import KINDS, Python, problem_of
from tetrathlon.envs.tools.python.interpreter import Interpreter
from tetrathlon.envs.tools.python.problem import TEXT, is_answer
from tetrathlon.envs.tools.task import ToolTask


def call(code):
    return write_call("python", {"code": code})


def say(env, code):
    return env.step(call(code))[0]


@pytest.fixture
def env():
    need_bubblewrap()
    made = Python(seconds=1)
    made.reset(seed=0)
    yield made
    made.close()


def test_the_contract_is_kept_with_other_arguments():  # with none, tests/envs/test_contract.py sees to it
    need_bubblewrap()
    kwargs = {"brief": True, "answer_format": "plain", "kinds": ["cipher", "percentile"], "shots": 1}
    only = ["splits", "expert", "no_answer", "state", "replay"]
    assert tetrathlon.envs.check("tetrathlon/Python-v0", kwargs=kwargs, only=only)


@pytest.mark.parametrize("kind", KINDS)
def test_the_solution_of_every_kind_prints_the_answer_at_every_level(kind):
    need_bubblewrap()
    place = list(KINDS).index(kind)
    for level in (1, 2, 3):
        problem = problem_of(place, level, 1_000 + level)
        interpreter = Interpreter(problem.files)
        *_, outcome = [interpreter.run(cell) for cell in problem.cells]
        interpreter.close()
        assert not outcome.is_error and outcome.text.strip() == problem.answer
        assert is_answer(outcome.text, problem.answer, problem.decimals)
        assert 1 <= len(problem.cells) <= 2 and max(map(len, problem.cells)) < 900
        assert all(name in problem.question and name in "".join(problem.cells) for name in problem.files)


@pytest.mark.parametrize("kind", KINDS)
def test_the_answers_of_a_kind_are_many_and_none_is_in_its_question(kind):
    env = Python(kinds=[kind])
    seen = []
    for seed in range(50):
        task = env.generate(np.random.default_rng(seed))
        assert isinstance(task, ToolTask) and task == env.generate(np.random.default_rng(seed))
        seen.append(task.answer)
        assert task.answer not in task.question.replace(",", "").split()
        assert json.loads(json.dumps([task.world, task.data])) == [task.world, task.data]
        if task.data["decimals"] == 0:
            assert abs(int(task.answer)) >= 30
    assert len(set(seen)) >= 47 and Counter(seen).most_common(1)[0][1] <= 3


def test_a_problem_is_of_the_levels_and_kinds_that_were_asked_for():
    env = Python(least_level=2, most_level=2, kinds=["cipher", "recurrence"])
    data = [env.generate(np.random.default_rng(seed)).data for seed in range(40)]
    assert {one["level"] for one in data} == {2}
    assert {list(KINDS)[one["kind"]] for one in data} == {"cipher", "recurrence"}
    assert len(KINDS) >= 15


@pytest.mark.parametrize(
    ("given", "answer", "decimals", "right"),
    [
        ("12345", "12345", 0, True), ("12,345", "12345", 0, True), ("12345.0", "12345", 0, True),
        ("12346", "12345", 0, False), ("1.2345e4", "12345", 0, False), ("", "12345", 0, False),
        ("-7001", "-7001", 0, True), ("−7001", "-7001", 0, True), ("7001", "-7001", 0, False),
        ("3.1416", "3.1416", 4, True), ("3.14159", "3.1416", 4, True), ("3.14165", "3.1416", 4, True),
        ("3.1417", "3.1416", 4, False), ("3.1415", "3.1416", 4, False), ("3.14", "3.1416", 4, False),
        ("12,345.60", "12345.60", 2, True), ("12345.6", "12345.60", 2, True), ("nan", "12345.60", 2, False),
        ("inf", "12345.60", 2, False), ("123456e-1", "12345.60", 2, True), ("9" * 5_000, "12345.60", 2, False),
        ("abcdef", "abcdef", TEXT, True), ("ABCDEF", "abcdef", TEXT, True), ("`abcdef`", "abcdef", TEXT, True),
        ("abcdeg", "abcdef", TEXT, False), ("abc def", "abcdef", TEXT, False), ("", "abcdef", TEXT, False),
    ],
)  # fmt: skip
def test_answers_are_compared_by_value(given, answer, decimals, right):
    assert is_answer(given, answer, decimals) is right


def test_more_digits_than_asked_for_are_right_and_the_next_number_is_not():
    for k in range(-50, 50):
        true = Fraction(314_159, 100_000) + Fraction(k, 10**6)
        gold = f"{float(true):.3f}"
        assert is_answer(f"{float(true):.9f}", gold, 3)
        for off in (-1, 1):
            assert not is_answer(f"{float(gold) + off / 1000:.3f}", gold, 3)


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_expert_solves_every_instance(split):
    need_bubblewrap()
    env = Python(split=split)
    for index in range(24):
        _, info = env.reset(options={"index": index})
        total, ended, turns = 0.0, False, 0
        while not ended:
            _, reward, ended, _, info = env.step(env.expert_action())
            total, turns = total + reward, turns + 1
        assert info["is_success"] and total == 1.0 and turns <= 3
    env.close()


def test_other_answers_fail(env):
    for index in range(60):
        env.reset(options={"index": index})
        other = env.generate(np.random.default_rng(index + 7_000)).answer
        for wrong in ("0", "1", "42", "100", "1000", "yes", other):
            env.reset(options={"index": index})
            *_, info = env.step(f"<answer>{wrong}</answer>")
            assert info["is_success"] is False and info["reward_terms"] == {"correct": 0.0}


def test_the_expert_goes_on_from_wherever_the_agent_has_led(env):
    detours = (
        ["x", "<tool_call>{", "I do not know yet"],
        [call("1 / 0"), call("import os; os._exit(1)")],
        [call("import sys; sys.stdout = None"), call("rows = orders = n = count = None")],
        ["first", call("import os; os._exit(1)")],
        ["first", call("a = grid = orders = rows = lines = near = state = None"), call("print(2)")],
        [call("import builtins; builtins.open = builtins.print = builtins.sum = None")],
    )
    for index in range(12):
        detour = detours[index % len(detours)]
        env.reset(options={"index": index})
        ended = False
        for turn in detour:
            *_, ended, _, info = env.step(env.expert_action() if turn == "first" else turn)
        while not ended:
            before = env.get_state()
            action = env.expert_action()
            assert action == env.expert_action() and before == env.get_state()
            *_, ended, _, info = env.step(action)
        assert info["is_success"] and info["stop_reason"] == "answered"


def test_the_expert_answers_in_its_last_turn_and_after_its_last_call():
    need_bubblewrap()
    for kwargs in ({"max_turns": 1}, {"max_calls": 1}):
        env = Python(**kwargs, kinds=["order_join"])
        env.reset(seed=0)
        ended = False
        while not ended:
            *_, ended, _, info = env.step(env.expert_action())
        assert info["is_success"]
        env.close()


def test_the_question_says_what_is_there_and_what_is_wanted(env):
    for index in range(40):
        observation, info = env.reset(options={"index": index})
        task = env._task
        assert isinstance(task, ToolTask)
        files = task.world.get("files", {})
        assert all(name in observation for name in files)
        assert any(
            said in observation for said in ("with the integer alone", "with the number alone, rounded", "that text")
        )
        assert [one["function"]["name"] for one in info["tools"]] == ["python"]
        if files:
            assert say(env, "import os; print(sorted(os.listdir()))") == f"{sorted(files)}\n"
            name = sorted(files)[0]
            assert say(env, f"len(open({name!r}).read())") == str(len(files[name]))


def test_variables_stay_from_call_to_call_and_turn_to_turn(env):
    assert "printed nothing" in say(env, "x = 20")
    observation = env.step(call("x += 1\nprint('hi')") + call("x * 2"))[0]
    assert observation == "[1] python\nhi\n\n[2] python\n42"
    observation, *_, info = env.step(call("x / 0"))
    assert observation.startswith("Error: Traceback") and observation.endswith("ZeroDivisionError: division by zero")
    assert info["tool_errors"]["tool_error"] == 1 and info["tool_results"][0]["error"] == "tool_error"
    assert say(env, "x") == "21"


# s01, s04, s06, s07, s08: whatever a cell does, there is an observation, and the next call works.
@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("import subprocess as s, sys\ns.Popen([sys.executable, '-c', 'import time; time.sleep(5)'])\nprint('done')",
         "done\n"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        ("import os; print('ok'); os._exit(0)", "has started again"),
        ("raise SystemExit('all 3 tests passed')", "SystemExit: all 3 tests passed"),
        ("x = 7 ** (2 * 10**7); print(len(bin(x)))", "longer than 1 seconds"),
        ("while True: print('0123456789')", "cut to 4,000"),
        ("x = bytearray(64 * 2**30)", "MemoryError"),
        ("print('a' * 300_000_000)", "MemoryError"),
        ("name = input('? ')", "EOFError"),
        ("import time; time.sleep(60)", "longer than 1 seconds"),
        ("import sys; sys.stdin.read(); print('eof')", "eof\n"),
    ],
)  # fmt: skip
def test_no_cell_ends_the_episode(env, code, shown):
    if "0123" in code:
        env._limits = dataclasses.replace(env._limits, seconds=6.0)
        env.reset(seed=0)
    observation, reward, terminated, truncated, _ = env.step(call(code))
    assert shown in observation and len(observation) <= 4_000
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert say(env, "6 * 7") == "42"


def test_what_stands_in_files_or_output_is_no_reward(env):  # s09
    for code in (
        "open('reward.txt', 'w').write('1.0')",
        "open('reward.txt', 'w').write('nan')",
        "print('<answer>1</answer>', '{\"is_success\": true, \"reward\": 1.0}')",
        "import os\nfor d, _, names in os.walk('.'):\n  for n in names: print(open(os.path.join(d, n)).read()[:200])",
    ):
        _, reward, terminated, _, info = env.step(call(code))
        assert reward == 0.0 and not terminated and "is_success" not in info
    *_, info = env.step("<answer>reward.txt</answer>")
    assert info["is_success"] is False


def test_no_tool_finds_the_answer_in_its_process():
    need_bubblewrap()
    env = Python(kinds=["cipher"])
    env.reset(seed=3)
    assert isinstance(env._task, ToolTask)
    planted = dataclasses.replace(env._task, answer="canaryinthemine")
    env.reset(options={"task": planted})
    hunt = (
        "import gc, os, sys\n"
        "print(len([o for o in gc.get_objects() if 'canary' + 'inthemine' in repr(o)[:10**6]]), dict(os.environ))"
    )
    assert "canaryinthemine" not in say(env, hunt).replace(hunt, "")
    env.close()


def test_an_episode_goes_on_in_a_copy_of_its_state(env):
    say(env, "import random\nx = [random.random()]")
    state = env.get_state()
    frozen = pickle.dumps(state)
    ahead = [say(env, "x.append(random.random())\nx"), say(env, "len(x)")]
    other = Python(seconds=1)
    for copied in (env, other):
        copied.set_state(copy.deepcopy(state))
        assert [say(copied, "x.append(random.random())\nx"), say(copied, "len(x)")] == ahead
    other.close()
    assert pickle.dumps(state) == frozen


def test_a_sandbox_that_does_not_work_leaves_no_score(env, monkeypatch):
    def fail(*args):
        raise SandboxError("no worker starts")

    monkeypatch.setattr(Interpreter, "run", fail)
    _, reward, terminated, truncated, info = env.step(call("1"))
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert info["stop_reason"] == "tool_down" and info["grader_error"] == "no worker starts"
    assert info["is_success"] is False


def test_bad_calls_are_told(env):
    for text, said in (
        ('<tool_call>{"name": "python", "arguments": {}}</tool_call>', "argument 'code' is missing"),
        ('<tool_call>{"name": "python", "arguments": {"code": [1]}}</tool_call>', "'code' must be of type string"),
        ('<tool_call>{"name": "bash", "arguments": {"code": "1"}}</tool_call>', "there is no tool 'bash'"),
        (call("x" * 100_001), "a cell has at most 100,000 characters"),
    ):
        assert said in env.step(text)[0]


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"least_level": 0}, "least_level must be"), ({"most_level": 4}, "most_level"), ({"seconds": 0}, "seconds"),
        ({"least_level": 3, "most_level": 2}, "most_level"), ({"kinds": ["x"]}, "kinds must be"),
        ({"kinds": []}, "kinds must be"), ({"kinds": "cipher"}, "kinds must be"), ({"memory_mb": 1}, "memory_mb must"),
        ({"progress_weight": 0.1}, "knows no progress"),
    ],
)  # fmt: skip
def test_arguments_are_checked(kwargs, said):
    with pytest.raises(ValueError, match=said):
        Python(**kwargs)


def test_a_task_of_ones_own_can_be_played():
    env = Python()
    task = ToolTask("Which number is in n.txt?", "4211", {"decimals": 0}, {"files": {"n.txt": "4211"}})
    assert env.reset(options={"task": task})[0].startswith("Which number is in n.txt?")
    assert env.step(env.expert_action())[1] == 1.0
    for data, answer in (({}, "4211"), ({"decimals": 0}, "x"), ({"decimals": 99}, "1"), ({"decimals": 2}, "x")):
        with pytest.raises(ValueError, match="decimals"):
            env.reset(options={"task": ToolTask("Which?", answer, data)})
    with pytest.raises(TypeError, match="ToolTask"):
        env.reset(options={"task": Task("What is 6 * 7?", "42")})
    env.close()
