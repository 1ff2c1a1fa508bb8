"""Between the values of the store's interface and the rows of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, LiteralString

from nessie_cli.store.codec import pack
from nessie_cli.store.postgres.parameters import Blobs, Numbers, Texts
from nessie_cli.store.records import PackedObject, StoredObject
from nessie_cli.store.rows import Row

Types = tuple[type[Texts | Blobs | Numbers], ...]
"""The types of the columns of a table."""

REFRESH_AFTER = 3600
"""The age in seconds from which an existing object that is written again becomes young.

A grace period is longer.
"""

# In the order of ids: two transactions that store the same objects wait for each other, but never
# in a circle. An object that exists is locked, so a sweep that is about to delete it does not.
PUT: LiteralString = f"""WITH stored AS (
        INSERT INTO objects (number, written, kind, id, data)
            SELECT (SELECT nextval('numbers') << 24) + o.ordinal, %s, o.kind, o.id, o.data
            FROM unnest(%s, %s, %s, %s) AS o (id, ordinal, kind, data)
            ON CONFLICT (id) DO UPDATE SET written = excluded.written
                WHERE objects.written < excluded.written - {REFRESH_AFTER}
            RETURNING id, number
    )
    INSERT INTO index_entries (number, entry, id)
        SELECT s.number, e.entry, s.id FROM unnest(%s, %s) AS e (id, entry)
        JOIN stored s ON s.id = e.id ON CONFLICT DO NOTHING"""  # noqa: S608 - fixed texts
"""Stores at most 2^24 objects with their index entries. Parameters: `put_values`."""

ADD_ANCHORS = """INSERT INTO anchors (name, digest, check_sum) SELECT * FROM unnest(%s, %s, %s)
    ON CONFLICT (name) DO UPDATE SET digest = excluded.digest, check_sum = excluded.check_sum"""
ANCHOR_COLUMNS: Types = (Texts, Blobs, Numbers)


def packed(objects: Iterable[StoredObject]) -> list[PackedObject]:
    """Returns objects in their stored form."""
    return [
        PackedObject(one.id, one.kind, pack(one.id, one.kind, one.data), one.index)
        for one in objects
    ]


def put_values(now: int, objects: Iterable[PackedObject]) -> tuple[Any, ...]:
    """Returns the parameters of `PUT`. Numbers have the order of `objects`."""
    numbered: dict[bytes, tuple[int, PackedObject]] = {}
    for ordinal, one in enumerate(objects):
        numbered.setdefault(one.id, (ordinal, one))
    rows = [numbered[id_] for id_ in sorted(numbered)]
    entries = [(one.id, entry) for _, one in rows for entry in one.index]
    return (
        now,
        Blobs(one.id for _, one in rows),
        Numbers(ordinal for ordinal, _ in rows),
        Numbers(one.kind for _, one in rows),
        Blobs(one.packed for _, one in rows),
        Blobs(id_ for id_, _ in entries),
        Blobs(entry for _, entry in entries),
    )


def columns(types: Types, rows: Sequence[Row]) -> list[Texts | Blobs | Numbers]:
    """Returns rows, of which there is at least one, as parameters: a list for each column."""
    return [type_(column) for type_, column in zip(types, zip(*rows, strict=True), strict=True)]


def is_storable(*texts: str) -> bool:
    """Returns whether PostgreSQL can store texts: a NUL and half a surrogate pair it cannot."""
    try:
        return all(b"\0" not in text.encode() for text in texts)
    except UnicodeEncodeError:
        return False
