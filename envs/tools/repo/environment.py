"""Small libraries with planted faults, which are found by their tests and repaired with an editor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tetrathlon.envs.arguments import some_of, whole
from tetrathlon.envs.language.formats import AnswerFormat, PlainFormat, is_anything, whole_answer
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.text.coding.draft import Draw
from tetrathlon.envs.tools.calls import write_call
from tetrathlon.envs.tools.environment import ToolEnv
from tetrathlon.envs.tools.files.goal import next_call
from tetrathlon.envs.tools.files.world import LEAST_SHOWN
from tetrathlon.envs.tools.play import Play
from tetrathlon.envs.tools.repo.families import FAMILIES
from tetrathlon.envs.tools.repo.instance import TESTS, draw_instance
from tetrathlon.envs.tools.repo.verdict import passes
from tetrathlon.envs.tools.repo.world import Repository
from tetrathlon.envs.tools.task import ToolTask
from tetrathlon.envs.tools.world import World

_DONE = "Done."
_SAID = PlainFormat(
    whole_answer,
    is_anything,
    "When it is repaired, reply with Done. and without a call.",
)
_MOST_ROOTS = 1_000
_FOLDERS = ("alder", "birch", "cedar", "hazel", "juniper", "larch", "maple", "oak", "rowan", "spruce", "willow", "yew")


class RepoRepair(ToolEnv):
    """Repair a small Python library whose tests fail.

    ## Description
    A library of one of ten families (a ledger, a scheduler, an inventory, a calculator, a cache and more) is drawn for
    each instance: names, constants, tests, and one or two faults such as an edge case that is left out, an index off by
    one, a wrong comparison, key or default, arguments in the wrong order, a copy that is not made. README and
    docstrings say what is right. The agent reads, searches, edits, and runs the visible tests in the sandbox; the files
    in ``tests/`` cannot be changed.

    ## Observation Space
    `UnicodeText`: what is asked, then results of calls.

    ## Action Space
    `UnicodeText`: calls of ``list_files``, ``read_file``, ``search``, ``write_file``, ``edit_file``, ``move``,
    ``delete`` and ``run_tests``, or any text without a call, which says that the agent is done.

    ## Rewards
    1 if everything that the visible tests and hidden ones do comes to what is right, and every public name is where it
    was, else 0. Hidden are other tests of the library, and of each function that was repaired many more: other values,
    and, as far as its docstring says what is right for them, numbers below zero, nothing, ones and equal ones. What
    else was changed is not looked at: other files may be added, deleted or rewritten, and code may have another form,
    as long as all of that holds. It is tried once, at the end, in a fresh sandbox with the agent's files outside of
    ``tests/``. What is expected never enters the sandbox, so there is nothing that the code could forge; what it prints
    and how it ends count for nothing.

    ## Starting State
    A family, its names and numbers, its tests and its faults are drawn. The right library passes all tests, some
    visible test fails with the faults, and each fault alone makes a hidden test fail that no visible one is equal to.
    What is expected of hidden tests is what the right library does.

    ## Episode End
    See ``ToolEnv``; the files are graded however the episode ends. Where the sandbox does not work, there is a
    ``grader_error`` or the end is ``tool_down``: no score.

    ## Arguments
    ``level``: 1 (by default), a fault in the function that a failing test is about; 2, in another module than all that
    the failing tests are about; 3, two faults in different functions, of the second of which the visible tests may show
    nothing. ``families``: names of the families to draw from, by default all. And those of ``ToolEnv``.

    ## Version History
    * v0: first version.

    Raises:
        ValueError: An argument is out of its range.
    """

    default_max_tokens: ClassVar[int] = 1_024
    default_max_turns: ClassVar[int] = 30
    default_max_calls: ClassVar[int] = 90
    formats: Mapping[str, AnswerFormat] = {"plain": _SAID}
    world_decides: ClassVar[bool] = True
    system: ClassVar[str] = "You repair Python code with tools. Change no more than is needed."

    def __init__(self, *, level: int = 1, families: Sequence[str] | None = None, **kwargs: Any) -> None:
        self.level = whole("level", level, 1, 3)
        self.families = some_of("families", families, FAMILIES)
        super().__init__(**kwargs)

    def generate(self, rng: np.random.Generator) -> Task:
        """Draw a library and its faults; its place is drawn until the task is one of the environment's own split."""
        draw = Draw(rng)
        made = draw_instance(draw, self.level, self.families)
        files = {path: made.files[path] for path in sorted(made.files)}
        data = {"repaired": made.repaired, "cases": made.cases, "kinds": [fault.kind for fault in made.faults]}
        many = "There may be more than one fault, and the tests need not show all of them. " if self.level == 3 else ""
        for _ in range(_MOST_ROOTS):
            root = f"/work/{draw.pick(_FOLDERS)}-{draw.between(100, 9_999)}"
            question = (
                f"The Python library {made.package} is in {root}; paths are relative to it. Some of its tests fail. "
                f"Repair the code of the library. {many}README and docstrings say what it is to do. The files in "
                f"{TESTS}/ cannot be changed. At the end these tests and others like them must pass, and every public "
                "name must be where it was."
            )
            task = ToolTask(question, _DONE, data, {"root": root, "files": files})
            if task.split == self.split:
                break
        return task

    def check_task(self, task: Task) -> None:
        """See :meth:`LanguageEnv.check_task`."""
        if isinstance(task, ToolTask) and not task.data.get("cases"):
            raise ValueError("a task needs data['cases'], with lines and what is expected of each")

    def open(self, task: ToolTask) -> Repository:
        """See :meth:`ToolEnv.open`."""
        return Repository(task.world["files"], task.world["root"], max(LEAST_SHOWN, self.max_output))

    def is_right(self, task: ToolTask, answer: str | None, world: World) -> bool:
        """Tell whether the library does what all tests ask for, whatever was said.

        Raises:
            GraderError: The sandbox cannot work.
        """
        assert isinstance(world, Repository)
        files = {path: text for path, text in world.tree.files.items() if not path.startswith(f"{TESTS}/")}
        return passes(files, task.data["cases"])

    def expert(self, play: Play) -> str:
        """Run the tests, read what is wrong and repair it, run them again, and say that all is done.

        Where turns or calls are short, only the repair is left.
        """
        world = play.world
        assert isinstance(world, Repository)
        goal = {**play.task.world["files"], **play.task.data.get("repaired", {})}
        files = world.tree.files
        call = next_call(files, goal)
        left = min(self.max_turns - play.turns, self.max_calls - play.calls)
        wrong = len([path for path in {**goal, **files} if files.get(path) != goal.get(path)])
        if call is None:
            is_idle = world.runs < 2 and left > 1
            return write_call("run_tests", {}) if is_idle else self._write_solution(play.task)
        if left > wrong + 2:
            if not world.runs:
                return write_call("run_tests", {})
            path = call[1].get("path", "")
            if path in files and call[0] in ("edit_file", "write_file") and path not in world.read:
                return write_call("read_file", {"path": path})
        return write_call(*call)
