"""The files that a table references.

PyIceberg writes the tables. Files that it cannot write (delete files, old and broken tables) are
made by hand.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyiceberg.table import Table
from pyiceberg.table.statistics import StatisticsFile

from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.locations import normalised
from nessie_cli.iceberg.reachable import (
    BrokenFile,
    Fault,
    FileKind,
    Found,
    ReferencedFile,
    SnapshotScope,
    Walker,
    read_table,
)
from tests.iceberg.conftest import FolderCatalog

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})


def walk(
    location: str, snapshot: int | None = None, scope: SnapshotScope = SnapshotScope.LISTED
) -> list[Found]:
    return list(Walker(Files(), scope).follow(location, snapshot))


def paths(found: list[Found], *kinds: FileKind) -> set[str]:
    assert [one for one in found if isinstance(one, BrokenFile)] == []
    return {
        one.path
        for one in found
        if isinstance(one, ReferencedFile) and (not kinds or one.kind in kinds)
    }


def there(folder: Path) -> set[str]:
    return {
        normalised(str(path))
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def of_snapshot(table: Table, snapshot_id: int) -> set[str]:
    """Returns the files that PyIceberg opens to read a snapshot."""
    snapshot = table.snapshot_by_id(snapshot_id)
    assert snapshot
    manifests = snapshot.manifests(table.io)
    data = {
        entry.data_file.file_path
        for manifest in manifests
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
    }
    return {
        *map(normalised, data),
        snapshot.manifest_list,
        *(manifest.manifest_path for manifest in manifests),
    }


def written(folder: Path, version: str = "2") -> Table:
    """A table with four snapshots: two appends, an overwrite, a delete."""
    table = FolderCatalog(folder).create_table(
        "db.t", ROWS.schema, properties={"format-version": version}
    )
    table.append(ROWS)
    table.append(ROWS)
    table.overwrite(ROWS)
    table.delete("id = 2")
    return table


@pytest.fixture(scope="module", params=["1", "2"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A table of each format version, for tests that change nothing."""
    return written(tmp_path_factory.mktemp("lake"), request.param)


