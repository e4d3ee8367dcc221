"""SQL: gold queries against Python, answers, what a query may do, the expert."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import date
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tetrathlon
from tetrathlon.envs import sqlite
from tetrathlon.envs.sqlite import same_rows
from tetrathlon.envs.tools.calls import write_call
from tetrathlon.envs.tools.sql import answer as answers
from tetrathlon.envs.tools.sql.analysis import MOST_SHOWN, MOST_SLOW
from tetrathlon.envs.tools.sql.database import as_bytes, as_data, connect
from tetrathlon.envs.tools.sql.domains import DOMAINS
from tetrathlon.envs.tools.sql.environment import LEVELS, SQL
from tetrathlon.envs.tools.sql.filling import Rows, fill
from tetrathlon.envs.tools.sql.question import Condition, Draft, Question
from tetrathlon.envs.tools.sql.table import Domain, Table
from tetrathlon.envs.tools.task import ToolTask

TEMPLATES = [template for level in LEVELS for template in level]
Record = dict[str, Any]
Answer = list[tuple[Any, ...]]


class Facts:
    """The rows of a domain as Python sees them: each event with its actor, its item, the item's group, its children."""

    def __init__(self, domain: Domain, rows: Rows) -> None:
        self.domain = domain
        named = {table.name: records(table, rows[table.name]) for table in domain.tables(True)}
        self.actors, self.items = named[domain.actor.name], named[domain.item.name]
        groups = {row["id"]: row for row in named[domain.group.name]}
        actors, items = ({row["id"]: row for row in some} for some in (self.actors, self.items))
        children = defaultdict(list)
        for row in named[domain.child.name]:
            children[row[f"{domain.event.name}_id"]].append(row)
        self.events = []
        for row in named[domain.event.name]:
            item = items[row[f"{domain.item.name}_id"]]
            actor = actors[row[f"{domain.actor.name}_id"]]
            group = groups[item[f"{domain.group.name}_id"]]
            known = {domain.actor.name: actor, domain.item.name: item, domain.group.name: group, domain.event.name: row}
            self.events.append(SimpleNamespace(row=row, known=known, children=children[row["id"]]))

    def where(self, *conditions: Condition) -> list[SimpleNamespace]:
        """Return the events for which all of some conditions hold, whichever table they are about."""
        return [event for event in self.events if all(holds(event.known[c.table], c) for c in conditions)]

    def ids(self, table: Table, events: Iterable[SimpleNamespace]) -> set[int]:
        return {event.known[table.name]["id"] for event in events}

    def sums(self, table: Table, column: str, events: Iterable[SimpleNamespace]) -> dict[int, float]:
        """Return the sum over the events of each row of a table that has any."""
        found: dict[int, float] = defaultdict(float)
        for event in events:
            found[event.known[table.name]["id"]] += event.row[column]
        return found

    def top(
        self, table: Table, column: str, events: list[SimpleNamespace], n: int = 1, sign: int = -1
    ) -> list[tuple[str, float]]:
        names = {event.known[table.name]["id"]: event.known[table.name][table["name"].name] for event in events}
        best = sorted(self.sums(table, column, events).items(), key=lambda pair: sign * pair[1])
        return [(names[key], value) for key, value in best[:n]]


def records(table: Table, rows: list[list[Any]]) -> list[Record]:
    return [dict(zip((column.name for column in table.columns), row, strict=True)) for row in rows]


def holds(row: Record, condition: Condition) -> bool:
    return bool(condition.low <= row[condition.column] <= condition.high)


def total(events: Iterable[SimpleNamespace], column: str) -> float | None:
    values = [event.row[column] for event in events]
    return sum(values) if values else None


def mean(values: Iterable[float]) -> float | None:
    some = list(values)
    return fmean(some) if some else None


def days(event: SimpleNamespace, table: Table) -> int:
    first, last = (date.fromisoformat(event.row[table[role].name]) for role in ("day", "end"))
    return (last - first).days


def first_row(rows: list[Record], table: Table, p: SimpleNamespace) -> Answer:
    found = sorted((row for row in rows if holds(row, p.kind)), key=lambda row: row[p.column.name], reverse=p.most)
    return [(row[table["name"].name], row[p.column.name]) for row in found[:1]]


