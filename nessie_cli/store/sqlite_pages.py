"""Checksums of database pages, by SQLite's own extension cksumvfs.

Each page of a store file has a checksum that is verified when the page is read. So a changed byte
anywhere in the file is an error, never a missing or wrong row. The cost is within the noise of
measurements (docs/reference/performance.md).
"""

from __future__ import annotations

import threading
from pathlib import Path

import apsw

from nessie_cli.errors import StoreUnavailable

VFS = "cksmvfs"
"""The layer below SQLite that computes and verifies checksums."""
_EXTENSION = "sqlite_extra_binaries/cksumvfs"
"""The file of the extension in the package apsw. SQLite adds the suffix of the platform."""
_RESERVED = 8
"""Bytes at the end of each page for its checksum."""

_lock = threading.Lock()


def load_page_checks() -> None:
    """Registers `VFS` with SQLite, once per process. Other databases do not use it.

    Raises `StoreUnavailable` if this installation of apsw lacks the extension.
    """
    with _lock:
        if VFS in apsw.vfs_names():
            return
        default = apsw.vfs_names()[0]
        connection = apsw.Connection(":memory:")
        try:
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1)
            # `apsw.sqlite_extra.load` finds the same file, but its imports take a tenth of the time
            # of a short command.
            connection.load_extension(str(Path(apsw.__file__).parent / _EXTENSION))
        except apsw.Error as error:
            raise StoreUnavailable(
                f"apsw {apsw.apsw_version()} comes without {Path(_EXTENSION).name}; install apsw"
                " from PyPI"
            ) from error
        finally:
            connection.close()
            apsw.set_default_vfs(default)


def has_page_checks(connection: apsw.Connection) -> bool:
    """Returns whether the pages of this file have checksums."""
    return connection.reserve_bytes() == _RESERVED


def request_page_checks(connection: apsw.Connection) -> None:
    """Gives the pages checksums, those of an old file after its next VACUUM."""
    connection.reserve_bytes(reserve=_RESERVED)
