"""Whether a store file has changed, asked so often that nothing may be read for it: SQLite tells by a number in shared memory."""

from __future__ import annotations

import apsw

from nessie_cli.errors import NessieError
from nessie_cli.store.sqlite_session import Session, connect


class Watch:
    """A connection of its own that writes nothing and waits for nobody. For one thread at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._session: Session | None = None
        self._opened = 0

    def version(self) -> tuple[int, int] | None:
        """A pair that is another one once any other connection, of any process, has written; None when that cannot be told now.

        Cost: some microseconds, no read of the file.
        """
        try:
            if self._session is None or self._session.connection is None:
                # SQLite counts anew for each connection, so the pair says which one has counted.
                self._session = connect(self._path, 0)
                self._opened += 1
            return self._opened, self._session.number("data_version")
        except (NessieError, apsw.Error):
            self.close()
            return None

    def close(self) -> None:
        """Let go of the file; it is opened again when somebody asks."""
        if self._session is not None:
            self._session.close()
            self._session = None
