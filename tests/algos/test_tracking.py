"""Metrics where others look for them."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tetrathlon.algos.tracking import TensorBoard, WandB


def read(folder: Path) -> dict[str, dict[int, float]]:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = accumulator.EventAccumulator(str(folder))
    found.Reload()
    names = found.Tags()["scalars"]
    return {name: {event.step: event.value for event in found.Scalars(name)} for name in names}


def test_tensorboard_has_every_finite_number_once(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    board = TensorBoard(tmp_path)
    for number, value in ((-1, 0.5), (0, 1.0), (1, 2.0), (2, 3.0)):
        board.log(number, {"reward": value, "test/success": math.nan})
    board.close()
    assert read(tmp_path) == {"reward": {0: 0.5, 1: 1.0, 2: 2.0, 3: 3.0}}
    again = TensorBoard(tmp_path)  # killed after update 2, whose checkpoint is of update 1
    again.log(1, {"reward": 20.0})
    again.close()
    assert read(tmp_path)["reward"] == {0: 0.5, 1: 1.0, 2: 20.0}


def test_wandb_is_told_what_a_run_says(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    def init(**options: Any) -> Any:
        told.append(options)
        return run

    run = SimpleNamespace(log=lambda metrics, step: told.append((step, metrics)), finish=lambda: told.append("end"))
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    tracker = WandB(project="robots")
    tracker.log(0, {"reward": 1.0, "success": math.nan})
    tracker.close()
    assert told == [{"project": "robots"}, (1, {"reward": 1.0}), "end"]


@pytest.mark.parametrize(("module", "make"), [("torch.utils.tensorboard", TensorBoard), ("wandb", WandB)])
def test_a_missing_package_is_named(module: str, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match="pip install"):
        make() if make is WandB else make("folder")
