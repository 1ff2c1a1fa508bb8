"""The tables that stores may lack, because older versions of this format made none.

They have the records of pipelines' runs, and the logins of browsers. All databases get the same
statements, in which `?` stands for a value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from nessie_cli.errors import DamagedObject, StoreUnavailable
from nessie_cli.store.records import StoredRun, StoredSession
from nessie_cli.store.rows import DamagedRow, Row, check_types

Rows = Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]
"""Runs a statement that reads, and returns its rows."""
W = TypeVar("W")


class LaterTable(ABC, Generic[W]):
    """A table that a store may lack. Without it, there are no rows.

    `rows` reads from the store, and `writer` is how the store writes.
    """

    def __init__(self, name: str, rows: Rows, writer: W) -> None:
        self._name = name
        self._rows = rows
        self._writer = writer

    def read(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Returns the rows of a statement."""
        try:
            return self._rows(sql, values)
        except StoreUnavailable as error:
            if self._is_missing(error):
                return []
            raise

    @abstractmethod
    def insert(self, sql: str, values: tuple[Any, ...]) -> int:
        """Runs a statement that adds a row, and returns how many it has added or changed.

        Creates the table if the store lacks it.
        """

    @abstractmethod
    def change(self, sql: str, values: tuple[Any, ...]) -> int:
        """Runs a statement that changes or deletes rows, and returns how many."""

    @abstractmethod
    def _is_missing(self, error: StoreUnavailable) -> bool:
        """Returns whether the store lacks the table, which is why a statement has failed."""


# -- runs ------------------------------------------------------------------------------------------

_ALL_RUNS = "SELECT id, state, data, version FROM runs ORDER BY id"
_RUNS_IN_STATES = "SELECT id, state, data, version FROM runs WHERE state IN ({}) ORDER BY id"
_SOME_RUNS = """SELECT id, state, data, version FROM runs WHERE {} id > ?
    ORDER BY id LIMIT ?"""
_RUNS_AT_ONCE = 50
_GET_RUN = "SELECT id, state, data, version FROM runs WHERE id = ?"
_INSERT_RUN = """INSERT INTO runs (state, data, version, id) VALUES (?, ?, ?, ?)
    ON CONFLICT (id) DO NOTHING"""
_UPDATE_RUN = "UPDATE runs SET state = ?, data = ?, version = ? WHERE id = ? AND version = ?"
_DELETE_RUN = "DELETE FROM runs WHERE id = ?"


class RunRows:
    """The `RunTable` of a store."""

    def __init__(self, table: LaterTable[Any]) -> None:
        self._table = table

    def put(self, run: StoredRun) -> bool:
        """Stores the next version of a record."""
        values = (run.state, run.data, run.version, run.id)
        if run.version == 1:
            return self._table.insert(_INSERT_RUN, values) == 1
        return self._table.change(_UPDATE_RUN, (*values, run.version - 1)) == 1

    def get(self, id_: str) -> StoredRun | None:
        """Returns a record, or None."""
        rows = self._table.read(_GET_RUN, (id_,))
        return _run(rows[0]) if rows else None

    def all(self, *states: str) -> list[StoredRun]:
        """Returns the records (in one of these states), in the order of their ids."""
        sql = _RUNS_IN_STATES.format(", ".join("?" * len(states))) if states else _ALL_RUNS
        return list(map(_run, self._table.read(sql, states)))

    def each(self, *states: str) -> Iterator[StoredRun]:
        """Yields what `all` returns, with a few records in memory."""
        of_states = f"state IN ({', '.join('?' * len(states))}) AND" if states else ""
        sql, after = _SOME_RUNS.format(of_states), ""
        while rows := self._table.read(sql, (*states, after, _RUNS_AT_ONCE)):
            yield from map(_run, rows)
            after = rows[-1][0]

    def delete(self, id_: str) -> None:
        """Deletes a record."""
        self._table.change(_DELETE_RUN, (id_,))


def _run(row: Row) -> StoredRun:
    return StoredRun(*_typed("runs", row, (str, str, bytes, int)))


# -- logins ----------------------------------------------------------------------------------------

_ALL_SESSIONS = "SELECT id, data, ends FROM sessions"
_GET_SESSION = "SELECT id, data, ends FROM sessions WHERE id = ?"
_PUT_SESSION = """INSERT INTO sessions (id, data, ends) VALUES (?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET data = excluded.data, ends = excluded.ends"""
_EXTEND_SESSION = "UPDATE sessions SET ends = ? WHERE id = ?"
_DELETE_SESSION = "DELETE FROM sessions WHERE id = ?"
_EXPIRE_SESSIONS = "DELETE FROM sessions WHERE ends <= ?"


class SessionRows:
    """The `SessionTable` of a store."""

    def __init__(self, table: LaterTable[Any]) -> None:
        self._table = table

    def put(self, session: StoredSession) -> None:
        """Stores a session."""
        self._table.insert(_PUT_SESSION, (session.id, session.data, session.ends))

    def get(self, id_: bytes) -> StoredSession | None:
        """Returns a session, or None."""
        rows = self._table.read(_GET_SESSION, (id_,))
        return _session(rows[0]) if rows else None

    def all(self) -> list[StoredSession]:
        """Returns all sessions."""
        return list(map(_session, self._table.read(_ALL_SESSIONS)))

    def extend(self, id_: bytes, ends: int) -> None:
        """Moves the end of a session."""
        self._table.change(_EXTEND_SESSION, (ends, id_))

    def delete(self, id_: bytes) -> None:
        """Deletes a session."""
        self._table.change(_DELETE_SESSION, (id_,))

    def expire(self, now: int) -> int:
        """Deletes the sessions that have ended."""
        return self._table.change(_EXPIRE_SESSIONS, (now,))


def _session(row: Row) -> StoredSession:
    return StoredSession(*_typed("sessions", row, (bytes, bytes, int)))


def _typed(table: str, row: Row, types: Sequence[type]) -> Row:
    """Returns a row whose fields have these types. Raises `DamagedObject`."""
    try:
        return check_types(table, row, types)
    except DamagedRow as error:
        raise DamagedObject(str(error), hint="nessie fsck") from None
