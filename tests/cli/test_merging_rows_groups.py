"""`--rows` reads only the files that can have the keys of both sides' changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pytest
from pyiceberg.transforms import TruncateTransform

from tests.cli.lake import SCHEMA, Lake
from tests.cli.rows import Rows, read
from tests.cli.test_merging_rows import BY_ID
from tests.command.in_process import InProcess
from tests.iceberg.combination.duck import duckdb_rows

START: Rows = dict.fromkeys((1, 2, 3, 11, 12, 13, 21, 22, 23), ("x", 1))


def put(lake: Lake, ref: str, rows: Rows, deleted: Sequence[int] = ()) -> None:
    """Writes the files of some rows again, with new versions of these."""
    ids = ", ".join(map(str, (*rows, *deleted)))
    columns = {
        "id": list(rows),
        "v": [value for value, _ in rows.values()],
        "n": [number for _, number in rows.values()],
    }
    with lake.table(ref) as table:
        table.overwrite(pa.table(columns, schema=SCHEMA), f"id in ({ids})")


@pytest.fixture
def partitioned(nessie: InProcess, lake: Lake) -> Lake:
    """Both sides change row 1, ours one of the partition 20, and theirs two of the partition 10."""
    with lake.table("main") as table, table.update_spec() as update:
        update.add_field("id", TruncateTransform(10), "tens")
    put(lake, "main", START)
    assert nessie("merge", "main", "--into", "dev").code == 0
    put(lake, "main", {1: ("ours", 1), 21: ("ours", 1)})
    put(lake, "dev", {1: ("x", 2), 11: ("theirs", 1)}, [12])
    return lake


MERGED: Rows = {
    **START,
    1: ("ours", 2),
    11: ("theirs", 1),
    21: ("ours", 1),
}
del MERGED[12]


def test_a_partition_of_the_key_that_only_theirs_changed(
    nessie: InProcess, partitioned: Lake
) -> None:
    with partitioned.table("main") as table:
        before = table.current_snapshot()
    ran = nessie("merge", "dev", *BY_ID)
    assert ran.code == 0
    assert "rows were merged by their keys: 0 inserted, 1 updated, 0 deleted" in ran.err
    assert "files with other keys were merged without reading their rows: +2 -1" in ran.err
    # Row 1 with a delete of its old version, and the files of theirs in the other partition.
    assert ran.rows[0][-3:-1] == ["+4 -1", "+3 -4"]
    with partitioned.table("main") as table:
        snapshot, location = table.current_snapshot(), table.metadata_location
    assert before is not None
    assert snapshot is not None
    assert snapshot.parent_snapshot_id == before.snapshot_id
    assert read(partitioned, "main") == MERGED
    assert duckdb_rows(location, "(id, v, n)") == Counter((id_, *MERGED[id_]) for id_ in MERGED)
    assert nessie("audit").code == 0
    again = nessie("merge", "main", "--into", "dev", *BY_ID)
    assert again.code == 0
    assert read(partitioned, "dev") == MERGED


def test_it_says_how_much_it_reads_and_writes(nessie: InProcess, partitioned: Lake) -> None:
    ran = nessie("merge", "dev", *BY_ID, "--dry-run")
    (line,) = (line for line in ran.err.splitlines() if line.startswith("merging rows"))
    words = line.removeprefix("merging rows of db.t reads up to ").split()
    read_, written = float(words[0]), float(words[-2])
    # Row 1 is in a file of the base, and in two files of each side: one has the other rows.
    assert words[1:-2] == ["kB", "and", "writes", "up", "to", "about"]
    assert 2.5 < read_ / written < 3.5


def test_appends_of_other_keys_need_no_rows(nessie: InProcess, lake: Lake) -> None:
    lake.append("main", 10)
    lake.append("dev", 20)
    ran = nessie("merge", "dev", *BY_ID)
    assert ran.code == 0
    assert "rows" not in ran.err
    assert lake.ids("main") == [1, 2, 3, 10, 20]
