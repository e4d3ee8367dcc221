"""An instance of a language task, and the split that it belongs to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SPLITS = ("train", "test")
_TEST_SHARE = 5  # one instance in five


@dataclass(frozen=True)
class Task:
    """The frozen private data of an instance; never written with an episode."""

    question: str
    """What the agent is asked, without worked examples and format; its content decides the split."""
    answer: str
    """The right answer as a grader takes it."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What else the grader needs."""
    id: str = field(init=False)
    """A name that depends on the question alone."""

    def __post_init__(self) -> None:
        digest = hashlib.sha256(self.question.encode("utf-8", "surrogatepass")).hexdigest()
        object.__setattr__(self, "id", digest[:16])

    @property
    def split(self) -> str:
        """The one split that this instance belongs to by its content."""
        return SPLITS[int(self.id, 16) % _TEST_SHARE == 0]
