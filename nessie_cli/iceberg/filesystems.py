"""File systems other than the local one, as pyarrow knows them: those that PyIceberg reads tables from, and all others by fsspec."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.files import NoAnswer, first_line, scheme_of, shown

_TAIL = re.compile(r"[?#].*|$", re.DOTALL)
"""What PyIceberg takes for no part of the path, though it is one of the object's name."""


def properties_of(catalog: str | None) -> dict[str, str]:
    """The properties (endpoints, credentials) of a catalog of PyIceberg's own configuration: `~/.pyiceberg.yaml`, `PYICEBERG_CATALOG__NAME__...`.

    Raises `InvalidInput` where there is no such catalog. None: no properties, and each file system finds its credentials by itself, S3 those
    of `AWS_ACCESS_KEY_ID` and its like.
    """
    if catalog is None:
        return {}
    try:
        from pyiceberg.utils.config import Config
    except ImportError:
        raise InvalidInput(
            "the properties of a catalog are read by PyIceberg. Hint: `pip install 'nessie-cli[iceberg]'`"
        ) from None
    try:
        found = Config().get_catalog_config(catalog)
    except (ValueError, OSError) as error:
        raise InvalidInput(
            f"PyIceberg's configuration cannot be read: {str(error).partition(chr(10))[0]}"
        ) from None
    if found is None:
        raise InvalidInput(f"PyIceberg's configuration has no catalog '{catalog}'")
    return {str(name): str(value) for name, value in found.items() if value is not None}


def filesystem(location: str, properties: Mapping[str, str]) -> tuple[Any, str]:
    """The `pyarrow.fs.FileSystem` of a location, and its path there (for S3 `bucket/key`).

    Raises `InvalidInput` for a scheme that nothing installed knows, `NoAnswer` where the file system cannot be reached.
    """
    scheme = scheme_of(location)
    try:
        from pyiceberg.io.pyarrow import PyArrowFileIO
    except ImportError:
        raise InvalidInput(
            f"{shown(location)}: files behind {scheme}: are reached by PyIceberg. Hint: `pip install 'nessie-cli[iceberg]'`"
        ) from None
    try:
        scheme, host, path = PyArrowFileIO.parse_location(location)
        return _known(scheme, host, dict(properties)) or _by_fsspec(scheme), path + _TAIL.findall(
            location
        )[0]
    except (ImportError, TypeError, ValueError) as error:
        raise InvalidInput(f"{shown(location)}: cannot be listed: {first_line(error)}") from None
    except OSError as error:
        raise NoAnswer(f"{shown(location)}: cannot be reached: {first_line(error)}") from None


def _known(scheme: str, host: str, properties: dict[str, str]) -> Any:
    from pyiceberg.io.pyarrow import PyArrowFileIO

    try:
        return PyArrowFileIO(properties).fs_by_scheme(scheme, host)
    except ValueError as error:
        if "Unrecognized filesystem" in str(error):
            return None
        raise


def _by_fsspec(scheme: str) -> Any:
    import fsspec
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    return PyFileSystem(FSSpecHandler(fsspec.filesystem(scheme)))
