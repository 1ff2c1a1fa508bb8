"""Dumping a store in PostgreSQL, by COPY in one REPEATABLE READ transaction."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import psycopg
from psycopg import sql

from nessie_cli.store.base import Dump
from nessie_cli.store.dump import checked
from nessie_cli.store.postgres.errors import failure
from nessie_cli.store.postgres.pool import Connection, Pool
from nessie_cli.store.records import Counts, Move, PackedObject, Request, Settings, StoredReference

Rows = Generator[tuple[Any, ...], None, None]

# The consumer determines the time between two rows. Each table has an index in the order of
# its rows, so the server need not sort it, which would take room for all of it.
_BEGIN = """BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0;
    SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off"""
_KINDS = "SELECT kind, count(*) FROM objects GROUP BY kind ORDER BY kind"
_COUNTS = """SELECT (SELECT count(*) FROM refs), (SELECT count(*) FROM reflog),
    (SELECT count(*) FROM requests WHERE result IS NOT NULL)"""
_SETTINGS = "SELECT name, value FROM settings"
_REFERENCES = sql.SQL("SELECT name, kind, target FROM refs ORDER BY name")
_MOVES = sql.SQL(
    """SELECT name, kind, before, after, time, who, operation, message, request_id
    FROM reflog ORDER BY number"""
)
_REQUESTS = sql.SQL(
    """SELECT id, caller, digest, result, time FROM requests WHERE result IS NOT NULL ORDER BY id"""
)
# The index by kind and number gives the objects of each kind in order, and the server merges them.
_OF_KIND = sql.SQL("(SELECT number, id, kind, data FROM objects WHERE kind = {} ORDER BY number)")
_OBJECTS = sql.SQL(
    """SELECT o.id, o.kind, o.data,
        ARRAY(SELECT e.entry FROM index_entries e WHERE e.number = o.number)
    FROM (SELECT * FROM ({}) AS k ORDER BY number) AS o"""
)


@contextmanager
def open_dump(pool: Pool) -> Iterator[Dump]:
    """Opens the dump of a store, on a connection of its own that closing the store leaves open."""
    with closing(pool.connect()) as connection:
        connection.longest_wait = None  # sorting a large table takes long
        dump = PostgresDump(pool.location.url, connection)
        try:
            yield dump
        finally:
            dump.close()


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
            rows = self._connection.execute(_SETTINGS).fetchall()
            [[version]] = self._connection.execute("SELECT settings_version FROM store").fetchall()
        except psycopg.Error as error:
            raise failure(self._url, error) from error
        return Settings(dict(rows), version)

    def references(self) -> Iterator[StoredReference]:
        """See `Dump`."""
        rows = self._copied(_REFERENCES, ("text", "text", "bytea"))
        return (StoredReference(*row) for row in rows)

    def moves(self) -> Iterator[Move]:
        """See `Dump`."""
        types = ("text", "text", "bytea", "bytea", "int8", "text", "text", "text", "text")
        return (Move(*row) for row in self._copied(_MOVES, types))

    def requests(self) -> Iterator[Request]:
        """See `Dump`."""
        rows = self._copied(_REQUESTS, ("text", "text", "bytea", "bytea", "int8"))
        return (Request(*row) for row in rows)

    def objects(self) -> Iterator[PackedObject]:
        """See `Dump`."""
        if not self._kinds:
            return iter(())
        rows = self._copied(self._objects_query(), ("bytea", "int2", "bytea", "bytea[]"))
        return (checked(self._url, *row) for row in rows)

    def _objects_query(self) -> sql.Composed:
        of_kinds = [_OF_KIND.format(sql.Literal(kind)) for kind in self._kinds]
        return _OBJECTS.format(sql.SQL(" UNION ALL ").join(of_kinds))

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
