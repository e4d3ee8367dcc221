"""Checkpoints: written aside and renamed, checked when they are read, the last two kept."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import torch

from tetrathlon.envs.episode import write_aside

_STATE, _DIGEST = "state.pt", "state.sha256"
_KEPT = 2


class Checkpoints:
    """The folder ``checkpoints`` of a run: one folder ``step-N`` a checkpoint.

    Args:
        folder: Made when the first is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, step: int, state: dict[str, Any]) -> Path:
        """Write ``state`` so that a kill at any moment leaves every finished checkpoint whole.

        Raises:
            OSError: It cannot be written; the message names the folder. Earlier checkpoints stay.
        """
        name = f"step-{step:08d}"
        aside = self.folder / f".{name}.{os.getpid()}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir()
            data = io.BytesIO()
            torch.save(state, data)
            whole = data.getbuffer()  # no copy of what may be gigabytes
            write_aside(aside / _STATE, whole)
            write_aside(aside / _DIGEST, hashlib.sha256(whole).hexdigest().encode("ascii"))
            target = self.folder / name
            shutil.rmtree(target, ignore_errors=True)  # a damaged one of the same step
            aside.rename(target)
        except OSError as error:
            shutil.rmtree(aside, ignore_errors=True)
            raise OSError(f"checkpoint {name} cannot be written to {self.folder}: {error}") from error
        self._sweep(step)
        return target

    def load(self) -> tuple[int, dict[str, Any]] | None:
        """Return the step and the state of the newest whole checkpoint; None where there is none.

        A damaged one is named in a warning, and the one before it is taken.

        Raises:
            ValueError: There are checkpoints, and all of them are damaged.
        """
        found = self._found()
        for path in reversed(found):
            try:
                whole = (path / _STATE).read_bytes()
                if hashlib.sha256(whole).hexdigest() != (path / _DIGEST).read_text("ascii").strip():
                    raise ValueError("its contents are not what was written")
                # On the CPU, so that what a GPU wrote is read without one; loading it moves it to where it belongs.
                return _step(path), torch.load(io.BytesIO(whole), map_location="cpu", weights_only=True)
            except (OSError, ValueError, RuntimeError, EOFError, KeyError) as error:
                warnings.warn(f"checkpoint {path} is damaged ({error}); the one before it is taken", stacklevel=2)
        if found:
            raise ValueError(f"all checkpoints in {self.folder} are damaged; start a new run")
        return None

    def _found(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return sorted((path for path in self.folder.glob("step-*") if path.name[5:].isdecimal()), key=_step)

    def _sweep(self, newest: int) -> None:
        """Remove what is too old, what a kill left half written, and what a run that went on earlier does again."""
        found = self._found()
        until = [path for path in found if _step(path) <= newest]
        for left in [*until[:-_KEPT], *found[len(until) :], *self.folder.glob(".step-*")]:
            shutil.rmtree(left, ignore_errors=True)


def _step(path: Path) -> int:
    return int(path.name[5:])
