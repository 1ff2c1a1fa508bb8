"""Appends an order to the table sales.orders, by PyIceberg with nessie as its catalog.

load.py BRANCH [CUSTOMER AMOUNT]. Prints the customers; without an order, it appends nothing.
"""

from __future__ import annotations

import os
import sys

import pyarrow as pa
from pyiceberg.catalog import load_catalog

branch, *order = sys.argv[1:]
catalog = load_catalog(
    "lake",
    **{
        "py-catalog-impl": "nessie_cli.iceberg.catalog.NessieCatalog",
        "uri": ".nessie/store.sqlite",
        "warehouse": os.path.abspath("warehouse"),  # noqa: PTH100 (as in README.md)
        "ref": branch,
    },
)
if order:
    customer, amount = order
    rows = pa.table({"customer": [customer], "amount": [float(amount)]})
    catalog.create_namespace_if_not_exists("sales")
    catalog.create_table_if_not_exists("sales.orders", rows.schema).append(rows)
print(catalog.load_table("sales.orders").scan().to_arrow().column("customer").to_pylist())
