"""The environment: experts are right, shortcuts are not, episodes go on."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from tetrathlon.envs.language.task import Task
from tetrathlon.envs.sandbox import SandboxError
from tetrathlon.envs.text.coding import held
from tetrathlon.envs.text.coding.environment import Code
from tetrathlon.envs.text.coding.tasks import FAMILIES


def reply(source: str) -> str:
    return f"```python\n{source}\n```"


def played(env: Code, action: str, seed: int = 0) -> tuple[float, dict[str, Any]]:
    env.reset(seed=seed)
    observation, reward, terminated, truncated, info = env.step(action)
    assert (observation, terminated, truncated) == ("", True, False)
    json.dumps(info)
    return reward, info


@pytest.mark.parametrize("family", FAMILIES)
def test_the_expert_is_right_and_shortcuts_are_not(family: str) -> None:
    env = Code(families=[family])
    question, _ = env.reset(seed=0)
    reward, info = played(env, f"<think>so</think>Here it is.\n\n{env.expert_action()}")
    assert reward == 1.0 and info["is_success"] and info["scores"] == {"correct": 1.0, "tests": 1.0}
    name = env.get_state()["task"].data["tests"].name
    shown = [line.removeprefix(name).split(" returns ") for line in question.splitlines() if ") returns " in line]
    assert len(shown) == 3
    # A table of what is shown: its arguments as they stand there, its results too.
    table = ", ".join(f"repr({call[:-1]},)): {result}" for call, result in shown)
    source = f"SHOWN = {{{table}}}\ndef {name}(*a): return SHOWN.get(repr(a), {shown[0][1]})"
    _, info = played(env, reply(source))
    assert info["scores"]["correct"] == 0.0 and info["scores"]["tests"] <= 0.5 and "wrong value" in info["verdict"]


def test_the_question_and_its_format() -> None:
    env = Code(families=["mask_text"])
    question, info = env.reset(seed=1)
    assert question.startswith(
        "Write this Python function:\n\ndef mask_text(text: str) -> str\n\nReplace each character"
    )
    assert question.count("mask_text(") == 4 and question.endswith("in one ```python block.")
    assert info["limits"] == {"tokens": 512}
    assert Code(families=["mask_text"], examples=0).reset(seed=1)[0].count("mask_text(") == 1


@pytest.mark.parametrize(
    "action, stop, verdict",
    [
        ("I do not know.", "no_answer", "nothing was judged"),
        ("", "no_answer", "nothing was judged"),
        ("```python\ndef f(", "no_answer", "nothing was judged"),
        (reply("x = 1"), "answered", "test 1 of 12: the code raised NameError when it was loaded"),
        (reply("import sys\nsys.exit(0)"), "answered", "test 1 of 12: the code raised SystemExit when it was loaded"),
    ],
)
def test_how_an_episode_ends(action: str, stop: str, verdict: str) -> None:
    reward, info = played(Code(families=["mask_text"]), action)
    assert (reward, info["is_success"], info["stop_reason"], info["verdict"]) == (0.0, False, stop, verdict)


def test_nothing_but_all_tests_pays() -> None:
    env = Code(families=["digit_powers"], format_weight=0.1)
    env.reset(seed=0)
    source = env.get_state()["task"].answer
    half = source.replace("return number", "return number if number % 2 else -1")
    reward, info = played(env, reply(half))
    assert reward == pytest.approx(0.1) and info["reward_terms"] == {"correct": 0.0, "format": 0.1, "tests": 0.0}
    assert 0 < info["scores"]["tests"] < 1 and not info["is_success"]
    assert played(env, reply(source))[0] == pytest.approx(1.1)


def test_a_completion_runs_once_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    open_session = held.opened

    def counted(*given: Any) -> Any:
        runs.append(given)
        return open_session(*given)

    monkeypatch.setattr(held, "opened", counted)
    env = Code()
    env.reset(seed=0)
    assert env.step(env.expert_action())[1] == 1.0 and len(runs) == 1
    env.reset(seed=1)
    assert env.step(env.expert_action())[1] == 1.0 and len(runs) == 2


def test_a_broken_sandbox_is_a_grader_error_and_the_next_episode_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    env = Code()
    env.reset(seed=0)
    expert = env.expert_action()

    class Broken:
        def open(self, *given: Any, **named: Any) -> Any:
            raise SandboxError("no namespaces")

    with monkeypatch.context() as patch:
        patch.setattr(held, "shared", Broken)
        reward, info = played(env, expert)
    assert reward == 0.0 and not info["is_success"] and "no namespaces" in info["grader_error"]
    assert played(env, expert)[0] == 1.0


def test_states_and_copies() -> None:
    env = Code()
    env.reset(seed=4)
    state = pickle.loads(pickle.dumps(env.get_state()))
    expert = env.expert_action()
    env.step(expert)
    ended = env.get_state()
    other = Code()
    assert other.set_state(state)[0] == Code().reset(seed=4)[0]
    assert other.step(expert)[1] == 1.0
    assert Code().set_state(ended)[1]["is_success"]
    assert copy.deepcopy(env).reset(seed=4)[0] == Code().reset(seed=4)[0]


@pytest.mark.parametrize("task", [Task("q", "a"), Task("q", "a", {"tests": 5}), Task("q", "a", {"tests": ()})])
def test_a_task_without_tests_is_refused(task: Task) -> None:
    with pytest.raises(ValueError, match="'tests'"):
        Code().reset(options={"task": task})


@pytest.mark.parametrize(
    "given, why",
    [
        ({"families": []}, "families must be some of"),
        ({"families": "mask_text"}, "families must be some of"),
        ({"families": ["mask_text", "mask_text"]}, "each once"),
        ({"families": ["no_such"]}, "no_such"),
        ({"examples": 7}, "examples must be an integer from 0 to 6, got 7"),
        ({"seconds": 0}, "seconds must be a number above 0, up to 600, got 0"),
        ({"seconds": float("nan")}, "seconds"),
        ({"memory_mb": 1}, "memory_mb must be an integer from 64"),
        ({"verify": True}, "verify say how data are read"),
        ({"data_config": "main"}, "data_config say how data are read"),
        ({"data": "rows.jsonl", "families": ["mask_text"]}, "families are for functions of our own"),
        ({"data": "rows.jsonl", "examples": 2}, "examples are for functions of our own"),
        ({"answer_format": "boxed"}, "answer_format must be one of"),
    ],
)
def test_arguments_that_are_wrong_are_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Code(**given)