def above(facts: Facts, column: str) -> list[SimpleNamespace]:
    of = defaultdict(list)
    for event in facts.events:
        of[event.known[facts.domain.item.name]["id"]].append(event.row[column])
    return [
        event
        for event in facts.events
        if event.row[column] * len(own := of[event.known[facts.domain.item.name]["id"]]) > sum(own)
    ]


def busy_ids(facts: Facts, table: Table, events: list[SimpleNamespace], least: int) -> set[int]:
    counts = Counter(event.known[table.name]["id"] for event in events)
    return {key for key, count in counts.items() if count >= least}


def share(part: float | None, whole: float | None) -> float | None:
    return 100 * (part or 0) / whole if whole else None


def months(facts: Facts, p: SimpleNamespace) -> Answer:
    sums: dict[str, float] = defaultdict(float)
    for event in facts.where(p.kind, p.year):
        sums[event.row[facts.domain.event["day"].name][:7]] += event.row[p.column.name]
    return sorted(sums.items(), key=lambda pair: -pair[1])[:1]


def of(events: list[SimpleNamespace], table: Table, keys: set[int]) -> list[SimpleNamespace]:
    return [event for event in events if event.known[table.name]["id"] in keys]


def named(rows: list[Record], keys: set[int]) -> Answer:
    return [(row["name"],) for row in rows if row["id"] in keys]


def filled(events: list[SimpleNamespace], column: str) -> list[Any]:
    return [event.row[column] for event in events if event.row[column] is not None]


def lapsed(facts: Facts, p: SimpleNamespace) -> list[SimpleNamespace]:
    there = facts.ids(p.other, facts.where(p.without))
    return [event for event in facts.where(p.year) if event.known[p.other.name]["id"] not in there]


def unused(facts: Facts, domain: Domain, p: SimpleNamespace) -> float | None:
    used = facts.ids(domain.item, facts.where(p.period))
    return sum(row[p.column.name] for row in facts.items if row["id"] not in used) or None


