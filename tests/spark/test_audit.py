"""The audit and the statistics are equal on Spark and in this process."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nessie_cli.audit.findings import AuditCounts
from nessie_cli.audit.local import findings
from nessie_cli.audit.sizes import size_of_table, sizes
from nessie_cli.audit.statistics import history
from nessie_cli.errors import StoreNotFound
from nessie_cli.iceberg.files import Files
from nessie_cli.model import NO_ANCESTOR, ContentKey, IcebergTable, KeyRange
from nessie_cli.repository.base import Repository
from nessie_cli.spark.jobs import spread
from tests.audit.histories import SEED, fill, slow_repository
from tests.audit.lakes import BrokenLake, broken_lake
from tests.repository.servers import Servers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokenLake]:
    with broken_lake(tmp_path_factory.mktemp("broken")) as found:
        yield found


def url_of(broken: BrokenLake) -> str:
    return f"sqlite:///{broken.lake.uri}"


@pytest.mark.parametrize("prefix", [None, ContentKey.parse("db.no_manifest")])
def test_findings_are_equal_to_those_of_this_process(
    spark: SparkSession, broken: BrokenLake, prefix: ContentKey | None
) -> None:
    from nessie_cli.spark import audited

    here, there = AuditCounts(), AuditCounts()
    keys = KeyRange(prefix=prefix) if prefix else KeyRange()
    expected = list(
        findings(broken.lake.repository.entries(broken.lake.branch, keys, content=True), here)
    )

    assert list(audited(spark, url_of(broken), broken.lake.head(), prefix, there)) == expected
    assert there == here
    assert len(expected) == (1 if prefix else len(broken.wrong))


def test_sizes_are_equal_to_those_of_this_process(spark: SparkSession, broken: BrokenLake) -> None:
    from nessie_cli.spark import sizes_of

    entries = broken.lake.repository.entries(broken.lake.branch, content=True)
    measured = [
        size_of_table(entry.key, entry.content, Files())
        for entry in entries
        if isinstance(entry.content, IcebergTable)
    ]

    found = sizes_of(spark, url_of(broken), broken.lake.head(), 5)

    assert found == sizes(measured, 5)
    assert found.unreadable > 0
    assert len(found.largest) == 5


@pytest.mark.parametrize(
    ("reached", "skipped"), [("by its file", 0), ("by its file", 31), ("over REST", 31)]
)
def test_statistics_of_a_random_history_are_equal_to_those_of_this_process(
    spark: SparkSession, servers: Servers, tmp_path: Path, reached: str, skipped: int
) -> None:
    from nessie_cli.spark import history_of

    print(f"NESSIE_TEST_SEED={SEED}")
    store = f"sqlite:///{tmp_path}/catalog.sqlite"
    with ExitStack() as stack:
        repository = stack.enter_context(slow_repository(str(tmp_path / "catalog.sqlite")))
        fill(repository, random.Random(SEED + skipped), 60)
        log = list(repository.log("main", operations=True))
        log = log[: len(log) - skipped]
        base = log[-1].parent
        expected = history(log, repository.entries(f"@{base}") if skipped else (), 6)
        url = stack.enter_context(servers.serving(store)) if reached == "over REST" else store

        assert (
            history_of(spark, url, log[0].hash, base if skipped else None, 6, rows=12) == expected
        )
    assert expected.changes.deleted > 0
    assert len(expected.most_changed) == 6 < expected.keys


def test_an_empty_history_has_empty_statistics(spark: SparkSession, store: str) -> None:
    from nessie_cli.spark import audited, history_of, sizes_of

    counts = AuditCounts()
    assert history_of(spark, store, NO_ANCESTOR, None, 5) == history((), (), 5)
    assert sizes_of(spark, store, NO_ANCESTOR, 5) == sizes((), 5)
    assert list(audited(spark, store, NO_ANCESTOR, None, counts)) == []
    assert counts == AuditCounts()


def test_a_store_removed_meanwhile_is_one_error(
    spark: SparkSession, store: str, tmp_path: Path
) -> None:
    from nessie_cli.spark import session

    def gone(repository: Repository) -> list[int]:
        Path(store.removeprefix("sqlite:///")).rename(tmp_path / "away")
        return [1]

    def run() -> None:
        with session("tests") as running:
            assert running is spark
            spread(running, store, "audit", gone, nothing).collect()

    with pytest.raises(StoreNotFound) as raised:
        run()
    assert re.fullmatch(
        rf"{re.escape(store)}, audit: the worker \S+ has no such file; .* \(nessie serve\).*",
        raised.value.message,
    )


def nothing(repository: Repository, piece: int) -> Iterator[int]:
    yield piece
