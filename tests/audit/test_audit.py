"""Each fault of a content is one finding, and the other contents are still checked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nessie_cli.audit.findings import AuditCounts, AuditFinding
from nessie_cli.audit.local import findings
from nessie_cli.audit.statistics import history
from nessie_cli.errors import StoreUnavailable
from nessie_cli.model import ContentKey, Entry, KeyRange
from nessie_cli.repository.opening import connect
from tests.audit.lakes import BrokenLake, broken_lake
from tests.iceberg.lake import ROWS, Lake
from tests.repository.servers import Servers

NAMES = [
    "no_file", "cut", "no_json", "avro", "empty", "odd", "view_as_table", "delta", "no_list", "cut_list", "no_manifest", "cut_manifest",
    "no_snapshot", "old_snapshot", "no_ids", "view_version", "twin", "sound",
]  # fmt: skip


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokenLake]:
    with broken_lake(tmp_path_factory.mktemp("broken")) as found:
        yield found


@pytest.fixture(scope="module")
def audit(broken: BrokenLake) -> tuple[list[AuditFinding], AuditCounts]:
    counts = AuditCounts()
    return list(
        findings(broken.lake.repository.entries(broken.lake.branch, content=True), counts)
    ), counts


@pytest.mark.parametrize("name", NAMES)
def test_each_fault_is_one_finding(
    broken: BrokenLake, audit: tuple[list[AuditFinding], AuditCounts], name: str
) -> None:
    wrong = broken.wrong[name]
    (found,) = [finding for finding in audit[0] if finding.key == ContentKey(("db", name))]

    assert (found.kind, found.where) == (wrong.kind, wrong.file)
    assert wrong.message in found.message
    assert "\n" not in found.message


def test_every_content_is_checked_and_findings_are_in_the_order_of_keys(
    broken: BrokenLake, audit: tuple[list[AuditFinding], AuditCounts]
) -> None:
    found, counts = audit

    assert set(NAMES) == broken.wrong.keys()
    assert (counts.contents, counts.with_files) == (broken.size, broken.size - 1)
    assert counts.files > counts.with_files
    alone, together = found[:-2], found[-2:]
    assert [finding.key for finding in alone] == sorted(finding.key for finding in alone)
    assert [str(finding.key) for finding in together] == ["db.sound", "db.twin"]


def test_an_intact_table_has_no_finding(tmp_path, lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("db")
    table = catalog.create_table("db.orders", ROWS.schema)
    entries = lake.repository.entries
    counts = AuditCounts()
    assert list(findings(entries(lake.branch, content=True), counts)) == []
    assert counts == AuditCounts(contents=2, with_files=1, files=1)

    table.append(ROWS)
    table.append(ROWS)
    below = KeyRange(prefix=ContentKey.parse("db.orders"))
    counts = AuditCounts()
    assert list(findings(entries(lake.branch, below, content=True), counts)) == []
    assert counts == AuditCounts(contents=1, with_files=1, files=4), (
        "the metadata, the manifest list, two manifests"
    )


def test_a_store_that_stops_answering_ends_the_audit(broken: BrokenLake) -> None:
    def some() -> Iterator[Entry]:
        yield from broken.lake.repository.entries(broken.lake.branch, content=True)
        raise StoreUnavailable("the store is gone")

    with pytest.raises(StoreUnavailable, match="the store is gone"):
        list(findings(some(), AuditCounts()))


def test_a_server_gives_the_same_findings(
    broken: BrokenLake, audit: tuple[list[AuditFinding], AuditCounts]
) -> None:
    servers = Servers()
    try:
        with (
            servers.serving(f"sqlite:///{broken.lake.uri}") as address,
            connect(address) as repository,
        ):
            counts = AuditCounts()
            assert (
                list(findings(repository.entries(broken.lake.branch, content=True), counts)),
                counts,
            ) == audit
            here, there = (
                history(of.log(broken.lake.branch, operations=True), (), 5)
                for of in (broken.lake.repository, repository)
            )
            assert there == here
            assert here.keys == broken.size
    finally:
        servers.close()
