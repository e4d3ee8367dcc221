from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from tetrathlon.envs.contract import check
from tetrathlon.envs.tools.calls import write_call
from tetrathlon.envs.tools.files.draft import Draft
from tetrathlon.envs.tools.files.environment import Files
from tetrathlon.envs.tools.files.goal import next_call, reached, share_done
from tetrathlon.envs.tools.files.jobs import JOBS
from tetrathlon.envs.tools.files.tree import Quota, Tree
from tetrathlon.envs.tools.files.world import FileWorld
from tetrathlon.envs.tools.task import ToolTask


def call(name: str, **arguments: Any) -> str:
    return write_call(name, arguments)


def started(env: Files, seed: int) -> ToolTask:
    env.reset(seed=seed)
    assert isinstance(env._task, ToolTask)
    return env._task


def files_of(env: Files) -> dict[str, Any]:
    assert env._play is not None and isinstance(env._play.world, FileWorld)
    return env._play.world.tree.files


def finish(env: Files, actions: Iterable[str] = ()) -> tuple[float, bool, int]:
    """Take the actions, then the expert's; return what was paid, whether it was a success, and the turns."""
    total, turns, over = 0.0, 0, False
    info: dict[str, Any] = {}
    waiting = list(actions)
    while not over:
        _, reward, over, _, info = env.step(waiting.pop(0) if waiting else env.expert_action())
        total += reward
        turns += 1
    return total, info["is_success"], turns


@pytest.mark.parametrize(
    "kwargs",
    [{}, {"level": 3, "progress_weight": 0.4, "error_cost": 0.1, "brief": True, "split": "test", "max_output": 150}],
)
def test_contract(kwargs: dict[str, Any]) -> None:
    assert {"expert", "state", "hostile", "splits"} <= set(check("tetrathlon/Files-v0", kwargs=kwargs))


@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_expert_succeeds_in_half_of_the_turns(level: int, split: str) -> None:
    env = Files(level=level, split=split, progress_weight=0.3)
    seen: set[str] = set()
    most = 0
    for seed in range(200):
        task = started(env, seed)
        seen |= set(task.data["kinds"])
        total, success, turns = finish(env)
        assert success and total == pytest.approx(1.3), seed
        most = max(most, turns)
    assert seen == set(JOBS)
    assert 2 * most <= Files.default_max_turns


