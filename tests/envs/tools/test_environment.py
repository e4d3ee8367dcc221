"""A toy of tools: turns, budgets, what runs and what is paid, states, and tools that are down."""

from __future__ import annotations

import copy
import json
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest

from tetrathlon.envs.contract import CHECKS, check
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.tools.calls import read_calls, write_call
from tetrathlon.envs.tools.environment import ToolEnv
from tetrathlon.envs.tools.play import Play
from tetrathlon.envs.tools.task import ToolTask
from tetrathlon.envs.tools.tool import Tool, ToolDown, ToolError, tool
from tetrathlon.envs.tools.world import World


class Box(World):
    """Counts what ran."""

    closed: ClassVar[int] = 0

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.ran: list[str] = []
        self.paid = 0

    @tool
    def echo(self, text: str) -> str:
        """Say it."""
        self.ran.append(f"echo {text[:20]}")
        return text

    @tool
    def boom(self) -> str:
        """Fail."""
        self.ran.append("boom")
        raise ToolError("it went off")

    @tool
    def calc(self, x: str) -> float:
        """Add.

        Args:
            x: A sum such as 1+1.
        """
        self.ran.append(f"calc {x}")
        return sum(float(part) for part in x.split("+"))

    @tool
    def pay(self, amt: int) -> str:
        """Pay."""
        self.ran.append(f"pay {amt}")
        self.paid += amt
        return f"{self.paid} of {self.steps}"

    @tool
    def fill(self, sign: str, times: int) -> str:
        """Say much."""
        self.ran.append("fill")
        return sign * times + "END"

    @tool
    def down(self) -> str:
        """Be gone."""
        self.ran.append("down")
        raise ToolDown("no network " * 200)

    def close(self) -> None:
        Box.closed += 1


class Toy(ToolEnv):
    """Pay 1 as often as asked, then answer with the sum."""

    default_max_turns: ClassVar[int] = 12
    default_max_calls: ClassVar[int] = 12
    knows_progress: ClassVar[bool] = True
    grader_fails: ClassVar[bool] = False

    def generate(self, rng: np.random.Generator) -> Task:
        steps = 1 + int(5 * rng.random())
        number = int(10_000 * rng.random())
        return ToolTask(
            f"Pay 1 {steps} times for order {number}; answer {number}.", f"{number}", None, {"steps": steps}
        )

    def open(self, task: ToolTask) -> World:
        return Box(task.world["steps"])

    def is_right(self, task: ToolTask, answer: str | None, world: World) -> bool:
        if self.grader_fails:
            raise OSError("no grader")
        return answer == task.answer and isinstance(world, Box) and world.paid == world.steps

    def progress(self, play: Play) -> float:
        assert isinstance(play.world, Box)
        return min(play.world.paid / play.world.steps, 1.0)

    def expert(self, play: Play) -> str:
        assert isinstance(play.world, Box)
        if play.world.paid < play.world.steps:
            return write_call("pay", {"amt": 1})
        return self._write_solution(play.task)


TASK = ToolTask("Pay 1 twice for order 7; answer 7.", "7", None, {"steps": 2})
GOOD = write_call("calc", {"x": "1+1"})
PAY = '<tool_call>{"name":"pay","arguments":{"amt":5}}</tool_call>'


def begin(**kwargs: Any) -> Toy:
    env = Toy(**kwargs)
    env.reset(seed=0, options={"task": TASK})
    return env


def ran(env: Toy) -> list[str]:
    assert env._play is not None and isinstance(env._play.world, Box)
    return env._play.world.ran


def names(info: dict[str, Any]) -> list[tuple[str, str]]:
    return [(result["name"], result["error"]) for result in info["tool_results"]]


def test_an_expert_episode() -> None:
    env = Toy()
    seen, info = env.reset(seed=1)
    assert seen.endswith("Put your final answer between <answer> and </answer>.\nYou have 12 turns and 12 calls.")
    assert info["role"] == "user" and [one["function"]["name"] for one in info["tools"]] == [
        "echo", "boom", "calc", "pay", "fill", "down",
    ]  # fmt: skip
    assert info["limits"] == {"tokens": 256, "episode_tokens": 12 * 256, "turns": 12, "calls": 12}
    assert info["tools"] == env.as_openai_tools()
    total, over, turns = 0.0, False, 0
    while not over:
        seen, reward, over, truncated, info = env.step(env.expert_action())
        total, turns = total + reward, turns + 1
        assert not truncated and reward == sum(info["reward_terms"].values())
        json.dumps(info)
    assert env._play is not None
    assert (total, turns, info["is_success"], info["stop_reason"]) == (1.0, env._play.calls + 1, True, "answered")
    assert seen == ""
    with pytest.raises(gym.error.ResetNeeded):
        env.step("again")


