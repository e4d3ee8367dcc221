"""Every task of the package reasoning-gym that can be asked, answered and graded, by name."""

from __future__ import annotations

import copy
import difflib
import json
import random
import re
import sys
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import gymnasium as gym
import numpy as np

from tetrathlon.envs.episode import Episode
from tetrathlon.envs.grading.writing import integer, plain
from tetrathlon.envs.language.formats import LINE, LINES, NUMBER, AnswerFormat, answer_formats
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.rubric import GraderError
from tetrathlon.envs.text.bandit import TextBandit
from tetrathlon.envs.text.reasoning_gym_graders import GRADERS, PACKAGE_MUST_AGREE, PARTIAL_IS_SAFE, is_readable

EXCLUDED: Mapping[str, str] = {
    "boxnet": "the package gives no answer for its items, so nobody can be the expert",
    "codeio": "some of its programs walk sets of strings, so one seed gives other items in another process",
    "composite": "a mixture of other tasks; make one environment a task",
    "knight_swap": "an item takes 1 to 11 seconds to make",
    "rush_hour": "the package gives no answer for its items, so nobody can be the expert",
}
"""Tasks of the package that are refused, and why."""

_ANSWERS: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "graph_color": lambda data: json.dumps({str(vertex): color for vertex, color in data["possible_answer"].items()}),
    "propositional_logic": lambda data: data["example_answer"],
    "rubiks_cube": lambda data: data["example_correct_answer"],
}
"""Tasks whose items keep a worked answer elsewhere."""

_DEFAULTS: Mapping[str, dict[str, Any]] = {
    "futoshiki": {"max_board_size": 7},  # boards of 8 and 9 take up to 10 seconds
}
"""What differs from a task's own defaults."""

_PRINTERS = (
    "code.contrib.bfit.Compiler.Optimizer",
    "cognition.rectangle_count",
    "games.tower_of_hanoi",
)
"""Modules of the package that write to stdout while they make or score an item."""

_LISTED = frozenset({"acre", "gsm_symbolic", "list_functions"})  # index into a list as long as the data set
_LIST_SIZE = 10
_PROBES = 5
_COSINE_SQUARED = re.compile(r"(-?)((?:\d+\*)?)cos\(([^()]*)\)\*\*2((?:/\d+)?) \+ C", re.ASCII)
_MOST_SEEDS = 2**31
_RANDOM = threading.RLock()


