"""Data files and delete files that no writer would write: an error names the file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.row_diff.changes import RowChanges
from nessie_cli.iceberg.row_diff.difference import Selection, compare_tables
from tests.iceberg.row_diff.footers import (
    INT64,
    LIST,
    STRUCT,
    Fields,
    change_footer,
    column_of,
    element_of,
    group_of,
)
from tests.iceberg.row_diff.tables import Document, Folder, column, schema, with_ids

IDS = {"id": 1, "v": 2}
PLAIN = schema(column(1, "id", "long"), column(2, "v", "string"))
ROWS = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})
PATH_AND_POSITION = {"file_path": 2147483546, "pos": 2147483545}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path, version=3)


def path_of(entry: Document) -> str:
    return str(entry["data_file"]["file_path"])


def rows_of(folder: Folder, *entries: Document, columns: Document = PLAIN) -> pa.Table:
    """Compares the state with some files to one without any."""
    files = Files()
    difference = compare_tables(None, folder.state(entries, columns), files.read, Selection())
    return RowChanges(difference, files).read_all()


def refused(folder: Folder, *entries: Document, columns: Document = PLAIN) -> str:
    """Returns the error, which names the last file."""
    with pytest.raises(InvalidInput) as error:
        rows_of(folder, *entries, columns=columns)
    assert path_of(entries[-1]) in error.value.message
    return error.value.message


def rows_are(count: int) -> Callable[[Fields], None]:
    return lambda footer: group_of(footer).update({3: [INT64, count]})


def values_are(count: int) -> Callable[[Fields], None]:
    def change(footer: Fields) -> None:
        for chunk in group_of(footer)[1][1][1]:
            chunk[3][1][5] = [INT64, count]

    return change


def name_is(name: bytes) -> Callable[[Fields], None]:
    def change(footer: Fields) -> None:
        element_of(footer)[4][1] = name

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (rows_are(-5), "says that it has -5 rows"),
        (rows_are(2**40), "says that it has 1,099,511,627,776 rows"),
        (rows_are(9), "row group 0 has 3 of 9 rows"),
        (values_are(-1), "row group 0 has 0 of 3 rows"),
        (name_is(b"\xff"), "codec can't decode byte 0xff"),
    ],
)
def test_a_wrong_footer(folder: Folder, change: Callable[[Fields], None], reason: str) -> None:
    data = folder.data(ROWS, IDS)
    change_footer(path_of(data), change)
    assert reason in refused(folder, data)


def test_a_negative_size_of_a_row_group(folder: Folder) -> None:
    data = folder.data(ROWS, IDS)
    change_footer(path_of(data), lambda footer: group_of(footer).update({2: [INT64, -1]}))
    assert rows_of(folder, data).num_rows == 3


def test_wrong_statistics_of_sizes_do_not_end_the_process(folder: Folder) -> None:
    """Arrow ends the process when it is asked for the size of such a column."""
    data = folder.data(ROWS, IDS)
    histogram = {3: [LIST, (INT64, [1] * 9)]}
    change_footer(path_of(data), lambda f: column_of(f).update({16: [STRUCT, histogram]}))
    deletes = folder.equality(pa.table({"v": ["b"]}), {"v": 2}, 2)
    assert "histogram size mismatch" in refused(folder, deletes, data)


def test_texts_and_numbers_in_the_place_of_nested_columns(folder: Folder) -> None:
    data = folder.data(ROWS, IDS)
    for nested in (
        {"type": "struct", "fields": [column(3, "a", "long")]},
        {"type": "list", "element-id": 3, "element": "long", "element-required": False},
        {
            "type": "map",
            "key-id": 3,
            "key": "long",
            "value-id": 4,
            "value": "long",
            "value-required": False,
        },
    ):
        columns = schema(column(1, "id", "long"), column(2, "v", nested))
        assert "column of the type string" in refused(folder, data, columns=columns)


@pytest.mark.parametrize(
    "deleted",
    [
        pa.table({"file_path": ["x"], "pos": pa.array([-1], pa.int64())}),
        pa.table({"file_path": ["x"], "pos": pa.array([None], pa.int64())}),
        pa.table({"file_path": pa.array([None], pa.string()), "pos": pa.array([1], pa.int64())}),
        pa.table({"file_path": ["x"]}),
    ],
)
def test_position_deletes_without_positions(folder: Folder, deleted: pa.Table) -> None:
    data = folder.data(ROWS, IDS)
    deletes = folder.positions({path_of(data): [1]}, 2)
    pq.write_table(with_ids(deleted, PATH_AND_POSITION), path_of(deletes))
    assert "without a path or position" in refused(folder, data, deletes)


def test_equality_deletes_of_no_column(folder: Folder) -> None:
    data = folder.data(ROWS, IDS)
    deletes = folder.equality(pa.table({"v": ["b"]}), {"v": 2}, 2)
    deletes["data_file"]["equality_ids"] = []
    assert "the values of no column" in refused(folder, data, deletes)


def test_a_format_has_a_short_name_in_one_line(folder: Folder) -> None:
    data = folder.data(ROWS, IDS, file_format="\x1b[31m" + "x" * 100_000)
    message = refused(folder, data)
    assert message.isprintable()
    assert len(message) < 500


def test_rows_are_on_the_disk_once(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    before, after = (folder.data(ROWS.slice(at, 2), IDS) for at in (0, 1))
    states = [folder.state([entry], PLAIN) for entry in (before, after)]
    files = Files()
    changes = RowChanges(compare_tables(*states, files.read, Selection(key=["id"])), files)
    batches = iter(changes)
    next(batches)
    filled = [path for path in temporary.iterdir() if any(path.iterdir())]
    assert len(filled) == 1
    assert sum(batch.num_rows for batch in batches) == 0
    assert not list(temporary.iterdir())
