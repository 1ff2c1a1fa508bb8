"""Statistics of histories, compared with an oracle that reads the state at each commit."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec import structs

from nessie_cli.audit.sizes import MeasuredTable, size_of_table, sizes
from nessie_cli.audit.statistics import ChangeCounts, Commits, HistoryStatistics, day_of, history
from nessie_cli.iceberg.files import Files
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    ContentKey,
    Delete,
    Entry,
    IcebergTable,
    LogEntry,
    Put,
)
from nessie_cli.repository.base import Repository
from tests.audit.histories import SEED, fill, slow_repository
from tests.iceberg.lake import ROWS, Lake
from tests.repository.vocabulary import table


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    with slow_repository(str(tmp_path / "catalog.sqlite")) as found:
        yield found


class Naive:
    """The oracle."""

    def __init__(self, repository: Repository, log: Sequence[LogEntry]) -> None:
        self.authors: Counter[str] = Counter()
        self.days: dict[str, list[int]] = {}
        self.keys: dict[ContentKey, list[int]] = {}
        self.commits: Counter[ContentKey] = Counter()
        for entry in reversed(log):
            time = entry.meta.commit_time
            assert isinstance(time, datetime)
            self.authors[entry.meta.author or "committer"] += 1
            day = self.days.setdefault(day_of(time), [0] * 6)
            day[0] += 1
            there = {found.key for found in repository.entries(f"@{entry.parent}")}
            self.commits.update({operation.key for operation in entry.operations or ()})
            for operation in entry.operations or ():
                turn = 2 if isinstance(operation, Delete) else operation.key in there
                there ^= {operation.key} if turn != 1 else set()
                day[1 + turn] += 1
                self.keys.setdefault(operation.key, [0, 0, 0])[turn] += 1
            types = [found.type for found in repository.entries(f"@{entry.hash}")]
            day[4:] = types.count("ICEBERG_TABLE"), len(types) - types.count("NAMESPACE")


@pytest.mark.parametrize("skipped", [0, 17])
def test_statistics_agree_with_the_states(repository: Repository, skipped: int) -> None:
    print(f"NESSIE_TEST_SEED={SEED}")
    fill(repository, random.Random(SEED), 60)
    log = list(repository.log("main", operations=True))
    log = log[: len(log) - skipped]
    base = log[-1].parent

    found = history(log, () if base == NO_ANCESTOR else repository.entries(f"@{base}"), 1000)

    naive = Naive(repository, log)
    assert {author.author: author.commits.commits for author in found.authors} == naive.authors
    assert {day.day: list(structs.astuple(day)[1:]) for day in found.days} == naive.days
    assert [day.day for day in found.days] == sorted(naive.days)
    assert {
        key.key: [key.created, key.updated, key.deleted] for key in found.most_changed
    } == naive.keys
    assert {key.key: key.commits for key in found.most_changed} == naive.commits
    assert (found.keys, found.commits.commits) == (len(naive.keys), len(log))
    assert (found.commits.first, found.commits.last) == (
        log[-1].meta.commit_time,
        log[0].meta.commit_time,
    )
    assert found.changes.updated == sum(updated for _, updated, _ in naive.keys.values()) > 0
    assert found.changes.deleted > 0


def test_the_requested_number_of_most_changed_keys_in_order(repository: Repository) -> None:
    for number in range(3):
        for name in ["a"] if number else ["a", "b", "c"]:
            there = repository.contents("main", [ContentKey((name,))]).get(ContentKey((name,)))
            repository.commit(
                "main",
                [Put(ContentKey((name,)), table(number, there.id if there else None))],
                CommitMeta("x", ("ann",)),
            )

    found = history(repository.log("main", operations=True), (), 2)

    assert [(str(key.key), key.commits) for key in found.most_changed] == [("a", 3), ("b", 1)]
    assert found.keys == 3


def test_a_commit_that_deletes_and_creates_a_key_counts_as_both() -> None:
    key = ContentKey(("a",))
    meta = CommitMeta("x", ("ann",), commit_time=datetime(2026, 1, 1, tzinfo=UTC), hash="1" * 64)
    before = Entry(key, "ICEBERG_VIEW", "id", "hash")

    found = history([LogEntry(meta, 2, (Delete(key), Put(key, table(1))))], [before], 5)

    assert found.changes == ChangeCounts(created=1, deleted=1, tables=1)
    assert [
        (change.commits, change.created, change.deleted, change.type)
        for change in found.most_changed
    ] == [(1, 1, 1, "ICEBERG_TABLE")]


def test_an_empty_history_has_empty_statistics() -> None:
    assert history((), (), 5) == HistoryStatistics(Commits(), ChangeCounts(), (), (), 0, ())


def test_the_size_of_a_table_is_that_in_its_snapshot(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("db")
    table_ = catalog.create_table("db.orders", ROWS.schema)
    key = ContentKey.parse("db.orders")

    def size() -> MeasuredTable:
        return size_of_table(key, lake.content("db", "orders"), Files())

    assert size() == MeasuredTable(key, 0, 0, 0)
    table_.append(ROWS)
    table_.append(ROWS)
    files = [path.stat().st_size for path in lake.warehouse.rglob("*.parquet")]
    first = datetime.fromtimestamp(table_.snapshots()[0].timestamp_ms / 1000, UTC)
    assert size() == MeasuredTable(key, 6, 2, sum(files), oldest_snapshot=first)
    gone = size_of_table(
        key, IcebergTable(metadata_location="/nowhere/1.metadata.json", snapshot_id=1), Files()
    )
    assert gone == MeasuredTable(key, problem="/nowhere/1.metadata.json: no such file")

    every = sizes(
        [
            size(),
            gone,
            MeasuredTable(ContentKey(("a",))),
            MeasuredTable(ContentKey(("b",)), 1, 1, 10**6),
        ],
        3,
    )
    assert (every.tables, every.unreadable, every.rows, every.files, every.bytes) == (
        4,
        1,
        7,
        3,
        sum(files) + 10**6,
    )
    assert [str(found.key) for found in every.largest] == ["b", "db.orders", "a"]
