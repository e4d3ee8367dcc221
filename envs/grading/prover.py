r"""Exact equality of expressions, in a process that can be killed.

One process of this program does the work for every thread; a process that was forked starts its own. It ends with its
parent, however that ends. A comparison that takes more processor time than it may is ended by killing the worker, so
no alarm signal is needed and no work goes on.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import math
import os
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import gymnasium as gym

from tetrathlon.envs.grading.hedges import word_set
from tetrathlon.envs.grading.surds import Surd
from tetrathlon.envs.grading.values import Class, Equation, Expression, Scalar, Text
from tetrathlon.envs.rubric import GraderError

SECONDS = 1.0
"""Processor time that one comparison may take."""
_START_SECONDS = 120.0
_LATE_SECONDS = 60.0  # beyond what the process itself allows a comparison on a machine that is busy
_PROGRAM = Path(__file__).with_name("algebra.py")
_LONGEST = 400
_DEEPEST = 24
_MOST_ITEMS = 64
_WILD = re.compile(
    r"\d{60}"  # no number of this size is worked with
    r"|!{2}|(?:![^!]*){4}"
    r"|\d{4,}\s?\}?\)?!"
    r"|\^\s?\{?\s?[({]?-?\d{5}"
    r"|\d\s?\^\s?\{?\s?\(?\d+\s?\^\s?\{?\s?\(?\d+\s?\^"  # towers
    r"|\^\s?\w\s?\^"
    r"|\d\s+\d|\d\s?_|\d\s?\{|[%'&#@~?\"`;$]"  # what the parser would read as something else
    r"|\\frac\s?\{d\}\s?\{d"
    r"|\\Gamma\s?\([^()]*(?:\d{3}|[\^!\\])|\\sqrt\s?\[[^\]]*(?:\d{3}|[\^!\\])"
    r"|\\binom(?:\{(?:[^{}]|\{[^{}]*+\})*+\})?\{[^{}]*(?:\{[^{}]*\}[^{}]*)?(?:\d{4}|[\d)}]\s?\^|[!\\])"
    r"|(?:(?:\\exp\s?(?:\\left)?|(?<![A-Za-z])e\s?\^\s?\{?)\s?\(?\s?){3}"
)
_COMMANDS = word_set(
    "frac sqrt cdot times div ln log exp sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh binom sum prod",
    "lfloor rfloor lceil rceil vec hat overline mathbf circ pi alpha beta gamma delta epsilon varepsilon zeta eta",
    "theta iota kappa lambda mu nu xi rho sigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma",
    "Phi Psi Omega",
)
"""All that the parser is handed of LaTeX."""
_POWERS = re.compile(r"\^\s?\{?\s?\d{1,6}(?:[\s)}]{0,8}[)}]\s?\^\s?\{?\s?\d{1,6})+")
_LARGEST_POWER = 2_000
_DIGITS = re.compile(r"\d+")
_COMMAND = re.compile(r"\\([A-Za-z]+|.)")
_GROUP = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*+\})*+\})*+\}|[\da-zA-Z]|\\pi"
_BARE_PAIR = re.compile(rf"\\(frac|binom)\s?({_GROUP})\s?({_GROUP})")
_AFTER_FRACTION = re.compile(
    r"(?<![\w.^/}])(?<![\^/]\s)(\d+(?:\.\d+)?\s?/\s?\d+(?:\.\d+)?)(?=\s?(?:[A-Za-z]|\\(?!cdot|times|div)))"
)
r"""``3/4\pi`` is three quarters of it, as a reader from the left takes it."""
_UNCLEAR = re.compile(r"/\s?\d+(?:\.\d+)?\s?(?:[A-Za-z]|\\(?!cdot|times|div))")
"""``x/2y``: over 2 or over 2y."""
_QUOTIENT = re.compile(
    r"(\\(?:sin|cos|tan|cot|sec|csc|ln|log))\s?(\d{0,3}(?:[A-Za-z]|\\[a-z]{2,8}))\s?(?=/\s?\\(?:sin|cos|tan|cot|sec|csc|ln|log))"
)
_BARE_ROOT = re.compile(r"\\sqrt\s?(\[[^\[\]]*\])?\s?([\da-zA-Z]|\\pi(?![a-zA-Z]))")
_WORD_ROOT = re.compile(r"(?<![\\A-Za-z])sqrt\s?\(([^()]*)\)")
_WORD = re.compile(r"(?<![\\A-Za-z])((?:arc)?(?:sin|cos|tan)h?|cot|sec|csc|log|ln|exp|pi)(?![A-Za-z])")
_MIXED = re.compile(r"(?<![\d.}^_])(\d+)\s?(\\frac\{\d+\}\{\d+\})")
_TIMES = re.compile(
    r"(?<=[\d)])\s?(?=\()|(?<=\d)\s?(?=\\frac)"
    r"|(?<=\))\s?(?=[\dA-Za-z\\])(?!\\(?:cdot|times|div)(?![A-Za-z]))"
)
_NEXT_FACTOR = re.compile(r"\s?(?:[(A-Za-z]|\\(?!cdot|times|div)[A-Za-z])")
"""What a fraction is multiplied with; the parser would add an integer ``\\frac{4}{2}`` to it."""
_FACTOR = re.compile(r"(\\pi(?![a-zA-Z]))\s?(?=\()|\\[A-Za-z]+|([A-Za-z])\s?(?=\()")
"""A letter before a bracket is a factor to the parser only sometimes."""
_CALL = re.compile(r"(?<![A-Za-z\\])[fg]\s?\(")
"""A function that nobody defined; the parser would take it for a product."""
_INDEX = re.compile(r"_\s?([A-Za-z0-9])")
_DEGREES = re.compile(r"(\d+(?:\.\d+)?)\s?\^\s?(?:\\circ|\{\s?\\circ\s?\})")
_LONE_GROUP = re.compile(r"(?:^|[-+*/(=,\s])\{\d+\}\s?[\d({\\]")


def spelled(latex: str) -> str | None:
    """Return ``latex`` in the words of the parser, or None where it is too long, too deep or too wild to be asked.

    Products without a sign get one, since the parser adds ``2(3)`` up as a mixed number.
    """
    if len(latex) > _LONGEST or _CALL.search(latex):
        return None
    depth = deepest = 0
    for sign in latex:
        depth += (sign in "([{") - (sign in ")]}")
        deepest = max(deepest, depth)
    if depth or deepest > _DEEPEST:
        return None
    latex = _INDEX.sub(r"_{\1} ", latex.replace("**", "^"))
    latex = _WORD_ROOT.sub(r"\\sqrt{\1}", latex)
    latex = _WORD.sub(r"\\\1 ", latex)
    latex = _BARE_ROOT.sub(lambda match: rf"\sqrt{match[1] or ''}{{{match[2]}}}", latex)
    latex = _BARE_PAIR.sub(_paired, latex)
    latex = _AFTER_FRACTION.sub(r"(\1)", latex)
    if _UNCLEAR.search(latex):
        return None
    latex = _QUOTIENT.sub(r"\1(\2)", latex)
    latex = _DEGREES.sub(r"(\1 \\cdot \\frac{\\pi}{180})", latex)
    latex = _MIXED.sub(r"(\1+\2)", latex)
    latex = _TIMES.sub(r" \\cdot ", latex)
    latex = _FACTOR.sub(lambda match: match[0] + r" \cdot " if match[1] or match[2] else match[0], latex)
    if not _COMMANDS.issuperset(_COMMAND.findall(latex)):
        return None
    if any(math.prod(map(int, _DIGITS.findall(powers))) > _LARGEST_POWER for powers in _POWERS.findall(latex)):
        return None
    return None if _WILD.search(latex) or _LONE_GROUP.search(latex) else latex


def _paired(match: re.Match[str]) -> str:
    parts = (part[1:-1] if part.startswith("{") else part for part in match.groups()[1:])
    times = r" \cdot " if _NEXT_FACTOR.match(match.string, match.end()) else ""
    return rf"\{match[1]}" + "".join(f"{{{_BARE_PAIR.sub(_paired, part)}}}" for part in parts) + times


def require() -> None:
    """Refuse to go on without the package that the prover needs.

    Raises:
        gymnasium.error.DependencyNotInstalled: math-verify is missing.
    """
    if not is_installed():
        raise gym.error.DependencyNotInstalled(
            'answers that are expressions need math-verify: pip install "tetrathlon[llm]"'
        )


def is_installed() -> bool:
    """Tell whether the package that the prover needs is there."""
    return importlib.util.find_spec("latex2sympy2_extended") is not None


def classified(scalars: Iterable[Scalar]) -> dict[Scalar, Class] | None:
    """Sort numbers, expressions and equations into classes of equal ones.

    Returns:
        The class of each; None where one cannot be read, or where it took too long.

    Raises:
        gymnasium.error.DependencyNotInstalled: math-verify is missing.
        tetrathlon.envs.rubric.GraderError: The prover itself does not work.
    """
    require()
    each = sorted(set(map(_plain, scalars)), key=repr)  # in one order, whichever side is which
    if len(each) > _MOST_ITEMS:
        return None
    items: list[Any] = []
    for scalar in each:
        match scalar:
            case Expression() | Surd():
                parts = [spelled(scalar.latex)]
            case Text(words):
                parts = [spelled(words)]
            case Equation(left, right):
                parts = ["=", spelled(left), spelled(right)]
            case _:
                parts = [str(scalar.numerator), str(scalar.denominator)]
        if None in parts:
            return None
        items.append(parts[0] if len(parts) == 1 else parts)
    found = _asked(json.dumps(items))
    if found is None or None in found:
        return None
    return {scalar: Class(number) for scalar, number in zip(each, found, strict=True) if number is not None}


def _plain(scalar: Scalar) -> Scalar:
    """Return the number that a surd is, where it is one, and else what it was."""
    number = scalar.rational if isinstance(scalar, Surd) else None
    return scalar if number is None else number


@lru_cache(maxsize=4096)
def _asked(items: str) -> tuple[int | None, ...] | None:
    reply = PROVER.ask(json.loads(items), SECONDS)
    return None if reply is None else tuple(reply)


class Prover:
    """The process, started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Of the process; None where there is none."""
        return None if self._process is None else self._process.pid

    def ask(self, items: list[Any], seconds: float) -> list[int | None] | None:
        """Return the classes of ``items``; None where that took more than ``seconds`` or more memory than there is.

        Raises:
            tetrathlon.envs.rubric.GraderError: The process cannot be started, or does not answer as it should.
        """
        line = json.dumps({"items": items, "seconds": seconds}).encode() + b"\n"
        with self._lock:
            for is_last in (False, True):
                try:
                    reply = self._exchange(line, _LATE_SECONDS + 30 * seconds)
                    break
                except (OSError, EOFError, json.JSONDecodeError) as error:
                    self._stop()  # somebody killed it: once more with a fresh one
                    if is_last:
                        raise GraderError(f"the prover ended twice: {type(error).__name__}: {error}") from error
        if "error" in reply:
            raise GraderError(f"the prover does not work: {reply['error']}")
        found: list[int | None] | None = reply.get("classes")
        return found

    def close(self) -> None:
        """End the process; the next question starts another."""
        with self._lock:
            self._stop()

    def _exchange(self, line: bytes, seconds: float) -> dict[str, Any]:
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(line)
        process.stdin.flush()
        return _line(process, seconds)

    def _start(self) -> subprocess.Popen[bytes]:
        paths = os.pathsep.join(path for path in sys.path if path)
        environment = {"PYTHONPATH": paths, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "LC_ALL": "C.UTF-8"}
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", str(_PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,  # ctrl-C is for the parent, which ends this one
            )
        except OSError as error:
            raise GraderError(f"the prover cannot be started: {error}") from error
        self._process = process
        first = _line(process, _START_SECONDS)
        if "error" in first:
            self._stop()
            raise GraderError(f"the prover cannot be started: {first['error']}")
        return process

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    _close(stream)

    def forget(self) -> None:
        """Leave the process to the parent that this process was forked from."""
        self._lock = threading.Lock()
        process, self._process = self._process, None
        if process is not None:
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    os.close(stream.fileno())  # without flushing what the parent was writing
            process.returncode = 0  # it is no child of this one


def _close(stream: Any) -> None:
    try:
        stream.close()
    except BrokenPipeError:
        return  # what was not yet written has no reader


def _line(process: subprocess.Popen[bytes], seconds: float) -> dict[str, Any]:
    assert process.stdout is not None
    number, line, end = process.stdout.fileno(), b"", time.monotonic() + seconds
    while not line.endswith(b"\n"):
        if not select.select([number], [], [], max(end - time.monotonic(), 0.0))[0]:
            raise EOFError(f"no answer within {seconds:g} s")
        more = os.read(number, 65536)
        if not more:
            raise EOFError("it ended")
        line += more
    reply: dict[str, Any] = json.loads(line)
    return reply


PROVER = Prover()
"""The one that every grader of this process asks."""
atexit.register(PROVER.close)
os.register_at_fork(after_in_child=PROVER.forget)
