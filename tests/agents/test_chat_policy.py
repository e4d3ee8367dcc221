"""A server's model as a policy: what it is asked, what it remembers, what it notes."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from PIL import Image

from tests.agents.fault_server import Answer, FaultServer, refusal
from tetrathlon.agents import ChatPolicy, evaluate
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.envs.slots import Slots
from tetrathlon.envs.spaces import UnicodeText

TOOL = {"name": "add", "description": "a + b", "parameters": {"type": "object"}}


class Desk(gym.Env[str, str]):
    """Wants one tool call, then ``done``; says what it was sent."""

    def __init__(self) -> None:
        self.observation_space = UnicodeText(10_000)
        self.action_space = UnicodeText(10_000)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.turns = 0
        info = {"task_id": str(seed), "system": "be brief", "tools": [TOOL], "limits": {"tokens": 9}}
        return f"task {seed}", info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.turns += 1
        over = "<tool_call>" not in action
        info = {"is_success": action.endswith("done"), "stop_reason": "answered"} if over else {"role": "tool"}
        return f"heard {self.turns}", float(over), over, False, info


class Picture(gym.Env[Any, str]):
    """Shows a picture and a question."""

    def __init__(self) -> None:
        self.observation_space = spaces.Dict(
            {"image": spaces.Box(0, 255, (4, 4, 3), np.uint8), "text": UnicodeText(100)}
        )
        self.action_space = UnicodeText(100)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return {"image": np.full((4, 4, 3), (seed or 0) % 256, np.uint8), "text": "how bright?"}, {"task_id": str(seed)}

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return {"image": np.zeros((4, 4, 3), np.uint8), "text": ""}, 1.0, True, False, {"is_success": True}


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    gym.register("toys/Desk-v0", entry_point=Desk)  # type: ignore[arg-type]
    gym.register("toys/Picture-v0", entry_point=Picture)  # type: ignore[arg-type]
    yield
    for name in ("toys/Desk-v0", "toys/Picture-v0"):
        del gym.registry[name]


def says(content: Any, finish: str = "stop", usage: Any = None, **message: Any) -> Answer:
    return Answer(message={"role": "assistant", "content": content, **message}, finish=finish, usage=usage)


def policy(there: FaultServer, **options: Any) -> ChatPolicy:
    return ChatPolicy(there.url, "m", **{"retries": 0, **options})


def test_what_is_asked() -> None:
    info = {
        "system": "be brief",
        "examples": [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2\ud800"}],
        "tools": [TOOL],
        "limits": {"tokens": 9.0},
    }
    with FaultServer(lambda body, number: says("4")) as there:
        acted = policy(there, temperature=0.7, extra={"top_p": 0.5}).act(("3",), infos=[info])
        assert there.bodies == [
            {
                "model": "m",
                "messages": [
                    {"role": "system", "content": "be brief"},
                    {"role": "user", "content": "1"},
                    {"role": "assistant", "content": "2\ufffd"},
                    {"role": "user", "content": "3"},
                ],
                "temperature": 0.7,
                "top_p": 0.5,
                "tools": [{"type": "function", "function": TOOL}],
                "max_tokens": 9,
            }
        ]
        assert acted.actions == ("4",) and acted.stops == ["eos"] and acted.records == [None]


def test_greedy_is_temperature_0_and_samples_have_seeds_of_their_own() -> None:
    def seeds(seed: int | None) -> list[Any]:
        with FaultServer(lambda body, number: says("4")) as there:
            made = policy(there, seed=seed, max_concurrency=1)
            made.act(("a", "b"), greedy=True)
            made.act(("a", "b"))
            made.act(("a",))
            assert [body["temperature"] for body in there.bodies] == [0.0, 0.0, 1.0, 1.0, 1.0]
            return [body.get("seed") for body in there.bodies]

    drawn = seeds(3)
    assert drawn[:2] == [None, None] and len(set(drawn[2:])) == 3 and drawn == seeds(3) != seeds(4)
    assert seeds(None) == [None] * 5


def test_memory_is_the_conversation() -> None:
    with FaultServer(lambda body, number: says(f"reply {number}")) as there:
        made = policy(there, max_concurrency=1)
        first = made.act(("a", "b"), infos=[{}, {"limits": {"tokens": 5}}])
        made.act(("c", "d"), first.memory, infos=[{}, {}])
        assert [m["content"] for m in there.bodies[3]["messages"]] == ["b", "reply 1", "d"]
        assert "max_tokens" not in there.bodies[2] and there.bodies[3]["max_tokens"] == 5
        assert len(first.memory[0].messages) == 2  # as it was handed out


def test_forced_turns_are_remembered_and_not_asked_for() -> None:
    with FaultServer(lambda body, number: says("own")) as there:
        made = policy(there)
        infos = [{"tools": [TOOL]}, {}]
        call = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
        acted = made.act(("a", "b"), infos=infos, forced=[call, None])
        assert acted.actions == (call, "own") and acted.records == [None, None] and acted.stops == [None, "eos"]
        assert len(there.bodies) == 1
        made.act(("3",), acted.memory[:1], infos=[{"role": "tool"}])
        _, turn, tool = there.bodies[1]["messages"]
        assert turn["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
        assert tool == {"role": "tool", "tool_call_id": turn["tool_calls"][0]["id"], "content": "3"}


def test_a_whole_episode_of_tools() -> None:
    calls = [{"id": "abc", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}]

    def script(body: dict[str, Any], number: int) -> Answer:
        usage = {"prompt_tokens": 5, "completion_tokens": 4}
        if body["messages"][-1]["role"] == "tool":
            return says("done", usage=usage, reasoning_content="easy")
        return says(None, "tool_calls", usage, tool_calls=calls)

    with FaultServer(script) as there:
        made = policy(there)
        result = evaluate(made, "toys/Desk-v0", episodes=3)
        assert result.success["mean"] == 1.0 and result.tokens == {"mean": 8.0, "total": 24}
        first, second = result.episodes_played[0].steps
        assert first.action == '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'
        assert second.action == "<think>\neasy\n</think>\n\ndone" and second.observation == "heard 1"
        assert first.record is not None and {k: int(v) for k, v in first.record.items()} == {
            "prompt_tokens": 5,
            "completion_tokens": 4,
        }
        assert (made.usage.requests, made.usage.prompt_tokens, made.usage.completion_tokens) == (6, 30, 24)


def test_reasoning_is_not_sent_again() -> None:
    with FaultServer(lambda body, number: says("4", reasoning_content="secret")) as there:
        made = policy(there)
        made.act(("b",), made.act(("a",)).memory)
        assert "secret" not in json.dumps(there.bodies) and there.bodies[1]["messages"][1]["content"] == "4"


def test_pictures() -> None:
    with FaultServer(lambda body, number: says("bright")) as there:
        result = evaluate(policy(there), "toys/Picture-v0", episodes=2)
        assert result.success["mean"] == 1.0
        shown, text = there.bodies[0]["messages"][0]["content"]
        assert shown["image_url"]["url"].startswith("data:image/png;base64,") and text["text"] == "how bright?"
        assert there.bodies[0]["messages"] != there.bodies[1]["messages"]


@pytest.mark.parametrize(
    ("answer", "action", "stop"),
    [
        (says("4"), "4", "eos"),
        (says(None), "", "eos"),
        (says("4", "tool_calls"), "4", "eos"),
        (says("4 and", "length"), "4 and", "length"),
        (says("4", usage={"completion_tokens": 9}), "4", "eos"),
        (says("4", usage={"completion_tokens": 10}), "4", "length"),  # a server that knows no limit
        (says("half", "content_filter"), "half", None),
        (says("4", "something new"), "4", None),
        (refusal(400, "full", "context_length_exceeded"), "", "context"),
        (refusal(400, "no", "content_filter"), "", None),
    ],
)
def test_why_a_turn_stopped(answer: Answer, action: str, stop: str | None) -> None:
    with FaultServer(lambda body, number: answer) as there:
        acted = policy(there).act(("hi",), infos=[{"limits": {"tokens": 9}}])
        assert (acted.actions, acted.stops) == ((action,), [stop])


def test_a_cut_ends_the_episode() -> None:
    with FaultServer(lambda body, number: says('<tool_call>{"name": "add"}</tool_call>', "length")) as there:
        slots = Slots(Desk, 1)
        (episode,) = Rollout(policy(there), slots, [Start(seed=1)]).episodes()
        slots.close()
        assert episode.stop_reason == "length" and len(episode) == 1 and not episode.is_success


@pytest.mark.parametrize(
    ("info", "said"),
    [
        ({"limits": {"tokens": 2.5}}, "must be a whole number such as 256, got 2.5"),
        ({"system": 5}, r"info\['system'\] must be a string, got 5"),
        ({"tools": {}}, r"info\['tools'\] must be a list"),
        ({"tools": [5]}, "a tool must be a dict"),
        ({"examples": ["x"]}, "example 0 must be a message"),
    ],
)
def test_a_wrong_info_is_told(info: dict[str, Any], said: str) -> None:
    with FaultServer(lambda body, number: says("4")) as there, pytest.raises(ValueError, match=said):
        policy(there).act(("hi",), infos=[info])


def test_options() -> None:
    with pytest.raises(ValueError, match="temperature must be at least 0, got -1"):
        ChatPolicy("http://localhost:1/v1", "m", temperature=-1)
    for taken in ("n", "temperature"):
        with pytest.raises(ValueError, match=f"extra must not hold '{taken}'"):
            ChatPolicy("http://localhost:1/v1", "m", extra={taken: 2})


def test_nothing_is_asked_of_nobody() -> None:
    with FaultServer(lambda body, number: says("4")) as there:
        assert policy(there).act((), [], infos=[]).actions == () and not there.bodies


def test_a_picture_is_a_part_of_its_message_in_every_turn_that_shows_it() -> None:
    images = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)
    with FaultServer(lambda body, number: says("so")) as there:
        made = policy(there, max_concurrency=1)
        first = made.act({"image": images, "text": ("a", "b")}, infos=[{}, {"has_image": False}])
        infos: list[dict[str, Any]] = [{"has_image": np.bool_(False)}, {"has_image": True}]
        made.act({"image": images, "text": ("c", "d")}, first.memory, infos=infos)
        kinds = [
            [
                said if isinstance(said, str) else [part["type"] for part in said]
                for said in (message["content"] for message in body["messages"] if message["role"] == "user")
            ]
            for body in there.bodies
        ]
        shown = ["image_url", "text"]
        assert kinds == [[shown], ["b"], [shown, "c"], ["b", shown]]
        url = there.bodies[3]["messages"][2]["content"][0]["image_url"]["url"]
        seen = np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))))
        assert (seen == images[1]).all()
        with pytest.raises(ValueError, match=r"info\['has_image'\] must be true or false, got 'no'"):
            made.act({"image": images[:1], "text": ("a",)}, infos=[{"has_image": "no"}])
