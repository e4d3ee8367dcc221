"""MCP servers as processes, good and bad: what their tools say, and that nothing of them is left."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from tetrathlon.envs.language.task import Task
from tetrathlon.envs.tools.calls import write_call
from tetrathlon.envs.tools.coercion import ArgumentError
from tetrathlon.envs.tools.environment import ToolEnv
from tetrathlon.envs.tools.mcp_server import MCPServer
from tetrathlon.envs.tools.play import Play
from tetrathlon.envs.tools.task import ToolTask
from tetrathlon.envs.tools.tool import Tool, ToolDown, ToolError, tool
from tetrathlon.envs.tools.world import World

PROGRAM = Path(__file__).with_name("mcp_echo_server.py")
needs_mcp = pytest.mark.skipif(find_spec("mcp") is None, reason="needs the package mcp: pip install mcp")


def server(how: str, **kwargs: Any) -> MCPServer:
    return MCPServer([sys.executable, str(PROGRAM), how], **{"seconds": 20.0, **kwargs})


def children_of(pid: int) -> list[str]:
    """The processes that this one started, zombies too."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            said = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(said[1]) == pid:
            found.append((folder / "cmdline").read_bytes().decode() or f"zombie {folder.name}")
    return [line for line in found if "mcp_echo_server" in line or "zombie" in line]


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """No process and no thread outlives its server."""
    threads = sum(thread.name == "mcp" for thread in threading.enumerate())
    before = children_of(os.getpid())
    yield
    assert sum(thread.name == "mcp" for thread in threading.enumerate()) == threads
    assert sorted(children_of(os.getpid())) == sorted(before)


@pytest.fixture(scope="module")
def good() -> Iterator[MCPServer]:
    with server("good") as running:
        yield running


def named(running: MCPServer) -> dict[str, Tool]:
    return {one.name: one for one in running.tools()}


# Good ones.


@needs_mcp
def test_the_tools_of_a_server(good: MCPServer) -> None:
    tools = named(good)
    assert list(tools)[:5] == ["add", "echo", "say_twice_", "say_twice__2", "boom"]
    assert tools["add"].description == "Add two numbers." and tools["add"].parameters["required"] == ["a"]
    assert tools["add"].call({"a": "3"}) == "13" and tools["add"].call({"a": 3.0, "b": -1}) == "2"
    assert tools["echo"].call({"text": "日本 🙂\n\0</tool_call>"}) == "日本 🙂\n\0</tool_call>"
    assert tools["echo"].call({"text": "x" * 300_000}) == "x" * 300_000
    assert tools["say_twice_"].call({"text": "a"}) == "a\na"
    assert tools["say_twice__2"].call({"text": "a"}) == "other a"
    assert tools["nothing"].call({}) == ""
    seen = tools["image"].call({})
    assert seen == "before\n[image of type image/png, 5 bytes]\n[audio of type audio/wav, 4 bytes]\nafter"


@needs_mcp
def test_mistakes_of_the_agent_are_answered(good: MCPServer) -> None:
    tools = named(good)
    for arguments in ({}, {"a": "x"}, {"a": [1]}):
        with pytest.raises(ArgumentError, match="argument 'a'"):
            tools["add"].call(arguments)
    with pytest.raises(ToolError, match="boom"):
        tools["boom"].call({})
    with pytest.raises(ToolError, match="half a character"):
        tools["echo"].call({"text": "a\ud800"})
    for big in (10**20, [{"a": -(10**30)}]):
        with pytest.raises(ToolError, match="64 bits"):
            tools["nothing"].call({"x": big})
    tools["nothing"].call({"self": 1, "name": 2, "arguments": 3})
    assert tools["add"].call({"a": 1}) == "11"


@needs_mcp
def test_names_do_not_clash(good: MCPServer) -> None:
    assert [one.name for one in good.tools(taken={"add", "add_2", "echo"})][:2] == ["add_3", "echo_2"]
    other = MCPServer(["x"], prefix="p" * 100 + " ")
    other._connection = good._connection
    names = [one.name for one in other.tools()]
    assert len(set(names)) == len(names) and max(map(len, names)) == 64
    other.prefix = "shop."
    assert next(one for one in other.tools() if one.name == "shop_add").call({"a": 1}) == "11"


