"""Replaces the orders of a customer in the table sales.orders.

correct.py BRANCH CUSTOMER AMOUNT
"""

from __future__ import annotations

import os
import sys

import pyarrow as pa
from pyiceberg.catalog import load_catalog

branch, customer, amount = sys.argv[1:]
catalog = load_catalog(
    "lake",
    **{
        "py-catalog-impl": "nessie_cli.iceberg.catalog.NessieCatalog",
        "uri": ".nessie/store.sqlite",
        "warehouse": os.path.abspath("warehouse"),  # noqa: PTH100 (as in load.py)
        "ref": branch,
    },
)
rows = pa.table({"customer": [customer], "amount": [float(amount)]})
catalog.load_table("sales.orders").overwrite(rows, f"customer == '{customer}'")
