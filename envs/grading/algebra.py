r"""The prover's program: sorts expressions into classes of equal ones, exactly.

It runs in a process of its own (``prover.py`` starts it by its path). A parent that has everything imported answers on
its standard streams, one JSON line a request, and forks the worker that does the work; where a request takes more
than its time, the worker is killed and the next one forked, which takes milliseconds. LaTeX goes through the ANTLR
grammar of math-verify's parser, never through ``sympify``, ``parse_expr`` or ``eval``.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import resource
import select
import signal
import sys
import time
from typing import Any

MEMORY = 768 * 2**20
"""Bytes that a worker may take beyond what it was forked with."""
PROCESSOR = 60
"""Seconds of processor time after which a worker makes room for a fresh one."""
POLL = 0.1
"""Seconds between two looks at a worker."""
LATE = 2.0
"""On the clock a request may take this many times its time, where it had half of it of the processor."""
STARVED = 20
"""A request may take this many times its time on the clock, where the machine gives it no processor."""
_LARGEST_POWER = 2_000
_LARGEST_FACTORIAL = 200
_LARGEST_BITS = 8_000
_MOST_NODES = 400
_DECIMAL = re.compile(r"(?<![\d.])(\d*)\.(\d+)(?![\d.])", re.ASCII)
_POINTS = ((3, 7), (11, 5), (13, 17))
_PR_SET_PDEATHSIG = 1


class Unreadable(Exception):
    """An expression that cannot be read, or is too large."""


def expression(latex: str) -> Any:
    """Return the sympy expression that ``latex`` is.

    Raises:
        Unreadable: It is none, is no scalar, holds a rounded number, or is too large to be worked on.
    """
    import sympy  # type: ignore[import-untyped]
    from latex2sympy2_extended.latex2sympy2 import ConversionConfig, latex2sympy  # type: ignore[import-untyped]

    exact = _DECIMAL.sub(lambda match: rf"(\frac{{{match[1]}{match[2]}}}{{1{'0' * len(match[2])}}})", latex)
    config = ConversionConfig(lowercase_symbols=False)
    try:
        parsed = latex2sympy(exact, normalization_config=None, conversion_config=config)
    except Exception as error:  # the grammar raises bare Exception, and hostile text makes sympy raise anything
        raise Unreadable(str(error)) from error
    if not isinstance(parsed, sympy.Expr) or parsed.has(sympy.Float, sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
        raise Unreadable(latex)
    check_size(parsed)
    if not parsed.has(sympy.Sum, sympy.Product):
        parsed = parsed.subs(sympy.Symbol("i"), sympy.I)
    parsed = parsed.doit()
    if not isinstance(parsed, sympy.Expr) or parsed.has(sympy.Float, sympy.nan, sympy.zoo):
        raise Unreadable(latex)
    return parsed


def check_size(parsed: Any) -> None:
    """Refuse what would be huge once it is worked out.

    Raises:
        Unreadable: An exponent, a factorial, an integer or the tree is too large.
    """
    import sympy

    for count, node in enumerate(sympy.preorder_traversal(parsed)):
        if count > _MOST_NODES or (node.is_Integer and int(node).bit_length() > _LARGEST_BITS):
            raise Unreadable("too large")
        if isinstance(node, sympy.Pow):
            exponent = node.exp
            tower = exponent.has(sympy.Pow) and exponent.is_number and exponent.has(sympy.Integer)
            if (exponent.is_Rational and abs(exponent) > _LARGEST_POWER) or (tower and not _is_small(exponent)):
                raise Unreadable("a power that is too large")
        if isinstance(node, sympy.factorial) and not (
            node.args[0].free_symbols or _is_small(node.args[0], _LARGEST_FACTORIAL)
        ):
            raise Unreadable("a factorial that is too large")


def _is_small(number: Any, most: int = _LARGEST_POWER) -> bool:
    """Tell whether a tree of numbers is at most ``most``; its powers are of bounded size."""
    import sympy

    for node in sympy.preorder_traversal(number):
        if isinstance(node, sympy.factorial) or (
            isinstance(node, sympy.Pow) and not (node.exp.is_Rational and node.base.is_number and abs(node.exp) <= 16)
        ):
            return False
        if node.is_Integer and abs(int(node)) > 10**6:
            return False
    return number.is_number and bool(abs(number.evalf(15)) <= most)


def read(item: Any) -> Any:
    """Return what one item of a request is: a number, an expression, or an equation as (left - right,)."""
    import sympy

    if isinstance(item, str):
        return expression(item)
    if item[0] == "=":
        return (expression(item[1]) - expression(item[2]),)
    return sympy.Rational(int(item[0]), int(item[1]))


def equal(left: Any, right: Any) -> bool:
    """Tell whether two items are proved equal; what cannot be decided is not equal."""
    if isinstance(left, tuple) != isinstance(right, tuple):
        return False
    if isinstance(left, tuple):
        return _proportional(left[0], right[0])
    return left == right or _is_zero(left - right)


def _proportional(left: Any, right: Any) -> bool:
    import sympy

    if left.free_symbols != right.free_symbols or left == 0 or right == 0:
        return bool(left == right)
    ratio = sympy.cancel(sympy.together(sympy.expand(left) / sympy.expand(right)))
    return bool(ratio.is_Rational and ratio != 0)


def _is_zero(difference: Any) -> bool:
    """Tell whether a difference is 0, after a quick look whether it is something else."""
    import sympy

    if difference == 0:
        return True
    symbols = sorted(difference.free_symbols, key=str)
    for top, step in _POINTS:
        point = {symbol: sympy.Rational(top + step * index, 19) for index, symbol in enumerate(symbols)}
        try:
            value = complex(difference.evalf(30, subs=point, maxn=200))
        except (TypeError, ValueError, OverflowError, ArithmeticError):
            continue  # no number there: the algebra below decides
        if abs(value) > 1e-12:
            return False
        if not symbols:
            break
    if sympy.expand(difference) == 0 or sympy.simplify(difference) == 0:
        return True
    return not symbols and difference.equals(0) is True


def classes(items: list[Any]) -> list[int | None]:
    """Return a number for each item, the same for equal ones; None for what cannot be read."""
    found: list[int | None] = []
    kept: list[tuple[int, Any]] = []
    for item in items:
        try:
            value = read(item)
        except (Unreadable, ArithmeticError, ValueError, TypeError, AttributeError, NotImplementedError):
            found.append(None)
            continue
        number = next((number for number, other in kept if _try_equal(value, other)), None)
        if number is None:
            number = len(kept)
            kept.append((number, value))
        found.append(number)
    return found


def _try_equal(left: Any, right: Any) -> bool:
    try:
        return equal(left, right)
    except (ArithmeticError, ValueError, TypeError, AttributeError, NotImplementedError, IndexError, KeyError):
        return False  # sympy gave up: not proved


CANARY: tuple[list[Any], list[int | None]] = (
    [r"\frac{x+x}{2}", "x", r"\sqrt{8}", r"2\sqrt{2}", ["3", "1"], "(x+1)^2", "x^2+2x+1", r"\sin(\pi)+3"],
    [0, 0, 1, 1, 2, 3, 3, 2],
)
"""A request whose answer is known; it warms the parser up, and tells whether a worker works."""


class Worker:
    """A forked child that answers requests until it is killed."""

    def __init__(self) -> None:
        ask, self._ask = os.pipe()
        self._answer, answer = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._ask)
            os.close(self._answer)
            _work(ask, answer, parent)
        os.close(ask)
        os.close(answer)

    def answer(self, line: bytes, seconds: float) -> dict[str, Any]:
        """Return the reply to a request; a late one names what the lateness was due to.

        Args:
            line: The request.
            seconds: Processor time that it may take.
        """
        view = memoryview(line)
        try:
            while view:
                view = view[os.write(self._ask, view) :]
        except BrokenPipeError:
            return {"died": True}
        spent, started, reply = self._processor(), time.monotonic(), b""
        while not reply.endswith(b"\n"):
            ready, _, _ = select.select([self._answer], [], [], min(POLL, seconds))
            if ready:
                more = os.read(self._answer, 65536)
                if not more:
                    return {"died": True}
                reply += more
                continue
            took, waited = self._processor() - spent, time.monotonic() - started
            if took >= 0.9 * seconds or (waited >= LATE * seconds and took >= 0.5 * seconds):
                return {"late": True}
            if waited > STARVED * seconds:
                return {"error": f"the prover got no processor for {STARVED * seconds:g} s"}
        result: dict[str, Any] = json.loads(reply)
        return result

    def _processor(self) -> float:
        with open(f"/proc/{self.pid}/stat", "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """End the child and wait for it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._ask)
        os.close(self._answer)


