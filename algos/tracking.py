"""Metrics where others look for them: TensorBoard and Weights & Biases."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol


class Tracker(Protocol):
    """Where the metrics of a run go, beside its own folder."""

    def log(self, number: int, metrics: Mapping[str, float]) -> None:
        """Take the metrics of an update; number -1 is the start. After a kill an update may come again."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class TensorBoard:
    """Writes the metrics of a run as TensorBoard events; those of updates that are done again take the old ones' place.

    Args:
        folder: Where the events go.

    Raises:
        ImportError: The package ``tensorboard`` is missing.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ImportError('TensorBoard needs tensorboard: pip install "tetrathlon[track]"') from error
        self._folder, self._make = str(folder), SummaryWriter
        self._writer: Any = None

    def log(self, number: int, metrics: Mapping[str, float]) -> None:
        """See :class:`Tracker`; the start is step 0."""
        if self._writer is None:
            self._writer = self._make(self._folder, purge_step=number + 1)
        for name, value in metrics.items():
            if math.isfinite(value):
                self._writer.add_scalar(name, value, number + 1)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class WandB:
    """Sends the metrics of a run to Weights & Biases.

    Args:
        **options: Those of ``wandb.init``: project, name, config, mode, ...

    Raises:
        ImportError: The package ``wandb`` is missing.
    """

    def __init__(self, **options: Any) -> None:
        try:
            import wandb
        except ImportError as error:
            raise ImportError("WandB needs wandb: pip install wandb") from error
        self._run = wandb.init(**options)

    def log(self, number: int, metrics: Mapping[str, float]) -> None:
        """See :class:`Tracker`; the start is step 0."""
        self._run.log({name: value for name, value in metrics.items() if math.isfinite(value)}, step=number + 1)

    def close(self) -> None:
        """End the run there."""
        self._run.finish()
