"""An evaluation that dies loses no finished episode, and goes on to the result of one that did not."""

from __future__ import annotations

import contextlib
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tetrathlon.agents.chat_policy import ChatPolicy
from tetrathlon.agents.evaluation import evaluate
from tetrathlon.agents.journal import Journal, JournalError
from tetrathlon.agents.policy import Acted
from tetrathlon.agents.result import Result
from tetrathlon.envs.episode import Episode, Step, load_episodes, to_json

ORACLE, COUNTING = "toys/Oracle-v0", "toys/Counting-v0"

SCRIPT = """
import sys, time
from tetrathlon.agents import evaluate
evaluate("expert", "tetrathlon/Arithmetic-v0", episodes=100, slots=1, out=sys.argv[1], resume=True,
         on_episode=lambda _: time.sleep(0.02))
"""


class Echo:
    """Answers by the instance alone, and dies at call ``dies``."""

    def __init__(self, dies: int | None = None) -> None:
        self.dies, self.calls = dies, 0
        self.asked: list[str] = []

    def act(self, observations: Any, memory: Any = None, **options: Any) -> Acted:
        if self.calls == self.dies:
            raise ConnectionError("gone")
        self.calls += 1
        self.asked += observations
        words = tuple("right" if int(text.split()[1]) % 3 else "wrong" for text in observations)
        records: list[Any] = [{"ids": np.arange(len(word)), "x": np.asarray(0.1, np.float32)} for word in words]
        return Acted(words, [()] * len(words), records)


@pytest.fixture(autouse=True)
def toys() -> Iterator[None]:
    gym.register(ORACLE, entry_point="tests.agents.toys:Oracle")
    gym.register(COUNTING, entry_point="tests.agents.toys:Counting")
    yield
    for name in (ORACLE, COUNTING):
        del gym.registry[name]


def facts(result: Result) -> dict[str, Any]:
    return {name: value for name, value in result.to_json().items() if "seconds" not in name}


def same(a: Result, b: Result) -> bool:
    episodes = [[(to_json(e), e.steps[0].record) for e in r.episodes_played] for r in (a, b)]
    return facts(a) == facts(b) and repr(episodes[0]) == repr(episodes[1])


def die(out: Path, dies: int, **options: Any) -> None:
    with pytest.raises(ConnectionError, match="gone"):
        evaluate(Echo(dies), ORACLE, out=out, **options)


@pytest.mark.parametrize("options", [{"episodes": 10, "slots": 2}, {"episodes": 4, "samples": 3, "slots": 5}])
def test_a_run_that_died_goes_on(tmp_path: Path, options: dict[str, Any]) -> None:
    whole = evaluate(Echo(), ORACLE, **options)
    die(tmp_path, 1, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "config.json", "unfinished.jsonl"]
    kept = options["slots"]
    die(tmp_path, 1, **options, resume=True)  # and dies again
    seen: list[Episode] = []
    last = Echo()
    result = evaluate(last, ORACLE, out=tmp_path, resume=True, on_episode=seen.append, **options)
    total = options["episodes"] * options.get("samples", 1)
    assert same(result, whole) and len(last.asked) == total - 2 * kept and len(seen) == total
    assert not (tmp_path / "unfinished.jsonl").exists()
    saved = json.loads((tmp_path / "result.json").read_text())
    assert {name: saved[name] for name in facts(whole)} == facts(whole)
    assert [to_json(e) for e in load_episodes(tmp_path)] == [to_json(e) for e in whole.episodes_played]


def test_a_finished_run_is_not_played_again_and_may_grow(tmp_path: Path) -> None:
    first = evaluate(Echo(), ORACLE, episodes=3, out=tmp_path)
    idle = Echo(dies=0)
    assert same(evaluate(idle, ORACLE, episodes=3, out=tmp_path, resume=True), first) and not idle.asked
    more = Echo()
    grown = evaluate(more, ORACLE, episodes=5, out=tmp_path, resume=True)
    assert same(grown, evaluate(Echo(), ORACLE, episodes=5)) and len(more.asked) == 2
    with pytest.raises(JournalError, match="episodes: 5 there, 4 now"):
        evaluate(Echo(), ORACLE, episodes=4, out=tmp_path, resume=True)


