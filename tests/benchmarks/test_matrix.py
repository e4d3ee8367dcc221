"""The matrix: every cell is what its algorithm takes; a run goes on, tells its cells, and makes a page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tetrathlon.algos import ALGORITHMS
from tetrathlon.benchmarks import matrix
from tetrathlon.benchmarks.matrix_page import FAMILIES
from tetrathlon.cli import main

QUIET = Console(quiet=True)


def small(name: str) -> matrix.Experiment:
    cell = matrix.CELLS[name]
    options = {**cell.options, "groups": 4} if "groups" in cell.options else {**cell.options, "episodes": 32}
    return replace(cell, updates=2, test_every=1, test_episodes=26, options=options)


def test_every_family_is_in_every_domain() -> None:
    domains = {"text", "tools", "vision", "robots"}
    assert set(matrix.CELLS) == {f"{domain}-{family}" for domain in domains for family in FAMILIES}
    for domain in domains:  # from one start, on one task
        row = [cell for name, cell in matrix.CELLS.items() if name.startswith(f"{domain}-")]
        assert len({(cell.env, cell.policy, str(cell.arguments), str(cell.kwargs)) for cell in row}) == 1
    for cell in matrix.CELLS.values():
        ALGORITHMS[cell.algorithm].Options(**cell.options)


def test_a_run_goes_on_and_makes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = {name: small(name) for name in ("text-grpo", "text-offline", "text-dagger")}
    monkeypatch.setattr(matrix, "CELLS", cells)
    matrix.run(tmp_path, cells=["text-grpo"], seeds=(0, 1), console=QUIET)
    first = json.loads((tmp_path / "results.json").read_text())
    assert (first["suite"], first["version"]) == ("matrix", 1)
    with pytest.raises(FileExistsError, match="go on with it by --resume"):
        matrix.run(tmp_path, console=QUIET)
    matrix.run(tmp_path, seeds=(0,), resume=True, console=QUIET)
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["runs"]["text-grpo"] == first["runs"]["text-grpo"]  # what is done is not done again
    told = {(cell["domain"], cell["family"]): cell for cell in found["cells"]}
    assert set(told) == {("text", "grpo"), ("text", "dagger"), ("text", "offline")}
    grpo, dagger, offline = (told["text", name] for name in ("grpo", "dagger", "offline"))
    assert (grpo["seeds"], dagger["seeds"]) == (2, 1)
    assert grpo["episodes"] == 2 * 4 * 8 and offline["episodes"] == 32 and offline["labels"] == 0
    assert dagger["labels"] == dagger["episodes"] == 64  # one label a question: DAgger is cloning there
    before = [run["before"]["success"] for run in found["runs"]["text-grpo"].values()]
    after = [run["after"]["success"] for run in found["runs"]["text-grpo"].values()]
    assert grpo["before"]["mean"] == pytest.approx(sum(before) / 2)
    assert grpo["gain"]["mean"] == pytest.approx((sum(after) - sum(before)) / 2)
    assert grpo["gain"]["low"] <= grpo["gain"]["mean"] <= grpo["gain"]["high"] and offline["gain"]["low"] is None
    page, lines = ((tmp_path / name).read_text() for name in ("report.html", "report.md"))
    assert page.count("<svg") == 1 and "offline RL" in page and "IQL: gain" in page and "| text |" in lines
    found["runs"]["text-grpo"]["1"]["recipe"] = "of other options"
    (tmp_path / "results.json").write_text(json.dumps({**found, "cells": []}))
    matrix.run(tmp_path, seeds=(0,), resume=True, console=QUIET)
    again = json.loads((tmp_path / "results.json").read_text())["cells"]
    assert [cell["seeds"] for cell in again] == [1, 1, 1] and again[1:] == found["cells"][1:]
    (tmp_path / "results.json").write_text(json.dumps({**found, "version": 2}))
    with pytest.raises(ValueError, match="is not of the suite matrix in version 1"):
        matrix.run(tmp_path, resume=True, console=QUIET)


def test_what_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=r"the matrix has no cell 'text-x' .*text-grpo"):
        matrix.run(tmp_path, cells=["text-x"], console=QUIET)
    with pytest.raises(ValueError, match="the matrix has no domain 'music'"):
        matrix.run(tmp_path, domains=["music"], console=QUIET)
    with pytest.raises(ValueError, match=r"no cell of \['text-grpo'\] is in the domains \['robots'\]"):
        matrix.run(tmp_path, cells=["text-grpo"], domains=["robots"], console=QUIET)
    assert main(["bench", "--suite", "matrix", "--policies", "random"]) == 2
    assert "takes no --policies" in capsys.readouterr().err
    assert main(["bench", "--cells", "text-grpo"]) == 2
    assert "--cells are those of the suite matrix" in capsys.readouterr().err
