"""Functions to be written, with the examples that are shown and the tests that are not."""

from __future__ import annotations

import copy
import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tetrathlon.envs.text.coding import (
    tasks_lists,
    tasks_numbers,
    tasks_structures,
    tasks_texts,
)
from tetrathlon.envs.text.coding.data import encode, same
from tetrathlon.envs.text.coding.draft import Draft, Draw, Family

FAMILIES: Mapping[str, Family] = {
    family.__name__: family
    for module in (tasks_lists, tasks_texts, tasks_numbers, tasks_structures)
    for family in module.FAMILIES
}
"""Kinds of functions by name."""
HIDDEN = 12
"""Hidden tests of a function."""
_MOST_TRIES = 1_000


@dataclass(frozen=True, slots=True)
class Case:
    """One call and what it returns."""

    arguments: tuple[Any, ...]
    result: Any


@dataclass(frozen=True, slots=True)
class Job:
    """A function to be written, with its cases; all of it follows from the draft."""

    draft: Draft
    shown: tuple[Case, ...]
    """Stand in the question."""
    hidden: tuple[Case, ...]
    """Decide; none of them is shown."""

    @property
    def question(self) -> str:
        """What is asked."""
        text = f"Write this Python function:\n\ndef {self.draft.head}\n\n{self.draft.spec}"
        if not self.shown:
            return text
        name = self.draft.name
        lines = [f"{name}({', '.join(map(repr, case.arguments))}) returns {case.result!r}" for case in self.shown]
        return "\n".join([text, "", "Examples:", *lines])


def make_job(draft: Draft, examples: int) -> Job:
    """Return ``draft`` with its cases, which are drawn from a stream that its specification alone seeds.

    So one specification is one instance: it stands in one split, with the same tests wherever it comes up. No result
    is that of more than half of the hidden tests, and no argument that of all of them, so neither a constant nor an
    echo passes.

    Args:
        draft: The function.
        examples: How many cases are shown.
    """
    digest = hashlib.sha256(f"{draft.head}\n{draft.spec}".encode()).digest()
    draw = Draw(np.random.default_rng(int.from_bytes(digest[:8], "big")))
    function = draft.reference()
    seen: set[str] = set()

    def case(arguments: tuple[Any, ...]) -> Case | None:
        if (key := repr(arguments)) in seen:
            return None
        seen.add(key)
        return Case(arguments, function(*copy.deepcopy(arguments)))

    hidden = [made for arguments in draft.edges if (made := case(arguments)) is not None]
    results = Counter(repr(made.result) for made in hidden)
    shown: list[Case] = []
    tries = 0
    while len(shown) < examples or len(hidden) < HIDDEN or max(results.values()) > len(hidden) // 2 or _echoes(hidden):
        tries += 1
        if tries > _MOST_TRIES:
            raise RuntimeError(f"{draft.name} has too few cases: {draft.spec}")
        if (made := case(draft.draw(draw))) is None:
            continue
        result = repr(made.result)
        if len(shown) < examples:
            if tries > _MOST_TRIES // 4 or all(repr(other.result) != result for other in shown):
                shown.append(made)
        elif results[result] < HIDDEN // 3:
            results[result] += 1
            hidden.append(made)
    return Job(draft, tuple(shown), tuple(hidden))


def _echoes(hidden: list[Case]) -> bool:
    places = range(len(hidden[0].arguments))
    return any(all(same(encode(case.arguments[place]), case.result) for case in hidden) for place in places)
