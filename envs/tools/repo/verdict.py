"""What cases make of a repository, tried in the sandbox: who runs it never meets what is expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tetrathlon.envs.rubric import GraderError
from tetrathlon.envs.sandbox import Limits, SandboxError
from tetrathlon.envs.text.coding.data import LONGEST_JSON
from tetrathlon.envs.tools.files.tree import Content
from tetrathlon.envs.tools.repo import prober
from tetrathlon.envs.tools.repo.asking import Lost, ask
from tetrathlon.envs.tools.repo.library import agree_all

LIMITS = Limits(seconds=4.0, cpu_seconds=4.0, memory_mb=512, processes=1, output_bytes=LONGEST_JSON)
"""What all cases together may use; with one process, code does nothing while it is not called."""


def passes(files: Mapping[str, Content], cases: Sequence[Mapping[str, Any]], limits: Limits = LIMITS) -> bool:
    """Tell whether everything that is done in ``cases`` comes to what is expected.

    Args:
        files: The repository.
        cases: ``lines``, and ``expected``, which stays here.
        limits: Of the run.

    Raises:
        GraderError: The sandbox cannot work; the repository is neither right nor wrong.
    """
    try:
        reply = ask(prober, files, {"cases": [case["lines"] for case in cases]}, limits)
    except Lost:
        return False
    except SandboxError as error:
        raise GraderError(f"the sandbox cannot work: {error}") from error
    found = reply.get("outcomes")
    if not isinstance(found, list) or len(found) != len(cases):
        return False
    return all(agree_all(one, case["expected"]) for one, case in zip(found, cases, strict=True))