# The public cases.


def test_double_encoded_arguments_run_and_others_are_told(capsys: pytest.CaptureFixture[str]) -> None:  # t02
    env = begin()
    assert env.step('<tool_call>{"name":"echo","arguments":"{\\"text\\": \\"a.txt\\"}"}</tool_call>')[0] == "a.txt"
    for arguments, kind in (("[1,2]", "invalid_call"), ("5", "invalid_call"), ("null", "invalid_arguments")):
        seen, reward, over, truncated, info = env.step(
            f'<tool_call>{{"name":"echo","arguments":{arguments}}}</tool_call>'
        )
        assert seen.startswith("Error: ") and (reward, over, truncated) == (0.0, False, False)
        assert names(info) == [("echo", kind)] and info["tool_errors"][kind] == 1
    assert "argument 'text' is missing" in seen
    assert env.step('<tool_call>{"name":"boom","arguments":null}</tool_call>')[0] == "Error: it went off"
    assert ran(env) == ["echo a.txt", "boom"]


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name":"pay","arguments":{"amt": }}</tool_call>',
        '<tool_call>{"name":"pay","arguments":{"amt":5',
        "<tool_call>{'name':'pay','arguments':{'amt':3}}</tool_call>",
        '<tool_call>{"name":"pay","arguments":{"amt":5}',  # t07
    ],
)
def test_broken_calls_never_run(text: str) -> None:  # t03
    env = begin()
    seen, reward, over, _, info = env.step(text)
    assert ran(env) == [] and (reward, over) == (0.0, False)
    assert "not valid JSON" in seen and "character" in seen and info["tool_errors"]["invalid_json"] == 1


def test_only_calls_behind_the_thinking_run() -> None:  # t04
    for text, runs in (
        (f"<think>I will try {PAY} next.</think>{PAY}", 1),
        (f"<think>plan {PAY}</think>Done.", 0),
        (f"<think>go {PAY}", 0),
    ):
        env = begin()
        seen, _, over, _, info = env.step(text)
        assert ran(env) == ["pay 5"] * runs and not over
        assert info["role"] == ("tool" if runs else "user")
        assert runs or seen.startswith("There is neither a tool call nor a final answer in this turn.")


def test_an_unknown_tool_is_told_the_known_ones() -> None:  # t05
    env = begin()
    seen, _, over, _, info = env.step('<tool_call>{"name":"calculator","arguments":{"x":"1+1"}}</tool_call>')
    assert seen == "Error: there is no tool 'calculator'; there are echo, boom, calc, pay, fill, down"
    assert not over and info["tool_errors"]["unknown_tool"] == 1 and sum(info["tool_errors"].values()) == 1
    assert env._play is not None and env._play.turns == 1


@pytest.mark.parametrize("tail", ["", "</tool_c"])
def test_a_call_whose_closing_tag_was_cut_runs(tail: str) -> None:  # t07
    env = begin()
    assert env.step('<tool_call>{"name":"calc","arguments":{"x":"2+3"}}' + tail)[0] == "5.0"
    assert ran(env) == ["calc 2+3"]


def test_each_call_has_its_result_in_order() -> None:  # t08
    env = begin(max_parallel=3)
    calls = [("echo", {"text": "a"}), ("boom", {}), ("echo", {"text": "b"}), ("echo", {"text": "c"})]
    seen, _, _, _, info = env.step("".join(write_call(*call) for call in calls))
    assert [result["content"] for result in info["tool_results"]] == [
        "a", "Error: it went off", "b", "Error: not run: the limit is 3 calls a turn",
    ]  # fmt: skip
    assert names(info) == [("echo", ""), ("boom", "tool_error"), ("echo", ""), ("echo", "not_run")]
    assert seen.split("\n")[:4] == ["[1] echo", "a", "[2] boom", "Error: it went off"]
    assert ran(env) == ["echo a", "boom", "echo b"]


