"""Request ids: a change that is submitted twice happens once.

A client that lost an answer submits the same change again under the same id. The store commits an
id at most once. It records the caller, a digest of the change, and the moves from which a
repetition is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from re import fullmatch
from typing import TYPE_CHECKING, Any

from msgspec import MsgspecError, Struct, json, msgpack, structs

from nessie_cli.errors import DamagedObject, InvalidInput, NessieError
from nessie_cli.model import (
    NO_ANCESTOR,
    SETTING_PREFIX,
    Reference,
    ReferenceType,
    ReflogType,
)
from nessie_cli.repository.changes import Change, Merge
from nessie_cli.revisions import parse
from nessie_cli.store.base import View
from nessie_cli.store.records import Move, RequestRecord

if TYPE_CHECKING:
    from nessie_cli.kernel.committing import OperationBatch

_DIGEST = 16
_TIME_DIGITS = 14
_MADE_UP = r"[0-9a-f]{26}"
"""Ids of writes without a client's request id. They begin with the time in microseconds."""
_CLOCK_ERROR = 60_000_000
"""Microseconds by which the times of two reflog entries may be out of order."""
_PAGE = 1000
_encode = msgpack.Encoder(enc_hook=str, order="deterministic").encode


class RecordedMove(Struct, frozen=True, array_like=True):
    """A reference that a request moved."""

    name: str
    kind: ReferenceType
    before: bytes | None
    after: bytes | None


class Recorded(Struct, frozen=True, array_like=True):
    """The effect of a request: its verb, the moved references, and the replaced settings."""

    operation: str
    moves: tuple[RecordedMove, ...] = ()
    settings: Mapping[str, str | None] = {}


_decode = msgpack.Decoder(Recorded).decode
_decode_values = json.Decoder(tuple[str | None, str | None]).decode


def encode_result(done: Recorded) -> bytes:
    """Encodes the effect of a request for the store. `recorded` decodes it."""
    return msgpack.encode(done)


def digest(change: Change[Any]) -> bytes:
    """Returns a digest of a change without operations, which distinguishes uses of a request id.

    A source of a merge counts by name if it has one, because it may move between two submissions.
    """
    if isinstance(change, Merge):
        spec = parse(change.source) if isinstance(change.source, str) else change.source
        change = structs.replace(change, source=spec.name or str(change.source))
    full: bytes = _hasher((type(change).__name__, change)).digest()
    return full[:_DIGEST]


def digest_of_batch(branch: str, about: Sequence[Any], batch: OperationBatch) -> bytes:
    """Returns the digest of a commit: branch, metadata, and operations in their order."""
    hasher = _hasher(("Commit", branch, about))
    for item in batch.changes.items():
        hasher.update(_encode(item))
    full: bytes = hasher.digest()
    return full[:_DIGEST]


def find_request(view: View, id_: str) -> RequestRecord | None:
    """Returns the record of a committed request, or None.

    A store does not record the generated id of a move: the reflog has it, from its time on.
    """
    recorded_request = view.request(id_)
    if recorded_request is not None or not fullmatch(_MADE_UP, id_):
        return recorded_request
    for move in _moves_since(view, int(id_[:_TIME_DIGITS], 16)):
        if move.request_id == id_:
            return RequestRecord(id_, "", b"", b"", move.time)
    return None


def _moves_since(view: View, time: int) -> Iterator[Move]:
    """Yields all moves since a time in microseconds, and some before it, newest first."""
    before: int | None = None
    while rows := view.reflog(before=before, limit=_PAGE):
        yield from (row.move for row in rows)
        before = rows[-1].number
        if rows[-1].move.time < time - _CLOCK_ERROR:
            return


def recorded(view: View, request: RequestRecord) -> Recorded:
    """Returns the effect of a committed request. Without a recorded result, reads the reflog.

    Raises `DamagedObject`.
    """
    if request.result:
        return result_of_request(request)
    moves_since = _moves_since(view, request.time)
    rows = [move for move in moves_since if move.request_id == request.id][::-1]
    moves = tuple(
        RecordedMove(move.name, ReferenceType(move.kind), move.before, move.after)
        for move in rows
        if move.kind != ReflogType.SETTING
    )
    settings = {
        move.name.removeprefix(SETTING_PREFIX): values_of(move)[0]
        for move in rows
        if move.kind == ReflogType.SETTING
    }
    return Recorded(rows[-1].operation if rows else "", moves, settings)


def result_of_request(request: RequestRecord) -> Recorded:
    """Returns the recorded result of a request that has one. Raises `DamagedObject`."""
    try:
        return _decode(request.result)
    except (MsgspecError, UnicodeDecodeError) as error:
        raise DamagedObject(
            f"the result of request {request.id!r} cannot be decoded: {error}", hint="nessie fsck"
        ) from None


def values_of(move: Move) -> tuple[str | None, str | None]:
    """Returns the values of a setting before and after its change. Raises `DamagedObject`."""
    try:
        return _decode_values(move.message)
    except MsgspecError as error:
        raise DamagedObject(
            f"an entry of {move.name!r} in the reflog has no values: {error}", hint="nessie fsck"
        ) from None


def reference_of(done: Recorded) -> Reference:
    """Returns the reference that a recorded request moved.

    It is as it was afterwards, or as it was before it was deleted. A change of settings has a
    detached reference.
    """
    if not done.moves:
        return Reference(ReferenceType.DETACHED, "", NO_ANCESTOR)
    move = next((move_ for move_ in done.moves if move_.after is not None), done.moves[-1])
    target = move.before if move.after is None else move.after
    assert target is not None
    return Reference(ReferenceType(move.kind), move.name, target.hex())


def _hasher(first: Any) -> Any:
    # hashlib loads OpenSSL, which only writes with a request id need.
    from hashlib import sha256

    return sha256(_encode(first))


def reused(request: RequestRecord, caller: str, digest_: bytes) -> Callable[[], NessieError] | None:
    """Returns a function that creates the error if the request id was used for another request.

    Returns None if the request is the same.
    """
    if not request.digest or (request.caller == caller and request.digest == digest_):
        return None
    text = f"request id {request.id!r} was used for another request; use a new id for each request"
    return lambda: InvalidInput(text)