class ReasoningGym(TextBandit):
    r"""Solve the items of one task of the package ``reasoning-gym`` (https://github.com/open-thought/reasoning-gym).

    ## Description
    ``task`` names the task: ``chain_sum``, ``sudoku``, ``word_ladder``, ...; ``tasks()`` lists all. The question is
    the package's, with its own hints on how to write the answer; where the final answer goes, the last line says.

    ## Observation Space
    `UnicodeText`: the package's question, then the format that is asked for.

    ## Action Space
    `UnicodeText`: the completion. The default ``answer_format`` is ``"tag"``, in which grids, braces and backslashes
    stand as they are.

    ## Rewards
    1 if the package's scorer pays the final answer in full, else 0. Answers to tasks whose scorer would run the text
    (``eval``, SymPy), or pays wrong answers in full, are compared by this package instead
    (``reasoning_gym_graders.py`` lists them).

    With ``partial_credit`` the package's raw score, which may be anything from 0 to 1. Beware: many of its scorers
    look for the right answer inside the text and pay by length (``The answer is 8`` pays 1/15 of ``8``), others pay
    0.01 or more for anything that can be read. A wrong answer that the package would pay in full pays nothing.

    An answer that the package's scorer cannot read is wrong. A scorer that fails on the right answer too makes the
    episode unscorable (``grader_error``).

    ## Starting State
    One of 2 ** 31 seeds of the task's items, uniform; how many of those items differ depends on the task and its
    ``config`` (from a few hundred to practically all). The same seed gives the same item in every process.

    ## Episode End
    Terminated after one step.

    ## Arguments
    ``task``: the name; ``config``: what the task's own config takes, JSON-able, without ``seed`` and ``size``;
    ``partial_credit``: see Rewards; and those of ``TextBandit``.

    Refused are ``boxnet`` and ``rush_hour`` (no answers), ``codeio`` (not the same in every process), ``knight_swap``
    (slow), and ``composite`` (a mixture); 101 tasks are left.
    ``futoshiki`` has boards up to 7 x 7 where ``config`` says nothing (the package: 9 x 9, up to 10 s an item). Slow
    but served: ``zebra_puzzles``, ``puzzle24``, ``sudoku``, ``futoshiki`` take up to a second an item, and a reset of
    the test split makes five items on average.

    ## Version History
    * v0: first version, with reasoning-gym 0.1.25.

    Raises:
        gymnasium.error.DependencyNotInstalled: The package is missing.
        ValueError: There is no such task, it is refused, or ``config`` does not fit it.
    """

    default_max_tokens = 512

    def __init__(
        self,
        *,
        task: str = "chain_sum",
        config: Mapping[str, Any] | None = None,
        partial_credit: bool = False,
        **kwargs: Any,
    ) -> None:
        names = tasks()
        if task in EXCLUDED:
            raise ValueError(f"the reasoning-gym task {task!r} is refused: {EXCLUDED[task]}")
        if task not in names:
            near = difflib.get_close_matches(task, names, n=3, cutoff=0.5)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise ValueError(f"there is no reasoning-gym task {task!r}{hint}")
        self.task, self.config, self.partial_credit = task, dict(config or {}), partial_credit
        if taken := {"seed", "size"} & set(self.config):
            raise ValueError(f"config must not hold {', '.join(sorted(taken))}: seeds come from reset()")
        with _own_random(0):
            self._dataset = self._make_dataset(seed=0)
        super().__init__(**kwargs)

    @cached_property
    def formats(self) -> Mapping[str, AnswerFormat]:  # type: ignore[override]
        """Answer formats, the tag first; plain replies are read as the task's first items ask for."""
        rng = np.random.default_rng(0)
        probes = [self.generate(rng).answer for _ in range(_PROBES)]
        if all(integer(answer) is not None for answer in probes):
            plain = NUMBER
        else:
            plain = LINES if any("\n" in answer for answer in probes) else LINE
        usual = answer_formats(plain)
        return {name: usual[name] for name in ("tag", "boxed", "plain")}

    def _make_dataset(self, **kwargs: Any) -> Any:
        from reasoning_gym.factory import create_dataset

        try:
            dataset = create_dataset(self.task, **{**_DEFAULTS.get(self.task, {}), **self.config, **kwargs})
        except (TypeError, ValueError, AssertionError) as error:
            raise ValueError(f"config {self.config!r} does not fit the task {self.task!r}: {error}") from error
        _prepare(self.task, dataset)
        return dataset

    def generate(self, rng: np.random.Generator) -> Task:
        """Draw the seed of an item and have it made."""
        seed = int(rng.integers(_MOST_SEEDS))
        with _own_random(seed):
            if self.task in _LISTED:
                entry = self._make_dataset(seed=seed, size=_LIST_SIZE)[seed % _LIST_SIZE]
            else:
                entry = self._dataset[seed]
        answer = entry["answer"]
        if answer is None:
            answer = _ANSWERS[self.task](entry["metadata"])
        elif self.task == "intermediate_integration":
            answer = entry["answer"] = _one_antiderivative(answer)
        return Task(entry["question"].strip("\n"), str(answer).strip(), {"entry": entry})

    def is_right(self, task: Task, answer: str) -> bool:
        """Tell whether ``answer`` is paid in full."""
        return self.score(task, answer) >= 1.0

    def score(self, task: Task, answer: str) -> float:
        """Return what ``answer`` is worth: 1 if it is right, else 0, or with ``partial_credit`` the package's score.

        Raises:
            GraderError: The package's scorer fails on the right answer too.
        """
        if answer == task.answer or (task.answer.isalnum() and plain(answer) == task.answer):
            return 1.0
        if not is_readable(self.task, answer, task.answer):
            return 0.0
        entry = task.data["entry"]
        grader = GRADERS.get(self.task)
        right = grader(answer, task.answer, entry["metadata"]) if grader else True
        if grader and right and self.task not in PACKAGE_MUST_AGREE:
            return 1.0
        if not right and not (self.partial_credit and self.task in PARTIAL_IS_SAFE):
            return 0.0
        raw = self._ask_package(task, answer)
        if raw >= 1.0 and not right:
            return 0.0
        return raw if self.partial_credit else float(raw >= 1.0)

    def _ask_package(self, task: Task, answer: str) -> float:
        entry = task.data["entry"]
        with _own_random(0):
            try:
                raw = float(self._dataset.score_answer(answer, copy.deepcopy(entry)))  # some scorers write into it
            except Exception as error:  # foreign code on a model's text: is it the text, or the code?
                try:
                    self._dataset.score_answer(task.answer, copy.deepcopy(entry))
                except Exception:
                    raise GraderError(f"{type(error).__name__}: {error}") from error
                return 0.0
        return min(max(raw, 0.0), 1.0) if raw == raw else 0.0

    def _grade_answer(self, task: Task, episode: Episode) -> float:
        answer = self.answer_in(episode.steps[-1].action)
        return 0.0 if answer is None else self.score(task, answer)


