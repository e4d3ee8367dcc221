"""The expert's draft: what instructions ask of a reply, and a reply written from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from tetrathlon.envs.text.instructions.units import sentences, words

_USUAL_WORDS = (14, 40)
_LEAST_IN_A_ROW = 3  # the shortest sentence of the phrase book


@cache
def phrases() -> Mapping[str, Any]:
    """Return the phrase book: English topics with related words, and by language topics and sentences."""
    return json.loads(files(__package__).joinpath("assets", "phrases.json").read_text(encoding="utf-8"))


@dataclass
class Line:
    """A line of a draft."""

    prefix: str = ""
    """What stands before its sentences."""
    said: list[str] = field(default_factory=list)
    """Its sentences."""
    is_open: bool = True
    """Whether sentences may be added."""
    suffix: str = ""
    """What stands after them."""

    def __str__(self) -> str:
        return self.prefix + " ".join(self.said) + self.suffix


@dataclass
class Draft:
    """A reply before it is written; instructions shape it, :meth:`write` makes a text of it."""

    topic: str
    """The topic in ``language``; every reply names it."""
    request: str
    """The sentence that asked for the reply."""
    language: str = "en"
    """Code of the language that it is written in."""
    head: list[list[Line]] = field(default_factory=list)
    """Blocks before the body."""
    body: list[list[Line]] = field(default_factory=lambda: [[Line()]])
    """Blocks of lines."""
    tail: list[list[Line]] = field(default_factory=list)
    """Blocks after the body."""
    musts: list[str] = field(default_factory=list)
    """Sentences that stand somewhere."""
    borrow: list[Callable[[str], str]] = field(default_factory=list)
    """Each makes a sentence for ``musts`` out of one of the phrase book."""
    least_words: int = 0
    most_words: int | None = None
    least_sentences: int = 0
    most_sentences: int | None = None
    finish: list[Callable[[str], str]] = field(default_factory=list)
    """What is done to the whole text in the end, in this order."""

    def write(self, rng: np.random.Generator) -> str:
        """Return a reply; whether it follows every instruction is for the caller to check."""
        book = phrases()["languages"][self.language]
        pool = [book["sentences"][index] for index in rng.permutation(len(book["sentences"])).tolist()]
        musts = [*self.musts, *(change(pool.pop()) for change in self.borrow)]
        if not self._names_topic(" ".join(musts)):
            musts.insert(0, book["mentions"][int(rng.integers(len(book["mentions"])))].format(self.topic))
        open_lines = [line for block in self._blocks() for line in block if line.is_open]
        if open_lines:
            for number, sentence in enumerate(musts):
                open_lines[number % len(open_lines)].said.append(sentence)
            self._fill(open_lines, pool, rng)
        text = self._text()
        for change in self.finish:
            text = change(text)
        return text

    def _names_topic(self, text: str) -> bool:
        fixed = " ".join(str(line) for block in self._blocks() for line in block)
        return any(self.topic in part.split() for part in (text, fixed))

    def _blocks(self) -> list[list[Line]]:
        return [*self.head, *self.body, *self.tail]

    def _text(self) -> str:
        return "\n\n".join("\n".join(map(str, block)) for block in self._blocks())

    def _fill(self, open_lines: list[Line], pool: list[str], rng: np.random.Generator) -> None:
        """Add sentences until no open line is empty and the numbers of words and sentences are right."""
        empty = [line for line in open_lines if not line.said]
        now = len(words(self._text()))
        goal = self._word_goal(rng)
        wanted = max(goal - now, 0)
        count = max(len(empty), round(wanted / 7), 1 if wanted >= _LEAST_IN_A_ROW else 0)
        if self.least_sentences or self.most_sentences is not None:
            count = self._sentence_goal(rng) - len(sentences(self._text()))
        lines = [*empty, *(open_lines[int(rng.integers(len(open_lines)))] for _ in range(count - len(empty)))]
        sizes = {sentence: len(words(sentence)) for sentence in pool}
        fixed = self.least_words > 0 or self.most_words is not None
        for left, line in zip(range(len(lines), 0, -1), lines, strict=True):
            if not pool:
                return
            want = wanted / left if fixed else 3 + 8 * rng.random()
            if left > 1:  # lengths differ as in a text that somebody wrote, and only the last one must fit
                want = max(_LEAST_IN_A_ROW, want + 4 * (rng.random() - 0.5))
            best = min(pool, key=lambda sentence: abs(sizes[sentence] - want))
            pool.remove(best)
            line.said.append(best)
            wanted -= sizes[best]

    def _word_goal(self, rng: np.random.Generator) -> int:
        low, high = self.least_words, self.most_words
        if high is None:
            return low + int(rng.integers(9)) if low else int(rng.integers(*_USUAL_WORDS))
        return int(rng.integers(max(low, high - 8), high + 1))

    def _sentence_goal(self, rng: np.random.Generator) -> int:
        low, high = self.least_sentences, self.most_sentences
        high = low + 2 if high is None else high
        return int(rng.integers(max(low, high - 3, 1), high + 1))