@pytest.fixture(scope="module")
def breakable(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A table whose files are restored after each test."""
    return written(tmp_path_factory.mktemp("breakable"))


@pytest.fixture
def own(tmp_path: Path) -> Table:
    """A table for one test."""
    return written(tmp_path)


def test_every_listed_snapshot_counts_with_all_files_that_a_reader_opens(table):
    found = walk(table.metadata_location)
    opened = set().union(
        *(of_snapshot(table, snapshot.snapshot_id) for snapshot in table.snapshots())
    )
    assert paths(found) == {normalised(name) for name in opened} | {table.metadata_location}
    assert there(Path(table.location())) - paths(found) == {
        normalised(entry.metadata_file) for entry in table.metadata.metadata_log
    }, "the log alone is not"
    assert len(found) == len(paths(found)), "each file is reported once"


def test_only_the_snapshot_of_the_catalog_if_requested(table):
    first, *_, last = [snapshot.snapshot_id for snapshot in table.snapshots()]
    for given, meant in ((first, first), (last, last), (None, last), (-1, last)):
        found = paths(walk(table.metadata_location, given, SnapshotScope.REFERENCED))
        assert found >= of_snapshot(table, meant)
        # The newest is the head of the table's own branch `main`, so it stays as well.
        assert found == of_snapshot(table, meant) | of_snapshot(table, last) | {
            table.metadata_location
        }


def test_a_tag_inside_the_table_keeps_its_snapshot(own):
    first, *_, last = [snapshot.snapshot_id for snapshot in own.snapshots()]
    own.manage_snapshots().create_tag(first, "release").commit()
    found = paths(walk(own.metadata_location, last, SnapshotScope.REFERENCED))
    assert found == of_snapshot(own, first) | of_snapshot(own, last) | {own.metadata_location}


def test_statistics_count_as_long_as_their_snapshot(own):
    first = own.snapshots()[0].snapshot_id
    path = f"{own.location()}/metadata/first.stats"
    sizes = {"file-size-in-bytes": 10, "file-footer-size-in-bytes": 4, "blob-metadata": []}
    described = {"snapshot-id": first, "statistics-path": path} | sizes
    with own.update_statistics() as update:
        update.set_statistics(StatisticsFile(**described))
    assert paths(walk(own.metadata_location), FileKind.STATISTICS) == {path}
    assert (
        paths(walk(own.metadata_location, None, SnapshotScope.REFERENCED), FileKind.STATISTICS)
        == set()
    )
    assert paths(
        walk(own.metadata_location, first, SnapshotScope.REFERENCED), FileKind.STATISTICS
    ) == {path}


def test_files_shared_by_two_states_are_read_and_yielded_once(own):
    walker = Walker(Files())
    before = {
        one.path for one in walker.follow(own.metadata_location) if isinstance(one, ReferencedFile)
    }
    own.append(ROWS)
    after = [one for one in walker.follow(own.metadata_location) if isinstance(one, ReferencedFile)]
    assert sorted(one.kind for one in after) == [
        FileKind.DATA,
        FileKind.MANIFEST,
        FileKind.MANIFEST_LIST,
        FileKind.METADATA,
    ]
    assert before.isdisjoint(one.path for one in after)


def test_places_of_a_table_are_its_location_and_the_folders_in_its_properties(tmp_path):
    properties = {
        "write.data.path": f"{tmp_path}/elsewhere",
        "write.metadata.path": f"{tmp_path}/apart",
    }
    table = FolderCatalog(tmp_path).create_table("db.t", ROWS.schema, properties=properties)
    assert read_table(Files(), table.metadata_location).bases == (
        table.location(),
        f"{tmp_path}/elsewhere",
        f"{tmp_path}/apart",
    )


# -- written by hand ------------------------------------------------------------------------------


def manifest(path: Path, entries: list[dict[str, Any]]) -> str:
    """Writes a manifest of any version, with a column of statistics that is not read."""
    file = {
        "type": "record",
        "name": "r2",
        "fields": [
            {"name": "content", "type": "int", "default": 0, "field-id": 134},
            {"name": "file_path", "type": "string", "field-id": 100},
            {"name": "file_format", "type": "string", "field-id": 101},
            {
                "name": "partition",
                "type": {"type": "record", "name": "r102", "fields": []},
                "field-id": 102,
            },
            {"name": "record_count", "type": "long", "field-id": 103},
        ],
    }
    fields = [
        {"name": "status", "type": "int", "field-id": 0},
        {"name": "snapshot_id", "type": ["null", "long"], "default": None, "field-id": 1},
        {"name": "data_file", "type": file, "field-id": 2},
    ]
    rows = [
        {
            "status": one["status"],
            "snapshot_id": 1,
            "data_file": {"file_format": "PARQUET", "partition": {}, "record_count": 1}
            | one["data_file"],
        }
        for one in entries
    ]
    with path.open("wb") as out:
        fastavro.writer(out, {"type": "record", "name": "manifest_entry", "fields": fields}, rows)
    return str(path)


def by_hand(table: Table, folder: Path, snapshot: dict[str, Any]) -> str:
    """Returns the metadata file of a table with one more snapshot."""
    document = json.loads(Path(table.metadata_location).read_text())
    document["snapshots"] = [
        *document.get("snapshots", []),
        {"snapshot-id": 99, "timestamp-ms": 1, "sequence-number": 9, "schema-id": 0} | snapshot,
    ]
    path = folder / "by-hand.metadata.json"
    path.write_text(json.dumps(document))
    return str(path)


ENTRIES = {
    "s3a://lake/t/data.parquet": {"content": 0},
    "s3://lake/t/positions.parquet": {"content": 1},
    "s3://lake/t/equal.parquet": {"content": 2},
    "s3://lake/t/vectors.puffin": {"content": 1, "file_format": "PUFFIN"},
}


def test_delete_files_of_every_kind_and_entries_that_were_removed(table, tmp_path):
    entries = [
        {"status": number % 2, "data_file": {"file_path": path} | described}
        for number, (path, described) in enumerate(ENTRIES.items())
    ]
    gone = {"status": 2, "data_file": {"file_path": "s3://lake/t/gone.parquet", "content": 0}}
    location = by_hand(
        table, tmp_path, {"manifests": [manifest(tmp_path / "m.avro", [*entries, gone])]}
    )
    found = walk(location, 99, SnapshotScope.REFERENCED)
    in_lake = {
        one.path: one.kind
        for one in found
        if isinstance(one, ReferencedFile) and one.path.startswith("s3:")
    }
    assert in_lake == {
        "s3://lake/t/data.parquet": FileKind.DATA,
        "s3://lake/t/positions.parquet": FileKind.POSITION_DELETES,
        "s3://lake/t/equal.parquet": FileKind.EQUALITY_DELETES,
        "s3://lake/t/vectors.puffin": FileKind.DELETION_VECTORS,
    }
    assert str(tmp_path / "m.avro") in paths(found, FileKind.MANIFEST), (
        "a table of version 1 may name its manifests without a list"
    )


def test_a_view_has_only_its_metadata_file(tmp_path):
    version = {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 1,
        "summary": {},
        "representations": [],
        "default-namespace": [],
    }
    view = {
        "view-uuid": "u",
        "format-version": 1,
        "location": "s3://lake/v",
        "current-version-id": 1,
        "versions": [version],
        "schemas": [],
    }
    path = tmp_path / "v.metadata.json"
    path.write_text(json.dumps(view))
    assert [(one.path, one.kind) for one in walk(str(path)) if isinstance(one, ReferencedFile)] == [
        (str(path), FileKind.METADATA)
    ]
    assert read_table(Files(), str(path)).bases == ("s3://lake/v",)


# -- broken ---------------------------------------------------------------------------------------


def a_manifest(table: Table) -> Path:
    return Path(table.current_snapshot().manifests(table.io)[0].manifest_path)


@contextmanager
def mended(path: Path) -> Iterator[None]:
    """Restores a file after the block."""
    data = path.read_bytes()
    try:
        yield
    finally:
        if path.is_dir():
            path.rmdir()
        path.write_bytes(data)


BREAKING = {
    "metadata": lambda table: Path(table.metadata_location),
    "list": lambda table: Path(table.current_snapshot().manifest_list),
    "manifest": a_manifest,
}
HOW = {
    "missing": (lambda path: path.unlink(), Fault.MISSING),
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:-20]), Fault.DAMAGED),
    "empty": (lambda path: path.write_bytes(b""), Fault.DAMAGED),
    "other": (lambda path: path.write_bytes(b"PAR1 something else"), Fault.DAMAGED),
    "folder": (lambda path: (path.unlink(), path.mkdir()), Fault.UNREADABLE),
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("what", BREAKING)
def test_a_broken_file_is_named_and_the_others_are_found(breakable, what, how):
    path, (change, fault) = BREAKING[what](breakable), HOW[how]
    whole = paths(walk(breakable.metadata_location))
    with mended(path):
        change(path)
        walker = Walker(Files())
        found = list(walker.follow(breakable.metadata_location))
        again = list(walker.follow(breakable.metadata_location))
    (broken,), (repeated,) = (
        [one for one in part if isinstance(one, BrokenFile)] for part in (found, again)
    )
    assert (broken.fault, broken.location) == (fault, str(path))
    assert str(path) in broken.message
    assert "\n" not in broken.message
    assert repeated.location == broken.location, "it is reported for each content that needs it"
    reported = {one.path for one in found if isinstance(one, ReferencedFile)}
    assert reported < whole
    assert str(path) in reported, "a broken file is still needed"
    assert pickle.loads(pickle.dumps(broken)).message == broken.message


def test_a_manifest_truncated_between_two_blocks_is_noticed_by_its_length(breakable):
    path = a_manifest(breakable)
    head = path.read_bytes()
    marker = head[-16:]
    with mended(path):
        path.write_bytes(head[: head.index(marker) + 16])
        with path.open("rb") as file:
            assert list(fastavro.reader(file)) == [], "the decoder sees nothing wrong"
        (broken,) = [
            one for one in walk(breakable.metadata_location) if isinstance(one, BrokenFile)
        ]
    assert broken.fault is Fault.DAMAGED
    assert "is truncated" in broken.message


def test_a_snapshot_missing_in_the_metadata_file_is_a_fault(table):
    (broken,) = [one for one in walk(table.metadata_location, 12345) if isinstance(one, BrokenFile)]
    assert broken.fault is Fault.NO_SNAPSHOT
    assert "12345" in broken.message


@pytest.mark.parametrize(
    "path", ["relative/data.parquet", "file:relative.parquet", "", "file://other-host/data.parquet"]
)
def test_an_invalid_location_of_a_data_file_breaks_its_manifest(table, tmp_path, path):
    entry = {"status": 1, "data_file": {"file_path": path, "content": 0}}
    location = by_hand(table, tmp_path, {"manifests": [manifest(tmp_path / "m.avro", [entry])]})
    (broken,) = [one for one in walk(location) if isinstance(one, BrokenFile)]
    assert broken.location == str(tmp_path / "m.avro")


@pytest.mark.parametrize(
    "snapshot",
    [
        {},
        {"manifests": "x"},
        {"manifests": [1]},
        {"manifest-list": 5},
        {"snapshot-id": "x", "manifests": []},
    ],
)
def test_an_invalid_snapshot_breaks_its_metadata_file(table, tmp_path, snapshot):
    (broken,) = [
        one for one in walk(by_hand(table, tmp_path, snapshot)) if isinstance(one, BrokenFile)
    ]
    assert broken.fault is Fault.DAMAGED
    assert "by-hand.metadata.json" in broken.message
