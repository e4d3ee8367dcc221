"""Speed of the vision tasks: what is counted, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tetrathlon.benchmarks.scene_speed import SceneSpeed
from tetrathlon.envs import listings


def test_the_result_names_each_task_the_machine_and_the_command(tmp_path: Path) -> None:
    out = tmp_path / "speed.json"
    assert SceneSpeed(out=out, rounds=1, scenes=2).run() == 0
    result = json.loads(out.read_text("utf-8"))
    assert [row["env"] for row in result["tasks"]] == [listing.id for listing in listings("vision")]
    assert all(row["rate"] > 0 and row["cpu_rate"] > 0 and row["size"] >= 64 for row in result["tasks"])
    assert "--rounds 1 --scenes 2" in result["command"] and result["cpu"]["count"] >= 1


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0 and 200"):
        SceneSpeed(rounds=0).run()
