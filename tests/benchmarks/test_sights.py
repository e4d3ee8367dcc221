"""Starts that see: what somebody clumsy answers, and weights that are kept."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tetrathlon.benchmarks import sights
from tetrathlon.benchmarks.sights import SIGHTS, demonstrations, near, near_miss
from tetrathlon.envs.registry import make

QUICK = replace(SIGHTS["corner"], shown=8, steps=2, clumsy_steps=1)


def test_near_misses_are_beside_what_is_right() -> None:
    rng = random.Random(0)
    assert {near_miss("A2", "ABC", rng) for _ in range(50)} == {"B2", "C2"}
    assert {near_miss("49", "0123456789", rng) for _ in range(100)} == {"39", "59", "48", "40"}


def test_who_is_clumsy_is_wrong_beside_the_expert() -> None:
    right, wrong = ([e.steps[0].action for e in demonstrations(QUICK, 3, share)] for share in (0.0, 1.0))
    assert [said.translate(str.maketrans("AB", "BA")) for said in right] == wrong
    mixed = [e.steps[0].action for e in demonstrations(replace(QUICK, shown=200), 3, 0.4)]
    expert = [e.steps[0].action for e in demonstrations(replace(QUICK, shown=200), 3)]
    assert 0.5 < sum(a == b for a, b in zip(mixed, expert, strict=True)) / 200 < 0.7


def test_all_words_of_the_task_are_read_as_one() -> None:
    for sight in SIGHTS.values():
        policy = sights.model(sight)
        for kwargs in (sight.kwargs, {**sight.kwargs, **sight.easier}):
            text = make(sight.env, **kwargs).reset(seed=0)[0]["text"]
            assert len(policy.tokenizer.encode(text)) < 12


def test_weights_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SIGHTS, "quick", QUICK)
    first = near("quick", 5, str(tmp_path))
    monkeypatch.setattr(sights, "_cloned", lambda *_: pytest.fail("it was trained again"))
    second = near("quick", 5, str(tmp_path))
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)
