"""The key arguments of `nessie content`."""

from typing import Any

import typer

KeyArgument: Any = typer.Argument(metavar="KEY", help="The key, such as db.sales.orders.")
KeysArgument: Any = typer.Argument(
    metavar="KEY...",
    help="The keys, such as db.sales.orders, or globs such as 'db.*' (* also matches dots).",
)
