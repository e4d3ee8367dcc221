"""What a sandbox is asked to run, checked and packed for its worker."""

from __future__ import annotations

import functools
import marshal
import math
from collections.abc import Mapping
from pathlib import PurePosixPath

from tetrathlon.envs.sandbox_limits import Limits
from tetrathlon.envs.sandbox_worker import HEAD

_MOST_FILES = 1000
_MOST_FOLDERS = 32


def pack(code: str, stdin: str, files: Mapping[str, str | bytes] | None, limits: Limits) -> bytes:
    """Return a request as the worker reads it.

    Raises:
        TypeError: The code or its stdin is no text.
        ValueError: A file's name leads elsewhere, or there is more in all than half of ``disk_mb``.
    """
    if not isinstance(code, str) or not isinstance(stdin, str):
        raise TypeError(f"code and stdin must be str, got {type(code).__name__} and {type(stdin).__name__}")
    contents = {_name(name): _bytes(content) for name, content in (files or {}).items()}
    if len(contents) > _MOST_FILES:
        raise ValueError(f"files must be at most {_MOST_FILES}, got {len(contents)}")
    folders = {str(folder) for name in contents for folder in PurePosixPath(name).parents}
    if both := sorted(folders & set(contents)):
        raise ValueError(f"a file must not also be a folder, but {both[0]!r} is")
    given = _bytes(stdin)
    size = len(given) + sum(map(len, contents.values()))
    if size > limits.disk_mb << 19:
        raise ValueError(f"stdin and files must be at most half of disk_mb={limits.disk_mb}, got {size} bytes")
    head, values = _packed(limits)
    return head + marshal.dumps((code, given, contents, *values))


@functools.lru_cache(256)
def _packed(limits: Limits) -> tuple[bytes, tuple[int, tuple[int, ...]]]:
    cpu_seconds = math.ceil(limits.cpu_seconds)
    most = (limits.memory_mb << 20, cpu_seconds, limits.file_mb << 20, limits.processes, limits.open_files)
    return HEAD.pack(limits.seconds, cpu_seconds, limits.output_bytes), (limits.disk_mb, most)


def _bytes(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")


def _name(name: str) -> str:
    parts = name.split("/")
    is_right = len(parts) <= _MOST_FOLDERS and "\0" not in name
    if not is_right or any(part in ("", ".", "..") or len(_bytes(part)) > 255 for part in parts):
        raise ValueError(f"a file needs a relative path without '..', '.', empty parts or NUL, got {name[:200]!r}")
    return name