@needs_mcp
def test_threads_call_at_once(good: MCPServer) -> None:
    add = named(good)["add"]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda n: add.call({"a": n, "b": 0}), range(80))) == [str(n) for n in range(80)]


@needs_mcp
def test_a_server_is_given_few_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "secret")
    with server("variables") as running:
        seen = running.tools()[0].call({}).split()
        assert "SOME_KEY" not in seen and "PATH" in seen
    with server("variables", env={"SOME_KEY": "given"}) as running:
        assert "SOME_KEY" in running.tools()[0].call({}).split()


@needs_mcp
def test_a_good_server_may_be_slow_and_may_die() -> None:
    with server("good") as own:
        assert named(own)["slow"].call({"seconds": 0.2}) == "done"
        for _ in range(5):  # however often that is
            old = named(own)
            with pytest.raises(ToolDown, match=r"it ended.*I die now"):
                old["die"].call({})
            with pytest.raises(ToolDown, match="it ended"):
                old["add"].call({"a": 1})
            assert named(own)["add"].call({"a": 1}) == "11"


def when_ended(running: MCPServer) -> None:
    """Wait until a server has ended by itself."""
    for _ in range(500):
        connection = running._connection
        if connection is None or not connection.is_open:
            return
        time.sleep(0.01)
    raise AssertionError


@needs_mcp
def test_a_server_that_ends_again_and_again_is_given_up() -> None:
    with server("fleeting") as running:
        for _ in range(3):
            when_ended(running)
            assert running.tools()[0].name == "one"
        when_ended(running)
        for _ in range(2):
            with pytest.raises(ToolDown, match="was started 3 times in a row and ended before it was asked anything"):
                running.tools()
        assert running.start().tools()


@needs_mcp
def test_a_server_that_does_not_come_up_again_is_given_up(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text(PROGRAM.read_text())
    with MCPServer([sys.executable, str(program), "exit"], seconds=20.0) as running:
        with pytest.raises(ToolDown, match="I am done"):
            running.tools()[0].call({})
        program.write_text("raise SystemExit('no database')")
        with pytest.raises(ToolDown, match=r"3 times in a row and ended .*; the last time it ended"):
            running.tools()


@needs_mcp
def test_a_pickled_server_has_a_process_of_its_own(good: MCPServer) -> None:
    twin: MCPServer = pickle.loads(pickle.dumps(good))
    assert twin._connection is None
    assert named(twin)["add"].call({"a": 1}) == "11"
    twin.close()
    assert named(good)["add"].call({"a": 2}) == "12"
    with pytest.raises(ToolDown, match="not started"):
        pickle.loads(pickle.dumps(twin)).tools()


@needs_mcp
def test_a_fork_starts_a_server_of_its_own() -> None:
    with server("late") as running:
        pid = os.fork()
        if not pid:
            said = running.tools()[0].call({})
            running.close()
            os._exit(0 if said == "late" else 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert running.tools()[0].call({}) == "late"


@needs_mcp
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("late", "late"),
        ("loud", "日" * 300_000),
        ("structured", '{"a": "日"}'),
        ("resources", "inside\n[file:///b of type a/zip, 5 bytes]\n[link to file:///c: the third]"),
    ],
)
def test_what_a_server_may_say(how: str, said: str) -> None:
    with server(how) as running:
        (one,) = running.tools()
        assert one.name == "one" and one.call({}) == said == one.call({})


@needs_mcp
@pytest.mark.parametrize(
    ("how", "said"),
    [("error", "no such city"), ("closed", "Connection closed"), ("is_error", "the tool failed and did not say why")],
)
def test_an_error_that_is_answered_is_the_calls_own(how: str, said: str) -> None:
    with server(how) as running:
        for _ in range(2):
            with pytest.raises(ToolError, match=said):
                running.tools()[0].call({})


# Bad ones.


