"""The store that many servers share: a schema in a PostgreSQL database.

Reads are single statements outside of transactions. `commit` is one call of a function in the
database (functions.sql), so it costs one round trip and one wait for the disk.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar

import psycopg

from nessie_cli.store.base import Dump
from nessie_cli.store.codec import unpack
from nessie_cli.store.postgres.commit import REFRESH_AFTER, Committer
from nessie_cli.store.postgres.errors import RETRIED, failure
from nessie_cli.store.postgres.lease import Leases
from nessie_cli.store.postgres.location import Location, parse_location
from nessie_cli.store.postgres.maintenance import PostgresMaintenance
from nessie_cli.store.postgres.parameters import Blobs, Texts
from nessie_cli.store.postgres.pool import PATIENCE, Connection, Pool
from nessie_cli.store.postgres.rows import (
    PackedObjects,
    a_reference,
    a_reflog_row,
    a_request,
    is_storable,
    pack_objects,
    unpack_objects,
)
from nessie_cli.store.postgres.schema import check_schema, create_schema
from nessie_cli.store.prefixes import after_prefix, hex_range
from nessie_cli.store.records import (
    Basis,
    DamagedId,
    Outcome,
    ReflogRow,
    Request,
    Settings,
    StoredObject,
    StoredReference,
    Write,
)

if TYPE_CHECKING:
    from nessie_cli.model.progress import Progress

T = TypeVar("T")

_COPIED = 200  # objects from which on COPY is faster than arrays
_BATCH = 5_000  # objects of a large load per transaction
_BATCH_BYTES = 16 << 20
_LARGE = 64 << 20  # bytes of objects that one call of `commit` sends together with its writes
_SCAN = 500  # rows per statement of a scan
_LAST = 2**63 - 1
_NEWER = 200  # objects that `bases` adds for a branch that others have moved
_SHARED_KINDS = "'{2,3}'"  # nodes and commits: the next draft on the branch reads them

_GET = "SELECT id, kind, data FROM objects WHERE id = ANY (%s)"
_BEFORE = """SELECT id, kind, data FROM objects
    WHERE kind = %s AND number <= (SELECT number FROM objects WHERE id = %s)
    ORDER BY number DESC LIMIT %s"""
_IDS = "SELECT id FROM objects WHERE id BETWEEN %s AND %s AND kind = %s ORDER BY id LIMIT %s"
_INDEXED = """SELECT number, id FROM index_entries WHERE entry = %s AND number < %s
    ORDER BY number DESC LIMIT %s"""
_SCAN_OBJECTS = """SELECT number, id, kind, data FROM objects
    WHERE (kind, number) > (%s, %s) AND kind <= %s ORDER BY kind, number LIMIT %s"""
_SCAN_INDEX = """SELECT entry, number, id FROM index_entries WHERE (entry, number) > (%s, %s)
    ORDER BY entry, number LIMIT %s"""
_STAGE = """CREATE TEMPORARY TABLE IF NOT EXISTS staged_objects
        (ordinal bigint, kind smallint, id bytea, data bytea) ON COMMIT DELETE ROWS;
    CREATE TEMPORARY TABLE IF NOT EXISTS staged_entries
        (id bytea, entry bytea) ON COMMIT DELETE ROWS"""
_COPY_OBJECTS = "COPY staged_objects (ordinal, kind, id, data) FROM STDIN (FORMAT BINARY)"
_COPY_ENTRIES = "COPY staged_entries (id, entry) FROM STDIN (FORMAT BINARY)"
_LOAD = "SELECT load_1(%s, %s)"
_PUT = "SELECT put_1(%s, %s, %s, %s, %s, %s, %s, %s)"
_SNAPSHOT = "SELECT pg_current_snapshot()::text"
_REFERENCE = "SELECT name, kind, target FROM refs WHERE name = %s"
_REFLOG = """SELECT number, name, kind, before, after, time, who, operation, message, request_id
    FROM reflog WHERE number < %s"""
_NEWEST_MOVES = """SELECT newest.* FROM (SELECT DISTINCT unnest(%s::text[]) AS name) AS wanted CROSS JOIN LATERAL (
        SELECT number, name, kind, before, after, time, who, operation, message, request_id
        FROM reflog WHERE reflog.name = wanted.name ORDER BY number DESC LIMIT 1
    ) AS newest"""
_REQUEST = "SELECT id, caller, digest, result, time FROM requests WHERE id = %s"
_SETTINGS = """settings_version,
    ARRAY(SELECT name FROM settings ORDER BY name), ARRAY(SELECT value FROM settings ORDER BY name)"""
_ALL_SETTINGS = f"SELECT {_SETTINGS} FROM store"  # noqa: S608 - fixed texts
_BASES = f"""SELECT {_SETTINGS},
        r.name, r.kind, r.target, q.id, q.caller, q.digest, q.result, q.time,
        newer.ids, newer.kinds, newer.data
    FROM store CROSS JOIN unnest(%s, %s, %s) WITH ORDINALITY AS wanted (name, request, head, n)
    LEFT JOIN refs r ON r.name = wanted.name LEFT JOIN requests q ON q.id = wanted.request
    LEFT JOIN LATERAL (
        SELECT array_agg(o.id) AS ids, array_agg(o.kind) AS kinds, array_agg(o.data) AS data
        FROM (
            SELECT id, kind, data FROM objects
            WHERE kind = ANY ({_SHARED_KINDS})
                AND number > (SELECT number FROM objects WHERE id = wanted.head)
                AND number <= (SELECT number FROM objects WHERE id = r.target)
            ORDER BY number DESC LIMIT {_NEWER}
        ) AS o
    ) AS newer ON wanted.head <> r.target
    ORDER BY wanted.n"""  # noqa: S608 - fixed texts


def open_postgres(
    url: str,
    *,
    clock: Callable[[], float] = time.time,
    patience: float = PATIENCE,
) -> PostgresStore:
    """Opens an existing store.

    A call waits at most `patience` seconds for a lock, a connection, or a server that is away
    while the outcome of a commit is open. Raises `InvalidInput` for a malformed URL,
    `StoreNotFound`, `UnsupportedFormat` (another format, or no store), `StoreUnavailable`.
    """
    location = parse_location(url)
    return _open(
        location,
        clock,
        patience,
        lambda connection: check_schema(connection, location),
    )


def create_postgres(
    url: str, *, clock: Callable[[], float] = time.time, patience: float = PATIENCE
) -> PostgresStore:
    """Opens a store, creating its schema and tables if there are none.

    The database must exist. Two processes may create a store at once. Raises what `open_postgres`
    raises.
    """
    location = parse_location(url)

    def create(connection: Connection) -> None:
        create_schema(connection, location)
        check_schema(connection, location)

    return _open(location, clock, patience, create)


def _open(
    location: Location,
    clock: Callable[[], float],
    patience: float,
    prepare: Callable[[Connection], object],
) -> PostgresStore:
    pool = Pool(location, patience)
    try:
        with pool.connection() as connection:
            prepare(connection)
    except psycopg.Error as error:
        pool.close()
        raise failure(location.url, error) from error
    except BaseException:
        pool.close()
        raise
    return PostgresStore(pool, clock)


class PostgresStore:
    """A `Store` in a PostgreSQL schema, opened by `open_postgres` or `create_postgres`."""

    remote = True

    def __init__(self, pool: Pool, clock: Callable[[], float]) -> None:
        self._pool = pool
        self._clock = clock
        self._url = pool.location.url
        self._leases = Leases(pool)
        self._committer = Committer(pool, clock)

    @property
    def url(self) -> str:
        """See `Store`. A URL with a password is refused, so this one has none."""
        return self._url

    # -- objects --

    def get(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """See `View`."""
        if not ids:
            return {}
        return unpack_objects(self._url, self._rows(_GET, (Blobs(ids),)))

    def written_before(self, id_: bytes, kind: int, limit: int) -> dict[bytes, bytes]:
        """See `View`."""
        found = {}
        for near, kind_, blob in self._rows(_BEFORE, (kind, id_, limit + 1)):
            # `get` raises the error if a damaged object is needed.
            with suppress(ValueError):
                found[near] = unpack(near, kind_, blob)
        return found

    def find_ids(self, kind: int, prefix: str, limit: int) -> list[bytes]:
        """See `View`. Costs the objects of any kind with this prefix."""
        if (ids := hex_range(prefix)) is None:
            return []
        return [id_ for (id_,) in self._rows(_IDS, (*ids, kind, limit))]

    def find_indexed(self, entry: bytes, before: int | None, limit: int) -> list[tuple[int, bytes]]:
        """See `View`."""
        before = _LAST if before is None else before
        return [(number, id_) for number, id_ in self._rows(_INDEXED, (entry, before, limit))]

    def scan(self, kind: int | None = None) -> Iterator[StoredObject | DamagedId]:
        """See `Store`. Some hundred objects per statement, by kind, in the order of writing."""
        last, end = ((-1, -1), _LAST) if kind is None else ((kind, -1), kind)
        while rows := self._rows(_SCAN_OBJECTS, (*last, end, _SCAN)):
            for number, id_, kind_, blob in rows:
                last = (kind_, number)
                try:
                    yield StoredObject(id_, kind_, unpack(id_, kind_, blob))
                except ValueError as error:
                    yield DamagedId(id_, kind_, str(error))

    def verify_file(self) -> Iterator[str]:
        """Returns nothing: PostgreSQL verifies its own pages, if data checksums are enabled."""
        return iter(())

    def scan_index(self) -> Iterator[tuple[bytes, bytes]]:
        """See `Store`."""
        last: tuple[bytes, int] = (b"", -_LAST)
        while rows := self._rows(_SCAN_INDEX, (*last, _SCAN)):
            yield from ((entry, id_) for entry, _, id_ in rows)
            last = rows[-1][:2]

    def count(self) -> int:
        """See `Store`."""
        return int(self._rows("SELECT count(*) FROM objects")[0][0])

    def put(self, objects: Iterable[StoredObject]) -> None:
        """See `Store`. Each batch is a transaction: if one fails, those before are stored."""
        batch: list[StoredObject] = []
        size = 0
        for stored in objects:
            batch.append(stored)
            size += len(stored.data)
            if len(batch) >= _BATCH or size >= _BATCH_BYTES:
                self._put(batch)
                batch, size = [], 0
        if batch:
            self._put(batch)

    def _put(self, objects: Sequence[StoredObject]) -> None:
        now = int(self._clock())
        times = (now, now - REFRESH_AFTER)
        rows = pack_objects(objects)
        if len(rows.ids) < _COPIED:
            columns = (rows.ids, rows.ordinals, rows.kinds, rows.data)
            values = (*times, *columns, rows.entry_ids, rows.entries)
            self._retried(lambda connection: connection.execute(_PUT, values))
        else:
            self._retried(lambda connection: _load(connection, rows, times))

    def maintenance(self) -> AbstractContextManager[PostgresMaintenance]:
        """See `Store`. The grace period for objects must be longer than `REFRESH_AFTER`."""
        return nullcontext(PostgresMaintenance(self._pool))

    # -- references, reflog, settings, requests --

    def reference(self, name: str) -> StoredReference | None:
        """See `View`."""
        rows = self._rows(_REFERENCE, (name,)) if is_storable(name) else []
        return a_reference(rows[0]) if rows else None

    def references(
        self, kind: str | None = None, prefix: str = "", start: str = "", limit: int | None = None
    ) -> list[StoredReference]:
        """See `View`."""
        if not is_storable(prefix, start, kind or ""):
            return []
        query: LiteralString = "SELECT name, kind, target FROM refs WHERE name >= %s"
        values: list[object] = [max(prefix, start)]
        if (end := after_prefix(prefix)) is not None:
            query += " AND name < %s"
            values.append(end)
        if kind is not None:
            query += " AND kind = %s"
            values.append(kind)
        rows = self._rows(query + " ORDER BY name LIMIT %s", (*values, limit))
        return [StoredReference(*row) for row in rows]

    def reflog(
        self, name: str | None = None, before: int | None = None, limit: int | None = None
    ) -> list[ReflogRow]:
        """See `View`."""
        query, values = _REFLOG, [_LAST if before is None else before]
        if name is not None:
            if not is_storable(name):
                return []
            return self._reflog(query + " AND name = %s", (*values, name), limit)
        return self._reflog(query, values, limit)

    def _reflog(
        self, query: LiteralString, values: Sequence[object], limit: int | None
    ) -> list[ReflogRow]:
        rows = self._rows(query + " ORDER BY number DESC LIMIT %s", (*values, limit))
        return [a_reflog_row(row) for row in rows]

    def newest_moves(self, names: Sequence[str]) -> list[ReflogRow]:
        """See `View`."""
        rows = self._rows(_NEWEST_MOVES, ([name for name in names if is_storable(name)],))
        return [a_reflog_row(row) for row in rows]

    def settings(self) -> Settings:
        """See `View`."""
        return _settings(self._rows(_ALL_SETTINGS)[0])

    def request(self, id_: str) -> Request | None:
        """See `View`."""
        rows = self._rows(_REQUEST, (id_,)) if is_storable(id_) else []
        return a_request(rows[0]) if rows else None

    def basis(self, name: str, request_id: str) -> Basis:
        """See `View`."""
        return self.bases([(name, request_id)])[0]

    def bases(
        self, wanted: Sequence[tuple[str, str]], known: Mapping[str, bytes] = {}
    ) -> list[Basis]:
        """See `View`."""
        # NULL is equal to nothing.
        names, ids = (
            Texts(text if is_storable(text) else None for text in texts)
            for texts in zip(*wanted, strict=True)
        )
        heads = Blobs(known.get(name) for name, _ in wanted)
        rows = self._rows(_BASES, (names, ids, heads))
        settings = _settings(rows[0])
        return [
            Basis(a_reference(row[3:6]), settings, a_request(row[6:11]), self._newer(row[11:]))
            for row in rows
        ]

    def _newer(self, columns: Sequence[Any]) -> tuple[StoredObject, ...]:
        found = []
        for id_, kind, blob in zip(*columns, strict=True) if columns[0] else ():
            # `get` raises the error if a damaged object is needed.
            with suppress(ValueError):
                found.append(StoredObject(id_, kind, unpack(id_, kind, blob)))
        return tuple(found)

    # -- writing --

    def commit(
        self, writes: Sequence[Write], *, lease: str = "", end_lease: bool = False
    ) -> list[Outcome]:
        """See `Store`. Objects of many megabytes are stored before, whatever the outcomes are."""
        if not writes:
            return []
        if sum(len(stored.data) for write in writes for stored in write.objects) > _LARGE:
            self.put(stored for write in writes for stored in write.objects)
            writes = [_without_objects(write) for write in writes]
        outcomes = self._committer.commit(writes, self._leases.connection(lease), end_lease)
        if end_lease:
            self._leases.ended(lease)
        return outcomes

    def lease(self, name: str) -> AbstractContextManager[str]:
        """See `Store`."""
        return self._leases.hold(name)

    def dump(self) -> AbstractContextManager[Dump]:
        """See `Store`."""
        from nessie_cli.store.postgres.dump import open_dump

        return open_dump(self._pool)

    def load(self, dump: Dump, progress: Progress | None = None) -> None:
        """See `Store`."""
        from nessie_cli.store.postgres.load import load

        load(self._pool, dump, int(self._clock()), progress)

    def change_counter(self) -> tuple[int, str] | None:
        """See `Store`. Equal snapshots see the same transactions.

        Other databases on the server do not matter. The number of connections opened so far
        distinguishes a server that was restored or replaced by a standby. Raises
        `StoreUnavailable`.
        """
        opened = self._pool.opened
        [(snapshot,)] = self._rows(_SNAPSHOT)
        return (opened, snapshot) if opened == self._pool.opened else None

    def close(self) -> None:
        """See `Store`."""
        self._pool.close()

    # -- statements --

    def _rows(self, query: LiteralString, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Returns the rows of a reading statement, asked again if the connection breaks."""
        again = True
        while True:
            with self._pool.connection() as connection:
                try:
                    return connection.execute(query, values, binary=True).fetchall()
                except psycopg.Error as error:
                    if not (again and connection.closed):
                        raise failure(self._url, error) from error
            again = False

    def _retried(self, write: Callable[[Connection], T]) -> T:
        """Runs statements that may lose races with other writers and that may be repeated."""
        deadline = time.monotonic() + self._pool.patience
        while True:
            try:
                with self._pool.connection(writing=True) as connection:
                    return write(connection)
            except psycopg.Error as error:
                if not isinstance(error, RETRIED) or time.monotonic() > deadline:
                    raise failure(self._url, error) from error
            time.sleep(random.uniform(0.001, 0.01))  # noqa: S311 - no secret


def _load(connection: Connection, rows: PackedObjects, times: tuple[int, int]) -> None:
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(_STAGE)
        with cursor.copy(_COPY_OBJECTS) as copy:
            copy.set_types(["int8", "int2", "bytea", "bytea"])
            for row in zip(rows.ordinals, rows.kinds, rows.ids, rows.data, strict=True):
                copy.write_row(row)
        with cursor.copy(_COPY_ENTRIES) as copy:
            copy.set_types(["bytea", "bytea"])
            for entry in zip(rows.entry_ids, rows.entries, strict=True):
                copy.write_row(entry)
        cursor.execute(_LOAD, times)


def _settings(row: Sequence[Any]) -> Settings:
    version, names, values = row[:3]
    return Settings(dict(zip(names, values, strict=True)), version)


def _without_objects(write: Write) -> Write:
    return Write(
        write.request, (), write.moves, write.settings, write.required, write.settings_version
    )
