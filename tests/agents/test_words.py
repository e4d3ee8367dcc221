"""Words as numbers."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from tetrathlon.agents.words import MOST_WORDS, words


def test_a_word_has_one_number_wherever_it_stands() -> None:
    found = words(["Push the red cube!", "the RED one", "", "!red"])
    assert found.shape == (4, 5) and found.dtype == np.int64
    the, red, mark = found[0, 1], found[0, 2], found[0, 4]
    assert found[1].tolist()[:2] == [the, red] and found[1, 3:].tolist() == [0, 0]
    assert not found[2].any() and found[3].tolist() == [mark, red, 0, 0, 0]
    assert len(set(found[found != 0].tolist())) == 6  # push the red cube ! one


def test_the_number_is_the_same_in_every_process() -> None:
    code = "from tetrathlon.agents.words import words; print(words(['red'])[0, 0])"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(other.stdout) == words(["red"])[0, 0] == -6681078847286810355


def test_odd_texts_are_read_too() -> None:
    found = words(["", " \n\t", "x " * (MOST_WORDS + 9), "\ud800 \x00 日本", "a" * 100_000])
    assert found.shape == (5, MOST_WORDS) and not found[:2].any() and found[2].all()
    assert (found[3] != 0).sum() == 3 and (found[4] != 0).sum() == 1
    assert words([]).shape == (0, 1)