@needs_mcp
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("hang", "did not answer within 0.7 s"),
        ("exit", r"it ended \(I am done\)"),
        ("deaf", "did not answer within 0.7 s|closed its input"),
        ("flood_line", "a line of more than"),
        ("flood_lines", "more than 67,108,864 bytes or 20,000 messages|did not answer"),
        ("flood_blank", "more than 67,108,864 bytes or 20,000 messages"),
        ("flood_error", "more than 67,108,864 bytes|did not answer"),
        ("text", "speaks no MCP: 'hello"),
        ("binary", "speaks no MCP"),
        ("deep", r"speaks no MCP: '\[\[\["),
        ("bad_result", "answered with what is no result"),
        ("bad_id", "did not answer"),
    ],
)
def test_a_bad_server_is_down_soon(how: str, said: str) -> None:
    seconds = 0.7 if how in ("hang", "deaf", "bad_id", "flood_lines", "flood_error") else 20.0
    with server(how, seconds=seconds) as running:
        (one,) = running.tools()
        begun = time.monotonic()
        with pytest.raises(ToolDown, match=said):
            one.call({})
        with pytest.raises(ToolDown, match=said):
            one.call({})
        assert time.monotonic() - begun < 15.0


@needs_mcp
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("silent", "not ready within 1.5 s"),
        ("end", "no module named x"),
        ("babble", "speaks no MCP: 'lorem"),
        ("pages", "100 pages"),
        ("many", "more than 1,000 tools"),
        ("bad_schema", "the schema of its tool 'one' is none"),
        ("no_object", "should be 'object'"),
        ("bad_list", "ValidationError"),
    ],
)
def test_a_server_that_does_not_start_says_why(how: str, said: str) -> None:
    running = server(how, start_seconds=1.5 if how == "silent" else 60.0)
    begun = time.monotonic()
    with pytest.raises(ToolDown, match=said):
        running.start()
    with pytest.raises(ToolDown):
        running.tools()
    running.close()
    assert time.monotonic() - begun < 30.0


@needs_mcp
def test_a_program_that_is_not_there() -> None:
    with pytest.raises(ToolDown, match="FileNotFoundError"):
        MCPServer(["/nowhere/at-all"]).start()
    with pytest.raises(ToolDown, match="FileNotFoundError"):
        server("end", cwd="/nowhere").start()


@needs_mcp
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_all_that_a_server_started_ends_with_it() -> None:
    with server("children") as running:
        pids = [int(pid) for pid in running.tools()[0].call({}).split()]
        assert all(Path(f"/proc/{pid}").exists() for pid in pids) and len(pids) == 3
    for _ in range(100):  # whoever adopts them takes them away
        left = [pid for pid in pids if _is_alive(pid)]
        if not left:
            break
        time.sleep(0.02)
    assert not left


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@needs_mcp
def test_a_server_starts_afresh() -> None:
    running = server("late")
    with pytest.raises(ToolDown, match="not started"):
        running.tools()
    with running:
        old = running.tools()[0]
        assert running.start() is running and running.tools()[0].call({}) == "late" == old.call({})
        assert copy.deepcopy({"server": running})["server"] is running
    running.close()
    with pytest.raises(ToolDown, match="it was closed"):
        old.call({})
    with running:
        assert running.tools()[0].call({}) == "late"
        with pytest.raises(ToolDown, match="it was closed"):
            old.call({})


@needs_mcp
def test_calls_under_way_end_with_the_server() -> None:
    running = server("hang").start()
    one = running.tools()[0]
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(one.call, {}) for _ in range(2)]
        time.sleep(0.3)
        running.close()
        for call in calls:
            with pytest.raises(ToolDown, match="it was closed"):
                call.result(10)


