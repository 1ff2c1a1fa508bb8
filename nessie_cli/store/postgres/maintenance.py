"""Maintenance of a store in PostgreSQL.

A deletion locks the table of references against moves first, and commits lock their references
before they touch objects. So the two wait for each other, but never in a circle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, LiteralString, TypeVar

import psycopg

from nessie_cli.store.base import Reached
from nessie_cli.store.postgres.errors import failure
from nessie_cli.store.postgres.parameters import Blobs
from nessie_cli.store.postgres.pool import Connection, Pool
from nessie_cli.store.postgres.rows import a_reflog_row
from nessie_cli.store.records import Deleted, Expired, ListedObject, StoreSize

T = TypeVar("T")

_BATCH = 5_000  # rows per statement and per transaction
_LAST = 2**63 - 1
_LAST_KIND = 2**15 - 1

_SIZE = """SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relkind = 'r'"""
_LIST = """SELECT id, kind, number, written, octet_length(data) FROM objects
    WHERE (kind, number) < (%s, %s) ORDER BY kind DESC, number DESC LIMIT %s"""
_LOCK = "LOCK TABLE refs IN EXCLUSIVE MODE"
# A commit takes the numbers of its moves after it has locked their references.
_LAST_MOVE = "SELECT coalesce(max(number), 0) FROM reflog"
_MOVES_SINCE = """SELECT number, name, kind, before, after, time, who, operation, message, request_id
    FROM reflog WHERE number > %s ORDER BY number DESC"""
_DELETE = """WITH old AS MATERIALIZED (
        SELECT id FROM objects WHERE id = ANY (%s) AND written < %s ORDER BY id FOR UPDATE
    ), gone AS (
        DELETE FROM objects WHERE id = ANY (ARRAY(SELECT id FROM old))
        RETURNING number, octet_length(data) AS size
    ), entries AS (
        DELETE FROM index_entries WHERE number IN (SELECT number FROM gone)
    )
    SELECT count(*), coalesce(sum(size), 0)::bigint FROM gone"""
_OLD_MOVES: LiteralString = """FROM reflog
    WHERE time < %s AND number <= %s AND number < (SELECT max(number) FROM reflog)
    AND NOT (message <> '' AND after IS NOT NULL
        AND number = (SELECT max(number) FROM reflog AS newer WHERE newer.name = reflog.name))"""
_COUNT_MOVES: LiteralString = f"SELECT count(*) {_OLD_MOVES}"
_DELETE_MOVES: LiteralString = f"""DELETE FROM reflog WHERE number IN (
        SELECT number {_OLD_MOVES} ORDER BY number LIMIT %s
    )"""  # noqa: S608 - fixed texts
_COUNT_REQUESTS = "SELECT count(*) FROM requests WHERE time < %s"
_DELETE_REQUESTS = """DELETE FROM requests WHERE id IN (
        SELECT id FROM requests WHERE time < %s LIMIT %s FOR UPDATE SKIP LOCKED
    )"""
_TABLES: LiteralString = "objects, index_entries, refs, reflog, requests, settings, store"


class PostgresMaintenance:
    """See `Maintenance`. Tombstones expire with the request ids."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def size(self) -> StoreSize:
        """See `Maintenance`. Includes indexes; free space is not known."""
        return StoreSize(self._rows(_SIZE, (self._pool.location.schema,))[0][0])

    def objects(self) -> Iterator[ListedObject]:
        """See `Maintenance`."""
        last = (_LAST_KIND, _LAST)
        while rows := self._rows(_LIST, (*last, _BATCH)):
            yield from (ListedObject(*row) for row in rows)
            last = rows[-1][1:3]

    def last_move(self) -> int:
        """See `Maintenance`. Waits for the commits that are under way."""

        def read(connection: Connection) -> int:
            with connection.transaction():
                connection.execute(_LOCK)
                return int(connection.execute(_LAST_MOVE).fetchall()[0][0])

        return self._write(read)

    def delete(
        self, ids: Sequence[bytes], written_before: int, since: int, reached: Reached
    ) -> Deleted:
        """See `Maintenance`."""

        def delete(connection: Connection) -> Deleted:
            with connection.transaction():
                connection.execute(_LOCK)
                rows = connection.execute(_MOVES_SINCE, (since,), binary=True).fetchall()
                kept = reached([a_reflog_row(row) for row in rows])
                doomed = Blobs(id_ for id_ in ids if id_ not in kept)
                return Deleted(*connection.execute(_DELETE, (doomed, written_before)).fetchall()[0])

        return self._write(delete)

    def expire(
        self, moves_before: int, requests_before: int, last_move: int, *, dry_run: bool = False
    ) -> Expired:
        """See `Maintenance`."""
        if dry_run:
            return Expired(
                self._count(_COUNT_MOVES, moves_before, last_move),
                self._count(_COUNT_REQUESTS, requests_before),
            )
        return Expired(
            self._delete_rows(_DELETE_MOVES, moves_before, last_move),
            self._delete_rows(_DELETE_REQUESTS, requests_before),
        )

    def _count(self, query: LiteralString, *limits: int) -> int:
        return int(self._rows(query, limits)[0][0])

    def _delete_rows(self, query: LiteralString, *limits: int) -> int:
        count = 0
        while gone := self._write(
            lambda connection: connection.execute(query, (*limits, _BATCH)).rowcount
        ):
            count += gone
        return count

    def compact(self, *, full: bool = False) -> None:
        """See `Maintenance`: VACUUM, which PostgreSQL also does by itself in time.

        `full` locks each table meanwhile.
        """
        options: LiteralString = "FULL, ANALYZE" if full else "ANALYZE"
        self._write(
            lambda connection: connection.execute(f"VACUUM ({options}) {_TABLES}", prepare=False)
        )

    def _rows(self, query: LiteralString, values: Sequence[object]) -> list[tuple[Any, ...]]:
        return self._write(
            lambda connection: connection.execute(query, values, binary=True).fetchall()
        )

    def _write(self, act: Callable[[Connection], T]) -> T:
        with self._pool.connection(writing=True, bounded=False) as connection:
            try:
                return act(connection)
            except psycopg.Error as error:
                raise failure(self._pool.location.url, error) from error
