"""The file of `nessie serve --warehouses`: warehouses with the settings of their storage."""

from __future__ import annotations

from pathlib import Path

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.warehouses.configuration import from_toml
from nessie_cli.iceberg.warehouses.warehouse import Warehouses
from nessie_cli.server.runtime.watched_files import SECRET, TRUSTED, read_guarded

FILE_KIND = "warehouse file"


def read_warehouses(path: Path) -> Warehouses:
    """Returns the warehouses of a TOML file.

    Raises `InvalidInput`, and `NotAllowed` if others may read its secrets.
    """
    data = read_guarded(path, TRUSTED, FILE_KIND)
    try:
        warehouses, holds_secrets = from_toml(data)
    except InvalidInput as error:
        raise InvalidInput(f"{FILE_KIND} {path}: {error.message}") from None
    if holds_secrets:
        read_guarded(path, SECRET, FILE_KIND)
    return warehouses
