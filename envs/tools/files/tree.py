"""A tree of files in memory that no path leads out of: there is nothing else to reach."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from tetrathlon.envs.paths import inside
from tetrathlon.envs.tools.tool import ToolError

Content = str | bytes
"""What a file holds."""
LONGEST_PATH = 1_000
"""Characters of a path."""
LONGEST_NAME = 255
"""UTF-8 bytes of one name in a path."""
DEEPEST = 32
"""Names below the root, wherever a path leads through."""
_MOST_LINKS = 40


class TreeError(ToolError):
    """A path or a change is refused; the message is fit to be read by who asked for it."""


@dataclass(frozen=True, slots=True)
class Quota:
    """How large a tree may become."""

    files: int = 500
    """Files and links."""
    file_bytes: int = 200_000
    """UTF-8 bytes of one file."""
    bytes: int = 2_000_000
    """UTF-8 bytes of all files together."""


class Tree:
    """Files and symbolic links by their paths; a folder is there as long as something is in it.

    Paths are relative to the root, or absolute below it. ``.``, ``..`` and links are followed name by name, and where
    that leads is compared with the root name by name. A path is refused if it ends up outside, if it has a NUL,
    another sign that cannot be printed, a backslash or an empty part, or if it is too long or too deep.

    Args:
        files: Path -> text or bytes; None: none.
        links: Path -> target, relative to the folder of the link, or absolute. One that leads out of the tree, in a
            circle or nowhere may be there; following it is what is refused.
        root: What the absolute path of the tree is called, such as ``/work``.
        quota: See :class:`Quota`.

    Raises:
        TreeError: A path is refused, one is in the way of another, or a quota is exceeded.
        ValueError: ``root`` is no absolute path in its plain form.
    """

    def __init__(
        self,
        files: Mapping[str, Content] | None = None,
        links: Mapping[str, str] | None = None,
        *,
        root: str = "/work",
        quota: Quota | None = None,
    ) -> None:
        if not root.startswith("/") or posixpath.normpath(root) != root or root.startswith("//"):
            raise ValueError(f"root must be an absolute path such as '/work', got {root!r}")
        self.root = root
        self.quota = Quota() if quota is None else quota
        self._top = [part for part in root.split("/") if part]
        self._files: dict[str, Content] = {}
        self._links: dict[str, str] = {}
        self._bytes = 0
        for path, content in (files or {}).items():
            self.write(path, content)
        for path, target in (links or {}).items():
            self._link(path, target)

    @property
    def files(self) -> dict[str, Content]:
        """The files by their paths, as a copy."""
        return dict(self._files)

    @property
    def links(self) -> dict[str, str]:
        """The targets of the links by their paths, as a copy."""
        return dict(self._links)

    def resolve(self, path: str, *, follow: bool = True) -> str:
        """Return where ``path`` leads, relative to the root and in its plain form; ``""`` is the root.

        Args:
            path: Of something that is there, or is yet to be made.
            follow: Whether a link at its end is followed; links before are in any case.

        Raises:
            TreeError: It is refused, leads out of the tree or in a circle, or goes on behind a file.
        """
        todo, at, followed = self._split(path), list(self._top), 0
        if path.startswith("/"):
            at = []
        todo.reverse()
        while todo:
            part = todo.pop()
            if (here := self._below(at)) in self._files:
                raise TreeError(f"{here!r} is a file, not a folder")
            if part == ".":
                continue
            if part == "..":
                del at[-1:]
                continue
            at.append(part)
            if len(at) > len(self._top) + DEEPEST:
                raise TreeError(f"{shown(path)} is deeper than {DEEPEST} names")
            target = self._links.get(self._below(at) or "")
            if target is None or not (follow or todo):
                continue
            followed += 1
            if followed > _MOST_LINKS:
                raise TreeError(f"{shown(path)} leads through links in a circle")
            at = [] if target.startswith("/") else at[:-1]
            todo += reversed(self._split(target))
        found = self._below(at)
        if found is None:
            raise TreeError(f"{shown(path)} leads out of {self.root}; name a path in it")
        return found

    def read(self, path: str) -> Content:
        """Return what the file at ``path`` holds; links are followed.

        Raises:
            TreeError: There is no file, or the path is refused.
        """
        found = self.resolve(path)
        if found not in self._files:
            raise self._missing(path, found)
        return self._files[found]

    def write(self, path: str, content: Content) -> str:
        """Make a file, or replace what it holds; links are followed, and folders are made as needed.

        Returns:
            The resolved path.

        Raises:
            TreeError: It is no place for a file, the path is refused, a quota is exceeded, or a text is no Unicode.
        """
        found = self.resolve(path)
        if self.is_folder(found):
            raise TreeError(f"{shown(path)} is a folder; name a file")
        weight = size(content)
        if weight > self.quota.file_bytes:
            raise TreeError(f"a file may have {self.quota.file_bytes:,} bytes, got {weight:,} for {shown(path)}")
        total = self._bytes + weight - (size(self._files[found]) if found in self._files else 0)
        if total > self.quota.bytes:
            raise TreeError(f"all files together may have {self.quota.bytes:,} bytes; this would make them {total:,}")
        self._make_room(found)
        self._files[found] = content
        self._bytes = total
        return found

    def delete(self, path: str) -> str:
        """Delete a file, or a link but not where it leads.

        Returns:
            The resolved path.

        Raises:
            TreeError: There is neither, or the path is refused.
        """
        found = self.resolve(path, follow=False)
        if found in self._links:
            del self._links[found]
        elif found in self._files:
            self._bytes -= size(self._files.pop(found))
        else:
            raise self._missing(path, found)
        return found

    def move(self, source: str, target: str) -> tuple[str, str]:
        """Move a file, or a link but not where it leads, to a path where nothing is.

        Returns:
            Both resolved paths.

        Raises:
            TreeError: There is neither, there is something at ``target``, or a path is refused.
        """
        begin, end = self.resolve(source, follow=False), self.resolve(target, follow=False)
        if begin not in self._files and begin not in self._links:
            raise self._missing(source, begin)
        if self.is_folder(end):
            raise TreeError(f"{shown(target)} is a folder; name the new path of the file, such as 'folder/name'")
        if end in self._files or end in self._links:
            raise TreeError(f"there is something at {shown(target)} already; delete it first, or take another path")
        if begin in self._links:
            self._links[end] = self._links.pop(begin)
        else:
            self._files[end] = self._files.pop(begin)
        return begin, end

    def is_folder(self, path: str) -> bool:
        """Tell whether something is below ``path``, which is in its plain form; the root is always a folder."""
        return not path or any(name.startswith(f"{path}/") for name in chain(self._files, self._links))

    def below(self, folder: str = ".") -> list[str]:
        """Return the paths of all files and links in ``folder``, deep ones too, in order of their characters.

        Raises:
            TreeError: It is no folder, or the path is refused.
        """
        found = self.resolve(folder)
        if not self.is_folder(found):
            raise TreeError(f"{shown(folder)} is a file, not a folder" if found in self._files else _none(folder))
        start = f"{found}/" if found else ""
        return sorted(name for name in chain(self._files, self._links) if name.startswith(start))

    def get_state(self) -> dict[str, Any]:
        """Return a copy of files and links, from which :meth:`set_state` restores them."""
        return {"files": dict(self._files), "links": dict(self._links)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what :meth:`get_state` returned, and leave that as it is."""
        self._files, self._links = dict(state["files"]), dict(state["links"])
        self._bytes = sum(map(size, self._files.values()))

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str], *, root: str = "/work", quota: Quota | None = None) -> Tree:
        """Return a copy of a folder of the disk.

        What is UTF-8 is text, all else bytes. Folders without files are left out.

        Args:
            folder: Where it is.
            root: See :class:`Tree`.
            quota: See :class:`Quota`; nothing beyond it is read. Its ``files`` bounds the folders too.

        Raises:
            TreeError: A link leads out of the folder or in a circle, a name is refused, something is neither a file
                nor a folder nor a link, or a quota is exceeded.
            OSError: It is no folder, or it cannot be read.
        """
        tree, top, links, folders = cls(root=root, quota=quota), Path(folder).resolve(strict=True), {}, 0
        for where in _walk(top, tree.quota.files):
            path = where.relative_to(top).as_posix()
            if where.is_symlink():
                try:
                    end = inside(top, path)
                except PermissionError as error:
                    raise TreeError(str(error)) from error
                links[path] = posixpath.relpath(end.as_posix(), where.parent.as_posix())
            elif where.is_dir():
                folders += 1
                tree.resolve(path)
                if folders > tree.quota.files:
                    raise TreeError(f"a tree may have {tree.quota.files:,} folders, got more in {str(top)!r}")
            else:
                tree.write(path, _loaded(where, tree.quota.file_bytes))
        for path, target in links.items():
            tree._link(path, target)
        for path in links:
            tree.resolve(path)
        return tree

    def write_to(self, folder: str | os.PathLike[str]) -> None:
        """Write all files and links into a folder of the disk that is empty, or yet to be made.

        Raises:
            TreeError: A link leads out of the tree or in a circle; nothing is written then.
            FileExistsError: Something is in the folder.
        """
        ends = {path: self.resolve(path) or "." for path in self._links}
        top = Path(folder)
        top.mkdir(parents=True, exist_ok=True)
        if any(top.iterdir()):
            raise FileExistsError(f"{str(top)!r} must be empty")
        for path, content in self._files.items():
            where = top / path
            where.parent.mkdir(parents=True, exist_ok=True)
            with where.open("xb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
        for path, end in ends.items():
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).symlink_to(posixpath.relpath(end, posixpath.dirname(path) or "."))

    def _split(self, path: str) -> list[str]:
        """Return the names in a path.

        Raises:
            TreeError: It is no path.
        """
        if len(path) > LONGEST_PATH:
            raise TreeError(f"a path may have {LONGEST_PATH:,} characters, got {len(path):,}")
        if not path:
            raise TreeError("a path must not be empty; '.' is the root")
        parts = path.removeprefix("/").split("/")
        if parts == [""]:
            return []
        for part in parts:
            if not part:
                raise TreeError(f"{shown(path)} has an empty part; write one / between names and none at the end")
            if "\\" in part or not part.isprintable():
                raise TreeError(f"{shown(path)} has a sign that no name may have: a backslash or one without a glyph")
            if len(part.encode()) > LONGEST_NAME:
                raise TreeError(f"a name may have {LONGEST_NAME} bytes, got {len(part.encode()):,} in {shown(path)}")
        return parts

    def _below(self, at: list[str]) -> str | None:
        """Return the path of absolute names relative to the root, or None outside."""
        depth = len(self._top)
        return "/".join(at[depth:]) if at[:depth] == self._top else None

    def _link(self, path: str, target: str) -> None:
        found = self.resolve(path, follow=False)
        if self.is_folder(found) or found in self._files or found in self._links:
            raise TreeError(f"there is something at {shown(path)} already; a link needs a free path")
        self._split(target)
        self._make_room(found)
        self._links[found] = target

    def _make_room(self, found: str) -> None:
        if found not in self._files and len(self._files) + len(self._links) >= self.quota.files:
            raise TreeError(f"there may be {self.quota.files:,} files, and that many are there")

    def _missing(self, path: str, found: str) -> TreeError:
        return TreeError(f"{shown(path)} is a folder; name a file" if self.is_folder(found) else _none(path))


