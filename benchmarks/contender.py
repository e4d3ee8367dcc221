"""Programs that are measured beside each other, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any


class ContenderError(Exception):
    """A contender did not start, answer or come to its end, or is not what was asked for."""


def threads(count: int) -> dict[str, str]:
    """Return the environment variables that give a process so many threads for its arithmetic."""
    return dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(count))


def learn(python: Path, program: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Let a contender learn on one thread; return what its program prints in its last line.

    Args:
        python: Its interpreter.
        program: Takes its options as JSON, its one argument.
        options: These.

    Raises:
        ContenderError: It failed; the message has its last word.
    """
    done = subprocess.run(
        [str(python.absolute()), str(program), json.dumps(options)],
        capture_output=True,
        text=True,
        env={**os.environ, **threads(1), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    if done.returncode:
        raise ContenderError(f"{program.stem}: {(done.stderr.strip().splitlines() or ['ended without a word'])[-1]}")
    return json.loads(done.stdout.splitlines()[-1])
