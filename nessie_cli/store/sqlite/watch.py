"""Looks at a store file without waiting: its change counter and its references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import apsw

from nessie_cli.errors import NessieError
from nessie_cli.store.records import StoredReference
from nessie_cli.store.rows import REFERENCE, DamagedRow, reference_of
from nessie_cli.store.sqlite.session import Session, connect

T = TypeVar("T")
_HEAD = f"{REFERENCE} WHERE name = ?"


class Watch:
    """A connection that writes nothing and never waits. Only for one thread at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._session: Session | None = None
        self._opened = 0
        self._version: tuple[int, int] | None = None
        self._heads: dict[str, StoredReference] = {}
        """References that were read since the store had this version."""

    def version(self) -> tuple[int, int] | None:
        """Returns a pair that changes with each write of another connection, or None."""
        # SQLite counts per connection, so the pair names the connection, too.
        return self._look(lambda session: (self._opened, session.number("data_version")))

    def heads(self, names: Sequence[str]) -> list[StoredReference | None] | None:
        """Returns the reference of each name, or None if they are unavailable."""
        version = self.version()
        if version is None:
            return None
        if version != self._version:
            self._version, self._heads = version, {}
        missing = [name for name in names if name not in self._heads]
        if missing:
            read = self._look(lambda session: [_head(session, name) for name in missing])
            if read is None:
                return None
            self._heads.update((head.name, head) for head in read if head is not None)
        return [self._heads.get(name) for name in names]

    def _look(self, read: Callable[[Session], T]) -> T | None:
        try:
            session = self._session
            if session is None or session.connection is None:
                session = self._session = connect(self._path, 0)
                self._opened += 1
            with session.lock:
                return read(session) if session.connection else None
        except (NessieError, apsw.Error, DamagedRow, UnicodeError):
            self.close()
            return None

    def close(self) -> None:
        """Closes the file; the next `version` opens it again."""
        if self._session is not None:
            self._session.close_from_outside()
            self._session = None


def _head(session: Session, name: str) -> StoredReference | None:
    row = next(session.cursor.execute(_HEAD, (name,)), None)
    return None if row is None else reference_of(row)
