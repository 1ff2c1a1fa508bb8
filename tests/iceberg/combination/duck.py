"""Reads a metadata file with DuckDB."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb

from tests.engines.served import extension


def duckdb_rows(location: str, column: str) -> Counter[Any]:
    """Returns the values of a column."""
    connection = duckdb.connect()
    for name in ("avro", "iceberg"):
        connection.execute(f"LOAD '{extension(name)}'")
    query = f"SELECT {column} FROM iceberg_scan('{location}')"
    return Counter(value for (value,) in connection.execute(query).fetchall())
