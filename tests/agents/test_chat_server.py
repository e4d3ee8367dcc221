"""A real server, ``transformers serve`` with a tiny model: asked, killed in the middle of an evaluation, resumed."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.test_language import TOOLS, model, tokenizer
from tetrathlon.agents import ChatPolicy, LanguagePolicy, evaluate
from tetrathlon.agents import server as server_module
from tetrathlon.agents.server import ServerError
from tetrathlon.cli import main
from tetrathlon.envs.episode import Episode, load_episodes

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

ENV = "tetrathlon/LetterCount-v0"


class Served:
    """A server process that can be killed and started again at the same address."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"
        code = "from transformers.cli.transformers import app; app()"
        self._command = [sys.executable, "-c", code, "serve", str(folder), "--host", "127.0.0.1", "--port", str(port)]
        self._command += ["--device", "cpu", "--log-level", "error"]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(self._command, env=environment, **quiet)  # type: ignore[call-overload]
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        deadline = time.monotonic() + 120
        while True:
            try:
                opener.open(self.url.replace("/v1", "/health"), timeout=5).close()
                return
            except (urllib.error.URLError, OSError):
                assert self._process.poll() is None and time.monotonic() < deadline
                time.sleep(0.1)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("tiny")
    tiny = model(context=2048)
    tiny.generation_config.eos_token_id = tiny.generation_config.pad_token_id = 2
    tiny.generation_config.do_sample = True
    tiny.save_pretrained(folder)
    tokenizer(TOOLS).save_pretrained(folder)
    there = Served(folder)
    there.start()
    yield there
    there.kill()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(server_module, "_FIRST_WAIT", 0.01)


def policy(served: Served, **options: Any) -> ChatPolicy:
    return ChatPolicy(served.url, str(served.folder), **{"retries": 1, **options})


def test_it_says_what_the_model_says(served: Served) -> None:
    """The same model as a policy of ours, greedy: the same words, the same counts, the same ends."""
    infos: list[dict[str, Any]] = [
        {"system": "be brief", "limits": {"tokens": 9}},
        {"limits": {"tokens": 4}, "tools": [{"type": "function", "function": {"name": "add", "parameters": {}}}]},
        {
            "limits": {"tokens": 40},
            "examples": [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}],
        },
    ]
    asked = ("hi", "é\n?", "  3")
    own = LanguagePolicy.from_pretrained(served.folder, device="cpu").act(asked, infos=infos, greedy=True)
    there = policy(served)
    remote = there.act(asked, infos=infos, greedy=True)
    assert remote.actions == own.actions and remote.stops == own.stops
    prompts, answers = 0, 0
    for theirs, ours in zip(remote.records, own.records, strict=True):
        assert theirs is not None and ours is not None
        assert (theirs["prompt_tokens"], theirs["completion_tokens"]) == (len(ours["prompt"]), len(ours["ids"]))
        prompts, answers = prompts + len(ours["prompt"]), answers + len(ours["ids"])
    assert (there.usage.prompt_tokens, there.usage.completion_tokens, there.usage.requests) == (prompts, answers, 3)


def test_many_at_once_and_from_threads(served: Served) -> None:
    there = policy(served, max_concurrency=8)
    asked = tuple(f"question {i}" for i in range(12))
    infos = [{"limits": {"tokens": 6}}] * 12
    whole = there.act(asked, infos=infos, greedy=True).actions
    alone: dict[int, str] = {}

    def work(i: int) -> None:
        alone[i] = there.act((asked[i],), infos=infos[:1], greedy=True).actions[0]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [alone[i] for i in range(4)] == list(whole[:4]) and len(set(whole)) > 6


def test_samples_differ_and_have_memory(served: Served) -> None:
    there = policy(served, seed=1)
    infos = [{"limits": {"tokens": 12}}] * 4
    first = there.act(("hi",) * 4, infos=infos)
    assert len(set(first.actions)) == 4
    second = there.act(("more",) * 4, first.memory, infos=infos)
    assert all(len(talk.messages) == 4 for talk in second.memory)
    counts = [int(r["prompt_tokens"]) for acted in (first, second) for r in acted.records if r is not None]
    assert min(counts[4:]) > counts[0]


def test_what_it_refuses(served: Served) -> None:
    with pytest.raises(ServerError, match=r"\(model 'other'\): status 400: Server is pinned to"):
        ChatPolicy(served.url, "other").act(("hi",))
    with pytest.raises(ServerError, match=r"status 404: Not Found; .* mostly ends in /v1\?"):
        ChatPolicy(served.url.replace("/v1", "/v2"), str(served.folder)).act(("hi",))
    with pytest.raises(ServerError, match=r"status 422: Unexpected fields in the request: {'top_kk'}"):
        policy(served, extra={"top_kk": 1}).act(("hi",))


def test_killed_and_resumed(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module.Server.__init__, "__kwdefaults__", {**_defaults(), "retries": 1})
    name = f"openai:{served.url}#{served.folder}"
    words = ["eval", ENV, "--policy", name, "--episodes", "14", "--slots", "4", "--env", "max_tokens=24"]
    assert main([*words, "--out", str(tmp_path / "whole")]) == 0
    capsys.readouterr()
    seen: list[Episode] = []

    def kill_after_six(episode: Episode) -> None:
        seen.append(episode)
        if len(seen) == 6:
            served.kill()

    options: dict[str, Any] = {"episodes": 14, "slots": 4, "kwargs": {"max_tokens": 24}}
    with pytest.raises(ServerError, match=rf"{served.url} .* \([0-9]+ tries\)"):
        evaluate(name, ENV, out=tmp_path / "run", on_episode=kill_after_six, **options)
    assert len(seen) == 8  # those of the two turns that the server answered
    assert main([*words, "--out", str(tmp_path / "run"), "--resume"]) == 1  # nobody is there yet
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert f"the finished episodes are in {tmp_path / 'run'}, the same command with --resume goes on" in said.err
    served.start()
    assert main([*words, "--out", str(tmp_path / "run")]) == 2
    assert "go on with it by --resume" in capsys.readouterr().err
    assert main([*words, "--out", str(tmp_path / "run"), "--resume"]) == 0
    whole, run = (json.loads((tmp_path / name / "result.json").read_text()) for name in ("whole", "run"))
    assert {k: v for k, v in run.items() if "seconds" not in k} == {
        k: v for k, v in whole.items() if "seconds" not in k
    }
    assert repr(load_episodes(tmp_path / "run")) == repr(load_episodes(tmp_path / "whole"))
    assert run["tokens"]["total"] > 14 and run["policy"] == name


def _defaults() -> dict[str, Any]:
    return dict(server_module.Server.__init__.__kwdefaults__ or {})
