"""Tasks that are given, not generated: by rows of a file or of a data set of the Hugging Face hub."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import gymnasium as gym

from tetrathlon.envs.language.task import Task
from tetrathlon.envs.splits import SPLITS

_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_FILE_ENDINGS = (".jsonl", ".json", ".ndjson")
_LONGEST_SHOWN = 200


class MissingField(ValueError):
    """A row has none of the fields that were looked for."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the data."""

    fields: Mapping[str, Any]
    """What stands in it, by name."""
    place: str
    """Where it stands: the file and the line, or the data set, its split and the row."""

    def get(self, *names: str) -> Any:
        """Return the first of the fields ``names`` that holds something; None where all of them are null.

        Raises:
            MissingField: There is none of them.
        """
        present = [name for name in names if name in self.fields]
        if not present:
            raise MissingField(
                f"{self.place}: there is no field {' or '.join(map(repr, names))}; "
                f"the fields are {', '.join(map(repr, self.fields)) or 'none'}"
            )
        return next((self.fields[name] for name in present if self.fields[name] is not None), None)

    def text(self, *names: str) -> str:
        """Return the first of the fields ``names`` as stripped text; a number is written out.

        Raises:
            MissingField: There is none of them.
            ValueError: It holds no text and no number, or nothing but blanks.
        """
        value = self.get(*names)
        if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
            shown = str(value)[:_LONGEST_SHOWN]
            raise ValueError(f"the field {' or '.join(map(repr, names))} must hold text or a number, got {shown!r}")
        return str(value).strip()


MakeTask = Callable[[Row], Task]
"""Makes a task of a row; ValueError says that nobody can be graded on it."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Tasks by split."""

    splits: Mapping[str, tuple[Task, ...]]
    """``train`` and ``test``; they share no task."""

    @classmethod
    def of(cls, tasks: Iterable[Task]) -> Dataset:
        """Split ``tasks`` by their content; a question that comes twice counts once."""
        each = {task.id: task for task in tasks}.values()
        return cls({split: tuple(task for task in each if task.split == split) for split in SPLITS})

    @classmethod
    def read(
        cls,
        data: str | Path | Mapping[str, str | Path],
        make_task: MakeTask,
        *,
        config: str | None = None,
        splits: Mapping[str, str] | None = None,
        skip_unreadable: bool = False,
    ) -> Dataset:
        """Read rows and make tasks of them; what was read once in a process is not read again.

        Where the data have splits of their own those count: a question that stands in both is kept in ``test`` and
        left out of ``train``, with a warning. One file, and a data set of the hub whose only split is ``train``, is
        split by content, as :meth:`of` does.

        Args:
            data: Path of a JSONL file (one JSON object a line); or paths by split, ``{"train": ..., "test": ...}``,
                one of them or both; or the name of a data set of the Hugging Face hub (``openai/gsm8k``).
            make_task: Makes a task of a row. Give a function of a module, or a frozen dataclass with ``__call__``:
                equal ones share what was read.
            config: The configuration of a data set of the hub (``main``).
            splits: Which split of a data set of the hub is taken for ``train``, and which for ``test``; None: those of
                these names.
            skip_unreadable: Whether rows that nobody can be graded on are left out, with a warning that counts them.

        Raises:
            ValueError: A line is no JSON object, a field is missing, or ``make_task`` refused a row (the message names
                the place); there are no rows; or an argument is none of those above.
            FileNotFoundError: There is no such file.
            gymnasium.error.DependencyNotInstalled: A data set of the hub is named, and the package ``datasets`` is
                missing.
            RuntimeError: The data set of the hub could not be loaded.
        """
        if isinstance(data, Mapping):
            if not data or not set(data) <= set(SPLITS):
                raise ValueError(f"data by split must name {' and '.join(SPLITS)}, got {list(data)}")
            sources: tuple[tuple[str, str], ...] = tuple((split, str(data[split])) for split in SPLITS if split in data)
        elif isinstance(data, str | Path):
            sources = (("", str(data)),)
        else:
            raise ValueError(f"data must be a path, paths by split, or the name of a data set, got {data!r}")
        is_file = isinstance(data, Mapping | Path) or _is_file(str(data))
        if is_file:
            if config is not None or splits is not None:
                raise ValueError(f"config and splits belong to a data set of the hub, and {data!r} is a file")
            stamps = tuple(_stamp(path) for _, path in sources)
            return _read_files(sources, stamps, make_task, skip_unreadable)
        wanted = None if splits is None else tuple(splits.items())
        if wanted is not None and not {name for name, _ in wanted} <= set(SPLITS):
            raise ValueError(f"splits must say what is taken for {' and for '.join(SPLITS)}, got {splits!r}")
        return _read_hub(str(data), config, wanted, make_task, skip_unreadable)

    def require(self, split: str) -> None:
        """Refuse a split without tasks.

        Raises:
            ValueError: ``split`` has none.
        """
        if not self.splits[split]:
            sizes = " and ".join(f"{len(tasks)} of {name}" for name, tasks in self.splits.items())
            filled = next((name for name, tasks in self.splits.items() if tasks), "")
            hint = f"; say split={filled!r}" if filled else ""
            raise ValueError(f"the data have no tasks of the split {split!r}; they have {sizes}{hint}")


