"""Two runs beside each other: what is better is said to be, by how much, and how sure that is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tetrathlon.benchmarks.bench import run
from tetrathlon.benchmarks.compare import compare
from tetrathlon.benchmarks.suites import Entry, Suite
from tetrathlon.cli import main

SUITE = Suite(
    name="two",
    version=1,
    policies=("random", "expert"),
    entries=tuple(
        Entry(name=name, env=f"tetrathlon/{env}", kwargs=kwargs, episodes=40)
        for name, env, kwargs in (
            ("sums", "Arithmetic-v0", {"answer_format": "plain"}),
            ("copy", "Symbolic-v0", {"answer_format": "plain", "operations": ["copy"]}),
        )
    ),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(SUITE, out=tmp_path_factory.mktemp("runs") / "one")


def changed(folder: Path, out: Path, **wins: int) -> Path:
    """Copy a run whose expert solved so many of an entry."""
    results = json.loads((folder / "results.json").read_text())
    for row in results["entries"]:
        if row["policy"] == "expert" and (won := wins.get(row["name"])) is not None:
            row["success"]["mean"] = won / 40
            row["strata"][0]["successes"] = won
    out.mkdir()
    (out / "results.json").write_text(json.dumps(results))
    return out


def test_a_run_is_no_better_than_itself(folder: Path) -> None:
    for pair in compare(folder, folder):
        for entry in pair["entries"]:
            assert entry["difference"]["mean"] == 0 and entry["improvement"] == pytest.approx(0.5, abs=0.03)
            assert entry["difference"]["low"] < 0 < entry["difference"]["high"]  # 40 episodes are no certainty
        assert pair["overall"]["difference"]["mean"] == 0


def test_a_worse_run_is(folder: Path, tmp_path: Path) -> None:
    (random, expert) = compare(folder, changed(folder, tmp_path / "b", sums=30))
    assert random["overall"]["improvement"] == pytest.approx(0.5, abs=0.03)
    sums, copy = expert["entries"]
    assert sums["difference"]["mean"] == pytest.approx(-0.25)
    assert sums["difference"]["high"] < -0.08 and sums["improvement"] < 0.01
    assert copy["improvement"] == pytest.approx(0.5, abs=0.03)
    assert expert["overall"]["difference"]["mean"] == pytest.approx(-0.125)
    assert expert["overall"]["improvement"] == pytest.approx((sums["improvement"] + copy["improvement"]) / 2)
    (turned,) = compare(tmp_path / "b", folder, ("expert", "expert"))
    assert turned["entries"][0]["improvement"] == pytest.approx(1 - sums["improvement"], abs=0.01)


def test_one_policy_is_compared_with_another(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "compare", str(folder), str(folder), "--policies", "random", "expert", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["policies"] == ["random", "expert"] and found["overall"]["improvement"] > 0.99
    assert main(["bench", "compare", str(folder), str(folder / "results.json")]) == 0
    said = capsys.readouterr().out
    assert "sums" in said and "+0 [" in said


def test_what_is_not_the_same_is_never_compared(folder: Path, tmp_path: Path) -> None:
    def other(what: str, value: Any) -> Path:
        results = json.loads((folder / "results.json").read_text())
        path = tmp_path / f"{what}.json"
        path.write_text(json.dumps({**results, what: value}))
        return path

    with pytest.raises(ValueError, match=r"different suites are never compared: version 1 in .*, 2 in "):
        compare(folder, other("version", 2))
    with pytest.raises(ValueError, match=r"suite 'two' in .*, 'three' in "):
        compare(folder, other("suite", "three"))
    with pytest.raises(ValueError, match=r"policy 'bc:1' is not in .* \(there are random, expert\)"):
        compare(folder, folder, ("random", "bc:1"))
    rows = json.loads((folder / "results.json").read_text())["entries"]
    with pytest.raises(ValueError, match="entry 'sums' is another one in the two runs"):
        compare(folder, other("entries", [{**row, "kwargs": {}} for row in rows]))


def test_wrong_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "compare", str(folder), str(folder), "--policies", "random"]) == 2
    assert "--policies names one of each run, two in all" in capsys.readouterr().err
    assert main(["bench", "compare", str(folder), str(folder / "nothing")]) == 2
    assert "nothing" in capsys.readouterr().err
