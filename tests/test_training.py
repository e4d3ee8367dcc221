"""``tetrathlon train``: from the command line to a run on disk that goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tetrathlon.cli import main

TRAIN = ["train", "grpo", "tetrathlon/Arithmetic-v0", "--policy", "tetrathlon.agents.char_lm:char_lm"]
SMALL = ["--groups", "2", "--group-size", "2", "--test-episodes", "4", "--checkpoint-every", "2"]
ENV = ["--env", "digits=1", "answer_format=plain", "max_tokens=2"]


def test_a_run_shows_how_it_goes_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["--out", str(tmp_path / "run"), *SMALL]
    assert main([*TRAIN, "--updates", "2", *run, *ENV]) == 0
    said = capsys.readouterr().out
    assert "before: test success" in said and "after: test success" in said and "entropy" in said
    config = json.loads((tmp_path / "run/config.json").read_text())
    assert config["algorithm"] == "GRPO" and config["options"]["group_size"] == 2
    assert config["kwargs"]["split"] == "train" and config["kwargs"]["digits"] == 1
    assert main([*TRAIN, "--updates", "3", *run, *ENV]) == 2
    assert "holds a run; go on with it" in capsys.readouterr().err
    assert main([*TRAIN, "--updates", "3", "--resume", *run, *ENV]) == 0
    lines = (tmp_path / "run/metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["update"] for line in lines] == [0, 1, 2]
    assert (tmp_path / "run/checkpoints/step-00000003").is_dir() and (tmp_path / "run/episodes.jsonl").is_file()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train"], "say which algorithm: tetrathlon train ALGO ID; there are grpo, "),
        (["train", "grop", "x"], "there is no algorithm 'grop'; did you mean grpo"),
        ([*TRAIN[:3], "--policy", "random"], "policy 'random' cannot be trained: it is no TrainablePolicy"),
        ([*TRAIN, "--updates", "0"], "--updates must be at least 1, got 0"),
        ([*TRAIN, "--group-sizes", "3"], "there is no option '--group-sizes'; did you mean --group-size"),
        ([*TRAIN, "--gamma", "2"], "gamma must be from 0 to 1, got 2.0"),
    ],
)
def test_wrong_commands(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err
