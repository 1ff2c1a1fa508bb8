"""Checkpoints of a store's log file by a thread of its own, so that no commit waits for one.

SQLite by itself writes the log back inside the COMMIT that makes it longer than 1000 pages. Here a
thread does so beside the writers. Then it lets the next writer begin the log from its start, which
bounds the log even if writers never pause; only for this step they wait.
"""

from __future__ import annotations

import threading
from contextlib import closing, suppress

import apsw

from nessie_cli.errors import NessieError
from nessie_cli.store.sqlite.session import connect, fork_lock

LOG_PAGES = 4_000
"""The pages of the log (16 MB) after which it is written back, and again after as many more."""

# The seconds that the last step waits for a writer to pause, and for readers of old pages.
_PATIENCE = 0.25


class Checkpoints:
    """The checkpoints of one store file, which the commits of this process start."""

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
            session = connect(self._path, _PATIENCE)
            with closing(session), session.lock:
                [(_, pages, written)] = session.cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")
                if written == pages:
                    # Otherwise a reader needs the log, and waiting for it would only stop writers.
                    session.cursor.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
