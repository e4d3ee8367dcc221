"""The ladder in one picture: ``python -m tetrathlon.benchmarks.ladder_picture FILE --out PICTURE``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from tetrathlon.agents.statistics import stratified_bootstrap
from tetrathlon.benchmarks.pictures import COLOURS, figure

_SMOOTH, _EARLY = 5, 2


def draw(runs: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Draw each rung's success on the test split by seed, and how success in training rose where there was pay.

    Args:
        runs: What ``ladder`` wrote.
        out: A file whose ending says its kind (svg, png).
    """
    rungs = len({run["rung"] for run in runs})
    with figure(out, (9.3, 1.2 + 0.3 * rungs), "ladder") as drawn:
        left, right = drawn.subplots(1, 2)
        _tests(left, runs)
        _curves(right, runs)


def _tests(axes: Any, runs: Sequence[Mapping[str, Any]]) -> None:
    names = list(dict.fromkeys(run["rung"] for run in runs))
    for number, seed in enumerate(sorted({run["seed"] for run in runs})):
        own = [run for run in runs if run["seed"] == seed]
        at = [names.index(run["rung"]) + 0.2 * (number - 1) for run in own]
        rates = [run["tried"]["test"]["success"] for run in own]
        mean, low, high = (np.array([100 * rate[name] for rate in rates]) for name in ("mean", "low", "high"))
        colour = COLOURS[number % len(COLOURS)]
        axes.errorbar(mean, at, xerr=(mean - low, high - mean), fmt="o", ms=3, lw=1, color=colour, label=f"seed {seed}")
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(-2, 102)
    axes.set_xlabel("success on the test split in %, with 95 % interval")
    axes.legend(frameon=False, fontsize=7, loc="lower left")


def _curves(axes: Any, runs: Sequence[Mapping[str, Any]]) -> None:
    paid = [run for run in runs if any("success" in line for line in run["train"]) and "entropy" in run["train"][-1]]
    for number, name in enumerate(dict.fromkeys(run["rung"] for run in paid)):
        # Not of the first updates: where no episode has had its whole time yet, only successes have ended.
        curves = [[line["success"] for line in run["train"]][_EARLY:] for run in paid if run["rung"] == name]
        smooth = [np.convolve(curve, np.ones(_SMOOTH) / _SMOOTH, "valid") for curve in np.array(curves)]
        found = [stratified_bootstrap({name: list(each)}, statistic=np.mean) for each in np.stack(smooth, axis=1)]
        mean, low, high = (100 * np.array([getattr(each, part) for each in found]) for part in ("mean", "low", "high"))
        at = np.arange(len(mean)) + _EARLY + _SMOOTH
        colour = COLOURS[number % len(COLOURS)]
        axes.plot(at, mean, lw=1.2, color=colour, label=name)
        axes.fill_between(at, low, high, color=colour, alpha=0.2, lw=0)
    axes.set_ylim(-3, 103)
    axes.set_xlabel(f"updates; mean of {_SMOOTH}, over seeds with 95 % interval")
    axes.set_ylabel("success in training, sampled, in %")
    axes.legend(frameon=False, fontsize=7, loc="lower right")


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Draw what the ladder found."""

    file: Annotated[Path, tyro.conf.Positional]
    """What ``ladder`` wrote."""
    out: Path
    """The picture."""


def main(words: list[str]) -> int:
    """Draw what the command line asks for."""
    arguments = tyro.cli(Arguments, args=words, prog="python -m tetrathlon.benchmarks.ladder_picture")
    draw(json.loads(arguments.file.read_bytes())["runs"], arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