def test_no_call_vanishes() -> None:
    env = begin(max_parallel=64, max_calls=1_000, max_output=100_000)
    seen, _, _, _, info = env.step(write_call("fill", {"sign": "a", "times": 99_000}) * 200)
    assert len(info["tool_results"]) == 65 and "more than 64 calls" in info["tool_results"][-1]["content"]
    assert seen in env.observation_space and len(ran(env)) == 64


def test_long_output_is_cut() -> None:  # t09
    env = begin(max_output=1_000)
    seen, *_ = env.step(write_call("fill", {"sign": "日", "times": 5_000}))
    assert len(seen) == 1_000 and seen.endswith("END") and "5,003 characters in all, cut to 1,000" in seen
    assert len(seen.encode()) > 2_000
    seen, *_ = env.step(write_call("echo", {"text": "a\ud800b"}))
    assert seen == "a\ufffdb"


def test_one_call_for_ever_ends_at_the_turns() -> None:  # t13
    env = begin(max_turns=6)
    for turn in range(6):
        seen, reward, over, truncated, info = env.step(GOOD)
        assert (seen, reward, truncated, over) == ("2.0", 0.0, False, turn == 5)
    assert (info["is_success"], info["stop_reason"]) == (False, "max_turns") and len(ran(env)) == 6


# Budgets.


def test_who_makes_one_call_more_has_spent_the_budget() -> None:
    env = begin(max_calls=3)
    assert not env.step(GOOD * 3)[2]
    seen, _, over, _, info = env.step(PAY)
    assert over and info["stop_reason"] == "max_calls" and seen == "Error: not run: the limit is 3 calls in all"
    assert len(ran(env)) == 3 and info["tool_errors"]["not_run"] == 1
    env = begin(max_calls=3)
    seen, _, over, _, info = env.step(GOOD * 2 + "<tool_call>{</tool_call>" + GOOD)
    assert over and len(ran(env)) == 2 and [error for _, error in names(info)] == ["", "", "invalid_json", "not_run"]
    env = begin(max_calls=2)
    env.step(write_call("pay", {"amt": 1}) * 2)
    assert env.step("<answer>7</answer>")[4]["is_success"]  # what was spent to the last call may be answered


def test_an_answer_on_the_last_turn_counts() -> None:
    env = begin(max_turns=2)
    env.step(write_call("pay", {"amt": 1}) * 2)
    _, reward, over, _, info = env.step("<answer>7</answer>")
    assert (reward, over, info["stop_reason"]) == (1.0, True, "answered")


@pytest.mark.parametrize("text", ["", "\0", "7", "hm", "<answer", "<think><answer>7</answer>", "\ud800"])
def test_a_turn_with_neither_costs_a_turn(text: str) -> None:
    env = begin(max_turns=2)
    seen, reward, over, _, info = env.step(text)
    assert "neither a tool call nor a final answer" in seen and (reward, over, info["role"]) == (0.0, False, "user")
    assert env.step(text)[4]["stop_reason"] == "max_turns"


def test_a_turn_with_calls_is_no_answer() -> None:
    env = begin()
    assert not env.step(f"<answer>7</answer>{GOOD}<answer>7</answer>")[2]
    assert not env.step("<answer>7</answer><tool_call>{</tool_call>")[2]
    assert env.answer_in(f"<answer>7</answer>{GOOD}") is None
    assert env.answer_in("<answer>7</answer>") == "7"
    _, reward, over, _, info = begin().step("<answer></answer>")  # it is given, and wrong
    assert (reward, over, info["stop_reason"]) == (0.0, True, "answered")
    assert env.step(f"<think>{GOOD}</think><answer>7</answer>")[2]


@pytest.mark.parametrize("action", [None, 3, b"x", ["a"], {"name": "pay"}, 1.5])
def test_actions_that_are_no_text_cost_a_turn(action: Any) -> None:
    env = begin()
    seen, reward, over, _, _ = env.step(action)
    assert isinstance(seen, str) and (reward, over) == (0.0, False) and ran(env) == []


@pytest.mark.parametrize(
    "kwargs",
    [
        {"max_turns": 0},
        {"max_turns": 2.5},
        {"max_calls": True},
        {"max_parallel": 65},
        {"max_output": 99},
        {"max_output": 100_001},
        {"progress_weight": 1},
        {"progress_weight": -0.1},
        {"error_cost": 1.5},
        {"error_cost": float("nan")},
        {"max_episode_tokens": 0},
    ],
)
def test_arguments_out_of_their_range_are_refused(kwargs: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(kwargs))}.* must be .*, got"):
        Toy(**kwargs)


