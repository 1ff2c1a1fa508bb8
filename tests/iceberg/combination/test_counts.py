"""The numbers of files and rows in the report of a combined table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec import structs

from nessie_cli.iceberg.combination.file_combiner import FileCombiner, UnwrittenFiles
from nessie_cli.iceberg.combination.merging import TableStates
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.metadata import content_of
from nessie_cli.model import CombinationRules, ContentKey, IcebergTable, TableCombination
from tests.iceberg.row_diff.tables import Document, Folder, column, schema

IDS = {"id": 1}
KEY = ContentKey(("t",))


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


class Tables:
    """States of a table of one data file with the rows 1 to 4, and changes of it."""

    def __init__(self, path: Path, version: int) -> None:
        self.folder, self.version = Folder(path, version), version
        self.file = self.folder.data(rows(1, 2, 3, 4), IDS)

    def deletes(self, file: Document, positions: Sequence[int], sequence: int) -> Document:
        deleted = {file["data_file"]["file_path"]: positions}
        if self.version == 2:
            return self.folder.positions(deleted, sequence, named=True)
        return self.folder.vectors(deleted, sequence)[0]

    def content(self, entries: Sequence[Document], last: int) -> IcebergTable:
        """A state after the snapshots 1 to `last`."""
        snapshots = range(1, last + 1)
        first_row_ids = {id_: 100 * (id_ - 1) for id_ in snapshots} if self.version == 3 else None
        document = self.folder.state(
            entries,
            schema(column(1, "id", "long")),
            snapshots=snapshots,
            first_row_ids=first_row_ids,
        )
        document |= {"last-sequence-number": last}
        location = self.folder.new("metadata.json")
        Path(location).write_text(json.dumps(document))
        table = content_of(document, location)
        assert isinstance(table, IcebergTable)
        return structs.replace(table, id="t")

    def counts(self, base: Any, ours: Any, theirs: Any) -> tuple[int | None, ...]:
        """The added and removed files, and the added and removed rows."""
        states = [self.content(*each) for each in (base, ours, theirs)]
        combiner = FileCombiner(UnwrittenFiles(Files()), "merge", CombinationRules())
        combined = combiner.combine(TableStates(None, "", KEY, KEY, KEY, KEY, *states))
        assert combined.collisions == ()
        assert isinstance(combined.combination, TableCombination)
        return structs.astuple(combined.combination)[:4]


@pytest.fixture(params=[2, 3])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    return Tables(tmp_path, request.param)


def test_a_reverted_deletion_gives_rows_back(tables: Tables) -> None:
    file = tables.file
    deleted = [file, tables.deletes(file, [0, 1], 2)]
    later = [*deleted, tables.folder.data(rows(9), IDS, 3)]
    assert tables.counts((deleted, 2), (later, 3), ([file], 1)) == (0, 1, 2, 0)


def test_a_merged_deletion_removes_rows(tables: Tables) -> None:
    file = tables.file
    later = [file, tables.folder.data(rows(9), IDS, 3)]
    deleted = [file, tables.deletes(file, [0, 1, 2], 2)]
    assert tables.counts(([file], 1), (later, 3), (deleted, 2)) == (1, 0, 0, 3)


def test_a_data_file_comes_and_goes_without_its_deleted_rows(tables: Tables) -> None:
    file = tables.file
    new = tables.folder.data(rows(5, 6, 7), IDS, 2)
    deletes = tables.deletes(new, [1], 3)
    both = [file, new, deletes]
    later = tables.folder.data(rows(9), IDS, 4)
    assert tables.counts(([file], 1), ([file, later], 4), (both, 3)) == (2, 0, 2, 0)
    assert tables.counts((both, 3), ([*both, later], 4), ([file], 1)) == (0, 2, 0, 2)


def test_a_vector_with_fewer_rows_gives_the_others_back(tmp_path: Path) -> None:
    tables = Tables(tmp_path, 3)
    file = tables.file
    before = [file, tables.deletes(file, [0], 2)]
    after = [file, tables.deletes(file, [0, 1, 2], 3)]
    later = [*after, tables.folder.data(rows(9), IDS, 4)]
    assert tables.counts((after, 3), (later, 4), (before, 2)) == (1, 1, 2, 0)


def test_rows_that_equality_deletes_change_are_not_counted(tables: Tables) -> None:
    """Their files do not say how many rows they delete."""
    file = tables.file
    deletes = tables.folder.equality(rows(1), IDS, 2)
    upserted = [file, deletes, tables.folder.data(rows(1), IDS, 2)]
    before, deleted = ([file], 1), ([file, deletes], 2)
    assert tables.counts(before, before, deleted) == (1, 0, 0, None)
    assert tables.counts(deleted, deleted, before) == (0, 1, None, 0)
    assert tables.counts(before, before, (upserted, 2)) == (2, 0, None, None)
    assert tables.counts((upserted, 2), (upserted, 2), before) == (0, 2, None, None)
