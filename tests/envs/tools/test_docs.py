"""The examples of docs/tools.md: they run, and print what is written beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import tetrathlon  # noqa: F401
from tetrathlon.envs.contract import check
from tetrathlon.envs.registry import make

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "tools.md").read_text(encoding="utf-8")
FIRST, LOOP, OWN, SERVER = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_a_task_is_played(capsys: pytest.CaptureFixture[str]) -> None:
    exec(FIRST, {})
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("What is the ")
    assert said[-4:-2] == ["['lookup']", "{'tokens': 128, 'episode_tokens': 1280, 'turns': 10, 'calls': 20}"]
    assert said[-2].startswith("tool [{'name': 'lookup', 'content': '") and said[-2].endswith("'error': ''}]")
    assert said[-1] == "Error: there is no tool 'look_up'; there are lookup"


class Completions:
    """Stands for a server whose model does what the expert does."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.chat = self
        self.completions = self
        self.asked: list[Any] = []

    def create(self, *, model: str, messages: list[Any], tools: list[Any]) -> Any:
        from openai.types.chat import ChatCompletion

        from tetrathlon.agents.messages import turn_of

        assert model == "m" and tools[0]["function"]["name"] == "lookup"
        self.asked.append(messages)
        message = turn_of(self.env.unwrapped.expert_action(), tools, 0)
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        whole = {"id": "1", "created": 0, "model": "m", "object": "chat.completion", "choices": [choice]}
        return ChatCompletion.model_validate(whole)


def test_the_tools_of_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mcp")
    server = Path(__file__).parent / "mcp_echo_server.py"
    exec(SERVER.replace('"server.py"', f'{str(server)!r}, "good"'), {})
    assert capsys.readouterr().out.strip() == "3"


def test_an_agent_loop_of_somebody_else() -> None:
    pytest.importorskip("openai")
    names: dict[str, Any] = {}
    exec(LOOP, names)
    env = make("Lookup-v0")
    client = Completions(env)
    assert names["play"](client, "m", env, 3) is True
    assert [message["role"] for message in client.asked[-1]][:3] == ["user", "assistant", "tool"]


@pytest.fixture
def own() -> Iterator[None]:
    names: dict[str, Any] = {"__name__": "docs"}
    exec(OWN, names)
    gym.register("OpenSafe-v0", names["OpenSafe"])
    yield
    del gym.registry["OpenSafe-v0"]


def test_a_task_of_ones_own_keeps_the_contract(own: None) -> None:
    skip = {"new_process"}  # a class that no module holds
    assert len(check("OpenSafe-v0", skip=skip)) > 12
