"""Loading a dump into a store in PostgreSQL, by COPY in one transaction."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, LiteralString

import psycopg

from nessie_cli.errors import OutcomeUnknown, StoreUnavailable
from nessie_cli.model.progress import Progress
from nessie_cli.store.base import Dump
from nessie_cli.store.dump import Tally, batches, loaded_version, packed_size, require_empty
from nessie_cli.store.postgres.errors import failure, is_about_text, unstorable
from nessie_cli.store.postgres.pool import Connection, Pool
from nessie_cli.store.records import Counts, Settings

# First `requests`, which every commit writes to before the other tables: one that is under way
# ends, and the next ones wait here. They cannot wait for this transaction while it waits for them.
_LOCK = """SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0;
    LOCK TABLE requests, refs, objects, index_entries, reflog, store, settings IN EXCLUSIVE MODE"""
_COUNTS = """SELECT (SELECT count(*) FROM (SELECT FROM objects LIMIT 1) AS o),
    (SELECT count(*) FROM refs), (SELECT count(*) FROM reflog),
    (SELECT count(*) FROM requests WHERE result IS NOT NULL), (SELECT settings_version FROM store)"""
_TOMBSTONES = "SELECT id, time, excluded FROM requests WHERE result IS NULL"
_CLEAR = "DELETE FROM settings; DELETE FROM refs; DELETE FROM reflog; DELETE FROM requests"
_BURY = "INSERT INTO requests (id, time, excluded) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
_NUMBERS = "SELECT nextval('numbers') << 24"

_SETTINGS = "COPY settings (name, value) FROM STDIN (FORMAT BINARY)"
_REFERENCES = "COPY refs (name, kind, target) FROM STDIN (FORMAT BINARY)"
_REFLOG = """COPY reflog (number, name, kind, before, after, time, who, operation, message, request_id)
    FROM STDIN (FORMAT BINARY)"""
_REQUESTS = "COPY requests (id, caller, digest, result, time) FROM STDIN (FORMAT BINARY)"
_OBJECTS = "COPY objects (number, written, kind, id, data) FROM STDIN (FORMAT BINARY)"
_ENTRIES = "COPY index_entries (number, entry, id) FROM STDIN (FORMAT BINARY)"

_PAUSE = 0.1  # seconds between two attempts to reach a server that is away


def load(pool: Pool, dump: Dump, now: int, progress: Progress | None) -> None:
    """See `Store.load`."""
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
    connection: Connection, url: str, dump: Dump, now: int, progress: Progress | None
) -> None:
    connection.execute(_LOCK, prepare=False)
    [[*counts, version]] = connection.execute(_COUNTS).fetchall()
    require_empty(url, Counts(*counts), version)
    tombstones = connection.execute(_TOMBSTONES).fetchall()
    connection.execute(_CLEAR, prepare=False)
    tally = Tally(dump.counts, progress)
    # What PostgreSQL may refuse, a text with a NUL, comes before the objects, which take longest.
    _write_settings(connection, dump.settings(), version)
    for references in batches(dump.references()):
        rows = ((one.name, one.kind, one.target) for one in references)
        _copy(connection, _REFERENCES, ("text", "text", "bytea"), rows)
        tally.add(len(references))
    _write_reflog(connection, dump, tally)
    for requests in batches(dump.requests()):
        values = ((one.id, one.caller, one.digest, one.result, one.time) for one in requests)
        _copy(connection, _REQUESTS, ("text", "text", "bytea", "bytea", "int8"), values)
        tally.add(len(requests))
    # An attempt that its client has given up stays excluded.
    for tombstone in tombstones:
        connection.execute(_BURY, tombstone)
    _write_objects(connection, dump, now, tally)


def _write_settings(connection: Connection, settings: Settings, replaced: int) -> None:
    version = loaded_version(settings.version, replaced)
    connection.execute("UPDATE store SET settings_version = %s", (version,))
    _copy(connection, _SETTINGS, ("text", "text"), settings.values.items())


def _write_reflog(connection: Connection, dump: Dump, tally: Tally) -> None:
    types = ("int8", "text", "text", "bytea", "bytea", "int8", "text", "text", "text", "text")
    for moves in batches(dump.moves()):
        numbered = enumerate(moves, _first_number(connection))
        rows = (
            (
                n,
                m.name,
                m.kind,
                m.before,
                m.after,
                m.time,
                m.who,
                m.operation,
                m.message,
                m.request_id,
            )
            for n, m in numbered
        )
        _copy(connection, _REFLOG, types, rows)
        tally.add(len(moves))


def _write_objects(connection: Connection, dump: Dump, now: int, tally: Tally) -> None:
    for objects in batches(dump.objects(), packed_size):
        numbered = list(enumerate(objects, _first_number(connection)))
        rows = ((n, now, one.kind, one.id, one.packed) for n, one in numbered)
        _copy(connection, _OBJECTS, ("int8", "int8", "int2", "bytea", "bytea"), rows)
        entries = ((n, entry, one.id) for n, one in numbered for entry in one.index)
        _copy(connection, _ENTRIES, ("int8", "bytea", "bytea"), entries)
        tally.add(len(objects))


def _first_number(connection: Connection) -> int:
    """Returns the first of 2^24 numbers, which are more than a batch has rows."""
    [[number]] = connection.execute(_NUMBERS).fetchall()
    return int(number)


def _copy(
    connection: Connection,
    statement: LiteralString,
    types: Sequence[str],
    rows: Iterable[tuple[Any, ...]],
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
