"""All tables of the data source, by name."""

from __future__ import annotations

from collections.abc import Mapping

from nessie_cli.spark.file_checks import AUDIT, SIZES
from nessie_cli.spark.history import LOG, OPERATIONS
from nessie_cli.spark.keys import CONTENTS, DIFF, ENTRIES
from nessie_cli.spark.references import CONFLICTS, REFERENCES, REFLOG
from nessie_cli.spark.table import SourceTable

TABLES: Mapping[str, SourceTable] = {
    table.name: table
    for table in (
        REFERENCES,
        LOG,
        OPERATIONS,
        ENTRIES,
        CONTENTS,
        DIFF,
        REFLOG,
        CONFLICTS,
        AUDIT,
        SIZES,
    )
}
ROWS = "rows"
"""The table of changed rows, whose columns are those of an Iceberg table (`spark.rows`)."""
OPTIONS: Mapping[str, frozenset[str]] = {
    **{name: table.options for name, table in TABLES.items()},
    ROWS: frozenset({"from", "to", "ref", "at", "key"}),
}
"""The options of each table, besides those of all tables."""
