"""Garbage collection of random histories of Spark and PyIceberg.

The oracle of live files is Iceberg's Java library: its tables of all files, manifests and snapshots
of each live metadata file.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from nessie_cli.gc.removal import RemovalOutcome
from nessie_cli.iceberg.locations import normalised
from nessie_cli.iceberg.reachable import FileKind
from nessie_cli.model import IcebergView, Put, ReferenceType
from nessie_cli.repository.base import Repository
from tests.engines.served import Served
from tests.gc.lakes import Shore, live_commits, live_tables, shore
from tests.server.processes import started
from tests.spark.iceberg import MISSING, RUNTIME
from tests.spark.lakes import Sql

CUTOFF = 3


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Shore]:
    with shore(tmp_path) as made:
        yield made


def scribble(lake: Shore, sql: Sql, chance: random.Random) -> None:
    """Makes tables of all format versions, then random changes."""
    sql("CREATE NAMESPACE db")
    for version in "123":
        properties = [
            f"'format-version' = '{version}'",
            *(
                f"'write.{what}.mode' = 'merge-on-read'"
                for what in ("delete", "update")
                if version > "1"
            ),
        ]
        sql(
            f"CREATE TABLE db.v{version} TBLPROPERTIES ({', '.join(properties)}) AS SELECT id FROM"
            " range(0, 9, 1, 1)"
        )

    def deletes(version: int) -> Callable[[], Any]:
        return lambda: sql(f"DELETE FROM db.v{version} WHERE id = {chance.randrange(9)}")

    def append() -> None:
        lake.on().load_table("db.v2").append(
            pa.table({"id": pa.array([chance.randrange(100)], pa.int64())})
        )

    def branch() -> None:
        lake.branch_off("dev")
        lake.on("dev").drop_table("db.v1")

    def tag() -> None:
        older = list(lake.repository.log("main"))[chance.randrange(3)]
        lake.repository.create_reference(ReferenceType.TAG, "older", older.hash)

    steps: list[Callable[[], Any]] = [
        *(deletes(version) for version in (1, 2, 2, 3, 3)),
        lambda: sql("INSERT INTO db.v1 VALUES (77)"),
        lambda: sql("UPDATE db.v2 SET id = 50 WHERE id > 6"),
        lambda: sql("ALTER TABLE db.v2 CREATE TAG kept"),
        lambda: sql("ALTER TABLE db.v3 CREATE BRANCH side"),
        lambda: sql("CALL lake.system.compute_table_stats('db.v3')"),
        lambda: sql("CREATE VIEW db.seen AS SELECT id FROM db.v1"),
        append,
        branch,
        tag,
    ]
    chance.shuffle(steps)
    for step in steps:
        step()


def needed(lake: Shore, sql: Sql) -> tuple[set[str], list[Any]]:
    """Returns the files of live states, and the rows of each of their snapshots."""
    paths, files, rows = views(lake.repository), [], []
    for location in sorted({location for location, _ in live_tables(lake.repository, CUTOFF)}):
        document = json.loads(Path(normalised(location)).read_text())
        paths |= {location, *(found["statistics-path"] for found in document.get("statistics", ()))}
        for table, column in (
            ("all_files", "file_path"),
            ("all_manifests", "path"),
            ("snapshots", "manifest_list"),
        ):
            files.append(
                sql.session.read.format("iceberg").load(f"{location}#{table}").select(column)
            )
        for snapshot in document["snapshots"]:
            id_ = snapshot["snapshot-id"]
            read = sql.session.read.format("iceberg").option("versionAsOf", str(id_))
            rows.append(
                read.load(location).selectExpr(
                    f"'{location}' as place", f"{id_}L as snapshot", "id"
                )
            )
    paths |= {row[0] for row in reduce(DataFrame.union, files).collect()}
    return {normalised(path) for path in paths}, sorted(
        map(tuple, reduce(DataFrame.union, rows).collect())
    )


def views(repository: Repository) -> set[str]:
    found = set()
    for entry in live_commits(repository, CUTOFF):
        contents = [
            operation.content for operation in entry.operations or () if isinstance(operation, Put)
        ]
        contents += [held.content for held in repository.entries(f"@{entry.hash}", content=True)]
        found |= {
            content.metadata_location for content in contents if isinstance(content, IcebergView)
        }
    return found


@pytest.mark.skipif(not RUNTIME.path.exists(), reason=MISSING)
def test_after_a_collection_exactly_the_live_tables_of_two_engines_are_readable(spark, lake):
    seed = random.randrange(2**32)
    with started("--store", lake.uri) as (_, url):
        sql = Sql(spark, Served(url, lake.uri, lake.warehouse), "v2")
        scribble(lake, sql, random.Random(seed))
        stay, rows = needed(lake, sql)
        run = lake.planned(lake.settings(str(CUTOFF)))
        applied = lake.applied(run)
        assert list(run.dataset("findings").records()) == [], f"seed {seed}"
        assert {FileKind.POSITION_DELETES, FileKind.DELETION_VECTORS, FileKind.STATISTICS} < {
            row["kind"] for row in run.dataset("live").records()
        }
        assert applied.outcomes[RemovalOutcome.DELETED] == run.info.counts["candidates"] > 0, (
            f"seed {seed}"
        )
        left = {path for path in lake.files() if not Path(path).name.startswith(".")}
        assert left == stay, f"seed {seed}"
        assert {Path(path).parent / Path(path).name[1:-4] for path in lake.files() - left} <= set(
            map(Path, left)
        ), "checksums go with their files"
        assert needed(lake, sql) == (stay, rows), f"seed {seed}: every row of every snapshot"
