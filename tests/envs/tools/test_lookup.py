"""Lookup: its instances, its register, its expert in any state, and the contract with several arguments."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tetrathlon.envs.contract import check
from tetrathlon.envs.tools.calls import write_call
from tetrathlon.envs.tools.lookup import Lookup, Register
from tetrathlon.envs.tools.task import ToolTask
from tetrathlon.envs.tools.tool import ToolError

ENTRIES = {"Ann Bo": {"home town": "Kelford", "birth year": "1950"}, "Kelford": {"postal code": "12345"}}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"least_hops": 1, "most_hops": 1, "entries": 2},
    {"least_hops": 6, "most_hops": 6, "entries": 3, "max_turns": 14},
    {"entries": 12, "answer_format": "boxed", "progress_weight": 0.5, "error_cost": 0.1},
    {"letters": True, "brief": True, "answer_format": "plain", "shots": 1, "max_parallel": 1, "max_output": 100},
]


def lookup(name: str, attribute: str) -> str:
    return write_call("lookup", {"name": name, "attribute": attribute})


def task_of(env: Lookup) -> ToolTask:
    assert isinstance(env._task, ToolTask)
    return env._task


def test_the_register() -> None:
    register = Register(ENTRIES)
    assert register.lookup(" ann bo ", "Home_Town") == "Kelford"
    assert register.lookup("Ann Bo", "home town") == "Kelford"
    assert register.seen == [["Ann Bo", "home town"]]
    with pytest.raises(ToolError, match="there is no entry 'Bob'"):
        register.lookup("Bob", "home town")
    with pytest.raises(ToolError, match="Ann Bo has no 'age'; it has home town, birth year"):
        register.lookup("Ann Bo", "age")
    with pytest.raises(ToolError) as seen:
        register.lookup("x" * 100_000, "home town")
    assert len(str(seen.value)) < 100
    state = register.get_state()
    register.lookup("Kelford", "postal code")
    other = Register(ENTRIES)
    other.set_state(state)
    assert other.seen == [["Ann Bo", "home town"]] and other.get_state() is not state


@pytest.mark.parametrize("kwargs", SETTINGS)
def test_instances(kwargs: dict[str, Any]) -> None:
    env = Lookup(**kwargs)
    rng = np.random.default_rng(0)
    answers, questions = Counter[str](), set()
    for _ in range(100):
        task = env.generate(rng)
        assert isinstance(task, ToolTask)
        chain, entries = task.data["chain"], task.world["entries"]
        assert env.least_hops <= len(chain) <= env.most_hops and len(entries) == 4 * env.entries
        here = chain[0][0]
        for name, attribute in chain:
            assert name == here
            here = entries[name][attribute]
        assert here == task.answer and task.answer.isdecimal() and chain[0][0] in task.question
        assert task.answer not in task.question and len({tuple(link) for link in chain}) == len(chain)
        answers[task.answer] += 1
        questions.add(task.question)
    assert answers.most_common(1)[0][1] <= 8 and len(questions) >= 95


def test_a_large_register() -> None:
    task = Lookup(entries=200).generate(np.random.default_rng(0))
    assert isinstance(task, ToolTask) and len(task.world["entries"]) == 800


def test_an_instance_depends_on_nothing_but_its_generator() -> None:
    first, second = (Lookup().generate(np.random.default_rng(5)) for _ in range(2))
    assert (first, first.id) == (second, second.id)


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("kwargs", SETTINGS)
def test_the_expert_always_succeeds(split: str, kwargs: dict[str, Any]) -> None:
    env = Lookup(split=split, **kwargs)
    for index in range(200 if not kwargs else 20):
        env.reset(options={"index": index})
        total, over = 0.0, False
        while not over:
            _, reward, over, _, info = env.step(env.expert_action())
            total += reward
        assert info["is_success"] and total == pytest.approx(1.0 + env.progress_weight)


def test_the_expert_goes_on_from_wrong_turns() -> None:
    env = Lookup(max_turns=16, max_calls=60)
    rng = np.random.default_rng(0)
    for index in range(50):
        env.reset(options={"index": index})
        names = list(task_of(env).world["entries"])
        wrong = [
            "hm",
            "<tool_call>{",
            write_call("look", {}),
            *(lookup(names[int(len(names) * rng.random())], "mayor") for _ in range(4)),
        ]
        over = False
        for turn in range(16):
            action = wrong[int(len(wrong) * rng.random())] if turn < 6 else env.expert_action()
            *_, over, _, info = env.step(action)
            if over:
                break
        assert info["is_success"]


def test_nobody_is_paid_without_the_right_number() -> None:
    env = Lookup(progress_weight=0.5)
    rng = np.random.default_rng(0)
    for index in range(30):
        env.reset(options={"index": index})
        answer = int(task_of(env).answer)
        for said in ("", "none", "0", str(answer + 1), f"{answer} or {answer + 1}", str(int(90_000 * rng.random()))):
            env.reset(options={"index": index})
            _, reward, over, _, info = env.step(f"<answer>{said}</answer>")
            assert (reward, over, info["is_success"]) == (0.0, True, False) or said == str(answer)
        env.reset(options={"index": index})
        *_, info = env.step(f"<answer>{answer:,}.0</answer>" if answer > 999 else f"<answer>{answer}</answer>")
        assert info["is_success"]


def test_progress_counts_each_hop_once() -> None:
    env = Lookup(progress_weight=0.5, least_hops=3, most_hops=3)
    env.reset(seed=0)
    chain = task_of(env).data["chain"]
    calls = [lookup(*link) for link in chain]
    paid = [env.step(turn)[1] for turn in (calls[0], calls[0], calls[2] + calls[1], calls[1])]
    assert paid == pytest.approx([0.5 / 3, 0.0, 1 / 3, 0.0])


@pytest.mark.parametrize("kwargs", SETTINGS[2:])
def test_the_contract(kwargs: dict[str, Any]) -> None:
    ran = check("tetrathlon/Lookup-v0", kwargs=kwargs)
    assert {"expert", "state", "replay", "splits", "hostile", "no_answer"} <= set(ran)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"least_hops": 0},
        {"most_hops": 7},
        {"least_hops": 3, "most_hops": 2},
        {"entries": 1},
        {"entries": 201},
        {"entries": 7, "letters": True},
    ],
)
def test_arguments_out_of_their_range(kwargs: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be an integer from"):
        Lookup(**kwargs)


def test_a_step_is_fast() -> None:
    env = Lookup(shots=4)
    env.reset(seed=0)
    begun, steps = time.process_time(), 0
    for index in range(100):
        over = False
        env.reset(options={"index": index})
        while not over:
            *_, over, _, _ = env.step(env.expert_action())
            steps += 1
    assert steps / (time.process_time() - begun) > 200  # several thousand where nobody else is at work
