import sqlite3
import time

import pytest

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


@pytest.mark.parametrize(
    ("sql", "expected"),
    [("SELECT a FROM t ORDER BY a", True), ("select a from t order\n/* x */ by a", True), ("SELECT a FROM t", False),
     ("SELECT * FROM (SELECT a FROM t ORDER BY a)", False), ("SELECT 'ORDER BY' FROM t -- order by a", False),
     ("SELECT rank() OVER (ORDER BY a) FROM t", False), ('SELECT "order by" FROM t', False)],
)  # fmt: skip
def test_an_order_is_seen_outside_of_brackets_and_strings(sql, expected):
    assert is_ordered(sql) is expected
