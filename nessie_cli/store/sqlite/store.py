"""The embedded store: one SQLite file in WAL mode, for the processes of one machine.

Readers never wait. Writers take the write lock at the start of their transaction (BEGIN IMMEDIATE),
so a compare-and-swap cannot be lost to a deadlock. They wait for each other up to `PATIENCE`
seconds. An acknowledged write is on the disk (synchronous=FULL).
"""

# os.path: importing pathlib costs a tenth of a command's start-up.
# ruff: noqa: PTH100

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

import apsw

from nessie_cli.errors import DamagedObject, NessieError, OutcomeUnknown, StoreUnavailable
from nessie_cli.model.batches import batched
from nessie_cli.store.base import LEASE, Dump
from nessie_cli.store.records import (
    Basis,
    DamagedId,
    Outcome,
    ReflogRow,
    RequestRecord,
    StoredObject,
    StoredReference,
    StoredSettings,
    Write,
)
from nessie_cli.store.rows import (
    BASIS,
    REFERENCE,
    REFLOG,
    REQUEST,
    SETTINGS,
    DamagedRow,
    Row,
    after_prefix,
    check_order,
    first_moves,
    hex_range,
    index_row_of,
    object_of,
    objects_of,
    read_ahead_of,
    reference_of,
    reflog_row_of,
    request_of,
    settings_of,
)
from nessie_cli.store.sqlite.commit import SQLiteCommit, packed, put
from nessie_cli.store.sqlite.errors import DiskFailed, failure, reason
from nessie_cli.store.sqlite.lease import draw, give_back, waiting
from nessie_cli.store.sqlite.schema import create_file, open_session
from nessie_cli.store.sqlite.session import (
    PATIENCE,
    Checkpoints,
    Session,
    connect,
    file_of,
    registry,
)

if TYPE_CHECKING:
    from nessie_cli.model.progress import Progress
    from nessie_cli.store.later_tables import RunRows, SessionRows
    from nessie_cli.store.sqlite.dump import SQLiteDump
    from nessie_cli.store.sqlite.maintenance import SQLiteMaintenance
    from nessie_cli.store.sqlite.watch import Watch

_T = TypeVar("_T")
_ERRORS = (apsw.Error, UnicodeDecodeError, DamagedRow)

_FEW = 3  # up to here single look-ups are faster than one statement with an array
_TOGETHER = 8  # objects of unknown size that are in memory together
_SPREAD = 16  # rows that are passed over for each object of one kind that is looked for
# Objects per transaction of a load, and per statement of a scan: others get their turn.
_BATCH, _SCAN = 20_000, 250
_NAP = 0.002  # seconds between two looks at a lease
_LAST = 2**63 - 1
_NEWEST_MOVES = f"""{REFLOG} WHERE number IN
(SELECT (SELECT max(number) FROM reflog WHERE name = value) FROM carray(?))"""  # noqa: S608 - fixed texts

_GET = "SELECT kind, CAST(packed AS BLOB) FROM objects WHERE id = ?"
_GET_MANY = "SELECT value, kind, CAST(packed AS BLOB) FROM carray(?) JOIN objects ON id = value"
_BEFORE = """WITH this AS (SELECT number AS place FROM objects WHERE id = ?)
SELECT CAST(id AS BLOB), kind, CAST(packed AS BLOB) FROM objects, this
WHERE objects.number BETWEEN place - ? AND place AND kind = ? ORDER BY objects.number DESC LIMIT ?"""
_INDEXED = """SELECT object, id FROM object_index JOIN objects ON number = object WHERE entry = ? AND object < ?
ORDER BY entry, object DESC LIMIT ?"""
_INDEX_AFTER = """SELECT entry, object, id FROM object_index JOIN objects ON number = object
WHERE (entry, object) > (?, ?) ORDER BY entry, object LIMIT ?"""
_SCAN_AFTER = """SELECT number, CAST(id AS BLOB), kind, CAST(packed AS BLOB) FROM objects
WHERE number > ? AND (?2 IS NULL OR kind = ?2) ORDER BY number LIMIT ?"""
# Any committed change, after which SQLite's log file holds nothing of a transaction that failed
# before it.
_TOUCH = (
    "INSERT INTO leases (name, token, ends) VALUES ('', '', 0); DELETE FROM leases WHERE ends = 0"
)


