"""The audit and the statistics are the same on Spark as in this process."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nessie_cli.audit.findings import Counts
from nessie_cli.audit.local import findings
from nessie_cli.audit.sizes import size_of_table, sizes
from nessie_cli.audit.statistics import history
from nessie_cli.errors import StoreNotFound
from nessie_cli.iceberg.files import Files
from nessie_cli.model import ContentKey, IcebergTable, KeyRange
from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import connect
from tests.audit.lakes import BrokenLake, broken_lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokenLake]:
    with broken_lake(tmp_path_factory.mktemp("broken")) as found:
        yield found


def url_of(broken: BrokenLake) -> str:
    return f"sqlite:///{broken.lake.uri}"


@pytest.mark.parametrize("prefix", [None, ContentKey.parse("db.no_manifest")])
def test_findings_are_those_of_this_process(spark: SparkSession, broken: BrokenLake, prefix: ContentKey | None) -> None:
    from nessie_cli.spark import audited

    here, there = Counts(), Counts()
    keys = KeyRange(prefix=prefix) if prefix else KeyRange()
    expected = list(findings(broken.lake.repository.entries(broken.lake.branch, keys, content=True), here))

    assert list(audited(spark, url_of(broken), broken.lake.head(), prefix, there)) == expected
    assert there == here
    assert len(expected) == (1 if prefix else len(broken.wrong))


def test_sizes_are_those_of_this_process(spark: SparkSession, broken: BrokenLake) -> None:
    from nessie_cli.spark import sizes_of

    entries = broken.lake.repository.entries(broken.lake.branch, content=True)
    measured = [size_of_table(entry.key, entry.content, Files()) for entry in entries if isinstance(entry.content, IcebergTable)]

    found = sizes_of(spark, url_of(broken), broken.lake.head(), 5)

    assert found == sizes(measured, 5)
    assert found.unreadable > 0
    assert len(found.largest) == 5


@pytest.mark.parametrize("since", [None, "main~9"])
def test_a_history_is_that_of_this_process(spark: SparkSession, store: str, since: str | None) -> None:
    from nessie_cli.spark import history_of

    with connect(store) as repository:
        expected = _history(repository, "dev", since)
        floor = repository.ahead_behind("dev", since).common_ancestor if since else None

        assert history_of(spark, store, repository.resolve("dev").hash, floor, 6) == expected
    assert expected.changes.updated > 0
    assert len(expected.most_changed) == 6 < expected.keys


def _history(repository: Repository, end: str, since: str | None):
    if since is None:
        return history(repository.log(end, operations=True), (), 6)
    apart = repository.ahead_behind(end, since)
    return history(islice(repository.log(end, operations=True), apart.ahead), repository.entries(f"@{apart.common_ancestor}"), 6)


def test_a_store_that_is_gone_is_one_error(spark: SparkSession, tmp_path: Path) -> None:
    from nessie_cli.spark import audited, session

    url, told = f"sqlite:///{tmp_path}/none.sqlite", []

    def run() -> None:
        with session("tests", lambda done, total: told.append((done, total))) as running:
            assert running is spark
            list(audited(running, url, "0" * 64, None, Counts()))

    with pytest.raises(StoreNotFound) as raised:
        run()
    assert raised.value.message.startswith(f"{url}, table audit: ")
    assert "\n" not in raised.value.message
