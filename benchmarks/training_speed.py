"""One GRPO update of a language model beside TRL: ``python -m tetrathlon.benchmarks.training_speed --peers PYTHON``.

Both sample from the same prompts with the same model and learn from what they sampled, in turns. See docs/benchmark.md.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.table import Table

from tetrathlon.benchmarks import machine
from tetrathlon.benchmarks.contender import threads

_PROGRAMS = Path(__file__).parent / "assets" / "training"
_LR = 1e-6
TARGET = 0.5
"""Most of the processor seconds of the peer that are asked of ours."""


class UpdateError(Exception):
    """A contender did not start, or did not answer."""


class Updater:
    """A contender in a process of its own, which makes one update when it is told to; a context that ends it.

    Args:
        name: ``"tetrathlon"`` or ``"trl"``.
        python: The interpreter that it runs in.
        options: What its program reads.

    Raises:
        UpdateError: It does not start.
    """

    def __init__(self, name: str, python: Path, options: dict[str, Any]) -> None:
        self.name = name
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
        # Threads that wait must not burn the processor seconds that are measured.
        self._process = subprocess.Popen(
            [str(python.absolute()), str(_PROGRAMS / f"update_{name}.py"), json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={
                **os.environ,
                **threads(options["threads"]),
                "OMP_WAIT_POLICY": "PASSIVE",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
        )
        try:
            self.versions: dict[str, str] = self._answer()["versions"]
        except BaseException:  # ctrl-C too leaves no process behind
            self.close()
            raise

    def __enter__(self) -> Updater:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def update(self) -> dict[str, Any]:
        """Make an update; return its ``cpu_seconds``, ``seconds``, ``phases`` and ``tokens``.

        Raises:
            UpdateError: It fails.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer says why
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._log.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        if line := self._process.stdout.readline():
            return json.loads(line)
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        raise UpdateError(f"{self.name}: {lines[-1].strip() if lines else 'ended without a word'}")


@dataclass(frozen=True, kw_only=True)
class TrainingSpeed:
    """Measure the processor seconds of one GRPO update of SmolLM2-135M beside TRL, on this machine."""

    peers: Annotated[Path, tyro.conf.arg(metavar="PYTHON")]
    """The interpreter of the virtual environment that holds trl."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Where the result goes, as JSON; default: only the table is printed."""
    rounds: int = 3
    """Updates of each; medians count. One more comes before them and is not counted, with more rounds than one."""
    dtype: tuple[Literal["float32", "bfloat16"], ...] = ("float32",)
    """What both compute in."""
    prompts: int = 8
    """Prompts of an update."""
    group_size: int = 8
    """Completions of a prompt."""
    max_tokens: int = 48
    """Most tokens of a completion."""
    threads: int = 2
    """Threads of each."""

    def run(self) -> int:
        """Measure, write the result, print the table.

        Returns:
            0 where ours took at most half the processor seconds of the peer, else 1.

        Raises:
            UpdateError: A contender fails.
            ValueError: A number is below 1, or rows do not fill the peer's batches of 8.
        """
        for name in ("rounds", "prompts", "group_size", "max_tokens", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name.replace('_', '-')} must be at least 1, got {getattr(self, name)}")
        if self.prompts * self.group_size % 8:
            raise ValueError(
                f"--prompts times --group-size must be a multiple of 8, got {self.prompts} times {self.group_size}"
            )
        measured = [self._measure(dtype) for dtype in self.dtype]
        console = Console()
        for one in measured:
            _show(one, console)
        result = {"command": self._command(), "made": machine.now(), "commit": machine.commit(), **machine.describe()}
        result |= {"model": machine.source_of("smollm2"), "target": TARGET, "comparisons": measured}
        if self.out is not None:
            self.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
        return int(any(one["cpu_ratio"] > TARGET for one in measured))

    def _measure(self, dtype: str) -> dict[str, Any]:
        from tetrathlon.agents import smollm2

        options = {
            "model": str(smollm2()),
            "questions": questions(self.prompts),
            "group_size": self.group_size,
            "max_tokens": self.max_tokens,
            "threads": self.threads,
            "dtype": dtype,
            "lr": _LR,
            "seed": 0,
        }
        with ExitStack() as stack:
            pythons = {"tetrathlon": Path(sys.executable), "trl": self.peers}
            both = [stack.enter_context(Updater(name, python, options)) for name, python in pythons.items()]
            turns = []
            for _ in range(self.rounds + (self.rounds > 1)):
                turns.append(([one.update() for one in both], round(os.getloadavg()[0], 2)))
        turns = turns[self.rounds > 1 :]
        ours, peer = (_summary(one, [laps[i] for laps, _ in turns]) for i, one in enumerate(both))
        if ours["prompt_tokens"] != peer["prompt_tokens"]:
            raise UpdateError(
                f"prompts differ: ours have {ours['prompt_tokens']} tokens, TRL's {peer['prompt_tokens']}"
            )
        return {
            "dtype": dtype,
            "cpu_ratio": ours["cpu_seconds"] / peer["cpu_seconds"],
            "ratio": ours["seconds"] / peer["seconds"],
            "load": [load for _, load in turns],
            "contenders": [ours, peer],
        }

    def _command(self) -> str:
        """Return the command that repeats this run, without the paths of this machine."""
        return (
            f"python -m tetrathlon.benchmarks.training_speed --peers PYTHON --out FILE --rounds {self.rounds} "
            f"--dtype {' '.join(self.dtype)} --prompts {self.prompts} --group-size {self.group_size} "
            f"--max-tokens {self.max_tokens} --threads {self.threads}"
        )


def questions(count: int) -> list[tuple[str, int]]:
    """Return one-digit sums and what they are."""
    pairs = [(3 * i % 10, (7 * i + 4) % 10) for i in range(count)]
    return [(f"What is {a} + {b}? Explain it in a sentence.", a + b) for a, b in pairs]


def _summary(updater: Updater, laps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    def median(values: Sequence[float]) -> float:
        return round(statistics.median(values), 3)

    return {
        "name": updater.name,
        "versions": updater.versions,
        "cpu_seconds": median([lap["cpu_seconds"] for lap in laps]),
        "seconds": median([lap["seconds"] for lap in laps]),
        "phases": {name: median([lap["phases"][name] for lap in laps]) for name in laps[0]["phases"]},
        "tokens": median([lap["tokens"] for lap in laps]),
        "prompt_tokens": laps[0]["prompt_tokens"],
        "laps": list(laps),
    }


def _show(measured: dict[str, Any], console: Console) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    phases = list(measured["contenders"][0]["phases"])
    table.add_column(measured["dtype"], no_wrap=True)
    for heading in ("CPU s", "wall s", "tokens", *phases):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in measured["contenders"]:
        numbers = [one["cpu_seconds"], one["seconds"], one["tokens"], *(one["phases"][name] for name in phases)]
        table.add_row(one["name"], *(f"{number:,.1f}" for number in numbers))
    table.add_row("ratio", f"{measured['cpu_ratio']:.2f}", f"{measured['ratio']:.2f}")
    console.print(table)


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        return tyro.cli(TrainingSpeed, prog="python -m tetrathlon.benchmarks.training_speed").run()
    except (ValueError, OSError, UpdateError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
