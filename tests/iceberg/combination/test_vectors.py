"""Deletion vectors of both sides in one data file, on hand-made tables of format version 3."""

from __future__ import annotations

import json
import random
import secrets
from pathlib import Path

import pytest
from msgspec import structs
from pyiceberg.table.puffin import PuffinFile
from pyroaring import BitMap64

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.avro import OF_MERGES, USUAL
from nessie_cli.iceberg.builder import table
from nessie_cli.iceberg.builder.values import Document, by_id
from nessie_cli.iceberg.combination import unions
from nessie_cli.iceberg.combination.decision import merge_files
from nessie_cli.iceberg.combination.file_combiner import FileCombiner, UnwrittenFiles
from nessie_cli.iceberg.combination.manifests import (
    Manifest,
    NewEntry,
    NewSnapshot,
    Status,
    read_list,
    read_manifest,
    write_list,
    write_manifest,
)
from nessie_cli.iceberg.combination.merging import TableStates
from nessie_cli.iceberg.combination.states import FileContent, Identity, TableFile, VectorUnion
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.metadata import content_of
from nessie_cli.iceberg.vectors import puffin_file
from nessie_cli.model import CombinationRules, ContentKey, IcebergTable
from tests.iceberg.combination.model import Table, check_merge, united
from tests.iceberg.combination.test_combination import NOW, Lake, append, ids, path_of
from tests.iceberg.row_diff.tables import Folder

_ONE = BitMap64([1]).serialize()[12:]
"""The bitmap of one position without its upper half."""


