"""The program of an interpreter's session: it runs cells of foreign code, one for each line that it is sent.

It runs in the sandbox, in one process with the cells, so they can do to it what they like. That hurts their own output
and nothing else: nothing of value is here, and the host reads what comes as a text that anybody may have written. What
is likely to be broken by accident is kept apart: the program has builtins of its own, calls nothing of ``os``, and puts
stdout back.
"""

from __future__ import annotations

import _ast
import _frozen_importlib_external
import contextlib
import linecache
import posix
import sys
import traceback
import types
from io import FileIO, TextIOWrapper
from signal import ITIMER_REAL, SIGKILL, setitimer

TYPE_CHECKING = False
if TYPE_CHECKING:  # every session would carry `typing`
    from typing import Any

LONGEST = 50_000
"""Bytes that are kept of what a cell prints, and characters of what comes after it."""
_NO_ROOM = "[some output is lost: its file may not grow, or the disk is full]\n"
_ONLY_TREE = 0x400
_FRAMES = 6
"""The innermost frames, which a traceback shows."""
_INIT = 1
_CHUNK = 1 << 16


class _Seeds:
    """Finds the module ``random`` as usual, and seeds it: a replay then draws what was drawn before."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "random":
            return None
        sys.meta_path.remove(self)
        spec: Any = _frozen_importlib_external.PathFinder.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            execute(module)
            if hasattr(module, "seed"):
                module.seed(0)

        spec.loader.exec_module = exec_module
        return spec


class Notebook:
    """The cells' names, and what they print."""

    def __init__(self) -> None:
        self.names = sys.modules["__main__"].__dict__
        self.process = posix.getpid()
        name = f".{posix.getpid()}.output"
        self._output = posix.open(name, posix.O_RDWR | posix.O_CREAT | posix.O_EXCL | posix.O_APPEND, 0o600)
        posix.unlink(name)
        self._raise = traceback.TracebackException
        self._writer: Any = None

    def run(self, code: str, number: int) -> tuple[bool, str]:
        """Run a cell.

        Returns:
            Whether it raised nothing, and what it printed, with the value of its last expression or what it raised.
        """
        self._begin()
        is_fine, said = self._evaluate(code, f"<cell {number}>")
        is_cut = False
        streams: list[Any] = [getattr(sys, "stdout", None), self._writer]
        for stream in streams:
            try:
                stream.flush()
            except OSError:
                is_cut = stream is self._writer
            except BaseException:  # the cell closed or replaced it
                continue
        if posix.getpid() != self.process:  # a fork that has come here; its parent answers
            posix._exit(0)
        setitimer(ITIMER_REAL, 0)
        end_children()
        printed = self._printed() + _NO_ROOM * is_cut
        return is_fine, f"{printed}\n{said}" if said and printed and not printed.endswith("\n") else printed + said

    def _begin(self) -> None:
        posix.ftruncate(self._output, 0)
        posix.dup2(self._output, 1)
        posix.dup2(self._output, 2)
        # One stream for both, so that what is written first stands first.
        self._writer = sys.stdout = sys.stderr = TextIOWrapper(
            FileIO(1, "w", closefd=False), encoding="utf-8", errors="backslashreplace", newline="\n"
        )

    def _evaluate(self, code: str, name: str) -> tuple[bool, str]:
        with contextlib.suppress(BaseException):  # a traceback may do without the lines
            linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        try:
            tree: Any = compile(code, name, "exec", _ONLY_TREE, True)
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], _ast.Expr) else None
            exec(compile(tree, name, "exec", 0, True), self.names)
            if last is None:
                return True, ""
            value = eval(compile(_ast.Expression(last.value), name, "eval", 0, True), self.names)
            if value is None:
                return True, ""
            self.names["_"] = value
            return True, _cut(repr(value))
        except BaseException as error:  # whatever it is, it is the cell's
            return False, self._told(error)

    def _told(self, error: BaseException) -> str:
        try:
            shown = error.__traceback__.tb_next if error.__traceback__ else None  # without the frame of this program
            said = self._raise(type(error), error, shown, limit=-_FRAMES, compact=True)
            return _cut("".join(said.format()).rstrip("\n"))
        except BaseException:  # the error itself raises, or is too large to be told
            return f"{type(error).__name__} (it cannot be shown)"[:LONGEST]

    def _printed(self) -> str:
        size = posix.fstat(self._output).st_size
        if size <= LONGEST:
            return posix.pread(self._output, size, 0).decode(errors="replace")
        tail = LONGEST // 4
        head, end = posix.pread(self._output, LONGEST - tail, 0), posix.pread(self._output, tail, size - tail)
        posix.ftruncate(self._output, 0)
        note = f"\n[... {size:,} bytes in all, cut to {LONGEST:,} ...]\n"
        return head.decode(errors="replace") + note + end.decode(errors="replace")


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    tail = LONGEST // 4
    note = f"\n[... {len(text):,} characters in all, cut to {LONGEST:,} ...]\n"
    return text[: LONGEST - tail] + note + text[-tail:]


def end_children() -> None:
    """End the processes that a cell has started; without a namespace of its own nobody knows which these are."""
    if posix.getpid() != _INIT:
        return
    while True:
        with contextlib.suppress(OSError):  # there is none
            posix.kill(-1, SIGKILL)  # all but the first process of a namespace, which is this one
        try:
            posix.waitpid(-1, 0)
        except ChildProcessError:
            return


def hear(requests: int, rest: bytes) -> tuple[bytes, bytes]:
    """Return the next line and what has come behind it; the program ends where there is none."""
    while b"\n" not in rest:
        try:
            part = posix.read(requests, _CHUNK)
        except OSError:
            posix._exit(1)  # a cell closed it
        except BaseException:  # a signal handler that a cell has left
            continue
        if not part:
            posix._exit(0)
        rest += part
    line, _, rest = rest.partition(b"\n")
    return line, rest


def main() -> None:
    """Answer each line (a nonce, the number of a cell, its code in hex) with one (the nonce, 0 or 1, text in hex)."""
    requests, replies = posix.dup(3), posix.dup(4)
    posix.close(3)
    posix.close(4)
    sys.meta_path.insert(0, _Seeds())
    notebook, rest = Notebook(), b""
    while True:
        line, rest = hear(requests, rest)
        nonce, number, code = line.split(b" ")
        is_fine, said = notebook.run(bytes.fromhex(code.decode()).decode("utf-8", "surrogatepass"), int(number))
        reply = b"%s %d %s\n" % (nonce, is_fine, said.encode("utf-8", "backslashreplace").hex().encode())
        data = memoryview(reply)
        while data:
            data = data[posix.write(replies, data) :]
