"""Objects and moves to write, and a clock that tests set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from secrets import token_hex

from nessie_cli.store.base import Store
from nessie_cli.store.records import (
    Move,
    Outcome,
    RequestRecord,
    Requirement,
    Stale,
    StoredObject,
    StoredReference,
    Write,
)

VALUE, NODE, COMMIT = 1, 2, 3


class Clock:
    """Seconds since 1970, set by the test."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def id_of(text: str) -> bytes:
    return sha256(text.encode()).digest()


def an_object(text: str, kind: int = VALUE, size: int = 100) -> StoredObject:
    data = (text.encode() + b"-") * size
    return StoredObject(id_of(text), kind, data[:size])


def a_move(
    name: str,
    before: str | None,
    after: str | None,
    *,
    kind: str = "BRANCH",
    request_id: str = "",
    message: str = "",
) -> Move:
    def place(text: str | None) -> bytes | None:
        return None if text is None else id_of(text)

    return Move(
        name,
        kind,
        place(before),
        place(after),
        1_700_000_000_000_001,
        "somebody",
        "commit",
        message,
        request_id,
    )


def a_write(
    objects: Sequence[StoredObject] = (),
    moves: Sequence[Move] = (),
    settings: Mapping[str, str | None] | None = None,
    *,
    required: Sequence[bytes] = (),
    settings_version: int | None = None,
    request_id: str = "",
    result: bytes = b"result",
) -> Write:
    """Returns a write, under its own request id unless one is given."""
    request = RequestRecord(
        request_id or token_hex(8), "somebody", b"digest", result, 1_700_000_000_000_001
    )
    return Write(request, objects, moves, settings or {}, required, settings_version)


def create(name: str, at: str = "0", kind: str = "BRANCH") -> Write:
    return a_write(moves=[a_move(name, None, at, kind=kind)])


def commit(name: str, before: str, after: str, request_id: str = "") -> Write:
    """Returns the write of a typical commit: some objects, one move."""
    objects = [
        an_object(f"value {after}", VALUE),
        an_object(f"node {after}", NODE, 3000),
        an_object(after, COMMIT, 300),
    ]
    return a_write(
        objects, [a_move(name, before, after, request_id=request_id)], request_id=request_id
    )


def write(store: Store, one: Write) -> Outcome:
    [outcome] = store.commit([one])
    return outcome


def stale(name: str, current: StoredReference | None) -> Stale:
    return Stale(Requirement.REFERENCE, name, current)


def delete(store: Store, ids: Sequence[bytes], written_before: int) -> int:
    """Deletes objects that no move has reached; returns the number of deleted ones."""
    with store.maintenance() as maintenance:
        return maintenance.delete(
            ids, written_before, maintenance.last_move(), lambda _: ()
        ).objects
