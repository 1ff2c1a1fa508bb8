"""The catalogs in PyIceberg's configuration: `.pyiceberg.yaml` and `PYICEBERG_CATALOG__...`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pyiceberg.utils.config import Config

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.files import first_line

T = TypeVar("T")


def catalog_names() -> list[str]:
    """Returns the names of the catalogs, in small letters. Raises `InvalidInput`."""
    return _read(Config.get_known_catalogs)


def catalog_properties(name: str) -> dict[str, Any] | None:
    """Returns the properties of a catalog, or None. Some values are mappings themselves.

    Raises `InvalidInput`.
    """
    properties = _read(lambda config: config.get_catalog_config(name))
    return None if properties is None else dict(properties)


def _read(read: Callable[[Config], T]) -> T:
    try:
        # A new object reads the environment again, unlike that of `load_catalog`.
        return read(Config())
    except Exception as error:  # noqa: BLE001 - the parser of YAML has its own errors
        raise unreadable(error) from None


def unreadable(error: Exception) -> InvalidInput:
    """Returns the error for a configuration that its parser refuses, with the place.

    The message of the parser repeats the file, which may contain secrets.
    """
    mark, problem = (getattr(error, name, None) for name in ("problem_mark", "problem"))
    reason = first_line(error) if problem is None else str(problem).partition("\n")[0]
    place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
    return InvalidInput(
        f"PyIceberg's configuration (.pyiceberg.yaml) cannot be read: {place}{reason}"
    )
