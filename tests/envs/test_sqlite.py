import os
import resource
import sqlite3
import threading
import time

import pytest

from tetrathlon.envs import sqlite
from tetrathlon.envs.sqlite import QueryError, is_ordered, query, same_rows


@pytest.fixture
def shop(tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.execute("CREATE TABLE item(id INTEGER, name TEXT)")
        connection.executemany("INSERT INTO item VALUES (?, ?)", [(1, "pen"), (2, "cup"), (3, "pen")])
    connection.close()
    return tmp_path / "shop.db"


# s11
@pytest.mark.parametrize(
    "sql",
    ["ATTACH DATABASE 'new.db' AS n", "CREATE TABLE x(a)", "CREATE TEMP TABLE x(a)", "VACUUM INTO 'copy.db'", "VACUUM",
     "SELECT 1; DROP TABLE item", "/* x */ DELETE FROM item", "WITH t AS (SELECT 1) DELETE FROM item",
     "PRAGMA query_only(0)", "SELECT * FROM pragma_database_list", "SELECT load_extension('x')", "BEGIN", "ANALYZE",
     "UPDATE item SET id = 4 RETURNING id", "", "-- nothing", "SELECT", "SELECT \0", "SELECT '\udc80'", "x" * 200_000,
     "DETACH main", "REINDEX", "INSERT INTO item VALUES (4, 'x')", "SELECT nothing FROM item"],
)  # fmt: skip
@pytest.mark.parametrize("is_open", [False, True])
def test_what_is_no_read_is_refused(shop, monkeypatch, sql, is_open):
    monkeypatch.chdir(shop.parent)
    before = shop.read_bytes()
    connection = sqlite3.connect(shop)
    with pytest.raises(QueryError):
        query(connection if is_open else shop, sql)
    assert query(shop, "SELECT count(*) FROM item") == [(3,)]
    assert connection.execute("SELECT count(*) FROM item").fetchall() == [(3,)]
    connection.close()
    assert [path.name for path in shop.parent.iterdir()] == ["shop.db"] and shop.read_bytes() == before


@pytest.mark.parametrize(
    ("sql", "rows"),
    [("SELECT count(*) FROM item", [(3,)]), ("WITH t AS (SELECT 2 AS k) SELECT count(*) FROM item, t", [(3,)]),
     ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<5) SELECT sum(x) FROM c", [(15,)]),
     ("SELECT upper(name) FROM item WHERE id = 2", [("CUP",)]), ("SELECT name FROM sqlite_master", [("item",)]),
     ("SELECT value FROM json_each('[1, \"a\"]')", [(1,), ("a",)]),
     ("SELECT atom FROM json_tree('[[2]]') WHERE atom IS NOT NULL", [(2,)]),
     ("SELECT 1 WHERE 0", []), ("VALUES (1, NULL)", [(1, None)]), ("SELECT 1;", [(1,)])],
)  # fmt: skip
def test_reads_work(shop, sql, rows):
    assert query(shop, sql) == rows


# s13
@pytest.mark.parametrize(
    "sql",
    ["WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c",
     "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<10000) SELECT count(*) FROM c a, c b, c d"],
)  # fmt: skip
def test_a_query_without_end_is_stopped(shop, sql):
    start = time.monotonic()
    with pytest.raises(QueryError, match=r"took longer than 0\.2 seconds"):
        query(shop, sql, seconds=0.2)
    assert time.monotonic() - start < 2


def long(length):
    return f"printf('%.{length}c', 'a')"


DOUBLED = ", ".join(f"c{n} AS (SELECT a.x FROM c{n - 1} a, c{n - 1} b)" for n in range(1, 18))
BOMBS = {
    "while it is prepared": f"WITH c0 AS (SELECT 1 x), {DOUBLED} SELECT x FROM c17",
    # The text is of all three tables, so that it is compared for each of their 27 triples.
    "like": f"SELECT count(*) FROM item a, item b, item c "
    f"WHERE {long(900_000)} || a.id || b.id || c.id LIKE '%{'a' * 90}b'",
    "instr": f"SELECT instr({long(900_000)}, {long(400_000)} || 'b')",
    "replace": f"SELECT length(replace({long(900_000)}, {long(400_000)} || 'b', 'x'))",
    "columns": "SELECT " + ",".join(["hex(zeroblob(499000))"] * 240) + " FROM item",
    "a sort": "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<2000) "
    f"SELECT length(y) FROM (SELECT {long(900_000)} || x AS y FROM c ORDER BY y)",
    "many columns": "SELECT " + ",".join(["1"] * 1000),
    "long patterns": f"SELECT 'a' LIKE '{'%a' * 5000}'",
}


@pytest.mark.parametrize("name", BOMBS)
def test_no_query_takes_much_time_or_memory(shop, name):
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(QueryError, match=r"longer than 0\.4|more than 512 MB|too many columns|too complex|characters"):
        query(shop, BOMBS[name], seconds=0.4)
    assert time.monotonic() - start < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # of this process, in kilobytes
    assert query(shop, "SELECT count(*) FROM item") == [(3,)]


