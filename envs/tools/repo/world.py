"""A repository: a tree of files, an editor, and its tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tetrathlon.envs.sandbox import Limits, SandboxError
from tetrathlon.envs.text.coding.data import LONGEST_JSON
from tetrathlon.envs.tools.files.tree import Content, Quota, Tree, TreeError, shown
from tetrathlon.envs.tools.files.world import FileWorld
from tetrathlon.envs.tools.repo import runner
from tetrathlon.envs.tools.repo.asking import Lost, ask
from tetrathlon.envs.tools.repo.instance import TESTS
from tetrathlon.envs.tools.tool import ToolDown, ToolError, tool

QUOTA = Quota(files=60, file_bytes=50_000, bytes=150_000)
"""How large a repository may become."""
LIMITS = Limits(seconds=4.0, cpu_seconds=4.0, memory_mb=512, processes=4, output_bytes=LONGEST_JSON)
"""What a run of the visible tests may use."""
_LONGEST_NAME = 100


class Checkout(Tree):
    """A tree whose tests can be read, but not changed.

    Args:
        files: See :class:`~tetrathlon.envs.tools.files.tree.Tree`.
        root: As above.
    """

    def __init__(self, files: Mapping[str, Content], root: str) -> None:
        self._is_open = True
        super().__init__(files, root=root, quota=QUOTA)
        self._is_open = False

    def write(self, path: str, content: Content) -> str:
        """See :meth:`Tree.write`."""
        self._refuse(path)
        return super().write(path, content)

    def delete(self, path: str) -> str:
        """See :meth:`Tree.delete`."""
        self._refuse(path)
        return super().delete(path)

    def move(self, source: str, target: str) -> tuple[str, str]:
        """See :meth:`Tree.move`."""
        self._refuse(source)
        self._refuse(target)
        return super().move(source, target)

    def _refuse(self, path: str) -> None:
        """Refuse a path that leads to the tests.

        Raises:
            TreeError: It does.
        """
        found = self.resolve(path)
        if not self._is_open and (found == TESTS or found.startswith(f"{TESTS}/")):
            raise TreeError(f"{shown(path)}: the files in {TESTS}/ can be read, not changed, and none can be added")


class Repository(FileWorld):
    """A repository: a tree of files, an editor, and its tests.

    Args:
        files: Path -> text.
        root: What the absolute path of the tree is called.
        most_shown: See :class:`~tetrathlon.envs.tools.files.world.FileWorld`.
    """

    def __init__(self, files: Mapping[str, Content], root: str, most_shown: int = 4_000) -> None:
        super().__init__(Checkout(files, root), most_shown)
        self.runs = 0
        """How often tests were run."""
        self.read: list[str] = []
        """Files that were read, each once."""

    @tool
    def read_file(self, path: str, first_line: int = 1, lines: int = 200) -> str:
        """Read a text file, or some of its lines, exactly as they are.

        Args:
            path: The file.
            first_line: The first line to read, from 1.
            lines: How many lines to read at most.
        """
        said = super().read_file(path, first_line, lines)
        found = self.tree.resolve(path)
        if found not in self.read:
            self.read.append(found)
        return said

    @tool
    def run_tests(self, path: str = "") -> str:
        """Run the tests on the files as they are now; say which fail, and why.

        Args:
            path: A file of tests, such as "tests/test_x.py", or one test, "tests/test_x.py::name"; empty: all.
        """
        files = self.tree.files
        where, _, only = path.partition("::")
        every = [name for name in sorted(files) if name.startswith(f"{TESTS}/test_") and name.endswith(".py")]
        if where:
            found = self.tree.resolve(where.removesuffix("/") or "/")
            if self.tree.is_folder(found):
                every = [name for name in every if not found or name.startswith(f"{found}/")]
            else:
                every = [name for name in every if name == found]
        if not every:
            raise ToolError(f"there are no tests in {shown(where)}; they are in {TESTS}/")
        self.runs += 1
        try:
            reply = ask(runner, files, {"tests": every, "only": only[:_LONGEST_NAME]}, LIMITS)
        except Lost as error:
            raise ToolError(f"the tests did not come to their end: {error}") from None
        except SandboxError as error:
            raise ToolDown(str(error)) from error
        report = reply.get("report")
        report = report if isinstance(report, str) else ""
        if only and reply.get("count") == 0:
            raise ToolError(f"there is no test {shown(only)} in {shown(where) if where else TESTS}; {report}")
        return report

    def get_state(self) -> Any:
        """See :meth:`World.get_state`."""
        return {"tree": self.tree.get_state(), "runs": self.runs, "read": list(self.read)}

    def set_state(self, state: Any) -> None:
        """See :meth:`World.set_state`."""
        self.tree.set_state(state["tree"])
        self.runs, self.read = state["runs"], list(state["read"])
