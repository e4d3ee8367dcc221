"""Two runs of one suite beside each other: who is better, where, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tetrathlon.benchmarks.files import load_results
from tetrathlon.benchmarks.results import draws, interval


def compare(first: Path, second: Path, policies: tuple[str, str] | None = None) -> list[dict[str, Any]]:
    """Compare what two runs of a suite found.

    An entry's success is as uncertain as in :func:`~tetrathlon.benchmarks.results.aggregate`: its rates are drawn,
    those of the two runs apart from each other. The probability of improvement is the share of draws in which the
    second rate is larger, ties half, and its mean over entries (after Agarwal et al., 2021, section 4.3, where runs are
    drawn).

    Args:
        first: Folder of a run, or its ``results.json``.
        second: Of another one, of the same suite in the same version.
        policies: Whom to look at in the first and in the second; None: each policy that is in both.

    Returns:
        For each pair of policies ``policies``, ``entries`` (``name``, ``first``, ``second``, ``difference`` with its
        interval, ``improvement``) and ``overall``, the means of the last two over the entries.

    Raises:
        ValueError: There is no result, or the runs are of different suites, versions or entries, or have nothing in
            common.
    """
    one, two = map(_loaded, (first, second))
    for what in ("suite", "version"):
        if one[what] != two[what]:
            raise ValueError(
                f"runs of different suites are never compared: {what} {one[what]!r} in {first}, {two[what]!r} in "
                f"{second}"
            )
    rows = [{(row["name"], row["policy"]): row for row in told["entries"]} for told in (one, two)]
    names = [dict.fromkeys(policy for _, policy in of) for of in rows]
    if policies is None:
        pairs = [(policy, policy) for policy in names[0] if policy in names[1]]
        if not pairs:
            raise ValueError(
                f"the runs have no policy in common ({', '.join(names[0])}; {', '.join(names[1])}); name two of them "
                "by --policies"
            )
    else:
        for policy, known, path in zip(policies, names, (first, second), strict=True):
            if policy not in known:
                raise ValueError(f"policy {policy!r} is not in {path} (there are {', '.join(known)})")
        pairs = [policies]
    return [_pair(rows[0], rows[1], *pair) for pair in pairs]


def _loaded(path: Path) -> dict[str, Any]:
    file = path / "results.json" if path.is_dir() else path
    if not file.exists():
        raise ValueError(f"there is no run in {path}: no {file.name}")
    return load_results(file)


def _pair(one: Mapping[Any, Any], two: Mapping[Any, Any], first: str, second: str) -> dict[str, Any]:
    shared = [name for name, policy in one if policy == first and (name, second) in two]
    entries, every = [], []
    for name in shared:
        own, other = one[name, first], two[name, second]
        if own["kwargs"] != other["kwargs"] or own["env"] != other["env"]:
            raise ValueError(f"entry {name!r} is another one in the two runs: {own['kwargs']} and {other['kwargs']}")
        if own["success"]["mean"] is None or other["success"]["mean"] is None:
            continue
        # Of one policy in two runs the draws must not be the same ones.
        gain = draws(other, seed=1) - draws(own, seed=0)
        every.append(gain)
        point = other["success"]["mean"] - own["success"]["mean"]
        entries.append(
            {
                "name": name,
                "first": own["success"],
                "second": other["success"],
                "difference": interval(point, gain),
                "improvement": _improvement(gain),
            }
        )
    if not entries:
        raise ValueError(f"{first} and {second} have no entry in common")
    mean = np.mean(every, axis=0)
    return {
        "policies": [first, second],
        "entries": entries,
        "overall": {
            "difference": interval(float(np.mean([entry["difference"]["mean"] for entry in entries])), mean),
            "improvement": float(np.mean([entry["improvement"] for entry in entries])),
        },
    }


def _improvement(gain: np.ndarray) -> float:
    return float(np.mean(gain > 0) + np.mean(gain == 0) / 2)


def show_comparison(found: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print what :func:`compare` found.

    Args:
        found: That.
        console: Where to.
    """
    for pair in found:
        first, second = pair["policies"]
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for name in ("environment", "first", "second", "second less first", "improvement"):
            table.add_column(name, justify="left" if name == "environment" else "right")
        for entry in pair["entries"]:
            rates = (f"{100 * entry[of]['mean']:.0f}" for of in ("first", "second"))
            table.add_row(Text(entry["name"]), *rates, _told(entry["difference"]), f"{entry['improvement']:.0%}")
        table.add_section()
        overall = pair["overall"]
        table.add_row("mean", "", "", _told(overall["difference"]), f"{overall['improvement']:.0%}", style="bold")
        console.print(Text(first if first == second else f"{first}, then {second}", style="bold"))
        console.print(table)
    console.print(Text("success in %, with 95 % intervals of the difference; improvement: the chance of a larger rate"))


def _told(spread: Mapping[str, float]) -> str:
    return f"{100 * spread['mean']:+.0f} [{100 * spread['low']:+.0f}, {100 * spread['high']:+.0f}]"