def test_progress_must_be_known_to_be_paid() -> None:
    class Blind(Toy):
        knows_progress: ClassVar[bool] = False

    with pytest.raises(ValueError, match="Blind knows no progress"):
        Blind(progress_weight=0.5)


# Rewards.


def test_progress_is_paid_once_and_errors_cost() -> None:
    env = begin(progress_weight=0.4, error_cost=0.1)
    one = write_call("pay", {"amt": 1})
    paid = [
        env.step(text)
        for text in (
            one,
            write_call("pay", {"amt": -1}),
            one,
            "<tool_call>{</tool_call>" * 3 + one,
            "<answer>7</answer>",
        )
    ]
    assert [step[1] for step in paid] == pytest.approx([0.2, 0.0, 0.0, 0.1, 1.0])
    assert [step[4]["reward_terms"]["errors"] for step in paid] == [0.0, 0.0, 0.0, -0.1, 0.0]
    assert [step[4]["scores"]["progress"] for step in paid] == [0.5, 0.5, 0.5, 1.0, 1.0]
    for step in paid:
        assert step[1] == sum(step[4]["reward_terms"].values())
        assert set(step[4]["reward_terms"]) == set(step[4]["scores"]) == {"correct", "progress", "errors"}
        assert all(type(pay) is float for pay in step[4]["reward_terms"].values())
    assert paid[-1][4]["is_success"]


def test_a_world_at_the_end_may_be_graded() -> None:
    class Left(Toy):
        world_decides: ClassVar[bool] = True

        def is_right(self, task: ToolTask, answer: str | None, world: World) -> bool:
            assert isinstance(world, Box)
            return world.paid == world.steps

    env = Left(max_turns=1)
    env.reset(options={"task": TASK})
    _, reward, over, _, info = env.step(write_call("pay", {"amt": 2}))
    assert (reward, over, info["is_success"], info["stop_reason"]) == (1.0, True, True, "max_turns")


def test_a_tool_that_is_down_leaves_no_score() -> None:
    env = begin(progress_weight=0.5, error_cost=0.5)
    seen, reward, over, truncated, info = env.step(write_call("pay", {"amt": 2}) + write_call("down", {}) + GOOD)
    assert (seen, reward, over, truncated) == ("", 0.0, True, False)
    assert info["stop_reason"] == "tool_down" and not info["is_success"]
    assert info["grader_error"].startswith("no network") and len(info["grader_error"]) <= 500
    assert set(info["reward_terms"]) == {"correct", "progress", "errors"} and not any(info["reward_terms"].values())
    assert ran(env) == ["pay 2", "down"]
    with pytest.raises(gym.error.ResetNeeded):
        env.step(GOOD)


def test_a_world_whose_tools_are_down_leaves_no_score() -> None:
    class Gone(Box):
        def tools(self) -> dict[str, Tool]:
            if self.ran:
                raise ToolDown("the server died")
            return super().tools()

    class Far(Toy):
        def open(self, task: ToolTask) -> World:
            return Gone(2)

    env = Far()
    env.reset(seed=0)
    env.step(GOOD)
    _, reward, over, _, info = env.step(GOOD)
    assert (reward, over, info["stop_reason"], info["grader_error"]) == (0.0, True, "tool_down", "the server died")


def test_a_grader_that_fails_leaves_no_score() -> None:
    class Ungraded(Toy):
        grader_fails: ClassVar[bool] = True

    env = Ungraded(progress_weight=0.5)
    env.reset(options={"task": TASK})
    env.step(write_call("pay", {"amt": 2}))
    _, reward, over, _, info = env.step("<answer>7</answer>")
    assert (reward, over, info["is_success"]) == (0.0, True, False) and "no grader" in info["grader_error"]


# State, experts, examples.


def test_a_state_in_the_middle_restores_exactly() -> None:
    env, other = Toy(progress_weight=0.5), Toy(progress_weight=0.5)
    env.reset(seed=3)
    env.step(write_call("pay", {"amt": 1}) + "<tool_call>")
    state = env.get_state()
    kept = copy.deepcopy(state)
    turns = [write_call("pay", {"amt": 1}), "nothing", GOOD * 3, "<answer>1</answer>"]
    steps = [env.step(turn) for turn in turns]
    after = env.reset()
    other.reset(seed=9)
    for copied in (other, env, other):
        seen, info = copied.set_state(state)
        assert seen.startswith("[1] pay") and info["tool_errors"]["invalid_json"] == 1
        assert [copied.step(turn) for turn in turns] == steps
        assert copied.reset() == after
    assert str(state) == str(kept)
    env.set_state(state)
    assert env.set_state(state)[1] is not env.set_state(state)[1]


