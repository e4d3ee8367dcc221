"""One side of a speed comparison: a small program that plays episodes in a process of its own."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tetrathlon.benchmarks.contender import ContenderError, threads

PROGRAMS = Path(__file__).parent / "assets" / "speed"
_LOOP = PROGRAMS / "loop.py"
_PATIENCE = 300.0  # seconds for a start or a round: heavy imports on a busy machine
_TAIL = 2000


@dataclass(frozen=True, slots=True)
class Contender:
    """A program and its options."""

    name: str
    """How tables call it."""
    program: Path
    """A file that ``assets/speed/loop.py`` can run; its first lines say what it holds."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What ``start`` of the program is called with; JSON."""


@dataclass(frozen=True, slots=True)
class Lap:
    """Some episodes, played in one go."""

    episodes: int
    """How many; each paid 1."""
    seconds: float
    """On the wall clock."""
    cpu_seconds: float
    """Of the processor, with every process that the contender started."""

    @property
    def rate(self) -> float:
        """Episodes a second on the wall clock."""
        return self.episodes / self.seconds

    @property
    def cpu_rate(self) -> float:
        """Episodes in a second of the processor."""
        return self.episodes / self.cpu_seconds


class Runner:
    """A contender at work; a context that ends its process.

    Args:
        contender: Who.
        python: The interpreter that it runs in; its folder comes first on the search path, for tools that call
            ``python``.

    Raises:
        ContenderError: It does not start.
    """

    def __init__(self, contender: Contender, python: str) -> None:
        self.contender = contender
        self._folder = tempfile.TemporaryDirectory()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
        search = os.pathsep.join([str(Path(python).absolute().parent), os.environ.get("PATH", os.defpath)])
        try:
            self._process = subprocess.Popen(
                [str(Path(python).absolute()), str(_LOOP), str(contender.program), json.dumps(dict(contender.options))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                cwd=self._folder.name,
                env={**os.environ, **threads(1), "PATH": search},
                start_new_session=True,
            )
        except OSError as error:
            self._folder.cleanup()
            raise ContenderError(f"{contender.name}: {python} does not start: {error}") from error
        try:
            self.versions: dict[str, str] = self._answer()["versions"]
        except BaseException:  # ctrl-C too leaves no process behind
            self.close()
            raise

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def play(self, episodes: int) -> Lap:
        """Play ``episodes`` episodes.

        Raises:
            ContenderError: It fails, or an episode does not pay 1.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(b"%d\n" % episodes)
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer says why
        answer = self._answer()
        if answer["rewards"] != {"1.0": episodes}:
            raise ContenderError(
                f"{self.contender.name}: {episodes} right answers must each pay 1, got "
                + (", ".join(f"{reward} x {count}" for reward, count in answer["rewards"].items()) or "nothing")
            )
        return Lap(episodes, answer["seconds"], answer["cpu_seconds"])

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.close()  # the end of its input lets it close what it started
            self._process.wait(timeout=5)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()
        self._folder.cleanup()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        deadline, got = time.monotonic() + _PATIENCE, b""
        while not got.endswith(b"\n"):
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise ContenderError(f"{self.contender.name}: no answer in {_PATIENCE:g} s")
            part = os.read(self._process.stdout.fileno(), 65536)
            if not part:
                raise ContenderError(f"{self.contender.name}: {self._last_words()}")
            got += part
        return json.loads(got)

    def _last_words(self) -> str:
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - _TAIL))
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip() if lines else "ended without a word"
