"""Options that several commands of this folder share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class RowFormat(StrEnum):
    """The forms of changed rows, beside JSON."""

    TABLE = "table"
    MARKDOWN = "markdown"
    CSV = "csv"
    PARQUET = "parquet"


NameStatusOption = Annotated[
    bool,
    typer.Option(
        "--name-status",
        help="Show each key with a letter: A created, M updated, D deleted, R renamed.",
    ),
]
DeepOption = Annotated[
    bool,
    typer.Option(
        "--deep",
        help="Also read the Iceberg metadata files, and show changes in columns, row count and file"
        " count.",
    ),
]
RowsOption = Annotated[
    bool,
    typer.Option(
        "--rows",
        help="Show the inserted, deleted and updated rows of Iceberg tables. This reads the data"
        " files that differ.",
    ),
]
RowKeyOption = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="COLUMNS",
        help="With --rows, rows with the same values in these columns (separated by commas) are one"
        " row, before and after an update. Default: the identifier fields of the table, otherwise"
        " row ids.",
    ),
]
RowColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="COLUMNS",
        help="With --rows, compare only these columns (separated by commas) and the key.",
    ),
]
RowFilterOption = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="FILTER",
        help="With --rows, show only changes whose row matches before or after, as in"
        ' "amount < 0".',
    ),
]
RowLimitOption = Annotated[
    int | None,
    typer.Option(
        "--limit", metavar="N", min=1, help="With --rows, show the first N changes of each table."
    ),
]
RowFormatOption = Annotated[
    RowFormat | None,
    typer.Option(
        "--format",
        help="With --rows, the form of the output. csv and parquet need a single table, and have"
        " two rows for an update.",
        show_default="table",
    ),
]
RowOutputOption = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="With --rows, write the rows to this file."
    ),
]
