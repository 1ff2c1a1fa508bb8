"""Check sums of database pages, by SQLite's own extension cksumvfs.

Each page of a store file carries a check sum that is verified when the page is read from the file.
A changed byte anywhere in the file is an error then, never a row that is missing or wrong. Reading
and writing cost the same within the noise of a measurement (docs/reference/performance.md).
"""

from __future__ import annotations

import threading
from pathlib import Path

import apsw

from nessie_cli.errors import StoreUnavailable

VFS = "cksmvfs"
"""The layer below SQLite that computes and verifies check sums."""
_EXTENSION = "sqlite_extra_binaries/cksumvfs"
"""The file of the extension in the package apsw. SQLite adds the suffix of the platform."""
_RESERVED = 8
"""Bytes at the end of each page that hold its check sum."""

_lock = threading.Lock()


def load_page_checks() -> None:
    """Makes `VFS` known to SQLite, once per process. Other databases of the process do not use it.

    Raises `StoreUnavailable` if this installation of apsw lacks the extension.
    """
    with _lock:
        if VFS in apsw.vfs_names():
            return
        default = apsw.vfs_names()[0]
        connection = apsw.Connection(":memory:")
        try:
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1)
            # `apsw.sqlite_extra.load` finds the same file, but its imports are a tenth of the time of a short command.
            connection.load_extension(str(Path(apsw.__file__).parent / _EXTENSION))
        except apsw.Error as error:
            raise StoreUnavailable(
                f"apsw {apsw.apsw_version()} comes without {Path(_EXTENSION).name}; install apsw from PyPI"
            ) from error
        finally:
            connection.close()
            apsw.set_default_vfs(default)


def has_page_checks(connection: apsw.Connection) -> bool:
    """Returns whether the pages of this file carry check sums."""
    return connection.reserve_bytes() == _RESERVED


def request_page_checks(connection: apsw.Connection) -> None:
    """Make the pages of a new file, or of an old one after its next VACUUM, carry check sums."""
    connection.reserve_bytes(reserve=_RESERVED)