# What each template asks for, in Python: facts, their domain, and what was drawn -> rows.
REFERENCES: dict[str, Callable[[Facts, Domain, SimpleNamespace], Answer]] = {
    "count_rows": lambda f, d, p: [(len(some := f.where(p.kind, p.period)), total(some, p.column.name))],
    "count_missing": lambda f, d, p: [
        (len(some := f.where(p.period)), len(some) - len(filled(some, p.column.name)))
    ],
    "mean": lambda f, d, p: [(mean(filled(f.where(p.condition), p.column.name)),)],
    "total": lambda f, d, p: [(total(f.where(p.period), p.column.name),)],
    "count_distinct": lambda f, d, p: [(len(some := f.where(p.period)), len(f.ids(p.other, some)))],
    "extreme": lambda f, d, p: first_row(f.items, d.item, p),
    "first_day": lambda f, d, p: first_row(f.actors, d.actor, p),
    "share": lambda f, d, p: [(share(len(filled(some := f.where(p.kind), p.column.name)), len(some)),)],
    "count_joined": lambda f, d, p: [(len(some := f.where(p.kind, p.period)), total(some, p.column.name))],
    "total_joined": lambda f, d, p: [(total(f.where(p.kind), p.column.name),)],
    "mean_joined": lambda f, d, p: [(mean(event.row[p.column.name] for event in f.where(p.member)),)],
    "top_partner": lambda f, d, p: list(f.top(p.other, p.column.name, f.where(p.year))),
    "top_group": lambda f, d, p: list(f.top(d.group, p.column.name, f.events, sign=-1 if p.most else 1)),
    "never": lambda f, d, p: named(
        f.actors, {row["id"] for row in f.actors if holds(row, p.kind)} - f.ids(d.actor, f.events)
    ),
    "total_of_never": lambda f, d, p: [(unused(f, d, p),)],
    "total_of_busy": lambda f, d, p: [
        (total(of(f.events, p.other, busy_ids(f, p.other, f.events, p.least)), p.column.name),)
    ],
    "top_month": lambda f, d, p: months(f, p),
    "count_partners": lambda f, d, p: [(len(some := f.where(p.kind)), len(f.ids(d.item, some)))],
    "above_own_mean": lambda f, d, p: [(total(above(f, p.column.name), p.added.name),)],
    "busy": lambda f, d, p: named(f.actors, busy_ids(f, d.actor, f.where(p.member), p.least)),
    "top_three": lambda f, d, p: [(name,) for name, _ in f.top(d.item, p.column.name, f.where(p.kind), 3)],
    "total_of_children": lambda f, d, p: [
        (
            sum(
                child[p.column.name] for event in f.where(p.kind) for child in event.children if holds(child, p.period)
            )
            or None,
        )
    ],
    "total_without_child": lambda f, d, p: [
        (total((event for event in f.where(p.kind) if not event.children), p.column.name),)
    ],
    "mean_of_totals": lambda f, d, p: [(mean(f.sums(p.other, p.column.name, f.where(p.period)).values()),)],
    "lapsed": lambda f, d, p: [(total(lapsed(f, p), p.column.name),)],
    "mean_days": lambda f, d, p: [
        (mean(days(event, d.event) for event in f.where(p.member) if event.row[d.event["end"].name]),)
    ],
    "share_of_group": lambda f, d, p: [
        (share(total(f.where(p.member, p.period), p.column.name), total(f.where(p.period), p.column.name)),)
    ],
    "favourite": lambda f, d, p: list(f.top(d.actor, p.column.name, f.where(p.member))),
    "mean_with_child": lambda f, d, p: [
        (mean(event.row[p.column.name] for event in f.events if any(holds(row, p.kind) for row in event.children)),)
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def worlds() -> list[tuple[Domain, Rows, np.random.Generator]]:
    rng = np.random.default_rng(7)
    return [(domain, fill(rng, domain, True), rng) for domain in DOMAINS for _ in range(3)]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.__name__)
def test_gold_queries_say_what_python_says(
    template: Callable[[Draft], Question], worlds: list[tuple[Domain, Rows, np.random.Generator]]
) -> None:
    checked = 0
    for domain, rows, rng in worlds:
        facts, draft = Facts(domain, rows), Draft(rng, domain, rows)
        with closing(connect(as_data(domain.tables(True), rows))) as connection:
            for _ in range(4):
                question = template(draft)
                found = connection.execute(question.sql).fetchall()
                if (written := answers.write(question, found)) is None:
                    continue
                gold = [row[: question.shown] for row in connection.execute(question.gold)]
                expected = REFERENCES[template.__name__](facts, domain, SimpleNamespace(**question.parts))
                assert same_rows(gold, expected, ordered=question.ordered, tolerance=1e-9), question
                said = ", ".join(f"{v:.4f}" if isinstance(v, float) else str(v) for row in expected for v in row)
                assert answers.same(said, written, question.ordered)
                checked += 1
    assert checked > 20


def test_every_template_reads_the_tables_that_it_names(worlds: list[tuple[Domain, Rows, np.random.Generator]]) -> None:
    for domain, rows, rng in worlds[::3]:
        for template in TEMPLATES:
            question = template(Draft(rng, domain, rows))
            read = set(re.findall(r"(?:FROM|JOIN) (\w+)", question.sql))
            assert read == set(question.tables), question
            child = template in LEVELS[2]
            assert read <= {table.name for table in domain.tables(child)}


def test_databases_have_keys_that_hold_days_nulls_and_namesakes() -> None:
    rng = np.random.default_rng(0)
    namesakes = 0
    for domain in DOMAINS * 2:
        rows = fill(rng, domain, True)
        with closing(connect(as_data(domain.tables(True), rows))) as connection:
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
            assert len(connection.execute("SELECT * FROM sqlite_master").fetchall()) == 5
            for table in domain.tables(True):
                for at, column in enumerate(table.columns):
                    values = [row[at] for row in rows[table.name]]
                    assert any(value is None for value in values) == bool(column.missing)
                    kind = {"TEXT": str, "INTEGER": int, "REAL": float}[column.type]
                    assert all(type(value) is kind for value in values if value is not None)
                    if column.role in ("day", "end"):
                        assert all(date.fromisoformat(value).isoformat() == value for value in values if value)
                    if column.role in ("kind", "name"):
                        assert not re.search(r"[,;'\"%(){}\[\]]|\b(?:and|or)\b", " ".join(values), re.IGNORECASE)
            names = [row[1] for row in rows[domain.actor.name]]
            namesakes += len(set(names)) < len(names)
    assert namesakes > 1


@pytest.mark.parametrize(
    ("gold", "ordered", "said", "is_right"),
    [
        ("17", True, "17", True),
        ("17", True, "17.0", True),
        ("17", True, "**17**", True),
        ("1700", True, "1,700", True),
        ("17", True, "17 sales", False),
        ("17", True, "17.4", False),
        ("17", True, "17%", False),
        ("17", True, "16 or 17", False),
        ("17", True, "17, 18", False),
        ("17", True, "", False),
        ("12.34", True, "12.34", True),
        ("12.34", True, "12.3449", True),
        ("12.34", True, "$12.34", True),
        ("12.34", True, "12.34 €", True),
        ("1012.34", True, "1,012.34", True),
        ("12.34", True, "12.3", False),
        ("12.34", True, "12.35", False),
        ("12.34", True, "12", False),
        ("12.34", True, "12.34%", False),
        ("12.34", True, "1$2.34", False),
        ("12.34", True, "nan", False),
        ("12.34", True, "12.34 or 12.35", False),
        ("12.34%", True, "12.34", True),
        ("12.34%", True, "12.34%", True),
        ("12.34%", True, r"12.34\%", True),
        ("12.34%", True, "12.34 percent", True),
        ("12.34%", True, "0.1234", False),
        ("Oak Lamp, 1012.50", True, "oak lamp, 1,012.50", True),
        ("Oak Lamp, 1012.50", True, "'Oak Lamp', 1012.5", True),
        ("Oak Lamp, 1012.50", True, "(Oak Lamp, 1012.50)", True),
        ("Oak Lamp, 1012.50", True, r"\text{Oak Lamp}, 1012.50", True),
        ("Oak Lamp, 1012.50", True, "1012.50, Oak Lamp", False),
        ("Oak Lamp, 1012.50", True, "Oak Lamp", False),
        ("Oak Lamp, 12", True, "Oak Lamp, 13", False),
        ("Oak Lamp, 12", True, "Oak Lamp or 12", False),
        ("2021-04, 52", True, "2021-04, 52", True),
        ("2021-04, 52", True, "2017, 52", False),
        ("Ann Berg, 1999-09-02", True, "Ann Berg, 1999-09-02", True),
        ("Ann Berg, Bo Dahl, Cy Kim", False, "Cy Kim, ann berg and Bo Dahl", True),
        ("Ann Berg, Bo Dahl, Cy Kim", False, "[\"Cy Kim\", \"Ann Berg\", \"Bo Dahl\"]", True),
        ("Ann Berg, Bo Dahl, Cy Kim", False, "Ann Berg, Bo Dahl", False),
        ("Ann Berg, Bo Dahl, Cy Kim", False, "Ann Berg, Bo Dahl, Bo Dahl", False),
        ("Ann Berg, Bo Dahl, Cy Kim", False, "Ann Berg, Bo Dahl, Cy Kim, Di Lang", False),
        ("Ann Berg, Bo Dahl, Cy Kim", False, "Ann Berg, Bo Dahl or Cy Kim", False),
        ("Ann Berg, Bo Dahl, Cy Kim", True, "Bo Dahl, Ann Berg, Cy Kim", False),
        ("Ann Berg, Bo Dahl, Cy Kim", False, "(" * 1_000, False),
        ("Ann Berg, Bo Dahl, Cy Kim", False, "Ann Berg, " * 100_000, False),
        ("17", True, "1" * 100_000, False),
    ],
)  # fmt: skip
def test_answers(gold: str, ordered: bool, said: str, is_right: bool) -> None:
    assert answers.same(said, gold, ordered) is is_right


def asked(sql: str = "", take: int = 0, shown: int = 1, ordered: bool = True, percent: bool = False) -> Question:
    return Question("?", sql, (), "the number alone", shown, take, ordered, percent)


@pytest.mark.parametrize(
    ("question", "rows", "written"),
    [
        (asked(), [(5,)], "5"),
        (asked(), [(4,)], None),
        (asked(), [(None,)], None),
        (asked(), [(2.345,)], None),
        (asked(), [(2.3,)], "2.30"),
        (asked(percent=True), [(40.0,)], "40.00%"),
        (asked(percent=True), [(100.0,)], None),
        (asked(take=1, shown=2), [("a", 9), ("b", 8), ("c", 8)], "a, 9"),
        (asked(take=1, shown=2), [("a", 9), ("b", 9)], None),
        (asked(take=1, shown=2), [("a", 9)], None),
        (asked(take=2), [("a", 9), ("b", 8), ("c", 8)], None),
        (asked(take=2), [("a", 9), ("b", 8), ("c", 7)], "a, b"),
        (asked(take=2), [("a", 9), ("a", 8), ("c", 7)], None),
        (asked(ordered=False), [("b",), ("a",)], "a, b"),
        (asked(ordered=False), [("a",)], None),
        (asked(ordered=False), [("a",), ("a",)], None),
        (asked(ordered=False), [(name,) for name in "abcdefghi"], None),
        (asked(ordered=False), [], None),
    ],
)
def test_what_has_one_answer(question: Question, rows: list[tuple[Any, ...]], written: str | None) -> None:
    assert answers.write(question, rows) == written


def test_a_question_says_how_to_write_its_answer() -> None:
    assert answers.request(asked(), "5") == "Answer with the number alone."
    assert answers.request(asked(), "2.30") == "Answer with the number alone, rounded to 2 decimals."


@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_expert_solves_every_instance(level: int, split: str) -> None:
    env = SQL(level=level, split=split)
    for index in range(25 if split == "train" else 8):
        env.reset(options={"index": index})
        turns = [env.step(env.expert_action()) for _ in range(4)]
        assert [turn[2] for turn in turns] == [False, False, False, True]
        assert turns[-1][1] == 1.0 and turns[-1][4]["is_success"]
        assert all(not any(turn[4]["tool_errors"].values()) for turn in turns)
        assert env._task is not None
        for part in env._task.answer.split(", "):
            assert re.search(rf"\b{part}\b", turns[2][0]) or "." in part


@pytest.mark.parametrize(
    "kwargs", [{"max_turns": 1}, {"max_turns": 3}, {"max_calls": 1}, {"max_calls": 3}, {"max_parallel": 1}]
)
def test_the_expert_keeps_to_its_budget(kwargs: dict[str, Any]) -> None:
    env = SQL(level=3, **kwargs)
    for seed in range(4):
        env.reset(seed=seed)
        ended = False
        while not ended:
            _, reward, ended, _, info = env.step(env.expert_action())
            assert not info["tool_errors"]["not_run"]
        assert reward == 1.0


def test_the_expert_goes_on_from_wrong_turns() -> None:
    env = SQL()
    for seed in range(4):
        env.reset(seed=seed)
        for said in ("hm", write_call("query", {"sql": "SELECT 1"}), write_call("describe_table", {"table": "no"})):
            env.step(said)
        ended = False
        while not ended:
            _, reward, ended, _, _ = env.step(env.expert_action())
        assert reward == 1.0


def test_the_query_of_the_expert_needs_to_be_run_to_be_known() -> None:
    env = SQL(level=1)
    env.reset(seed=0)
    assert env._task is not None
    failing = write_call("query", {"sql": f"{env._task.data['sql']}; SELECT 1"})
    for _ in range(2):
        env.step(env.expert_action())
    expected = env.expert_action()
    env.step(failing)
    assert env.expert_action() == expected


def test_answers_cannot_be_guessed() -> None:
    for level in (1, 2, 3):
        env = SQL(level=level)
        counts: Counter[str] = Counter()
        questions = set()
        for index in range(100):
            env.reset(options={"index": index})
            assert env._task is not None
            counts[env._task.answer] += 1
            questions.add(env._task.question)
        assert len(questions) == 100
        assert counts.most_common(1)[0][1] <= 3


def test_instances_are_the_same_everywhere() -> None:
    env = SQL()
    tasks = []
    for seed in range(3):
        tasks.append((env.reset(seed=seed)[1]["task_id"], env._task.answer if env._task else ""))
    assert tasks == [
        ("59fcdbd78b04c975", "16.45"),
        ("f6b1874fb47f3829", "72, 18"),
        ("0d945ff8dc95f37e", "3.00"),
    ]


def play(sql: str, env: SQL | None = None) -> tuple[str, dict[str, Any]]:
    env = SQL(level=1) if env is None else env
    env.reset(seed=0)
    observation, _, _, _, info = env.step(write_call("query", {"sql": sql}))
    return observation, info


# s11
@pytest.mark.parametrize(
    "sql",
    [
        "ATTACH DATABASE 'new.db' AS n",
        "CREATE TABLE n.x(a)",
        "CREATE TEMP TABLE x(a)",
        "VACUUM INTO 'copy.db'",
        "SELECT 1; DROP TABLE {table}",
        "SELECT 1; SELECT 2",
        "/* x */ DELETE FROM {table}",
        "WITH t AS (SELECT 1) DELETE FROM {table}",
        "WITH t AS (SELECT 1 AS k) INSERT INTO {table}(id) SELECT k FROM t",
        "UPDATE {table} SET id = 4 RETURNING id",
        "PRAGMA query_only(0)",
        "PRAGMA table_info({table})",
        "SELECT * FROM pragma_database_list",
        "SELECT load_extension('x')",
        "SELECT readfile('/etc/passwd')",
        "SELECT writefile('new.db', 'x')",
        "EXPLAIN SELECT 1; DELETE FROM {table}",
        "BEGIN",
        "",
        "SELECT \0",
        "SELECT '\udc80'",
        "SELECT zeroblob(2000000000)",
        "SELECT nothing FROM {table}",
        "SELECT " + "(" * 5_000,
        "x" * 200_000,
    ],
)
def test_what_is_no_read_is_an_error(sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    env = SQL(level=1)
    env.reset(seed=0)
    assert isinstance(env._task, ToolTask)
    tables = json.loads(env._task.world["tables"])
    name = list(tables)[-1]
    sql = sql.replace("{table}", name)
    observation, reward, ended, _, info = env.step(write_call("query", {"sql": sql}))
    assert observation.startswith("Error: ") and info["tool_errors"]["tool_error"] == 1
    assert reward == 0 and not ended and len(observation) < 1_000
    observation = env.step(write_call("query", {"sql": f"SELECT count(*) FROM {name}"}))[0]
    assert observation == f"count(*)\n{len(tables[name]['rows'])}\n(1 row)"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        (
            "SELECT 1, NULL AS n, 2.5, 'a | b' b, X'00ff'",
            "1 | n | 2.5 | b | X'00ff'\n1 | NULL | 2.5 | a | b | X'00ff'\n(1 row)",
        ),
        ("WITH t AS (SELECT 2 AS k) SELECT k FROM t", "k\n2\n(1 row)"),
        (
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<5) SELECT sum(x) FROM c",
            "sum(x)\n15\n(1 row)",
        ),
        ("SELECT 1 AS 'a\nb' WHERE 0", "a\\nb\n(0 rows)"),
        ("SELECT 'a\nb\\c' t;", "t\na\\nb\\\\c\n(1 row)"),
        ("SELECT '<answer>5</answer>' t", "t\n<answer>5</answer>\n(1 row)"),
    ],
)
def test_reads_are_shown_line_by_line(sql: str, shown: str) -> None:
    assert play(sql)[0] == shown


