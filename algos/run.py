"""A training run on disk: what it is, how it went, and where it can go on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from tetrathlon.agents.decisions import Decisions
from tetrathlon.algos.checkpoint import Checkpoints
from tetrathlon.envs.episode import Episode, save_episodes, write_aside

_CONFIG, _METRICS = "config.json", "metrics.jsonl"
_PLANNED = "updates"


class RunError(ValueError):
    """A folder holds another run than the one that is to go on there."""


class Run:
    """The folder of a run: ``config.json``, ``metrics.jsonl``, ``episodes.jsonl`` and ``checkpoints/``.

    Args:
        folder: Made if it is not there.
        config: What is run, as JSON data.
        resume: Whether to go on with what is there.

    Raises:
        RunError: The folder holds a run and ``resume`` is false, or one of another configuration.
        OSError: The folder cannot be written.
    """

    def __init__(self, folder: str | Path, config: Mapping[str, Any], *, resume: bool = False) -> None:
        self.folder = Path(folder)
        self.checkpoints = Checkpoints(self.folder / "checkpoints")
        wanted = json.loads(json.dumps(config))
        path = self.folder / _CONFIG
        if path.is_file():
            if not resume:
                raise RunError(f"{self.folder} holds a run; go on with it (resume), or choose another folder")
            try:
                there = json.loads(path.read_bytes())
            except ValueError as error:
                raise RunError(f"{path} is no JSON ({error}); put it right, or choose another folder") from error
            there.pop(_PLANNED, None)  # a run may go on for longer than was planned
            if differ := "; ".join(_differences(there, wanted)):
                raise RunError(f"{self.folder} holds another run ({differ})")
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_aside(path, (json.dumps(wanted, indent=1) + "\n").encode())

    def begin(self, update: int, updates: int) -> None:
        """Forget what was noted from ``update`` on, which will be done again; note how many are planned."""
        for left in self.folder.glob(".*.json*.*"):  # what a kill left half written
            left.unlink(missing_ok=True)
        config = self.folder / _CONFIG
        planned = json.loads(config.read_text("utf-8")) | {_PLANNED: max(updates, update)}
        write_aside(config, (json.dumps(planned, indent=1) + "\n").encode())
        path = self.folder / _METRICS
        if path.is_file():
            kept = [line for line in self.metrics() if line["update"] < update] if update else []
            write_aside(path, "".join(json.dumps(line) + "\n" for line in kept).encode())

    def note(self, update: int, metrics: Mapping[str, float]) -> None:
        """Append the metrics of an update; number -1 is the start."""
        line = json.dumps({"update": update, **{name: _finite(value) for name, value in metrics.items()}})
        with open(self.folder / _METRICS, "ab") as file:  # unbuffered, a full disk takes half a line without a word
            file.write(f"{line}\n".encode("ascii"))

    def metrics(self) -> list[dict[str, Any]]:
        """Return what was noted; see :func:`noted`."""
        return noted(self.folder)

    def keep_failed(self, update: int, batch: Decisions) -> Path:
        """Write the decisions of a step that failed; return the file, which ``torch.load`` reads."""
        columns = {column.name: getattr(batch, column.name) for column in fields(batch)}
        path = self.folder / f"failed-update-{update}.pt"
        torch.save(columns, path)
        return path

    def keep(self, episodes: Iterable[Episode]) -> None:
        """Write sample episodes in place of the last ones."""
        save_episodes(self.folder, episodes)


def noted(folder: Path) -> list[dict[str, Any]]:
    """Return what a run noted, a dict an update; a line that a kill left half written is left out."""
    lines = []
    path = folder / _METRICS
    for line in path.read_text("ascii", "replace").splitlines() if path.is_file() else ():
        try:
            lines.append(json.loads(line))
        except ValueError:
            continue
    return lines


def _differences(there: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield in words what two configurations do not share, options by their own names."""
    for name in sorted({*there, *now}):
        old, new = there.get(name), now.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(old, new)
        elif old != new:
            yield f"{name}: {old!r} there, {new!r} now"


def _finite(value: float) -> float | None:
    return value if value == value and abs(value) != float("inf") else None
