"""Spark SQL on `nessie serve`, by NessieCatalog (both API versions) and by RESTCatalog."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError

from nessie_cli import Put, connect, create
from tests.engines.served import Served, serving
from tests.server.guarding import guarded
from tests.server.processes import started
from tests.spark.iceberg import MISSING, RUNTIME
from tests.spark.lakes import Sql, java_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(not RUNTIME.path.exists(), reason=MISSING)
OF_NESSIE = pytest.mark.parametrize("api", ["v1", "v2"])
APIS = pytest.mark.parametrize("api", ["v1", "v2", "rest"])


_OF_NESSIE = [
    "create namespace shop",
    "create namespace shop.eu",
    "update namespace shop",
    "Iceberg table created/registered with name shop.orders",
    "Iceberg append against shop.orders",
    "Iceberg overwrite against shop.orders",
    "Iceberg overwrite against shop.orders",
]
"""NessieCatalog makes the messages itself."""
MESSAGES = {
    "v1": _OF_NESSIE,
    "v2": _OF_NESSIE,
    "rest": [
        "create namespace shop",
        "create namespace shop.eu",
        "change namespace shop: tier",
        "create table shop.orders",
        "append to shop.orders: 3 rows",
        "overwrite shop.orders: 2 rows added, 2 deleted",
        "overwrite shop.orders: 1 row added, 2 deleted",
    ],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("lake")) as running:
        yield running


@APIS
def test_namespaces_and_tables(spark: SparkSession, server: Served, api: str) -> None:
    server.nessie("branch", f"tables-{api}", "main")
    sql = Sql(spark, server, api, ref=f"tables-{api}")

    sql("CREATE NAMESPACE shop WITH PROPERTIES (team = 'ann')")
    sql("CREATE NAMESPACE shop.eu")
    sql("ALTER NAMESPACE shop SET PROPERTIES (tier = 'gold')")
    assert sql("SHOW NAMESPACES") == [("shop",)]
    assert sql("SHOW NAMESPACES IN shop") == [("shop.eu",)]
    (properties,) = (
        row[1] for row in sql("DESCRIBE NAMESPACE EXTENDED shop") if row[0] == "Properties"
    )
    assert "(team,ann)" in properties
    assert "(tier,gold)" in properties

    sql("CREATE TABLE shop.orders (id BIGINT, client STRING, amount INT)")
    sql("INSERT INTO shop.orders VALUES (1, 'ann', 10), (2, 'bob', 20), (3, 'eve', 30)")
    sql("UPDATE shop.orders SET amount = amount + 1 WHERE id = 2")
    sql("DELETE FROM shop.orders WHERE id = 3")
    sql("""
        MERGE INTO shop.orders t USING (SELECT * FROM VALUES (1, 'ann', 0), (4, 'zoe', 40) AS v (id, client, amount)) s ON t.id = s.id
        WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *
    """)
    assert sql("SELECT * FROM shop.orders ORDER BY id") == [(2, "bob", 21), (4, "zoe", 40)]

    sql("ALTER TABLE shop.orders ADD COLUMN note STRING")
    sql("ALTER TABLE shop.orders RENAME COLUMN amount TO cents")
    sql("ALTER TABLE shop.orders ADD PARTITION FIELD bucket(2, id)")
    sql("ALTER TABLE shop.orders SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    sql("INSERT INTO shop.orders VALUES (5, 'ann', 50, 'gift'), (7, 'ann', 70, 'gift')")
    sql("DELETE FROM shop.orders WHERE id = 7")
    assert sql(
        "SELECT count(*), count(DISTINCT partition.id_bucket_2) > 0 FROM shop.orders.delete_files"
    ) == [(1, True)]
    sql("ALTER TABLE shop.orders RENAME TO shop.eu.sales")
    assert sql("SELECT * FROM shop.eu.sales ORDER BY id") == [
        (2, "bob", 21, None),
        (4, "zoe", 40, None),
        (5, "ann", 50, "gift"),
    ]

    sql("CREATE TABLE shop.copy AS SELECT id FROM shop.eu.sales")
    sql("CREATE OR REPLACE TABLE shop.copy AS SELECT id + 1 AS next FROM shop.eu.sales")
    assert sql("SELECT next FROM shop.copy ORDER BY next") == [(3,), (5,), (6,)]
    assert sql("SHOW TABLES IN shop.eu") == [("shop.eu", "sales", False)]

    assert sql.refused("CREATE TABLE shop.copy (id INT)")[0] == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert sql.refused("CREATE TABLE nowhere.t (id INT)")[0] == "NoSuchNamespaceException"
    if api != "rest":
        # RESTCatalog creates what is above it.
        assert sql.refused("CREATE NAMESPACE nowhere.below")[0] == "NoSuchNamespaceException"
    assert sql.refused("DROP NAMESPACE shop")[0] == "NamespaceNotEmptyException"
    assert sql.refused("DROP TABLE shop.copy PURGE") == (
        "ValidationException",
        "Cannot purge table: GC is disabled (deleting files may corrupt other tables)",
    )
    sql("DROP TABLE shop.copy")
    sql("DROP TABLE shop.eu.sales")
    sql("DROP NAMESPACE shop.eu")
    sql("DROP NAMESPACE shop")
    assert sql("SHOW NAMESPACES") == []

    with connect(server.store) as repository:
        log = list(repository.log(f"tables-{api}", operations=True))
    assert [entry.meta.message for entry in reversed(log)][:7] == MESSAGES[api]
    puts = [
        operation
        for entry in log
        for operation in entry.operations or ()
        if isinstance(operation, Put)
    ]
    assert (
        len({put.content.id for put in puts if str(put.key) in ("shop.orders", "shop.eu.sales")})
        == 1
    ), "a table keeps its identity"


@APIS
def test_views(spark: SparkSession, server: Served, api: str) -> None:
    server.nessie("branch", f"views-{api}", "main")
    sql = Sql(spark, server, api, ref=f"views-{api}")
    sql("CREATE NAMESPACE db")
    sql("CREATE TABLE db.t AS SELECT 1 AS id")
    sql("CREATE VIEW db.v AS SELECT id FROM db.t")
    assert sql("SELECT * FROM db.v") == [(1,)]
    sql("CREATE OR REPLACE VIEW db.v COMMENT 'two' AS SELECT id + 1 AS two FROM db.t")
    sql("ALTER VIEW db.v SET TBLPROPERTIES ('team' = 'ann')")
    sql("ALTER VIEW db.v RENAME TO db.w")
    assert sql("SELECT two FROM db.w") == [(2,)]
    assert sql("SHOW VIEWS IN db") == [("db", "w", False)]
    assert sql("SHOW TABLES IN db") == [("db", "t", False)]
    assert sql.refused("CREATE VIEW db.t AS SELECT 1 AS id")[0] == "VIEW_ALREADY_EXISTS"
    sql("DROP VIEW db.w")
    assert sql("SHOW VIEWS IN db") == []


@OF_NESSIE
def test_branches_tags_and_hashes(spark: SparkSession, server: Served, api: str) -> None:
    main, dev, tag = (f"{name}-{api}" for name in ("prod", "dev", "monday"))
    server.nessie("branch", main, "main")
    sql = Sql(spark, server, api, ref=main)
    sql("CREATE NAMESPACE db")
    sql("CREATE TABLE db.t AS SELECT 1 AS id")
    first = server.hash_of(main)
    server.nessie("branch", dev, main)
    server.nessie("tag", tag, main)

    remembering = Sql(spark, server, api, **{"ref": main, "cache-enabled": "true"})
    assert remembering("SELECT * FROM db.t") == [(1,)]

    # On a branch made by our command, by the name of the table and by a separate catalog.
    sql(f"INSERT INTO db.`t@{dev}` VALUES (2)")
    on_dev = Sql(spark, server, api, ref=dev)
    on_dev("INSERT INTO db.t VALUES (3)")
    assert sql("SELECT * FROM db.t") == [(1,)]
    assert sql(f"SELECT * FROM db.`t@{dev}` ORDER BY id") == [(1,), (2,), (3,)]
    server.nessie("merge", dev, "--into", main)
    assert sql("SELECT * FROM db.t ORDER BY id") == [(1,), (2,), (3,)]
    remembering("REFRESH TABLE db.t")
    assert remembering("SELECT * FROM db.t ORDER BY id") == [(1,), (2,), (3,)]

    # Time travel: the catalog's, and the table's own.
    assert sql(f"SELECT * FROM db.`t@{tag}`") == [(1,)]
    assert sql(f"SELECT * FROM db.`t@{main}#{first}`") == [(1,)]
    assert Sql(spark, server, api, ref=tag)("SELECT * FROM db.t") == [(1,)]
    assert Sql(spark, server, api, ref=main, ref__hash=first)("SELECT * FROM db.t") == [(1,)]
    snapshots = [
        row[0] for row in sql("SELECT snapshot_id FROM db.t.snapshots ORDER BY committed_at")
    ]
    assert [len(sql(f"SELECT * FROM db.t VERSION AS OF {snapshot}")) for snapshot in snapshots] == [
        1,
        2,
        3,
    ]

    # Read-only and missing references.
    name, said = sql.refused(f"INSERT INTO db.`t@{tag}` VALUES (4)")
    assert "You can only mutate" in said, (name, said)
    assert "does not exist" in sql.refused("SELECT * FROM db.`t@gone`")[1]
    server.nessie("branch", "-d", dev)
    assert (
        "does not exist"
        in Sql(spark, server, api, ref=main).refused(f"SELECT * FROM db.`t@{dev}`")[1]
    )


def test_branches_tags_and_hashes_by_rest(spark: SparkSession, server: Served) -> None:
    """Each reference is a catalog of its own."""
    server.nessie("branch", "prod/rest", "main")
    main = Sql(spark, server, "rest", ref="prod/rest")
    main("CREATE NAMESPACE db")
    main("CREATE TABLE db.t AS SELECT 1 AS id")
    first = server.hash_of("prod/rest")
    server.nessie("branch", "feature/x", "prod/rest")
    server.nessie("tag", "monday-rest", "prod/rest")

    dev = Sql(spark, server, "rest", ref="feature/x")
    dev("INSERT INTO db.t VALUES (2)")
    dev("INSERT INTO db.t VALUES (3)")
    assert main("SELECT * FROM db.t") == [(1,)]
    assert dev("SELECT * FROM db.t ORDER BY id") == [(1,), (2,), (3,)]
    server.nessie("merge", "feature/x", "--into", "prod/rest")
    assert main("SELECT * FROM db.t ORDER BY id") == [(1,), (2,), (3,)]
    snapshots = [
        row[0] for row in main("SELECT snapshot_id FROM db.t.snapshots ORDER BY committed_at")
    ]
    assert [len(main(f"SELECT * FROM db.t VERSION AS OF {one}")) for one in snapshots] == [1, 2, 3]

    for old in ("monday-rest", first):
        sql = Sql(spark, server, "rest", ref=old)
        assert sql("SELECT * FROM db.t") == [(1,)]
        # The configuration of what can only be read names the endpoints that read.
        refused = sql.refused("INSERT INTO db.t VALUES (4)")[1]
        assert "does not support endpoint: POST" in refused
    with pytest.raises(Py4JJavaError, match="'gone' not found"):
        Sql(spark, server, "rest", ref="gone")

    # One session sees both, as two catalogs; a branch of the table itself is Iceberg's own.
    both = main.session
    for name, value in dev.settings.items():
        both.conf.set(name.replace(".lake", ".dev"), value)
    main("INSERT INTO dev.db.t SELECT id + 3 FROM lake.db.t WHERE id = 1")
    assert main("SELECT count(*) FROM dev.db.t") == [(4,)]
    main("ALTER TABLE db.t CREATE BRANCH audit")
    main("INSERT INTO db.t.branch_audit VALUES (9)")
    assert main("SELECT count(*) FROM db.t") == [(3,)]
    assert main("SELECT count(*) FROM db.t VERSION AS OF 'audit'") == [(4,)]


@APIS
def test_sessions_that_conflict(
    spark: SparkSession, server: Served, api: str, tmp_path: Path
) -> None:
    branch = f"conflicts-{api}"
    server.nessie("branch", branch, "main")
    ann, bob = (Sql(spark, server, api, ref=branch) for _ in range(2))
    ann("CREATE NAMESPACE db")
    ann("CREATE TABLE db.t AS SELECT 1 AS id, 10 AS amount")

    # A commit on an old state of the table: the refusal of the server is Iceberg's exception.
    operations = ann.table("db.t").operations()
    base = operations.current()
    changed = (
        ann.session._jvm.org.apache.iceberg.TableMetadata.buildFrom(base)
        .setProperties({"team": "ann"})
        .build()
    )
    bob("INSERT INTO db.t VALUES (2, 20)")
    if api == "rest":
        # RESTCatalog sends only what changes, and this does not contradict the append.
        operations.commit(base, changed)
        assert ann("SHOW TBLPROPERTIES db.t ('team')") == [("team", "ann")]
    else:
        with pytest.raises(Py4JJavaError) as refused:
            operations.commit(base, changed)
        assert java_error(refused.value)[0] == "CommitFailedException"
        assert "Reference hash is out of date" in java_error(refused.value)[1]

    # Iceberg retries changes that allow it ...
    both = [
        threading.Thread(target=sql, args=(f"INSERT INTO db.t VALUES ({number}, 0)",))
        for number, sql in ((3, ann), (4, bob))
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert ann("SELECT id FROM db.t ORDER BY id") == [(1,), (2,), (3,), (4,)]

    # ... and refuses others: an update that has read rows which another session has changed.
    reading, changed_meanwhile = tmp_path / "reading", tmp_path / "changed"

    def wait(amount: int) -> int:
        reading.touch()
        deadline = time.monotonic() + 120
        while not changed_meanwhile.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        return amount + 1

    ann.session.udf.register("wait", wait, "int")
    said: list[tuple[str, str]] = []
    slow = threading.Thread(
        target=lambda: said.append(
            ann.refused("UPDATE db.t SET amount = wait(amount) WHERE id = 1")
        )
    )
    slow.start()
    while not reading.exists() and slow.is_alive():
        time.sleep(0.02)
    bob("UPDATE db.t SET amount = 100 WHERE id = 1")
    changed_meanwhile.touch()
    slow.join()
    assert said[0][0] == "ValidationException", said
    assert ann("SELECT amount FROM db.t WHERE id = 1") == [(100,)]


def test_one_store_for_spark_and_pyiceberg(spark: SparkSession, server: Served) -> None:
    """Spark comes through the server, PyIceberg opens the file."""
    import pyarrow as pa
    from pyiceberg.catalog import load_catalog
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import BucketTransform
    from pyiceberg.types import LongType, NestedField
    from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion

    server.nessie("branch", "both", "main")
    sql = Sql(spark, server, "v2", ref="both")
    options = {
        "py-catalog-impl": "nessie_cli.iceberg.catalog.NessieCatalog",
        "uri": server.store,
        "warehouse": str(server.warehouse),
        "ref": "both",
    }
    with closing(load_catalog("lake", **options)) as catalog:
        catalog.create_namespace("db", {"owner": "ann"})
        sql(
            "CREATE TABLE db.spark (id BIGINT, name STRING) TBLPROPERTIES ('write.delete.mode' ="
            " 'merge-on-read')"
        )
        sql("INSERT INTO db.spark VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        sql("DELETE FROM db.spark WHERE id = 2")
        table = catalog.load_table("db.spark")
        assert table.scan().to_arrow().sort_by("id").to_pylist() == [
            {"id": 1, "name": "a"},
            {"id": 3, "name": "c"},
        ]
        table.append(pa.table({"id": [4], "name": ["d"]}))
        sql("UPDATE db.spark SET name = 'D' WHERE id = 4")
        assert sql("SELECT * FROM db.spark ORDER BY id") == [(1, "a"), (3, "c"), (4, "D")]
        with pytest.warns(UserWarning, match="falling back to copy-on-write"):
            table.refresh().delete("id = 1")
        assert table.scan().to_arrow().sort_by("id").to_pylist() == [
            {"id": 3, "name": "c"},
            {"id": 4, "name": "D"},
        ]
        assert sql("SELECT * FROM db.spark ORDER BY id") == [(3, "c"), (4, "D")]

        # Deletion vectors: PyIceberg reads them.
        newest = (
            "PARTITIONED BY (bucket(4, id)) TBLPROPERTIES ('format-version' = '3',"
            " 'write.delete.mode' = 'merge-on-read')"
        )
        sql(f"CREATE TABLE db.newest {newest} AS SELECT id FROM range(5)")
        sql("DELETE FROM db.newest WHERE id = 2")
        table = catalog.load_table("db.newest")
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 3, 4]
        assert {file["file_format"] for file in table.inspect.delete_files().to_pylist()} == {
            "PUFFIN"
        }

        rows = pa.table({"id": [1, 2], "amount": [1.5, 2.5]})
        with catalog.create_table_transaction("db.python", rows.schema) as creation:
            with creation.update_spec() as spec:
                spec.add_field("id", BucketTransform(4))
            creation.append(rows)
        assert sql("SELECT * FROM db.python ORDER BY id") == [(1, 1.5), (2, 2.5)]
        sql(
            "MERGE INTO db.python t USING (SELECT 2 AS id, 0.0 AS amount) s ON t.id = s.id WHEN"
            " MATCHED THEN UPDATE SET amount = s.amount"
        )
        sql("ALTER TABLE db.python ADD COLUMN note STRING")
        table = catalog.load_table("db.python")
        assert table.scan().to_arrow().sort_by("id").to_pylist() == [
            {"id": 1, "amount": 1.5, "note": None},
            {"id": 2, "amount": 0.0, "note": None},
        ]
        catalog.rename_table("db.python", "db.renamed")
        assert sql("SELECT count(*) FROM db.renamed") == [(2,)]

        sql("CREATE VIEW db.by_spark AS SELECT id FROM db.renamed")
        assert (
            catalog.load_view("db.by_spark").current_version().representations[0].root.sql
            == "SELECT id FROM db.renamed"
        )
        schema = Schema(NestedField(1, "id", LongType()))
        text = SQLViewRepresentation(type="sql", sql="SELECT id FROM db.renamed", dialect="spark")
        version = ViewVersion(
            version_id=1,
            schema_id=0,
            timestamp_ms=1,
            summary={},
            representations=[text],
            default_catalog="lake",
            default_namespace=["db"],
        )
        catalog.create_view("db.by_python", schema, version)
        assert sql("SELECT * FROM db.by_python ORDER BY id") == [(1,), (2,)]
        assert sorted(catalog.list_tables("db")) == [
            ("db", "newest"),
            ("db", "renamed"),
            ("db", "spark"),
        ]
        assert sorted(catalog.list_views("db")) == [("db", "by_python"), ("db", "by_spark")]


def test_four_writers_of_one_table_in_turn(spark: SparkSession, server: Served) -> None:
    """Spark by RESTCatalog and by NessieCatalog, DuckDB by REST, PyIceberg on the store itself."""
    import pyarrow as pa
    from pyiceberg.catalog import load_catalog

    server.nessie("branch", "feature/four", "main")
    rest, nessie = (Sql(spark, server, api, ref="feature/four") for api in ("rest", "v2"))
    rest("CREATE NAMESPACE db")
    rest("CREATE TABLE db.t (id BIGINT, writer STRING)")
    expected: list[tuple[int, str]] = []
    with (
        closing(server.duckdb("feature/four")) as duck,
        closing(load_catalog("lake", **server.embedded("feature/four"))) as embedded,
    ):
        for turn in range(3):
            writers = ["rest", "duckdb", "embedded", "nessie"]
            made = [(4 * turn + number, writer) for number, writer in enumerate(writers)]
            (first, second, third, fourth) = made
            rest(f"INSERT INTO db.t VALUES {first}")
            duck(f"INSERT INTO feature_four.db.t VALUES {second}")
            rows = pa.table({"id": [third[0]], "writer": [third[1]]})
            embedded.load_table("db.t").append(rows)
            nessie(f"INSERT INTO db.t VALUES {fourth}")
            expected += made
            for seen in (
                rest("SELECT * FROM db.t ORDER BY id"),
                nessie("SELECT * FROM db.t ORDER BY id"),
                duck("SELECT * FROM feature_four.db.t ORDER BY id"),
                [
                    tuple(row.values())
                    for row in embedded.load_table("db.t")
                    .scan()
                    .to_arrow()
                    .sort_by("id")
                    .to_pylist()
                ],
            ):
                assert seen == expected
        rest("UPDATE db.t SET writer = 'nobody' WHERE id = 1")
        duck("DELETE FROM feature_four.db.t WHERE id = 2")
        nessie("DELETE FROM db.t WHERE id = 3")
        assert embedded.load_table("db.t").scan(row_filter="id < 5").to_arrow().sort_by(
            "id"
        ).to_pylist() == [
            {"id": 0, "writer": "rest"},
            {"id": 1, "writer": "nobody"},
            {"id": 4, "writer": "rest"},
        ]
        assert len(rest("SELECT * FROM db.t.snapshots")) == 15
    contents = {
        put.content.id
        for entry in server.log("feature/four")
        for put in entry.operations or ()
        if isinstance(put, Put) and str(put.key) == "db.t"
    }
    assert len(contents) == 1


def test_unreadable_and_unreachable_files_are_named(spark: SparkSession, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/catalog.sqlite"
    create(store).close()
    with started("--store", store) as (_, url):
        sql = Sql(spark, Served(url, store, tmp_path / "warehouse"), "v2")
        sql("CREATE NAMESPACE db")
        sql("CREATE TABLE db.t (id INT)")
        assert sql.refused("SELECT * FROM db.x")[0] == "TABLE_OR_VIEW_NOT_FOUND"
        (file,) = tmp_path.glob("warehouse/db/t_*/metadata/*.metadata.json")
        (file.parent / f".{file.name}.crc").unlink()
        file.write_text(file.read_text()[:100])
        assert sql.refused("SELECT * FROM db.t") == (
            "RuntimeIOException",
            f"Failed to read file: {file}",
        )
        file.unlink()
        assert sql.refused("SELECT * FROM db.t") == (
            "NotFoundException",
            f"Failed to open input stream for file: {file}",
        )
    name, said = sql.refused("CREATE TABLE db.u (id INT)")
    assert name == "HttpClientException", said
    assert url in said
    with connect(store) as repository:
        assert [entry.meta.message for entry in repository.log("main")] == [
            "Iceberg table created/registered with name db.t",
            "create namespace db",
        ]


def test_a_server_with_tokens(spark: SparkSession, tmp_path: Path) -> None:
    with guarded(tmp_path) as guard:
        server = Served(guard.url, "", tmp_path / "warehouse")
        token = guard.as_("ann", "admin").token
        assert token
        known = Sql(spark, server, "v2", authentication__type="BEARER", authentication__token=token)
        known("CREATE NAMESPACE db")
        assert known("SHOW NAMESPACES") == [("db",)]
        setting = "spark.sql.catalog.lake.authentication.token"
        assert known(f"SET {setting}") == [(setting, "*********(redacted)")]
        (entry,) = guard.repository.log("main")
        assert entry.meta.committer == "ann"
        assert (
            Sql(spark, server, "v2").refused("SHOW NAMESPACES")[0] == "NessieNotAuthorizedException"
        )
