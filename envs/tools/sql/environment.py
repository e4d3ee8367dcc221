"""Answer questions about a database by writing SQL."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, ClassVar

import numpy as np

from tetrathlon.envs.arguments import whole
from tetrathlon.envs.language.chance import Chance
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.tools.calls import write_call
from tetrathlon.envs.tools.environment import ToolEnv
from tetrathlon.envs.tools.play import Play
from tetrathlon.envs.tools.sql import answer as answers
from tetrathlon.envs.tools.sql import joined, nested, simple
from tetrathlon.envs.tools.sql.analysis import Analysis
from tetrathlon.envs.tools.sql.database import as_data, connect
from tetrathlon.envs.tools.sql.domains import DOMAINS, OWNERS
from tetrathlon.envs.tools.sql.filling import fill
from tetrathlon.envs.tools.sql.question import Draft, Question
from tetrathlon.envs.tools.task import ToolTask
from tetrathlon.envs.tools.world import World

LEVELS: Sequence[Sequence[Callable[[Draft], Question]]] = (simple.TEMPLATES, joined.TEMPLATES, nested.TEMPLATES)
"""Templates of questions, the easiest level first."""
_MOST_DRAFTS = 8


class SQL(ToolEnv):
    """Answer a question about a database by writing SQL.

    ## Description
    A database is drawn for each instance: a shop, a library, a clinic, a school, a hotel or an airline, of four tables
    (five at level 3) with foreign keys, days as ISO texts and NULLs. The question asks for a number, a name with a
    number, or a few names. Level 1 needs one table (counts, sums, averages, shares, the first row, missing values),
    level 2 joins, groups and what has no partner, level 3 long joins, queries in queries, and rows that a join would
    count twice. No answer can be seen without a query: results of more than 50 rows are cut.

    ## Observation Space
    `UnicodeText`: the question, then results of calls.

    ## Action Space
    `UnicodeText`: calls of ``list_tables()``, ``describe_table(table)`` and ``query(sql)``, or the answer. A query is
    one SELECT and takes at most a second; whatever would write, attach or set something is an error, and so is what
    another run would not give again: ``random()``, today, the time zone.

    ## Rewards
    1 for the right answer, else 0. Whole numbers must be equal, others right to 2 decimals, names equal but for case;
    the order of names counts where the question gives one. How the answer was found does not count.

    ## Starting State
    A template of the level, a domain and its rows are drawn, then what the question is about, until there is one
    answer: no ties where the first is asked for, no count below 5, no number that rounds both ways.

    ## Episode End
    See ``ToolEnv``.

    ## Arguments
    ``level`` (1 to 3; by default each instance has any of them), and those of ``ToolEnv``.

    ## Version History
    * v0: first version.

    Raises:
        ValueError: An argument is out of its range.
    """

    default_max_turns: ClassVar[int] = 12
    default_max_calls: ClassVar[int] = 32
    system: ClassVar[str] = (
        "Answer the question with queries on the SQLite database behind the tools; look at its tables first. Rows with "
        "different ids are different, even where their names are equal."
    )

    def __init__(self, *, level: int | None = None, **kwargs: Any) -> None:
        self.level = None if level is None else whole("level", level, 1, len(LEVELS))
        super().__init__(**kwargs)

    def generate(self, rng: np.random.Generator) -> Task:
        """Draw a database, and a question that it answers in one way."""
        draw = Chance(rng)
        level = self.level or draw.between(1, len(LEVELS))
        template = draw.pick(LEVELS[level - 1])
        while True:
            if (task := _draw(rng, template, child=level == len(LEVELS))) is not None:
                return task

    def open(self, task: ToolTask) -> Analysis:
        """See :meth:`ToolEnv.open`."""
        return Analysis(json.loads(task.world["tables"]))

    def is_right(self, task: ToolTask, answer: str | None, world: World) -> bool:
        """Tell whether ``answer`` says what the right query returns."""
        return answer is not None and answers.same(answer, task.answer, task.data["ordered"])

    def expert(self, play: Play) -> str:
        """Look at the tables that the right query reads, run it, and answer."""
        world, data = play.world, play.task.data
        assert isinstance(world, Analysis)
        is_last = play.turns + 1 >= self.max_turns or play.calls >= self.max_calls
        if is_last or world.asked == data["sql"]:
            return self._write_solution(play.task)
        if not world.listed:
            return write_call("list_tables", {})
        if unknown := [table for table in data["tables"] if table not in world.described]:
            calls = [write_call("describe_table", {"table": table}) for table in unknown]
            return "\n".join(calls[: min(self.max_parallel, self.max_calls - play.calls)])
        return write_call("query", {"sql": data["sql"]})


def _draw(rng: np.random.Generator, template: Callable[[Draft], Question], child: bool) -> ToolTask | None:
    """Return an instance of a template on a new database, or None where it has none with one answer."""
    domain = Chance(rng).pick(DOMAINS)
    rows = fill(rng, domain, child)
    tables = as_data(domain.tables(child), rows)
    draft = Draft(rng, domain, rows)
    with closing(connect(tables)) as connection:
        for _ in range(_MOST_DRAFTS):
            question = template(draft)
            found = connection.execute(question.sql).fetchall()
            if (answer := answers.write(question, found)) is not None:
                place = f"{domain.place} {draft.pick(OWNERS)} {draft.pick(OWNERS)}"
                text = f"In the database of the {place}: {question.text} {answers.request(question, answer)}"
                data = {"sql": question.gold, "tables": list(question.tables), "ordered": question.ordered}
                return ToolTask(text, answer, data, {"tables": json.dumps(tables)})  # one text: a fast id
    return None
