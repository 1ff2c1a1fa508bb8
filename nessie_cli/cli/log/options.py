"""Options that several commands of this folder share."""

from typing import Annotated

import typer

DeepOption = Annotated[
    bool,
    typer.Option(
        "--deep",
        help="Also read the Iceberg metadata files, and show changes in columns, row count and file"
        " count.",
    ),
]
