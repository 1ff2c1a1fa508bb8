"""The store `memory:`: a SQLite store in a temporary folder, which ends with the process."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable
from pathlib import Path

from nessie_cli.store.sqlite.schema import create_temporary_file, open_session
from nessie_cli.store.sqlite.session import PATIENCE, Session
from nessie_cli.store.sqlite.store import SQLiteStore


def create_temporary(clock: Callable[[], float] = time.time) -> SQLiteStore:
    """Opens a new, empty store. Raises `StoreUnavailable` if its folder cannot be written."""
    folder = tempfile.mkdtemp(prefix="nessie-memory-")
    path = str(Path(folder) / "store.sqlite")
    try:
        create_temporary_file(path)
        return _TemporaryStore(path, open_session(path, PATIENCE), clock, PATIENCE)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


class _TemporaryStore(SQLiteStore):
    """A store whose folder is removed when it is closed or the process ends."""

    def __init__(
        self, path: str, session: Session, clock: Callable[[], float], patience: float
    ) -> None:
        super().__init__(path, session, clock, patience)
        self._remove = weakref.finalize(self, _remove, str(Path(path).parent), os.getpid())

    @property
    def url(self) -> str:
        """The URL of a new store of this kind; no URL opens this one again."""
        return "memory:"

    def close(self) -> None:
        """Closes the store and removes the folder."""
        super().close()
        self._remove()

    def _keep(self, session: Session) -> Session:
        # What does not outlive the process need not wait for the disk.
        session.cursor.execute("PRAGMA synchronous = OFF")
        return super()._keep(session)


def _remove(folder: str, owner: int) -> None:
    # A forked child ends before its parent, which still uses the folder.
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
