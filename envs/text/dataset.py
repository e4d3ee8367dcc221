"""Tasks that are given, not generated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tetrathlon.envs.text.task import SPLITS, Task


@dataclass(frozen=True, slots=True)
class Dataset:
    """Tasks by split."""

    splits: Mapping[str, tuple[Task, ...]]
    """``train`` and ``test``; they share no task."""

    @classmethod
    def of(cls, tasks: Iterable[Task]) -> Dataset:
        """Split ``tasks`` by their content; a question that comes twice counts once."""
        each = {task.id: task for task in tasks}.values()
        return cls({split: tuple(task for task in each if task.split == split) for split in SPLITS})
