"""Between the values of the store's interface and the rows of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from nessie_cli.errors import DamagedObject
from nessie_cli.store.codec import pack, unpack
from nessie_cli.store.postgres.parameters import Blobs, Numbers
from nessie_cli.store.records import Move, ReflogRow, Request, StoredObject, StoredReference


class PackedObjects(Struct, frozen=True):
    """Objects as parameters of `put_1`: in the order of ids, each once."""

    ids: Blobs
    ordinals: Numbers
    kinds: Numbers
    data: Blobs
    entry_ids: Blobs
    entries: Blobs


def pack_objects(objects: Iterable[StoredObject]) -> PackedObjects:
    """Returns the rows of objects."""
    numbered: dict[bytes, tuple[int, StoredObject]] = {}
    for ordinal, stored in enumerate(objects):
        numbered.setdefault(stored.id, (ordinal, stored))
    rows = [numbered[id_] for id_ in sorted(numbered)]
    entries = [(one.id, entry) for _, one in rows for entry in one.index]
    return PackedObjects(
        Blobs(one.id for _, one in rows),
        Numbers(ordinal for ordinal, _ in rows),
        Numbers(one.kind for _, one in rows),
        Blobs(pack(one.id, one.kind, one.data, plain=one.plain) for _, one in rows),
        Blobs(id_ for id_, _ in entries),
        Blobs(entry for _, entry in entries),
    )


def unpack_objects(url: str, rows: Iterable[tuple[bytes, int, bytes]]) -> dict[bytes, bytes]:
    """Returns the bytes of objects; raises `DamagedObject`."""
    found = {}
    for id_, kind, blob in rows:
        try:
            found[id_] = unpack(id_, kind, blob)
        except ValueError as error:
            text = f"store {url}: object {id_.hex()} is damaged: {error}"
            raise DamagedObject(text, id_.hex()) from None
    return found


def a_reference(row: Sequence[Any]) -> StoredReference | None:
    """Returns the reference of a row (name, kind, target), or None if it has none."""
    return None if row[2] is None else StoredReference(*row)


def a_request(row: Sequence[Any]) -> Request | None:
    """Returns the request of a row (id, caller, digest, result, time); a tombstone is none."""
    return None if row[3] is None else Request(*row)


def a_reflog_row(row: Sequence[Any]) -> ReflogRow:
    """Returns the entry of a row of the reflog."""
    return ReflogRow(row[0], Move(*row[1:]))


def is_storable(*texts: str) -> bool:
    """Returns whether PostgreSQL can store texts: a NUL and half a surrogate pair it cannot."""
    try:
        return all(b"\0" not in text.encode() for text in texts)
    except UnicodeEncodeError:
        return False
