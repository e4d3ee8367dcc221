"""Hidden tests on foreign code, which runs in the sandbox and never meets what it is expected to return."""

from __future__ import annotations

import atexit
import os
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from tetrathlon.envs.grading.outputs import same_output
from tetrathlon.envs.rubric import GraderError
from tetrathlon.envs.sandbox import Limits, SandboxEnded, SandboxError, SandboxPool, Session, shared
from tetrathlon.envs.text.coding import data, holder, tester
from tetrathlon.envs.text.coding.data import LONGEST_JSON, DataError, encode, read, same, write
from tetrathlon.envs.text.coding.tasks import Case

LONGEST_CODE = 100_000
"""Characters of code; longer code is wrong and is not run."""
_LEAST_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class Verdict:
    """What tests made of a program."""

    passed: int
    """How many passed."""
    total: int
    """How many there are."""
    note: str
    """Why the first one that failed did, without what was expected."""

    @property
    def is_right(self) -> bool:
        """Whether all passed."""
        return self.passed == self.total


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What the tests of one program may cost together."""

    seconds: float = 4.0
    """Seconds, of the clock and of the processor; tests that are programs themselves get as many again."""
    memory_mb: int = 512
    """Megabytes of memory."""

    def limits(self, seconds: float | None = None) -> Limits:
        """Return the limits of a run, which gets ``seconds`` of the clock."""
        left = max(self.seconds if seconds is None else seconds, _LEAST_SECONDS)
        return Limits(seconds=left, cpu_seconds=self.seconds, memory_mb=self.memory_mb, output_bytes=LONGEST_JSON)


class Tests(ABC):
    """Hidden tests of one task."""

    @abstractmethod
    def run(self, code: str, budget: Budget) -> Verdict:
        """Run the tests on ``code``.

        Raises:
            SandboxError: The sandbox cannot work.
            GraderError: The tests cannot.
        """

    def judge(self, code: str, budget: Budget) -> Verdict:
        """Return what the tests make of ``code``.

        Raises:
            GraderError: The sandbox or the tests cannot work; the code is neither right nor wrong.
        """
        if len(code) > LONGEST_CODE:
            return Verdict(0, len(self), f"the code has more than {LONGEST_CODE} characters")
        try:
            return self.run(code, budget)
        except SandboxError as error:
            raise GraderError(f"the sandbox cannot work: {error}") from error

    @abstractmethod
    def __len__(self) -> int:
        """Return how many there are."""


@dataclass(frozen=True, slots=True)
class Calls(Tests):
    """Calls of a function, with what it is to return."""

    name: str
    """Of the function."""
    cases: tuple[Case, ...]
    """The calls, at least one."""

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.cases)

    def run(self, code: str, budget: Budget) -> Verdict:
        """See :meth:`Tests.run`."""
        count = _Count(len(self))
        with count.until_lost(), _held(code, "", (self.name,), budget) as held:
            for case in self.cases:
                reply = held.call(self.name, [encode(item) for item in case.arguments], {})
                if "value" not in reply:
                    count.fail(_fault(reply))
                elif same(reply["value"], case.result):
                    count.succeed()
                else:
                    count.fail("a wrong value")
        return count.verdict()


@dataclass(frozen=True, slots=True)
class Asserts(Tests):
    """Tests that are programs themselves; they run in a process of their own, which never sees the tested code."""

    names: tuple[str, ...]
    """The functions that are tested."""
    tests: tuple[str, ...]
    """Statements; a test has passed when it raises nothing."""
    preamble: str = ""
    """Runs before the tested code and before ``setup``; the tested functions replace its own."""
    setup: str = ""
    """Runs before the tests, with the tested functions in place."""

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.tests)

    def run(self, code: str, budget: Budget) -> Verdict:
        """See :meth:`Tests.run`."""
        count = _Count(len(self))
        with count.until_lost(), _held(code, self.preamble, self.names, budget) as held:
            try:
                with _opened(_testers(os.getpid()), tester, budget) as session:
                    self._test(_Line(session, budget.seconds), held, count)
            except SandboxEnded as error:
                _blame(f"the tests ended: {error.run.status}", held)
        return count.verdict()

    def _test(self, tester: _Line, held: _Held, count: _Count) -> None:
        def ask(message: dict[str, Any]) -> dict[str, Any]:
            reply: dict[str, Any] = tester.ask(message)
            while "call" in reply:
                given = held.call(reply["call"], reply["arguments"], reply["keywords"])
                reply = tester.ask({key: given[key] for key in ("value", "error") if key in given})
            if "fault" in reply:
                raise GraderError(reply["fault"])
            if "broken" in reply:
                _blame(reply["broken"], held)
            return reply

        ask({"preamble": self.preamble, "setup": self.setup, "names": self.names, "tests": self.tests})
        for number in range(len(self)):
            reply = ask({"test": number})
            if reply["passed"]:
                count.succeed()
            else:
                count.fail(held.note or f"the test raised {reply['error']}")


@dataclass(frozen=True, slots=True)
class Streams(Tests):
    """Inputs of a program, with what it is to print."""

    cases: tuple[tuple[str, str], ...]
    """Standard input and output."""

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.cases)

    def run(self, code: str, budget: Budget) -> Verdict:
        """See :meth:`Tests.run`."""
        count = _Count(len(self))
        left = budget.seconds  # less what the runs take themselves: to wait for a sandbox costs nothing
        for given, expected in self.cases:
            if left <= 0:
                count.fail("no time was left")
                break
            run = shared().run(code, stdin=given, limits=budget.limits(left))
            left -= run.seconds
            if run.status != "ok":
                count.fail(f"the program ended: {run.status}")
            elif same_output(run.stdout, expected):
                count.succeed()
            else:
                count.fail("a wrong output")
        return count.verdict()


class _Lost(Exception):
    """The process of the tested code is of no more use."""


class _Count:
    """How many tests passed, and why the first one that failed did."""

    def __init__(self, total: int) -> None:
        self.total, self.passed, self.run, self.note = total, 0, 0, ""

    def succeed(self) -> None:
        self.run += 1
        self.passed += 1

    def fail(self, why: str) -> None:
        self.run += 1
        self.note = self.note or f"test {self.run} of {self.total}: {why}"[:300]

    @contextmanager
    def until_lost(self) -> Iterator[None]:
        try:
            yield
        except _Lost as error:
            self.fail(str(error))

    def verdict(self) -> Verdict:
        return Verdict(self.passed, self.total, self.note or f"all {self.total} tests passed")


class _Line:
    """Messages to a program in the sandbox; only the time that it takes itself counts."""

    def __init__(self, session: Session, seconds: float) -> None:
        self._session = session
        self._left = seconds

    def ask(self, message: dict[str, Any]) -> Any:
        """Return the reply to ``message``.

        Raises:
            SandboxEnded: There is none.
            DataError: It is no message.
        """
        start = time.monotonic()
        try:
            return read(self._session.request(write(message), seconds=max(self._left, _LEAST_SECONDS)))
        finally:
            self._left -= time.monotonic() - start


class _Held:
    """Tested code in its process."""

    def __init__(self, line: _Line) -> None:
        self._line = line
        self.calls = 0
        """Calls that were answered."""
        self.note = ""
        """What the last answer was, if no value."""

    def call(self, name: str, arguments: Sequence[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to a call; its encoded value is in it, or it has none.

        Raises:
            _Lost: There is none.
        """
        reply = self.ask({"name": name, "arguments": arguments, "keywords": keywords})
        self.calls += 1
        self.note = "" if "value" in reply else _fault(reply)
        return reply

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to ``message``, and to no other.

        Raises:
            _Lost: There is none.
        """
        # A reply that was written before its request cannot know this number: it never counts as another's.
        nonce = secrets.token_hex(8)
        try:
            reply = self._line.ask({**message, "nonce": nonce})
        except SandboxEnded as error:
            raise _Lost(f"the code ended: {error.run.status}") from None
        except DataError as error:
            raise _Lost(f"the code replied with {error}") from None
        if not isinstance(reply, dict) or reply.get("nonce") != nonce:
            raise _Lost("the code wrote to the channel of its replies")
        return reply


def _fault(reply: dict[str, Any]) -> str:
    """Say why ``reply`` has no value, in usual characters: the code may have written what it likes."""
    said = str(reply.get("reason") or f"raised {reply.get('error')}")[:200]
    return said.encode("utf-8", "replace").decode()


@contextmanager
def _held(code: str, preamble: str, names: Sequence[str], budget: Budget) -> Iterator[_Held]:
    """Give a process that has loaded ``code``.

    Raises:
        _Lost: It cannot be loaded.
    """
    with _opened(shared(), holder, budget) as session:
        held = _Held(_Line(session, budget.seconds))
        reply = held.ask({"code": code, "preamble": preamble, "names": list(names)})
        if "value" not in reply:
            raise _Lost(f"the code {_fault(reply)} when it was loaded")
        yield held


@cache
def _testers(process: int) -> SandboxPool:
    """Return the pool of the processes that test: who holds a sandbox of the shared pool never waits for another."""
    pool = SandboxPool()
    atexit.register(lambda: pool.close() if os.getpid() == process else None)
    return pool


def _opened(pool: SandboxPool, program: ModuleType, budget: Budget) -> Session:
    return pool.open(_bundle(program.__name__, str(program.__file__)), limits=budget.limits())


@cache
def _bundle(name: str, file: str) -> str:
    """Return a program of ours with the modules it imports, as one text."""
    modules = {module.__name__: Path(str(module.__file__)) for module in (data, holder)} | {name: Path(file)}
    sources = [(module, path.read_text(encoding="utf-8")) for module, path in modules.items()]
    return f"""
import sys, types
for name, source in {sources!r}:
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
module.main()
"""


def _blame(why: str, held: _Held) -> None:
    """Raise what went wrong in the tests: their own fault, unless a value of the tested code had reached them."""
    if held.calls:
        raise _Lost(why)
    raise GraderError(why)