@needs_mcp
def test_a_program_ends_though_its_server_was_left_running() -> None:
    code = (
        "import sys, threading; threading.excepthook = print; from tetrathlon.envs.tools.mcp_server import MCPServer; "
        f"s = MCPServer([sys.executable, {str(PROGRAM)!r}, 'hang']).start(); t = s.tools()[0]; "
        "threading.Thread(target=t.call, args=({},), daemon=True).start(); "
        "print('pid', s._connection._process._process.pid)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0 and "Traceback" not in ended.stderr, ended.stderr
    assert not _is_alive(int(ended.stdout.split()[1]))


@needs_mcp
def test_a_fork_does_not_touch_its_parents_server() -> None:
    with server("late") as running:
        one = running.tools()[0]
        pid = os.fork()
        if not pid:
            try:
                one.call({})
            except ToolDown as error:
                running.close()
                os._exit(0 if "another process" in str(error) else 1)
            os._exit(2)
        assert os.waitpid(pid, 0)[1] == 0
        assert one.call({}) == "late"


@pytest.mark.parametrize("kwargs", [{"seconds": 0}, {"seconds": float("inf")}, {"start_seconds": -1}])
def test_times_must_be_positive(kwargs: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be a positive number"):
        MCPServer(["x"], **kwargs)


@pytest.mark.parametrize("command", [[], "python server.py"])
def test_a_command_is_a_list(command: Any) -> None:
    with pytest.raises(ValueError, match="command must be a list"):
        MCPServer(command)


def test_the_package_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(ImportError, match="pip install mcp"):
        MCPServer(["x"]).start()


def test_importing_the_module_imports_no_mcp() -> None:
    code = "import sys, tetrathlon.envs.tools.mcp_server; print('mcp' in sys.modules or 'anyio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


# In an environment.


class Mixed(World):
    def __init__(self, remote: MCPServer) -> None:
        self.remote = remote
        self.noted: list[str] = []

    @tool
    def add(self, text: str) -> str:
        """Note it."""
        self.noted.append(text)
        return "noted"

    def tools(self) -> dict[str, Tool]:
        own = super().tools()
        return own | {one.name: one for one in self.remote.tools(taken=own)}


class Sums(ToolEnv):
    remote: ClassVar[MCPServer]

    def generate(self, rng: np.random.Generator) -> Task:
        a = int(1_000_000 * rng.random())
        return ToolTask(f"What is {a} + 1?", str(a + 1), {"a": a})

    def open(self, task: ToolTask) -> World:
        return Mixed(self.remote)

    def is_right(self, task: ToolTask, answer: str | None, world: World) -> bool:
        return answer == task.answer

    def expert(self, play: Play) -> str:
        if not play.steps:
            return write_call("add_2", {"a": play.task.data["a"], "b": 1})
        return self._write_solution(play.task)


@needs_mcp
def test_a_world_adds_a_servers_tools_to_its_own(good: MCPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sums, "remote", good, raising=False)
    env = Sums()
    _, info = env.reset(seed=0)
    assert [one["function"]["name"] for one in info["tools"]][:3] == ["add", "add_2", "echo"]
    assert len(env.expert_action(k=2)) == 2
    assert env.step(write_call("add", {"text": "a"}))[0] == "noted"
    state = env.get_state()
    assert env.step(write_call("add_2", {"a": "41", "b": 1}))[0] == "42"
    env.set_state(state)
    assert env.step(write_call("boom", {}) + write_call("add_2", {}))[4]["tool_errors"]["tool_error"] == 1
    env.reset(seed=0)
    env.step(env.expert_action())
    assert env.step(env.expert_action())[4]["is_success"]


@needs_mcp
def test_an_episode_whose_server_dies_has_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    with server("exit") as running:
        monkeypatch.setattr(Sums, "remote", running, raising=False)
        env = Sums()
        env.reset(seed=0)
        _, reward, over, truncated, info = env.step(write_call("one", {}))
        assert (reward, over, truncated, info["stop_reason"]) == (0.0, True, False, "tool_down")
        assert "it ended" in info["grader_error"] and not info["is_success"]
        for seed in range(4):  # a call that ends the server costs its own episode alone
            env.reset(seed=seed)
            if seed % 2:
                assert env.step(write_call("add", {"text": "a"}))[0] == "noted"
            else:
                assert env.step(write_call("one", {}))[4]["stop_reason"] == "tool_down"
