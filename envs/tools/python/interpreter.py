"""A Python interpreter for code that a model wrote: cell after cell, as in a notebook, with an exact state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tetrathlon.envs.sandbox import Limits, SandboxError
from tetrathlon.envs.tools.python.sessions import Lost, Seat, sessions

LIMITS = Limits(seconds=4.0, cpu_seconds=20.0, memory_mb=512, processes=8, output_bytes=1_000_000)
"""What an interpreter may use, if not said otherwise."""
LONGEST_CODE = 100_000
"""Characters of a cell."""
_PATIENCE = 5
"""How often as long as at first a cell may take when it is run again: that the machine is busy is not its fault."""
_PING_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a cell."""

    text: str
    """What it printed, with the value of its last expression, or the traceback of what it raised."""
    is_error: bool = False
    """Whether it raised something or ran into a limit."""


class Interpreter:
    """Runs cells that share their variables.

    The cells that were run are its state; the live session in the sandbox is a cache of it. A process keeps
    :data:`~tetrathlon.envs.tools.python.sessions.MOST_LIVE` sessions: who has lost theirs, or was restored, copied
    or unpickled, runs its cells once more, unseen, before the next one. That gives the same variables and files: the
    hash seed is fixed and ``random`` seeded. What else is not the same twice (the clock and how long things take,
    ``os.urandom`` and what is seeded by it, addresses, the order in which threads run) is not the state's to keep.

    A cell that runs into a limit or ends the process leaves an interpreter that starts again, with no variables and
    with the files it was given. Processes that a cell started end with it (where the sandbox has namespaces); threads
    go on, and what they print between cells is lost.

    One thread at a time may use an interpreter, and many threads may use many.

    Args:
        files: What lies in its folder at the start, by relative names.
        limits: ``seconds`` are for each cell, ``cpu_seconds`` for all cells since the start.
    """

    def __init__(self, files: Mapping[str, str | bytes] | None = None, limits: Limits = LIMITS) -> None:
        self.files = dict(files or {})
        self.limits = limits
        self.cells: tuple[str, ...] = ()
        """The cells since the start: the state."""
        self._key = object()

    def run(self, code: str) -> Outcome:
        """Run a cell; whatever it does, the interpreter can run another.

        Raises:
            SandboxError: The sandbox does not work, whatever the cell.
        """
        if len(code) > LONGEST_CODE:
            return Outcome(f"a cell has at most {LONGEST_CODE:,} characters, got {len(code):,}; it was not run", True)
        for _ in range(2):
            try:
                return self._run(code)
            except SandboxError:
                sessions().drop(self._key)
        with sessions().held(self._key) as seat:  # a cell may break its own sandbox, but not one that it is not in
            seat.start(self.files, self.limits)
            seat.end()
        return self._restarted("the sandbox fails on this cell, and on no other")

    def get_state(self) -> list[str]:
        """Return the state."""
        return list(self.cells)

    def set_state(self, state: list[str]) -> None:
        """Restore what :meth:`get_state` returned; the cells are run when the next one is."""
        self.cells = tuple(state)

    def close(self) -> None:
        """End the session; another cell starts one."""
        sessions().drop(self._key)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_key"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._key = object()

    def _run(self, code: str) -> Outcome:
        with sessions().held(self._key) as seat:
            try:
                self._catch_up(seat)
                is_fine, text = seat.ask(code, len(self.cells) + 1, self.limits.seconds)
            except BaseException as error:
                seat.end()
                if isinstance(error, Lost):
                    return self._restarted(str(error))
                raise
            seat.cells = self.cells = (*self.cells, code)
        return Outcome(text, not is_fine)

    def _catch_up(self, seat: Seat) -> None:
        """Bring the session of ``seat`` to the state.

        Raises:
            Lost: The cells do not do again what they did.
            SandboxError: The sandbox does not work.
        """
        if seat.is_live and seat.cells == self.cells[: len(seat.cells)]:
            try:
                seat.ask("", 0, _PING_SECONDS)
                self._replay(seat)
                return
            except (Lost, SandboxError):  # it ended meanwhile, as the kernel ends what is idle when memory is short
                pass
        again = self.limits.cpu_seconds * (2 if self.cells else 1)
        seat.start(self.files, replace(self.limits, cpu_seconds=again))
        try:
            self._replay(seat)
        except Lost as error:
            raise Lost(f"the cells before this one cannot be run again: {error}") from None

    def _replay(self, seat: Seat) -> None:
        for number in range(len(seat.cells), len(self.cells)):
            seat.ask(self.cells[number], number + 1, self.limits.seconds * _PATIENCE)
        seat.cells = self.cells

    def _restarted(self, why: str) -> Outcome:
        self.cells = ()
        return Outcome(
            f"{why}. The interpreter has started again: all variables are gone, and its folder holds the files that it "
            "held at the beginning",
            True,
        )
