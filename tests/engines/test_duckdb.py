"""DuckDB on branches, through the Iceberg REST catalog of `nessie serve`."""

from __future__ import annotations

from contextlib import closing

import duckdb
import pytest

from tests.engines.served import Duck, Served

COLUMNS = "(id BIGINT, client VARCHAR, cents INTEGER)"


def shop(served: Served, main: str) -> None:
    """Create a branch with a table of two rows in two snapshots."""
    served.nessie("branch", main, "main")
    name = main.replace("/", "_")
    with closing(served.duckdb(main)) as duck:
        duck(f"CREATE SCHEMA {name}.shop")
        duck(f"CREATE TABLE {name}.shop.orders {COLUMNS}")
        duck(f"INSERT INTO {name}.shop.orders VALUES (1, 'ann', 10)")
        duck(f"INSERT INTO {name}.shop.orders VALUES (2, 'bob', 20)")


def rows(duck: Duck, catalog: str) -> list[tuple[object, ...]]:
    return duck(f"SELECT * FROM {catalog}.shop.orders ORDER BY id")


def test_a_branch_is_changed_and_merged(served: Served) -> None:
    shop(served, "prod")
    served.nessie("branch", "feature/x", "prod")
    with closing(served.duckdb("prod", "feature/x")) as duck:
        before = rows(duck, "prod")
        assert before == [(1, "ann", 10), (2, "bob", 20)]
        duck("INSERT INTO feature_x.shop.orders VALUES (3, 'eve', 30)")
        duck("UPDATE feature_x.shop.orders SET cents = cents + 1 WHERE id = 2")
        duck("DELETE FROM feature_x.shop.orders WHERE id = 1")
        duck("ALTER TABLE feature_x.shop.orders ADD COLUMN note VARCHAR")
        after = [(2, "bob", 21, None), (3, "eve", 30, None)]
        assert rows(duck, "feature_x") == after
        assert rows(duck, "prod") == before

        served.nessie("merge", "feature/x", "--into", "prod")
    with closing(served.duckdb("prod")) as duck:
        assert rows(duck, "prod") == after


def test_tables_and_namespaces_are_created_and_dropped(served: Served) -> None:
    served.nessie("branch", "feature/names", "main")
    with closing(served.duckdb("feature/names")) as duck:
        duck("CREATE SCHEMA feature_names.shop")
        duck('CREATE SCHEMA feature_names."shop.eu"')
        duck(
            "CREATE TABLE feature_names.\"shop.eu\".sales AS SELECT 1 AS id, DATE '2026-01-31' AS day"
        )
        assert duck('SELECT id, day::VARCHAR FROM feature_names."shop.eu".sales') == [
            (1, "2026-01-31")
        ]
        seen = duck(
            "SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'feature_names'"
        )
        assert sorted(seen) == [("shop",), ("shop.eu",)]
        with pytest.raises(duckdb.Error, match="not empty"):
            duck('DROP SCHEMA feature_names."shop.eu"')
        with pytest.raises(duckdb.Error, match="already exists"):
            duck('CREATE TABLE feature_names."shop.eu".sales (id INTEGER)')
        duck('DROP TABLE feature_names."shop.eu".sales')
        duck('DROP SCHEMA feature_names."shop.eu"')
        duck("DROP SCHEMA feature_names.shop")
        assert duck("SELECT * FROM duckdb_schemas() WHERE database_name = 'feature_names'") == []


def test_time_travel(served: Served) -> None:
    shop(served, "travel/main")
    served.nessie("tag", "monday", "travel/main")
    with closing(served.duckdb("travel/main", "monday")) as duck:
        duck("DELETE FROM travel_main.shop.orders WHERE id = 1")
        snapshots = duck("""
            SELECT snapshot_id FROM iceberg_snapshots(travel_main.shop.orders)
            ORDER BY sequence_number
        """)
        counts = [
            duck(f"SELECT count(*) FROM travel_main.shop.orders AT (VERSION => {snapshot})")
            for (snapshot,) in snapshots
        ]
        assert counts == [[(1,)], [(2,)], [(1,)]]
        # A tag is time travel over all tables, and read-only.
        assert rows(duck, "monday") == [(1, "ann", 10), (2, "bob", 20)]
        with pytest.raises(duckdb.Error, match="monday is a tag"):
            duck("INSERT INTO monday.shop.orders VALUES (9, 'zoe', 90)")
    appends = [
        entry for entry in served.log("travel/main") if entry.meta.message.startswith("append")
    ]
    first = appends[-1].hash
    with closing(Duck({"old": served.rest(first)})) as duck:
        assert rows(duck, "old") == [(1, "ann", 10)]


