"""The lake that guides begin with. `lake begin nightly` does these steps in this order.

begin       main has two tables, sales.orders and sales.customers
nightly     the branch nightly changes both and adds a third one, sales.totals
meanwhile   main gets one more customer, so the branches conflict
demo        the commits of `make demo`, without its tables
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.types import StringType

ORDERS = {"id": [1, 2, 3], "customer": ["ann", "bob", "ann"], "amount": [10.0, 25.5, 8.0]}


def _catalog(branch: str, author: str = "ann@example.org") -> Catalog:
    return load_catalog(
        "lake",
        **{
            "py-catalog-impl": "nessie_cli.iceberg.catalog.NessieCatalog",
            "uri": ".nessie/store.sqlite",
            "warehouse": str(Path("warehouse").resolve()),
            "ref": branch,
            "author": author,
        },
    )


def _create(catalog: Catalog, name: str, rows: pa.Table) -> None:
    with catalog.create_table_transaction(name, rows.schema) as transaction:
        transaction.append(rows)


def _begin() -> None:
    _nessie("init")
    catalog = _catalog("main")
    catalog.create_namespace("sales")
    _create(catalog, "sales.orders", pa.table(ORDERS))
    _create(
        catalog,
        "sales.customers",
        pa.table({"name": ["ann", "bob"], "city": ["Berlin", "Oslo"]}),
    )


def _nightly() -> None:
    _nessie("branch", "nightly")
    catalog = _catalog("nightly", "etl@example.org")
    orders = catalog.load_table("sales.orders")
    with orders.update_schema() as update:
        update.add_column("currency", StringType())
    orders.append(
        pa.table({"id": [4], "customer": ["eve"], "amount": [3.0], "currency": ["EUR"]}),
    )
    customers = catalog.load_table("sales.customers")
    customers.overwrite(
        pa.table({"name": ["ann", "bob", "eve"], "city": ["Hamburg", "Oslo", "Rome"]})
    )
    totals = pa.table({"customer": ["ann", "bob", "eve"], "total": [18.0, 25.5, 3.0]})
    _create(catalog, "sales.totals", totals)


def _meanwhile() -> None:
    customers = _catalog("main", "bob@example.org").load_table("sales.customers")
    customers.append(pa.table({"name": ["zoe"], "city": ["Lima"]}))


def _demo() -> None:
    _nessie("init")
    _commit("main", "register orders and clients")
    _nessie("branch", "nightly")
    _commit("nightly", "nightly load")
    for message in ("new client zoe", "order 3", "refund of order 2"):
        _commit("main", message)
    _nessie("merge", "nightly")
    _nessie("tag", "month-end")


def _commit(branch: str, message: str) -> None:
    key = message.replace(" ", "-")
    _nessie("content", "put", key, "--type", "namespace", "--ref", branch, "-m", message)


def _nessie(*words: str) -> None:
    subprocess.run(["nessie", *words, "--quiet"], check=True)  # noqa: S603, S607


STEPS = {"begin": _begin, "nightly": _nightly, "meanwhile": _meanwhile, "demo": _demo}

if __name__ == "__main__":
    for step in sys.argv[1:]:
        STEPS[step]()
