"""Options that several commands of this folder share."""

from typing import Annotated

import typer

DeepOption = Annotated[
    bool,
    typer.Option(
        "--deep", help="Compare the metadata files of Iceberg contents too: columns, rows, files."
    ),
]
