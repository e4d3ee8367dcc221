"""Texts that were read in a picture."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tetrathlon.envs.vision.texts import LONGEST_GOLD, cer, same_text


@pytest.mark.parametrize(
    ("found", "gold", "is_same"),
    [
        ("A-17", "A-17", True),
        (" A-17\n", "A-17", True),
        ("Cafe\u0301", "Café", True),
        ("Café", "Cafe\u0301", True),
        ("\u1112\u1161\u11ab", "한", True),
        ("a-17", "A-17", False),
        ("A- 17", "A-17", False),
        ("A-17 or A-71", "A-17", False),
        ("A-17\nA-71", "A-17", False),
        ("A-１７", "A-17", False),
        ("A-١٧", "A-17", False),
        ("А-17", "A-17", False),  # Cyrillic
        ("A−17", "A-17", False),
        ("A-17\u200b", "A-17", False),
        ("A-l7", "A-17", False),
        ("¹7", "17", False),
        ("", "A-17", False),
        (None, "A-17", False),
        ("0A-17", "A-17", False),
        ("17.0", "17", False),
        ("\ud800", "A-17", False),
    ],
)
def test_same_text(found: str | None, gold: str, is_same: bool) -> None:
    assert same_text(found, gold) is is_same
    assert (cer(found, gold) == 0.0) is is_same


@pytest.mark.parametrize(
    ("found", "gold", "rate"),
    [
        ("kitten", "sitting", 3 / 7),
        ("A-71", "A-17", 0.5),
        ("A-1", "A-17", 0.25),
        ("A-177", "A-17", 0.25),
        ("", "A-17", 1.0),
        (None, "A-17", 1.0),
        ("xyz!", "A-17", 1.0),
        ("A-17 A-71 A-11", "A-17", 1.0),
        ("A-1７", "A-17", 0.25),
        ("Cafe\u0301", "Cafe", 0.25),
    ],
)
def test_cer(found: str | None, gold: str, rate: float) -> None:
    assert cer(found, gold) == pytest.approx(rate)


def edits(a: str, b: str) -> int:
    """The textbook table."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def test_cer_is_that_of_the_textbook() -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        a, b = ("".join(rng.choice(list("abc"), rng.integers(1, 90))) for _ in range(2))
        assert cer(a, b) == pytest.approx(min(edits(a, b) / len(b), 1.0))


@pytest.mark.parametrize("found", ["9" * 10_000_000, "\u0301\u0316" * 5_000_000, " " * 10_000_000, "\u0344" * 20])
def test_long_answers_are_fast(found: str) -> None:
    begun = time.process_time()
    assert not same_text(found, "A-17")
    assert cer(found, "A-17") == 1.0
    assert time.process_time() - begun < 1


def test_a_long_text_is_fast() -> None:
    gold = "lorem ipsum " * (LONGEST_GOLD // 12)
    begun = time.process_time()
    assert cer("x" + gold * 2, gold) == 1.0
    assert cer(gold[1:], gold) == pytest.approx(1 / len(gold.strip()))
    assert time.process_time() - begun < 2


@pytest.mark.parametrize("gold", ["", " \n", "a" * (LONGEST_GOLD + 1)])
def test_a_wrong_gold_text_is_refused(gold: str) -> None:
    with pytest.raises(ValueError, match="a gold text has 1 to 10,000 characters"):
        same_text("a", gold)
    with pytest.raises(ValueError, match="a gold text has"):
        cer("a", gold)
