"""Adds locations of imported tables to the file of the warehouses of a server."""

from __future__ import annotations

from collections.abc import Sequence

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.warehouses.configuration import DEFAULT_NAME, from_toml


def allowed_in(text: str) -> tuple[str, ...]:
    """Returns the locations that the first warehouse of a file allows. Raises `InvalidInput`."""
    warehouses, _ = from_toml(text.encode())
    return warehouses.all[0].allowed


def with_locations(text: str | None, locations: Sequence[str]) -> str:
    """Returns the text of a file whose first warehouse allows the locations.

    Comments and all other values stay. Without a text, the first location is a new warehouse.
    Raises `InvalidInput` if the file is invalid, also with these locations.
    """
    import tomlkit

    document = tomlkit.parse(text or "")
    if text is None:
        warehouse = tomlkit.table()
        warehouse["location"] = locations[0]
        warehouse["allowed-locations"] = list(locations[1:])
        document["warehouse"] = tomlkit.table(is_super_table=True)
        document["warehouse"].append(DEFAULT_NAME, warehouse)
    else:
        name = from_toml(text.encode())[0].all[0].name
        first = document["warehouse"][name]
        first["allowed-locations"] = [*first.get("allowed-locations", ()), *locations]
    changed = tomlkit.dumps(document)
    try:
        from_toml(changed.encode())
    except InvalidInput as error:
        raise InvalidInput(
            f"the locations of the imported tables do not fit the warehouses: {error.message}"
        ) from None
    return changed
