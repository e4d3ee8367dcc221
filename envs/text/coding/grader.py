"""Hidden tests on foreign code, which runs in the sandbox and never meets what it is expected to return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from tetrathlon.envs.grading.outputs import same_output
from tetrathlon.envs.rubric import GraderError
from tetrathlon.envs.sandbox import Limits, SandboxEnded, SandboxError, pool_of, shared
from tetrathlon.envs.text.coding import tester
from tetrathlon.envs.text.coding.data import LONGEST_JSON, DataError, encode, same
from tetrathlon.envs.text.coding.held import LEAST_SECONDS, Held, Line, Lost, fault, opened
from tetrathlon.envs.text.coding.tasks import Case

LONGEST_CODE = 100_000
"""Characters of code; longer code is wrong and is not run."""
_FEW = 4
"""Processes and threads of programs that may want more than one."""
_STACK_MB = 512
"""Programs for contests like to ask for so much stack, with ``threading.stack_size``, and need none of it."""
_TESTERS = "testers"
"""The pool of the processes that test: who holds a sandbox of the shared pool never waits for another of it."""


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

    def limits(self, *, seconds: float | None = None, processes: int = 1, stack_mb: int = 0) -> Limits:
        """Return the limits of a run.

        Args:
            seconds: Of the clock; None: all of them.
            processes: Processes and threads. With one, code does nothing while it is not called.
            stack_mb: Memory beyond the rest, for the stack of a thread.
        """
        return Limits(
            seconds=max(self.seconds if seconds is None else seconds, LEAST_SECONDS),
            cpu_seconds=self.seconds,
            memory_mb=self.memory_mb + stack_mb,
            processes=processes,
            output_bytes=LONGEST_JSON,
        )


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

        No code escapes a verdict by its own doing: it is wrong where the sandbox fails on it twice, and then works on
        a program that does nothing.

        Raises:
            GraderError: The sandbox or the tests cannot work; the code is neither right nor wrong.
        """
        if len(code) > LONGEST_CODE:
            return Verdict(0, len(self), f"the code has more than {LONGEST_CODE} characters")
        for _ in range(2):
            with suppress(SandboxError):
                return self.run(code, budget)
        try:
            self.run("", budget)
        except SandboxError as error:
            raise GraderError(f"the sandbox cannot work: {error}") from error
        return Verdict(0, len(self), "the sandbox fails on this code, and on no other")

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
        with count.until_lost(), Held(code, "", (self.name,), budget.limits()) as held:
            held.load()
            for case in self.cases:
                reply = held.call(self.name, [encode(item) for item in case.arguments], {})
                if "value" not in reply:
                    count.fail(fault(reply))
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
        with count.until_lost(), Held(code, self.preamble, self.names, budget.limits()) as held:
            try:
                self._test(held, count, budget)
            except _Broken as error:
                if error.kind == "fault" or not held.is_loaded or (error.kind == "end" and self._end_alone(budget)):
                    raise GraderError(str(error)) from error
                count.fail(str(error) if error.kind == "end" else "the tests cannot start with its values")
        return count.verdict()

    def _end_alone(self, budget: Budget) -> bool:
        """Tell whether the process of the tests ends too early where no code is that could make it."""
        try:
            self._test(_NoCode(), _Count(len(self)), budget)
        except _Broken as error:
            return error.kind == "end"
        return False

    def _test(self, held: Held | _NoCode, count: _Count, budget: Budget) -> None:
        """Run the tests. The tested code is loaded when they are ready or call it: nothing of it slows their start.

        Raises:
            _Broken: They cannot go on.
        """

        def ask(message: dict[str, Any]) -> dict[str, Any]:
            reply: dict[str, Any] = line.ask(message)
            while "call" in reply:
                given = held.call(reply["call"], reply["arguments"], reply["keywords"])
                reply = line.ask({key: given[key] for key in ("value", "error") if key in given})
            for kind in ("fault", "broken"):
                if kind in reply:
                    raise _Broken(kind, reply[kind])
            return reply

        try:
            with opened(pool_of(_TESTERS), tester, budget.limits(processes=_FEW)) as session:
                line = Line(session, budget.seconds)
                ask({"preamble": self.preamble, "setup": self.setup, "names": self.names, "tests": self.tests})
                held.load()
                for number in range(len(self)):
                    reply = ask({"test": number})
                    if reply["passed"]:
                        count.succeed()
                    else:
                        count.fail(held.note or f"the test raised {reply['error']}")
        except SandboxEnded as error:
            raise _Broken("end", f"the tests ended: {error.run.status}") from error
        except DataError as error:
            raise _Broken("end", f"the tests said {error}") from error


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
            limits = budget.limits(seconds=left, processes=_FEW, stack_mb=_STACK_MB)
            run = shared().run(code, stdin=given, limits=limits)
            left -= run.seconds
            if run.status != "ok":
                count.fail(f"the program ended: {run.status}")
            elif same_output(run.stdout, expected):
                count.succeed()
            else:
                count.fail("a wrong output")
        return count.verdict()


class _Broken(Exception):
    """Tests that are programs cannot go on.

    Args:
        kind: ``fault``: they ask for what cannot be done; ``broken``: they raised while they were set up; ``end``:
            their process is over.
        why: What happened.
    """

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


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
        except Lost as error:
            self.fail(str(error))

    def verdict(self) -> Verdict:
        return Verdict(self.passed, self.total, self.note or f"all {self.total} tests passed")


class _NoCode:
    """Stands where tested code would be: its functions do nothing."""

    note = ""

    def load(self) -> None:
        """There is nothing to load."""

    def call(self, name: str, arguments: Sequence[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        """Return the reply of a function that returns None."""
        return {"value": None}