def test_a_lock_of_another_counts_as_time(shop):
    other = sqlite3.connect(shop, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    start = time.monotonic()
    with pytest.raises(QueryError, match=r"locked|longer"):
        query(shop, "SELECT 1 FROM item", seconds=0.3)
    assert time.monotonic() - start < 2
    other.execute("COMMIT")
    assert len(query(shop, "SELECT 1 FROM item")) == 3
    other.close()


def test_a_file_with_a_log_is_read_with_it_and_gets_none(shop):
    other = sqlite3.connect(shop, isolation_level=None)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("INSERT INTO item VALUES (4, 'cap')")
    assert query(shop, "SELECT name FROM item WHERE id = 4") == [("cap",)]
    assert query(other, "SELECT name FROM item WHERE id = 4") == [("cap",)]
    other.close()
    assert query(shop, "SELECT name FROM item WHERE id = 4") == [("cap",)]
    assert query(shop.read_bytes(), "SELECT name FROM item WHERE id = 4") == [("cap",)]
    assert [path.name for path in shop.parent.iterdir()] == ["shop.db"]


def test_connections_and_bytes_are_read_as_they_are_now(monkeypatch):
    connection = sqlite3.connect(":memory:")
    connection.row_factory = lambda cursor, row: {"row": row}
    assert query(connection, "SELECT 1") == [(1,)] and query(b"", "SELECT 2") == [(2,)]
    connection.execute("CREATE TABLE t(a)")
    connection.execute("INSERT INTO t VALUES (5)")
    assert connection.in_transaction and query(connection, "SELECT * FROM t") == [(5,)]
    connection.rollback()
    assert query(connection, "SELECT * FROM t") == []
    with pytest.raises(QueryError, match="not a database"):
        query(b"no database at all", "SELECT * FROM t")
    monkeypatch.setattr(sqlite, "LARGEST_COPY", 1000)
    with pytest.raises(ValueError, match="8192 bytes is more than 1000; give the path"):
        query(connection, "SELECT 1")
    connection.close()


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_time_is_a_positive_number(shop, seconds):
    with pytest.raises(ValueError, match="seconds must be a positive number, got"):
        query(shop, "SELECT 1", seconds=seconds)


def test_a_process_that_was_killed_is_replaced_and_none_is_left(shop):
    query(shop, "SELECT 1")
    pids = [worker._process.pid for worker in sqlite._idle]
    for pid in pids:
        os.kill(pid, 9)
    assert query(shop, "SELECT 1") == [(1,)]
    sqlite._stop_all()
    assert not sqlite._idle and query(shop, "SELECT 1") == [(1,)]


def test_threads_and_forks_have_processes_of_their_own(shop):
    found = []

    def ask(number):
        found.append(query(shop, f"SELECT {number}", seconds=20))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [[(n,)] for n in range(8)]
    before = [worker._process.pid for worker in sqlite._idle]
    if not (pid := os.fork()):
        is_right = not sqlite._idle and query(shop, "SELECT 7") == [(7,)]
        sqlite._stop_all()
        os._exit(0 if is_right else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert query(shop, "SELECT 8") == [(8,)] and [worker._process.pid for worker in sqlite._idle] == before


def test_warm_queries_are_fast(shop):
    query(shop, "SELECT 1")
    start = time.monotonic()
    for _ in range(200):
        query(shop, "SELECT count(*) FROM item")
    assert time.monotonic() - start < 2  # 0.1 s on an idle machine


def test_columns_are_named_and_their_names_count(shop):
    assert query(shop, "SELECT 1, 2 AS two, 3 AS two WHERE 0").columns == ("1", "two", "two")
    with pytest.raises(QueryError, match="10000000 characters"):
        query(shop, f"WITH t AS (SELECT 1 AS {'y' * 90_000}) SELECT {', '.join(['t.*'] * 200)} FROM t")


def test_results_are_bounded(shop):
    assert len(query(shop, "SELECT * FROM item", rows=3)) == 3
    with pytest.raises(QueryError, match="more than 2 rows"):
        query(shop, "SELECT * FROM item", rows=2)
    with pytest.raises(QueryError, match="too big"):
        query(shop, "SELECT zeroblob(2000000)")
    many = (
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<50) SELECT hex(zeroblob(400000)) FROM c"
    )
    with pytest.raises(QueryError, match="10000000 characters"):
        query(shop, many, seconds=9)


@pytest.mark.parametrize(
    "sql",
    ["SELECT random()", "SELECT abs(RANDOM()) % 5", "SELECT hex(randomblob(4))",
     "SELECT id FROM item ORDER BY random()", "SELECT CURRENT_TIMESTAMP", "SELECT current_date", "SELECT current_time",
     "SELECT date()", "SELECT datetime('now')", "SELECT time('NOW')", "SELECT date('n' || 'ow', '-1 day')",
     "SELECT date(x'6e6f77')",
     "SELECT datetime('now' || char(0) || 'x')", "SELECT julianday('now')", "SELECT strftime('%Y')",
     "SELECT strftime('%Y', 'now')", "SELECT id FROM item WHERE date('now') > '2000'",
     "SELECT datetime('2020-01-01', 'localtime')", "SELECT strftime('%H', '2020-01-01', 'UTC')"],
)  # fmt: skip
def test_an_exact_query_knows_neither_chance_nor_today(shop, sql):
    assert query(shop, sql)
    with pytest.raises(QueryError, match="a query must give the same whenever it is run"):
        query(shop, sql, exact=True)
    assert query(shop, "SELECT count(*) FROM item", exact=True) == [(3,)]


@pytest.mark.parametrize(
    "sql",
    ["SELECT date('2020-01-31', '+1 month', 'start of month'), time('10:30'), datetime(2459000.5), date('x')",
     "SELECT julianday('2020-03-01') - julianday('2020-02-01'), typeof(julianday('2020-03-01'))",
     "SELECT strftime('%w now', '2020-02-29'), strftime('%Y-%m', '2020-02-29'), strftime(NULL, '2020-01-01')",
     "SELECT max(date('2020-01-01', '+' || id || ' days')), min(datetime(id, 'unixepoch')) FROM item GROUP BY name",
     "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 5000) "
     "SELECT sum(julianday(date('2020-01-01', x || ' days'))) FROM c"],
)  # fmt: skip
def test_an_exact_query_knows_all_other_days(shop, sql):
    plain, exact = query(shop, sql), query(shop, sql, exact=True)
    assert exact == plain and exact.columns == plain.columns


def test_a_missing_file_is_not_made(tmp_path):
    with pytest.raises(FileNotFoundError):
        query(tmp_path / "none.db", "SELECT 1")
    assert not list(tmp_path.iterdir())


# s15
@pytest.mark.parametrize(
    ("found", "gold", "ordered", "expected"),
    [
        ([("pen",), ("cup",)], [("pen",), ("cup",), ("pen",)], False, False),
        ([("pen",), ("cup",), ("cup",)], [("pen",), ("cup",), ("pen",)], False, False),
        ([("cup",), ("pen",), ("pen",)], [("pen",), ("cup",), ("pen",)], False, True),
        ([("pen",), ("cup",)], [("cup",), ("pen",)], True, False),
        ([(1,)], [(1.0,)], True, True),
        ([(0.6,)], [(0.6000000000000001,)], False, True),
        ([(0.6,)], [(0.61,)], False, False),
        ([("1",)], [(1,)], False, False),
        ([(None,)], [(None,)], False, True),
        ([(None,)], [(0,)], False, False),
        ([(1, 2)], [(1,)], False, False),
        ([(0.1, 1), (0.1 + 1e-15, 0)], [(0.1, 0), (0.1 + 1e-15, 1)], False, True),
        ([(b"a",)], [("a",)], False, False),
        ([(2**53 + 1,)], [(2**53,)], False, False),
        ([], [], True, True),
    ],
)
def test_rows_are_compared_as_a_multiset(found, gold, ordered, expected):
    assert same_rows(found, gold, ordered=ordered) is expected


def test_rows_that_tie_may_swap():
    gold = [("a", 1), ("b", 1), ("c", 2)]
    assert same_rows([("b", 1), ("a", 1), ("c", 2)], gold, ordered=True, keys=[1])
    assert not same_rows([("b", 1), ("a", 1), ("c", 2)], gold, ordered=True)
    assert not same_rows([("c", 2), ("a", 1), ("b", 1)], gold, ordered=True, keys=[1])
    assert not same_rows([("b", 1), ("b", 1), ("c", 2)], gold, ordered=True, keys=[1])


@pytest.mark.parametrize("text", ["'" * 100_001, '"a' * 50_001, "[" * 100_000, "`a" * 50_001, "/*" * 50_000])
def test_an_order_is_looked_for_in_linear_time(text):
    start = time.monotonic()
    assert not is_ordered(text)
    assert time.monotonic() - start < 1


@pytest.mark.parametrize(
    ("sql", "expected"),
    [("SELECT a FROM t ORDER BY a", True), ("select a from t order\n/* x */ by a", True), ("SELECT a FROM t", False),
     ("SELECT * FROM (SELECT a FROM t ORDER BY a)", False), ("SELECT 'ORDER BY' FROM t -- order by a", False),
     ("SELECT rank() OVER (ORDER BY a) FROM t", False), ('SELECT "order by" FROM t', False)],
)  # fmt: skip
def test_an_order_is_seen_outside_of_brackets_and_strings(sql, expected):
    assert is_ordered(sql) is expected
