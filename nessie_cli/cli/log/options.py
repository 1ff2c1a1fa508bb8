"""Options that several commands of this folder share."""

from typing import Annotated

import typer

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
