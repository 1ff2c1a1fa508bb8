"""The catalogs in PyIceberg's configuration: `.pyiceberg.yaml` and `PYICEBERG_CATALOG__...`."""

from __future__ import annotations

from typing import Any

from pyiceberg.utils.config import Config

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.files import first_line


def catalog_names() -> list[str]:
    """Returns the names of the catalogs, in small letters. Raises `InvalidInput`."""
    return _configuration().get_known_catalogs()


def catalog_properties(name: str) -> dict[str, Any] | None:
    """Returns the properties of a catalog, or None. Some values are mappings themselves."""
    try:
        properties = _configuration().get_catalog_config(name)
    except ValueError as error:
        raise InvalidInput(
            f"PyIceberg's configuration cannot be read: {first_line(error)}"
        ) from None
    return None if properties is None else dict(properties)


def _configuration() -> Config:
    # A new object reads the environment again, unlike that of `load_catalog`.
    try:
        return Config()
    except Exception as error:  # noqa: BLE001 - the parser of YAML has its own errors
        raise InvalidInput(
            f"PyIceberg's configuration cannot be read: {first_line(error)}"
        ) from None
