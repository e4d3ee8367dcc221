"""What every language task shares: instances and their splits, the format of answers, worked examples, limits."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from tetrathlon.envs.arguments import check_names, index_option, names_of, whole
from tetrathlon.envs.language.dataset import Dataset
from tetrathlon.envs.language.formats import AnswerFormat, answer_formats
from tetrathlon.envs.language.seeding import generator
from tetrathlon.envs.language.states import check_state
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.spaces import UnicodeText
from tetrathlon.envs.splits import SPLITS

_INDEX_STREAM = 0x7E71A  # keeps random access apart from seeds
_SHOT_STREAM = 0x5407
_MOST_DRAWS = 10_000
_LONGEST_OBSERVATION = 1_000_000
_LONGEST_ACTION = 1_000_000
_MOST_TOKENS = 10_000_000


class LanguageEnv(gym.Env[Any, str]):
    """A task in text: what is asked, by whom it can be answered, and what an instance is.

    Subclasses give :meth:`generate`, or set ``dataset`` in their constructor, and what happens in an episode.

    Args:
        split: ``"train"`` or ``"test"``; an instance belongs to one of them by a hash of its content.
        answer_format: One of ``formats``; None: the first.
        shots: Worked examples, fixed for the environment and from the train split: ``info["examples"]`` holds
            them as messages, which a chat model reads before the observation.
        max_tokens: Token limit of a turn, stated in ``info["limits"]`` and kept by the policy; None: the task's own.
        render_mode: ``"ansi"`` or None.
        **others: There are none.

    Raises:
        TypeError: There is no such argument.
        ValueError: An argument has no such value.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"]}  # type: ignore[misc]
    default_max_tokens: ClassVar[int] = 64
    """Enough for a short worked answer."""
    formats: Mapping[str, AnswerFormat] = answer_formats()
    """Answer formats by name; the first is the default."""
    system: ClassVar[str] = ""
    """The system message, where a task has one."""
    dataset: Dataset | None = None
    """The instances, where they are given and not generated."""
    reset_options: ClassVar[tuple[str, ...]] = ("index", "task")
    """What the options of a reset may be."""
    words: Sequence[str] = ()
    """Texts that always come whole: a small model from scratch may read and say each as one token."""

    def __init__(
        self,
        *,
        split: str = "train",
        answer_format: str | None = None,
        shots: int = 0,
        max_tokens: int | None = None,
        render_mode: str | None = None,
        **others: Any,
    ) -> None:
        check_names(type(self), others, names_of(type(self)))
        if split not in SPLITS:
            raise ValueError(f"split must be one of {SPLITS}, got {split!r}")
        if answer_format is None:
            answer_format = next(iter(self.formats))
        if answer_format not in self.formats:
            raise ValueError(f"answer_format must be one of {tuple(self.formats)}, got {answer_format!r}")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode must be one of {self.metadata['render_modes']}, got {render_mode!r}")
        self.split = split
        self.answer_format = answer_format
        self._format = self.formats[answer_format]
        self.shots = whole("shots", shots, 0, 64)
        tokens = self.default_max_tokens if max_tokens is None else max_tokens
        self.max_tokens = whole("max_tokens", tokens, 1, _MOST_TOKENS)
        self.render_mode = render_mode
        self.observation_space = UnicodeText(_LONGEST_OBSERVATION)
        self.action_space = UnicodeText(_LONGEST_ACTION)
        self._task: Task | None = None

    def generate(self, rng: np.random.Generator) -> Task:
        """Draw an instance of any split from ``rng`` and nothing else; not asked of a task with a ``dataset``."""
        raise NotImplementedError(f"{type(self).__name__} has neither generate() nor a dataset")

    def check_task(self, task: Task) -> None:
        """Refuse a task that nobody can be graded on.

        Raises:
            ValueError: Its right answer cannot be read.
        """

    def write_answer(self, task: Task) -> str:
        """Return the right answer as the expert writes it into the asked format."""
        return task.answer

    def observed(self, text: str) -> Any:
        """Return the observation that says ``text``: the text, and a picture with it where a task has one."""
        return text

    @abstractmethod
    def begin(self, task: Task) -> tuple[Any, dict[str, Any]]:
        """Begin an episode of ``task``; return its first observation and info."""

    @abstractmethod
    def demonstrate(self, task: Task) -> list[dict[str, str]]:
        """Return the messages of a worked example, as a user, an assistant and tools write them."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: Fixes the instance within the split, in every process.
            options: ``{"index": i}`` gives the i-th instance of the split; ``{"task": task}`` plays ``task``.

        Raises:
            ValueError: ``index`` is not an integer from 0, or beyond the dataset; nobody can be graded on ``task``;
                or there is an option of another name.
            TypeError: ``task`` is no ``Task``.
        """
        if seed is not None:
            self._np_random, self._np_random_seed = generator(seed)
        rng = self._np_random or self.np_random
        if options and (unknown := sorted(map(repr, set(options) - set(self.reset_options)))):
            known = " and ".join(map(repr, self.reset_options))
            raise ValueError(f"options may be {known}, got {', '.join(unknown)}")
        if options and not options.keys().isdisjoint(("index", "task")):
            self._task = task = self._chosen(options)
        else:
            self._task = task = self._draw(rng, self.split, self._examples)
        return self.begin(task)

    def start_info(self, task: Task) -> dict[str, Any]:
        """Return the info of a reset, all of it fresh."""
        return {
            "task_id": task.id,
            "system": self.system,
            "tools": [],
            "examples": self._write_examples() if self.shots else [],
            "limits": {"tokens": self.max_tokens},
        }

    def _save(self, **parts: Any) -> dict[str, Any]:
        """Return the exact state, randomness included: what all tasks have, and ``parts``."""
        rng = copy.deepcopy(self.np_random.bit_generator.state)
        return {"of": type(self).__name__, "rng": rng, "task": self._task, **parts}

    def _check_state(self, state: Any, *parts: str, task: type[Task] = Task) -> None:
        """Refuse what is no state of this class of environments, see :func:`check_state`; nothing changes."""
        check_state(type(self).__name__, state, parts, task)

    def _chosen(self, options: dict[str, Any]) -> Task:
        if "task" in options:
            task = options["task"]
            if not isinstance(task, Task):
                raise TypeError(f"options['task'] must be a Task, got {task!r}")
            self.check_task(task)
            return task
        index = index_option(options["index"])
        if self.dataset is None:
            return self._draw(np.random.default_rng([_INDEX_STREAM, index]), self.split, self._examples)
        tasks = self.dataset.splits[self.split]
        if self._examples:
            tasks = tuple(task for task in tasks if task.id not in self._examples)
        if index >= len(tasks):
            raise ValueError(f"options['index'] must be below {len(tasks)}, the size of the dataset, got {index!r}")
        return tasks[index]

    def _draw(self, rng: np.random.Generator, split: str, shown: Collection[str] = ()) -> Task:
        if self.dataset is None:
            for _ in range(_MOST_DRAWS):
                task = self.generate(rng)
                if task.split == split and not (shown and task.id in shown):
                    return task
        elif given := self.dataset.splits[split]:
            for _ in range(_MOST_DRAWS):
                task = given[int(len(given) * rng.random())]
                if not (shown and task.id in shown):
                    return task
        raise gym.error.Error(
            f"{type(self).__name__} found no instance of the {split} split in {_MOST_DRAWS} draws; "
            "its settings allow too few instances"
        )

    @cached_property
    def _examples(self) -> dict[str, Task]:
        """The worked examples by their ids; they are asked of nobody."""
        rng = np.random.default_rng(_SHOT_STREAM)
        examples: dict[str, Task] = {}
        while len(examples) < self.shots:
            task = self._draw(rng, "train", examples)
            examples[task.id] = task
        return examples

    def _write_question(self, task: Task) -> str:
        request = self._format.request
        return f"{task.question}\n{request}" if request else task.question

    def _write_solution(self, task: Task) -> str:
        return self._format.write(self.write_answer(task))

    def _write_examples(self) -> list[dict[str, str]]:
        return [message for task in self._examples.values() for message in self.demonstrate(task)]
