"""What SQLite's errors mean to somebody who uses the store: one line that names the file and the way out."""

from __future__ import annotations

import apsw

from nessie_cli.errors import DamagedObject, OutcomeUnknown, StoreUnavailable

_MEANING: tuple[tuple[tuple[type[apsw.Error], ...], str], ...] = (
    ((apsw.BusyError, apsw.LockedError), "another process has been writing to it for too long; try again"),
    ((apsw.FullError,), "the disk is full, nothing was written; make room and try again"),
    # Not even the small file that readers share can be made on a full disk; SQLite calls that a failure of the disk.
    ((apsw.IOError,), "the disk is full or fails; make room, look after it, and try again"),
    ((apsw.ReadOnlyError, apsw.PermissionsError), "cannot be written; check the permissions of the file and of its folder"),
    ((apsw.CantOpenError,), "cannot be opened; check that the file is there and its permissions"),
    ((apsw.ConnectionClosedError, apsw.CursorClosedError), "has been closed; open it again"),
)
_DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, UnicodeDecodeError)


def failure(path: str, error: Exception, request_id: str = "") -> StoreUnavailable:
    """The error to raise for one of apsw's. With `request_id` it is the COMMIT of that write that has failed."""
    if isinstance(error, apsw.IOError) and request_id:
        # The disk reported a failure, but the bytes may be there after the next start of the machine.
        return OutcomeUnknown(f"store {path}: the disk failed during a commit ({reason(error)}); look whether it is there", request_id)
    if isinstance(error, _DAMAGE):
        return DamagedObject(f"store {path}: the file is damaged ({reason(error)}); restore it from a copy")
    if getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_SHMSIZE:
        # The first that a full disk has no room for is the file that readers and writers share.
        return StoreUnavailable(f"store {path}: the disk is full, nothing was written; make room and try again")
    for kinds, meaning in _MEANING:
        if isinstance(error, kinds):
            return StoreUnavailable(f"store {path}: {meaning}")
    return StoreUnavailable(f"store {path}: {reason(error)}")


def reason(error: Exception) -> str:
    """The text of an error on one line, without the name of its class."""
    return " ".join(str(error).removeprefix(f"{type(error).__name__}: ").split())
