"""Episodes a second beside other libraries: ``python -m tetrathlon.benchmarks.speed --peers PYTHON --out FILE``.

Every contender plays in one process with scripted right answers, and each episode must pay 1. See docs/benchmark.md for
the virtual environment of the peers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tetrathlon.benchmarks import machine
from tetrathlon.benchmarks.contender import ContenderError
from tetrathlon.benchmarks.speed_comparison import Comparison, chosen
from tetrathlon.benchmarks.speed_contender import PROGRAMS, Contender


def _contender(name: str, program: str, **options: Any) -> Contender:
    return Contender(name, PROGRAMS / f"{program}.py", options)


COMPARISONS = (
    Comparison(
        "chain-sum",
        "a sum of 2 to 6 numbers of 1 to 4 digits, generated and graded",
        _contender("tetrathlon", "chain_sum_tetrathlon"),
        (_contender("gem", "chain_sum_gem"), _contender("reasoning-gym alone", "chain_sum_reasoning_gym")),
        target=1.2,
    ),
    Comparison(
        "chain-sum-seeded",
        "the same, every reset with a seed",
        _contender("tetrathlon", "chain_sum_tetrathlon", seeded=True),
        (_contender("gem", "chain_sum_gem", seeded=True),),
        target=1.2,
    ),
    Comparison(
        "word-problem",
        "a word problem of a file, answered '#### 42'",
        _contender("tetrathlon", "word_problem_tetrathlon", rows=20_000),
        (_contender("skyrl-gym", "word_problem_skyrl", rows=20_000),),
        target=1.0,
    ),
    Comparison(
        "word-problem-seeded",
        "the same, every reset with a seed; the peer has no seeds",
        _contender("tetrathlon", "word_problem_tetrathlon", rows=20_000, seeded=True),
        (_contender("skyrl-gym", "word_problem_skyrl", rows=20_000),),
        target=1.0,
    ),
    Comparison(
        "word-problem-worked",
        "the same without seeds, the answer after two lines of work",
        _contender("tetrathlon", "word_problem_tetrathlon", rows=20_000, worked=True),
        (_contender("skyrl-gym", "word_problem_skyrl", rows=20_000, worked=True),),
    ),
    Comparison(
        "latex",
        "an answer in LaTeX written another way: half numbers, tuples and intervals, half expressions",
        _contender("tetrathlon", "latex_tetrathlon", kind="mixed", rows=3_000),
        (
            _contender("gem", "latex_gem", kind="mixed", rows=3_000, use_mp=True),
            _contender("gem use_mp=False", "latex_gem", kind="mixed", rows=3_000, use_mp=False),
        ),
        target=6.0,
    ),
    Comparison(
        "latex-expressions",
        "the same with expressions alone: roots, multiples of pi, polynomials",
        _contender("tetrathlon", "latex_tetrathlon", kind="expressions", rows=3_000),
        (
            _contender("gem", "latex_gem", kind="expressions", rows=3_000, use_mp=True),
            _contender("gem use_mp=False", "latex_gem", kind="expressions", rows=3_000, use_mp=False),
        ),
    ),
    Comparison(
        "python",
        "a call of the Python tool and a check of what it printed",
        _contender("tetrathlon", "python_tetrathlon"),
        (
            _contender("gem", "python_gem"),
            _contender("skyrl-gym", "python_skyrl"),
            _contender("python -I -S -c", "python_scratch"),
        ),
        target=10.0,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Measure episodes a second beside other libraries, in turns, on this machine."""

    peers: Annotated[Path, tyro.conf.arg(metavar="PYTHON")]
    """The interpreter of the virtual environment that holds the peers."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Where the result goes, as JSON; default: only the table is printed."""
    rounds: int = 7
    """How often each contender has its turn; medians count."""
    seconds: float = 1.5
    """About how long a turn is."""
    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")] = ()
    """Names of comparisons; default: all."""

    def run(self, comparisons: tuple[Comparison, ...] = COMPARISONS) -> int:
        """Measure, write the result, print the table.

        Returns:
            0, or 1 where a comparison was refused.

        Raises:
            ValueError: An option is out of its range.
        """
        console, measured = Console(), []
        for comparison in chosen(comparisons, self.only, self.rounds, self.seconds):
            try:
                measured.append(comparison.run((sys.executable, str(self.peers)), self.rounds, self.seconds))
            except ContenderError as error:  # the others still count
                measured.append({"name": comparison.name, "task": comparison.task, "refused": str(error)})
            _show(measured[-1], console)
        result = {"command": self._command(), "made": machine.now(), "commit": machine.commit(), **machine.describe()}
        if self.out is not None:
            self.out.write_text(json.dumps({**result, "comparisons": measured}, indent=1) + "\n", "utf-8")
        return int(any("refused" in one for one in measured))

    def _command(self) -> str:
        """Return the command that repeats this run, without the paths of this machine."""
        only = f" --only {' '.join(self.only)}" if self.only else ""
        return (
            f"python -m tetrathlon.benchmarks.speed --peers PYTHON --out FILE --rounds {self.rounds} "
            f"--seconds {self.seconds:g}{only}"
        )


def _show(measured: Mapping[str, Any], console: Console) -> None:
    target = f" (asked: {measured['target']:g})" if measured.get("target") else ""
    console.print(Text(f"\n{measured['name']}: {measured['task']}{target}", style="bold"))
    if "refused" in measured:
        console.print(Text(f"refused: {measured['refused']}", style="yellow"))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True, min_width=20)
    for heading in ("episodes/s", "ratio", "rounds", "per CPU s", "CPU ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    for i, row in enumerate(measured["contenders"]):
        ratios = (f"{row['ratio']:.2f}", f"{min(row['ratios']):.2f} - {max(row['ratios']):.2f}") if i else ("", "")
        cpu = f"{row['cpu_ratio']:.2f}" if i else ""
        table.add_row(Text(row["name"]), f"{row['rate']:,.0f}", *ratios, f"{row['cpu_rate']:,.0f}", cpu)
    console.print(table)


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        return tyro.cli(Speed, prog="python -m tetrathlon.benchmarks.speed").run()
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
