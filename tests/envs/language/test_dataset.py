"""Reading tasks that are given: files, splits, faults in them, data sets of the hub."""

from __future__ import annotations

import json
import sys
import types
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from tetrathlon.envs.language.dataset import Dataset, MissingField, Row
from tetrathlon.envs.language.task import Task


def make_task(row: Row) -> Task:
    answer = row.text("answer")
    if answer == "?":
        raise ValueError(f"the answer {answer!r} cannot be read")
    return Task(row.text("question", "problem"), answer)


def write(path: Path, rows: Iterable[Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def numbered(numbers: Iterable[int]) -> list[dict[str, Any]]:
    return [{"question": f"What is {n} + 1?", "answer": str(n + 1)} for n in numbers]


def questions(dataset: Dataset, split: str) -> list[str]:
    return [task.question for task in dataset.splits[split]]


def test_one_file_is_split_by_content(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", numbered(range(1_000)))
    dataset = Dataset.read(path, make_task)
    assert {task.split for task in dataset.splits["train"]} == {"train"}
    assert {task.split for task in dataset.splits["test"]} == {"test"}
    assert 150 < len(dataset.splits["test"]) < 250
    assert sum(map(len, dataset.splits.values())) == 1_000
    backwards = Dataset.read(write(tmp_path / "b.jsonl", reversed(numbered(range(1_000)))), make_task)
    assert set(questions(backwards, "test")) == set(questions(dataset, "test"))


def test_a_question_that_comes_twice_counts_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", numbered(range(10)) * 3)
    assert sum(map(len, Dataset.read(path, make_task).splits.values())) == 10
    own = Dataset.read({"train": path}, make_task)
    assert len(own.splits["train"]) == 10 and own.splits["test"] == ()


def test_own_splits_count_and_what_stands_in_both_is_test(tmp_path: Path) -> None:
    train = write(tmp_path / "a.jsonl", [*numbered(range(20)), {"question": " WHAT is  20 + 1? ", "answer": "21"}])
    test = write(tmp_path / "b.jsonl", numbered(range(17, 30)))
    with pytest.warns(UserWarning, match="questions that stand in train and in test too are left out of train: 4"):
        dataset = Dataset.read({"test": test, "train": train}, make_task)
    assert questions(dataset, "train") == [f"What is {n} + 1?" for n in range(17)]
    assert questions(dataset, "test") == [f"What is {n} + 1?" for n in range(17, 30)]


def test_splits_by_content_part_spellings_of_one_question_too(tmp_path: Path) -> None:
    spellings = ("what is {}?", "What  is {}?", "WHAT IS\n{}?", "What is\t{}?")
    rows = [{"question": spelling.format(n), "answer": "1"} for n in range(50) for spelling in spellings]
    with pytest.warns(UserWarning, match=r"stand in train and in test too .*: \d+"):
        dataset = Dataset.read(write(tmp_path / "a.jsonl", rows), make_task)
    contents = {
        split: {" ".join(question.lower().split()) for question in questions(dataset, split)}
        for split in ("train", "test")
    }
    assert not contents["train"] & contents["test"]
    assert len(contents["train"] | contents["test"]) == 50


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"question": "q", "answer": ', r"a\.jsonl, line 3: this is no JSON"),
        (b"question,answer", r"a\.jsonl, line 3: this is no JSON"),
        (b"[" * 100_000, r"a\.jsonl, line 3: this is no JSON"),
        (b'{"question": "\xff"}', r"a\.jsonl, line 3: this is no JSON"),
        (b'["q", "1"]', r"a\.jsonl, line 3: a line must hold a JSON object"),
        (b"17", r"a\.jsonl, line 3: a line must hold a JSON object"),
        (b'{"prompt": "q", "gold": "1"}', r"line 3: there is no field 'answer'; the fields are 'prompt', 'gold'"),
        (b'{"prompt": "q", "answer": "1"}', r"no field 'question' or 'problem'; the fields are 'prompt', 'answer'"),
        (b"{}", r"line 3: there is no field 'answer'; the fields are none"),
        (b'{"question": "q", "answer": "?"}', r"line 3: the answer '\?' cannot be read; skip_unreadable=True"),
        (b'{"question": "q", "answer": null}', r"line 3: the field 'answer' must hold text or a number, got 'None'"),
        (b'{"question": "q", "answer": [1]}', r"line 3: the field 'answer' must hold text or a number, got '\[1\]'"),
        (b'{"question": "q", "answer": true}', r"line 3: the field 'answer' must hold text or a number, got 'True'"),
        (b'{"question": "  ", "answer": "1"}', r"line 3: the field 'question' or 'problem' must hold text"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: bytes, said: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"question": "q1", "answer": "1"}\n\n' + line + b"\n")
    with pytest.raises(ValueError, match=said):
        Dataset.read(str(path), make_task)


def test_unreadable_rows_are_left_out_on_demand_and_counted(tmp_path: Path) -> None:
    rows = [*numbered(range(8)), {"question": "q", "answer": "?"}, {"question": "r", "answer": None}]
    path = write(tmp_path / "a.jsonl", rows)
    with pytest.warns(
        UserWarning, match=r"left out: 2; the first is .*a\.jsonl, line 9: the answer '\?' cannot be read"
    ):
        dataset = Dataset.read({"train": path}, make_task, skip_unreadable=True)
    assert len(dataset.splits["train"]) == 8
    with pytest.raises(MissingField, match="line 1"):
        Dataset.read(write(tmp_path / "b.jsonl", [{"text": "q"}]), make_task, skip_unreadable=True)
    with pytest.warns(UserWarning, match="left out: 1"), pytest.raises(ValueError, match="no row is left"):
        Dataset.read(write(tmp_path / "c.jsonl", rows[8:9]), make_task, skip_unreadable=True)


def test_empty_files_and_missing_ones(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n \n")
    full = write(tmp_path / "a.jsonl", numbered(range(3)))
    with pytest.raises(ValueError, match="the data are empty"):
        Dataset.read(empty, make_task)
    with pytest.raises(ValueError, match="the data are empty for the split 'test'"):
        Dataset.read({"train": full, "test": str(empty)}, make_task)
    for missing in ("nothing.jsonl", tmp_path / "b", "/nowhere/at all", {"train": "gone"}):
        with pytest.raises(FileNotFoundError, match=r"there is no file '.*'; give the path of a JSONL file"):
            Dataset.read(missing, make_task)


@pytest.mark.parametrize(
    ("data", "kwargs", "said"),
    [
        ({"validation": "a.jsonl"}, {}, "data by split must name train and test, got .'validation'."),
        ({}, {}, "data by split must name train and test"),
        (3, {}, "data must be a path, paths by split, or the name of a data set, got 3"),
        ("a.jsonl", {"config": "main"}, "config and splits belong to a data set of the hub"),
        ("a.jsonl", {"splits": {"test": "test"}}, "config and splits belong to a data set of the hub"),
        ("some/set", {"splits": {"dev": "test"}}, "splits must say what is taken for train and for test"),
    ],
)
def test_arguments_that_do_not_fit(data: Any, kwargs: Mapping[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Dataset.read(data, make_task, **kwargs)


def test_lines_end_where_json_says(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = ['{"question": "one\u2028two\u0085three", "answer": 1}', '{"question": "four", "answer": 2.5}']
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(rows).encode())
    tasks = Dataset.read({"train": path}, make_task).splits["train"]
    assert [(task.question, task.answer) for task in tasks] == [("one\u2028two\u0085three", "1"), ("four", "2.5")]


def test_what_was_read_is_not_read_again_until_the_file_changes(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", numbered(range(5)))
    first = Dataset.read(path, make_task)
    assert Dataset.read(path, make_task) is first
    write(tmp_path / "a.jsonl", numbered(range(50)))
    assert sum(map(len, Dataset.read(path, make_task).splits.values())) == 50


def test_a_split_without_tasks_is_refused(tmp_path: Path) -> None:
    dataset = Dataset.read({"test": write(tmp_path / "a.jsonl", numbered(range(5)))}, make_task)
    dataset.require("test")
    with pytest.raises(ValueError, match="no tasks of the split 'train'; they have 0 of train and 5 of test"):
        dataset.require("train")


class Hub:
    """Stands for the package ``datasets``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.sets: dict[tuple[str, ...], dict[str, list[dict[str, Any]]]] = {}
        module = types.ModuleType("datasets")
        vars(module)["load_dataset"] = self.load
        monkeypatch.setitem(sys.modules, "datasets", module)

    def load(self, *names: str) -> dict[str, list[dict[str, Any]]]:
        self.calls.append(names)
        if names not in self.sets:
            raise ConnectionError(f"Couldn't reach {names[0]!r} on the Hub")
        return self.sets[names]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    return Hub(monkeypatch)


def test_a_data_set_of_the_hub(hub: Hub) -> None:
    hub.sets["org/one", "main"] = {"train": numbered(range(6)), "test": numbered(range(6, 9)), "dev": numbered([77])}
    dataset = Dataset.read("org/one", make_task, config="main")
    assert [len(dataset.splits[split]) for split in ("train", "test")] == [6, 3]
    assert Dataset.read("org/one", make_task, config="main") is dataset
    assert hub.calls == [("org/one", "main")]
    dev = Dataset.read("org/one", make_task, config="main", splits={"test": "dev"})
    assert questions(dev, "test") == ["What is 77 + 1?"] and not dev.splits["train"]


def test_a_data_set_with_train_only_is_split_by_content_and_one_with_test_only_is_test(hub: Hub) -> None:
    hub.sets["org/two",] = {"train": numbered(range(200))}
    hub.sets["org/three",] = {"test": numbered(range(200))}
    two, three = Dataset.read("org/two", make_task), Dataset.read("org/three", make_task)
    assert 20 < len(two.splits["test"]) < 60 and {task.split for task in two.splits["test"]} == {"test"}
    assert len(three.splits["test"]) == 200 and not three.splits["train"]
    all_of_it = Dataset.read("org/two", make_task, splits={"test": "train"})
    assert len(all_of_it.splits["test"]) == 200


def test_faults_of_the_hub(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match=r"'org/gone' .*ConnectionError: Couldn't reach.*the path of a JSONL file"):
        Dataset.read("org/gone", make_task)
    hub.sets["org/four",] = {"train": [*numbered([1]), {"question": "q", "answer": "?"}], "dev": []}
    with pytest.raises(ValueError, match=r"org/four \(train\), row 1: the answer '\?' cannot be read"):
        Dataset.read("org/four", make_task)
    with pytest.raises(ValueError, match=r"has the splits \['train', 'dev'\], but \{'test': 'test'\} were asked for"):
        Dataset.read("org/four", make_task, splits={"test": "test"})
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(gym.error.DependencyNotInstalled, match="needs the package datasets: pip install datasets"):
        Dataset.read("org/five", make_task)


def test_nothing_is_warned_of_where_nothing_is_wrong(tmp_path: Path) -> None:
    train, test = (write(tmp_path / f"{i}.jsonl", numbered(range(9 * i, 9 * i + 9))) for i in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Dataset.read({"train": train, "test": test}, make_task)
