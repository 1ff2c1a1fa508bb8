"""Concurrent writers of PyIceberg's catalog.

All appends to one table are stored, writers of different tables never conflict, and the metadata
files are exactly those of the commits.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    TableAlreadyExistsError,
)

from nessie_cli.iceberg.catalog import NessieCatalog
from nessie_cli.iceberg.reference import MAX_ATTEMPTS
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put, ReferenceType
from tests.iceberg.lake import IMPLEMENTATION, Lake

WRITERS = 8
PATIENT = {
    "commit.retry.num-retries": "1000",
    "commit.retry.min-wait-ms": "30",
    "commit.retry.max-wait-ms": "1000",
}
SCHEMA = pa.schema([("id", pa.int64())])


def at_once(work: Callable[[int], object]) -> list[object]:
    """Runs all writers at the same time. Returns the result or the error of each."""
    barrier = Barrier(WRITERS)

    def run(number: int) -> object:
        barrier.wait(120)
        try:
            return work(number)
        except Exception as error:  # noqa: BLE001 - a test looks at it
            return error

    with ThreadPoolExecutor(WRITERS) as pool:
        return list(pool.map(run, range(WRITERS)))


def ids(lake: Lake, table: str) -> list[int]:
    return sorted(lake.catalog().load_table(table).scan().to_arrow()["id"].to_pylist())


def test_threads_that_append_to_one_table_by_one_catalog(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_table("orders", SCHEMA, properties=PATIENT)

    def append(number: int) -> None:
        catalog.load_table("orders").append(pa.table({"id": [number]}))

    assert at_once(append) == [None] * WRITERS
    assert ids(lake, "orders") == list(range(WRITERS))
    assert lake.messages() == [*["append to orders: 1 row"] * WRITERS, "create table orders"]
    assert lake.metadata_files() == lake.committed_files()


def test_threads_that_append_to_tables_of_their_own_never_conflict(lake: Lake) -> None:
    catalog = lake.catalog()
    for number in range(WRITERS):
        catalog.create_table(f"t{number}", SCHEMA, properties={"commit.retry.num-retries": "0"})

    def append(number: int) -> None:
        table = catalog.load_table(f"t{number}")
        for turn in range(2):
            table.append(pa.table({"id": [turn]}))

    assert at_once(append) == [None] * WRITERS
    assert [ids(lake, f"t{number}") for number in range(WRITERS)] == [[0, 1]] * WRITERS


def test_without_retries_a_late_append_fails_as_a_whole(embedded: Lake) -> None:
    catalog = embedded.catalog()
    table = catalog.create_table("orders", SCHEMA, properties={"commit.retry.num-retries": "0"})
    late = catalog.load_table("orders")
    table.append(pa.table({"id": [1]}))
    with pytest.raises(CommitFailedException):
        late.append(pa.table({"id": [2]}))
    assert ids(embedded, "orders") == [1]
    assert embedded.metadata_files() == embedded.committed_files()


def test_one_of_several_writers_creates_a_name(lake: Lake) -> None:
    catalog = lake.catalog()
    answers = at_once(lambda _: catalog.create_table("orders", SCHEMA))
    assert sum(isinstance(answer, TableAlreadyExistsError) for answer in answers) == WRITERS - 1, (
        answers
    )
    answers = at_once(lambda _: catalog.create_namespace("a.b"))
    assert (
        sum(isinstance(answer, NamespaceAlreadyExistsError) for answer in answers) == WRITERS - 1
    ), answers
    assert lake.messages() == ["create namespace a.b", "create table orders"]
    assert lake.metadata_files() == lake.committed_files()


def test_properties_set_concurrently_are_all_stored(embedded: Lake) -> None:
    catalog = embedded.catalog()
    catalog.create_namespace("sales")
    catalog.create_table("sales.orders", SCHEMA)

    def change(number: int) -> None:
        catalog.update_namespace_properties("sales", updates={f"p{number}": "1"})
        catalog.load_table("sales.orders").transaction().set_properties(
            {f"p{number}": "1"}
        ).commit_transaction()

    assert at_once(change) == [None] * WRITERS
    wanted = {f"p{number}" for number in range(WRITERS)}
    assert catalog.load_namespace_properties("sales").keys() == wanted
    assert wanted <= catalog.load_table("sales.orders").properties.keys()
    assert embedded.metadata_files() == embedded.committed_files()


def test_a_concurrent_append_precedes_a_rename_or_fails(embedded: Lake) -> None:
    catalog = embedded.catalog()
    catalog.create_table("orders", SCHEMA, properties=PATIENT)

    def work(number: int) -> object:
        if number == 0:
            return catalog.rename_table("orders", "bookings").name()
        return catalog.load_table("orders").append(pa.table({"id": [number]}))

    answers = at_once(work)
    assert answers[0] == ("bookings",)
    arrived = [number for number in range(1, WRITERS) if answers[number] is None]
    assert ids(embedded, "bookings") == arrived
    assert not catalog.table_exists("orders")


def interrupted(lake: Lake, by: Callable[[], object]) -> NessieCatalog:
    """Returns a catalog that calls a function immediately before each of its commits."""

    class Interrupted(NessieCatalog):
        @staticmethod
        def _write_document(*given: Any) -> None:
            NessieCatalog._write_document(*given)
            by()

    return Interrupted("slow", **lake.options())


@pytest.mark.parametrize("table", ["orders", "other"])
def test_a_merge_in_the_middle_of_an_append(embedded: Lake, table: str) -> None:
    catalog = embedded.catalog()
    for name in ("orders", "other"):
        catalog.create_table(
            name,
            SCHEMA,
            properties=PATIENT if table == "orders" else {"commit.retry.num-retries": "0"},
        )
    side = f"{embedded.branch}-side"
    embedded.repository.create_reference(ReferenceType.BRANCH, side, embedded.head())
    embedded.catalog(side).load_table(table).append(pa.table({"id": [1]}))
    waiting = [side]

    def merge() -> None:
        while waiting:
            embedded.repository.merge(embedded.branch, waiting.pop())

    with interrupted(embedded, merge) as slow:
        slow.load_table("orders").append(pa.table({"id": [2]}))
    assert ids(embedded, "orders") == ([1, 2] if table == "orders" else [2])
    assert ids(embedded, "other") == ([] if table == "orders" else [1])
    assert len(embedded.metadata_files()) == 4, "two tables, two appends"


def test_a_change_that_loses_every_race_is_a_failed_commit(embedded: Lake) -> None:
    catalog = embedded.catalog()
    catalog.create_table("orders", SCHEMA)
    key = ContentKey(("orders",))
    overtaken = []

    def overtake() -> None:
        """Another writer, right before each commit of this one."""
        there = embedded.repository.content(embedded.branch, key)
        assert isinstance(there, IcebergTable)
        other = IcebergTable(
            id=there.id,
            metadata_location=there.metadata_location,
            snapshot_id=there.snapshot_id,
            spec_id=len(overtaken) + 1,
        )
        overtaken.append(
            embedded.repository.commit(
                embedded.branch, [Put(key, other, there)], CommitMeta("faster")
            )
        )

    with (
        interrupted(embedded, overtake) as slow,
        pytest.raises(CommitFailedException, match="change orders: properties a"),
    ):
        slow.load_table("orders").transaction().set_properties({"a": "1"}).commit_transaction()
    assert len(overtaken) == MAX_ATTEMPTS
    assert len(embedded.metadata_files()) == 1


APPEND = f"""
import os, sys
import pyarrow as pa
from pyiceberg.catalog import load_catalog
uri, warehouse, ref, writers = sys.argv[1:]

