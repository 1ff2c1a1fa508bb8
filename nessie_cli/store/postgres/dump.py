"""Dumps a store in PostgreSQL, and loads a dump into one, by COPY in one transaction each."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from typing import LiteralString, TypeVar

import psycopg
from psycopg import sql

from nessie_cli.errors import OutcomeUnknown, StoreUnavailable
from nessie_cli.model.progress import Progress
from nessie_cli.store.base import Dump
from nessie_cli.store.chain import broken_chains
from nessie_cli.store.dump import (
    LoadProgress,
    batches,
    checked,
    loaded_runs,
    packed_size,
    require_empty,
    setting_rows,
)
from nessie_cli.store.postgres.errors import failure, is_about_text, unstorable
from nessie_cli.store.postgres.pool import Pool, PostgresConnection
from nessie_cli.store.postgres.rows import ADD_ANCHORS, ANCHOR_COLUMNS, columns
from nessie_cli.store.postgres.schema import LATER_TABLES
from nessie_cli.store.records import (
    Counts,
    Move,
    PackedObject,
    RequestRecord,
    StoredReference,
    StoredRun,
    StoredSettings,
)
from nessie_cli.store.rows import (
    ANCHOR,
    REFERENCE,
    REFLOG,
    REQUEST,
    SETTINGS,
    DamagedRow,
    Row,
    log_rows,
    reference_of,
    reference_row,
    reflog_row_of,
    request_of,
    request_row,
    settings_of,
    with_check,
)

T = TypeVar("T")
Rows = Generator[Row, None, None]

# The consumer determines the time between two rows. Each table has an index in the order of
# its rows, so the server need not sort it, which would take room for all of it.
_BEGIN = """BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0;
    SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off"""
_KINDS = "SELECT kind, count(*) FROM objects GROUP BY kind ORDER BY kind"
_COUNTS = """SELECT (SELECT count(*) FROM refs), (SELECT count(*) FROM reflog),
    (SELECT count(*) FROM requests)"""
_REFERENCES = sql.SQL(f"{REFERENCE} ORDER BY name")
_REFERENCE_TYPES = ("text", "text", "bytea", "bytea", "int8")
_MOVES = sql.SQL(f"{REFLOG} ORDER BY number")
_MOVE_TYPES = ("int8", "text", "text", "bytea", "bytea", "int8", *["text"] * 4, "bytea", "bytea")
_REQUESTS = sql.SQL(f"{REQUEST} ORDER BY id")
_REQUEST_TYPES = ("text", "text", "bytea", "bytea", "int8", "int8")
_HAS_RUNS = "SELECT to_regclass('runs') IS NOT NULL"
_RUNS = sql.SQL("SELECT id, state, data, version FROM runs ORDER BY id")
_RUN_TYPES = ("text", "text", "bytea", "int8")
_ANCHORS = sql.SQL(ANCHOR)
_ANCHOR_TYPES = ("text", "bytea", "int8")
# The index by kind and number gives the objects of each kind in order, and the server merges them.
_OF_KIND = sql.SQL("(SELECT number, id, kind, data FROM objects WHERE kind = {} ORDER BY number)")
_OBJECTS = sql.SQL(
    """SELECT o.id, o.kind, o.data,
        ARRAY(SELECT e.entry FROM index_entries e WHERE e.number = o.number)
    FROM (SELECT * FROM ({}) AS k ORDER BY number) AS o"""
)


def open_dump(pool: Pool) -> AbstractContextManager[Dump]:
    """Opens the dump of a store, on a connection of its own that closing the store leaves open."""
    return _open(pool)


@contextmanager
def _open(pool: Pool) -> Iterator[PostgresDump]:
    with closing(pool.connect()) as connection:
        connection.longest_wait = None  # sorting a large table takes long
        dump = PostgresDump(pool.location.url, connection)
        try:
            yield dump
        finally:
            dump.close()


def verify_chains(pool: Pool) -> Iterator[str]:
    """Yields the problems of the reflog's chains."""
    with _open(pool) as dump:
        yield from (f"store {pool.location.url}: {line}" for line in dump.broken_chains())


