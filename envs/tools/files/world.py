"""A tree of files and the tools of an editor on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tetrathlon.envs.arguments import whole
from tetrathlon.envs.tools.files.tree import Tree, shown, size
from tetrathlon.envs.tools.tool import ToolError, tool
from tetrathlon.envs.tools.world import World

LEAST_SHOWN = 200
"""Fewest characters that a call may say."""
_MOST_LINES = 2_000
_LONGEST_HIT = 200
_NOTE = 120
"""Characters that are kept for a note of what is left out."""


class FileWorld(World):
    """A tree of files and the tools of an editor on it.

    Text is read as it is, without numbers before its lines, so that what was read can be given to ``edit_file`` and
    ``write_file`` again; ``search`` gives the numbers of lines.

    Args:
        tree: The files; the tools change it.
        most_shown: Characters that one call may say, from :data:`LEAST_SHOWN` on; what is more is left out by whole
            lines, with a note of how to see it.

    Raises:
        ValueError: ``most_shown`` is out of its range.
    """

    def __init__(self, tree: Tree, most_shown: int = 4_000) -> None:
        self.tree = tree
        self._room = whole("most_shown", most_shown, LEAST_SHOWN, 1_000_000) - _NOTE

    @tool
    def list_files(self, folder: str = "") -> str:
        """List the files in a folder and in all folders below it, with their sizes.

        Args:
            folder: The folder; empty: all files.
        """
        names = self.tree.below(_folder(folder))
        files, links = self.tree.files, self.tree.links
        lines = [
            f"{name} -> {links[name]}" if name in links else f"{name} ({size(files[name]):,} bytes)" for name in names
        ]
        taken = self._fitting(lines)
        left = [f"[{len(lines) - len(taken):,} more files; name a folder]"] if len(taken) < len(lines) else []
        return "\n".join([*taken, *left]) or "(no files)"

    @tool
    def read_file(self, path: str, first_line: int = 1, lines: int = 200) -> str:
        """Read a text file, or some of its lines, exactly as they are.

        Args:
            path: The file.
            first_line: The first line to read, from 1.
            lines: How many lines to read at most.
        """
        text = self._text(path)
        if not 1 <= lines <= _MOST_LINES:
            raise ToolError(f"lines must be from 1 to {_MOST_LINES:,}, got {str(lines)[:40]}")
        if not text:
            return "(the file is empty)"
        every = text.split("\n")
        count = len(every) - (not every[-1])
        if not 1 <= first_line <= count:
            raise ToolError(
                f"first_line must be from 1 to {count:,}, the lines of the file, got {str(first_line)[:40]}"
            )
        if first_line == 1 and count <= lines and len(text) <= self._room:
            return text
        wanted = every[first_line - 1 : min(count, first_line - 1 + lines)]
        taken = self._fitting(wanted)
        if not taken:
            note = f"[line {first_line:,} of {count:,}, the first {self._room:,} of its {len(wanted[0]):,} characters]"
            return f"{wanted[0][: self._room]}\n{note}"
        last = first_line + len(taken) - 1
        more = f"; read on with first_line={last + 1}" if last < count else ""
        return "\n".join([*taken, f"[lines {first_line:,} to {last:,} of {count:,}{more}]"])

    @tool
    def search(self, text: str, folder: str = "") -> str:
        """Find all lines that hold a text, exactly as it is written; each is given as path:line: text.

        Args:
            text: What to look for, within one line.
            folder: Where to look, folders below included, or one file; empty: everywhere.
        """
        if not text or "\n" in text:
            raise ToolError("the text to look for must be a part of one line, and not empty")
        files, where = self.tree.files, self.tree.resolve(_folder(folder))
        hits: list[str] = []
        count, room = 0, self._room
        for name in [where] if where in files else self.tree.below(_folder(folder)):
            content = files.get(name)
            if not isinstance(content, str) or text not in content:
                continue
            for number, line in enumerate(content.split("\n"), 1):
                if text in line:
                    count += 1
                    hit = f"{name}:{number}: {line if len(line) <= _LONGEST_HIT else line[:_LONGEST_HIT] + '...'}"
                    room -= len(hit) + 1
                    hits += [hit] if room >= 0 else []
        left = [f"[{count - len(hits):,} more of {count:,} lines]"] if len(hits) < count else []
        return "\n".join([*hits, *left]) or "(no line holds it)"

    @tool
    def write_file(self, path: str, text: str) -> str:
        """Write a text file: make it, or replace all that it holds. Folders are made as needed.

        Args:
            path: The file.
            text: All that it shall hold, the line end of its last line included.
        """
        found = self.tree.write(path, text)
        return f"Wrote {found} ({size(text):,} bytes)."

    @tool
    def edit_file(self, path: str, old: str, new: str) -> str:
        """Replace a piece of a text file. It must occur exactly once, so give enough of what is around it.

        Args:
            path: The file.
            old: The piece as it is, line ends and spaces included.
            new: What shall stand there instead.
        """
        text = self._text(path)
        if not old:
            raise ToolError("old must not be empty")
        if old == new:
            raise ToolError("old and new are the same")
        at, count = text.find(old), text.count(old)
        if count != 1:
            raise ToolError(f"old occurs {count:,} times in {shown(path)}; it must occur exactly once")
        if text.find(old, at + 1) >= 0:
            raise ToolError(f"old occurs more than once in {shown(path)}, over itself; it must occur exactly once")
        found = self.tree.write(path, text[:at] + new + text[at + len(old) :])
        return f"Edited {found} at line {text.count(chr(10), 0, at) + 1:,}."

    @tool
    def move(self, source: str, target: str) -> str:
        """Move or rename a file. Nothing may be at the target yet; folders are made as needed.

        Args:
            source: The file.
            target: Its new path, name included.
        """
        begin, end = self.tree.move(source, target)
        return f"Moved {begin} to {end}."

    @tool
    def delete(self, path: str) -> str:
        """Delete a file. A folder is gone with its last file.

        Args:
            path: The file.
        """
        return f"Deleted {self.tree.delete(path)}."

    def get_state(self) -> Any:
        """See :meth:`World.get_state`."""
        return self.tree.get_state()

    def set_state(self, state: Any) -> None:
        """See :meth:`World.set_state`."""
        self.tree.set_state(state)

    def _text(self, path: str) -> str:
        content = self.tree.read(path)
        if isinstance(content, bytes):
            raise ToolError(f"{shown(path)} is no text: {len(content):,} bytes")
        return content

    def _fitting(self, lines: Iterable[str]) -> list[str]:
        """Return the first lines that fit together."""
        taken, room = [], self._room
        for line in lines:
            room -= len(line) + 1
            if room < 0:
                break
            taken.append(line)
        return taken


def _folder(named: str) -> str:
    """Return how a tree takes a folder that an agent names: one / at its end says only that it is one."""
    return (named.removesuffix("/") or named or ".") if named != "/" else "/"
