r"""Mathematics: word problems of this package, or a data set of questions and answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tetrathlon.envs.arguments import whole
from tetrathlon.envs.grading.answers import fields
from tetrathlon.envs.grading.gold import Gold, read_gold, same_answer
from tetrathlon.envs.language.dataset import Dataset, Row
from tetrathlon.envs.language.formats import CHOICE, LINE, VALUE, answer_formats
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.text.bandit import TextBandit
from tetrathlon.envs.text.word_problems import LEVELS, make_word_problem, write_number

_QUESTION_FIELDS = ("question", "problem")
_ANSWER_FIELDS = ("answer", "solution")
_KEPT_FIELDS = ("level", "type", "subject")
_BARE_BOX = re.compile(r"\\boxed\s+([^\s{}$\\.,]+)")
_LONGEST_SHOWN = 200
_PLAIN = {"text": LINE, "choice": CHOICE}
"""How plain replies are read, by the kind of the answers; others are values."""


class Math(TextBandit):
    r"""Solve a problem whose answer is a number, an expression, a set, an interval, ... .

    ## Description
    Without ``data``, the problems are word problems that this package makes up: fifteen stories (shopping, travel,
    ratios, percentages, mixtures, time, units, geometry, averages, work, sharing, discount and tax, probability,
    savings, recipes). Four in ten ask for a whole number, three for a decimal that is no whole number, three for a
    fraction that is no whole number; the question says which. Equal values are right in any form, rounded ones are
    wrong.

    ## Observation Space
    `UnicodeText`: ``Maya has 2 pizzas and shares them equally among 10 children. How many pizzas does each child get?
    Give the answer as a decimal.``, then the format that is asked for.

    ## Action Space
    `UnicodeText`: the completion.

    ## Rewards
    1 if the final answer is the same value as the right answer, exactly, else 0: ``grading/gold.py`` says how answers
    are compared. Who always answers whole numbers is right in at most 40 % of the word problems.

    ## Starting State
    The form of the answer, then one of the stories that can have such an answer, uniform, then names, things and
    numbers. Two of them are the same as often as if there were 700,000 of level 1, 2.7 million of level 2 and 14
    million of level 3, all as likely; there are more.

    Of given data, each question of the split is as likely as any other.

    ## Episode End
    Terminated after one step.

    ## Arguments
    * ``data``: None for word problems; or the path of a JSONL file, paths by split (``{"train": ..., "test": ...}``),
      or the name of a data set of the Hugging Face hub (``"openai/gsm8k"``). Data without splits of their own are split
      by the content of the questions; a question that stands in both splits is left out of train.
    * ``data_config``: the configuration of a data set of the hub (``"main"``).
    * ``data_splits``: which of its splits are taken, ``{"train": "train", "test": "validation"}``; None: those of
      these names.
    * ``question_field``: the name of the field; None: ``question``, else ``problem``.
    * ``answer_field``: the name of the field; None: ``answer``, else ``solution``. Of a worked solution the right
      answer is what follows the last ``####``, else what stands in the last ``\boxed{...}``.
    * ``skip_unreadable``: rows whose right answer cannot be read are left out, with a warning that counts them; else
      they are refused with an error that names the line.
    * ``level``: of word problems, 1 (the default), 2 or 3: the number of steps, and larger numbers.
    * ``answer_kind``: what the answers of the data are: ``"number"``, ``"set"``, ``"tuple"``, ``"choice"`` or
      ``"text"``; None: what each looks like. Word problems have numbers.
    * ``percent``: ``"fraction"``: ``35%`` is 0.35; ``"points"``: the questions ask for percents, and ``35%`` is 35.
    * Those of ``TextBandit``.

    ## Version History
    * v0: first version.

    Raises:
        ValueError: An argument is out of its range or has no use, a right answer cannot be read, or the split is empty;
            see :meth:`Dataset.read` for what the data must be like.
    """

    default_max_tokens = 512
    formats = answer_formats(VALUE)

    def __init__(
        self,
        *,
        data: str | Path | Mapping[str, str | Path] | None = None,
        data_config: str | None = None,
        data_splits: Mapping[str, str] | None = None,
        question_field: str | None = None,
        answer_field: str | None = None,
        skip_unreadable: bool = False,
        level: int | None = None,
        answer_kind: str | None = None,
        percent: str = "fraction",
        **kwargs: Any,
    ) -> None:
        if answer_kind in _PLAIN:
            self.formats = answer_formats(_PLAIN[answer_kind])
        super().__init__(**kwargs)
        self.answer_kind, self.percent = answer_kind, percent
        if data is None:
            given = {
                "data_config": data_config is not None,
                "data_splits": data_splits is not None,
                "question_field": question_field is not None,
                "answer_field": answer_field is not None,
                "skip_unreadable": skip_unreadable,
            }
            if idle := [name for name, is_given in given.items() if is_given]:
                raise ValueError(f"without data nothing is done with {', '.join(idle)}; leave it out, or give data")
            self.level = whole("level", 1 if level is None else level, LEVELS[0], LEVELS[-1])
            return
        if level is not None:
            raise ValueError(f"with data nothing is done with level (of word problems), got {level!r}; leave it out")
        make_task = _MakeTask(
            _QUESTION_FIELDS if question_field is None else (question_field,),
            _ANSWER_FIELDS if answer_field is None else (answer_field,),
            answer_kind,
            percent,
        )
        self.dataset = Dataset.read(
            data, make_task, config=data_config, splits=data_splits, skip_unreadable=skip_unreadable
        )
        self.dataset.require(self.split)

    def generate(self, rng: np.random.Generator) -> Task:
        """Draw a word problem."""
        problem = make_word_problem(rng, self.level)
        answer = write_number(problem.answer, problem.form)
        return Task(problem.question, answer, {"form": problem.form, "topic": problem.topic})

    def is_right(self, task: Task, answer: str) -> bool:
        """Tell whether ``answer`` is the same value as the right answer."""
        gold = task.data.get("gold")
        return same_answer(answer, gold if gold is not None else self._gold_of(task))

    def check_task(self, task: Task) -> None:
        """Refuse a task whose right answer cannot be read.

        Raises:
            ValueError: It cannot.
        """
        self._gold_of(task)

    def _gold_of(self, task: Task) -> Gold:
        if (gold := task.data.get("gold")) is not None:  # read when the data were
            return gold
        kind = "number" if "form" in task.data else self.answer_kind  # of a word problem, which needs no prover
        return _read_gold(task.answer, kind, self.percent)


@dataclass(frozen=True, slots=True)
class _MakeTask:
    """Makes a task of a row of the data."""

    question_fields: tuple[str, ...]
    answer_fields: tuple[str, ...]
    kind: str | None
    percent: str

    def __call__(self, row: Row) -> Task:
        question = row.text(*self.question_fields)
        answer = _right_answer(row.text(*self.answer_fields))
        kept = {name: row.fields[name] for name in _KEPT_FIELDS if name in row.fields}
        return Task(question, answer, {**kept, "gold": read_gold(answer, kind=self.kind, percent=self.percent)})


@lru_cache(maxsize=1_024)
def _read_gold(answer: str, kind: str | None, percent: str) -> Gold:
    return read_gold(answer, kind=kind, percent=percent)


def _right_answer(text: str) -> str:
    r"""Return the right answer out of the text of an answer or of a worked solution.

    Raises:
        ValueError: There is a ``\boxed`` in it, but none that can be read.
    """
    if (mark := text.rfind("####")) >= 0:
        return text[mark + 4 :].strip().partition("\n")[0].rstrip()
    text = text.replace(r"\fbox", r"\boxed")
    if r"\boxed" not in text:
        return text
    found = [field for field in fields(text) or () if field.kind == "boxed"]
    bare = list(_BARE_BOX.finditer(text))
    if bare and (not found or bare[-1].start() > found[-1].start):
        return bare[-1][1]
    if not found:
        raise ValueError(f"there is no whole \\boxed{{...}} in the answer {text[-_LONGEST_SHOWN:]!r}")
    return found[-1].content