def size(content: Content) -> int:
    """Return how many bytes a file is that holds ``content``, as UTF-8.

    Raises:
        TreeError: It is a text with half a character, which is no Unicode.
    """
    if isinstance(content, bytes) or content.isascii():
        return len(content)
    try:
        return len(content.encode())
    except UnicodeEncodeError as error:
        raise TreeError(f"the text is no Unicode: a lone surrogate at character {error.start}") from None


def shown(path: str) -> str:
    """Return a path as a message quotes it, whatever is in it."""
    return repr(path if len(path) <= 100 else f"{path[:97]}...")


def _none(path: str) -> str:
    return f"there is no {shown(path)}"


def _walk(folder: Path, most: int) -> Iterator[Path]:
    """Yield all that is in a folder, deep ones too, in order; no link is followed.

    Raises:
        TreeError: One of them holds more than ``most`` files and as many folders.
    """
    within = list(islice(folder.iterdir(), 2 * most + 1))
    if len(within) > 2 * most:
        raise TreeError(f"there may be {most:,} files and as many folders, got more in {shown(str(folder))}")
    for where in sorted(within):
        yield where
        if where.is_dir() and not where.is_symlink():
            yield from _walk(where, most)


def _loaded(where: Path, most: int) -> Content:
    """Return what a file of the disk holds, or a little more than ``most`` bytes of it."""
    # Neither a pipe that nobody writes to nor a link put in its place can hold us up.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(where, flags)
    except OSError as error:
        if stat.S_ISREG(where.lstat().st_mode):
            raise
        raise TreeError(f"{shown(str(where))} is neither a file nor a folder nor a link") from error
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise TreeError(f"{shown(str(where))} is neither a file nor a folder nor a link")
        content = file.read(most + 1)
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content
