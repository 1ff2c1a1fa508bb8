"""Loading a dump into a store in PostgreSQL, by COPY in one transaction."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, LiteralString

import psycopg

from nessie_cli.errors import OutcomeUnknown, StoreUnavailable
from nessie_cli.model.progress import Progress
from nessie_cli.store.base import Dump
from nessie_cli.store.dump import Tally, batches, packed_size, require_empty, setting_rows
from nessie_cli.store.postgres.errors import failure, is_about_text, unstorable
from nessie_cli.store.postgres.pool import Connection, Pool
from nessie_cli.store.postgres.rows import ADD_ANCHORS, ANCHOR_COLUMNS, columns
from nessie_cli.store.records import Counts, Settings
from nessie_cli.store.rows import Row, log_rows, reference_row, request_row, with_check

# First `refs`, which every commit locks before the other tables: one that is under way ends, and
# the next ones wait here. They cannot wait for this transaction while it waits for them.
_LOCK = """SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0;
    LOCK TABLE refs, objects, index_entries, reflog, anchors, requests, settings IN EXCLUSIVE MODE"""
_COUNTS = """SELECT (SELECT count(*) FROM (SELECT FROM objects LIMIT 1) AS o),
    (SELECT count(*) FROM refs), (SELECT count(*) FROM reflog),
    (SELECT count(*) FROM requests), (SELECT coalesce(max(version), 0) FROM settings)"""
_CLEAR = "DELETE FROM refs; DELETE FROM reflog; DELETE FROM anchors; DELETE FROM requests"
_NUMBERS = "SELECT nextval('numbers') << 24"

_REFLOG_NUMBERS = "SELECT nextval('reflog_numbers') FROM generate_series(1, %s)"
_NAMES = "SELECT name FROM settings"
_SETTINGS = "COPY settings (name, value, version, newest, check_sum) FROM STDIN (FORMAT BINARY)"
_SETTING_TYPES = ("text", "text", "int8", "bytea", "int8")
_REFERENCES = "COPY refs (name, kind, target, newest, check_sum) FROM STDIN (FORMAT BINARY)"
_REFERENCE_TYPES = ("text", "text", "bytea", "bytea", "int8")
_REFLOG = """COPY reflog (number, name, kind, before, after, time, who, operation, message, request_id,
    previous, digest) FROM STDIN (FORMAT BINARY)"""
_MOVE_TYPES = ("int8", "text", "text", "bytea", "bytea", "int8", *["text"] * 4, "bytea", "bytea")
_REQUESTS = "COPY requests (id, caller, digest, result, time, check_sum) FROM STDIN (FORMAT BINARY)"
_REQUEST_TYPES = ("text", "text", "bytea", "bytea", "int8", "int8")
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
    connection.execute(_CLEAR, prepare=False)
    tally = Tally(dump.counts, progress)
    # What PostgreSQL may refuse, a text with a NUL, comes before the objects, which take longest.
    newest: dict[str, bytes] = {}
    for moves in batches(dump.moves()):
        numbers = (n for (n,) in connection.execute(_REFLOG_NUMBERS, (len(moves),)).fetchall())
        _copy(connection, _REFLOG, _MOVE_TYPES, log_rows(numbers, moves, newest))
        tally.add(len(moves))
    _write_settings(connection, dump.settings(), version, newest)
    for references in batches(dump.references()):
        rows = [reference_row(r, newest.get(r.name, b"")) for r in references]
        _copy(connection, _REFERENCES, _REFERENCE_TYPES, rows)
        # The entries of these have expired. An anchor shows that they exist.
        expired = [with_check("anchors", r.name, b"") for r in references if r.name not in newest]
        _add_anchors(connection, expired)
        tally.add(len(references))
    for requests in batches(dump.requests()):
        rows = list(map(request_row, requests))
        _copy(connection, _REQUESTS, _REQUEST_TYPES, rows)
        tally.add(len(requests))
    _write_objects(connection, dump, now, tally)


def _write_settings(
    connection: Connection, settings: Settings, replaced: int, newest: Mapping[str, bytes]
) -> None:
    names = [name for (name,) in connection.execute(_NAMES).fetchall()]
    connection.execute("DELETE FROM settings")
    rows, anchors = setting_rows(settings, names, replaced, newest)
    _copy(connection, _SETTINGS, _SETTING_TYPES, rows)
    _add_anchors(connection, anchors)


def _add_anchors(connection: Connection, anchors: Sequence[Row]) -> None:
    if anchors:
        connection.execute(ADD_ANCHORS, columns(ANCHOR_COLUMNS, anchors))


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
