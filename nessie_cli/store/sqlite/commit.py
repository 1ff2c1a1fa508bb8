"""Commits to a SQLite store: reads what writes require, decides them, and applies them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import apsw

from nessie_cli.store.chain import chain_of_setting
from nessie_cli.store.records import (
    DONE,
    Needs,
    Outcome,
    StoredObject,
    StoredReference,
    Write,
    WriteDecision,
)
from nessie_cli.store.rows import (
    REFERENCE,
    REQUEST,
    check_types,
    log_rows,
    pack,
    reference_of,
    reference_row,
    request_of,
    request_row,
    with_check,
)
from nessie_cli.store.sqlite.lease import leased

REFRESH_AFTER = 3600
"""The age in seconds from which an existing object that is written again becomes young.

So most writes of existing objects change no page. The grace period of a sweep must be longer.
"""

ObjectRow = tuple[bytes, int, int, bytes]
"""Id, kind, time of the last write in seconds since 1970, packed bytes."""

_PUT = (
    "INSERT INTO objects (id, kind, written, packed) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO"
    " NOTHING"
)
_REFRESH = "UPDATE objects SET written = ?2 WHERE id = ?1 AND written < ?2 - ?3"
_INDEX = (
    "INSERT OR IGNORE INTO object_index (entry, object) SELECT ?, number FROM objects WHERE id = ?"
)
_STATE = (
    "SELECT (SELECT max(version) FROM settings), (SELECT max(number) FROM reflog), EXISTS (SELECT"
    " 1 FROM leases)"
)
_HAS_HAPPENED = (
    "SELECT 1 FROM requests WHERE id = ?1 UNION ALL SELECT 1 FROM reflog WHERE number > ?2 AND"
    " request_id = ?1"
)
_EXISTS = "SELECT 1 FROM objects WHERE id = ?"
_FIND_REFERENCE = f"{REFERENCE} WHERE name = ?"
_FIND_REQUEST = f"{REQUEST} WHERE id = ?"
# The index by kind stays untouched when a reference only moves.
_MOVE = "UPDATE refs SET target = ?2, newest = ?3, check_sum = ?4 WHERE name = ?1"
CREATE = (
    "INSERT OR REPLACE INTO refs (name, kind, target, newest, check_sum) VALUES (?, ?, ?, ?, ?)"
)
_DELETE = "DELETE FROM refs WHERE name = ?"
LOG = """INSERT INTO reflog
(number, name, kind, before, after, time, who, operation, message, request_id, previous, digest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_NEWEST = """SELECT coalesce((SELECT newest FROM refs WHERE name = ?1),
(SELECT digest FROM reflog WHERE name = ?1 ORDER BY number DESC LIMIT 1),
(SELECT digest FROM anchors WHERE name = ?1), x'')"""
ADD_ANCHOR = "INSERT OR REPLACE INTO anchors (name, digest, check_sum) VALUES (?, ?, ?)"
RECORD = (
    "INSERT INTO requests (id, caller, digest, result, time, check_sum) VALUES (?, ?, ?, ?, ?, ?)"
)
SET = (
    "INSERT OR REPLACE INTO settings (name, value, version, newest, check_sum) VALUES (?, ?, ?, ?,"
    " ?)"
)


def packed(objects: Sequence[StoredObject], now: int) -> list[ObjectRow]:
    """Returns the rows to insert.

    Raises `InvalidInput` for an object that is too large for a store.
    """
    return [
        (stored.id, stored.kind, now, pack(stored.id, stored.kind, stored.data))
        for stored in objects
    ]


def put(cursor: apsw.Cursor, rows: Sequence[ObjectRow], objects: Sequence[StoredObject]) -> None:
    """Writes the packed rows of objects, and their index entries."""
    connection = cursor.connection
    before = connection.total_changes()
    cursor.executemany(_PUT, rows)
    if connection.total_changes() - before < len(rows):
        # Some exist. Checking that here is faster than a statement that does both.
        cursor.executemany(_REFRESH, [(id_, written, REFRESH_AFTER) for id_, _, written, _ in rows])
    cursor.executemany(_INDEX, [(entry, stored.id) for stored in objects for entry in stored.index])


class SQLiteCommit:
    """Some writes, which one transaction decides and applies.

    If its COMMIT fails, `is_durable` tells in a later transaction whether it happened.
    """

    def __init__(self, writes: Sequence[Write], now: int) -> None:
        """Packs the objects, before the write lock is taken, to keep that short.

        Raises `InvalidInput` for an object that is too large for a store.
        """
        self._writes = writes
        self._rows = [packed(write.objects, now) for write in writes]
        self._needs = Needs(writes)
        self._last_number = 0
        self.outcomes: list[Outcome] = []
        self.request_id = ""
        """One of the ids that the transaction writes, if any."""

    def run(self, cursor: apsw.Cursor, lease: str | None) -> bool:
        """Decides and applies the writes. Returns False if another caller holds a lease.

        With `lease` None, leases are ignored.
        """
        rows: list[tuple[int | None, int | None, int]] = cursor.execute(_STATE).fetchall()  # type: ignore[assignment]
        settings_version, last_number, leases = rows[0]
        check_types("settings", (settings_version or 0,), (int,))
        self._last_number = last_number or 0
        if leases and lease is not None and leased(cursor, self._needs.references, lease):
            return False
        decision, newest = _read(cursor, self._needs, settings_version or 0)
        before = decision.references.copy()
        self.outcomes = [decision.decide(write) for write in self._writes]
        done = decision.done
        if done:
            self.request_id = next((write.request.id for write in done if write.request.id), "")
            objects = [
                row
                for each, outcome in zip(self._rows, self.outcomes, strict=True)
                if outcome is DONE
                for row in each
            ]
            put(cursor, objects, [stored for write in done for stored in write.objects])
            _apply(cursor, before, decision, newest, self._last_number)
        return True

    def is_durable(self, cursor: apsw.Cursor) -> bool:
        """Returns whether the transaction has written its request id, in either table."""
        return bool(cursor.execute(_HAS_HAPPENED, (self.request_id, self._last_number)).fetchall())


def _read(
    cursor: apsw.Cursor, needs: Needs, settings_version: int
) -> tuple[WriteDecision, dict[str, bytes]]:
    """Reads the state that deciding needs, inside the transaction that applies the outcome.

    Returns it with the digest of the newest entry of each reference that exists.
    """
    references: dict[str, StoredReference | None] = {}
    newest: dict[str, bytes] = {}
    for name in needs.references:
        row = cursor.execute(_FIND_REFERENCE, (name,)).fetchone()
        references[name] = None if row is None else reference_of(row)
        if row is not None:
            newest[name] = row[3]
    requests = [
        request_of(row) for id_ in needs.requests for row in cursor.execute(_FIND_REQUEST, (id_,))
    ]
    decision = WriteDecision(
        references,
        {request.id: request for request in requests},
        {id_ for id_ in needs.objects if cursor.execute(_EXISTS, (id_,)).fetchall()},
        settings_version,
    )
    return decision, newest


def _apply(
    cursor: apsw.Cursor,
    before: dict[str, StoredReference | None],
    decided: WriteDecision,
    newest: dict[str, bytes],
    last_number: int,
) -> None:
    """Writes everything but objects.

    `before` are the references before the first decision, `newest` the digests of their newest
    entries.
    """
    if moves := decided.moves:
        names = dict.fromkeys(move.name for move in moves)
        newest = {name: newest.get(name) or _newest(cursor, name) for name in names}
        cursor.executemany(LOG, log_rows(count(last_number + 1), moves, newest))
        for name in names:
            _move(cursor, name, before[name], decided.references[name], newest[name])
    if requests := decided.requests:
        cursor.executemany(RECORD, map(request_row, requests))
    for name, (value, version) in decided.settings.items():
        chain = chain_of_setting(name)
        newest_entry = _newest(cursor, chain)
        cursor.execute(SET, with_check("settings", name, value, version, newest_entry))
        if not newest_entry:
            # An anchor shows that the setting exists.
            cursor.execute(ADD_ANCHOR, with_check("anchors", chain, b""))


def _newest(cursor: apsw.Cursor, name: str) -> bytes:
    """Returns the digest of the newest entry of a reference; of one without entries, no bytes."""
    rows: list[tuple[bytes]] = cursor.execute(_NEWEST, (name,)).fetchall()  # type: ignore[assignment]
    return rows[0][0]


def _move(
    cursor: apsw.Cursor,
    name: str,
    before: StoredReference | None,
    after: StoredReference | None,
    newest: bytes,
) -> None:
    if after is None:
        cursor.execute(_DELETE, (name,))
        return
    row = reference_row(after, newest)
    if before is not None and before.kind == after.kind:
        cursor.execute(_MOVE, (name, *row[2:]))
    else:
        cursor.execute(CREATE, row)
