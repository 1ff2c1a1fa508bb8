"""Maintenance of a store in PostgreSQL.

A deletion locks the table of references against moves first, and commits lock their references
before they touch objects. So the two wait for each other, but never in a circle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, LiteralString, TypeVar

import psycopg

from nessie_cli.store.base import Reached
from nessie_cli.store.chain import Expiry
from nessie_cli.store.postgres.errors import failure
from nessie_cli.store.postgres.pool import Pool, PostgresConnection
from nessie_cli.store.postgres.rows import (
    ADD_ANCHORS,
    ANCHOR_COLUMNS,
    Blobs,
    Numbers,
    Texts,
    columns,
)
from nessie_cli.store.records import Deleted, Expired, ListedObject, StoreSize
from nessie_cli.store.rows import REFLOG, DamagedRow, reflog_row_of

T = TypeVar("T")

_BATCH = 5_000  # rows per statement and per transaction
_LAST = 2**63 - 1
_LAST_KIND = 2**15 - 1

_SIZE = """SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relkind = 'r'"""
_LIST = """SELECT id, kind, number, written, octet_length(data) FROM objects
    WHERE (kind, number) < (%s, %s) ORDER BY kind DESC, number DESC LIMIT %s"""
# A mark of what is reached may take long.
_LOCK = """SET LOCAL idle_in_transaction_session_timeout = 0;
    LOCK TABLE refs IN EXCLUSIVE MODE"""
# A commit takes the numbers of its moves after it has locked their references.
_LAST_MOVE = "SELECT coalesce(max(number), 0) FROM reflog"
_MOVES_SINCE: LiteralString = f"{REFLOG} WHERE number > %s ORDER BY number DESC"
_DELETE = """WITH old AS MATERIALIZED (
        SELECT id FROM objects WHERE id = ANY (%s) AND written < %s ORDER BY id FOR UPDATE
    ), gone AS (
        DELETE FROM objects WHERE id = ANY (ARRAY(SELECT id FROM old))
        RETURNING number, octet_length(data) AS size
    ), entries AS (
        DELETE FROM index_entries WHERE number IN (SELECT number FROM gone)
    )
    SELECT count(*), coalesce(sum(size), 0)::bigint FROM gone"""
_LOCK_ANCHORS = "LOCK TABLE anchors IN SHARE ROW EXCLUSIVE MODE"
_MOVES = """SELECT number, name, digest, after IS NULL, time < %s AND number <= %s
        AND NOT (message <> '' AND after IS NOT NULL
            AND number = (SELECT max(number) FROM reflog AS newer WHERE newer.name = reflog.name))
    FROM reflog WHERE number > %s AND number < (SELECT max(number) FROM reflog)
    ORDER BY number LIMIT %s"""
_DELETE_MOVES = "DELETE FROM reflog WHERE number = ANY (%s)"
_DELETE_ANCHORS = """DELETE FROM anchors WHERE name = ANY (%s)
    AND NOT EXISTS (SELECT 1 FROM reflog WHERE reflog.name = anchors.name)"""
_COUNT_REQUESTS = "SELECT count(*) FROM requests WHERE time < %s"
_DELETE_REQUESTS = """DELETE FROM requests WHERE id IN (
        SELECT id FROM requests WHERE time < %s LIMIT %s FOR UPDATE SKIP LOCKED
    )"""
_DELETE_ATTEMPTS = "DELETE FROM attempts WHERE time < %s"
_TABLES: LiteralString = (
    "objects, index_entries, refs, reflog, anchors, requests, settings, attempts, store"
)


class PostgresMaintenance:
    """Maintenance of a PostgreSQL store. Attempts expire with the request ids."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def size(self) -> StoreSize:
        """Returns the size of the store with its indexes. Free space is not known."""
        return StoreSize(self._rows(_SIZE, (self._pool.location.schema,))[0][0])

    def objects(self) -> Iterator[ListedObject]:
        """Yields every object by kind, the highest number of a kind first."""
        last = (_LAST_KIND, _LAST)
        while rows := self._rows(_LIST, (*last, _BATCH)):
            yield from (ListedObject(*row) for row in rows)
            last = rows[-1][1:3]

    def last_move(self) -> int:
        """Returns the highest number in the reflog. Waits for the commits that are under way."""

        def read(connection: PostgresConnection) -> int:
            with connection.transaction():
                connection.execute(_LOCK, prepare=False)
                return int(connection.execute(_LAST_MOVE).fetchall()[0][0])

        return self._write(read)

    def delete(
        self, ids: Sequence[bytes], written_before: int, since: int, reached: Reached
    ) -> Deleted:
        """Deletes objects in one transaction, during which no reference moves."""

        def delete(connection: PostgresConnection) -> Deleted:
            with connection.transaction():
                connection.execute(_LOCK, prepare=False)
                rows = connection.execute(_MOVES_SINCE, (since,), binary=True).fetchall()
                retained = reached([reflog_row_of(row) for row in rows])
                doomed = Blobs(id_ for id_ in ids if id_ not in retained)
                return Deleted(*connection.execute(_DELETE, (doomed, written_before)).fetchall()[0])

        return self._write(delete)

    def expire(
        self, moves_before: int, requests_before: int, last_move: int, *, dry_run: bool = False
    ) -> Expired:
        """Deletes old moves and request ids in batches, or only counts them."""
        moves = self._expire_moves(moves_before, last_move, dry_run=dry_run)
        if dry_run:
            return Expired(moves, int(self._rows(_COUNT_REQUESTS, (requests_before,))[0][0]))
        requests = 0
        while gone := self._rowcount(_DELETE_REQUESTS, (requests_before, _BATCH)):
            requests += gone
        self._rowcount(_DELETE_ATTEMPTS, (requests_before,))
        return Expired(moves, requests)

    def _expire_moves(self, before: int, last_move: int, *, dry_run: bool) -> int:
        """Deletes the oldest entries of each reference, and anchors the chain of the others.

        An entry stays if an older one of its reference stays.
        """
        expiry = Expiry()
        last, count = -1, 0

        def expire_batch(connection: PostgresConnection) -> int | None:
            """Returns the number of expired entries of the next batch, or None after the last."""
            nonlocal last
            with connection.transaction():
                if not dry_run:
                    # Two expiries at once could leave an old anchor.
                    connection.execute(_LOCK_ANCHORS)
                rows = connection.execute(_MOVES, (before, last_move, last, _BATCH)).fetchall()
                if not rows:
                    return None
                last = rows[-1][0]
                expired = expiry.expired(rows)
                if expired and not dry_run:
                    anchors, deleted = expiry.anchors(expired)
                    numbers = Numbers(row[0] for row in expired)
                    connection.execute(_DELETE_MOVES, (numbers,))
                    connection.execute(ADD_ANCHORS, columns(ANCHOR_COLUMNS, anchors))
                    connection.execute(_DELETE_ANCHORS, (Texts(deleted),))
                return len(expired)

        while (expired := self._write(expire_batch)) is not None:
            count += expired
        return count

    def _rowcount(self, query: LiteralString, values: Sequence[object]) -> int:
        return self._write(lambda connection: connection.execute(query, values).rowcount)

    def compact(self, *, full: bool = False) -> None:
        """Runs VACUUM, which PostgreSQL also does by itself in time.

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

    def _write(self, act: Callable[[PostgresConnection], T]) -> T:
        with self._pool.connection(writing=True, bounded=False) as connection:
            try:
                return act(connection)
            except (psycopg.Error, DamagedRow) as error:
                raise failure(self._pool.location.url, error) from error
