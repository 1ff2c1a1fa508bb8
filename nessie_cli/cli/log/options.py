"""Options that several commands of this folder share."""

from typing import Annotated

import typer

DeepOption = Annotated[
    bool,
    typer.Option("--deep", help="Also compare the Iceberg metadata files: columns, rows, files."),
]
