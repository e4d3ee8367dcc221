"""LetterCount: the word list, the balance of counts, grading."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from tetrathlon.envs.text.letter_count import LetterCount, _pairs_by_count, words


def test_the_word_list() -> None:
    assert len(words()) == 1_737
    assert list(words()) == sorted(set(words()))
    assert all(re.fullmatch("[a-z]{4,12}", word) for word in words())
    assert "strawberry" in words()


def test_the_stated_number_of_instances() -> None:
    assert [len(pairs) for pairs in _pairs_by_count(4, 12)] == [36_277, 7_728, 952, 205]


@pytest.mark.parametrize("split", ["train", "test"])
def test_counts_are_balanced_and_right(split: str) -> None:
    env = LetterCount(split=split)
    counts: Counter[int] = Counter()
    for index in range(2_000):
        prompt, _ = env.reset(options={"index": index})
        match = re.match(r"How many times does the letter '(.)' appear in '(\w+)'\?\n", prompt)
        assert match is not None
        count = match.group(2).count(match.group(1))
        assert env.step(rf"\boxed{{{count}}}")[1] == 1.0
        counts[count] += 1
    best = counts.most_common(1)[0][1] / 2_000
    assert best < 0.45
    assert counts[0] > 200 and counts[1] > 500 and counts[2] > 400 and counts[3] > 150


def test_words_of_a_length() -> None:
    env = LetterCount(shortest=9, longest=9)
    for index in range(50):
        assert re.search(r"'\w{9}'\?", env.reset(options={"index": index})[0])


@pytest.mark.parametrize(
    "kwargs", [{"shortest": 3}, {"longest": 13}, {"shortest": 8, "longest": 7}, {"shortest": 4.5}, {"longest": True}]
)
def test_arguments_out_of_range(kwargs: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="shortest"):
        LetterCount(**kwargs)


@pytest.mark.parametrize(
    ("reply", "reward"), [("3", 1.0), ("There are 3.", 1.0), ("2 or 3", 0.0), ("three", 0.0), ("33", 0.0), ("-3", 0.0)]
)
def test_plain_replies(reply: str, reward: float) -> None:
    from tetrathlon.envs.language.task import Task

    env = LetterCount(answer_format="plain")
    env.reset(options={"task": Task("How many times does the letter 'r' appear in 'strawberry'?", "3")})
    assert env.step(reply)[1] == reward
