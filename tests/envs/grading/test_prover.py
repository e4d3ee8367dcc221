"""The process that proves expressions equal."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tetrathlon.envs.grading import algebra, prover
from tetrathlon.envs.grading.gold import read_gold, same_answer
from tetrathlon.envs.grading.prover import PROVER, Prover, classified, spelled
from tetrathlon.envs.grading.values import Expression
from tetrathlon.envs.rubric import GraderError

_SLOW = ["(a+b+c+d+h+1)^{40}", "(a+b+c+d+h+1)^{38}(a^2+2a(b+c+d+h+1)+(b+c+d+h+1)^2)"]
"""Equal, but it takes for ever to expand them."""


@pytest.fixture(autouse=True)
def fresh_answers() -> Iterator[None]:
    prover._asked.cache_clear()
    yield
    prover._asked.cache_clear()


def _children(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _wait_for_end(*pids: int) -> bool:
    end = time.monotonic() + 20
    while time.monotonic() < end and any(map(_is_alive, pids)):
        time.sleep(0.02)
    return not any(map(_is_alive, pids))


def test_a_late_comparison_is_wrong_and_the_next_one_works() -> None:
    assert PROVER.ask(["x+x", "2x"], 5.0) == [0, 0]
    assert PROVER.pid is not None
    process = PROVER.pid
    (before,) = _children(PROVER.pid)
    assert PROVER.ask([spelled(latex) for latex in _SLOW], 0.5) is None
    assert _wait_for_end(before)
    (after,) = _children(PROVER.pid)
    assert after != before
    assert PROVER.ask(["x+x", "2x", "3x"], 5.0) == [0, 0, 1]
    assert PROVER.pid == process  # nothing was imported again


def test_a_killed_process_is_started_again() -> None:
    PROVER.ask(["x"], 5.0)
    assert PROVER.pid is not None
    (worker,) = _children(PROVER.pid)
    killed = PROVER.pid
    os.kill(killed, signal.SIGKILL)
    assert PROVER.ask(["x+x", "2x"], 5.0) == [0, 0]
    assert PROVER.pid != killed
    assert _wait_for_end(worker)


def test_a_prover_that_cannot_start_is_an_error_and_no_score(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gold = read_gold(r"\sqrt[3]{2}")
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit(3)")
    monkeypatch.setattr(prover, "_PROGRAM", broken)
    monkeypatch.setattr(prover, "PROVER", Prover())
    with pytest.raises(GraderError, match="ended twice"):
        same_answer(r"\sqrt[3]{3}", gold)
    monkeypatch.setattr(prover.sys, "executable", str(tmp_path / "missing"))
    with pytest.raises(GraderError, match="cannot be started"):
        same_answer(r"\sqrt[3]{5}", gold)


def _grade_in_child(queue: multiprocessing.Queue[list[bool]]) -> None:
    gold = read_gold(r"\sqrt[3]{16}")
    queue.put([same_answer(r"2\sqrt[3]{2}", gold), same_answer(r"3\sqrt[3]{2}", gold)])
    PROVER.close()


def test_a_forked_process_has_a_prover_of_its_own() -> None:
    PROVER.ask(["x"], 5.0)
    mine = PROVER.pid
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_grade_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == [True, False]
    child.join(timeout=60)
    assert child.exitcode == 0
    assert PROVER.pid == mine
    assert PROVER.ask(["x+x+x", "3x"], 5.0) == [0, 0]


def test_no_process_outlives_its_parent() -> None:
    program = (
        "import os, signal\n"
        "from tetrathlon.envs.grading.prover import PROVER\n"
        "PROVER.ask(['x'], 5.0)\n"
        "print(PROVER.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    assert _wait_for_end(int(done.stdout))


@pytest.mark.parametrize(
    "latex",
    [
        "__import__('os').system('true')",
        r"\operatorname{eval}(x)",
        r"x \approx 5",
        r"x \ne 5",
        r"\int_0^1 x dx",
        "9^{9^{9^{9}}}",
        "2^{99999}",
        "10000!",
        "3!!",
        "x" * 500,
        "(" * 30 + "x" + ")" * 30,
        "f(2x)",
        "1 000",
        "12_3",
        "x'",
        "{2}{3}",
        "2^3^4^5",
        r"\text{x}",
        r"\Gamma(10^9)",
        r"\exp(\exp(\exp(\exp(100))))",
        r"e^{e^{e^{100}}}",
        r"\binom{9^{9}}{9^{8}}",
        r"\binom{100000}{2}",
        r"\binom{n}{99999}",
        r"\sqrt[9^{9^9}]{7}",
        r"(((9^{99})^{99})^{99})^{99}",
        r"\frac{1}{2^{1999}}^{1999}",
        "x/2y",
    ],
)
def test_wild_expressions_are_not_asked(latex: str) -> None:
    assert spelled(latex) is None
    assert classified([Expression(latex), Expression("x")]) is None


@pytest.mark.parametrize(
    ("latex", "words"),
    [
        (r"3/4\pi", r"(3/4) \cdot \pi"),
        ("1/2x^2", r"(1/2) \cdot x^2"),
        (r"3/4 \cdot x", r"3/4 \cdot x"),
        ("5x/3", "5x/3"),
        (r"\binom52", r"\binom{5}{2}"),
        (r"\frac{e\sqrt2}2", r"\frac{e\sqrt{2}}{2}"),
        (r"\frac{\frac12}3", r"\frac{\frac{1}{2}}{3}"),
        (r"\sin x/\cos x", r"\sin(x)/\cos x"),
        ("(x^{40})^{40}", "(x^{40})^{40}"),
    ],
)
def test_what_the_parser_is_asked(latex: str, words: str) -> None:
    assert spelled(latex) == words


class _Busy(algebra.Worker):
    """A worker on a machine that gives it half a second of the processor, and no answer."""

    def __init__(self) -> None:
        self._answer, self.held = os.pipe()
        self.read, self._ask = os.pipe()
        self.looks: list[float] = []

    def _processor(self) -> float:
        self.looks.append(time.monotonic())
        return 0.0 if len(self.looks) == 1 else 0.1


def test_a_worker_with_half_the_processor_is_late_after_twice_its_time() -> None:
    worker, started = _Busy(), time.monotonic()
    assert worker.answer(b"[]\n", 0.2) == {"late": True}
    assert 0.4 <= time.monotonic() - started < 3.0
    assert len(worker.looks) >= 4  # it is looked at all the time


def test_products_are_not_read_as_sums() -> None:
    assert PROVER.ask([spelled("2(3)"), ["6", "1"], spelled("(2)(3)"), ["5", "1"]], 5.0) == [0, 0, 0, 1]
    assert PROVER.ask([spelled(r"2\frac{1}{2}x"), spelled("2.5x"), spelled("x")], 5.0) == [0, 0, 1]
    for product in (r"\frac{4}{2}(3)", r"\frac{4}{2}\frac{6}{2}", r"\frac{\frac{4}{2}(3)}{1}", r"\frac42\sqrt9"):
        assert PROVER.ask([spelled(product), ["6", "1"], ["5", "1"]], 5.0) == [0, 0, 1], product
    assert PROVER.ask([spelled(r"\pi(3)"), spelled(r"3\pi")], 5.0) == [0, 0]


def test_what_is_nearly_equal_is_not_equal() -> None:
    close = [r"\sqrt{2}", ["141421356237309504880168872421", "100000000000000000000000000000"]]
    assert PROVER.ask(close, 5.0) == [0, 1]
    assert PROVER.ask([r"e^{\pi}-\pi", ["20", "1"]], 5.0) == [0, 1]
    assert PROVER.ask([r"\sqrt{x^2}", "x"], 5.0) == [0, 1]
    assert PROVER.ask([r"0.5\pi", r"\frac{\pi}{2}"], 5.0) == [0, 0]
