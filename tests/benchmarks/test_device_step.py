"""Seconds of an update, on the device that is there."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tetrathlon.benchmarks import device_step


def test_it_measures_updates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 128}
    small |= {"num_key_value_heads": 2, "intermediate_size": 16}
    monkeypatch.setattr(device_step, "_SMOLLM2", device_step._SMOLLM2 | small)
    words = ["--device", "cpu", "--groups", "2", "--group-size", "2", "--max-tokens", "4", "--updates", "2"]
    assert device_step.main([*words, "--out", str(tmp_path / "out.json")]) == 0
    found = json.loads((tmp_path / "out.json").read_text())
    assert [row["dtype"] for row in found["updates"]] == ["float32", "mixed"] and found["device"] == "cpu"
    for row in found["updates"]:
        assert row["first_ratio_error"] == 0.0 and 0 < row["play"] < row["seconds"] and row["decisions"] <= 16
    assert found["updates"][0]["sampler_drift"] < 1e-4


def test_the_script_says_what_is_missing(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "benchmarks/gpu_check.sh"
    asked = subprocess.run(["bash", str(script)], capture_output=True, text=True)
    assert asked.returncode != 0 and "usage: gpu_check.sh FOLDER" in asked.stderr
    assert subprocess.run(["bash", "-n", str(script)]).returncode == 0
