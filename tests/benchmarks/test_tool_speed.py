"""Speed of the tool tasks: what is counted, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tetrathlon.benchmarks.tool_speed import ToolSpeed, lap


def test_steps_are_those_of_whole_episodes() -> None:
    found = lap("tetrathlon/Lookup-v0", 4, 0, 0.01, 5)
    assert found.steps % 1 == 0 and found.steps >= 4 * 3 and found.seconds > 0 and found.cpu_seconds > 0


def test_the_result_names_the_machine_and_the_command(tmp_path: Path) -> None:
    out = tmp_path / "speed.json"
    assert ToolSpeed(out=out, rounds=1, seconds=0.01, only=("tetrathlon/Lookup-v0",)).run() == 0
    result = json.loads(out.read_text("utf-8"))
    (row,) = result["tasks"]
    assert row["env"] == "tetrathlon/Lookup-v0" and row["side_by_side"]["episodes"] == 64
    assert row["alone"]["rate"] > 0 and "tool_speed" in result["command"] and result["cpu"]["count"] >= 1


def test_what_is_no_task_is_refused() -> None:
    with pytest.raises(ValueError, match="tasks must be among"):
        ToolSpeed(only=("tetrathlon/Reach-v0",)).run()