class PostgresDump:
    """A `Dump` of a store in PostgreSQL: one transaction that only reads."""

    def __init__(self, url: str, connection: PostgresConnection) -> None:
        self._url = url
        self._connection = connection
        self._open: list[Rows] = []
        try:
            connection.execute(_BEGIN, prepare=False)
            self._kinds: dict[int, int] = dict(connection.execute(_KINDS).fetchall())
            self._others = connection.execute(_COUNTS).fetchall()[0]
        except psycopg.Error as error:
            raise failure(url, error) from error

    def close(self) -> None:
        """End the iterators that were not read to their end."""
        for rows in self._open:
            rows.close()

    @property
    def counts(self) -> Counts:
        """The number of rows of each iterator."""
        return Counts(sum(self._kinds.values()), *self._others)

    def settings(self) -> StoredSettings:
        """Returns all settings. Raises `DamagedObject` if their checksum fails."""
        try:
            return settings_of(self._setting_rows())
        except (psycopg.Error, DamagedRow) as error:
            raise failure(self._url, error) from error

    def references(self) -> Iterator[StoredReference]:
        """Returns all references."""
        return self._read(reference_of, _REFERENCES, _REFERENCE_TYPES)

    def moves(self) -> Iterator[Move]:
        """Returns the reflog, oldest first."""
        return self._read(lambda row: reflog_row_of(row).move, _MOVES, _MOVE_TYPES)

    def requests(self) -> Iterator[RequestRecord]:
        """Returns the committed requests."""
        return self._read(request_of, _REQUESTS, _REQUEST_TYPES)

    def runs(self) -> Iterator[StoredRun]:
        """Returns the records of pipelines' runs."""
        try:
            [[has_runs]] = self._connection.execute(_HAS_RUNS).fetchall()
        except psycopg.Error as error:
            raise failure(self._url, error) from error
        if not has_runs:
            return iter(())
        return (StoredRun(*row) for row in self._copied(_RUNS, _RUN_TYPES))

    def broken_chains(self) -> Iterator[str]:
        """Yields the problems of the chains of the reflog, one line each."""
        return broken_chains(
            self._copied(_ANCHORS, _ANCHOR_TYPES),
            self._copied(_MOVES, _MOVE_TYPES),
            self._copied(_REFERENCES, _REFERENCE_TYPES),
            self._setting_rows(),
        )

    def _setting_rows(self) -> Iterator[Row]:
        yield from self._connection.execute(SETTINGS).fetchall()

    def objects(self) -> Iterator[PackedObject]:
        """Yields all objects in the order of their numbers."""
        if not self._kinds:
            return iter(())
        rows = self._copied(self._objects_query(), ("bytea", "int2", "bytea", "bytea[]"))
        return (checked(self._url, *row) for row in rows)

    def _objects_query(self) -> sql.Composed:
        of_kinds = [_OF_KIND.format(sql.Literal(kind)) for kind in self._kinds]
        return _OBJECTS.format(sql.SQL(" UNION ALL ").join(of_kinds))

    def _read(self, make: Callable[[Row], T], query: sql.SQL, types: Sequence[str]) -> Iterator[T]:
        try:
            yield from map(make, self._copied(query, types))
        except DamagedRow as error:
            raise failure(self._url, error) from error

    def _copied(self, query: sql.SQL | sql.Composed, types: Sequence[str]) -> Rows:
        """Returns rows as the server sends them: neither side holds more than a few."""
        rows = self._copy(query, types)
        self._open.append(rows)
        return rows

    def _copy(self, query: sql.SQL | sql.Composed, types: Sequence[str]) -> Rows:
        statement = sql.SQL("COPY ({}) TO STDOUT (FORMAT BINARY)").format(query)
        try:
            with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
                copy.set_types(types)
                yield from copy.rows()
        except psycopg.Error as error:
            raise failure(self._url, error) from error


# -- loading ---------------------------------------------------------------------------------------

# First `refs`, which every commit locks before the other tables: one that is under way ends, and
# the next ones wait here. They cannot wait for this transaction while it waits for them.
_LOCK = """SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0;
    LOCK TABLE refs, objects, index_entries, reflog, anchors, requests, settings IN EXCLUSIVE MODE"""
_OCCUPIED = """SELECT (SELECT count(*) FROM (SELECT FROM objects LIMIT 1) AS o),
    (SELECT count(*) FROM refs), (SELECT count(*) FROM reflog),
    (SELECT count(*) FROM requests), (SELECT coalesce(max(version), 0) FROM settings)"""
_CLEAR = "DELETE FROM refs; DELETE FROM reflog; DELETE FROM anchors; DELETE FROM requests"
_NUMBERS = "SELECT nextval('numbers') << 24"

_REFLOG_NUMBERS = "SELECT nextval('reflog_numbers') FROM generate_series(1, %s)"
_NAMES = "SELECT name FROM settings"
_PUT_SETTINGS = "COPY settings (name, value, version, newest, check_sum) FROM STDIN (FORMAT BINARY)"
_SETTING_TYPES = ("text", "text", "int8", "bytea", "int8")
_PUT_REFERENCES = "COPY refs (name, kind, target, newest, check_sum) FROM STDIN (FORMAT BINARY)"
_PUT_REFLOG = """COPY reflog (number, name, kind, before, after, time, who, operation, message, request_id,
    previous, digest) FROM STDIN (FORMAT BINARY)"""
_PUT_REQUESTS = (
    "COPY requests (id, caller, digest, result, time, check_sum) FROM STDIN (FORMAT BINARY)"
)
_PUT_RUNS = "COPY runs (id, state, data, version) FROM STDIN (FORMAT BINARY)"
_PUT_OBJECTS = "COPY objects (number, written, kind, id, data) FROM STDIN (FORMAT BINARY)"
_PUT_ENTRIES = "COPY index_entries (number, entry, id) FROM STDIN (FORMAT BINARY)"

_PAUSE = 0.1  # seconds between two attempts to reach a server that is away