def open_sqlite(
    path: str,
    *,
    clock: Callable[[], float] = time.time,
    patience: float = PATIENCE,
) -> SQLiteStore:
    """Opens an existing store.

    A writer waits at most `patience` seconds. Raises `StoreNotFound`, `UnsupportedFormat` (another
    format, or not a store), `StoreUnavailable`.
    """
    path = os.path.abspath(path)
    return SQLiteStore(path, open_session(path, patience), clock, patience)


def create_sqlite(
    path: str, *, clock: Callable[[], float] = time.time, patience: float = PATIENCE
) -> SQLiteStore:
    """Opens a store, and creates it if there is no file; two processes may do so at once.

    Raises the errors of `open_sqlite`.
    """
    create_file(os.path.abspath(path))
    return open_sqlite(path, clock=clock, patience=patience)


class SQLiteStore:
    """A `Store` in one SQLite file, opened by `open_sqlite` or `create_sqlite`.

    Each thread has its own connection.
    """

    remote = False

    def __init__(
        self, path: str, session: Session, clock: Callable[[], float], patience: float
    ) -> None:
        # The path is absolute, because the working directory may change.
        self._path = path
        self._file = session.file
        self._clock = clock
        self._patience = patience
        self._closed = False
        self._settings = StoredSettings()
        self._local = threading.local()
        self._sessions: WeakSet[Session] = WeakSet()
        self._watch: Watch | None = None
        self._checkpoints = Checkpoints(path)
        self._keep(session)

    @property
    def url(self) -> str:
        """The URL that opens this store again, from any working directory."""
        return f"sqlite:///{self._path}"

    # -- objects --

    def get(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """Returns the bytes of objects.

        Costs about 10 microseconds for one object, less per object for many.
        """
        if len(ids) > _FEW:
            rows = self._rows(_GET_MANY, (apsw.carray(tuple(ids)),))
        else:
            rows = [(id_, *row) for id_ in ids for row in self._rows(_GET, (id_,))]
        return objects_of(self._path, rows)

    def get_some(self, ids: Sequence[bytes], most_bytes: int) -> dict[bytes, bytes]:
        """Returns the first objects. Reads some too many, but fewer than `_TOGETHER`."""
        objects: dict[bytes, bytes] = {}
        size = 0
        for start in range(0, len(ids), _TOGETHER):
            objects.update(group := self.get(ids[start : start + _TOGETHER]))
            size += sum(map(len, group.values()))
            if size >= most_bytes:
                break
        return objects

    def written_before(self, id_: bytes, kind: int, limit: int) -> dict[bytes, bytes]:
        """Reads ahead. Takes half the time of `get` if every fifth row is of this kind."""
        try:
            rows = self._rows(_BEFORE, (id_, _SPREAD * limit, kind, limit + 1))
        except (DamagedObject, StoreUnavailable):
            # This is a read-ahead: `get` raises the error if the objects are needed.
            return {}
        return read_ahead_of(rows)

    def find_ids(self, kind: int, prefix: str, limit: int) -> list[bytes]:
        """Returns ids by prefix. Reads the ids of all objects with this prefix."""
        if (ids := hex_range(prefix)) is None:
            return []
        sql = "SELECT id FROM objects WHERE id BETWEEN ? AND ? AND kind = ? ORDER BY id LIMIT ?"
        return [id_ for (id_,) in self._rows(sql, (*ids, kind, limit))]

    def find_indexed(self, entry: bytes, before: int | None, limit: int) -> list[tuple[int, bytes]]:
        """Returns objects with an index entry, highest number first."""
        rows = self._rows(_INDEXED, (entry, _LAST if before is None else before, limit))
        self._check_order("object_index", [row[0] for row in rows], before, descending=True)
        return rows

    def verify_file(self) -> Iterator[str]:
        """Yields the problems of pages, indexes and chains, all of one state."""
        with self.dump() as dump:
            yield from dump.problems()

    def scan_index(self) -> Iterator[tuple[bytes, bytes]]:
        """Yields every index entry with the id of its object. Reads some hundred at a time."""
        last: tuple[bytes, int] = (b"", -_LAST)
        while rows := self._read(index_row_of, _INDEX_AFTER, (*last, _SCAN)):
            self._check_order("object_index", [row[:2] for row in rows], last)
            yield from ((entry, id_) for entry, _, id_ in rows)
            last = rows[-1][:2]

    def scan(self, kind: int | None = None) -> Iterator[StoredObject | DamagedId]:
        """Yields objects in the order of writing; those written meanwhile may be missing."""
        last, rows = -_LAST, None
        while rows is None or len(rows) == _SCAN:
            rows = self._rows(_SCAN_AFTER, (last, kind, _SCAN))
            self._check_order("objects", [row[0] for row in rows], last)
            for last, *fields in rows:  # noqa: B007 - the next page begins after it
                yield object_of(fields)

    def count(self) -> int:
        """Returns the number of objects."""
        rows: list[tuple[int]] = self._rows("SELECT count(*) FROM objects", ())
        return rows[0][0]

    def put(self, objects: Iterable[StoredObject]) -> None:
        """Stores objects.

        Some thousand objects share a transaction: after an error, earlier ones are stored.
        """
        for batch in batched(objects, _BATCH):
            rows = packed(batch, int(self._clock()))
            with self._transaction() as cursor:
                put(cursor, rows, batch)

    def maintenance(self) -> AbstractContextManager[SQLiteMaintenance]:
        """Opens the maintenance.

        The grace period for objects must be longer than `REFRESH_AFTER`.
        """
        from nessie_cli.store.sqlite.maintenance import open_maintenance

        return open_maintenance(self._path, self._patience)

    # -- references, reflog, settings, requests --

    def reference(self, name: str) -> StoredReference | None:
        """Returns a reference, or None."""
        return next(iter(self._read(reference_of, f"{REFERENCE} WHERE name = ?", (name,))), None)

    def references(
        self, kind: str | None = None, prefix: str = "", start: str = "", limit: int | None = None
    ) -> list[StoredReference]:
        """Returns references in the order of their names."""
        conditions, values = ["name >= ?"], [max(prefix, start)]
        if (end := after_prefix(prefix)) is not None:
            conditions.append("name < ?")
            values.append(end)
        if kind is not None:
            conditions.append("kind = ?")
            values.append(kind)
        sql = f"{REFERENCE} WHERE {' AND '.join(conditions)} ORDER BY name LIMIT ?"
        references = self._read(reference_of, sql, (*values, -1 if limit is None else limit))
        self._check_order("refs", [reference.name for reference in references])
        return references

    def reflog(
        self, name: str | None = None, before: int | None = None, limit: int | None = None
    ) -> list[ReflogRow]:
        """Returns moves, newest first."""
        condition = "number < ?" if name is None else "number < ? AND name = ?"
        sql = f"{REFLOG} WHERE {condition} ORDER BY number DESC LIMIT ?"
        names = () if name is None else (name,)
        rows = first_moves(
            lambda end, most: self._read(reflog_row_of, sql, (end, *names, most)),
            _LAST if before is None else before,
            limit,
        )
        self._check_order("reflog", [row.number for row in rows], before, descending=True)
        return rows

    def newest_moves(self, names: Sequence[str]) -> list[ReflogRow]:
        """Returns the newest move of each reference, unordered."""
        # SQLite cuts the texts of an array at a NUL. No reference has such a name.
        storable = tuple(name for name in names if "\0" not in name)
        return (
            self._read(reflog_row_of, _NEWEST_MOVES, (apsw.carray(storable),)) if storable else []
        )

    def settings(self) -> StoredSettings:
        """Returns all settings."""
        return self._checked(settings_of, self._rows(SETTINGS, ()))

    def request(self, id_: str) -> RequestRecord | None:
        """Returns the request of an id, or None."""
        return next(iter(self._read(request_of, f"{REQUEST} WHERE id = ?", (id_,))), None)

    def basis(self, name: str, request_id: str) -> Basis:
        """Returns the state with which a draft begins.

        Takes one statement, unless the settings have changed since the last call.
        """
        reference = request = None
        version = 0
        for row in self._rows(BASIS, (name, request_id)):
            if row[0] == 0:
                version = row[1] or 0
            elif row[0] == 1:
                reference = self._checked(reference_of, row[1:6])
            else:
                request = self._checked(request_of, row[1:])
        settings = self._settings
        if settings.version != version:
            settings = self._settings = self.settings()
        return Basis(reference, settings, request)

    def bases(self, pairs: Sequence[tuple[str, str]]) -> list[Basis]:
        """Returns `basis` for each name and request id, one statement each."""
        return [self.basis(*pair) for pair in pairs]

    # -- writing --

    def commit(
        self,
        writes: Sequence[Write],
        *,
        lease: str = "",
        end_lease: bool = False,  # noqa: ARG002 - it ends a moment later
    ) -> list[Outcome]:
        """Decides writes in order. All of them share one transaction."""
        commit = SQLiteCommit(writes, int(self._clock()))
        deadline = 0.0
        while True:
            past = deadline and time.monotonic() > deadline
            if self._run(commit, None if past else lease):
                return commit.outcomes
            deadline = deadline or time.monotonic() + LEASE
            time.sleep(_NAP)

    def _run(self, commit: SQLiteCommit, lease: str | None) -> bool:
        """Runs a commit as a transaction. Returns False if another caller holds a lease."""
        session = self._taken()
        try:
            with session as cursor:
                return commit.run(cursor, lease)
        except _ERRORS as error:
            failed = self._translated(session, error)
            if not isinstance(failed, DiskFailed):
                raise failed from error
            self._find_out(commit, failed)
            return True
        finally:
            session.lock.release()

    def _find_out(self, commit: SQLiteCommit, failed: DiskFailed) -> None:
        """Returns if a transaction is durable although its COMMIT failed, otherwise raises.

        It raises `failed`. The bytes of the transaction may be in SQLite's log file, where the next
        start of the machine could find them. So this commits another transaction: then the log
        contains the whole first transaction or nothing of it.
        """
        message = (
            f"store {self._path}: the disk failed during a commit, and whether it happened cannot"
            " be found out"
        )
        if not commit.request_id:
            raise OutcomeUnknown(message, "") from failed
        try:
            session = connect(self._path, self._patience)
            try:
                with session as cursor:
                    is_durable = commit.is_durable(cursor)
                    cursor.execute(_TOUCH).fetchall()
            finally:
                session.close()
        except (NessieError, apsw.Error) as error:
            raise OutcomeUnknown(f"{message} ({reason(error)})", commit.request_id) from failed
        if not is_durable:
            raise failed

    @contextmanager
    def lease(self, name: str) -> Iterator[str]:
        """Waits for a lease. If too many wait, it yields at once, without a lease."""
        with self._unsynced_transaction() as cursor:
            token = draw(cursor, name)
        try:
            while self._waits(name, token):
                time.sleep(_NAP)
            yield token
        finally:
            # If it cannot be returned, it expires.
            with suppress(StoreUnavailable), self._unsynced_transaction() as cursor:
                give_back(cursor, name, token)

    def _waits(self, name: str, token: str) -> bool:
        with self._session() as session:
            return waiting(session.cursor, name, token)

    # -- the whole --

    def dump(self) -> AbstractContextManager[SQLiteDump]:
        """Opens one consistent state of the store.

        Meanwhile, SQLite's log file cannot be truncated, so it grows with each write.
        """
        from nessie_cli.store.sqlite.dump import open_dump

        if self._closed:
            raise StoreUnavailable(f"store {self._path} has been closed")
        return open_dump(self._path, self._patience)

    def load(self, dump: Dump, progress: Progress | None = None) -> None:
        """Stores a dump. The log file takes as much space as the dump until the end."""
        from nessie_cli.store.sqlite.dump import load

        try:
            with self._transaction() as cursor:
                load(cursor, self.url, dump, int(self._clock()), progress)
        except DiskFailed as error:
            message = (
                f"{error}; whether the load happened cannot be found out: load again, which is"
                " refused if it did"
            )
            raise OutcomeUnknown(message, "") from error

    def change_counter(self) -> tuple[int, int] | None:
        """Returns a value that changes with every write, or None if it is unavailable."""
        watch = self._watching()
        return None if watch is None else watch.version()

    def heads(self, names: Sequence[str]) -> list[StoredReference | None] | None:
        """Returns the reference of each name, one statement each."""
        watch = self._watching()
        return None if watch is None else watch.heads(names)

    def _watching(self) -> Watch | None:
        if self._closed:
            return None
        try:
            self._check_file()
        except StoreUnavailable:
            return None
        if self._watch is None:
            # Only a server calls it.
            from nessie_cli.store.sqlite.watch import Watch

            self._watch = Watch(self._path)
        return self._watch

    @property
    def sessions(self) -> SessionRows:
        """The logins of browsers."""
        from nessie_cli.store.later_tables import SessionRows
        from nessie_cli.store.sqlite.later_tables import SQLiteLaterTable

        return SessionRows(SQLiteLaterTable("sessions", self._rows, self._transaction))

    @property
    def runs(self) -> RunRows:
        """The records of pipelines' runs."""
        from nessie_cli.store.later_tables import RunRows
        from nessie_cli.store.sqlite.later_tables import SQLiteLaterTable

        return RunRows(SQLiteLaterTable("runs", self._rows, self._transaction))

    def close(self) -> None:
        """Closes all connections.

        The last connection of all processes writes SQLite's log back into the file.
        """
        self._closed = True
        if self._watch is not None:
            self._watch.close()
        with registry:
            sessions = list(self._sessions)
        for session in sessions:
            session.close_from_outside()
        self._checkpoints.close()

    # -- connections --

    def _taken(self) -> Session:
        """Returns the session of this thread, open and locked. The caller releases the lock."""
        while True:
            session: Session | None = getattr(self._local, "session", None)
            if self._closed:
                raise StoreUnavailable(f"store {self._path} has been closed")
            self._check_file()
            # No connection: it was closed after an error, or before a fork.
            if session is None or session.connection is None:
                session = self._keep(connect(self._path, self._patience))
            session.lock.acquire()
            if session.connection is not None and not self._closed:
                return session
            # `close` may have missed one that was just opened.
            session.close()
            session.lock.release()

    def _check_file(self) -> None:
        """Raises `StoreUnavailable` if the file was replaced: commits to it would be lost."""
        try:
            current = file_of(self._path)
        except OSError:
            raise StoreUnavailable(
                f"store {self._path}: no such file; it was moved or deleted while it was open"
            ) from None
        if current != self._file:
            raise StoreUnavailable(
                f"store {self._path}: another file took its place while it was open; restart the"
                " programs that use it"
            )

    def _keep(self, session: Session) -> Session:
        self._local.session = session
        if session.connection is not None:
            self._checkpoints.replace_automatic(session.connection)
        with registry:
            self._sessions.add(session)
        return session

    @contextmanager
    def _session(self) -> Iterator[Session]:
        """Yields the session of this thread, and converts SQLite's errors."""
        session = self._taken()
        session.committing = False
        try:
            yield session
        except _ERRORS as error:
            raise self._translated(session, error) from error
        finally:
            session.lock.release()

    def _translated(self, session: Session, error: Exception) -> NessieError:
        """Returns our error for one of SQLite's; `DiskFailed` for a failed COMMIT."""
        if session.committing and isinstance(error, apsw.IOError):
            return DiskFailed(str(self._failure(error)))
        return self._failure(error)

    @contextmanager
    def _transaction(self) -> Iterator[apsw.Cursor]:
        with self._session() as session, session as cursor:
            yield cursor

    @contextmanager
    def _unsynced_transaction(self) -> Iterator[apsw.Cursor]:
        """A transaction that does not wait for the disk.

        A power failure may undo it if no other transaction follows.
        """
        with self._session() as session:
            synchronous = session.number("synchronous")
            session.cursor.execute("PRAGMA synchronous = NORMAL")
            try:
                with session as cursor:
                    yield cursor
            finally:
                if session.connection is not None:
                    session.cursor.execute(f"PRAGMA synchronous = {synchronous}")

    def _rows(self, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        session = self._taken()
        try:
            return session.cursor.execute(sql, values).fetchall()
        except UnicodeEncodeError:
            # Half a surrogate pair, from a command line that is not UTF-8: no stored name has one.
            return []
        except _ERRORS as error:
            raise self._failure(error) from error
        finally:
            session.lock.release()

    def _read(self, make: Callable[[Row], _T], sql: str, values: tuple[Any, ...]) -> list[_T]:
        rows = self._rows(sql, values)
        return self._checked(lambda fetched: [make(row) for row in fetched], rows)

    def _checked(self, make: Callable[[Any], _T], rows: Any) -> _T:
        try:
            return make(rows)
        except DamagedRow as error:
            raise self._failure(error) from error

    def _check_order(self, *places: Any, descending: bool = False) -> None:
        self._checked(lambda arguments: check_order(*arguments, descending=descending), places)

    def _failure(self, error: Exception) -> StoreUnavailable:
        if self._closed and isinstance(error, apsw.BusyError):
            return StoreUnavailable(f"store {self._path} has been closed")
        return failure(self._path, error)
