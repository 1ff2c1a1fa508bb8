"""Converts SQLite's errors to ours: one line that names the file and the way out."""

# os.path: importing pathlib costs a tenth of a command's start-up.
# ruff: noqa: PTH110

from __future__ import annotations

import os

import apsw

from nessie_cli.errors import DamagedObject, StoreUnavailable
from nessie_cli.store.rows import DamagedRow

_MEANING: tuple[tuple[tuple[type[apsw.Error], ...], str], ...] = (
    (
        (apsw.BusyError, apsw.LockedError),
        "another process has been writing to it for too long; try again",
    ),
    ((apsw.FullError,), "the disk is full, nothing was written; free some space and try again"),
    # On a full disk, even the small file that readers share cannot be created; SQLite reports an
    # I/O error then.
    (
        (apsw.IOError,),
        "the disk is full or has failed; free some space or check the disk, and try again",
    ),
    (
        (apsw.ReadOnlyError, apsw.PermissionsError),
        "it cannot be written; check the permissions of the file and of its folder",
    ),
    ((apsw.CantOpenError,), "it cannot be opened; check that the file exists, and its permissions"),
    ((apsw.ConnectionClosedError, apsw.CursorClosedError), "it has been closed; open it again"),
)
_DAMAGE = (
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.SQLError,
    apsw.TooBigError,
    UnicodeDecodeError,
    DamagedRow,
)


class DiskFailed(StoreUnavailable):
    """The disk failed during the final COMMIT."""


def failure(path: str, error: Exception) -> StoreUnavailable:
    """Returns the error for one of apsw's. Nothing was written."""
    if isinstance(error, _DAMAGE):
        hint = (
            f"; if the file was copied here, {path}-wal may belong to another one"
            if os.path.exists(f"{path}-wal")
            else ""
        )
        return DamagedObject(
            f"store {path}: the file is damaged ({reason(error)}); restore it from a backup{hint}"
        )
    if getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_SHMSIZE:
        # The file that readers and writers share is the first to lack space.
        return StoreUnavailable(
            f"store {path}: the disk is full, nothing was written; free some space and try again"
        )
    for kinds, meaning in _MEANING:
        if isinstance(error, kinds):
            return StoreUnavailable(f"store {path}: {meaning}")
    return StoreUnavailable(f"store {path}: {reason(error)}")


def reason(error: Exception) -> str:
    """Returns the text of an error on one line, without the name of its class."""
    return " ".join(str(error).removeprefix(f"{type(error).__name__}: ").split())
