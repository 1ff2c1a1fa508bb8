"""Verifies the chains of the reflog: rows that are missing, repeated or old."""

from __future__ import annotations

from collections.abc import Iterator

import apsw

from nessie_cli.store.sqlite.rows import (
    REFERENCE,
    REFLOG,
    DamagedRow,
    anchor_of,
    reference_of,
    reflog_row_of,
)


def broken_chains(cursor: apsw.Cursor) -> Iterator[str]:
    """Yields a line for each reference whose reflog and row do not belong together.

    Runs inside a transaction. Memory grows with the number of names. Rows whose own check fails are
    reported by the reads of their tables, and are passed over here.
    """
    anchors: dict[str, bytes] = {}
    newest: dict[str, bytes] = {}
    broken: set[str] = set()
    for row in cursor.execute("SELECT name, digest, check_sum FROM anchors"):
        try:
            name, digest = anchor_of(row)
        except DamagedRow as error:
            yield str(error)
            continue
        anchors[name] = digest
    for row in cursor.execute(f"{REFLOG} ORDER BY number"):
        name, previous, digest = row[1], row[-2], row[-1]
        try:
            reflog_row_of(row)
        except DamagedRow:
            broken.add(name)
        if previous != newest.get(name, anchors.get(name, b"")) and name not in broken:
            broken.add(name)
            yield f"reference {name!r}: an entry is missing before number {row[0]} of its reflog"
        newest[name] = digest
    for row in cursor.execute(REFERENCE):
        try:
            name = reference_of(row).name
        except DamagedRow:
            continue
        if row[3] != newest.get(name, anchors.get(name, b"")) and name not in broken:
            yield f"reference {name!r} does not belong to the newest entry of its reflog"
