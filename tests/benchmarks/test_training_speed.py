"""The comparison of updates: who is asked what, in which order, and what comes of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tetrathlon.benchmarks import training_speed
from tetrathlon.benchmarks.training_speed import TrainingSpeed, UpdateError, questions

PROGRAM = """
import json, sys, time
options = json.loads(sys.argv[1])
cost, prompt_tokens = {cost}, {prompt_tokens}
print(json.dumps({{"versions": {{"python": "3"}}}}), flush=True)
for number, _ in enumerate(sys.stdin):
    with open({journal!r}, "a") as file:
        file.write("{name} ")
    lap = {{"cpu_seconds": cost + number, "seconds": 2 * cost, "phases": {{"generate": cost}}, "tokens": 5}}
    print(json.dumps({{**lap, "prompt_tokens": prompt_tokens}}), flush=True)
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two contenders that only say numbers: 4 and 10 processor seconds at first, and one more each time."""
    for name, cost in (("tetrathlon", 4), ("trl", 10)):
        journal = str(tmp_path / "journal")
        text = PROGRAM.format(name=name, cost=cost, prompt_tokens=7, journal=journal)
        (tmp_path / f"update_{name}.py").write_text(text, "utf-8")
    monkeypatch.setattr(training_speed, "_PROGRAMS", tmp_path)
    monkeypatch.setattr("tetrathlon.agents.smollm2", lambda: tmp_path)
    return tmp_path


def run(**options: object) -> TrainingSpeed:
    return TrainingSpeed(peers=Path(sys.executable), **options)  # type: ignore[arg-type]


def test_they_take_turns_and_medians_of_all_but_the_first_count(programs: Path) -> None:
    out = programs / "out.json"
    assert run(rounds=3, out=out).run() == 0
    assert (programs / "journal").read_text().split() == ["tetrathlon", "trl"] * 4
    result = json.loads(out.read_text("utf-8"))
    (found,) = result["comparisons"]
    ours, peer = found["contenders"]
    assert (ours["cpu_seconds"], peer["cpu_seconds"]) == (6, 12)  # of 5, 6, 7 and 11, 12, 13
    assert found["cpu_ratio"] == 0.5 and found["ratio"] == 0.4
    assert [lap["cpu_seconds"] for lap in peer["laps"]] == [11, 12, 13]
    assert str(programs) not in result["command"] and "--rounds 3" in result["command"]


def test_one_round_is_the_first(programs: Path) -> None:
    text = (programs / "update_tetrathlon.py").read_text("utf-8")
    (programs / "update_tetrathlon.py").write_text(text.replace("= 4, 7", "= 6, 7"), "utf-8")
    assert run(rounds=1, dtype=("float32", "bfloat16")).run() == 1  # 6 of 10
    assert (programs / "journal").read_text().split() == ["tetrathlon", "trl"] * 2


def test_prompts_must_be_the_same(programs: Path) -> None:
    text = (programs / "update_trl.py").read_text("utf-8")
    (programs / "update_trl.py").write_text(text.replace("= 10, 7", "= 10, 8"), "utf-8")
    with pytest.raises(UpdateError, match="ours have 7 tokens, TRL's 8"):
        run(rounds=1).run()


def test_a_contender_that_ends_says_why(programs: Path) -> None:
    (programs / "update_trl.py").write_text("raise ImportError('no module named trl')", "utf-8")
    with pytest.raises(UpdateError, match="trl: ImportError: no module named trl"):
        run(rounds=1).run()


@pytest.mark.parametrize(
    ("options", "message"),
    [({"rounds": 0}, "--rounds must be at least 1, got 0"), ({"prompts": 3, "group_size": 3}, "multiple of 8")],
)
def test_wrong_options(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(**options).run()


def test_questions_differ() -> None:
    asked = questions(8)
    assert len({text for text, _ in asked}) == 8
    for text, right in asked:
        a, b = (int(word.strip("?")) for word in text.split() if word.strip("?").isdigit())
        assert a + b == right
