"""Write a program that passes tests which are not shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tetrathlon.envs.arguments import whole
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.language.dataset import Dataset
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.rubric import Rubric, Score, Term
from tetrathlon.envs.text.bandit import TextBandit
from tetrathlon.envs.text.coding.draft import Draw
from tetrathlon.envs.text.coding.format import CodeFormat
from tetrathlon.envs.text.coding.grader import Budget, Calls, Tests, Verdict
from tetrathlon.envs.text.coding.rows import ReadProgram
from tetrathlon.envs.text.coding.tasks import FAMILIES, make_job


class Code(TextBandit):
    """Write a Python function from its specification; hidden tests decide.

    ## Description
    The specification says what a function does, down to its parameters: which separator, which threshold, what
    comes first, what an empty list gives. There are 43 kinds, on lists, texts, numbers, intervals, grids, dicts,
    nested lists and small languages. Or rows of HumanEval, MBPP, APPS and their like are read with ``data``.

    The answer runs in the sandbox (Linux; Python's standard library only) and is called with the arguments of each
    hidden test. What it should return never enters its process: the returned value is sent out as plain data (None,
    bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset) and compared outside.

    * A value must be equal and of the same type: 1 is neither True nor 1.0, and a tuple is no list. Where a float is
      expected an int will do, and floats may differ by 1e-6, absolute or relative. NaN equals nothing.
    * Anything that is no plain data (a generator, an object), nested deeper than 40, of more than 100,000 parts or of
      more than a megabyte is wrong.
    * An exception, an exit, too much time or memory, or anything written to the harness's channel is wrong.
    * What is printed and what is done to arguments does not count.
    * Tests of ``data`` are programs: they run in a second process, where the tested functions are stand-ins that send
      their arguments to the first. Only plain data come back, so no code can fake a passed test.
    * A program of ``data`` that reads standard input is run once for each input; it must exit with 0, and
      :func:`tetrathlon.envs.grading.outputs.same_output` compares what it prints.

    ## Observation Space
    `UnicodeText`: the head of the function, its specification and examples, then the format that is asked for.

    ## Action Space
    `UnicodeText`: the completion. The program is its last fenced block that is marked as Python, else the last one
    without a mark, after the thinking ends. A reply without a fence is the program itself if it parses. A reply that
    ends inside a fence has no answer.

    ## Rewards
    1 if all hidden tests pass, else 0. There is no partial credit: half of the tests are often passed by half of the
    specification. ``info["scores"]["tests"]`` is the share that passed, and pays nothing.

    ## Starting State
    The kind is uniform over ``families``, its parameters are uniform over its own ranges. Examples and hidden tests
    (12, edge cases among them, none of them shown) follow from the specification alone: one specification is one
    instance and stands in one split. No result is that of more than half of the hidden tests.

    ## Episode End
    Terminated after one step. ``info["verdict"]`` says which test failed first and how, without what was expected.

    ## Arguments
    * ``families``: some of :data:`tetrathlon.envs.text.coding.tasks.FAMILIES`; None: all.
    * ``examples``: how many cases are shown, 0 to 6; None: 3.
    * ``seconds``: of the clock and of the processor, for all tests of a completion; tests that are programs get as
      many again.
    * ``memory_mb``: memory of the program; one that reads standard input may have 512 more, for the stack of a thread.
    * ``data``: None for functions of our own; or the path of a JSONL file, paths by split (``{"train": ...,
      "test": ...}``), or the name of a data set of the Hugging Face hub (``"openai/openai_humaneval"``). Rows hold
      ``prompt``, ``entry_point``, ``test`` and ``canonical_solution`` (HumanEval); ``text`` or ``prompt``, ``code``,
      ``test_list``, ``test_setup_code`` or ``test_imports``, ``challenge_test_list`` (MBPP, of whose tests the first
      is shown); or ``question``, ``inputs`` and ``outputs``, or ``input_output``, and ``solutions`` (APPS).
    * ``data_config``, ``data_splits``, ``skip_unreadable``: see :meth:`Dataset.read`.
    * ``verify``: whether rows are refused whose own solution fails their tests.
    * Those of ``TextBandit``; ``answer_format`` is ``"code"``.

    ## Version History
    * v0: first version.

    Raises:
        ValueError: An argument is out of its range or has no use, or nobody can be graded on a row.
    """

    default_max_tokens = 512
    formats: Mapping[str, CodeFormat] = {"code": CodeFormat()}

    def __init__(
        self,
        *,
        families: Sequence[str] | None = None,
        examples: int | None = None,
        seconds: float = 4.0,
        memory_mb: int = 512,
        data: str | Path | Mapping[str, str | Path] | None = None,
        data_config: str | None = None,
        data_splits: Mapping[str, str] | None = None,
        skip_unreadable: bool = False,
        verify: bool = False,
        **kwargs: Any,
    ) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= 600:
            raise ValueError(f"seconds must be a number above 0, up to 600, got {seconds!r}")
        self.budget = Budget(seconds=float(seconds), memory_mb=whole("memory_mb", memory_mb, 64, 1_000_000))
        self._last: tuple[Task, str, Verdict] | None = None
        super().__init__(**kwargs)
        if data is None:
            _refuse(
                "say how data are read; give data too",
                data_config=data_config,
                data_splits=data_splits,
                skip_unreadable=skip_unreadable or None,
                verify=verify or None,
            )
            self.families = _families(families)
            self.examples = whole("examples", 3 if examples is None else examples, 0, 6)
            return
        _refuse("are for functions of our own; with data they must be None", families=families, examples=examples)
        self.dataset = Dataset.read(
            data,
            ReadProgram(self.budget, verify),
            config=data_config,
            splits=data_splits,
            skip_unreadable=skip_unreadable,
        )
        self.dataset.require(self.split)

    def generate(self, rng: np.random.Generator) -> Task:
        """Draw a function."""
        draw = Draw(rng)
        job = make_job(FAMILIES[draw.pick(self.families)](draw), self.examples)
        return Task(job.question, job.draft.source, {"tests": Calls(job.draft.name, job.hidden)})

    def is_right(self, task: Task, answer: str) -> bool:
        """Tell whether the program ``answer`` passes all hidden tests."""
        return self.judge(task, answer).is_right

    def judge(self, task: Task, answer: str) -> Verdict:
        """Return what the hidden tests make of the program ``answer``; the last verdict is kept.

        Raises:
            GraderError: The sandbox or the tests cannot work.
        """
        if self._last is None or self._last[0] is not task or self._last[1] != answer:
            self._last = task, answer, task.data["tests"].judge(answer, self.budget)
        return self._last[2]

    def check_task(self, task: Task) -> None:
        """Refuse a task without hidden tests.

        Raises:
            ValueError: It has none.
        """
        tests = task.data.get("tests")
        if not isinstance(tests, Tests) or not len(tests):
            raise ValueError(f"data['tests'] of a task must be Calls, Asserts or Streams with a test, got {tests!r}")

    def write_answer(self, task: Task) -> str:
        """Return the program of an expert.

        Raises:
            ValueError: The row of the task holds none.
        """
        if not task.answer:
            raise ValueError(f"the row of the task {task.id} holds no solution, so there is no expert for it")
        return task.answer

    def make_rubric(self, format_weight: float) -> Rubric:
        """Return the rubric, with the share of tests that passed as a score that pays nothing."""
        rubric = super().make_rubric(format_weight)
        return Rubric(*rubric.terms, Term("tests", self._grade_tests, 0.0), success=rubric.success)

    def _grade_tests(self, task: Task, episode: Episode) -> float:
        answer = self.answer_in(episode.steps[-1].action)
        if answer is None:
            return 0.0
        verdict = self.judge(task, answer)
        return verdict.passed / verdict.total

    def _grade(self, task: Task) -> tuple[Score, dict[str, Any]]:
        score, info = super()._grade(task)
        is_judged = info["stop_reason"] == "answered" and score.error is None
        info["verdict"] = self._last[2].note if is_judged and self._last is not None else "nothing was judged"
        return score, info


def _families(names: Sequence[str] | None) -> tuple[str, ...]:
    if names is None:
        return tuple(FAMILIES)
    if isinstance(names, str) or not names or len(set(names)) < len(names) or not set(names) <= set(FAMILIES):
        raise ValueError(f"families must be some of {tuple(FAMILIES)}, each once, got {names!r}")
    return tuple(names)


def _refuse(why: str, **given: Any) -> None:
    if idle := [name for name, value in given.items() if value is not None]:
        raise ValueError(f"{', '.join(idle)} {why}")
