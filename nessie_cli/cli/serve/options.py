"""The options that `nessie serve` and `nessie ui` share."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nessie_cli.errors import InvalidInput

if TYPE_CHECKING:
    from nessie_cli.iceberg.warehouses.warehouse import Warehouses

AllowLocationOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-location",
        metavar="URI",
        help="Allow tables at this location outside of the warehouses, too; repeatable.",
    ),
]
WarehousesOption = Annotated[
    Path | None,
    typer.Option(
        "--warehouses",
        metavar="FILE",
        help="A TOML file that defines warehouses: names, locations and storage settings."
        " Cannot be combined with --warehouse or --allow-location.",
    ),
]


def port_option(name: str, help_: str) -> Any:
    """Returns an option for a port."""
    return typer.Option(name, metavar="PORT", min=0, max=65535, help=help_)


def warehouse_option(help_: str) -> Any:
    """Returns the option `--warehouse`, which can be repeated."""
    return typer.Option("--warehouse", metavar="[NAME=]URI", help=help_)


def warehouses_of(
    warehouse: Sequence[str] | None, allow_location: Sequence[str] | None, file: Path | None
) -> "Warehouses | None":
    """Returns the warehouses of the options, or None without them."""
    if file is not None:
        if warehouse or allow_location:
            raise InvalidInput(
                "--warehouses FILE names all warehouses; omit --warehouse and --allow-location"
            )
        from nessie_cli.server import read_warehouses

        return read_warehouses(file)
    if not warehouse:
        if allow_location:
            raise InvalidInput("--allow-location needs --warehouse")
        return None
    from nessie_cli.iceberg.warehouses.configuration import from_options

    return from_options(warehouse, allow_location or ())
