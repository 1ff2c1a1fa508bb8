"""Two branches of one table, combined and then read and written by other Iceberg clients."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable, Table
from pyiceberg.types import StringType

from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.combination.combination import Combination, combine
from nessie_cli.iceberg.combination.states import COMBINED_BY
from nessie_cli.iceberg.combination.writing import write_table
from tests.iceberg.combination.duck import duckdb_rows

NOW = 2_000_000_000_000
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
Change = Callable[[Table], object]


def rows(*ids: int, v: str = "x") -> pa.Table:
    return pa.table({"id": list(ids), "v": [v] * len(ids)}, schema=SCHEMA)


def append(*ids: int) -> Change:
    return lambda table: table.append(rows(*ids))


def delete(id_: int) -> Change:
    return lambda table: table.delete(f"id == {id_}")


def drop_all(table: Table) -> None:
    table.delete("id >= 0")


def compact(table: Table) -> None:
    table.overwrite(table.scan().to_arrow())


def set_property(value: str) -> Change:
    def change(table: Table) -> None:
        with table.transaction() as transaction:
            transaction.set_properties(owner=value)

    return change


def add_column(table: Table) -> None:
    with table.update_schema() as update:
        update.add_column("w", StringType())


class Lake:
    """A folder with one table, and copies of it that change on their own."""

    def __init__(self, folder: Path, version: int) -> None:
        self.folder = folder
        self.read_files: Counter[str] = Counter()
        self.written: list[str] = []
        table = self._catalog("base").create_table(
            "d.t", SCHEMA, properties={"format-version": str(version)}
        )
        table.append(rows(1, 2, 3))
        self.base = table.metadata_location

    def _catalog(self, name: str) -> SqlCatalog:
        folder = self.folder
        catalog = SqlCatalog(name, uri=f"sqlite:///{folder}/{name}.db", warehouse=folder.as_uri())
        catalog.create_namespace("d")
        return catalog

    def branch(self, name: str, *changes: Change, start: str | None = None) -> str:
        table = self._catalog(name).register_table("d.t", start or self.base)
        for change in changes:
            change(table)
            table.refresh()
        return str(table.metadata_location)

    def combine(self, ours: str, theirs: str, base: str | None = None) -> Combination:
        documents = [self._document(location) for location in (base or self.base, ours, theirs)]
        return combine(*documents, read=self.read)

    def combined(self, ours: str, theirs: str, base: str | None = None) -> str:
        """Combines two sides. Returns the location of the new metadata file."""
        before = set(self.folder.rglob("*.parquet"))
        combination = self.combine(ours, theirs, base)
        assert combination.conflicts == []
        made = write_table(
            combination, self.write, location=ours, now=NOW, summary={COMBINED_BY: "x"}
        )
        self.write(made.location, json.dumps(made.document).encode())
        assert set(self.folder.rglob("*.parquet")) == before
        return made.location

    def _document(self, location: str) -> Document:
        document: Document = json.loads(path_of(location).read_bytes())
        return document

    def read(self, location: str) -> bytes:
        self.read_files[location] += 1
        return path_of(location).read_bytes()

    def write(self, location: str, data: bytes) -> None:
        with path_of(location).open("xb") as file:
            file.write(data)
        self.written.append(location)


def path_of(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def ids(location: str) -> list[int]:
    """Returns the ids in a table, as PyIceberg and DuckDB read it."""
    read = StaticTable.from_metadata(location).scan().to_arrow().to_pylist()
    by_pyiceberg = sorted(row["id"] for row in read)
    assert Counter(by_pyiceberg) == duckdb_rows(location, "id")
    return by_pyiceberg


@pytest.fixture(params=[1, 2])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(tmp_path, request.param)


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([append(10)], [append(20), append(21)], [1, 2, 3, 10, 20, 21]),
        ([append(10)], [delete(2)], [1, 3, 10]),
        ([delete(2)], [append(20)], [1, 3, 20]),
        ([append(10), append(11)], [append(20), drop_all], [10, 11]),
        ([drop_all], [append(20)], [20]),
        ([append(10)], [append(20), add_column], [1, 2, 3, 10, 20]),
        ([add_column], [append(20)], [1, 2, 3, 20]),
        ([set_property("a")], [append(20)], [1, 2, 3, 20]),
        ([append(10)], [set_property("a")], [1, 2, 3, 10]),
    ],
)
def test_both_sides_are_in_the_table(
    lake: Lake, ours: list[Change], theirs: list[Change], expected: list[int]
) -> None:
    here, there = lake.branch("ours", *ours), lake.branch("theirs", *theirs)
    combined = lake.combined(here, there)
    assert ids(combined) == expected
    assert ids(lake.combined(there, here)) == expected
    table = StaticTable.from_metadata(combined)
    assert table.metadata.metadata_log[-1].metadata_file == here
    for change in (set_property("a"), add_column):
        if change in [*ours, *theirs]:
            assert "w" in table.schema().column_names
    # Other clients go on from there.
    later = lake.branch("later", append(99), delete(expected[0]), start=combined)
    assert ids(later) == [*expected[1:], 99]


def test_merging_again_changes_nothing(lake: Lake) -> None:
    here, there = lake.branch("ours", append(10)), lake.branch("theirs", append(20))
    combined = lake.combined(here, there)
    again = lake.combine(combined, there, base=there)
    assert again.files.is_empty
    assert again.definitions.updates == []
    more = lake.branch("more", append(21), start=there)
    assert ids(lake.combined(combined, more, base=there)) == [1, 2, 3, 10, 20, 21]


@pytest.mark.parametrize(
    ("ours", "theirs", "reason"),
    [
        (delete(1), delete(2), "both sides removed or rewrote this file"),
        (drop_all, delete(2), "both sides removed or rewrote this file"),
        (set_property("a"), set_property("b"), "both sides changed the property 'owner'"),
    ],
)
def test_changes_that_collide_are_conflicts(
    lake: Lake, ours: Change, theirs: Change, reason: str
) -> None:
    here, there = lake.branch("ours", ours), lake.branch("theirs", theirs)
    (conflict,) = lake.combine(here, there).conflicts
    assert getattr(conflict, "reason", str(conflict)) == reason
    assert lake.written == []


LOST_TWICE = "both sides had data files that the base does not have, and removed or rewrote them"


@pytest.mark.parametrize("way", ["add_files", "pick", "restore"])
@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (delete(100), delete(101), None),
        (delete(100), delete(100), None),
        (delete(100), compact, None),
        (drop_all, delete(101), None),
        (drop_all, drop_all, []),
        (delete(100), append(20), None),
        (append(10), append(20), [1, 2, 3, 10, 20, 100, 101, 102]),
    ],
)
def test_rows_of_a_file_that_both_sides_got_are_not_doubled(
    lake: Lake, way: str, ours: Change, theirs: Change, expected: list[int] | None
) -> None:
    """The file is not in the base: it came to the sides by a pick, and not by a merge."""
    file = str(lake.folder / "more.parquet")
    pq.write_table(rows(100, 101, 102), file)

    def add(table: Table) -> None:
        table.add_files([file])

    source = lake.branch("source", add)
    if way == "add_files":
        here, there = lake.branch("ours", add, ours), lake.branch("theirs", add, theirs)
    else:
        picked = lake.combined(lake.branch("target", append(4), delete(4)), source)
        start = picked if way == "pick" else source
        here = lake.branch("ours", ours, start=start)
        there = lake.branch("theirs", theirs, start=source)
    if expected is not None:
        assert ids(lake.combined(here, there)) == expected
        assert ids(lake.combined(there, here)) == expected
        return
    for sides in ((here, there), (there, here)):
        reasons = {str(getattr(each, "reason", each)) for each in lake.combine(*sides).conflicts}
        assert reasons & {LOST_TWICE, *(f"{side} {HAD}" for side in ("ours", "theirs"))}


HAD = "had these files, and removed or rewrote them"


@pytest.mark.parametrize("way", ["pick", "restore"])
def test_a_change_that_both_sides_got_is_no_conflict(lake: Lake, way: str) -> None:
    """Both sides rewrote a file in the same way, by picks of the same commits."""
    added = lake.branch("added", append(100, 101))
    source = lake.branch("source", delete(100), start=added)
    picked = lake.combined(lake.branch("target", append(4)), added)
    picked = lake.combined(picked, source, base=added)
    assert ids(picked) == [1, 2, 3, 4, 101]
    here = lake.branch("ours", append(10), start=picked if way == "pick" else source)
    there = lake.branch("theirs", append(20), start=source)
    expected = [1, 2, 3, *([4] if way == "pick" else []), 10, 20, 101]
    assert ids(lake.combined(here, there)) == expected
    assert ids(lake.combined(there, here)) == expected


def test_two_branches_that_merged_a_third_one_combine(lake: Lake) -> None:
    """The base is a state of the third branch, whose sequence numbers are its own."""
    third = lake.branch("third", *map(append, range(30, 34)), delete(33))
    merged = {
        name: lake.combined(lake.branch(f"{name}1", append(id_)), third)
        for name, id_ in (("ours", 10), ("theirs", 20))
    }
    here = lake.branch("ours2", delete(1), append(11), start=merged["ours"])
    there = lake.branch("theirs2", append(21), start=merged["theirs"])
    expected = [2, 3, 10, 11, 20, 21, 30, 31, 32]
    assert ids(lake.combined(here, there, third)) == expected
    assert ids(lake.combined(there, here, third)) == expected


def test_the_summary_counts_what_the_merge_changed(lake: Lake) -> None:
    here = lake.branch("ours", append(10))
    there = lake.branch("theirs", append(20), append(21), delete(2))
    summary: Any = StaticTable.from_metadata(lake.combined(here, there)).current_snapshot()
    assert summary.parent_snapshot_id
    counts = summary.summary.additional_properties
    assert summary.summary.operation.value == "overwrite"
    assert {name: counts[name] for name in ("added-data-files", "deleted-data-files")} == {
        "added-data-files": "3",
        "deleted-data-files": "1",
    }
    assert (counts["total-records"], counts[COMBINED_BY]) == ("5", "x")


def test_a_table_that_was_replaced_is_not_combined(lake: Lake) -> None:
    there = lake.branch("theirs", append(20))
    document = json.loads(path_of(lake.branch("ours", append(10))).read_bytes())
    # As after CREATE OR REPLACE TABLE: the snapshot has no parent.
    for snapshot in document["snapshots"]:
        snapshot.pop("parent-snapshot-id", None)
    here = f"{lake.base}.replaced.json"
    lake.write(here, json.dumps(document).encode())
    (conflict,) = lake.combine(here, there).conflicts
    assert "do not lead back to the base" in str(conflict)


def test_a_name_mapping_without_the_columns_of_the_other_side_is_a_conflict(lake: Lake) -> None:
    """`add_files` sets a mapping, which must have the column that the other side adds."""
    file = str(lake.folder / "more.parquet")
    pq.write_table(rows(100), file)

    def add_file(table: Table) -> None:
        table.add_files([file])

    here, there = lake.branch("ours", add_file), lake.branch("theirs", add_column)
    for sides in ((here, there), (there, here)):
        (conflict,) = lake.combine(*sides).conflicts
        assert "changed the columns, and the other one set the property" in str(conflict)
    both = lake.branch("both", add_file, add_column)
    more = lake.branch("more", append(10))
    for sides in ((both, more), (more, both)):
        table = StaticTable.from_metadata(lake.combined(*sides))
        assert "w" in table.schema().column_names
        assert '"w"' in table.properties["schema.name-mapping.default"]


def test_a_tag_inside_the_table_is_a_conflict(lake: Lake) -> None:
    def tag(table: Table) -> None:
        snapshot = table.current_snapshot()
        assert snapshot is not None
        table.manage_snapshots().create_tag(snapshot.snapshot_id, "v1").commit()

    theirs = lake.branch("theirs", append(20), tag)
    (conflict,) = lake.combine(lake.branch("ours"), theirs).conflicts
    assert str(conflict) == "theirs changed the tag 'v1' inside the table"


def test_a_removed_tag_is_removed(lake: Lake) -> None:
    def tag(table: Table) -> None:
        snapshot = table.current_snapshot()
        assert snapshot is not None
        table.manage_snapshots().create_tag(snapshot.snapshot_id, "v1").commit()

    def remove_tag(table: Table) -> None:
        table.manage_snapshots().remove_tag("v1").commit()

    base = lake.branch("base2", tag)
    ours = lake.branch("ours", append(10), start=base)
    theirs = lake.branch("theirs", append(20), remove_tag, start=base)
    combined = lake.combined(ours, theirs, base)
    assert ids(combined) == [1, 2, 3, 10, 20]
    assert set(lake._document(combined)["refs"]) == {"main"}


def test_shared_manifests_are_not_opened(tmp_path: Path) -> None:
    lake = Lake(tmp_path, 2)
    lake.base = lake.branch("start", *(append(number) for number in range(100, 120)))
    here, there = lake.branch("ours", append(10)), lake.branch("theirs", append(20))
    lake.combined(here, there)
    assert lake.read_files.total() == 5
    assert set(lake.read_files.values()) == {1}


@pytest.mark.parametrize("damage", ["missing", "truncated"])
def test_a_manifest_that_cannot_be_read_is_an_error(lake: Lake, damage: str) -> None:
    from nessie_cli.errors import InvalidInput
    from nessie_cli.iceberg.files import MissingFile, read_file

    here, there = lake.branch("ours", append(10)), lake.branch("theirs", append(20))
    theirs = StaticTable.from_metadata(there)
    (manifest,) = [
        m.manifest_path
        for m in theirs.current_snapshot().manifests(theirs.io)
        if m.added_snapshot_id == theirs.current_snapshot().snapshot_id
    ]
    if damage == "missing":
        path_of(manifest).unlink()
    else:
        path_of(manifest).write_bytes(path_of(manifest).read_bytes()[:-20])
    lake.read = read_file
    with pytest.raises(MissingFile if damage == "missing" else InvalidInput, match="avro"):
        lake.combine(here, there)
