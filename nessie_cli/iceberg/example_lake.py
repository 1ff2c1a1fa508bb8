"""The example lake of `nessie demo lake`: small Iceberg tables on two branches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa
from pyiceberg.types import StringType

from nessie_cli.iceberg.catalog import NessieCatalog
from nessie_cli.model import ReferenceType
from nessie_cli.repository.opening import create

MAIN, NIGHTLY = "main", "nightly"
_ORDERS = {"id": [1, 2, 3], "customer": ["ann", "bob", "ann"], "amount": [10.0, 25.5, 8.0]}


def fill(store: str, warehouse: Path, *, conflict: bool) -> tuple[str, str]:
    """Creates a store with two branches, and returns their names.

    With `conflict`, both branches replace the rows of one table. Raises `OSError` if a file cannot
    be written.
    """
    with create(store, default_branch=MAIN) as repository:
        with _catalog(store, warehouse, MAIN, "ann@example.org") as catalog:
            _begin(catalog)
        head = repository.reference(MAIN).hash
        repository.create_reference(ReferenceType.BRANCH, NIGHTLY, head)
    with _catalog(store, warehouse, NIGHTLY, "etl@example.org") as catalog:
        _change(catalog)
    if conflict:
        with _catalog(store, warehouse, MAIN, "bob@example.org") as catalog:
            customers = catalog.load_table("sales.customers")
            customers.overwrite(pa.table({"name": ["ann", "bob"], "city": ["Berlin", "Lima"]}))
    return MAIN, NIGHTLY


@contextmanager
def _catalog(store: str, warehouse: Path, branch: str, author: str) -> Iterator[NessieCatalog]:
    catalog = NessieCatalog("lake", uri=store, warehouse=str(warehouse), ref=branch, author=author)
    with closing(catalog):
        yield catalog


def _begin(catalog: NessieCatalog) -> None:
    catalog.create_namespace("sales")
    _create(catalog, "sales.orders", pa.table(_ORDERS))
    customers = pa.table({"name": ["ann", "bob"], "city": ["Berlin", "Oslo"]})
    _create(catalog, "sales.customers", customers)


def _create(catalog: NessieCatalog, name: str, rows: pa.Table) -> None:
    """Creates a table with rows in one commit."""
    with catalog.create_table_transaction(name, rows.schema) as transaction:
        transaction.append(rows)


def _change(catalog: NessieCatalog) -> None:
    orders = catalog.load_table("sales.orders")
    with orders.update_schema() as update:
        update.add_column("currency", StringType())
    orders.append(pa.table({"id": [4], "customer": ["eve"], "amount": [3.0], "currency": ["EUR"]}))
    catalog.load_table("sales.customers").overwrite(
        pa.table({"name": ["ann", "bob", "eve"], "city": ["Hamburg", "Oslo", "Rome"]})
    )
    totals = pa.table({"customer": ["ann", "bob", "eve"], "total": [18.0, 25.5, 3.0]})
    _create(catalog, "sales.totals", totals)
