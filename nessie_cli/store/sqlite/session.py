"""A thread's connection to a store file: set-up, transactions, checkpoints, and forks.

SQLite connections must not survive a fork, because their file locks belong to a process. A child
with an inherited connection, or one that opens the same file, has locks that the system does not
know. Then the parent may remove the log file while the child writes to it, and acknowledged commits
are lost (tried). So connections are closed before a fork and opened again on demand.
"""

# os.path: importing pathlib costs a tenth of a command's start-up.
# ruff: noqa: PTH110, PTH112, PTH116, PTH202

from __future__ import annotations

import os
import threading
import time
from contextlib import closing, suppress
from weakref import WeakSet

import apsw

from nessie_cli.errors import NessieError, StoreNotFound, StoreUnavailable, UnsupportedFormat
from nessie_cli.store.sqlite.errors import failure

PATIENCE = 30.0
"""The default for the seconds that a writer waits for other writers."""

LONGEST_ROW = 65 << 20
"""The most bytes of a row, of which an object takes 64 MiB at most.

SQLite refuses to read a longer one, which another program has written.
"""
_LONGEST_NAP = 0.008
LOG_PAGES = 4_000
"""The pages of the log (16 MB) after which it is written back, and again after as many more."""

# The seconds that the last step waits for a writer to pause, and for readers of old pages.
_CHECKPOINT_PATIENCE = 0.25
_LOG_KEPT = 64 << 20  # bytes; after a large load SQLite's log file is cut back to this

# synchronous = FULL: an acknowledged commit survives a power failure.
_SETUP = f"PRAGMA synchronous = FULL; PRAGMA journal_size_limit = {_LOG_KEPT}"


class Session:
    """A connection with one cursor, used by one thread; as a context it is a write transaction.

    Its thread holds `lock` while it uses `connection`, which is None once it was closed: before a
    fork, by `close` of the store in another thread, or after an error.
    """

    __slots__ = ("__weakref__", "_patience", "committing", "connection", "cursor", "file", "lock")

    def __init__(
        self, connection: apsw.Connection, file: tuple[int, int], patience: _Patience
    ) -> None:
        self.file = file
        self.connection: apsw.Connection | None = connection
        self.cursor = connection.cursor()
        self.lock = threading.Lock()
        self.committing = False
        self._patience = patience
        with registry:
            _open.add(self)

    def number(self, pragma: str) -> int:
        """Returns a number from the file's header."""
        rows: list[tuple[int]] = self.cursor.execute(f"PRAGMA {pragma}").fetchall()  # type: ignore[assignment]
        return rows[0][0]

    def __enter__(self) -> apsw.Cursor:
        """Begins a transaction for the block.

        After an error, `committing` is whether it came from the final COMMIT.
        """
        self.committing = False
        self.cursor.execute("BEGIN IMMEDIATE")
        return self.cursor

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Commits the transaction, or rolls it back after an error."""
        if error is not None:
            self._roll_back()
            return
        self.committing = True
        try:
            self.cursor.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        # SQLite itself ends the transaction after some errors.
        if self.connection is None or not self.connection.in_transaction:
            return
        try:
            self.cursor.execute("ROLLBACK")
        except BaseException:
            # An open transaction would block all other writers; closing surely ends it.
            self.close()
            raise

    def close(self) -> None:
        """Closes the file, and rolls an open transaction back. Calling it twice is harmless."""
        if self.connection is not None:
            self.connection.close(True)
            self.connection = None

    def close_from_outside(self) -> None:
        """Closes it from another thread, after the running call.

        A call that waits for a lock gives up.
        """
        if self.connection is None:
            return
        self._patience.over = True
        with self.lock:
            self.close()


def connect(path: str, patience: float) -> Session:
    """Opens an existing file, for writing if that is allowed.

    Raises `StoreNotFound`, `StoreUnavailable`.
    """
    if not os.path.exists(path):
        raise StoreNotFound(f"store {path}: no such file", path)
    if os.path.isdir(path):
        raise UnsupportedFormat(f"store {path} is a folder; a store is a file")
    file = file_of(path)
    if file in _inherited:
        raise StoreUnavailable(
            f"store {path}: this process was forked inside a transaction of it; fork outside, or"
            " start a new process"
        )
    try:
        return _set_up(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE), file, patience)
    except (apsw.CantOpenError, apsw.ReadOnlyError) as error:
        return _connect_unchanging(path, file, error)
    except apsw.NotADBError as error:
        raise UnsupportedFormat(f"store {path}: this file is not a nessie store") from error
    except apsw.Error as error:
        raise failure(path, error) from error


def _set_up(connection: apsw.Connection, file: tuple[int, int], patience: float) -> Session:
    try:
        waiting = _Patience(patience)
        connection.set_busy_handler(waiting)
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, LONGEST_ROW)
        connection.execute(_SETUP).fetchall()
        # The first statement that reads the file fails if it cannot be opened.
        connection.execute("PRAGMA schema_version").fetchall()
    except BaseException:
        connection.close(True)
        raise
    return Session(connection, file, waiting)


def _connect_unchanging(path: str, file: tuple[int, int], error: apsw.Error) -> Session:
    """Opens a file in a read-only folder, where SQLite cannot create its lock file."""
    log = path + "-wal"
    if not os.access(path, os.R_OK):
        raise StoreUnavailable(f"store {path} cannot be read; check its permissions") from error
    if os.path.exists(log) and os.path.getsize(log):
        raise StoreUnavailable(
            f"store {path}: its newest commits are in {log}, which cannot be opened; check the"
            " permissions"
        ) from error
    from urllib.parse import quote

    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    try:
        return _set_up(apsw.Connection(f"file:{quote(path)}?immutable=1", flags=flags), file, 0)
    except apsw.Error as again:
        raise failure(path, again) from again


class _Patience:
    """Waits for a lock in short, irregular naps, up to `patience`.

    SQLite's own naps reach 100 ms, too long for a busy branch. `over` makes it give up at once.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadline = 0.0
        self.over = False

    def __call__(self, attempt: int) -> bool:
        now = time.monotonic()
        if not attempt:
            self._deadline = now + self._seconds
        jitter = 0.5 + os.urandom(1)[0] / 256
        time.sleep(jitter * min(_LONGEST_NAP, 0.0005 * (attempt + 1)))
        return now < self._deadline and not self.over


