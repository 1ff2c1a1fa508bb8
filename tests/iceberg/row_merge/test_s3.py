"""Rows of tables in S3, by moto's server program, are merged there."""

from __future__ import annotations

import pyarrow as pa

from nessie_cli.iceberg.combination.file_combiner import FileCombiner, UnwrittenFiles
from nessie_cli.iceberg.combination.merging import TableStates
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.row_diff.contents import changed_rows
from nessie_cli.model import CombinationRules, ContentKey, RowRules
from tests.gc.s3 import Store
from tests.iceberg.lake import Lake

KEY = ContentKey.parse("db.t")


def rows(changed: int) -> pa.Table:
    """A file of more than a megabyte, which is read by ranges. One row has another value."""
    values = [n * 7919 % 1_000_003 for n in range(200_000)]
    values[changed] = -1
    return pa.table({"id": range(200_000), "v": values})


def test_the_rows_of_a_table_in_a_bucket(embedded: Lake, store: Store) -> None:
    catalog = embedded.catalog(warehouse=f"s3://lake/{embedded.branch}", **store.properties)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", rows(0).schema)
    table.append(rows(0))
    states = [embedded.content("db", "t")]
    for changed in (1, 2):
        # Both sides start from the first state.
        table.manage_snapshots().rollback_to_snapshot(states[0].snapshot_id).commit()
        table.overwrite(rows(changed))
        states.append(embedded.content("db", "t"))
    base, ours, theirs = states
    rules = CombinationRules(rows=RowRules(key=("id",)))
    table_states = TableStates(None, "", KEY, KEY, KEY, KEY, base, ours, theirs)
    files = Files(store.properties)
    dry_run = FileCombiner(UnwrittenFiles(files), "a merge", rules).combine(table_states)
    assert dry_run.content is not None, dry_run.collisions
    result = FileCombiner(files, "a merge", rules).combine(table_states)
    assert result.content is not None, result.collisions
    changes = changed_rows(ours, result.content, key=["id"], properties=store.properties)
    before, after = changes.read_all().to_pylist()
    assert before == {"_change_type": "UPDATE_BEFORE", "id": 2, "v": 2 * 7919}
    assert after == {"_change_type": "UPDATE_AFTER", "id": 2, "v": -1}
