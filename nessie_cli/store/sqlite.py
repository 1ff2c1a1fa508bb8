"""The embedded store: one SQLite file in WAL mode, for all threads and processes of one machine.

Readers never wait. Writers take the write lock at the start of their transaction (BEGIN IMMEDIATE), so a compare-and-swap cannot be lost to a
deadlock; they wait for each other up to `PATIENCE` seconds. What has been acknowledged is on the disk (synchronous=FULL).
"""

# os.path: importing pathlib costs a tenth of a command's start-up.
# ruff: noqa: PTH100

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import apsw

from nessie_cli.errors import DamagedObject, StoreUnavailable
from nessie_cli.store.base import STORE_FORMAT, DamagedId, Done, Move, ReflogRow, Stale, StoredObject, StoredReference, Write
from nessie_cli.store.codec import pack, unpack
from nessie_cli.store.sqlite_errors import failure
from nessie_cli.store.sqlite_schema import MIGRATIONS, Migrations, create_file, open_session
from nessie_cli.store.sqlite_session import PATIENCE, Session, connect

if TYPE_CHECKING:
    from nessie_cli.store.sqlite_watch import Watch

REFRESH_AFTER = 3600
"""An existing object that is written again becomes young only when it is older than this many seconds: most writes of an object that
exists then touch no page. The grace period of a cleaner has to be longer."""

Row = tuple[bytes, int, int, bytes]
"""Of the table of objects: id, kind, when it was last written in seconds since 1970, packed bytes."""

_FEW = 3  # up to here single look-ups are faster than one statement with an array
_SPREAD = 16  # rows that are passed over for each object of one kind that is looked for
_BATCH = 20_000  # objects per transaction of a large load: other writers get their turn, and the log file stays small
_SCAN = 250  # objects per statement of a scan, so that no read transaction stays open while the caller works
_LAST = 2**63 - 1
_SURROGATES, _BEHIND_SURROGATES = 0xD800, 0xE000

