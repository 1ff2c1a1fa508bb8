"""Detects changes of a store file by SQLite's counter in shared memory, without reading."""

from __future__ import annotations

import apsw

from nessie_cli.errors import NessieError
from nessie_cli.store.sqlite.session import Session, connect


class Watch:
    """A connection that writes nothing and never waits. Only for one thread at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._session: Session | None = None
        self._opened = 0

    def version(self) -> tuple[int, int] | None:
        """Returns a pair that changes with each write of another connection, or None."""
        try:
            session = self._session
            if session is None or session.connection is None:
                # SQLite counts per connection, so the pair names the connection, too.
                session = self._session = connect(self._path, 0)
                self._opened += 1
            with session.lock:
                return (
                    (self._opened, session.number("data_version")) if session.connection else None
                )
        except (NessieError, apsw.Error):
            self.close()
            return None

    def close(self) -> None:
        """Closes the file; the next `version` opens it again."""
        if self._session is not None:
            self._session.close_from_outside()
            self._session = None
