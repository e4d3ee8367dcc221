"""Which sandboxes can be tried here."""

from __future__ import annotations

from functools import cache

import pytest

from tetrathlon.envs.sandbox import Sandbox, SandboxError


@cache
def _why_not() -> str:
    try:
        with Sandbox(isolation="bwrap") as sandbox:
            sandbox.run("")
    except SandboxError as error:
        return str(error)
    return ""


def need_bubblewrap() -> None:
    """Skip the test where bubblewrap cannot run, and say why."""
    if why := _why_not():
        pytest.skip(f"bubblewrap cannot run here: {why}")
