"""Curves of experiments: ``python -m tetrathlon.benchmarks.learning_picture FOLDER --out FILE``."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from tetrathlon.benchmarks.pictures import COLOURS, figure

_COLUMNS = 3


def draw(experiments: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Draw one field an experiment: success in training as it went, and on the test split with its interval.

    Args:
        experiments: What ``learning`` wrote.
        out: A file whose ending says its kind (svg, png).
    """
    rows = -(-len(experiments) // _COLUMNS)
    with figure(out, (3.1 * _COLUMNS, 2.3 * rows), "learning") as drawn:
        fields = drawn.subplots(rows, _COLUMNS, squeeze=False, sharey=True)
        for axes in fields.flat[len(experiments) :]:
            axes.set_visible(False)
        for axes, found in zip(fields.flat, experiments, strict=False):
            _field(axes, found)


def _field(axes: Any, found: Mapping[str, Any]) -> None:
    for number, run in enumerate(found["runs"]):
        colour = COLOURS[number % len(COLOURS)]
        curve = run["train"]["success"]
        percent = [math.nan if value is None else 100 * value for value in curve]  # no episode ended there
        axes.plot(range(1, len(curve) + 1), percent, lw=0.8, alpha=0.6, color=colour)
        at = [look["updates"] for look in run["test"]]
        mean, low, high = ([100 * look[name] for look in run["test"]] for name in ("success", "low", "high"))
        errors = [[m - a for m, a in zip(mean, low, strict=True)], [b - m for m, b in zip(mean, high, strict=True)]]
        axes.errorbar(at, mean, errors, fmt="o", ms=3, lw=0.8, color=colour, label=f"seed {run['seed']}")
    aim = found["experiment"]["aim"]
    if aim is not None:
        axes.axhline(100 * aim, color="#6b7280", lw=0.8, ls=":")
    axes.set_title(found["experiment"]["name"], fontsize=9, loc="left")
    axes.set_ylim(-3, 103)
    axes.set_xlabel("updates")
    axes.set_ylabel("success in %")
    axes.legend(frameon=False, fontsize=7, loc="lower right")


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Draw lines: success in training; points: the test split with 95 % intervals; dotted: the aim."""

    folder: Annotated[Path, tyro.conf.Positional]
    """Where ``learning`` put its JSON files."""
    out: Path
    """The picture."""
    names: tuple[str, ...] = ()
    """Which experiments, in order; default: all that are there."""


def main(words: list[str]) -> int:
    """Draw what the command line asks for."""
    arguments = tyro.cli(Arguments, args=words, prog="python -m tetrathlon.benchmarks.learning_picture")
    paths = [arguments.folder / f"{name}.json" for name in arguments.names] or sorted(arguments.folder.glob("*.json"))
    if not paths:
        print(f"{arguments.folder} holds no JSON file", file=sys.stderr)
        return 2
    draw([json.loads(path.read_bytes()) for path in paths], arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