def test_resume_of_nothing_is_a_start(tmp_path: Path) -> None:
    out = tmp_path / "not" / "there"
    assert same(evaluate(Echo(), ORACLE, episodes=2, out=out, resume=True), evaluate(Echo(), ORACLE, episodes=2))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 1}, "seed: 0 there, 1 now"),
        ({"samples": 2}, "greedy: True there, False now; samples: 1 there, 2 now"),
        ({"greedy": False}, "greedy: True there, False now"),
        ({"split": "train"}, "kwargs: {'split': 'test'} there, {'split': 'train'} now"),
        ({"policy": "random"}, "policy: 'Echo' there, 'random' now; temperature: None there, 1.0 now"),
        ({"env_id": "tetrathlon/Arithmetic-v0"}, "env: 'toys/Oracle-v0' there, 'tetrathlon/Arithmetic-v0' now"),
    ],
)
def test_another_evaluation_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    die(tmp_path, 1, episodes=3, slots=1)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    options = {"policy": Echo(), "env_id": ORACLE, "episodes": 3, **change}
    with pytest.raises(JournalError) as caught:
        evaluate(**options, out=tmp_path, resume=True)
    assert said in str(caught.value) and str(tmp_path) in str(caught.value)
    with pytest.raises(JournalError, match="--resume"):
        evaluate(Echo(), ORACLE, episodes=3, out=tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("first", "now", "said"),
    [
        ({}, {"temperature": 0.5}, "temperature: 1.0 there, 0.5 now"),
        ({}, {"model": "b"}, "#a' there, 'openai:http://localhost:1/v1#b' now"),
        ({"temperature": 0.5}, {"temperature": 0.5}, None),
    ],
)
def test_a_policy_on_a_server_is_known_by_its_model(
    tmp_path: Path, first: dict[str, Any], now: dict[str, Any], said: str | None
) -> None:
    def made(temperature: float = 1.0, model: str = "a") -> ChatPolicy:
        policy = ChatPolicy("http://localhost:1/v1", model, temperature=temperature)
        policy.act = Echo().act  # type: ignore[method-assign]
        return policy

    result = evaluate(made(**first), ORACLE, episodes=2, out=tmp_path)
    assert result.policy == "openai:http://localhost:1/v1#a"
    with pytest.raises(JournalError, match=said) if said else contextlib.nullcontext():
        evaluate(made(**now), ORACLE, episodes=3, out=tmp_path, resume=True)


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    def second(episode: Episode) -> None:
        for resume in (True, False):
            with pytest.raises(JournalError, match=r"another evaluation is at work in|holds an evaluation"):
                evaluate(Echo(), ORACLE, episodes=9, out=tmp_path, resume=resume)

    first = evaluate(Echo(), ORACLE, episodes=3, slots=1, out=tmp_path, on_episode=second)
    grown = evaluate(Echo(), ORACLE, episodes=4, out=tmp_path, resume=True)
    assert grown.episodes_played[0].seed == first.episodes_played[0].seed


def test_the_second_of_two_runs_that_began_together_leaves_the_first_alone(tmp_path: Path) -> None:
    config, episode = {"env": "e", "episodes": 1}, Episode([Step("o", "a")], "o", "e")
    first, second = (Journal(tmp_path / "new", config, True) for _ in range(2))
    first.keep(episode)
    with pytest.raises(JournalError, match="another evaluation is at work in"):
        second.keep(episode)
    first.finish([episode], {})
    first.close()
    before = {path: path.read_bytes() for path in (tmp_path / "new").iterdir()}
    with pytest.raises(JournalError, match="another evaluation has begun in"):
        second.keep(episode)
    second.close()
    assert {path: path.read_bytes() for path in (tmp_path / "new").iterdir()} == before