def append(number):
    options = {{"py-catalog-impl": "{IMPLEMENTATION}", "uri": uri, "warehouse": warehouse, "ref": ref}}
    with load_catalog("lake", **options) as catalog:
        shared, own = catalog.load_table("orders"), catalog.load_table(f"t{{number}}")
        rows = pa.table({{"id": [number]}})
        shared.append(rows)
        own.append(rows)

gate, opener = os.pipe()
children = []
for number in range(int(writers)):
    child = os.fork()
    if not child:
        os.close(opener)
        os.read(gate, 1)  # ends when the last process is there
        append(number)
        sys.stdout.flush()
        os._exit(0)
    children.append(child)
os.close(opener)
sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
"""


def test_processes_that_append_to_one_table_and_each_to_its_own(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_table("orders", SCHEMA, properties=PATIENT)
    for number in range(WRITERS):
        catalog.create_table(f"t{number}", SCHEMA, properties={"commit.retry.num-retries": "0"})
    arguments = [
        sys.executable,
        "-c",
        APPEND,
        lake.uri,
        str(lake.warehouse),
        lake.branch,
        str(WRITERS),
    ]
    done = subprocess.run(
        arguments,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert ids(lake, "orders") == list(range(WRITERS))
    assert [ids(lake, f"t{number}") for number in range(WRITERS)] == [
        [number] for number in range(WRITERS)
    ]
    assert lake.metadata_files() == lake.committed_files()