def test_a_state_of_no_episode_and_of_an_ended_one() -> None:
    env, other = Toy(), Toy()
    assert other.set_state(env.get_state()) == ("", {})
    env.reset(seed=0)
    env.step("<answer>1</answer>")
    ended = env.get_state()
    other.set_state(ended)
    with pytest.raises(gym.error.ResetNeeded):
        other.step("a")
    env.close()
    assert other.set_state(env.get_state()) == ("", {})
    with pytest.raises(gym.error.ResetNeeded):
        other.step("a")
    other.set_state(ended)


def test_asking_the_expert_changes_nothing() -> None:
    env = begin(max_turns=4)
    env.step(write_call("pay", {"amt": 1}))
    state, shut = str(env.get_state()), Box.closed
    one, several = env.expert_action(), env.expert_action(k=5)
    assert str(env.get_state()) == state and Box.closed == shut + 1
    assert several == [one, "<answer>7</answer>", *["<answer>7</answer>"] * 3]
    assert [env.step(turn)[2] for turn in several[:2]] == [False, True]


def test_worlds_are_closed() -> None:
    shut = Box.closed
    env = begin()
    env.reset(seed=1)
    env.set_state(env.get_state())
    env.close()
    env.close()
    assert Box.closed == shut + 3


def test_examples_are_whole_episodes_and_fresh() -> None:
    env = Toy(shots=2)
    seen = [env.reset(seed=seed)[1] for seed in range(2)]
    assert seen[0]["examples"] == seen[1]["examples"]
    seen[0]["examples"][0]["content"] = "changed"
    seen[0]["examples"].clear()
    messages = env.reset(seed=0)[1]["examples"]
    assert messages == seen[1]["examples"] and {m["role"] for m in messages} == {"user", "assistant", "tool"}
    asked = [m["content"] for m in messages if m["role"] == "user"]
    assert len(asked) == 2 and all("turns and" in one for one in asked)
    answers = [m["content"] for m in messages if m["role"] == "assistant" and not read_calls(m["content"])]
    assert len(answers) == 2 and all("<answer>" in one for one in answers)
    assert len(messages) == 2 * sum(m["role"] == "assistant" for m in messages)
    shown = {env.reset(options={"index": index})[1]["task_id"] for index in range(50)} & set(env._examples)
    assert not shown


def test_brief_says_the_question_alone() -> None:
    env = Toy(brief=True, answer_format="plain")
    seen, info = env.reset(options={"task": TASK})
    assert seen == TASK.question and info["tools"] == []
    assert len(env.as_openai_tools()) == 6 and env.step(GOOD)[0] == "2.0"


def test_a_task_of_another_kind_is_refused() -> None:
    env = Toy()
    with pytest.raises(TypeError, match="Toy plays a ToolTask, got Task"):
        env.reset(options={"task": Task("2 + 2?", "4")})
    for ask in (env.as_openai_tools, env.expert_action):
        with pytest.raises(gym.error.ResetNeeded):
            ask()


def test_a_task_is_named_by_its_question_and_its_world() -> None:
    plain, one, two = (ToolTask("Q", "a", {"k": 1}, world) for world in (None, {"x": 1}, {"x": 2}))
    assert plain.id == Task("Q", "b").id and len({plain.id, one.id, two.id}) == 3
    assert ToolTask("Q", "b", {"k": 2}, {"x": 1}).id == one.id
    assert ToolTask("Q", "a", None, {"b": b"\0", "a": 1}).id == ToolTask("Q", "a", None, {"a": 1, "b": b"\0"}).id


def test_it_is_rendered_as_text() -> None:
    env = begin(render_mode="ansi")
    env.step(GOOD)
    env.step("<answer>7</answer>")
    shown = env.render()
    assert shown is not None and shown.startswith(TASK.question) and "> <answer>7</answer>\n\n(answered)" in shown
    assert begin().render() is None


def test_the_toy_keeps_the_contract() -> None:
    names = ["hostile", "expert", "reward_terms", "state", "replay", "vector"]
    assert check(Toy(), only=names) == [name for name in CHECKS if name in names]
