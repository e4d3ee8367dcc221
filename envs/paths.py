"""Paths that a model names, kept inside a folder."""

from __future__ import annotations

import os
from pathlib import Path


def inside(root: str | os.PathLike[str], path: str | os.PathLike[str]) -> Path:
    """Return where ``path`` leads, if that is ``root`` or in it.

    Links and ``..`` are followed first, those of parents of a file yet to be made too, and then whole names are
    compared. It is an answer about now: open the path that is returned, and let nobody else change the folder.

    Args:
        root: A folder.
        path: Relative to ``root``, or absolute.

    Raises:
        PermissionError: It leads elsewhere, or nowhere.
        TypeError: It is no text and no path.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"a path must be text, got {str(path)[:200]!r} of the type {type(path).__name__}")
    top = Path(root).resolve(strict=True)
    try:
        found = (top / path).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a name too long, a NUL
        raise PermissionError(f"{str(path)[:200]!r} is no path in the folder: {error}") from error
    if not found.is_relative_to(top):
        raise PermissionError(f"{str(path)[:200]!r} leads out of the folder; name a path in it")
    return found
