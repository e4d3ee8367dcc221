"""A lock on a folder, so that two runs do not write to it at once."""

from __future__ import annotations

from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows has no flock: there nobody watches that one run alone writes to a folder
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
"""Name of the file in the folder; it is never removed, for another run may have it open."""


def lock_folder(folder: Path) -> IO[bytes] | None:
    """Return what keeps others out of ``folder`` until it is closed; None where another run has it."""
    lock = open(folder / LOCK, "ab")  # noqa: SIM115
    if fcntl is not None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        except OSError:  # a network file system that knows no locks
            pass
    return lock
