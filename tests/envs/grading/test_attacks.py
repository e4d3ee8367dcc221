"""What attacks are paid and what honest answers are refused, and the page that says so."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.envs.grading.attacks import ITEMS, is_paid

PAGE = Path(__file__).parents[3] / "docs" / "grading.md"
REFUSED = {("x+y=5", r"\boxed{y = 5 - x}")}
"""Known: an equation that is solved for a letter is read as what the letter is."""


@pytest.mark.parametrize(("kind", "gold", "completion", "is_right"), ITEMS)
def test_item(kind: str, gold: str, completion: str, is_right: bool) -> None:
    assert is_paid(gold, completion) is (is_right and (gold, completion) not in REFUSED)


def test_the_page_has_the_numbers() -> None:
    tried: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for kind, gold, completion, is_right in ITEMS:
        tried[kind] += 1
        wrong[kind] += is_paid(gold, completion) is not is_right
    rows = re.findall(r"^\| ([a-z ]+) \| (attack|honest) \| (\d+) \| (\d+) \| (\d+) \|", PAGE.read_text(), re.MULTILINE)
    assert {kind: (int(number), int(ours)) for kind, _, number, ours, _ in rows} == {
        kind: (tried[kind], wrong[kind]) for kind in tried
    }
    attacks = sum(not is_right for *_, is_right in ITEMS)
    assert attacks >= 60
    assert len(ITEMS) - attacks >= 60
    assert len(set(ITEMS)) == len(ITEMS)
