"""Rows of the table of `Lake` by their ids, written and read as a whole."""

from __future__ import annotations

import pyarrow as pa

from tests.cli.lake import SCHEMA, Lake

Rows = dict[int, tuple[str, int]]
"""The two other columns of each row, by its id."""


def write(lake: Lake, ref: str, rows: Rows) -> None:
    """Replaces all rows."""
    columns = {
        "id": list(rows),
        "v": [value for value, _ in rows.values()],
        "n": [number for _, number in rows.values()],
    }
    with lake.table(ref) as table:
        table.overwrite(pa.table(columns, schema=SCHEMA))


def read(lake: Lake, ref: str) -> Rows:
    with lake.table(ref) as table:
        rows = table.scan().to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: (row["v"], row["n"]) for row in rows}
