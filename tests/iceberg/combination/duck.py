"""Reads a metadata file with DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

import duckdb

from tests.engines.served import extension


def duckdb_rows(location: str, column: str) -> Counter[Any]:
    """Returns the values of a column."""
    connection = _connection().cursor()
    query = f"SELECT {column} FROM iceberg_scan('{location}')"
    return Counter(value for (value,) in connection.execute(query).fetchall())


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name in ("avro", "iceberg"):
        connection.execute(f"LOAD '{extension(name)}'")
    return connection


def can_read(document: Mapping[str, Any]) -> bool:
    """Returns whether DuckDB can read a table.

    It refuses one of format version 2 whose snapshot was written before the upgrade: it requires
    sequence numbers, which the Iceberg specification says to read as 0.
    """
    if document["format-version"] == 1:
        return True
    current = document.get("current-snapshot-id")
    snapshots = [each for each in document["snapshots"] if each["snapshot-id"] == current]
    return all("sequence-number" in snapshot for snapshot in snapshots)
