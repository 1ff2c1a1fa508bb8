"""Request ids: a change that is submitted twice happens once.

A client that lost an answer submits the same change again under the same id. The store commits an
id at most once. It records the caller, a digest of the change, and the moves from which a
repetition is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from re import fullmatch
from typing import TYPE_CHECKING, Any

from msgspec import MsgspecError, Struct, json, msgpack, structs

from nessie_cli.errors import DamagedObject, InvalidInput, NessieError
from nessie_cli.kernel.forms import encode_key
from nessie_cli.kernel.objects import Objects, Values
from nessie_cli.model import (
    NO_ANCESTOR,
    SETTING_PREFIX,
    ContentKey,
    Operation,
    Reference,
    ReferenceType,
    ReflogType,
)
from nessie_cli.model.progress import Progress
from nessie_cli.repository.changes import Change, Merge
from nessie_cli.repository.context import Context
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


class LargeMerge(Exception):
    """A merge or transplant has more changes than its submission allows."""


class ChangeSubmission:
    """One submission of one change, over all its drafts.

    `request_id` is the client's id, or None. New content ids stay the same over all drafts, and
    operations are read once. `digest` represents the request if a repetition may create other
    operations. `most_changes` is the most changes of a merge or transplant; without it, there is
    no limit.
    """

    def __init__(
        self,
        request_id: str | None = None,
        digest: bytes | None = None,
        *,
        most_changes: int | None = None,
    ) -> None:
        self.most_changes = most_changes
        self.given = request_id is not None
        self.digest = digest
        self._id = request_id
        self._content_ids: Mapping[bytes, bytes] = {}
        self._operations: Iterable[Operation] | None = None
        self._batch: OperationBatch | None = None
        self._values: Values = ({}, {})

    @property
    def request_id(self) -> str:
        """The client's request id, or an empty text."""
        return self._id if self.given and self._id is not None else ""

    def repetition(self) -> ChangeSubmission:
        """Returns the submission of the same change for drafting its recorded answer."""
        return ChangeSubmission(most_changes=self.most_changes)

    def check_size(self, changes: int) -> None:
        """Raises `LargeMerge` if a merge has too many changes."""
        if self.most_changes is not None and changes > self.most_changes:
            raise LargeMerge

    def write_id(self, context: Context) -> str:
        """Returns the id of the write. Every write has one, so that its outcome can be looked up.

        A generated id begins with the time, so that `find_request` knows where to start, and new
        ids are neighbours in a table.
        """
        if self._id is None:
            self._id = f"{context.clock():014x}{context.random(6).hex()}"
        return self._id

    def batch(
        self, objects: Objects, operations: Iterable[Operation], progress: Progress | None
    ) -> OperationBatch:
        """Returns the operations, read and validated once.

        `objects` contains their values afterwards.
        """
        # Commands that only read do not load the rules of commits.
        from nessie_cli.kernel.committing import OperationBatch

        if self._batch is None or self._operations is not operations:
            self._batch = OperationBatch(objects, operations, progress)
            self._operations, self._values = operations, objects.values()
        else:
            objects.add_values(self._values)
        return self._batch

    def content_ids(self, context: Context) -> Callable[[bytes], bytes]:
        """Returns a function that assigns new content ids: for a key the same in all drafts."""
        assigned = self._content_ids

        def content_id(key: bytes) -> bytes:
            return assigned.get(key) or context.new_content_id()

        return content_id

    def remember_content_ids(self, added: Mapping[bytes, bytes]) -> None:
        """Keeps the content ids that a draft assigned."""
        self._content_ids = added

    def choose_content_ids(self, chosen: Mapping[ContentKey, str]) -> None:
        """Chooses the content ids of new keys. They must be UUIDs that were never used."""
        from nessie_cli.kernel.committing import parse_content_id

        self._content_ids = {
            encode_key(key): parse_content_id(text) for key, text in chosen.items()
        }


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
    since = int(id_[:_TIME_DIGITS], 16) - _CLOCK_ERROR
    before: int | None = None
    while rows := view.reflog(before=before, limit=_PAGE):
        for row in rows:
            if row.move.request_id == id_:
                return RequestRecord(id_, "", b"", b"", row.move.time)
        before = rows[-1].number
        if rows[-1].move.time < since:
            break
    return None


def recorded(view: View, request: RequestRecord) -> Recorded:
    """Returns the effect of a committed request. Without a recorded result, reads the reflog.

    Raises `DamagedObject`.
    """
    if request.result:
        return result_of_request(request)
    rows = [row.move for row in view.reflog() if row.move.request_id == request.id][::-1]
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
