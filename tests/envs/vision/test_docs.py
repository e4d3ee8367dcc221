"""The examples of docs/vision.md: they run, and print what is written beside them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tetrathlon.envs import check

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "vision.md").read_text(encoding="utf-8")
FIRST, RESIZED, OWN = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_a_task_is_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    exec(FIRST, {})
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("(64, 64, 3) How many ")
    assert "full True 0.16666666666666666" in said and said[-1] == "0.0"


def test_boxes_of_a_resized_picture_map_back(capsys: pytest.CaptureFixture[str]) -> None:
    exec(RESIZED, {})
    assert capsys.readouterr().out.split("\n")[0] == "(1148, 840)"
    exec(RESIZED, {})
    assert capsys.readouterr().out.split("\n")[1].startswith("0.9988")


def test_a_task_of_ones_own_keeps_the_contract(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    (tmp_path / "widest_of_docs.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    import widest_of_docs  # type: ignore[import-not-found]

    env = widest_of_docs.Widest()
    assert len(check(env)) > 12
    for variant, right in (("full", 1.0), ("masked", 1.0), ("twin", 1.0)):
        env.reset(seed=3, options={"variant": variant})
        assert env.step(env.expert_action())[1] == right
    paid = 0.0
    for seed in range(300):
        prompt = env.reset(seed=seed)[0]["text"]
        paid += env.step(env.blind_action(prompt))[1]
    assert 0.4 < paid / 300 < 0.6
