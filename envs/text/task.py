"""An instance of a language task, and the split that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

SPLITS = ("train", "test")
_TEST_SHARE = 5  # one instance in five


@dataclass(frozen=True, slots=True)
class Task:
    """The frozen private data of an instance; never written with an episode."""

    question: str
    """What the agent is asked, without worked examples and format; its content decides the split."""
    answer: str
    """The right answer as a grader takes it."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What else the grader needs."""

    @property
    def id(self) -> str:
        """A name that depends on the question alone."""
        return _digest(self.question).hex()

    @property
    def split(self) -> str:
        """The one split that this instance belongs to by its content."""
        return SPLITS[int.from_bytes(_digest(self.question)) % _TEST_SHARE == 0]


def _digest(question: str) -> bytes:
    return sha256(question.encode("utf-8", "surrogatepass")).digest()[:8]