def test_the_most_that_the_expert_can_need_fits_twice() -> None:
    needs = dict.fromkeys(JOBS, 0)
    for name, job in JOBS.items():
        for seed in range(60):
            draft = Draft(np.random.default_rng(seed), 3)
            job(draft)
            needs[name] = max(needs[name], sum(map(len, draft.units())))
    files = {"rename_by_rule", "sort_into_folders", "close_gaps", "find_file"}
    calls = [need // 2 if name in files else need for name, need in needs.items()]  # a move is about two paths
    assert 2 * (3 * max(calls) + 1) <= Files.default_max_turns


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("level", [1, 2, 3])
def test_each_job_alone(name: str, level: int) -> None:
    env = Files(level=level, kinds=[name])
    for seed in range(8):
        task = started(env, seed)
        goal, start = task.data["goal"], task.world["files"]
        assert not reached(start, goal) and share_done(start, goal, task.data["units"]) == 0.0
        assert share_done(goal, goal, task.data["units"]) == 1.0
        changed = sorted(path for path in {*goal, *start} if goal.get(path) != start.get(path))
        assert sorted(path for unit in task.data["units"] for path in unit) == changed
        untouched = [path for path in start if goal.get(path) == start[path]]
        assert len(untouched) > 1, "there is always something to leave alone"
        json.dumps([task.data, task.world])
        for path in re.findall(r"`([a-z]+/[\w./-]+\.\w+)`", task.question):
            if not path.startswith(("x", "one")) and "/name." not in path and "/x" not in path:
                assert path in goal or path in start, (path, task.question)
        assert finish(env)[1]


def test_instances_are_many_and_the_same_everywhere() -> None:
    tasks = [Files(level=3).generate(np.random.default_rng(seed)) for seed in range(300)]
    assert len({task.id for task in tasks}) == 300
    assert [Files(level=3).generate(np.random.default_rng(seed)) for seed in range(20)] == tasks[:20]
    questions = {Files().generate(np.random.default_rng(seed)).question for seed in range(400)}
    assert len(questions) == 400


def random_call(rng: np.random.Generator, files: list[str]) -> str:
    """A call that may do any damage."""
    path = str(rng.choice([*files, "new.txt", "deep/er/x", "/etc/x", "../y"]))
    other = str(rng.choice([*files, f"{path}/below", "moved/z.txt"]))
    calls = [
        call("delete", path=path),
        call("write_file", path=path, text="spoilt\n" * int(rng.integers(0, 4_000))),
        call("move", source=path, target=other),
        call("edit_file", path=path, old="e", new=""),
        call("read_file", path=path, first_line=int(rng.integers(-1, 9))),
        call("list_files", folder=path.split("/")[0]),
        call("search", text="a", folder=path),
    ]
    return calls[int(rng.integers(len(calls)))]


@pytest.mark.parametrize("level", [1, 3])
def test_the_expert_goes_on_from_any_state(level: int) -> None:
    env = Files(level=level, max_turns=200, max_calls=200, progress_weight=0.5)
    for seed in range(25):
        task = started(env, seed)
        rng = np.random.default_rng(seed)
        names = sorted({*task.data["goal"], *task.world["files"]})
        total, success, _ = finish(env, [random_call(rng, names) for _ in range(int(rng.integers(1, 60)))])
        assert success and total == pytest.approx(1.5), seed


def test_the_expert_gets_around_what_stands_in_the_way() -> None:
    goal = {"a/b.txt": "1\n", "c": "x\n" * 5, "d": "short\n", "e/f": "same\n"}
    quota = Quota(files=5, file_bytes=100, bytes=100)
    starts: list[dict[str, Any]] = [
        {"a": "in the way", "c/below": "in the way", "d": "y" * 80},
        {"much1": "z" * 40, "much2": "z" * 40, "d": "s" * 18, "c": "x\n"},
        {"w": "same", "x": "same", "y": "1"},
        {"a/b.txt": b"\xff", "c": b"", "d": "short", "e/f/g": "same"},
        {},
        dict(goal),
    ]
    for start in starts:
        tree = Tree(start, quota=quota)
        world = FileWorld(tree)
        for _ in range(12):
            named = next_call(tree.files, goal)
            if named is None:
                break
            world.tools()[named[0]].call(named[1])
        assert reached(tree.files, goal)
    assert next_call({"w": "same", **goal, "e/f": "x"} | {"e/f": "x"}, goal) == ("delete", {"path": "w"})
    assert next_call({key: text for key, text in goal.items() if key != "e/f"} | {"w": "same"}, goal) == (
        "move",
        {"source": "w", "target": "e/f"},
    )


def test_an_edit_is_made_where_it_is_shorter() -> None:
    rng = np.random.default_rng(0)
    edits = 0
    for _ in range(500):
        old = [str(rng.choice(["a", "b", "cc", "ab"])) for _ in range(int(rng.integers(1, 12)))]
        new = list(old)
        at = int(rng.integers(len(new) + 1))
        new[at : at + int(rng.integers(2))] = ["x"] * int(rng.integers(2))
        tree = Tree({"a": "\n".join(old)})
        goal = {"a": "\n".join(new)}
        if (named := next_call(tree.files, goal)) is not None:
            FileWorld(tree).tools()[named[0]].call(named[1])
            edits += named[0] == "edit_file"
            assert tree.files == goal
    assert edits > 50


@pytest.mark.parametrize("said", ["Done.", "zqxj", "<answer>done</answer>", "\\boxed{1}", "I have changed all files."])
def test_words_alone_are_no_success(said: str) -> None:
    env = Files(level=2, progress_weight=0.3)
    for seed in range(30):
        env.reset(seed=seed)
        _, reward, over, _, info = env.step(said)
        assert over and reward == 0.0 and not info["is_success"] and info["stop_reason"] == "answered"


def test_any_words_end_what_is_done() -> None:
    for said in ("Done.", "ok", "<think>really?</think>It is <done>.", "\\boxed{}x"):
        env = Files()
        env.reset(seed=3)
        while "tool_call" in (turn := env.expert_action()):
            env.step(turn)
        assert turn == "Done."
        _, reward, over, _, info = env.step(said)
        assert over and reward == 1.0 and info["is_success"]


def test_the_tree_counts_when_the_turns_are_spent() -> None:
    env = Files(max_turns=6)
    env.reset(seed=3)
    while "tool_call" in (turn := env.expert_action()):
        env.step(turn)
    assert env._play is not None
    for _ in range(6 - env._play.turns):
        _, reward, over, _, info = env.step(call("list_files"))
    assert over and info["stop_reason"] == "max_turns" and reward == 1.0


@pytest.mark.parametrize("level", [1, 3])
def test_damage_to_other_files_gets_nothing(level: int) -> None:
    for seed in range(30):
        env = Files(level=level)
        task = started(env, seed)
        goal = task.data["goal"]
        kept = next(path for path, text in task.world["files"].items() if goal.get(path) == text)
        turns = []
        while "tool_call" in (turn := env.expert_action()):
            turns.append(turn)
            env.step(turn)
        for damage in (
            call("delete", path=kept),
            call("edit_file", path=kept, old=str(goal[kept]), new=f"{goal[kept]}\n"),
            call("move", source=kept, target="elsewhere/x"),
            call("write_file", path="scratch.txt", text=""),
        ):
            env.reset(seed=seed)
            for turn in turns:
                env.step(turn)
            _, _, _, _, info = env.step(damage)
            assert info["tool_results"][0]["error"] == ""
            _, reward, over, _, info = env.step("Done.")
            assert over and reward == 0.0 and not info["is_success"]


def test_a_last_line_end_is_nobodys_business() -> None:
    env = Files(kinds=["merge_tables", "sort_lines", "put_on_top"])
    for seed in range(10):
        goal = started(env, seed).data["goal"]
        wrong = [path for path in goal if files_of(env).get(path) != goal[path]]
        for ending, success in (("", True), ("\n", True), ("\n\n", False), (" \n", False), ("\r\n", False)):
            env.reset(seed=seed)
            for path in wrong:
                env.step(call("write_file", path=path, text=goal[path].removesuffix("\n") + ending))
            assert env.step("Done.")[4]["is_success"] is success


def paid(env: Files, seed: int, actions: list[str]) -> float:
    env.reset(seed=seed)
    total = 0.0
    for action in [*actions, "Done."]:
        _, reward, over, _, info = env.step(action)
        total += reward
        if over:
            assert not info["is_success"]
            return total
    raise AssertionError("it did not end")


def test_progress_is_not_paid_for_destruction() -> None:
    env = Files(level=2, progress_weight=0.5, max_turns=100)
    rng = np.random.default_rng(0)
    everything, copies = [], []
    for seed in range(60):
        task = started(env, seed)
        names = list(task.world["files"])
        rng.shuffle(names)
        everything.append(paid(env, seed, [call("delete", path=path) for path in names]))
        copies.append(
            paid(env, seed, [call("move", source=path, target=f"all/{i}.txt") for i, path in enumerate(names)])
        )
    assert max(copies) == 0.0
    # Only who hits upon just the files that are to be deleted, before any other, has done what was asked.
    assert np.mean(everything) < 0.02


def test_a_change_is_paid_once_however_often_it_is_made() -> None:
    env = Files(level=2, kinds=["put_on_top"], progress_weight=0.5)
    for seed in range(10):
        data = started(env, seed).data
        (path,) = data["units"][0]
        turns = [call("write_file", path=path, text=text) for text in ("", data["goal"][path]) * 3]
        assert paid(env, seed, turns) == pytest.approx(0.5 / len(data["units"]))


def test_progress_counts_changes_and_takes_off_damage() -> None:
    goal = {"new": "n", "moved": "m", "kept": "k", "edited": "e2"}
    units = [["gone1", "gone2"], ["moved", "old"], ["new"], ["edited"]]
    start: dict[str, Any] = {"gone1": "", "gone2": "", "old": "m", "kept": "k", "edited": "e1"}

    def done(**changes: str | None) -> float:
        files = {path: text for path, text in {**start, **changes}.items() if text is not None}
        return share_done(files, goal, units)

    assert done() == 0.0
    assert done(gone1=None) == 0.0 and done(gone1=None, gone2=None) == 0.25
    assert done(moved="m") == 0.0 and done(old=None) == 0.0 and done(old=None, moved="m") == 0.25
    assert done(new="n", edited="e2\n") == 0.5 and done(new="n", edited="e2", kept="x") == 0.25
    assert done(new="n", other="x", more="y") == 0.0
    assert done(gone1=None, gone2=None, old=None, moved="m", new="n", edited="e2") == 1.0


def test_calls_that_go_wrong_are_answered() -> None:
    env = Files(error_cost=0.1)
    task = started(env, 0)
    before = files_of(env)
    path = next(iter(task.world["files"]))
    root = task.world["root"]
    for text, said in [
        (call("read_file", path="/etc/passwd"), "leads out of"),
        (call("read_file", path=f"{root}-private/k.txt"), "leads out of"),
        (call("write_file", path=f"../{root.split('/')[-1]}x/k", text="x"), "leads out of"),
        (call("write_file", path=path, text="x" * 50_001), "50,000 bytes"),
        (call("write_file", path="a\0b", text="x"), "no name may have"),
        (call("write_file", path="a", text="\ud800"), "no Unicode"),
        (call("read_file", path="none/../none.txt"), "there is no"),
        (call("edit_file", path=path, old="no such text", new=""), "occurs 0 times"),
        (call("delete", path="."), "is a folder"),
        (call("delete", file=path), "there is no argument 'file'"),
        (call("remove", path=path), "there is no tool 'remove'"),
        (call("write_file", path=path), "argument 'text' is missing"),
        ('<tool_call>{"name": "write_file", "arguments": {"path": "r.md", "text": "1. Intro', "not valid JSON"),
    ]:
        observation, reward, over, _, info = env.step(text)
        assert said in observation and reward == -0.1 and not over, observation
        assert sum(info["tool_errors"].values()) == 1
        assert files_of(env) == before
    assert env.step(call("read_file", path=f"{root}/{path}"))[0] == task.world["files"][path]


def test_a_closing_tag_in_a_text_is_written_as_it_is() -> None:
    env = Files()
    env.reset(seed=0)
    arguments = '{"path":"doc.md","text":"close with </tool_call> tag"}'
    env.step(f'<tool_call>{{"name":"write_file","arguments":{arguments}}}</tool_call>')
    assert files_of(env)["doc.md"] == "close with </tool_call> tag"


def test_nothing_of_the_goal_is_shown() -> None:
    env = Files(level=3, kinds=["merge_tables", "count_lines", "extract_lines", "to_json"])
    for seed in range(10):
        task = started(env, seed)
        seen = json.dumps(env.reset(seed=seed))
        for turn in [call("list_files"), *(call("read_file", path=path) for path in task.world["files"])]:
            observation, _, _, _, info = env.step(turn)
            seen += observation + json.dumps(info)
        for path, text in task.data["goal"].items():
            if path not in task.world["files"] and len(text.splitlines()) > 2:
                assert text not in seen and json.dumps(text)[1:-1] not in seen


@pytest.mark.parametrize("kinds", [[], ["none"], "sort_lines", ["sort_lines", "x"]])
def test_kinds_are_names_of_jobs(kinds: Any) -> None:
    with pytest.raises(ValueError, match="kinds must be a list of some of"):
        Files(kinds=kinds)


@pytest.mark.parametrize("level", [0, 4, True, 1.0])
def test_levels(level: Any) -> None:
    with pytest.raises(ValueError, match="level must be an integer from 1 to 3"):
        Files(level=level)


def test_steps_go_on_with_what_others_made() -> None:
    env = Files(level=3, kinds=["extract_lines", "sort_lines", "join_files", "merge_tables", "to_json", "sort_table"])
    chained = 0
    for seed in range(100):
        task = started(env, seed)
        made = [path for path in task.data["goal"] if path not in task.world["files"]]
        chained += any(task.question.count(f"`{path}`") > 1 for path in made)
    assert chained > 20
