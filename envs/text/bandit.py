"""What every single-turn language task shares: instances, splits, prompts, one answer, one reward."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from tetrathlon.envs.arguments import index_option, whole
from tetrathlon.envs.episode import Episode, Step
from tetrathlon.envs.rubric import Rubric, Score, Term
from tetrathlon.envs.spaces import UnicodeText
from tetrathlon.envs.splits import SPLITS
from tetrathlon.envs.text.dataset import Dataset
from tetrathlon.envs.text.formats import AnswerFormat, answer_formats, is_one_letter, says_something
from tetrathlon.envs.text.seeding import generator
from tetrathlon.envs.text.task import Task

_INDEX_STREAM = 0x7E71A  # keeps random access apart from seeds
_SHOT_STREAM = 0x5407
_MOST_DRAWS = 10_000
_LONGEST_OBSERVATION = 1_000_000
_LONGEST_ACTION = 1_000_000
_MOST_TOKENS = 10_000_000
_OPTIONS = ("index", "task")


class TextBandit(gym.Env[str, str]):
    """A single-turn language task: one prompt, one completion, one reward.

    Subclasses give :meth:`generate`, or set ``dataset`` in their constructor, and :meth:`is_right`; everything else is
    here.

    ## Observation Space
    `UnicodeText`: the prompt, as one user message.

    ## Action Space
    `UnicodeText`: the whole completion.

    ## Rewards
    1 for a right final answer, else 0. With ``format_weight`` w, another w for an answer in the format that was
    asked for, right or wrong.

    ## Episode End
    Terminated after one step; ``stop_reason`` is ``answered`` or ``no_answer``.

    Args:
        split: ``"train"`` or ``"test"``; an instance belongs to one of them by a hash of its content.
        answer_format: One of ``formats``, which are ``"boxed"``, ``"tag"`` and ``"plain"`` (the reply is the answer)
            for most tasks; None: the first.
        shots: Worked examples, fixed for the environment and from the train split: ``info["examples"]`` holds
            them as messages of a user and an assistant, which a chat model reads before the observation.
        max_tokens: Token limit, stated in ``info["limits"]`` and kept by the policy; None: the task's own.
        format_weight: What the right format pays, from 0 to less than the 1 of a right answer.
        render_mode: ``"ansi"`` or None.

    Raises:
        ValueError: An argument is none of those.
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

    def __init__(
        self,
        *,
        split: str = "train",
        answer_format: str | None = None,
        shots: int = 0,
        max_tokens: int | None = None,
        format_weight: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        if split not in SPLITS:
            raise ValueError(f"split must be one of {SPLITS}, got {split!r}")
        if answer_format is None:
            answer_format = next(iter(self.formats))
        if answer_format not in self.formats:
            raise ValueError(f"answer_format must be one of {tuple(self.formats)}, got {answer_format!r}")
        if isinstance(format_weight, bool) or not isinstance(format_weight, int | float) or not 0 <= format_weight < 1:
            raise ValueError(f"format_weight must be a number from 0 to less than 1, got {format_weight!r}")
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
        self.rubric = self.make_rubric(format_weight)
        self._answer_terms = self.rubric.terms if self._pays_the_answer_alone(format_weight) else None
        self._task: Task | None = None
        self._prompt = ""
        self._completion: str | None = None
        self._read: tuple[str, str | None] | None = None  # the completion that was read last, and its answer

    def generate(self, rng: np.random.Generator) -> Task:
        """Draw an instance of any split from ``rng`` and nothing else; not asked of a task with a ``dataset``."""
        raise NotImplementedError(f"{type(self).__name__} has neither generate() nor a dataset")

    @abstractmethod
    def is_right(self, task: Task, answer: str) -> bool:
        """Tell whether ``answer``, a final answer out of a completion, is right."""

    def check_task(self, task: Task) -> None:
        """Refuse a task that nobody can be graded on.

        Raises:
            ValueError: Its right answer cannot be read.
        """

    def write_answer(self, task: Task) -> str:
        """Return the right answer as the expert writes it into the asked format."""
        return task.answer

    def make_rubric(self, format_weight: float) -> Rubric:
        """Return the rubric; ``correct`` means success."""
        terms = [Term("correct", self._grade_answer)]
        if format_weight:
            terms.append(Term("format", self._grade_format, format_weight))
        return Rubric(*terms, success="correct")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
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
        self._task = task = self._chosen(options) if options else self._draw(rng, self.split, self._examples)
        self._prompt = self._write_question(task)
        self._completion = self._read = None
        return self._prompt, self._start_info(task)

    def _chosen(self, options: dict[str, Any]) -> Task:
        if unknown := sorted(map(repr, set(options) - set(_OPTIONS))):
            raise ValueError(f"options may be {' and '.join(map(repr, _OPTIONS))}, got {', '.join(unknown)}")
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

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Grade the completion ``action`` and end the episode.

        Raises:
            gymnasium.error.ResetNeeded: There is no episode under way.
        """
        task = self._task
        if task is None or self._completion is not None:
            raise gym.error.ResetNeeded("the episode is over; call reset() before step()")
        self._completion = completion = action if isinstance(action, str) else str(action)
        if self.rubric.terms is self._answer_terms:
            try:
                answer = self.answer_in(completion)
                is_right = answer is not None and self.is_right(task, answer)
            except Exception:  # a grader's: the rubric, which grades once more, tells what it was
                is_right = None
            if is_right is True or is_right is False:  # all that the rubric would make of it, in a tenth of the time
                reward = 1.0 if is_right else 0.0
                return (
                    "",
                    reward,
                    True,
                    False,
                    {
                        "is_success": is_right,
                        "stop_reason": "no_answer" if answer is None else "answered",
                        "reward_terms": {"correct": reward},
                        "scores": {"correct": reward},
                    },
                )
        score, info = self._grade(task)
        return "", score.reward, True, False, info

    def _pays_the_answer_alone(self, format_weight: float) -> bool:
        """Tell whether the rubric is the usual one and asks for nothing but :meth:`is_right`."""
        cls = type(self)
        return (
            not format_weight
            and cls.make_rubric is TextBandit.make_rubric
            and cls._grade is TextBandit._grade
            and cls._grade_answer is TextBandit._grade_answer
        )

    def _start_info(self, task: Task) -> dict[str, Any]:
        return {
            "task_id": task.id,
            "system": self.system,
            "tools": [],
            "examples": self._write_examples() if self.shots else [],
            "limits": {"tokens": self.max_tokens},
        }

    def _grade(self, task: Task) -> tuple[Score, dict[str, Any]]:
        assert self._completion is not None
        score = self.rubric.score(task, Episode([Step(self._prompt, self._completion)]))
        info: dict[str, Any] = {
            "is_success": score.is_success,
            "stop_reason": "no_answer" if self.answer_in(self._completion) is None else "answered",
            "reward_terms": score.terms,
            "scores": score.scores,
        }
        if score.error is not None:
            info["grader_error"] = score.error
        return score, info

    def answer_in(self, completion: str) -> str | None:
        """Return the final answer of ``completion``, or None where it has none."""
        read = self._read
        if read is not None and read[0] is completion:  # graders and the info ask for the same
            return read[1]
        task = self._task
        answer = self._format.read(completion, (self._prompt, "" if task is None else task.question))
        self._read = (completion, answer)
        return answer

    def expert_action(self, k: int = 1) -> Any:
        """Return the worked answer; nothing changes by asking.

        Args:
            k: 1 gives the completion, more gives a list of k completions.
        """
        if self._task is None:
            raise gym.error.ResetNeeded("there is no instance yet; call reset() first")
        action = self._write_solution(self._task)
        return action if k == 1 else [action] * k

    def get_state(self) -> dict[str, Any]:
        """Return the exact state, randomness included."""
        return {
            "rng": copy.deepcopy(self.np_random.bit_generator.state),
            "task": self._task,
            "prompt": self._prompt,
            "completion": self._completion,
        }

    def set_state(self, state: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Restore what :meth:`get_state` returned.

        Returns:
            The observation and the info that belong to the state.
        """
        self.np_random.bit_generator.state = copy.deepcopy(state["rng"])
        self._task = state["task"]
        self._prompt = state["prompt"]
        self._completion = state["completion"]
        self._read = None
        if self._task is None:
            return "", {}
        if self._completion is None:
            return self._prompt, self._start_info(self._task)
        return "", self._grade(self._task)[1]

    def render(self) -> str | None:
        """Return the prompt, and what was answered and paid, as text."""
        if self.render_mode != "ansi":
            return None
        if self._completion is None or self._task is None:
            return self._prompt
        score, info = self._grade(self._task)
        return f"{self._prompt}\n\n> {self._completion}\n\nreward {score.reward:g} ({info['stop_reason']})"

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
        messages = []
        for task in self._examples.values():
            messages.append({"role": "user", "content": self._write_question(task)})
            messages.append({"role": "assistant", "content": self._write_solution(task)})
        return messages

    def _grade_answer(self, task: Task, episode: Episode) -> float:
        answer = self.answer_in(episode.steps[-1].action)
        return float(answer is not None and self.is_right(task, answer))

    def _grade_format(self, task: Task, episode: Episode) -> float:
        completion = episode.steps[-1].action
        if not self._format.keeps(completion):
            return 0.0
        answer = self.answer_in(completion) or ""
        if says_something(task.answer) and not says_something(answer):
            return 0.0
        # One letter is no attempt, unless letters are what is asked for.
        return float(not is_one_letter(answer) or is_one_letter(task.answer))