@pytest.mark.parametrize("sql", ["random()", "hex(randomblob(8))", "datetime('now')", "CURRENT_TIMESTAMP", "date()"])
def test_what_a_replay_would_not_give_again_is_an_error(sql: str) -> None:
    said, info = play(f"SELECT {sql}, 1")
    assert said.startswith("Error: ") and said.endswith("a query must give the same whenever it is run")
    assert info["tool_errors"]["tool_error"] == 1
    env = SQL(level=1)
    env.reset(seed=0)
    state = env.get_state()
    turn = write_call("query", {"sql": f"SELECT {sql}, date('2020-01-01', '+1 day')"})
    first = env.step(turn)
    env.set_state(state)
    assert env.step(turn) == first


def test_long_results_are_cut() -> None:
    numbers = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<{}) SELECT x FROM c"
    lines = play(numbers.format(300))[0].splitlines()
    assert lines[:2] == ["x", "1"]
    assert lines[MOST_SHOWN:] == [str(MOST_SHOWN), f"(300 rows, the first {MOST_SHOWN} are shown)"]
    assert "more than 1000 rows" in play(numbers.format(1_001))[0]
    assert play("SELECT printf('%.5000c', 'x') AS t")[0] == f"t\n{'x' * 200}... (5000 characters)\n(1 row)"
    assert len(play("SELECT zeroblob(100000)")[0]) < 500
    assert play(f"SELECT 1 AS {'y' * 5000}")[0] == f"{'y' * 200}... (5000 characters)\n1\n(1 row)"
    columns = ", ".join(["printf('%.5000c', 'x')"] * 100)
    assert len(play(f"SELECT {columns}")[0]) <= 4_000


