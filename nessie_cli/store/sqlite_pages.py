"""Check sums of database pages, by SQLite's own extension cksumvfs.

Each page of a store file carries a check sum that is verified when the page is read from the file.
A changed byte anywhere in the file is an error then, never a row that is missing or wrong. Reading
and writing cost the same within the noise of a measurement (docs/performance.md).
"""

from __future__ import annotations

import threading

import apsw

from nessie_cli.errors import StoreUnavailable

VFS = "cksmvfs"
"""The layer below SQLite that computes and verifies check sums."""
_EXTENSION = "cksumvfs"
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
        from apsw import sqlite_extra

        default = apsw.vfs_names()[0]
        connection = apsw.Connection(":memory:")
        try:
            sqlite_extra.load(connection, _EXTENSION)
        except (LookupError, sqlite_extra.NotAvailable, apsw.Error) as error:
            raise StoreUnavailable(f"apsw {apsw.apsw_version()} comes without {_EXTENSION}; install apsw from PyPI") from error
        finally:
            connection.close()
            apsw.set_default_vfs(default)


def has_page_checks(connection: apsw.Connection) -> bool:
    """Returns whether the pages of this file carry check sums."""
    return connection.reserve_bytes() == _RESERVED


def request_page_checks(connection: apsw.Connection) -> None:
    """Make the pages of a new file, or of an old one after its next VACUUM, carry check sums."""
    connection.reserve_bytes(reserve=_RESERVED)
