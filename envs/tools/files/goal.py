"""How far a tree is from the one that is asked for, and the next call that brings it nearer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tetrathlon.envs.tools.files.tree import Content, size

_DEAREST_EDIT = 0.7
"""The length of an edit, as a share of the whole file, above which the file is written anew."""


def plain(content: Content) -> Content:
    """Return a text without its last line end, which nobody is asked for."""
    return content.removesuffix("\n") if isinstance(content, str) else content


def reached(files: Mapping[str, Content], goal: Mapping[str, str]) -> bool:
    """Tell whether the files are those that are asked for, no more and no less."""
    return files.keys() == goal.keys() and all(_is_right(files, goal, path) for path in goal)


def share_done(files: Mapping[str, Content], goal: Mapping[str, str], units: Sequence[Sequence[str]]) -> float:
    """Return the share of the changes that are right, less one change for each other file that is not as it was.

    Args:
        files: What is there.
        goal: What is asked for.
        units: The changes, each as the paths that it is about; it is right when all of these are.
    """
    wrong = {path for path in [*goal, *files] if not _is_right(files, goal, path)}
    right = sum(not any(path in wrong for path in unit) for unit in units)
    damage = len(wrong.difference(*units))
    return max(0.0, (right - damage) / len(units))


def next_call(files: Mapping[str, Content], goal: Mapping[str, str]) -> tuple[str, dict[str, Any]] | None:
    """Return the name and the arguments of a call that brings the files nearer to the goal; None: they are there.

    What is too much is moved to where it is missing, or deleted, before anything is written, and what shrinks is
    written before what grows: so no quota is in the way.
    """
    much = sorted(path for path in files if path not in goal)
    missing = sorted(path for path in goal if path not in files)
    for path in much:
        if any(path.startswith(f"{one}/") or one.startswith(f"{path}/") for one in missing):
            return "delete", {"path": path}
    for target in missing:
        for source in much:
            if plain(files[source]) == plain(goal[target]):
                return "move", {"source": source, "target": target}
    if much:
        return "delete", {"path": much[0]}
    wrong = [path for path in goal if not _is_right(files, goal, path)]
    if not wrong:
        return None
    path = min(wrong, key=lambda path: (size(goal[path]) - size(files.get(path, "")), path))
    old = files.get(path)
    if isinstance(old, str) and (edit := _edit(old, goal[path])):
        return "edit_file", {"path": path, "old": edit[0], "new": edit[1]}
    return "write_file", {"path": path, "text": goal[path]}


def _is_right(files: Mapping[str, Content], goal: Mapping[str, str], path: str) -> bool:
    is_, wanted = files.get(path), goal.get(path)
    return is_ == wanted or (is_ is not None and wanted is not None and plain(is_) == plain(wanted))


def _edit(old: str, new: str) -> tuple[str, str] | None:
    """Return whole lines that occur once in ``old``, and what they become in ``new``; None: not worth it."""
    before, after = old.split("\n"), new.split("\n")
    least = min(len(before), len(after))
    head = next((i for i in range(least) if before[i] != after[i]), least)
    tail = next((i for i in range(least - head) if before[-1 - i] != after[-1 - i]), least - head)
    while True:
        piece = "\n".join(before[head : len(before) - tail])
        changed = "\n".join(after[head : len(after) - tail])
        if len(piece) + len(changed) > _DEAREST_EDIT * len(new):
            return None
        at = old.find(piece)
        if piece and old.find(piece, at + 1) < 0 and old[:at] + changed + old[at + len(piece) :] == new:
            return piece, changed
        if not (head or tail):
            return None
        head, tail = max(0, head - 1), max(0, tail - 1)
