"""What one program in the sandbox may use."""

from __future__ import annotations

from dataclasses import dataclass, fields

MOST_SECONDS = 1_000_000
"""The longest time: twelve days, which every clock and every wait of the kernel can count."""


def is_duration(value: object) -> bool:
    """Tell whether ``value`` is a time that a program can be given."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MOST_SECONDS


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one program may use.

    Raises:
        ValueError: A limit is not a positive number, too small for an interpreter to live with, or too large to count.
    """

    seconds: float = 5.0
    """Wall time of a run, or of each request of a session."""
    cpu_seconds: float = 5.0
    """Processor time of each process, rounded up to whole seconds."""
    memory_mb: int = 512
    """Address space of each process."""
    processes: int = 16
    """Processes and threads at a time, the program's first one among them."""
    file_mb: int = 16
    """Size of one file."""
    disk_mb: int = 64
    """Size of everything in the scratch folder."""
    open_files: int = 64
    """Open files of each process."""
    output_bytes: int = 100_000
    """What is kept of stdout and of stderr, and how long a reply may be; the rest is read and thrown away."""

    def __post_init__(self) -> None:
        least = {"memory_mb": 64, "open_files": 16}
        for field in fields(self):
            value, low = getattr(self, field.name), least.get(field.name, 1)
            if field.type == "float":
                is_right = is_duration(value)
                wanted = f"a positive number up to {MOST_SECONDS}"
            else:
                is_right = isinstance(value, int) and not isinstance(value, bool) and low <= value < 1 << 31
                wanted = f"an integer from {low} to {(1 << 31) - 1}"
            if not is_right:
                raise ValueError(f"{field.name} must be {wanted}, got {value!r}")
