"""What a training run wrote, as columns."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tetrathlon.benchmarks.figures import figures
from tetrathlon.benchmarks.history import Column, History, find_history, moving_mean
from tetrathlon.benchmarks.milestones import milestones
from tetrathlon.benchmarks.training_table import sparkline

NAN = math.nan


def write(folder: Path, lines: list[dict[str, Any]], tail: str = "", **config: Any) -> History:
    (folder / "config.json").write_text(json.dumps({"algorithm": "GRPO", "env": "a/B-v0", **config}))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + tail)
    return History(folder)


def test_columns_hold_what_was_told(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"update": 0, "a": 1, "test/success": 0.25, "word": "x", "flag": True},
        {"update": 1, "a": None},
        {"update": 3, "a": 9.0},
        {"update": 3, "a": 4.5, "huge": 10**400},  # a resumed run did it again
        {"update": 2, "a": NAN, "wide": math.inf},
    ]
    tail = 'not json\n[1]\n{"a": 1}\n{"update": "5", "a": 1}\n{"update": 6, "a": 1'
    history = write(tmp_path, lines, tail, updates=8)
    assert set(history.columns) == {"a", "test/success", "huge", "wide"}
    assert history.columns["a"].update.tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(history.columns["a"].value, [1.0, NAN, NAN, 4.5])
    np.testing.assert_array_equal(history.columns["huge"].value, [NAN])
    assert history.columns["test/success"].update.tolist() == [1]
    assert (history.done, history.updates, history.damaged) == (4, 8, 5)
    assert history.progress == "4 of 8 updates" and history.title == "GRPO · B-v0"


def test_a_run_without_metrics_is_one(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"algorithm": "PPO"}')
    history = History(tmp_path)
    assert (history.done, history.columns, history.seconds, milestones(history)) == (0, {}, 0.0, [])
    assert list(figures(history)) == []


def test_what_is_no_training_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"holds no config\.json; give the folder of a training run"):
        History(tmp_path)
    assert find_history(tmp_path) is None
    (tmp_path / "config.json").write_text('{"policy": "random"}')
    with pytest.raises(ValueError, match=r"config\.json is not the configuration of a training run: no 'algorithm'"):
        History(tmp_path)
    assert find_history(tmp_path) is None
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config\.json is not JSON"):
        find_history(tmp_path)


def test_a_moving_mean_passes_over_gaps_and_survives_peaks() -> None:
    values = np.array([1.0, 2.0, NAN, 6.0, 8.0])
    np.testing.assert_allclose(moving_mean(values, 3), [1.5, 1.5, NAN, 7.0, 7.0])
    np.testing.assert_array_equal(moving_mean(values, 1), values)
    peak = np.array([1e30, *[1.0] * 9])
    np.testing.assert_array_equal(moving_mean(peak, 3)[2:], np.ones(8))


def test_ends_and_best_are_means_of_a_twentieth() -> None:
    value = np.array([0.0, 3.0, 6.0, *[4.0] * 54, 7.0, 8.0, 9.0])
    column = Column(np.arange(1.0, 61), value)
    assert column.width == 3 and column.ends == (3.0, 8.0)
    best = column.best(1)
    assert best == (8.5, 60)  # at an end there are two to take the mean of
    assert column.best(-1) == (1.5, 1)
    short = Column(np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.9, NAN]))
    assert short.width == 1 and short.ends == (0.5, 0.9) and short.best(1) == (0.9, 2)
    nothing = Column(np.array([1.0]), np.array([NAN]))
    assert nothing.best(1) is None and all(map(math.isnan, nothing.ends))


def test_milestones_say_where_it_began_and_its_best(tmp_path: Path) -> None:
    lines = [{"update": k, "success": s, "cut": 1 - s, "entropy": 1.0} for k, s in enumerate((0.25, 0.75, 0.5))]
    found = {stone.name: stone for stone in milestones(write(tmp_path, lines))}
    success, cut, entropy = (found[name] for name in ("success", "cut", "entropy"))
    assert list(found) == ["success", "entropy", "cut"]
    assert [success.say(x) for x in (success.start, success.end)] == ["25.0 %", "50.0 %"]
    assert success.best == (0.75, 2) and cut.best == (0.25, 2) and entropy.best is None
    assert entropy.say(entropy.end) == "1" and entropy.say(NAN) == "–"


def test_a_sparkline_is_low_where_values_are() -> None:
    assert sparkline(np.array([0.0, 1.0, NAN, 0.5]), "abc") == "ac b"
    assert sparkline(np.array([2.0, 2.0]), "abc") == "aa"
    assert sparkline(np.array([NAN, NAN]), "abc") == ""
    long = sparkline(np.arange(2400.0), "0123456789")
    assert len(long) == 24 and long == "".join(sorted(long)) and long[0] == "0" and long[-1] == "9"
