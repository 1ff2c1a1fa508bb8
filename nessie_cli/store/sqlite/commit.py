"""The statements of commits to a SQLite store: read requirements, apply decisions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

import apsw

from nessie_cli.store.chain import chain_of_setting, log_rows
from nessie_cli.store.codec import pack
from nessie_cli.store.decision import Decision, Needs
from nessie_cli.store.records import StoredObject, StoredReference
from nessie_cli.store.rows import (
    REFERENCE,
    REQUEST,
    check_types,
    reference_of,
    request_of,
    with_check,
)

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
    """Returns the rows to insert. Called before taking the write lock, to keep it short.

    Raises `InvalidInput` for an object that is too large for a store.
    """
    return [(one.id, one.kind, now, pack(one.id, one.kind, one.data)) for one in objects]


def put(cursor: apsw.Cursor, rows: Sequence[ObjectRow], objects: Sequence[StoredObject]) -> None:
    """Writes the packed rows of objects, and their index entries."""
    connection = cursor.connection
    before = connection.total_changes()
    cursor.executemany(_PUT, rows)
    if connection.total_changes() - before < len(rows):
        # Some exist. Checking that here is faster than a statement that does both.
        cursor.executemany(_REFRESH, [(id_, written, REFRESH_AFTER) for id_, _, written, _ in rows])
    cursor.executemany(_INDEX, [(entry, one.id) for one in objects for entry in one.index])


class State(NamedTuple):
    """The state for every commit: settings version, last reflog number, any leases."""

    settings_version: int
    last_number: int
    leases: bool


def state(cursor: apsw.Cursor) -> State:
    """Reads the state in one statement, inside the transaction."""
    rows: list[tuple[int | None, int | None, int]] = cursor.execute(_STATE).fetchall()  # type: ignore[assignment]
    version, number, leases = rows[0]
    check_types("settings", (version or 0,), (int,))
    return State(version or 0, number or 0, bool(leases))


def present(
    cursor: apsw.Cursor, needs: Needs, settings_version: int
) -> tuple[Decision, dict[str, bytes]]:
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
    decision = Decision(
        references,
        {request.id: request for request in requests},
        {id_ for id_ in needs.objects if cursor.execute(_EXISTS, (id_,)).fetchall()},
        settings_version,
    )
    return decision, newest


def apply(
    cursor: apsw.Cursor,
    before: dict[str, StoredReference | None],
    decided: Decision,
    newest: dict[str, bytes],
    last_number: int,
) -> None:
    """Writes everything but objects.

    `before` are the references before the first decision, `newest` the digests of their newest
    entries.
    """
    done = decided.done
    moves = [move for write in done for move in write.moves]
    if moves:
        names = dict.fromkeys(move.name for move in moves)
        newest = {name: newest.get(name) or _newest(cursor, name) for name in names}
        cursor.executemany(LOG, log_rows(count(last_number + 1), moves, newest))
        for name in names:
            _move(cursor, name, before[name], decided.references[name], newest[name])
    if requests := [one.request for one in done if one.records_request]:
        cursor.executemany(
            RECORD,
            [with_check("requests", r.id, r.caller, r.digest, r.result, r.time) for r in requests],
        )
    changes = [write.settings for write in done if write.settings]
    for version, settings in enumerate(changes, decided.settings_version - len(changes) + 1):
        for name, value in settings.items():
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
    row = with_check("refs", name, after.kind, after.target, newest)
    if before is not None and before.kind == after.kind:
        cursor.execute(_MOVE, (name, *row[2:]))
    else:
        cursor.execute(CREATE, row)