def _is_file(data: str) -> bool:
    return data.endswith(_FILE_ENDINGS) or not _HUB_NAME.fullmatch(data) or Path(data).is_file()


def _stamp(path: str) -> tuple[int, ...]:
    """Return what another file, and the same file written anew, does not share."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path!r}; give the path of a JSONL file")
    stat = Path(path).stat()
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=8)
def _read_files(
    sources: tuple[tuple[str, str], ...], stamps: tuple[tuple[int, ...], ...], make_task: MakeTask, skip: bool
) -> Dataset:
    return _built({split: _rows_of(path) for split, path in sources}, make_task, skip)


@lru_cache(maxsize=8)
def _read_hub(
    name: str, config: str | None, splits: tuple[tuple[str, str], ...] | None, make_task: MakeTask, skip: bool
) -> Dataset:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise gym.error.DependencyNotInstalled(
            f"the data set {name!r} of the Hugging Face hub needs the package datasets: pip install datasets "
            "(or give the path of a JSONL file)"
        ) from error
    try:
        loaded = load_dataset(name) if config is None else load_dataset(name, config)
    except Exception as error:  # the package, its hub client and a data set's own files raise whatever they like
        said = f"{type(error).__name__}: {error}"[:1000]
        raise RuntimeError(
            f"the data set {name!r} (config {config!r}) could not be loaded ({said}); look at the name and the config, "
            "or without a network give the path of a JSONL file"
        ) from error
    if splits is None:
        splits = tuple((split, split) for split in SPLITS if split in loaded)
    if not splits or not {own for _, own in splits} <= set(loaded):
        asked = dict(splits) or SPLITS
        raise ValueError(f"the data set {name!r} has the splits {list(loaded)}, but {asked} were asked for")
    rows = {split: _numbered(loaded[own], f"{name} ({own})") for split, own in splits}
    return _built({"": rows["train"]} if splits == (("train", "train"),) else rows, make_task, skip)


def _rows_of(path: str) -> Iterator[Row]:
    with open(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            place = f"{path}, line {number}"
            try:
                fields = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{place}: this is no JSON ({error}); give one JSON object a line") from error
            if not isinstance(fields, dict):
                shown = str(fields)[:_LONGEST_SHOWN]
                raise ValueError(f"{place}: a line must hold a JSON object with named fields, got {shown!r}")
            yield Row(fields, place)


def _numbered(rows: Iterable[Mapping[str, Any]], where: str) -> Iterator[Row]:
    for number, fields in enumerate(rows):
        yield Row(fields, f"{where}, row {number}")


def _built(rows: Mapping[str, Iterable[Row]], make_task: MakeTask, skip: bool) -> Dataset:
    """Make the tasks; rows under the name "" are split by content."""
    tasks: dict[str, list[Task]] = {}
    unreadable: list[str] = []
    for split, each in rows.items():
        tasks[split] = []
        place = ""
        for row in each:
            place = row.place
            try:
                tasks[split].append(make_task(row))
            except MissingField:
                raise
            except ValueError as error:
                if not skip:
                    raise ValueError(f"{row.place}: {error}; skip_unreadable=True leaves such rows out") from error
                unreadable.append(f"{row.place}: {error}")
        if not place:
            raise ValueError("the data are empty" + (f" for the split {split!r}" if split else ""))
    if unreadable:
        warnings.warn(
            f"rows that nobody can be graded on are left out: {len(unreadable)}; the first is {unreadable[0]}",
            stacklevel=2,
        )
    if not any(tasks.values()):
        raise ValueError("no row is left: nobody can be graded on any of them")
    if "" in tasks:
        given = Dataset.of(tasks[""]).splits
    else:
        given = {split: tuple({task.id: task for task in tasks.get(split, ())}.values()) for split in SPLITS}
    return Dataset({"train": _apart(given["train"], given["test"]), "test": given["test"]})


def _apart(train: tuple[Task, ...], test: tuple[Task, ...]) -> tuple[Task, ...]:
    """Return the tasks of ``train`` that are not in ``test`` too, case and blanks aside."""
    asked = {_content(task) for task in test}
    kept = tuple(task for task in train if _content(task) not in asked)
    if len(kept) < len(train):
        warnings.warn(
            f"questions that stand in train and in test too are left out of train: {len(train) - len(kept)}",
            stacklevel=2,
        )
    return kept


def _content(task: Task) -> str:
    return " ".join(task.question.split()).casefold()