def test_a_transaction_over_existing_tables_is_one_commit(served: Served) -> None:
    shop(served, "feature/both")
    with closing(served.duckdb("feature/both")) as duck:
        duck(f"CREATE TABLE feature_both.shop.returns {COLUMNS}")
        before = served.log("feature/both")
        duck("BEGIN")
        duck("INSERT INTO feature_both.shop.returns VALUES (1, 'ann', 10)")
        duck("DELETE FROM feature_both.shop.orders WHERE id = 1")
        duck("COMMIT")
        assert rows(duck, "feature_both") == [(2, "bob", 20)]
        assert duck("SELECT id FROM feature_both.shop.returns") == [(1,)]
        newest, *rest = served.log("feature/both")
        assert rest == before
        assert sorted(str(one.key) for one in newest.operations or ()) == [
            "shop.orders",
            "shop.returns",
        ]

        duck("BEGIN")
        duck("INSERT INTO feature_both.shop.returns VALUES (2, 'bob', 20)")
        duck("ROLLBACK")
        assert duck("SELECT id FROM feature_both.shop.returns") == [(1,)]
        assert served.log("feature/both") == [newest, *before]


def test_a_rollback_leaves_no_table(served: Served) -> None:
    shop(served, "feature/rollback")
    with closing(served.duckdb("feature/rollback")) as duck:
        before = served.log("feature/rollback")
        duck("BEGIN")
        duck("CREATE TABLE feature_rollback.shop.sums AS SELECT 30 AS cents")
        duck("INSERT INTO feature_rollback.shop.sums VALUES (40)")
        assert duck("SELECT sum(cents) FROM feature_rollback.shop.sums") == [(70,)]
        duck("ROLLBACK")
        assert served.log("feature/rollback") == before
        duck("CREATE TABLE feature_rollback.shop.sums AS SELECT 50 AS cents")
        assert duck("SELECT cents FROM feature_rollback.shop.sums") == [(50,)]
    newest, *rest = served.log("feature/rollback")
    assert (newest.meta.message, rest) == ("create table shop.sums: 1 row", before)


def test_a_transaction_that_creates_or_drops_tables_is_several_commits(served: Served) -> None:
    shop(served, "feature/several")
    with closing(served.duckdb("feature/several")) as duck:
        before = served.log("feature/several")
        duck("BEGIN")
        duck("CREATE TABLE feature_several.shop.sums AS SELECT 30 AS cents")
        duck("INSERT INTO feature_several.shop.orders VALUES (3, 'eve', 30)")
        duck("COMMIT")
        duck("BEGIN")
        duck("INSERT INTO feature_several.shop.orders VALUES (4, 'fay', 40)")
        duck("DROP TABLE feature_several.shop.sums")
        duck("COMMIT")
    messages = [entry.meta.message for entry in served.log("feature/several")]
    assert messages[: -len(before)] == [
        "drop table shop.sums",
        "append to shop.orders: 1 row",
        "append to shop.orders: 1 row",
        "create table shop.sums: 1 row",
    ]


def test_a_refused_transaction_leaves_the_tables_that_it_created(served: Served) -> None:
    shop(served, "feature/left")
    with (
        closing(served.duckdb("feature/left")) as ann,
        closing(served.duckdb("feature/left")) as bob,
    ):
        ann("BEGIN")
        ann("CREATE TABLE feature_left.shop.sums AS SELECT 30 AS cents")
        ann("UPDATE feature_left.shop.orders SET cents = 0 WHERE id = 1")
        bob("DELETE FROM feature_left.shop.orders WHERE id = 1")
        with pytest.raises(duckdb.Error):
            ann("COMMIT")
        assert rows(bob, "feature_left") == [(2, "bob", 20)]
    with closing(served.duckdb("feature/left")) as duck:
        assert duck("SELECT cents FROM feature_left.shop.sums") == [(30,)]


def test_the_warehouse_names_the_branch(served: Served) -> None:
    shop(served, "feature/named")
    served.nessie("tag", "named_1", "feature/named")
    root = f"{served.url}/iceberg"
    with closing(Duck({})) as duck:
        for number, warehouse in enumerate(("feature/named|lake", "feature/named|", "named_1|")):
            duck.attach(f"c{number}", root, warehouse)
            assert rows(duck, f"c{number}") == [(1, "ann", 10), (2, "bob", 20)]
        duck("DELETE FROM c0.shop.orders WHERE id = 1")
        with pytest.raises(duckdb.Error, match=r"named_1 is a tag"):
            duck("DELETE FROM c2.shop.orders WHERE id = 1")
        with pytest.raises(duckdb.Error, match="404"):
            duck.attach("unknown", root, "nowhere|lake")
    with closing(served.duckdb("feature/named", "named_1")) as duck:
        assert rows(duck, "feature_named") == [(2, "bob", 20)]


def test_a_transaction_from_an_old_state_is_refused(served: Served) -> None:
    shop(served, "feature/old")
    with closing(served.duckdb("feature/old")) as ann, closing(served.duckdb("feature/old")) as bob:
        ann("BEGIN")
        ann("UPDATE feature_old.shop.orders SET cents = 0 WHERE id = 1")
        bob("DELETE FROM feature_old.shop.orders WHERE id = 1")
        with pytest.raises(duckdb.Error):
            ann("COMMIT")
        assert rows(bob, "feature_old") == [(2, "bob", 20)]
