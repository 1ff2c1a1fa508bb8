"""The chains of the reflog: each entry has the digest of the one before it.

They show rows that are missing, repeated or old.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from nessie_cli.store.codec import entry_digest
from nessie_cli.store.records import Move
from nessie_cli.store.rows import DamagedRow, Row, anchor_of, reference_of, reflog_row_of


def broken_chains(
    anchor_rows: Iterable[Row], reflog: Iterable[Row], references: Iterable[Row]
) -> Iterator[str]:
    """Yields a line for each reference whose reflog and row do not belong together.

    The rows are those of `ANCHOR`, of `REFLOG` in the order of their numbers, and of `REFERENCE`,
    of one state of the store. Memory grows with the number of names. Entries and references whose
    own check fails are reported by the reads of their tables, and are passed over here.
    """
    anchors: dict[str, bytes] = {}
    newest: dict[str, bytes] = {}
    broken: set[str] = set()
    for row in anchor_rows:
        try:
            name, digest = anchor_of(row)
        except DamagedRow as error:
            yield str(error)
            continue
        anchors[name] = digest
    for row in reflog:
        name, previous, digest = row[1], row[-2], row[-1]
        try:
            reflog_row_of(row)
        except DamagedRow:
            broken.add(name)
        if previous != newest.get(name, anchors.get(name, b"")) and name not in broken:
            broken.add(name)
            yield f"reference {name!r}: an entry is missing before number {row[0]} of its reflog"
        newest[name] = digest
    for row in references:
        try:
            name = reference_of(row).name
        except DamagedRow:
            continue
        if row[3] != newest.get(name, anchors.get(name, b"")) and name not in broken:
            yield f"reference {name!r} does not belong to the newest entry of its reflog"


def log_rows(
    numbers: Iterable[int], moves: Sequence[Move], newest: dict[str, bytes]
) -> list[tuple[Any, ...]]:
    """Returns the rows of moves with these numbers, each chained to the one before it.

    `numbers` may be longer than `moves`. `newest` has the digest of the newest entry of each
    reference, and is brought up to date.
    """
    rows = []
    for number, move in zip(numbers, moves, strict=False):
        fields = (
            number,
            move.name,
            move.kind,
            move.before,
            move.after,
            move.time,
            move.who,
            move.operation,
            move.message,
            move.request_id,
        )
        previous = newest.get(move.name, b"")
        newest[move.name] = digest = entry_digest(previous, *fields)
        rows.append((*fields, previous, digest))
    return rows