def _work(ask: int, answer: int, parent: int) -> None:
    """Answer requests until there are no more; never returns."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    with open("/proc/self/statm", "rb") as file:
        size = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (2 * PROCESSOR, 2 * PROCESSOR))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    with os.fdopen(ask, "rb") as requests:
        for line in requests:
            try:
                reply = json.dumps({"classes": classes(json.loads(line))})
            except (MemoryError, RecursionError):
                os._exit(1)  # what is left in memory is not to be trusted
            os.write(answer, reply.encode() + b"\n")
            if time.process_time() > PROCESSOR:
                break
    os._exit(0)


def serve() -> None:
    """Answer requests on the standard streams until they end."""
    try:
        import latex2sympy2_extended  # type: ignore[import-untyped]  # noqa: F401
        import sympy  # noqa: F401

        warm = classes(CANARY[0])
    except Exception as error:  # whatever stands in the way is told to the other side
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
        return
    if warm != CANARY[1]:
        print(json.dumps({"error": f"math-verify reads the known expressions as {warm}"}), flush=True)
        return
    print(json.dumps({"ready": True}), flush=True)
    worker = Worker()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        body = json.dumps(request["items"]).encode() + b"\n"
        reply = worker.answer(body, request["seconds"])
        if "classes" not in reply:
            worker.kill()
            worker = Worker()
            check = worker.answer(json.dumps(CANARY[0]).encode() + b"\n", 10.0)
            if check.get("classes") != CANARY[1]:
                reply = {"error": f"a fresh worker does not work: {check}"}
        print(json.dumps(reply), flush=True)
    worker.kill()


if __name__ == "__main__":
    serve()