# -- checkpoints -----------------------------------------------------------------------------------


class Checkpoints:
    """The checkpoints of one store file, which the commits of this process start.

    SQLite by itself writes the log back inside the COMMIT that makes it longer than 1000 pages.
    Here a thread does so beside the writers. Then it lets the next writer begin the log from its
    start, which bounds the log even if writers never pause; only for this step they wait.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._steps = 0
        self._thread: threading.Thread | None = None

    def replace_automatic(self, connection: apsw.Connection) -> None:
        """Starts checkpoints by the commits of a connection, instead of SQLite's own."""
        connection.set_wal_hook(self._after_commit)

    def close(self) -> None:
        """Waits for a running checkpoint."""
        if self._thread is not None:
            self._thread.join()

    def _after_commit(self, _: apsw.Connection, __: str, pages: int) -> int:
        steps = pages // LOG_PAGES
        if steps < self._steps:
            self._steps = steps
        elif steps > self._steps and not self._is_running():
            self._steps = steps
            # No thread can start while the interpreter ends.
            with suppress(RuntimeError):
                thread = threading.Thread(target=self._run, name="checkpoint", daemon=True)
                thread.start()
                self._thread = thread
        return apsw.SQLITE_OK

    def _is_running(self) -> bool:
        # In a child, the thread of its parent is not alive.
        return self._thread is not None and self._thread.is_alive()

    def _run(self) -> None:
        # After an error the log is longer until the next checkpoint.
        with suppress(NessieError, apsw.Error), fork_lock:
            session = connect(self._path, _CHECKPOINT_PATIENCE)
            with closing(session), session.lock:
                [(_, pages, written)] = session.cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")
                if written == pages:
                    # Otherwise a reader needs the log, and waiting for it would only stop writers.
                    session.cursor.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()


# -- forks -----------------------------------------------------------------------------------------

registry = threading.RLock()
"""Guards the sets of sessions. A fork holds it, so no child inherits it from another thread."""
fork_lock = threading.Lock()
"""Held during work on a connection that no child may inherit. A fork waits for it."""
_open: WeakSet[Session] = WeakSet()
_inherited: set[tuple[int, int]] = set()


def file_of(path: str) -> tuple[int, int]:
    """Returns the identity of a file: its device and inode."""
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _before_fork() -> None:
    """Closes idle connections. Their threads open new ones on demand."""
    fork_lock.acquire()
    registry.acquire()
    for session in list(_open):
        # A busy one is inherited.
        if session.lock.acquire(blocking=False):
            try:
                session.close()
            finally:
                session.lock.release()


def _after_fork() -> None:
    registry.release()
    fork_lock.release()


def _in_child() -> None:
    """Never uses or closes inherited connections, not even when the interpreter ends."""
    import ctypes

    for session in list(_open):
        if session.connection is not None:
            # Recorded at opening, because a busy connection of another thread cannot be asked.
            _inherited.add(session.file)
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(session.connection))
            session.connection = None
    _open.clear()
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