def load(pool: Pool, dump: Dump, now: int, progress: Progress | None) -> None:
    """Stores everything in a dump, in one transaction. Raises `StoreNotEmpty`."""
    url, transaction = pool.location.url, ""
    try:
        with (
            pool.connection(writing=True, bounded=False) as connection,
            connection.transaction(),
        ):
            _write(connection, url, dump, now, progress)
            [[transaction]] = connection.execute("SELECT pg_current_xact_id()::text").fetchall()
    except (psycopg.Error, UnicodeEncodeError) as error:
        if is_about_text(error):
            raise unstorable(url) from error
        if not (transaction and connection.closed and _was_committed(pool, transaction, error)):
            raise failure(url, error) from error


def _write(
    connection: PostgresConnection, url: str, dump: Dump, now: int, progress: Progress | None
) -> None:
    connection.execute(_LOCK, prepare=False)
    [[*counts, version]] = connection.execute(_OCCUPIED).fetchall()
    require_empty(url, Counts(*counts), version)
    connection.execute(_CLEAR, prepare=False)
    tally = LoadProgress(dump.counts, progress)
    # What PostgreSQL may refuse, a text with a NUL, comes before the objects, which take longest.
    newest: dict[str, bytes] = {}
    for moves in batches(dump.moves()):
        numbers = (n for (n,) in connection.execute(_REFLOG_NUMBERS, (len(moves),)).fetchall())
        _copy(connection, _PUT_REFLOG, _MOVE_TYPES, log_rows(numbers, moves, newest))
        tally.add(len(moves))
    _write_settings(connection, dump.settings(), version, newest)
    for references in batches(dump.references()):
        rows = [reference_row(r, newest.get(r.name, b"")) for r in references]
        _copy(connection, _PUT_REFERENCES, _REFERENCE_TYPES, rows)
        # The entries of these have expired. An anchor shows that they exist.
        expired = [with_check("anchors", r.name, b"") for r in references if r.name not in newest]
        _add_anchors(connection, expired)
        tally.add(len(references))
    for requests in batches(dump.requests()):
        rows = list(map(request_row, requests))
        _copy(connection, _PUT_REQUESTS, _REQUEST_TYPES, rows)
        tally.add(len(requests))
    _write_runs(connection, loaded_runs(dump.runs()))
    _write_objects(connection, dump, now, tally)


def _write_settings(
    connection: PostgresConnection,
    settings: StoredSettings,
    replaced: int,
    newest: Mapping[str, bytes],
) -> None:
    names = [name for (name,) in connection.execute(_NAMES).fetchall()]
    connection.execute("DELETE FROM settings")
    rows, anchors = setting_rows(settings, names, replaced, newest)
    _copy(connection, _PUT_SETTINGS, _SETTING_TYPES, rows)
    _add_anchors(connection, anchors)


def _write_runs(connection: PostgresConnection, runs: Iterator[StoredRun]) -> None:
    connection.execute(LATER_TABLES["runs"].read_bytes())
    connection.execute("DELETE FROM runs")
    rows = ((run.id, run.state, run.data, run.version) for run in runs)
    _copy(connection, _PUT_RUNS, _RUN_TYPES, rows)


def _add_anchors(connection: PostgresConnection, anchors: Sequence[Row]) -> None:
    if anchors:
        connection.execute(ADD_ANCHORS, columns(ANCHOR_COLUMNS, anchors))


def _write_objects(
    connection: PostgresConnection, dump: Dump, now: int, tally: LoadProgress
) -> None:
    for objects in batches(dump.objects(), packed_size):
        numbered = list(enumerate(objects, _first_number(connection)))
        rows = ((n, now, stored.kind, stored.id, stored.packed) for n, stored in numbered)
        _copy(connection, _PUT_OBJECTS, ("int8", "int8", "int2", "bytea", "bytea"), rows)
        entries = ((n, entry, stored.id) for n, stored in numbered for entry in stored.index)
        _copy(connection, _PUT_ENTRIES, ("int8", "bytea", "bytea"), entries)
        tally.add(len(objects))


def _first_number(connection: PostgresConnection) -> int:
    """Returns the first of 2^24 numbers, which are more than a batch has rows."""
    [[number]] = connection.execute(_NUMBERS).fetchall()
    return int(number)


def _copy(
    connection: PostgresConnection,
    statement: LiteralString,
    types: Sequence[str],
    rows: Iterable[Row],
) -> None:
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)


def _was_committed(pool: Pool, transaction: str, cause: Exception) -> bool:
    """Returns whether a transaction is durable after the connection was lost during its COMMIT."""
    deadline = time.monotonic() + pool.patience
    while True:
        try:
            with pool.connection() as connection:
                query = "SELECT pg_xact_status(%s::xid8)"
                [[status]] = connection.execute(query, (transaction,)).fetchall()
        except (psycopg.Error, StoreUnavailable):
            status = None
        if status in ("committed", "aborted"):
            return bool(status == "committed")
        if pool.closed or time.monotonic() > deadline:
            message = (
                "the connection was lost at the end of a load; load again, which is refused if it"
                " happened"
            )
            raise OutcomeUnknown(f"store {pool.location.url}: {message}", "") from cause
        time.sleep(_PAUSE)
