"""The store that many servers share: a schema in a PostgreSQL database.

Reads are single statements outside of transactions. `commit` takes two round trips and one wait for
the disk.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar

import psycopg

from nessie_cli.store.base import MOVES_TOGETHER, Dump
from nessie_cli.store.later_tables import RunRows, SessionRows
from nessie_cli.store.postgres.commit import Committer
from nessie_cli.store.postgres.errors import RETRIED, failure
from nessie_cli.store.postgres.later_tables import PostgresLaterTable
from nessie_cli.store.postgres.lease import Leases
from nessie_cli.store.postgres.location import Location, parse_location
from nessie_cli.store.postgres.maintenance import PostgresMaintenance
from nessie_cli.store.postgres.pool import PATIENCE, Pool, PostgresConnection
from nessie_cli.store.postgres.rows import PUT, Blobs, Texts, is_storable, packed, put_values
from nessie_cli.store.postgres.schema import check_schema, create_schema
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
    REFERENCE,
    REFLOG,
    REQUEST,
    SETTINGS,
    DamagedRow,
    Row,
    after_prefix,
    hex_range,
    object_of,
    objects_of,
    read_ahead_of,
    reference_of,
    reflog_row_of,
    request_of,
    settings_of,
)

if TYPE_CHECKING:
    from nessie_cli.model.progress import Progress

T = TypeVar("T")

_BATCH = 5_000  # objects per transaction of `put`
_BATCH_BYTES = 16 << 20
_LARGE = 16 << 20  # bytes of objects that one call of `commit` sends together with its writes
_SCAN = 500  # rows per statement of a scan
_LAST = 2**63 - 1
_FIRST_SHARE = 2 / 3  # of the patience: how long a read waits on its first connection

_GET = "SELECT id, kind, data FROM objects WHERE id = ANY (%s)"
_GET_SOME = """SELECT id, kind, data FROM (
        SELECT id, kind, data, sum(octet_length(data)) OVER (ORDER BY place)
            - octet_length(data) AS before
        FROM unnest(%s) WITH ORDINALITY AS given (id, place) JOIN objects USING (id)
    ) AS sized WHERE before <= %s ORDER BY before"""
_BEFORE = """SELECT id, kind, data FROM objects
    WHERE kind = %s AND number <= (SELECT number FROM objects WHERE id = %s)
    ORDER BY number DESC LIMIT %s"""
_IDS = "SELECT id FROM objects WHERE id BETWEEN %s AND %s AND kind = %s ORDER BY id LIMIT %s"
_INDEXED = """SELECT number, id FROM index_entries WHERE entry = %s AND number < %s
    ORDER BY number DESC LIMIT %s"""
_SCAN_OBJECTS = """SELECT id, kind, data, number FROM objects
    WHERE (kind, number) > (%s, %s) AND kind <= %s ORDER BY kind, number LIMIT %s"""
_SCAN_INDEX = """SELECT entry, number, id FROM index_entries WHERE (entry, number) > (%s, %s)
    ORDER BY entry, number LIMIT %s"""
_SNAPSHOT = "SELECT pg_current_snapshot()::text"
_SIZED: tuple[LiteralString, LiteralString] = (
    """SELECT * FROM (
        SELECT *, sum(octet_length(message)) OVER (ORDER BY number DESC)
            - octet_length(message) AS ahead FROM (""",
    " ORDER BY number DESC LIMIT %s) AS newest) AS sized WHERE ahead <= %s ORDER BY number DESC",
)
_MOVES: LiteralString = f"{_SIZED[0]}{REFLOG} WHERE number < %s{_SIZED[1]}"
_MOVES_OF: LiteralString = f"{_SIZED[0]}{REFLOG} WHERE number < %s AND name = %s{_SIZED[1]}"
_NEWEST_MOVES: LiteralString = f"""{REFLOG} WHERE number IN (
        SELECT (SELECT max(number) FROM reflog WHERE reflog.name = n.name)
        FROM unnest(%s) AS n (name)
    )"""  # noqa: S608 - fixed texts
# The checksums distinguish the settings of a server that lost changes, as after a failover.
_BASES = """WITH settings_state (digest) AS (
        SELECT coalesce(max(version), 0) || '/' || coalesce(sum(check_sum), 0) FROM settings
    )
    SELECT 1, name, kind, target, newest, check_sum, NULL FROM refs WHERE name = ANY (%s)
    UNION ALL SELECT 2, id, caller, digest, result, time, check_sum FROM requests
        WHERE id = ANY (%s)
    UNION ALL SELECT 3, name, value, newest, NULL, version, check_sum FROM settings
        WHERE (SELECT digest FROM settings_state) <> %s
    UNION ALL SELECT 0, digest, NULL, NULL, NULL, NULL, NULL FROM settings_state"""


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

    def create(connection: PostgresConnection) -> None:
        create_schema(connection, location)
        check_schema(connection, location)

    return _open(location, clock, patience, create)


def _open(
    location: Location,
    clock: Callable[[], float],
    patience: float,
    prepare: Callable[[PostgresConnection], object],
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
        self._settings = ("", StoredSettings())

    @property
    def url(self) -> str:
        """The URL that opens this store again. One with a password is refused, so it has none."""
        return self._url

    # -- objects --

    def get(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """Returns the bytes of objects."""
        if not ids:
            return {}
        return objects_of(self._url, self._rows(_GET, (Blobs(ids),)))

    def get_some(self, ids: Sequence[bytes], most_bytes: int) -> dict[bytes, bytes]:
        """Returns the first objects. PostgreSQL knows the sizes of packed objects only."""
        objects: dict[bytes, bytes] = {}
        size = 0
        for row in self._rows(_GET_SOME, (Blobs(ids), most_bytes)) if ids else ():
            objects.update(row_objects := objects_of(self._url, [row]))
            size += sum(map(len, row_objects.values()))
            if size >= most_bytes:
                break
        return objects

    def written_before(self, id_: bytes, kind: int, limit: int) -> dict[bytes, bytes]:
        """Reads ahead: returns an object and those of its kind written before it."""
        return read_ahead_of(self._rows(_BEFORE, (kind, id_, limit + 1)))

    def find_ids(self, kind: int, prefix: str, limit: int) -> list[bytes]:
        """Returns ids by prefix. Costs the objects of any kind with this prefix."""
        if (ids := hex_range(prefix)) is None:
            return []
        return [id_ for (id_,) in self._rows(_IDS, (*ids, kind, limit))]

    def find_indexed(self, entry: bytes, before: int | None, limit: int) -> list[tuple[int, bytes]]:
        """Returns objects with an index entry, highest number first."""
        before = _LAST if before is None else before
        return [(number, id_) for number, id_ in self._rows(_INDEXED, (entry, before, limit))]

    def scan(self, kind: int | None = None) -> Iterator[StoredObject | DamagedId]:
        """Yields objects by kind, in the order of writing, some hundred per statement."""
        last, end = ((-1, -1), _LAST) if kind is None else ((kind, -1), kind)
        while rows := self._rows(_SCAN_OBJECTS, (*last, end, _SCAN)):
            yield from (object_of(row[:3]) for row in rows)
            last = (rows[-1][1], rows[-1][3])

    def verify_file(self) -> Iterator[str]:
        """Yields the problems of the chains of the reflog.

        PostgreSQL verifies its own pages, if data checksums are enabled.
        """
        from nessie_cli.store.postgres.dump import verify_chains

        return verify_chains(self._pool)

    def scan_index(self) -> Iterator[tuple[bytes, bytes]]:
        """Yields every index entry with the id of its object."""
        last: tuple[bytes, int] = (b"", -_LAST)
        while rows := self._rows(_SCAN_INDEX, (*last, _SCAN)):
            yield from ((entry, id_) for entry, _, id_ in rows)
            last = rows[-1][:2]

    def count(self) -> int:
        """Returns the number of objects."""
        return int(self._rows("SELECT count(*) FROM objects")[0][0])

    def put(self, objects: Iterable[StoredObject]) -> None:
        """Stores objects. Each batch is a transaction: if one fails, those before are stored."""
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
        values = put_values(int(self._clock()), packed(objects))
        self._retried(lambda connection: connection.execute(PUT, values))

    def maintenance(self) -> AbstractContextManager[PostgresMaintenance]:
        """Opens the maintenance.

        The grace period for objects must be longer than `REFRESH_AFTER`.
        """
        return nullcontext(PostgresMaintenance(self._pool))

    # -- references, reflog, settings, requests --

    def reference(self, name: str) -> StoredReference | None:
        """Returns a reference, or None."""
        if not is_storable(name):
            return None
        return next(iter(self._read(reference_of, f"{REFERENCE} WHERE name = %s", (name,))), None)

    def references(
        self, kind: str | None = None, prefix: str = "", start: str = "", limit: int | None = None
    ) -> list[StoredReference]:
        """Returns references in the order of their names."""
        if not is_storable(prefix, start, kind or ""):
            return []
        query: LiteralString = f"{REFERENCE} WHERE name >= %s"
        values: list[object] = [max(prefix, start)]
        if (end := after_prefix(prefix)) is not None:
            query += " AND name < %s"
            values.append(end)
        if kind is not None:
            query += " AND kind = %s"
            values.append(kind)
        return self._read(reference_of, query + " ORDER BY name LIMIT %s", (*values, limit))

    def reflog(
        self, name: str | None = None, before: int | None = None, limit: int | None = None
    ) -> list[ReflogRow]:
        """Returns moves, newest first."""
        values: list[object] = [_LAST if before is None else before]
        if name is not None:
            if not is_storable(name):
                return []
            values.append(name)
        query = _MOVES if name is None else _MOVES_OF
        rows = self._rows(query, (*values, limit, MOVES_TOGETHER))
        return self._checked(lambda rows: [reflog_row_of(row[:-1]) for row in rows], rows)

    def newest_moves(self, names: Sequence[str]) -> list[ReflogRow]:
        """Returns the newest move of each reference, unordered."""
        storable = Texts(name for name in names if is_storable(name))
        return self._read(reflog_row_of, _NEWEST_MOVES, (storable,))

    def settings(self) -> StoredSettings:
        """Returns all settings."""
        return self._checked(settings_of, self._rows(SETTINGS))

    def request(self, id_: str) -> RequestRecord | None:
        """Returns the request of an id, or None."""
        if not is_storable(id_):
            return None
        return next(iter(self._read(request_of, f"{REQUEST} WHERE id = %s", (id_,))), None)

    def basis(self, name: str, request_id: str) -> Basis:
        """Returns the state with which a draft begins."""
        return self.bases([(name, request_id)])[0]

    def bases(self, pairs: Sequence[tuple[str, str]]) -> list[Basis]:
        """Returns `basis` for each name and request id, in one round trip.

        Settings are read only if they have changed since the last call.
        """
        names, ids = (
            Texts(text for text in texts if is_storable(text)) for texts in zip(*pairs, strict=True)
        )
        before = self._settings
        rows = self._rows(_BASES, (names, ids, before[0]))
        bases, self._settings = self._checked(lambda rows: _bases(pairs, rows, before), rows)
        return bases

    # -- writing --

    def commit(
        self, writes: Sequence[Write], *, lease: str = "", end_lease: bool = False
    ) -> list[Outcome]:
        """Decides writes in order.

        Objects of many megabytes are stored before, whatever the outcomes are.
        """
        if not writes:
            return []
        if sum(len(stored.data) for write in writes for stored in write.objects) > _LARGE:
            self.put(stored for write in writes for stored in write.objects)
            writes = [_without_objects(write) for write in writes]
        outcomes = self._committer.commit(writes, self._leases.held(lease), end_lease)
        if end_lease:
            self._leases.ended(lease)
        return outcomes

    def lease(self, name: str) -> AbstractContextManager[str]:
        """Waits for a lease, and yields its token."""
        return self._leases.hold(name)

    def dump(self) -> AbstractContextManager[Dump]:
        """Opens one consistent state of the store."""
        from nessie_cli.store.postgres.dump import open_dump

        return open_dump(self._pool)

    def load(self, dump: Dump, progress: Progress | None = None) -> None:
        """Stores everything in a dump, in one transaction."""
        from nessie_cli.store.postgres.dump import load

        load(self._pool, dump, int(self._clock()), progress)

    def change_counter(self) -> tuple[int, str] | None:
        """Returns a value that changes with every write, or None while a connection is replaced.

        Equal snapshots see the same transactions. Other databases on the server do not matter. The
        number of connections opened so far distinguishes a server that was restored or replaced by
        a standby. Raises `StoreUnavailable`.
        """
        opened = self._pool.opened
        [(snapshot,)] = self._rows(_SNAPSHOT)
        return (opened, snapshot) if opened == self._pool.opened else None

    def heads(self, names: Sequence[str]) -> list[StoredReference | None]:
        """Returns the reference of each name, in one round trip. Raises `StoreUnavailable`."""
        storable = Texts(name for name in names if is_storable(name))
        rows = self._read(reference_of, f"{REFERENCE} WHERE name = ANY (%s)", (storable,))
        references = {reference.name: reference for reference in rows}
        return [references.get(name) for name in names]

    @property
    def sessions(self) -> SessionRows:
        """The logins of browsers."""
        return SessionRows(PostgresLaterTable("sessions", self._rows, self._retried))

    @property
    def runs(self) -> RunRows:
        """The records of pipelines' runs."""
        return RunRows(PostgresLaterTable("runs", self._rows, self._retried))

    def close(self) -> None:
        """Closes the connections."""
        self._pool.close()

    # -- statements --

    def _rows(self, query: LiteralString, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Returns the rows of a reading statement, asked again if the connection breaks.

        A server may be silent on one connection only, so the first attempt leaves time for another.
        """
        start, again = time.monotonic(), True
        while True:
            until = start + self._pool.patience * (_FIRST_SHARE if again else 1)
            with self._pool.connection(until=until) as connection:
                try:
                    return connection.execute(query, values, binary=True).fetchall()
                except psycopg.Error as error:
                    if not (again and connection.closed):
                        raise failure(self._url, error) from error
            again = False

    def _read(
        self, make: Callable[[Row], T], query: LiteralString, values: Sequence[object]
    ) -> list[T]:
        rows = self._rows(query, values)
        return self._checked(lambda rows: [make(row) for row in rows], rows)

    def _checked(self, make: Callable[[list[Row]], T], rows: list[Row]) -> T:
        try:
            return make(rows)
        except DamagedRow as error:
            raise failure(self._url, error) from error

    def _retried(self, write: Callable[[PostgresConnection], T]) -> T:
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


def _bases(
    pairs: Sequence[tuple[str, str]], rows: Sequence[Row], before: tuple[str, StoredSettings]
) -> tuple[list[Basis], tuple[str, StoredSettings]]:
    """Returns the values of the rows of `_BASES`, and the settings with their digest."""
    of_table = {table: [row[1:] for row in rows if row[0] == table] for table in range(4)}
    references = {row[0]: reference_of(row[:5]) for row in of_table[1]}
    requests = {row[0]: request_of(row) for row in of_table[2]}
    digest, settings = of_table[0][0][0], before[1]
    if digest != before[0]:
        settings = settings_of(
            (name, value, version, newest, check)
            for name, value, newest, _, version, check in of_table[3]
        )
    bases = [Basis(references.get(name), settings, requests.get(id_)) for name, id_ in pairs]
    return bases, (digest, settings)


def _without_objects(write: Write) -> Write:
    return Write(
        write.request, (), write.moves, write.settings, write.required, write.settings_version
    )
