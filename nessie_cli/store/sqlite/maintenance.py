"""Maintenance of a SQLite store, on a connection of its own.

Transactions are short, so writers wait some milliseconds for each. Rows to delete are searched
outside of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any

import apsw

from nessie_cli.store.base import Reached
from nessie_cli.store.chain import Expiry
from nessie_cli.store.records import Deleted, Expired, ListedObject, StoreSize
from nessie_cli.store.rows import (
    REFLOG,
    DamagedRow,
    check_order,
    check_types,
    reflog_row_of,
)
from nessie_cli.store.sqlite.commit import ADD_ANCHOR
from nessie_cli.store.sqlite.errors import failure
from nessie_cli.store.sqlite.session import Session, connect

_BATCH = 5_000  # rows per statement and per transaction
_CHECKPOINT_PATIENCE = 1.0  # seconds: while a checkpoint waits for readers, writers wait for it

_LIST = """SELECT id, kind, number, written, length(packed) FROM objects
WHERE number < ? ORDER BY number DESC LIMIT ?"""
_TYPES = (bytes, int, int, int, int)
_LAST_MOVE = "SELECT coalesce(max(number), 0) FROM reflog"
_MOVES_SINCE = f"{REFLOG} WHERE number > ? ORDER BY number DESC"
# The highest number stays, so no number is used twice.
_DELETE = """DELETE FROM objects WHERE id IN (SELECT value FROM carray(?)) AND written < ?
AND number < (SELECT max(number) FROM objects) RETURNING length(packed)"""
_MOVES = """SELECT number, name, digest, after IS NULL, time < ? AND number <= ? AND NOT (message <> '' AND after IS NOT NULL
AND number = (SELECT max(number) FROM reflog AS newer WHERE newer.name = reflog.name))
FROM reflog WHERE number > ? AND number < (SELECT max(number) FROM reflog) ORDER BY number LIMIT ?"""
_DELETE_MOVES = "DELETE FROM reflog WHERE number = ?"
_DELETE_ANCHOR = """DELETE FROM anchors WHERE name = ?1
AND NOT EXISTS (SELECT 1 FROM reflog WHERE name = ?1)"""
_OLD_REQUESTS = "SELECT id FROM requests WHERE id > ? AND time < ? ORDER BY id LIMIT ?"
_DELETE_REQUESTS = "DELETE FROM requests WHERE id = ?"
_DEAD_ENTRIES = """SELECT entry, object FROM object_index WHERE (entry, object) > (?, ?)
AND NOT EXISTS (SELECT 1 FROM objects WHERE number = object) ORDER BY entry, object LIMIT ?"""
_DELETE_ENTRY = "DELETE FROM object_index WHERE entry = ? AND object = ?"

_LAST = 2**63 - 1


@contextmanager
def open_maintenance(path: str, patience: float) -> Iterator[SQLiteMaintenance]:
    """Opens the maintenance of a store file."""
    session = connect(path, patience)
    try:
        yield SQLiteMaintenance(path, session)
    finally:
        session.close()


class SQLiteMaintenance:
    """Maintenance of a SQLite store."""

    def __init__(self, path: str, session: Session) -> None:
        self._path = path
        self._session = session

    def size(self) -> StoreSize:
        """Returns the size of the store on disk, with SQLite's log file."""
        with self._errors():
            pages, page_size, free = map(
                self._session.number, ("page_count", "page_size", "freelist_count")
            )
            log = self._path + "-wal"
            return StoreSize(
                pages * page_size + (os.path.getsize(log) if os.path.exists(log) else 0),  # noqa: PTH110, PTH202
                free * page_size,
            )

    def objects(self) -> Iterator[ListedObject]:
        """Yields every object, the highest number first."""
        last = _LAST
        while rows := self._rows(_LIST, (last, _BATCH)):
            with self._errors():
                check_order("objects", [row[2] for row in rows], last, descending=True)
                listed = [ListedObject(*check_types("objects", row, _TYPES)) for row in rows]
            yield from listed
            last = rows[-1][2]

    def last_move(self) -> int:
        """Returns the highest number in the reflog. Transactions commit in the order of numbers."""
        number: int = self._rows(_LAST_MOVE)[0][0]
        return number

    def delete(
        self, ids: Sequence[bytes], written_before: int, since: int, reached: Reached
    ) -> Deleted:
        """Deletes objects in one transaction.

        Index entries of deleted objects stay until `compact`, and are not found.
        """
        with self._transaction() as cursor:
            retained = reached(
                [reflog_row_of(row) for row in cursor.execute(_MOVES_SINCE, (since,))]
            )
            doomed = tuple(id_ for id_ in ids if id_ not in retained)
            sizes = (
                [size for (size,) in cursor.execute(_DELETE, (apsw.carray(doomed), written_before))]
                if doomed
                else []
            )
            return Deleted(len(sizes), sum(sizes))

    def expire(
        self, moves_before: int, requests_before: int, last_move: int, *, dry_run: bool = False
    ) -> Expired:
        """Deletes old moves and request ids in batches, or only counts them."""
        moves = self._expire_moves(moves_before, last_move, dry_run=dry_run)
        last, requests = "", 0
        while rows := self._rows(_OLD_REQUESTS, (last, requests_before, _BATCH)):
            with self._errors():
                check_order("requests", [row[0] for row in rows], last)
            last = rows[-1][0]
            requests += len(rows)
            if not dry_run:
                with self._transaction() as cursor:
                    cursor.executemany(_DELETE_REQUESTS, rows)
        return Expired(moves, requests)

    def _expire_moves(self, before: int, last_move: int, *, dry_run: bool) -> int:
        """Deletes the oldest entries of each reference, and anchors the chain of the others.

        An entry stays if an older one of its reference stays.
        """
        expiry = Expiry()
        last, count = -1, 0
        while rows := self._rows(_MOVES, (before, last_move, last, _BATCH)):
            with self._errors():
                check_order("reflog", [row[0] for row in rows], last)
            last = rows[-1][0]
            expired = expiry.expired(rows)
            count += len(expired)
            if expired and not dry_run:
                anchors, deleted = expiry.anchors(expired)
                with self._transaction() as cursor:
                    cursor.executemany(_DELETE_MOVES, [row[:1] for row in expired])
                    cursor.executemany(ADD_ANCHOR, anchors)
                    cursor.executemany(_DELETE_ANCHOR, [(name,) for name in deleted])
        return count

    def compact(self, *, full: bool = False) -> None:
        """Deletes the index entries of deleted objects; `full` shrinks the file."""
        last: tuple[bytes, int] = (b"", -_LAST)
        while dead := self._rows(_DEAD_ENTRIES, (*last, _BATCH)):
            with self._errors():
                check_order("object_index", dead, last)
            last = dead[-1]
            with self._transaction() as cursor:
                cursor.executemany(_DELETE_ENTRY, dead)
        if full:
            self._rows("VACUUM")
        self._checkpoint()

    def _checkpoint(self) -> None:
        """Writes SQLite's log file back and truncates it, unless others use it."""
        with self._errors():
            session = connect(self._path, _CHECKPOINT_PATIENCE)
            # A later checkpoint does it, if others are busy with the file.
            with closing(session), suppress(apsw.BusyError):
                session.cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._errors():
            return self._session.cursor.execute(sql, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[apsw.Cursor]:
        with self._errors(), self._session as cursor:
            yield cursor

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (apsw.Error, UnicodeDecodeError, DamagedRow) as error:
            raise failure(self._path, error) from error
