"""Problems whose answers have to be computed, with a Python interpreter as the tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from tetrathlon.envs.arguments import some_of, whole
from tetrathlon.envs.grading.rationals import rational
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.sandbox import SandboxError
from tetrathlon.envs.sandbox_limits import Limits
from tetrathlon.envs.text.coding.draft import Draw
from tetrathlon.envs.tools.calls import write_call
from tetrathlon.envs.tools.environment import ToolEnv
from tetrathlon.envs.tools.play import Play
from tetrathlon.envs.tools.python import problems_counting, problems_numbers, problems_tables, problems_texts
from tetrathlon.envs.tools.python.interpreter import LIMITS, Interpreter
from tetrathlon.envs.tools.python.problem import TEXT, Kind, Problem, is_answer, renamed
from tetrathlon.envs.tools.task import ToolTask
from tetrathlon.envs.tools.tool import ToolDown, ToolError, tool
from tetrathlon.envs.tools.world import World

KINDS: Mapping[str, Kind] = {
    kind.__name__: kind
    for module in (problems_numbers, problems_counting, problems_tables, problems_texts)
    for kind in module.KINDS
}
"""Kinds of problems by name; tasks know them by their places."""
_LEVELS = 3
_LEAST = 30
"""Smaller integers could be guessed."""
_SEEDS = 1 << 53
_MOST_SECONDS = 60
_MOST_DECIMALS = 12
_NOTHING = "(The cell printed nothing. Use print, or end it with an expression.)"


class Console(World):
    """An interpreter, with the files of the task in its folder.

    Args:
        files: The files, by name.
        limits: Of the interpreter.
    """

    def __init__(self, files: Mapping[str, str], limits: Limits = LIMITS) -> None:
        self.interpreter = Interpreter(files, limits)

    @tool
    def python(self, code: str) -> str:
        """Run Python code like a cell of a notebook.

        Returns what it prints, and the value of its last line if that is an expression. Variables stay for later
        calls. The files of the task lie in the working folder. Only the standard library is there, and no network.

        Args:
            code: The code.
        """
        try:
            outcome = self.interpreter.run(code)
        except SandboxError as error:
            raise ToolDown(str(error)) from error
        if outcome.is_error:
            raise ToolError(outcome.text)
        return outcome.text or _NOTHING

    def get_state(self) -> Any:
        """See :meth:`World.get_state`; the files never change."""
        return self.interpreter.get_state()

    def set_state(self, state: Any) -> None:
        """See :meth:`World.set_state`."""
        self.interpreter.set_state(state)

    def close(self) -> None:
        """See :meth:`World.close`."""
        self.interpreter.close()


class Python(ToolEnv):
    """Solve problems that need computing, with a Python interpreter as the tool.

    ## Description
    A problem of one of 24 kinds is drawn: number theory, sequences far out, counting, simulation of a stated rule,
    matrices, ciphers, statistics of texts, shortest ways, and tables, logs and records in files: filter, join, group,
    dates, percentiles. The answer is a number with many values, or a text of random letters; it comes out of a few
    lines of code. ``python(code)`` runs code in a sandbox, as a cell of a notebook: what it prints comes back, with
    the value of a last expression or a short traceback, and variables stay. A cell that takes too much time or memory,
    or ends its process, is answered with an error, and the interpreter starts again.

    ## Observation Space
    `UnicodeText`: the problem, then what cells have printed.

    ## Action Space
    `UnicodeText`: a call of ``python(code)``, or the answer.

    ## Rewards
    1 for the right answer, else 0. An integer must be exact, a rounded number may be off by 0.6 of its last place, a
    text is equal but for case and blanks.

    ## Starting State
    A level, a kind and a problem are drawn.

    ## Episode End
    See ``ToolEnv``.

    ## Arguments
    ``least_level`` and ``most_level`` (1 to 3, by default 1 and 3), ``kinds`` (names of kinds, by default all),
    ``seconds`` (of a cell, 1 to 60, by default 4), ``memory_mb`` (of a process, 64 to 4096, by default 512), and those
    of ``ToolEnv``.

    ## Version History
    * v0: first version.

    Raises:
        ValueError: An argument is out of its range.
    """

    default_max_tokens: ClassVar[int] = 512
    default_max_turns: ClassVar[int] = 8
    default_max_calls: ClassVar[int] = 16
    system: ClassVar[str] = "Compute the answer with the tool; do not guess."

    def __init__(
        self,
        *,
        least_level: int = 1,
        most_level: int = _LEVELS,
        kinds: Sequence[str] | None = None,
        seconds: int = 4,
        memory_mb: int = 512,
        **kwargs: Any,
    ) -> None:
        self.least_level = whole("least_level", least_level, 1, _LEVELS)
        self.most_level = whole("most_level (from least_level)", most_level, self.least_level, _LEVELS)
        self.kinds = some_of("kinds", kinds, KINDS)
        self.seconds = whole("seconds", seconds, 1, _MOST_SECONDS)
        self.memory_mb = whole("memory_mb", memory_mb, 64, 4_096)
        self._limits = replace(
            LIMITS, seconds=float(seconds), cpu_seconds=max(LIMITS.cpu_seconds, 2.0 * seconds), memory_mb=memory_mb
        )
        super().__init__(**kwargs)

    def generate(self, rng: np.random.Generator) -> Task:
        """Draw a problem, again where its answer could be guessed."""
        draw = Draw(rng)
        level, kind = draw.between(self.least_level, self.most_level), list(KINDS).index(draw.pick(self.kinds))
        while True:
            seed = draw.between(0, _SEEDS - 1)
            problem = problem_of(kind, level, seed)
            if problem.decimals or abs(int(problem.answer)) >= _LEAST:
                break
        # What the expert knows is how to draw the problem once more: no text of it is kept where tools might find it.
        data = {"kind": kind, "level": level, "seed": seed, "decimals": problem.decimals}
        files = {"files": dict(problem.files)} if problem.files else {}
        return ToolTask(f"{problem.question} {problem.request}", problem.answer, data, files)

    def check_task(self, task: Task) -> None:
        """See :meth:`LanguageEnv.check_task`."""
        decimals = task.data.get("decimals")
        if not isinstance(task, ToolTask) or decimals == TEXT:
            return
        if type(decimals) is not int or not TEXT < decimals <= _MOST_DECIMALS or rational(task.answer) is None:
            raise ValueError(
                f"a task needs data['decimals'], {TEXT} for a text, else 0 to {_MOST_DECIMALS}, and then a number as "
                f"its answer, got {decimals!r} and {task.answer[:100]!r}"
            )

    def open(self, task: ToolTask) -> Console:
        """See :meth:`ToolEnv.open`."""
        return Console(task.world.get("files", {}), self._limits)

    def is_right(self, task: ToolTask, answer: str | None, world: World) -> bool:
        """Tell whether ``answer`` has the value of the right one."""
        return answer is not None and is_answer(answer, task.answer, task.data["decimals"])

    def expert(self, play: Play) -> str:
        """Run the next cell of a solution; answer when the answer was seen, or the last turn or call has come."""
        assert isinstance(play.world, Console)
        data = play.task.data
        is_last = play.turns >= self.max_turns - 1 or play.calls >= self.max_calls
        if is_last or _was_seen(play) or "seed" not in data:  # a task of somebody else has no solution
            return self._write_solution(play.task)
        cells = problem_of(data["kind"], data["level"], data["seed"]).cells
        return write_call("python", {"code": cells[_done(cells, play.world.interpreter.cells) % len(cells)]})


@lru_cache(256)
def problem_of(kind: int, level: int, seed: int) -> Problem:
    """Return a problem; the same for the same arguments.

    Args:
        kind: The place of its kind in :data:`KINDS`.
        level: From 1 to 3.
        seed: From which all else is drawn.
    """
    draw = Draw(np.random.default_rng(seed))
    return renamed(list(KINDS.values())[kind](draw, level), f"_{draw.between(0, 99_999):05d}")


def _was_seen(play: Play) -> bool:
    seen = [step.observation for step in play.steps[1:]] + ([play.observation] if play.steps else [])
    return any(play.task.answer in (line.strip() for line in said.splitlines()) for said in seen)


def _done(cells: Sequence[str], run: Sequence[str]) -> int:
    """Return how many of ``cells`` were run last, in their order."""
    most = min(len(cells), len(run))
    return next(k for k in range(most, -1, -1) if tuple(run[len(run) - k :]) == tuple(cells[:k]))
