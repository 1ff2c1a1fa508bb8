"""Remote file systems of pyarrow: those that PyIceberg supports, and others through fsspec."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.files import NoAnswer, first_line
from nessie_cli.iceberg.locations import scheme_of, shown

RETRY_STRATEGY = "s3.retry-strategy-impl"
"""A setting of PyIceberg that copies of a pyarrow file system lose."""
_TAIL = re.compile(r"[?#].*|$", re.DOTALL)
"""The part of an object's name that PyIceberg does not take as part of the path."""


def properties_of(catalog: str | None) -> dict[str, str]:
    """Returns the properties of a catalog in PyIceberg's configuration, such as credentials.

    The configuration is `~/.pyiceberg.yaml` and the variables `PYICEBERG_CATALOG__NAME__...`.
    Raises `InvalidInput` if there is no such catalog. None means no properties: each file system
    finds its own credentials, S3 for example in `AWS_ACCESS_KEY_ID`.
    """
    if catalog is None:
        return {}
    try:
        from pyiceberg.utils.config import Config
    except ImportError:
        raise InvalidInput(
            "PyIceberg is needed to read the properties of a catalog",
            hint="`pip install 'nessie-cli[iceberg]'`",
        ) from None
    try:
        properties = Config().get_catalog_config(catalog)
    except (ValueError, OSError) as error:
        raise InvalidInput(
            f"PyIceberg's configuration cannot be read: {str(error).partition(chr(10))[0]}"
        ) from None
    if properties is None:
        raise InvalidInput(f"PyIceberg's configuration has no catalog '{catalog}'")
    return {str(name): str(value) for name, value in properties.items() if value is not None}


def filesystem(location: str, properties: Mapping[str, str]) -> tuple[Any, str]:
    """Returns the pyarrow file system of a location, and the path in it (S3: `bucket/key`).

    Raises `InvalidInput` if no installed package supports the scheme, and `NoAnswer` if the file
    system cannot be reached.
    """
    scheme = scheme_of(location)
    try:
        from pyiceberg.io.pyarrow import PyArrowFileIO
    except ImportError:
        raise InvalidInput(
            f"{shown(location)}: PyIceberg is needed for {scheme}: locations",
            hint="`pip install 'nessie-cli[iceberg]'`",
        ) from None
    try:
        scheme, host, path = PyArrowFileIO.parse_location(location)
        return _known(scheme, host, dict(properties)) or _by_fsspec(scheme), path + _TAIL.findall(
            location
        )[0]
    except (ImportError, TypeError, ValueError) as error:
        raise InvalidInput(f"{shown(location)} cannot be listed: {first_line(error)}") from None
    except OSError as error:
        raise NoAnswer(f"{shown(location)} cannot be reached: {first_line(error)}") from None


def upload_small_files_at_once(file_io: Any) -> None:
    """Makes a FileIO of PyIceberg store a small file in S3 by one request instead of three.

    PyIceberg has no setting for it.
    """
    from pyarrow.fs import S3FileSystem

    make = getattr(file_io, "fs_by_scheme", None)
    if make is None or RETRY_STRATEGY in file_io.properties:
        # It does not use pyarrow, or its file system cannot be copied.
        return

    def made(scheme: str, host: str | None) -> Any:
        system = make(scheme, host)
        if not isinstance(system, S3FileSystem):
            return system
        again, (options,) = system.__reduce__()
        # Older versions of pyarrow do not have the option.
        changed = {"allow_delayed_open": True} if "allow_delayed_open" in options else {}
        return again({**options, **changed})

    file_io.fs_by_scheme = cache(made)


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