_GET = "SELECT data FROM objects WHERE id = ?"
_GET_MANY = "SELECT id, data FROM carray(?) JOIN objects ON id = value"
_BEFORE = """WITH this AS (SELECT rowid AS place FROM objects WHERE id = ?)
SELECT CAST(id AS BLOB), CAST(data AS BLOB) FROM objects, this
WHERE objects.rowid BETWEEN place - ? AND place AND kind = ? ORDER BY objects.rowid DESC LIMIT ?"""
_PUT = "INSERT INTO objects (id, kind, written, data) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
_REFRESH = "UPDATE objects SET written = ?2 WHERE id = ?1 AND written < ?2 - ?3"
_MARK = "INSERT OR IGNORE INTO marks (mark, object) SELECT ?, rowid FROM objects WHERE id = ?"
_MARKED = """SELECT object, id FROM marks JOIN objects ON objects.rowid = object WHERE mark = ? AND object < ?
ORDER BY mark, object DESC LIMIT ?"""
_REFERENCE = "SELECT name, kind, target FROM refs WHERE name = ?"
_STANDING = "SELECT name, value, NULL FROM settings UNION ALL SELECT name, kind, target FROM refs WHERE name = ?"
_LOG = """INSERT INTO reflog (name, kind, before, after, time, who, operation, message, request_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_LOG_ROWS = "SELECT number, name, kind, before, after, time, who, operation, message, request_id FROM reflog"


def open_sqlite(
    path: str,
    *,
    clock: Callable[[], float] = time.time,
    patience: float = PATIENCE,
    format_: int = STORE_FORMAT,
    migrations: Migrations = MIGRATIONS,
) -> SQLiteStore:
    """Open an existing store; one of an older format is migrated first. A writer waits at most `patience` seconds for the others.

    Raises `StoreNotFound`, `UnsupportedFormat` (a newer format, or no store at all), `StoreUnavailable`.
    """
    path = os.path.abspath(path)
    return SQLiteStore(path, open_session(path, patience, format_, migrations), clock, patience)


def create_sqlite(path: str, *, clock: Callable[[], float] = time.time, patience: float = PATIENCE) -> SQLiteStore:
    """Open a store, making an empty one where there is no file; two processes may do so at once. Raises what `open_sqlite` raises."""
    create_file(os.path.abspath(path))
    return open_sqlite(path, clock=clock, patience=patience)


class SQLiteStore:
    """A `Store` in one SQLite file, opened by `open_sqlite` or `create_sqlite`. Each thread has its own connection.

    Inside `exclusive`, the answer `Done` of a write means: done if the block ends without an exception. When one leaves the block, everything
    that was written inside is rolled back.
    """

    def __init__(self, path: str, session: Session, clock: Callable[[], float], patience: float) -> None:
        # The path is absolute, so that a later change of the working directory cannot lead another thread to another file.
        self._path = path
        self._clock = clock
        self._patience = patience
        self._closed = False
        self._local = threading.local()
        self._sessions: WeakSet[Session] = WeakSet()
        self._watch: Watch | None = None
        self._keep(session)

    @property
    def url(self) -> str:
        """The URL that opens this store again, from any working directory."""
        return f"sqlite:///{self._path}"

    # -- objects -----------------------------------------------------------------------------------------------------------------

    def get(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """The raw bytes of those objects that exist. Cost about 10 microseconds for one, less per object for many."""
        if len(ids) > _FEW:
            blobs = dict(self._rows(_GET_MANY, (apsw.carray(tuple(ids)),)))
        else:
            blobs = {id_: rows[0][0] for id_ in ids if (rows := self._rows(_GET, (id_,)))}
        for id_, blob in blobs.items():
            try:
                blobs[id_] = unpack(blob)
            except (ValueError, TypeError) as error:
                raise DamagedObject(f"store {self._path}: object {id_.hex()} is damaged: {error}", id_.hex()) from None
        return blobs

    def written_before(self, id_: bytes, kind: int, limit: int) -> dict[bytes, bytes]:
        """An object and some written before it. Cost about half of what `get` takes for as many, if every fifth row is of this kind."""
        try:
            rows = self._rows(_BEFORE, (id_, _SPREAD * limit, kind, limit + 1))
        except (DamagedObject, StoreUnavailable):
            # What is damaged is told to those who need it.
            return {}
        try:
            return {near: unpack(blob) for near, blob in rows}
        except (ValueError, TypeError):
            return dict(_sound(rows))

    def find_ids(self, kind: int, prefix: str, limit: int) -> list[bytes]:
        """Ids by hex prefix. Cost: the objects of any kind with this prefix."""
        try:
            low, high = bytes.fromhex(prefix + "0" * (len(prefix) % 2)), bytes.fromhex(prefix.ljust(64, "f"))
        except ValueError:
            return []
        if prefix != prefix.lower():
            return []
        sql = "SELECT id FROM objects WHERE id BETWEEN ? AND ? AND kind = ? ORDER BY id LIMIT ?"
        return [id_ for (id_,) in self._rows(sql, (low, high, kind, limit))]

    def find_marked(self, mark: bytes, before: int | None, limit: int) -> list[tuple[int, bytes]]:
        """Objects with a mark, the last written first. Cost: those answered."""
        return [(number, id_) for number, id_ in self._rows(_MARKED, (mark, _LAST if before is None else before, limit))]

    def scan_marks(self) -> Iterator[tuple[bytes, bytes]]:
        """Every mark with its objects, some hundred in each read."""
        sql = "SELECT mark, object, id FROM marks JOIN objects ON objects.rowid = object WHERE (mark, object) > (?, ?) ORDER BY mark, object LIMIT ?"
        last: tuple[bytes, int] = (b"", -_LAST)
        while rows := self._rows(sql, (*last, _SCAN)):
            yield from ((mark, id_) for mark, _, id_ in rows)
            last = rows[-1][:2]

    def scan(self, kind: int | None = None) -> Iterator[StoredObject | DamagedId]:
        """Every object, in the order of writing; what is written meanwhile may be seen or not."""
        # The casts: a damaged record may claim that its bytes are text or a number.
        sql = """SELECT rowid, CAST(id AS BLOB), kind, CAST(data AS BLOB) FROM objects WHERE rowid > ? AND (?2 IS NULL OR kind = ?2)
                 ORDER BY rowid LIMIT ?"""
        last, rows = -_LAST, None
        while rows is None or len(rows) == _SCAN:
            rows = self._rows(sql, (last, kind, _SCAN))
            for number, id_, kind_, blob in rows:
                last = number
                try:
                    yield StoredObject(id_, kind_, unpack(blob or b""))
                except ValueError as error:
                    yield DamagedId(id_ or b"", kind_, str(error))

    def count(self) -> int:
        """How many objects there are."""
        rows: list[tuple[int]] = self._rows("SELECT count(*) FROM objects", ())
        return rows[0][0]

    def put(self, objects: Iterable[StoredObject]) -> None:
        """Store objects that no reference needs yet, some thousand at a time: when it fails, those before are there."""
        rest = iter(objects)
        while batch := list(islice(rest, _BATCH)):
            rows = self._packed(batch)
            with self.exclusive() as session:
                _put(session.cursor, rows, batch)

    def delete(self, ids: Sequence[bytes], written_before: int) -> int:
        """Delete those objects last written before this second; returns how many went. See `REFRESH_AFTER` for the grace it needs."""
        with self.exclusive() as session:
            cursor = session.cursor
            before = cursor.connection.total_changes()
            cursor.executemany("DELETE FROM objects WHERE id = ? AND written < ?", [(id_, written_before) for id_ in ids])
            gone = cursor.connection.total_changes() - before
            if gone:
                cursor.execute("DELETE FROM marks WHERE object NOT IN (SELECT rowid FROM objects)")
            return gone

    def _packed(self, objects: Iterable[StoredObject]) -> list[Row]:
        now = int(self._clock())
        return [(object_.id, object_.kind, now, pack(object_.data, plain=object_.plain)) for object_ in objects]

    # -- writing -----------------------------------------------------------------------------------------------------------------

    def write(self, write: Write) -> Done | Stale:
        """Do all of it, durably, or nothing."""
        # Compressed before the lock is taken: other writers wait only for what needs the lock.
        rows = self._packed(write.objects)
        session = self._taken()
        try:
            with session as cursor:
                for move in write.moves:
                    session.request_id = move.request_id
                    _move(cursor, move)
                if rows:
                    _put(cursor, rows, write.objects)
                for name, value in write.settings.items():
                    _set(cursor, name, value)
        except _StaleMove as stale:
            return stale.answer
        except apsw.Error as error:
            raise self._failure(session, error) from error
        finally:
            session.lock.release()
        return Done()

    @contextmanager
    def exclusive(self) -> Iterator[Session]:
        """Hold the write lock. `write` and `put` inside belong to one transaction, which commits when the block ends without an exception."""
        session = self._taken()
        try:
            with session:
                yield session
        except apsw.Error as error:
            raise self._failure(session, error) from error
        finally:
            session.lock.release()

    def _failure(self, session: Session, error: apsw.Error) -> StoreUnavailable:
        return failure(self._path, error, session.request_id if session.committing else "")

    # -- references, reflog, settings --------------------------------------------------------------------------------------------

    def reference(self, name: str) -> StoredReference | None:
        """One reference, or None."""
        return _found(self._rows(_REFERENCE, (name,)))

    def references(self, kind: str | None = None, prefix: str = "", start: str = "", limit: int | None = None) -> list[StoredReference]:
        """References in name order. Cost: those answered."""
        conditions, values = ["name >= ?"], [max(prefix, start)]
        if (end := _after(prefix)) is not None:
            conditions.append("name < ?")
            values.append(end)
        if kind is not None:
            conditions.append("kind = ?")
            values.append(kind)
        sql = f"SELECT name, kind, target FROM refs WHERE {' AND '.join(conditions)} ORDER BY name LIMIT ?"  # noqa: S608 - fixed texts
        return [StoredReference(*row) for row in self._rows(sql, (*values, _limit(limit)))]

    def reflog(self, name: str | None = None, before: int | None = None, limit: int | None = None) -> list[ReflogRow]:
        """Moves, newest first. Cost: those answered."""
        condition = "number < ?" if name is None else "number < ? AND name = ?"
        values = (_LAST if before is None else before, *([] if name is None else [name]), _limit(limit))
        return [_reflog_row(row) for row in self._rows(f"{_LOG_ROWS} WHERE {condition} ORDER BY number DESC LIMIT ?", values)]

    def find_request(self, request_id: str) -> list[ReflogRow]:
        """The moves that carried this request id, oldest first."""
        sql = f"{_LOG_ROWS} WHERE request_id = ? AND request_id <> '' ORDER BY number"
        return [_reflog_row(row) for row in self._rows(sql, (request_id,))]

    def settings(self) -> dict[str, str]:
        """All settings by name."""
        return dict(self._rows("SELECT name, value FROM settings ORDER BY name", ()))

    def standing(self, name: str) -> tuple[StoredReference | None, dict[str, str]]:
        """One reference and all settings, read by one statement."""
        rows = self._rows(_STANDING, (name,))
        reference = StoredReference(*rows.pop()) if rows and rows[-1][2] is not None else None
        return reference, {name: value for name, value, _ in rows}

    def version(self) -> tuple[int, int] | None:
        """See `Watched`."""
        if self._closed:
            return None
        if self._watch is None:
            # Only a server asks.
            from nessie_cli.store.sqlite_watch import Watch

            self._watch = Watch(self._path)
        return self._watch.version()

    # -- connections -------------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connections of all threads; the last one of all processes writes SQLite's log back into the file."""
        self._closed = True
        if self._watch is not None:
            self._watch.close()
        for session in list(self._sessions):
            session.close()

    def _taken(self) -> Session:
        """The session of this thread, open, and with its lock: whoever takes it releases it."""
        while True:
            session: Session | None = getattr(self._local, "session", None)
            # No connection: it was closed after an error, or this process is a fork of the one that opened it.
            if session is None or session.connection is None:
                if self._closed:
                    raise StoreUnavailable(f"store {self._path}: has been closed")
                session = self._keep(connect(self._path, self._patience))
            session.lock.acquire()
            if session.connection is not None:
                return session
            session.lock.release()

    def _keep(self, session: Session) -> Session:
        self._local.session = session
        self._sessions.add(session)
        return session

    def _rows(self, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        session = self._taken()
        try:
            return session.cursor.execute(sql, values).fetchall()
        except UnicodeEncodeError:
            # Half a surrogate pair, from a command line that is no UTF-8: nothing of this name can ever have been written.
            return []
        except (apsw.Error, UnicodeDecodeError) as error:
            raise failure(self._path, error) from error
        finally:
            session.lock.release()


class _StaleMove(Exception):
    """Leaves a transaction so that all of it is rolled back."""

    def __init__(self, answer: Stale) -> None:
        super().__init__(answer.name)
        self.answer = answer


def _sound(rows: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """Those rows whose bytes are as they were written."""
    for id_, blob in rows:
        with suppress(ValueError):
            yield id_, unpack(blob or b"")


def _put(cursor: apsw.Cursor, rows: Sequence[Row], objects: Sequence[StoredObject]) -> None:
    """Write the packed rows of objects, and their marks."""
    connection = cursor.connection
    before = connection.total_changes()
    cursor.executemany(_PUT, rows)
    if connection.total_changes() - before < len(rows):
        # Some exist. Finding that out here is faster than a statement that does both.
        cursor.executemany(_REFRESH, [(id_, written, REFRESH_AFTER) for id_, _, written, _ in rows])
    cursor.executemany(_MARK, [(mark, object_.id) for object_ in objects for mark in object_.marks])


def _move(cursor: apsw.Cursor, move: Move) -> None:
    name, kind, before, after = move.name, move.kind, move.before, move.after
    if before is not None and after is not None:
        cursor.execute("UPDATE refs SET target = ? WHERE name = ? AND kind = ? AND target = ?", (after, name, kind, before))
    elif before is not None:
        cursor.execute("DELETE FROM refs WHERE name = ? AND kind = ? AND target = ?", (name, kind, before))
    elif after is not None:
        cursor.execute("INSERT INTO refs (name, kind, target) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (name, kind, after))
    if not cursor.connection.changes():
        raise _StaleMove(Stale(name, _found(cursor.execute(_REFERENCE, (name,)).fetchall())))
    cursor.execute(_LOG, (name, kind, before, after, move.time, move.who, move.operation, move.message, move.request_id))


def _set(cursor: apsw.Cursor, name: str, value: str | None) -> None:
    if value is None:
        cursor.execute("DELETE FROM settings WHERE name = ?", (name,))
    else:
        cursor.execute("INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (name, value))


def _found(rows: list[tuple[Any, ...]]) -> StoredReference | None:
    return StoredReference(*rows[0]) if rows else None


def _reflog_row(row: tuple[Any, ...]) -> ReflogRow:
    return ReflogRow(row[0], Move(*row[1:]))


def _limit(limit: int | None) -> int:
    return -1 if limit is None else limit


def _after(prefix: str) -> str | None:
    """The first text behind all that begin with `prefix`, None where there is none."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return None
    code = ord(stem[-1]) + 1
    # Surrogates are no characters: they have no bytes that could be compared.
    return stem[:-1] + chr(_BEHIND_SURROGATES if code == _SURROGATES else code)