class VectorLake(Lake):
    """A folder with a table of one data file with the rows 1 to 6, and copies of it.

    `older` is the table before its upgrade to format version 3.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, 2)
        files = folder / "vectors"
        files.mkdir()
        self._vectors = Folder(files, 3)
        self.base = self.branch("start", lambda t: t.overwrite(t.scan().to_arrow().slice(0, 0)))
        self.older = self.branch("filled", append(1, 2, 3, 4, 5, 6), start=self.base)
        self.base = self.upgraded(self.older)

    def upgraded(self, location: str) -> str:
        """Upgrades a table to format version 3. Returns the new metadata file."""
        upgrade = {"action": "upgrade-format-version", "format-version": 3}
        return self._made(table.updated(self._document(location), [upgrade], NOW, location))

    def _made(self, document: Document) -> str:
        location = f"{document['location']}/metadata/{secrets.token_hex(8)}.metadata.json"
        self.write(location, json.dumps(document).encode())
        return location

    def vectors(self, location: str) -> list[TableFile]:
        """Returns the deletion vectors of a table."""
        return [
            entry.file
            for manifest in self.manifests(location)
            if not manifest.is_data
            for entry in manifest.entries
            if entry.status is not Status.DELETED
        ]

    def manifests(self, location: str) -> list[Manifest]:
        document = self._document(location)
        snapshot = by_id(document["snapshots"], "snapshot-id")[document["current-snapshot-id"]]
        path = snapshot["manifest-list"]
        rows = read_list(path_of(path).read_bytes(), path).rows
        return [read_manifest(path_of(name).read_bytes(), row) for name, row in rows.items()]

    def deleting(self, start: str, *ids: int) -> str:
        """Commits a vector of all rows with some ids. Returns the new metadata file."""
        document, manifests = self._document(start), self.manifests(start)
        data = [manifest for manifest in manifests if manifest.is_data]
        (source,) = [m for m in data if any(e.status is not Status.DELETED for e in m.entries)]
        sequence, snapshot_id = document["last-sequence-number"] + 1, secrets.randbits(62)
        target = source.entries[0].file
        (entry,) = self._vectors.vectors({target.path: [id_ - 1 for id_ in ids]}, sequence)
        row = entry["data_file"]
        place = Identity(row["file_path"], row["content_offset"], row["content_size_in_bytes"])
        vector = TableFile(
            place, FileContent.POSITION_DELETES, 0, (), len(ids), 0, 0, 0, row, target.path
        )
        entries = [
            NewEntry(Status.ADDED, vector, snapshot_id),
            *(
                NewEntry(Status.DELETED, old, snapshot_id, old.sequence, old.file_sequence)
                for old in self.vectors(start)
            ),
        ]
        name = f"{document['location']}/metadata/{snapshot_id}"
        like = Manifest(
            {**source.listed, "content": 1}, source.schema, {**source.metadata, "content": "deletes"}, ()
        )  # fmt: skip
        content, listed = write_manifest(
            like, entries, f"{name}-m.avro", NewSnapshot(snapshot_id, sequence, 3)
        )
        self.write(f"{name}-m.avro", content)
        has_ids = source.listed.get("first_row_id") is not None
        rows = [{**source.listed, "first_row_id": source.listed.get("first_row_id") or 0}, listed]
        self.write(f"{name}-list.avro", write_list(rows, 3, {}, {"format-version": "3"}))
        snapshot = {
            "snapshot-id": snapshot_id,
            "parent-snapshot-id": document["current-snapshot-id"],
            "sequence-number": sequence,
            "timestamp-ms": NOW,
            "manifest-list": f"{name}-list.avro",
            "summary": {"operation": "delete"},
            "schema-id": document["current-schema-id"],
            "first-row-id": document["next-row-id"],
            "added-rows": 0 if has_ids else 6,
        }
        ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch"}
        updates = [
            {"action": "add-snapshot", "snapshot": snapshot},
            {**ref, "snapshot-id": snapshot_id},
        ]
        return self._made(table.updated(document, updates, NOW, start))


@pytest.fixture
def lake(tmp_path: Path) -> VectorLake:
    return VectorLake(tmp_path)


def reasons(lake: Lake, base: str, ours: str, theirs: str) -> list[str]:
    conflicts = lake.combine(ours, theirs, base).conflicts
    return [getattr(conflict, "reason", str(conflict)) for conflict in conflicts]


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "rows"),
    [
        ([], [1], [2], [3, 4, 5, 6]),
        ([], [1, 2], [2, 3], [4, 5, 6]),
        ([1], [1, 2], [1, 3], [4, 5, 6]),
        ([1], [1, 2, 3, 4, 5], [1, 6], []),
    ],
)
def test_a_union_is_written(
    lake: VectorLake, base: list[int], ours: list[int], theirs: list[int], rows: list[int]
) -> None:
    start = lake.deleting(lake.base, *base) if base else lake.base
    here, there = lake.deleting(start, *ours), lake.deleting(start, *theirs)
    lake.written.clear()
    combined = lake.combined(here, there, start)
    (puffin,) = [path for path in lake.written if path.endswith(".puffin")]
    assert ids(combined) == rows
    assert ids(lake.combined(there, here, start)) == rows
    (vector,) = lake.vectors(combined)
    assert (vector.path, vector.records, vector.referenced) == (
        puffin,
        6 - len(rows),
        lake.vectors(here)[0].referenced,
    )
    assert vector.row["file_size_in_bytes"] == path_of(puffin).stat().st_size
    document = lake._document(combined)
    assert vector.sequence == document["last-sequence-number"]
    snapshot = by_id(document["snapshots"], "snapshot-id")[document["current-snapshot-id"]]
    counts = {name: snapshot["summary"].get(name) for name in ("added-dvs", "removed-dvs")}
    assert counts == {"added-dvs": "1", "removed-dvs": "1"}
    assert snapshot["summary"]["operation"] == "delete"
    assert snapshot["summary"]["added-position-deletes"] == str(6 - len(rows))
    assert snapshot["summary"]["removed-position-deletes"] == str(len(ours))
    read = PuffinFile(path_of(puffin).read_bytes())
    assert read.footer.blobs[0].properties == {
        "referenced-data-file": vector.referenced,
        "cardinality": str(6 - len(rows)),
    }
    # A merge that was done changes nothing.
    assert lake.combine(combined, there, there).files.is_empty


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [([1, 2], [1]), ([1, 2], [2, 1])],
)
def test_a_vector_of_ours_with_all_rows_stays(
    lake: VectorLake, ours: list[int], theirs: list[int]
) -> None:
    here, there = lake.deleting(lake.base, *ours), lake.deleting(lake.base, *theirs)
    combination = lake.combine(here, there)
    assert combination.conflicts == []
    assert combination.vectors == []
    assert combination.files.is_empty


def test_a_vector_of_theirs_is_never_that_of_a_union(lake: VectorLake) -> None:
    """With one vector on both sides, a later merge would not look at the rows of this file."""
    here, there = lake.deleting(lake.base, 1), lake.deleting(lake.base, 1, 2)
    combined = lake.combined(here, there)
    assert ids(combined) == [3, 4, 5, 6]
    (vector,) = lake.vectors(combined)
    assert vector.path not in [file.path for file in lake.vectors(there)]


def test_an_update_and_a_deletion_of_a_row_do_not_get_one_vector() -> None:
    """A pick unites vectors: that of theirs has all rows of that of ours, but for other reasons."""
    base = Table(random.Random(1), 3)
    base.commit("append", (base.rows(3),))
    (path,) = base.paths
    ours, theirs = base.fork("o"), base.fork("t")
    ours.delete(path, ours.live(path)[2], is_updated=True)
    theirs.delete(path, theirs.live(path)[2], is_updated=False)
    parent = theirs.fork("p")
    theirs.delete(path, theirs.live(path)[0], is_updated=False)
    picked = check_merge(parent, ours, theirs, is_merge=False)
    assert picked is not None
    assert check_merge(base, theirs, picked) is None
    assert check_merge(base, picked, theirs) is None


@pytest.mark.parametrize("turned", [False, True])
def test_deletions_that_a_side_took_back_are_a_conflict(lake: VectorLake, turned: bool) -> None:
    start = lake.deleting(lake.base, 1)
    sides = [lake.deleting(start, 2), lake.deleting(start, 1, 3)]
    ours, theirs = reversed(sides) if turned else sides
    lake.written.clear()
    assert reasons(lake, start, ours, theirs) == [
        "one side took deletions back, and the other one changed their files"
    ]
    assert lake.written == []


def test_both_sides_go_on_after_a_union(lake: VectorLake) -> None:
    ours, theirs = lake.deleting(lake.base, 1), lake.deleting(lake.base, 2)
    combined = lake.combined(ours, theirs)
    here, there = lake.deleting(combined, 1, 2, 3), lake.deleting(theirs, 2, 4)
    assert ids(lake.combined(here, there, theirs)) == [5, 6]
    assert ids(lake.combined(there, here, theirs)) == [5, 6]


def content(lake: VectorLake, location: str) -> IcebergTable:
    table_content = content_of(lake._document(location), location)
    assert isinstance(table_content, IcebergTable)
    return structs.replace(table_content, id="t")


@pytest.mark.parametrize("dry_run", [False, True])
def test_the_report_counts_the_deleted_rows_of_theirs(lake: VectorLake, dry_run: bool) -> None:
    start = lake.deleting(lake.base, 1)
    here, there = lake.deleting(start, 1, 2, 3), lake.deleting(start, 1, 3, 4)
    key = ContentKey(("t",))
    sides = (content(lake, location) for location in (start, here, there))
    before = set(lake.folder.rglob("*"))
    files = UnwrittenFiles(Files()) if dry_run else Files()
    combiner = FileCombiner(files, "merge", CombinationRules())
    combined = combiner.combine(TableStates(None, "", key, key, key, key, *sides))
    assert combined.content is not None
    counts = combined.combination
    assert counts is not None
    assert (counts.added_files, counts.removed_files) == (1, 1)
    assert (counts.added_rows, counts.removed_rows) == (0, 1)
    if dry_run:
        assert set(lake.folder.rglob("*")) == before
    else:
        assert ids(combined.content.metadata_location) == [5, 6]
        # Nothing stays of an attempt that was abandoned.
        assert set(lake.folder.rglob("*.puffin")) - before
        combiner.discard(combined.content)
        assert set(lake.folder.rglob("*")) == before


def test_a_vector_that_cannot_be_read_is_an_error(lake: VectorLake) -> None:
    here, there = lake.deleting(lake.base, 1), lake.deleting(lake.base, 2)
    (vector,) = lake.vectors(there)
    path = path_of(vector.path)
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    with pytest.raises(InvalidInput, match="has no valid deletion vector at byte 4"):
        lake.combine(here, there)


def test_vectors_are_read_only_if_both_sides_changed_them(lake: VectorLake) -> None:
    here, there = lake.deleting(lake.base, 1), lake.deleting(lake.base, 2)
    lake.read_files.clear()
    lake.combine(here, lake.base)
    assert not any(path.endswith(".puffin") for path in lake.read_files)
    lake.combine(here, there)
    assert [count for path, count in lake.read_files.items() if path.endswith(".puffin")] == [1, 1]


def test_vectors_that_are_too_large_are_not_read(
    lake: VectorLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = lake.deleting(lake.base, 1), lake.deleting(lake.base, 2)
    monkeypatch.setattr(unions, "MOST_BYTES", 50)
    lake.read_files.clear()
    with pytest.raises(InvalidInput, match="both sides deleted rows have more than"):
        lake.combine(here, there)
    assert not any(path.endswith(".puffin") for path in lake.read_files)


def test_a_server_does_not_read_a_vector_that_takes_long() -> None:
    """One call reads or unites a vector, and holds the interpreter meanwhile."""
    hostile = b"".join(number.to_bytes(4, "little") + _ONE for number in range(100_000))
    bitmap = BitMap64.deserialize((100_000).to_bytes(8, "little") + hostile)
    location = "memory:vectors.puffin"
    data, [(offset, size)] = puffin_file([("data", bitmap)])
    place = Identity(location, offset, size)
    file = TableFile(place, FileContent.POSITION_DELETES, 0, (), 100_000, 0, 0, 0, {}, "data")
    union = [VectorUnion(None, file, file, may_replace_rows=False)]
    with pytest.raises(InvalidInput, match="has a deletion vector of more than 1024 KiB"):
        unions.read_vectors(union, lambda _: data, OF_MERGES.vector)
    assert unions.read_vectors(union, lambda _: data, USUAL.vector) == {place: bitmap}


def test_a_row_that_a_restored_vector_deletes_may_have_a_new_version() -> None:
    """Theirs restored an update by a revert: no snapshot since the base says what it replaced."""
    base = Table(random.Random(1), 3)
    base.commit("append", (base.rows(3),))
    (path,) = base.paths
    base.history.clear()
    ours, theirs = base.fork("o"), base.fork("t")
    ours.delete(path, ours.live(path)[0], is_updated=False)
    theirs.delete(path, theirs.live(path)[0], is_updated=True)
    # The update is a snapshot of the base, too: there, a revert has taken it back.
    theirs.history.clear()
    ours.listed |= theirs.listed
    merge = merge_files(base.state(base), ours.state(base), theirs.state(base), theirs.last)
    merge, _ = united(merge, base, ours, theirs)
    (conflict,) = merge.conflicts
    assert conflict.reason == "both sides changed the same rows of one file"
    # Other rows combine.
    other = base.fork("n")
    other.listed |= theirs.listed
    other.delete(path, other.live(path)[1], is_updated=False)
    assert check_merge(base, other, theirs) is not None
