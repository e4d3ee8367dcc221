from __future__ import annotations

import json
import statistics
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tetrathlon.benchmarks.contender import ContenderError
from tetrathlon.benchmarks.speed import COMPARISONS, Speed
from tetrathlon.benchmarks.speed_comparison import Comparison
from tetrathlon.benchmarks.speed_contender import Contender, Lap, Runner

SLEEPER = """
import time
PACKAGES = ("numpy",)
def start(seconds):
    print("a library may print")
    def episodes(n):
        time.sleep(n * seconds)
        return [1] * n
    return episodes
"""
PAYER = """
PACKAGES = ()
def start(rewards):
    return lambda n: rewards
"""
PARENT = """
import subprocess, sys
PACKAGES = ()
CHILD = '''
import sys, time
for line in sys.stdin:
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    print(flush=True)
'''
def start():
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    def episodes(n):
        for _ in range(n):
            child.stdin.write(b"go\\n")
            child.stdin.flush()
            child.stdout.readline()
        return [1.0] * n
    return episodes
"""
SWITCH = """
import subprocess
PACKAGES = ()
def start():
    which = subprocess.run(["python", "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True).stdout
    raise SystemExit("python is " + which.strip())
"""


@pytest.fixture
def contender(tmp_path: Path) -> Any:
    def make(source: str, name: str = "toy", **options: Any) -> Contender:
        program = tmp_path / f"{name.replace('-', '_')}_program.py"
        program.write_text(source, "utf-8")
        return Contender(name, program, options)

    return make


def test_a_comparison_takes_turns_and_divides_round_by_round(contender: Any, tmp_path: Path) -> None:
    fast, slow = contender(SLEEPER, "fast", seconds=0.002), contender(SLEEPER, "slow", seconds=0.01)
    bad = contender(PAYER, "bad", rewards=[])
    out = tmp_path / "speed.json"
    code = Speed(peers=Path(sys.executable), out=out, rounds=3, seconds=0.06).run(
        (
            Comparison("sleep", "sleep a while", fast, (slow,), target=2.0),
            Comparison("nothing", "no task", fast, (bad,)),
            Comparison("sleep-backwards", "the same, other side", slow, (fast,)),
        )
    )
    result = json.loads(out.read_text("utf-8"))
    sleep, nothing, backwards = result["comparisons"]
    assert code == 1
    assert "refused" in nothing and "bad" in nothing["refused"]
    ours, peer = sleep["contenders"]
    assert (ours["name"], peer["name"], sleep["target"], len(sleep["load"])) == ("fast", "slow", 2.0, 3)
    assert ours["versions"]["numpy"] and ours["options"] == {"seconds": 0.002}
    rates = [[lap["episodes"] / lap["seconds"] for lap in one["laps"]] for one in (ours, peer)]
    assert peer["ratios"] == [a / b for a, b in zip(*rates, strict=True)] and len(peer["ratios"]) == 3
    assert peer["ratio"] == statistics.median(peer["ratios"])
    assert (ours["rate"], ours["ratio"]) == (statistics.median(rates[0]), 1.0)
    assert 2.5 < peer["ratio"] < 10 and 0.1 < backwards["contenders"][1]["ratio"] < 0.4  # 5 and 1/5 when idle
    assert 300 < ours["rate"] <= 500
    assert peer["cpu_ratio"] != peer["ratio"] and ours["cpu_rate"] > 2 * ours["rate"]  # it slept
    assert result["command"].startswith("python -m tetrathlon.benchmarks.speed --peers PYTHON")
    assert str(tmp_path) not in out.read_text("utf-8") and sys.executable not in out.read_text("utf-8")
    assert {"versions", "platform", "cpu", "commit", "made"} <= set(result)


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        ([1.0, 1.0, 0.0], "3 right answers must each pay 1, got 1.0 x 2, 0.0 x 1"),
        ([1.0, 1.0], "got 1.0 x 2"),
        ([1.0] * 4, "got 1.0 x 4"),
        ([1.0, 1.0, 1.1], "1.1 x 1"),
        ([], "got nothing"),
        (["?"], "could not convert"),
    ],
)
def test_who_is_not_paid_for_right_answers_is_refused(contender: Any, rewards: list[Any], message: str) -> None:
    with Runner(contender(PAYER, rewards=rewards), sys.executable) as runner, pytest.raises(ContenderError) as caught:
        runner.play(3)
    assert message in str(caught.value) and "toy" in str(caught.value)


def test_the_processor_time_of_processes_that_stay_alive_counts(contender: Any) -> None:
    with Runner(contender(PARENT), sys.executable) as runner:
        lap = runner.play(3)
    assert 0.28 <= lap.cpu_seconds < 0.6


def test_rates_of_a_lap() -> None:
    lap = Lap(episodes=10, seconds=4.0, cpu_seconds=2.0)
    assert (lap.rate, lap.cpu_rate) == (2.5, 5.0)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import nowhere_to_be_found", "No module named 'nowhere_to_be_found'"),
        ("PACKAGES = ('no-such-package',)\ndef start(): return len", "no-such-package"),
        ("PACKAGES = ()\ndef start(): raise SystemExit", "ended without a word"),
        (SWITCH, f"python is {sys.prefix}"),  # tools that call python get the interpreter of their own side
    ],
)
def test_who_does_not_start_is_refused_with_its_last_words(contender: Any, source: str, message: str) -> None:
    with pytest.raises(ContenderError) as caught:
        Runner(contender(source), sys.executable)
    assert message in str(caught.value)


def test_an_interpreter_that_is_not_there_is_named(contender: Any, tmp_path: Path) -> None:
    with pytest.raises(ContenderError, match=r"no/python does not start"):
        Runner(contender(PAYER, rewards=[]), str(tmp_path / "no" / "python"))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"only": ("latin",)}, "latex.*got latin"), ({"rounds": 0}, "--rounds"), ({"seconds": 0.0}, "--seconds")],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Speed(peers=Path(sys.executable), **options).run()


def test_comparisons_have_names_of_their_own_and_programs() -> None:
    assert len({comparison.name for comparison in COMPARISONS}) == len(COMPARISONS)
    for comparison in COMPARISONS:
        assert comparison.peers
        for contender in (comparison.ours, *comparison.peers):
            assert contender.program.is_file()


@pytest.mark.parametrize(
    "ours", {c.ours.program: c.ours for c in COMPARISONS}.values(), ids=lambda ours: ours.program.stem
)
def test_our_side_is_paid_for_right_answers(ours: Contender) -> None:
    few = {name: 16 if name == "rows" else value for name, value in ours.options.items()}
    with Runner(replace(ours, options=few), sys.executable) as runner:
        assert runner.play(20).episodes == 20
