"""The examples of docs/tools.md: they run, and print what is written beside them."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import tetrathlon  # noqa: F401
from tetrathlon.agents.naming import make_policy
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.cli import main
from tetrathlon.envs.contract import check
from tetrathlon.envs.registry import make
from tetrathlon.envs.slots import Slots
from tetrathlon.envs.tools.lookup import Lookup

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "tools.md").read_text(encoding="utf-8")
FIRST, CHASER, LOOP, OWN, SERVER, PROGRAM, SUMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


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

    def create(self, *, model: str, messages: list[Any], tools: list[Any], max_tokens: int) -> Any:
        from openai.types.chat import ChatCompletion

        from tetrathlon.agents.messages import turn_of

        assert model == "m" and max_tokens == 128 and tools[0]["function"]["name"] == "lookup"
        self.asked.append(list(messages))
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
    for shots in (0, 1):
        env = make("Lookup-v0", shots=shots)
        client = Completions(env)
        assert names["play"](client, "m", env, 3) is True
        first, last = client.asked[0], client.asked[-1]
        assert first[0] == {"role": "system", "content": Lookup.system}
        assert len([one for one in last if one["role"] == "user"]) == 1 + shots
        assert [message["role"] for message in last][-2:] == ["assistant", "tool"]


def test_a_policy_that_remembers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chasing_of_docs.py").write_text(CHASER)
    monkeypatch.chdir(tmp_path)
    env = make("Lookup-v0")
    policy = make_policy("chasing_of_docs:Chaser", env)
    slots = Slots(lambda: make("Lookup-v0"), 3)
    episodes = Rollout(policy, slots, [Start(seed=seed) for seed in range(9)]).episodes()
    slots.close()
    assert len(episodes) == 9 and all(episode.is_success for episode in episodes)


def module(monkeypatch: pytest.MonkeyPatch, folder: Path, **files: str) -> None:
    """Write modules into a folder that is gone to."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))


@pytest.fixture
def registered() -> Iterator[None]:
    before = set(gym.registry)
    yield
    for name in set(gym.registry) - before:
        del gym.registry[name]
    for name in ("safe", "sums"):
        sys.modules.pop(name, None)


def test_a_task_of_ones_own_keeps_the_contract(
    registered: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module(monkeypatch, tmp_path, safe=OWN)
    assert len(check("safe:your/OpenSafe-v0", skip={"new_process"})) > 12


def test_a_task_of_ones_own_is_named_with_its_module(
    registered: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module(monkeypatch, tmp_path, safe=OWN)
    assert main(["eval", "safe:your/OpenSafe-v0", "--policy", "expert", "--episodes", "4"]) == 0
    assert "your/OpenSafe-v0" in capsys.readouterr().out
    safe = importlib.import_module("safe")
    words = (*safe.Safe.words(), "Open the safe, ")
    assert "Open the safe, " in words and f'words = (*Safe.words(), "{words[-1]}")' in PAGE


def test_a_world_of_a_server(registered: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mcp")
    module(monkeypatch, tmp_path, sums=SUMS, server=PROGRAM)
    env: Any = make("sums:your/Sums-v0").unwrapped
    sums = importlib.import_module("sums")
    try:
        for seed in range(2):
            env.reset(seed=seed)
            assert int(env.step(env.expert_action())[0]) == int(env._task.answer)
            assert env.step(env.expert_action())[4]["is_success"]
    finally:
        sums.server().close()
