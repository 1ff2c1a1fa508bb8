"""The logins of browsers: the table of a store, and one for a single process."""

from __future__ import annotations

import threading

from nessie_cli.store.base import SessionTable
from nessie_cli.store.records import StoredSession

__all__ = ["MemorySessions", "SessionTable", "StoredSession"]


class MemorySessions:
    """A `SessionTable` that ends with its process."""

    def __init__(self) -> None:
        self._sessions: dict[bytes, StoredSession] = {}
        self._lock = threading.Lock()

    def put(self, session: StoredSession) -> None:
        """Stores a session."""
        with self._lock:
            self._sessions[session.id] = session

    def get(self, id_: bytes) -> StoredSession | None:
        """Returns a session, or None."""
        return self._sessions.get(id_)

    def all(self) -> list[StoredSession]:
        """Returns all sessions."""
        with self._lock:
            return list(self._sessions.values())

    def extend(self, id_: bytes, ends: int) -> None:
        """Moves the end of a session."""
        with self._lock:
            if (session := self._sessions.get(id_)) is not None:
                self._sessions[id_] = StoredSession(id_, session.data, ends)

    def delete(self, id_: bytes) -> None:
        """Deletes a session."""
        with self._lock:
            self._sessions.pop(id_, None)

    def expire(self, now: int) -> int:
        """Deletes the sessions that have ended."""
        with self._lock:
            ended = [id_ for id_, session in self._sessions.items() if session.ends <= now]
            for id_ in ended:
                del self._sessions[id_]
        return len(ended)
