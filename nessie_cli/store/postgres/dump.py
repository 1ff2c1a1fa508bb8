"""Dumping a store in PostgreSQL, by COPY in one REPEATABLE READ transaction."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from typing import TypeVar

import psycopg
from psycopg import sql

from nessie_cli.store.base import Dump
from nessie_cli.store.chain import broken_chains
from nessie_cli.store.dump import checked
from nessie_cli.store.postgres.errors import failure
from nessie_cli.store.postgres.pool import Connection, Pool
from nessie_cli.store.records import Counts, Move, PackedObject, Request, Settings, StoredReference
from nessie_cli.store.rows import (
    ANCHOR,
    REFERENCE,
    REFLOG,
    REQUEST,
    SETTINGS,
    DamagedRow,
    Row,
    reference_of,
    reflog_row_of,
    request_of,
    settings_of,
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

    def __init__(self, url: str, connection: Connection) -> None:
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
        """See `Dump`."""
        return Counts(sum(self._kinds.values()), *self._others)

    def settings(self) -> Settings:
        """See `Dump`."""
        try:
            return settings_of(self._setting_rows())
        except (psycopg.Error, DamagedRow) as error:
            raise failure(self._url, error) from error

    def references(self) -> Iterator[StoredReference]:
        """See `Dump`."""
        return self._read(reference_of, _REFERENCES, _REFERENCE_TYPES)

    def moves(self) -> Iterator[Move]:
        """See `Dump`."""
        return self._read(lambda row: reflog_row_of(row).move, _MOVES, _MOVE_TYPES)

    def requests(self) -> Iterator[Request]:
        """See `Dump`."""
        return self._read(request_of, _REQUESTS, _REQUEST_TYPES)

    def broken_chains(self) -> Iterator[str]:
        """See `chain.broken_chains`."""
        return broken_chains(
            self._copied(_ANCHORS, _ANCHOR_TYPES),
            self._copied(_MOVES, _MOVE_TYPES),
            self._copied(_REFERENCES, _REFERENCE_TYPES),
            self._setting_rows(),
        )

    def _setting_rows(self) -> Iterator[Row]:
        yield from self._connection.execute(SETTINGS).fetchall()

    def objects(self) -> Iterator[PackedObject]:
        """See `Dump`."""
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
