"""Rows of tables in S3, by moto's server program."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.row_diff.contents import changed_rows
from nessie_cli.model import ContentKey
from tests.gc.s3 import Store
from tests.iceberg.lake import Lake

KEY = ContentKey.parse("db.t")


def rows(start: int) -> pa.Table:
    """A file of more than a megabyte, which is read by ranges."""
    numbers = range(start, start + 200_000)
    return pa.table({"id": numbers, "v": [n * 7919 % 1_000_003 for n in numbers]})


def test_the_rows_of_a_table_in_a_bucket(embedded: Lake, store: Store) -> None:
    catalog = embedded.catalog(warehouse=f"s3://lake/{embedded.branch}", **store.properties)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", rows(0).schema)
    table.append(rows(0))
    before = embedded.content("db", "t")
    table.overwrite(rows(1))
    changes = changed_rows(
        before, embedded.content("db", "t"), key=["id"], properties=store.properties
    )
    assert changes.difference.bytes > 2 * 2**20
    assert changes.read_all().to_pylist() == [
        {"_change_type": "DELETE", "id": 0, "v": 0},
        {"_change_type": "INSERT", "id": 200_000, "v": 200_000 * 7919 % 1_000_003},
    ]
    (new,) = (pair.file.path for pair in changes.difference.files if pair.before is None)
    store.files.delete_file(new.removeprefix("s3://"))
    again = changed_rows(before, embedded.content("db", "t"), properties=store.properties)
    with pytest.raises(InvalidInput, match="no such file"):
        again.read_all()
