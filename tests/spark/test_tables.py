"""Each table has the rows of the repository, in any number of parts, also over REST."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from nessie_cli import IcebergTable, connect, create
from nessie_cli.repository.base import Repository
from nessie_cli.spark.errors import TaskError
from nessie_cli.spark.source import NessieDataSource
from nessie_cli.spark.tables import TABLES
from tests.repository.servers import Servers
from tests.repository.vocabulary import Catalog, key
from tests.spark.reading import Frame, rows

PIECES = ["1", "3", "1000000"]


@pytest.fixture(params=["sqlite", "server"])
def url(request: pytest.FixtureRequest, store: str, servers: Servers) -> Iterator[str]:
    if request.param == "sqlite":
        yield store
    else:
        with servers.serving(store) as address:
            yield address


@pytest.fixture
def repository(url: str) -> Iterator[Repository]:
    with connect(url) as opened:
        yield opened


@pytest.fixture
def local(store: str) -> Iterator[Repository]:
    with connect(store) as opened:
        yield opened


def test_references_have_their_distances_and_heads(url: str, local: Repository) -> None:
    found = {row["name"]: row for row in rows(url, table="references")}
    for expected in local.references(metadata=True):
        row, metadata = found.pop(expected.name), expected.metadata
        assert metadata is not None
        assert metadata.head is not None
        distance = (metadata.ahead, metadata.behind, metadata.common_ancestor)
        assert (row["type"], row["hash"], row["commits"]) == (
            expected.type.value,
            expected.hash,
            metadata.total,
        )
        assert (row["ahead"], row["behind"], row["common_ancestor"]) == distance
        assert row["head"]["hash"] == expected.hash
        assert row["head"]["message"] == metadata.head.message
    assert not found


def test_references_by_the_beginning_of_their_names(url: str) -> None:
    assert [row["name"] for row in rows(url, table="references", prefix="d")] == ["dev"]
    assert [row["name"] for row in rows(url, table="references", prefix="main")] == ["main"]


@pytest.mark.parametrize("pieces", PIECES)
def test_the_log_equals_that_of_the_repository(url: str, local: Repository, pieces: str) -> None:
    frame = Frame(url, table="log", rowsPerPartition=pieces)
    found = frame.rows()
    assert len(frame.parts) == -(-len(found) // min(int(pieces), len(found)))
    for row, expected in zip(found, local.log("main"), strict=True):
        meta = expected.meta
        assert (row["reference"], row["hash"], row["height"]) == (
            "main",
            expected.hash,
            expected.height,
        )
        assert row["commit_time"] == meta.commit_time
        assert (row["message"], row["committer"], tuple(row["parents"])) == (
            meta.message,
            meta.committer,
            meta.parents,
        )
        assert tuple(row["authors"]) == meta.authors


@pytest.mark.parametrize("pieces", PIECES)
def test_the_log_of_all_references_has_each_commit_once(
    url: str, local: Repository, pieces: str
) -> None:
    found = {
        row["hash"]: row["reference"]
        for row in rows(url, table="log", ref="*", rowsPerPartition=pieces)
    }
    assert len(found) == len(rows(url, table="log", ref="*"))
    owners: dict[str, str] = {}
    for name in ["main", "dev", "late", "v1"]:
        for entry in local.log(name):
            owners.setdefault(entry.hash, name)
    assert found == owners


def test_a_range_of_the_log(url: str, local: Repository) -> None:
    expected = {entry.hash for entry in local.log("dev")} - {
        entry.hash for entry in local.log("main")
    }
    assert {row["hash"] for row in rows(url, table="log", from_="main", to="dev")} == expected
    assert rows(url, table="log", from_="dev", to="dev") == []


@pytest.mark.parametrize("pieces", PIECES)
def test_operations_equal_those_of_the_commits(url: str, local: Repository, pieces: str) -> None:
    expected = [
        (
            entry.hash,
            type(operation).__name__.upper(),
            str(operation.key),
            getattr(getattr(operation, "content", None), "id", None),
        )
        for entry in local.log("dev", operations=True)
        for operation in entry.operations or ()
    ]
    found = rows(url, table="operations", ref="dev", rowsPerPartition=pieces)
    assert [
        (row["hash"], row["operation"], row["key"], row["content"] and row["content"]["id"])
        for row in found
    ] == expected


def test_operations_below_a_prefix(url: str) -> None:
    found = rows(url, table="operations", ref="*", prefix="raw")
    assert {row["key"] for row in found} == {"raw", "raw.clicks", "raw.late"}


@pytest.mark.parametrize("pieces", PIECES)
@pytest.mark.parametrize("prefix", [None, "db", "db.t1"])
def test_entries_and_contents_equal_those_of_the_commit(
    url: str, local: Repository, pieces: str, prefix: str | None
) -> None:
    more = {"prefix": prefix} if prefix else {}
    expected = [
        entry
        for entry in local.entries("main", content=True)
        if not prefix or entry.key.starts_with(key(prefix))
    ]
    found = rows(url, table="contents", rowsPerPartition=pieces, **more)
    assert [(row["key"], row["type"], row["content_id"], row["value_hash"]) for row in found] == [
        (str(entry.key), entry.type, entry.content_id, entry.value_hash) for entry in expected
    ]
    for row, entry in zip(found, expected, strict=True):
        assert row["content"]["id"] == entry.content_id
        if isinstance(entry.content, IcebergTable):
            assert row["content"]["metadata_location"] == entry.content.metadata_location
            assert row["content"]["snapshot_id"] == entry.content.snapshot_id
    without = [{name: value for name, value in row.items() if name != "content"} for row in found]
    assert rows(url, table="entries", rowsPerPartition=pieces, **more) == without


def test_a_state_of_an_earlier_time(url: str, local: Repository) -> None:
    earlier = local.commit_at("main~5").meta
    assert earlier.commit_time is not None
    found = rows(url, table="entries", ref="main", at=earlier.commit_time.isoformat())
    assert {row["hash"] for row in found} == {earlier.hash}
    assert (
        len(rows(url, table="log", ref="*", at=earlier.commit_time.isoformat()))
        == local.commit_at("main~5").height
    )


@pytest.mark.parametrize("pieces", PIECES)
def test_a_diff_equals_that_of_the_repository(url: str, local: Repository, pieces: str) -> None:
    found = rows(url, table="diff", from_="main", to="dev", rowsPerPartition=pieces)
    for row, expected in zip(found, local.diff("main", "dev"), strict=True):
        change = (
            "ADDED"
            if expected.before is None
            else "REMOVED"
            if expected.after is None
            else "CHANGED"
        )
        assert (row["key"], row["change"]) == (str(expected.key), change)
        for side, content in (("before", expected.before), ("after", expected.after)):
            assert (row[side] and row[side]["id"]) == (content and content.id)
    assert len(found) > 3


def test_the_reflog_of_one_reference_and_of_all(url: str, local: Repository) -> None:
    assert [row["number"] for row in rows(url, table="reflog")] == [
        entry.number for entry in local.reflog()
    ]
    assert [row["after"] for row in rows(url, table="reflog", ref="dev")] == [
        entry.after for entry in local.reflog("dev")
    ]


def test_the_conflicts_of_a_merge_that_is_not_committed(url: str, local: Repository) -> None:
    before = local.reference("main").hash
    (found,) = rows(url, table="conflicts", from_="dev", to="main")
    assert (found["branch"], found["key"], found["conflict"]) == ("main", "db.t1", "VALUE_DIFFERS")
    agreed = local.content("main~2", key("db.t1"))
    assert isinstance(agreed, IcebergTable)
    assert [found[side]["snapshot_id"] for side in ("expected", "actual", "proposed")] == [
        agreed.snapshot_id,
        2000,
        1000,
    ]
    assert found["changed_by"]["message"] == "write db.t1"
    assert local.reference("main").hash == before
    assert rows(url, table="conflicts", from_="main~2", to="main") == []


def test_a_frame_sees_the_state_at_its_creation(url: str, local: Repository) -> None:
    frames = {
        name: Frame(url, table=name)
        for name in ("log", "operations", "entries", "contents", "reflog", "references")
    }
    before = {name: frame.rows() for name, frame in frames.items()}
    Catalog(local).write("main", {"later": 1})
    local.delete_reference("late", expected_hash=local.reference("late").hash)
    assert {name: frame.rows() for name, frame in frames.items()} == before
    assert len(rows(url, table="log")) == len(before["log"]) + 1


def test_a_frame_of_some_columns(url: str) -> None:
    source = NessieDataSource({"url": url, "table": "log"})
    whole = source.schema()
    reader = source.reader(type(whole)([whole["message"], whole["hash"]]))
    (part,) = reader.partitions()
    (batch,) = reader.read(part)
    assert batch.schema.names == ["message", "hash"]
    with pytest.raises(
        TaskError,
        match=r"^nessie: .*, table log: column type: table log has no such column\. Hint: it has reference, ",
    ):
        source.reader(type(whole)().add("type", "string"))
    with pytest.raises(TaskError, match="column hash is string, not bigint"):
        source.reader(type(whole)().add("hash", "long"))


def test_an_empty_repository_has_empty_tables(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/empty.sqlite"
    create(url).close()
    for name in ("log", "operations", "entries", "contents"):
        assert rows(url, table=name, ref="*") == []
    (main,) = rows(url, table="references")
    assert (main["commits"], main["head"]) == (0, None)
    assert rows(url, table="diff", from_="main") == []


def test_every_column_has_a_comment() -> None:
    for table in TABLES.values():
        assert [
            field.name for field in table.schema.fields if not field.metadata.get("comment")
        ] == []


def test_times_are_microseconds_of_utc(url: str, repository: Repository) -> None:
    (row,) = rows(url, table="log", from_="main~1")
    when = repository.commit_at("main").meta.commit_time
    assert when is not None
    assert row["commit_time"] - when == timedelta(0)
