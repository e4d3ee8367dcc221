"""An instance of a language task, and the split that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from tetrathlon.envs.splits import split_of


@dataclass(frozen=True, slots=True, init=False)
class Task:
    """The frozen private data of an instance; never written with an episode.

    Args:
        question: See below, like the others.
        answer: As above.
        data: None: nothing.
    """

    question: str
    """What the agent is asked, without worked examples and format; its content decides the split."""
    answer: str
    """The right answer as a grader takes it."""
    data: Mapping[str, Any]
    """What else the grader needs."""
    id: str = field(init=False, compare=False, repr=False)
    """A name that depends on the question alone."""

    def __init__(self, question: str, answer: str, data: Mapping[str, Any] | None = None) -> None:
        # A task is made for every episode, and its slots are the fast way around "frozen".
        _set_question(self, question)
        _set_answer(self, answer)
        _set_data(self, {} if data is None else data)
        # Kept, since the split, the examples and the info all ask for it.
        _set_id(self, sha256(question.encode("utf-8", "surrogatepass")).hexdigest()[:16])

    @property
    def split(self) -> str:
        """The one split that this instance belongs to by its content."""
        return split_of(int(self.id, 16))


_set_question, _set_answer, _set_data, _set_id = (
    vars(Task)[name].__set__ for name in ("question", "answer", "data", "id")
)