def test_a_full_disk_is_told_and_loses_nothing(tmp_path: Path) -> None:
    whole = evaluate(Echo(), ORACLE, episodes=6)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    size, kept = len(json.dumps(to_json(whole.episodes_played[0]))), list[Episode]()
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(3.5 * size), hard))  # within an episode: a part of it is taken
    try:
        with pytest.raises(OSError, match=r"unfinished\.jsonl"):
            evaluate(Echo(), ORACLE, episodes=6, slots=1, out=tmp_path, on_episode=kept.append)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    last = Echo()
    assert same(evaluate(last, ORACLE, episodes=6, out=tmp_path, resume=True), whole)
    assert 0 < len(kept) < 6 and len(last.asked) == 6 - len(kept)  # what was said to be kept was


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line.replace(b'"group": 1', b'"group": 3'),
        lambda line: line.replace(b'"group": 1', b'"group": 1000'),
        lambda line: line.replace(b'"group": 1', b'"group": -1'),
        lambda line: line.replace(b'"group": 1', b'"group": null'),
        lambda line: b"[" * 100_000,
        lambda line: b"\x00" * 50,
        lambda line: b'{"steps": 5}',
        lambda line: b"5",
    ],
)
def test_a_damaged_line_is_played_again(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    die(tmp_path, 3, episodes=6, slots=1)
    path = tmp_path / "unfinished.jsonl"
    lines = path.read_bytes().split(b"\n")
    (number,) = [i for i, line in enumerate(lines) if b'"group": 1,' in line]
    assert damage(lines[number]) != lines[number]
    path.write_bytes(b"\n".join([*lines[:number], damage(lines[number]), *lines[number + 1 :]]))
    last = Echo()
    result = evaluate(last, ORACLE, episodes=6, out=tmp_path, resume=True)
    assert len(last.asked) == 6 - 3 + 1 and same(result, evaluate(Echo(), ORACLE, episodes=6))


def test_arguments_that_are_no_json_need_no_folder(tmp_path: Path) -> None:
    kwargs = {"size": object()}
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        evaluate(Echo(), ORACLE, episodes=1, kwargs=kwargs)
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        evaluate(Echo(), ORACLE, episodes=1, kwargs=kwargs, out=tmp_path)


@pytest.mark.parametrize("text", ["{", "[1]", "{}", '{"episodes": "3"}'])
def test_a_config_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(JournalError, match=r"config\.json|cannot be resumed"):
        evaluate(Echo(), ORACLE, episodes=3, out=tmp_path, resume=True)


def test_old_episodes_without_a_config_are_refused(tmp_path: Path) -> None:
    (tmp_path / "episodes.jsonl").write_text("")
    with pytest.raises(JournalError, match=r"it has no config\.json"):
        evaluate(Echo(), ORACLE, episodes=3, out=tmp_path, resume=True)
    with pytest.raises(ValueError, match="out must name it"):
        evaluate(Echo(), ORACLE, episodes=3, resume=True)


def test_a_wrong_policy_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no policy 'exprt'"):
        evaluate("exprt", ORACLE, episodes=3, out=tmp_path / "a")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("cut", [1, 40, 400])
def test_a_line_that_was_cut_is_played_again(tmp_path: Path, cut: int) -> None:
    die(tmp_path, 3, episodes=6, slots=1)
    path = tmp_path / "unfinished.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    die(tmp_path, 1, episodes=6, slots=1, resume=True)  # what it appends is on a line of its own
    last = Echo()
    result = evaluate(last, ORACLE, episodes=6, out=tmp_path, resume=True)
    lost = {1: 0, 40: 1, 400: 1}[cut]  # without its end of line an episode is whole
    assert len(last.asked) == 6 - 4 + lost and same(result, evaluate(Echo(), ORACLE, episodes=6))


def test_a_kill_while_the_result_is_written(tmp_path: Path) -> None:
    die(tmp_path, 4, episodes=5, slots=1)
    old = (tmp_path / "unfinished.jsonl").read_bytes()
    whole = evaluate(Echo(), ORACLE, episodes=5, out=tmp_path, resume=True)
    (tmp_path / "unfinished.jsonl").write_bytes(old)
    (tmp_path / "result.json").unlink()
    idle = Echo(dies=0)
    assert same(evaluate(idle, ORACLE, episodes=5, out=tmp_path, resume=True), whole)


def test_what_crashed_is_tried_again(tmp_path: Path) -> None:
    options = {"episodes": 4, "slots": 1, "out": tmp_path}
    crashing = {"crash_at": 2, "crash_seed": instance(2)}
    first = evaluate(lambda o: 1, COUNTING, kwargs=crashing, **options)  # type: ignore[arg-type]
    again = evaluate(lambda o: 1, COUNTING, kwargs=crashing, **options, resume=True)  # type: ignore[arg-type]
    assert first.crashes["count"] == again.crashes["count"] == 1
    assert facts(first) == facts(again) and len(again.episodes_played) == 3


def instance(number: int) -> int:
    return evaluate(lambda o: 1, COUNTING, episodes=number + 1).episodes_played[number].seed or 0


def test_samples_of_a_resumed_run_are_new(tmp_path: Path) -> None:
    def drawn(episodes: tuple[Episode, ...]) -> list[Any]:
        return [e.steps[0].action for e in episodes]

    class Stop(Exception):
        pass

    def stop(episode: Episode) -> None:
        raise Stop

    options: dict[str, Any] = {"episodes": 1, "samples": 2, "slots": 1}
    with pytest.raises(Stop):
        evaluate("random", COUNTING, out=tmp_path, on_episode=stop, **options)
    a, b = drawn(evaluate("random", COUNTING, out=tmp_path, resume=True, **options).episodes_played)
    assert a != b and a == drawn(evaluate("random", COUNTING, **options).episodes_played)[0]


def test_everything_in_an_episode_comes_back(tmp_path: Path) -> None:
    picture = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    observation = {"image": picture, "grey": picture[..., :1], "state": np.array([0.1, np.inf], np.float32)}
    step = Step(observation, "é\ud800", 0.1, True, False, {"a": (1,)}, {"ids": np.arange(3, dtype=np.int32)}, "label")
    episode = Episode([step], observation, "e", {"k": 1.5}, 3, {"index": 2}, {"task_id": "t"}, 0)
    journal = Journal(tmp_path, {"env": "e", "episodes": 1}, False)
    journal.keep(episode)
    journal.close()
    again = Journal(tmp_path, {"env": "e", "episodes": 1}, True)
    (back,) = again.finished()
    assert repr(back) == repr(episode) and back.steps[0].observation["grey"].shape == (4, 4, 1)
    assert len(list((tmp_path / "images").iterdir())) == 2
    again.finish([back], {})
    assert repr(load_episodes(tmp_path)[0]) == repr(episode)
    assert len(list((tmp_path / "images").iterdir())) == 2


def test_a_killed_process_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run" / "unfinished.jsonl"

    def lines() -> int:
        return path.read_bytes().count(b'"env"') if path.exists() else 0

    kept = 0
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path / "run")])
        deadline = time.monotonic() + 60
        while lines() < kept + 5:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.005)
        process.kill()
        process.wait()
        assert lines() >= kept + 5
        kept = lines()
    result = evaluate("expert", "Arithmetic", episodes=100, slots=1, out=tmp_path / "run", resume=True)
    whole = evaluate("expert", "Arithmetic", episodes=100, slots=1, out=tmp_path / "whole")
    assert facts(result) == facts(whole) and kept >= 10
    written = [(tmp_path / name / "episodes.jsonl").read_bytes() for name in ("run", "whole")]
    assert written[0] == written[1]