# s13
@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<9999) SELECT count(*) FROM c a, c b, c d",
    ],
)
def test_a_query_without_end_is_stopped(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tetrathlon.envs.tools.sql.analysis.SECONDS", 0.2)
    assert play(sql)[0] == "Error: the query took longer than 0.2 seconds"
    assert play("SELECT 1")[0] == "1\n1\n(1 row)"


def test_a_turn_of_queries_without_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tetrathlon.envs.tools.sql.analysis.SECONDS", 0.1)
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c"
    env = SQL(max_turns=4)
    env.reset(seed=0)
    info = env.step("\n".join([write_call("query", {"sql": endless})] * 8))[4]
    said = [result["content"] for result in info["tool_results"]]
    assert said == ["Error: the query took longer than 0.1 seconds"] * MOST_SLOW + [
        f"Error: {MOST_SLOW} queries took too long; no more are run"
    ] * (8 - MOST_SLOW)
    twin = SQL(max_turns=4)
    twin.set_state(env.get_state())
    assert "no more are run" in twin.step(write_call("query", {"sql": "SELECT 1"}))[0]
    rewards = [env.step(env.expert_action())[1] for _ in range(3)]
    assert rewards[-1] == 1.0  # with its last turn


def test_what_a_query_shows_is_no_answer() -> None:
    env = SQL()
    env.reset(seed=0)
    assert env._task is not None
    said = f"SELECT '<answer>{env._task.answer}</answer>'"
    _, reward, ended, _, _ = env.step(write_call("query", {"sql": said}))
    assert reward == 0 and not ended
    _, reward, ended, _, info = env.step("<answer>see above</answer>")
    assert ended and reward == 0 and not info["is_success"]


def test_a_broken_sqlite_is_no_fault_of_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise ChildProcessError("it ended at its start")

    monkeypatch.setattr(sqlite, "query", broken)
    info = play("SELECT 1")[1]
    assert info["stop_reason"] == "tool_down" and "ended at its start" in info["grader_error"]


def test_tables_are_listed_and_described() -> None:
    env = SQL(level=3)
    env.reset(seed=0)
    assert isinstance(env._task, ToolTask)
    tables = json.loads(env._task.world["tables"])
    listed = env.step(write_call("list_tables", {}))[0]
    assert listed == "\n".join(f"{name}: {len(table['rows'])} rows" for name, table in tables.items())
    assert len(tables) == 5
    for name, table in tables.items():
        lines = env.step(write_call("describe_table", {"table": f" {name.upper()} "}))[0].splitlines()
        width = len(table["columns"])
        assert lines[0] == "id INTEGER PRIMARY KEY" and lines[width] == ""
        assert [line.split()[0] for line in lines[:width]] == lines[width + 2].split(" | ")
        assert len(lines) == width + 6 and lines[width + 3].startswith("1 | ")
        references = [
            f"{other} INTEGER NOT NULL REFERENCES {other[:-3]}(id)" for other in lines[width + 2].split(" | ")
        ]
        assert all(line in references for line in lines[:width] if "REFERENCES" in line)
    observation = env.step(write_call("describe_table", {"table": "nothing"}))[0]
    assert observation == f"Error: there is no table 'nothing'; there are {', '.join(tables)}"


def test_a_task_is_data_that_json_can_say() -> None:
    env = SQL()
    env.reset(seed=1)
    task = env._task
    assert isinstance(task, ToolTask)
    again = ToolTask(task.question, task.answer, json.loads(json.dumps(task.data)), json.loads(json.dumps(task.world)))
    assert again.id == task.id and again == task
    tables = json.loads(task.world["tables"])
    assert sqlite.query(as_bytes(tables), task.data["sql"])


@pytest.mark.parametrize(
    "kwargs", [{"level": 0}, {"level": 4}, {"level": 1.5}, {"level": True}, {"progress_weight": 0.5}]
)
def test_arguments_out_of_range(kwargs: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"level|progress"):
        SQL(**kwargs)


@pytest.mark.parametrize(
    ("kwargs", "only"),
    [
        ({"level": 3}, {"expert", "state", "no_answer", "replay"}),
        ({"level": 1, "answer_format": "plain", "brief": True}, {"hostile", "expert", "no_answer"}),
    ],
)
def test_the_contract_holds_with_arguments(kwargs: dict[str, Any], only: set[str]) -> None:
    assert set(tetrathlon.envs.check("tetrathlon/SQL-v0", kwargs=kwargs, only=only)) == only
