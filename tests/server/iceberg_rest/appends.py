"""A table of three rows behind a server with a warehouse, and appends to it by PyIceberg."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table

from tests.server.iceberg_rest.lake import Lake, lake

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": ["x"] * len(ids)}, schema=SCHEMA)


@contextmanager
def table(url: str, ref: str, **properties: str) -> Iterator[Table]:
    catalog = RestCatalog("lake", uri=f"{url}/iceberg/{ref}", **properties)
    with closing(catalog):
        yield catalog.load_table("db.t")


def append(url: str, ref: str, *ids: int, **properties: str) -> None:
    with table(url, ref, **properties) as opened:
        opened.append(rows(*ids))


def ids(url: str, ref: str) -> list[int]:
    with table(url, ref) as opened:
        return sorted(opened.scan().to_arrow()["id"].to_pylist())


def create(url: str, **properties: str) -> None:
    with closing(RestCatalog("lake", uri=f"{url}/iceberg/main", **properties)) as catalog:
        catalog.create_namespace_if_not_exists("db")
        catalog.create_table("db.t", rows(1).schema).append(rows(1, 2, 3))


@contextmanager
def two_appends(folder: Path) -> Iterator[Lake]:
    """Yields a lake whose branches main and dev have both appended to the table."""
    with lake(folder) as served:
        create(served.url)
        served.branch("dev")
        append(served.url, "main", 10)
        append(served.url, "dev", 20)
        yield served