def tasks() -> list[str]:
    """Return the names that :class:`ReasoningGym` takes, sorted.

    Raises:
        gymnasium.error.DependencyNotInstalled: The package is missing.
    """
    with _own_random(0):  # the import draws random numbers
        try:
            from reasoning_gym.factory import DATASETS
        except ImportError as error:
            raise gym.error.DependencyNotInstalled(
                'ReasoningGym needs the package reasoning-gym: pip install "tetrathlon[llm]"'
            ) from error
    return sorted(set(DATASETS) - set(EXCLUDED))


@contextmanager
def _own_random(seed: int) -> Iterator[None]:
    """Seed the global generators, which some tasks draw from, and put them back; one thread at a time."""
    with _RANDOM:
        before, before_numpy = random.getstate(), np.random.get_state()
        random.seed(seed)
        np.random.seed(seed % 2**32)
        try:
            yield
        finally:
            random.setstate(before)
            np.random.set_state(before_numpy)


class _Sorted(frozenset[str]):
    """A set that is walked in order: the order of a plain set of strings differs between processes."""

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(super().__iter__()))

    def __sub__(self, other: Any) -> _Sorted:
        return _Sorted(super().__sub__(other))


def _one_antiderivative(answer: str) -> str:
    """Write -a cos(u) ** 2 as a sin(u) ** 2: which of the two SymPy finds differs between processes."""
    match = _COSINE_SQUARED.fullmatch(answer)
    if match is None:
        return answer
    minus, factor, inner, divisor = match.groups()
    return f"{'' if minus else '-'}{factor}sin({inner})**2{divisor} + C"


def _say_nothing(*args: Any, **kwargs: Any) -> None:
    """Stand in for ``print``."""


def _prepare(task: str, dataset: Any) -> None:
    """Put an order on what the package walks in the order of string hashes, and keep it from printing."""
    for name in _PRINTERS:
        sys.modules[f"reasoning_gym.{name}"].print = _say_nothing  # type: ignore[attr-defined]
    if task in ("isomorphic_strings", "ransom_note"):
        dataset.letters = _Sorted(dataset.letters)
    elif task == "word_ladder":
        dataset.size = _MOST_SEEDS
        neighbours = type(dataset)._get_neighbors
        dataset._get_neighbors = types.MethodType(lambda self, *args: sorted(neighbours(self, *args)), dataset)
    elif task == "polynomial_multiplication":
        monomials = type(dataset)._get_monomials
        dataset._get_monomials = types.MethodType(lambda self, rng: sorted(monomials(self, rng), key=str), dataset)
