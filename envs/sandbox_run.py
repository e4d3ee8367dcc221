"""What became of a program in the sandbox, as its worker tells it."""

from __future__ import annotations

from dataclasses import dataclass

from tetrathlon.envs.sandbox_limits import Limits
from tetrathlon.envs.sandbox_worker import RESULT, STATUSES


@dataclass(frozen=True)
class Run:
    """What became of a program."""

    status: str
    """``ok``: it exited with 0. ``error``: it ended otherwise, by an exception, ``sys.exit`` or a signal; limits on
    memory, disk, processes and files show as errors of its own. ``timeout``: killed at ``Limits.seconds``. ``cpu``:
    killed at ``Limits.cpu_seconds``. ``reply``: killed for a reply longer than ``Limits.output_bytes``. ``closed``: its
    session was closed."""
    exit_code: int | None
    """Its exit code, or minus the signal that ended it; None: it was killed for its ``status``."""
    stdout: str
    """What it printed, with a marker where it was cut."""
    stderr: str
    """Likewise, with the traceback of what it raised."""
    seconds: float
    """Wall time, from when it was sent in to the end of all its processes."""
    cpu_seconds: float
    """Processor time of the program and the children it waited for."""


def unpack(payload: bytes, limits: Limits) -> Run:
    """Return the result that a worker has packed."""
    status, code, seconds, cpu, size, out_cut, err_cut = RESULT.unpack_from(payload)
    texts = payload[RESULT.size : RESULT.size + size], payload[RESULT.size + size :]
    mark = f"\n[cut at {limits.output_bytes} bytes]"
    out, err = (
        text.decode(errors="replace") + (mark if is_cut else "")
        for text, is_cut in zip(texts, (out_cut, err_cut), strict=True)
    )
    name = STATUSES[status]
    return Run(name, code if name in ("ok", "error") else None, out, err, seconds, cpu)
