"""Work on files by calls: change a tree of them into the one that is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from tetrathlon.envs.arguments import some_of, whole
from tetrathlon.envs.language.formats import AnswerFormat, PlainFormat, is_anything, whole_answer
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.tools.calls import write_call
from tetrathlon.envs.tools.environment import ToolEnv
from tetrathlon.envs.tools.files.draft import WORDS, Draft
from tetrathlon.envs.tools.files.goal import next_call, reached, share_done
from tetrathlon.envs.tools.files.jobs import JOBS
from tetrathlon.envs.tools.files.tree import Quota, Tree
from tetrathlon.envs.tools.files.world import LEAST_SHOWN, FileWorld
from tetrathlon.envs.tools.play import Play
from tetrathlon.envs.tools.task import ToolTask
from tetrathlon.envs.tools.world import World

_QUOTA = Quota(files=200, file_bytes=50_000, bytes=500_000)
_DONE = "Done."
_SAID = PlainFormat(
    whole_answer,
    is_anything,
    "When everything is as asked, reply with Done. and without a call.",
)


class Files(ToolEnv):
    """Change a tree of files into the one that is asked for.

    ## Description
    A tree of small text files is drawn for each instance, and one to three jobs on it: find a file and copy it, rename
    files by a rule, change a setting, sort or merge or filter, delete what is old, number anew, mend a link, replace a
    word, write a summary, convert a table and more (``JOBS`` names them all). The instruction says precisely what is
    wanted, so the tree at the end is determined. The tree is in memory: no path leads out of it, and nothing that the
    agent does touches the disk.

    ## Observation Space
    `UnicodeText`: the instruction, then results of calls.

    ## Action Space
    `UnicodeText`: calls of ``list_files``, ``read_file``, ``search``, ``write_file``, ``edit_file``, ``move`` and
    ``delete``, or any text without a call, which says that the agent is done.

    ## Rewards
    1 if the tree at the end is the one that is asked for, else 0: each file is compared exactly, but for the line end
    of its last line, and a file that was not spoken of must be as it was. What the agent says of it counts for nothing.
    Progress is the share of the changes that are right, less one change for each other file that was damaged or left
    behind; a move is one change, and so is all that one job wants deleted.

    ## Starting State
    The jobs are drawn, each with its own folders, and some files that none is about.

    ## Episode End
    See ``ToolEnv``; the tree is graded however the episode ends.

    ## Arguments
    ``level``: 1 (by default), one job on few files; 2, one job on more files, with more that look alike; 3, two or
    three jobs, of which one may go on with what another made. ``kinds``: names of the jobs to draw from, by default
    all. And those of ``ToolEnv``.

    ## Version History
    * v0: first version.

    Raises:
        ValueError: An argument is out of its range.
    """

    default_max_tokens: ClassVar[int] = 1_024
    default_max_turns: ClassVar[int] = 40
    default_max_calls: ClassVar[int] = 120
    formats: Mapping[str, AnswerFormat] = {"plain": _SAID}
    world_decides: ClassVar[bool] = True
    knows_progress: ClassVar[bool] = True
    system: ClassVar[str] = (
        "You work on files with tools. Do exactly what is asked and change nothing else: no other file may be changed, "
        "made or deleted."
    )

    def __init__(self, *, level: int = 1, kinds: Sequence[str] | None = None, **kwargs: Any) -> None:
        self.level = whole("level", level, 1, 3)
        self.kinds = some_of("kinds", kinds, JOBS)
        super().__init__(**kwargs)

    def generate(self, rng: np.random.Generator) -> Task:
        """Draw jobs and the files that they are about."""
        while True:
            draft = Draft(rng, self.level)
            steps = 1 if self.level < 3 else draft.between(2, 3)
            names = [draft.pick(self.kinds) for _ in range(steps)]
            if len(self.kinds) >= steps:
                names = draft.some(self.kinds, steps)
            asked, states = [], [draft.changes()]
            for name in names:
                asked.append(JOBS[name](draft))
                states.append(draft.changes())
            # A job may find nothing to do, such as lines that are sorted already.
            if all(one != other for one, other in pairwise(states)):
                break
        draft.add_others()
        question = asked[0]
        if steps > 1:
            listed = "\n".join(f"{number}. {one}" for number, one in enumerate(asked, 1))
            question = f"Do the following, in this order:\n{listed}"
        # A root of its own keeps two trees apart about which the same is asked.
        root = f"/work/{draft.pick(WORDS)}-{draft.between(100, 9_999)}"
        files = {path: draft.start[path] for path in sorted(draft.start)}
        data = {"kinds": names, "goal": draft.goal, "units": draft.units()}
        question = f"The files are in {root}; paths are relative to it.\n{question}"
        return ToolTask(question, _DONE, data, {"root": root, "files": files})

    def open(self, task: ToolTask) -> FileWorld:
        """See :meth:`ToolEnv.open`."""
        tree = Tree(task.world["files"], root=task.world["root"], quota=_QUOTA)
        return FileWorld(tree, max(LEAST_SHOWN, self.max_output))

    def is_right(self, task: ToolTask, answer: str | None, world: World) -> bool:
        """Tell whether the tree is the one that is asked for, whatever was said."""
        assert isinstance(world, FileWorld)
        return not world.tree.links and reached(world.tree.files, task.data["goal"])

    def progress(self, play: Play) -> float:
        """Return the share of the changes that are right, less the damage."""
        assert isinstance(play.world, FileWorld)
        return share_done(play.world.tree.files, play.task.data["goal"], play.task.data["units"])

    def expert(self, play: Play) -> str:
        """Bring one more file to what is asked for, or say that all is done."""
        assert isinstance(play.world, FileWorld)
        call = next_call(play.world.tree.files, play.task.data["goal"])
        return self._write_solution(play.task) if call is None else write_call(*call)
