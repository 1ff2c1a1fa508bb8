"""Which files a merge of rows reads: those that can have a key that both sides changed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.types import IcebergType, LongType, StringType, UUIDType

from nessie_cli.iceberg.combination.file_combiner import FileCombiner, UnwrittenFiles
from nessie_cli.iceberg.combination.key_evidence import KeyEvidence
from nessie_cli.iceberg.combination.merging import TableStates
from nessie_cli.iceberg.combination.states import FileContent, Identity, TableFile
from nessie_cli.iceberg.files import Files
from nessie_cli.model import CombinationRules, CombinedTable, RowRules
from tests.iceberg.row_diff.tables import Document, Folder
from tests.iceberg.row_merge.keyed import COLUMNS, KeyedTable, Layout, Rows, spec
from tests.iceberg.row_merge.test_histories import KEY, ReadFiles, rows_equal, rows_of

ROW: dict[str, Any] = {"text": "x", "number": 1.5, **dict.fromkeys(COLUMNS[2:])}
START: Rows = {key: dict(ROW) for key in range(12)}


def changed(rows: Rows, column: str, value: Any, *keys: int) -> Rows:
    return {key: {**row, column: value} if key in keys else row for key, row in rows.items()}


class Sides:
    """A table with files of up to four rows with adjacent keys, and both sides of it."""

    def __init__(self, folder: Path, *fields: Document, version: int = 2, bounds: bool = True):
        layout = Layout([list(fields)], 4, lambda: bounds)
        self.base = KeyedTable(Folder(folder, version, list(fields)), layout)
        self.base.change(START, "copy", 1)
        self.ours, self.theirs = self.base.fork(), self.base.fork()

    def change(self, ours: Rows, theirs: Rows, how: str = "copy") -> None:
        self.ours.change(ours, how, 2, 2)
        self.theirs.change(theirs, how, 2, 102)

    def merge(self, files: Files) -> CombinedTable:
        contents = [
            each.content(list(each.history)) for each in (self.base, self.ours, self.theirs)
        ]
        states = TableStates(None, "", KEY, KEY, KEY, KEY, *contents)
        return FileCombiner(files, "a merge", CombinationRules(rows=RowRules())).combine(states)

    def check(self, expected: Rows, *read: int) -> None:
        """Checks the merged rows, and the keys in the data files that are read."""
        files = ReadFiles()
        result = self.merge(files)
        assert result.content is not None, result.collisions
        assert rows_equal(rows_of(result.content), expected)
        keys = {
            key
            for state in (self.base, self.ours, self.theirs)
            for key, (path, _) in state.places.items()
            if path in files.paths
        }
        assert keys == set(read)


OURS = changed(START, "text", "ours", 0, 8)
THEIRS = changed(START, "number", 2.5, 0, 4)
MERGED = changed(changed(START, "text", "ours", 0, 8), "number", 2.5, 0, 4)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("how", ["copy", "positions"])
def test_files_with_other_bounds_are_not_read(tmp_path: Path, version: int, how: str) -> None:
    sides = Sides(tmp_path, version=version)
    sides.change(changed(START, "text", "ours", 0), changed(START, "number", 2.5, 0), how)
    sides.ours.change(OURS, how, 3, 3)
    sides.theirs.change(THEIRS, how, 3, 103)
    sides.check(MERGED, *range(4))


def test_files_without_bounds_are_read(tmp_path: Path) -> None:
    sides = Sides(tmp_path, bounds=False)
    sides.change(OURS, THEIRS)
    sides.check(MERGED, *range(12))


def test_other_partitions_of_the_key_are_not_read(tmp_path: Path) -> None:
    sides = Sides(tmp_path, spec("range", "truncate[5]"), bounds=False)
    sides.change(changed(START, "text", "ours", 0, 10), changed(START, "number", 2.5, 0, 5))
    merged = changed(changed(START, "text", "ours", 0, 10), "number", 2.5, 0, 5)
    sides.check(merged, *range(5))


@pytest.mark.parametrize("bounds", [True, False])
def test_a_row_in_another_partition_that_the_key_does_not_determine(
    tmp_path: Path, bounds: bool
) -> None:
    sides = Sides(tmp_path, spec("text", "identity"), bounds=bounds)
    sides.change(changed(START, "text", "y", 0), changed(START, "number", 2.5, 0, 4))
    merged = changed(changed(START, "text", "y", 0), "number", 2.5, 0, 4)
    sides.check(merged, *range(4 if bounds else 12))


def test_rows_with_one_key_in_two_partitions(tmp_path: Path) -> None:
    sides = Sides(tmp_path, spec("text", "identity"))
    sides.change({**START, 20: {**ROW, "text": "a"}}, {**START, 20: {**ROW, "text": "b"}})
    result = sides.merge(Files())
    ((conflict,),) = (each.rows for each in result.collisions)
    assert (conflict.key, conflict.column) == ({"id": 20}, "text")


def test_deletes_of_several_files_bring_these_together(tmp_path: Path) -> None:
    sides = Sides(tmp_path)
    sides.ours.change(changed(START, "text", "ours", 0), "copy", 2, 2)
    sides.theirs.change(changed(START, "number", 2.5, 0, 4), "wide", 2, 102)
    merged = changed(changed(START, "text", "ours", 0), "number", 2.5, 0, 4)
    sides.check(merged, *range(8))


def test_partitions_without_changes_of_both_sides_need_no_rows(tmp_path: Path) -> None:
    sides = Sides(tmp_path, spec("range", "truncate[5]"), bounds=False)
    ours = changed(START, "text", "ours", 0)
    sides.change(ours, changed(START, "number", 2.5, 5), "wide")
    sides.check(changed(ours, "number", 2.5, 5))


def test_equality_deletes_reach_their_partition(tmp_path: Path) -> None:
    sides = Sides(tmp_path, spec("range", "truncate[5]"))
    ours = changed(START, "text", "ours", 0, 10)
    sides.change(ours, changed(START, "number", 2.5, 0, 5), "equality")
    sides.check(changed(ours, "number", 2.5, 0, 5), *range(5))


@pytest.mark.parametrize(("version", "how"), [(2, "positions"), (2, "wide"), (3, "positions")])
@pytest.mark.parametrize("is_ours", [False, True])
def test_a_row_that_comes_back_can_have_the_key_of_a_new_one(
    tmp_path: Path, version: int, how: str, is_ours: bool
) -> None:
    sides = Sides(tmp_path, version=version, bounds=False)
    sides.base.change({key: START[key] for key in START if key > 0}, how, 2, 2)
    other = sides.base.fork()
    other.change({**other.rows, 0: {**ROW, "text": "new"}}, how, 3, 3)
    # As a revert of the deletion.
    sides.ours, sides.theirs = (sides.ours, other) if is_ours else (other, sides.theirs)
    result = sides.merge(Files())
    assert [(row.key, row.column) for each in result.collisions for row in each.rows] == [
        ({"id": 0}, "text")
    ]


def test_a_dry_run_holds_few_bytes(tmp_path: Path) -> None:
    sides = Sides(tmp_path)
    sides.change(OURS, THEIRS)
    before = set(tmp_path.glob("*.parquet"))
    files = UnwrittenFiles(Files(), most_in_memory=100)
    result = sides.merge(files)
    assert set(tmp_path.rglob("*.parquet")) == before
    assert result.content is not None
    location = result.content.metadata_location
    data = files.read(location)
    with files.open(location) as opened:
        assert opened.read() == data
    assert len(data) > 100
    files.remove(location)
    assert not Path(location).exists()


# -- what entries show ----------------------------------------------------------------------------


NUMBERS = count()


def file(
    partition: Sequence[tuple[str, Any]] = (),
    bounds: tuple[Any, Any] | None = None,
    type_: IcebergType | None = None,
    spec_id: int = 0,
) -> TableFile:
    row: Document = {}
    for name, value in zip(("lower_bounds", "upper_bounds"), bounds or (), strict=False):
        row[name] = {1: value if type_ is None else to_bytes(type_, value)}
    texts = tuple((name, f"{type(value).__name__} {value!r}") for name, value in partition)
    identity = Identity(f"f{next(NUMBERS)}")
    return TableFile(identity, FileContent.DATA, spec_id, texts, 1, 1, 1, 1, row)


FIELDS = [
    {"source-id": 1, "name": "k", "transform": "bucket[2]"},
    {"source-id": 2, "name": "other", "transform": "identity"},
    {"source-ids": [1, 2], "name": "both", "transform": "bucket[2]"},
    {"source-id": 1, "name": "nothing", "transform": "void"},
]
SPEC = {"partition-specs": [{"spec-id": 0, "fields": FIELDS}]}
OTHER_SPEC = {"partition-specs": [{"spec-id": 0, "fields": FIELDS[1:2]}]}


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        ([("k", 0)], [("k", 1)], True),
        ([("k", 0)], [("k", 0)], False),
        ([("k", None)], [("k", 0)], False),
        ([("k", 0)], [("k", "1")], False),
        ([("other", "a")], [("other", "b")], False),
        ([("both", 0)], [("both", 1)], False),
        ([("nothing", 0)], [("nothing", 1)], False),
        ([("k", 0), ("other", "a")], [("k", 1), ("other", "a")], True),
    ],
)
def test_partition_values(first: Any, second: Any, shown: bool) -> None:
    evidence = KeyEvidence({1: LongType()}, [SPEC])
    assert evidence.are_disjoint(file(first), file(second)) is shown
    assert len(evidence.groups([file(first), file(second)])) == 1 + shown


def test_a_spec_that_means_different_things_shows_nothing() -> None:
    evidence = KeyEvidence({1: LongType()}, [SPEC, OTHER_SPEC])
    assert not evidence.are_disjoint(file([("k", 0)]), file([("k", 1)]))
    evidence = KeyEvidence({1: LongType()}, [SPEC])
    assert not evidence.are_disjoint(file([("k", 0)]), file([("k", 1)], spec_id=1))


U1, U2 = b"\0" * 16, b"\xff" * 16


@pytest.mark.parametrize(
    ("type_", "first", "second", "shown"),
    [
        (LongType(), (1, 5), (6, 9), True),
        (LongType(), (1, 5), (5, 9), False),
        (LongType(), (1, 5), None, False),
        (LongType(), (5, 1), (6, 9), False),
        (StringType(), ("a", "b"), ("c", "d"), True),
        (StringType(), ("a", "bb"), ("bbaaa", "d"), True),
        (StringType(), ("a", "bc"), ("bb", "d"), False),
        (UUIDType(), (U1, U1), (U2, U2), False),
    ],
)
def test_bounds(type_: IcebergType, first: Any, second: Any, shown: bool) -> None:
    evidence = KeyEvidence({1: type_}, [SPEC])
    files = [file(bounds=each, type_=type_) for each in (first, second)]
    assert evidence.are_disjoint(*files) is shown
    assert len(evidence.groups(files)) == 1 + shown
