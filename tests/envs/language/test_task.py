"""Tasks: their ids, and that nobody changes them."""

from __future__ import annotations

import dataclasses
import pickle
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrathlon.envs.language.task import Task


@given(st.text(st.characters(exclude_categories=[])))
def test_id_and_split_come_of_the_question(question: str) -> None:
    task, digest = Task(question, "1"), sha256(question.encode("utf-8", "surrogatepass")).digest()[:8]
    assert task.id == digest.hex()
    assert task.split == ("test" if int.from_bytes(digest, "big") % 5 == 0 else "train")


def test_tasks_are_equal_by_what_was_given_and_stay_so() -> None:
    task = Task("q", "1", {"a": 2})
    assert task == Task("q", "1", {"a": 2}) != Task("q", "1") and task != Task("q", "2", {"a": 2})
    assert repr(task) == "Task(question='q', answer='1', data={'a': 2})"
    assert pickle.loads(pickle.dumps(task)) == task and pickle.loads(pickle.dumps(task)).id == task.id
    other = dataclasses.replace(task, question="r")
    assert other.id == Task("r", "1").id != task.id and other.data == {"a": 2}
    assert Task("q", "1").data == {} and Task("q", "1").data is not Task("q", "1").data
    for name in ("question", "answer", "data", "id"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(task, name, "x")
