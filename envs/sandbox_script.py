"""A foreign program as a script: an interpreter made to look as a script finds it, and what running one means.

Runs in the worker's bare interpreter: the standard library only.
"""

from __future__ import annotations

import _sitebuiltins
import atexit
import builtins
import gc
import json
import linecache
import os
import sys
import traceback
import types

TYPE_CHECKING = False
if TYPE_CHECKING:  # every fork would carry `typing`
    from typing import IO

_PRELOADED = (json,)  # what programs import most, and what costs a fork nothing: `random` and `threading` have hooks
_SCRIPT = "main.py"
_SAMPLE = """
import sys
def f(x, *, y=0):
    try:
        return [x + k for k in range(y) if k % 2]
    except (ValueError, KeyError) as error:
        raise RuntimeError(f"{x!r}: {error}")
class A:
    def g(self): return {"a": self}
for i, s in enumerate("ab"):
    while not f(i, y=2) and s == "a" or -1.5 < 0: break
print("", end="")
"""


def prepare(cwd: str) -> None:
    """Make this interpreter look as a script finds it; done once, since a child pays for each page that it touches."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "tetrathlon"]:
        del sys.modules[name]
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.modules["__main__"].__dict__.update(__builtins__=builtins, __file__=_SCRIPT)
    sys.argv = [_SCRIPT]
    sys.path.insert(0, cwd)
    for name in ("exit", "quit"):  # what `site` adds
        setattr(builtins, name, _sitebuiltins.Quitter(name, "Ctrl-D (i.e. EOF)"))
    null = os.dup(0)
    reader, writer = os.pipe()
    for fd, end in enumerate((reader, writer, writer)):  # streams ask now whether they can seek: a pipe cannot
        os.dup2(end, fd, inheritable=False)
    sys.stdin = sys.__stdin__ = _stream(0, "r", "surrogateescape")  # type: ignore[assignment,misc]
    sys.stdout = sys.__stdout__ = _stream(1, "w", "surrogateescape")  # type: ignore[assignment,misc]
    sys.stderr = sys.__stderr__ = _stream(2, "w", "backslashreplace")  # type: ignore[assignment,misc]
    for fd in range(3):
        os.dup2(null, fd, inheritable=False)
    for fd in (reader, writer, null):
        os.close(fd)


def _stream(fd: int, mode: str, errors: str) -> IO[str]:
    return open(fd, mode, buffering=1 if fd == 2 else -1, encoding="utf-8", errors=errors, closefd=False)


def warm_up() -> None:
    """Compile and run a little of everything: the pages that it takes are a child's own before its program comes."""
    exec(compile(_SAMPLE, _SCRIPT, "exec", dont_inherit=True), {"__name__": ""})


def execute(code: str) -> int:
    """Run foreign code as an interpreter runs a script, and return its exit code."""
    gc.enable()
    exit_code = 0
    try:
        exec(compile(code, _SCRIPT, "exec", dont_inherit=True), sys.modules["__main__"].__dict__)
    except BaseException as error:  # whatever it is, it is the program's
        exit_code = _report(error, code)
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()  # waits for threads, as every interpreter does
        atexit._run_exitfuncs()
    except BaseException as error:
        exit_code = _report(error, code)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):  # the program closed or replaced it
            continue
    return exit_code


def _report(error: BaseException, code: str) -> int:
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        print(error.code, file=sys.stderr)
        return 1
    linecache.cache[_SCRIPT] = (len(code), None, code.splitlines(keepends=True), _SCRIPT)
    shown = error.__traceback__.tb_next if error.__traceback__ else None  # without the frame of the worker
    traceback.print_exception(type(error), error, shown)
    return 1
