"""The values that stores and their callers exchange, and how a store decides writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import chain

from msgspec import Struct


class StoredObject(Struct, frozen=True):
    """An immutable object: its 32-byte id, a small number for its kind, its raw bytes.

    `index` lists short opaque entries by which `find_indexed` finds the object; they are stored
    beside it and are not part of it.
    """

    id: bytes
    kind: int
    data: bytes
    index: tuple[bytes, ...] = ()


class DamagedId(Struct, frozen=True):
    """An object whose stored bytes fail their checksum or cannot be unpacked."""

    id: bytes
    kind: int
    reason: str


class StoredReference(Struct, frozen=True):
    """A stored reference.

    `kind` is an opaque word (`BRANCH`, `TAG`); names are unique over all kinds.
    """

    name: str
    kind: str
    target: bytes


class StoredSession(Struct, frozen=True):
    """A login of a browser: the SHA-256 of its secret id, and opaque data of the server.

    It does not count from the second `ends` (since 1970) on.
    """

    id: bytes
    data: bytes
    ends: int


class StoredRun(Struct, frozen=True):
    """The record of a pipeline's run: its id, its state as a word, and opaque data.

    `version` grows with each change.
    """

    id: str
    state: str
    data: bytes
    version: int = 0


class StoredSettings(Struct, frozen=True):
    """All settings by name. `version` grows with each change of any of them."""

    values: Mapping[str, str] = {}
    version: int = 0


class Move(Struct, frozen=True):
    """A compare-and-swap of a reference, and its reflog entry.

    The reference `name` must be at `before` (None: must not exist) and moves to `after` (None: is
    deleted). `time` is in microseconds since 1970; `who` is the caller, `operation` the verb.
    """

    name: str
    kind: str
    before: bytes | None
    after: bytes | None
    time: int
    who: str
    operation: str
    message: str
    request_id: str


class ReflogRow(Struct, frozen=True):
    """A committed move. `number` grows over the whole store and is never used twice."""

    number: int
    move: Move


class RequestRecord(Struct, frozen=True):
    """A request id and its use. A store commits an id at most once; "" means none.

    `caller` and `digest` tell a repetition of the request from another request under the same id; a
    generated id has no digest. `result` is opaque: data for answering a repetition. `time` is in
    microseconds since 1970.
    """

    id: str
    caller: str
    digest: bytes
    result: bytes
    time: int


class Write(Struct, frozen=True):
    """One atomic write: what it changes, and what must still hold when it is committed.

    Changes: `objects` are stored, `moves` applied in order (two moves of one reference chain), and
    `settings` set by name (None removes one).

    Requirements: every moved reference is where its move says; the objects `required` exist, in the
    store or in this write; the settings have version `settings_version` (None: the write does not
    depend on settings); and the id of `request` is unused.
    """

    request: RequestRecord
    objects: Sequence[StoredObject] = ()
    moves: Sequence[Move] = ()
    settings: Mapping[str, str | None] = {}
    required: Sequence[bytes] = ()
    settings_version: int | None = None

    @property
    def records_request(self) -> bool:
        """Whether a store records the request.

        It does so if a client chose the id, or if no move has it.
        """
        return bool(self.request.id) and (bool(self.request.digest) or not self.moves)


class Requirement(StrEnum):
    """The requirements of a write that may not hold."""

    REFERENCE = "reference"
    OBJECT = "object"
    SETTINGS = "settings"


class Done(Struct, frozen=True):
    """The whole write is durable."""


class Stale(Struct, frozen=True):
    """Nothing of the write was written, because a requirement did not hold.

    For REFERENCE, `name` is the reference and `current` its present state (None: there is none of
    this name).
    """

    requirement: Requirement
    name: str = ""
    current: StoredReference | None = None


class Repeated(Struct, frozen=True):
    """Nothing of the write was written, because its request id was committed before.

    `request` is the recorded one.
    """

    request: RequestRecord


Outcome = Done | Stale | Repeated


class Basis(Struct, frozen=True):
    """The state with which a draft begins: a reference, the settings, and a recorded request."""

    reference: StoredReference | None
    settings: StoredSettings
    request: RequestRecord | None


class PackedObject(Struct, frozen=True):
    """An object in its stored form: `packed` is the result of `rows.pack`, with checksum."""

    id: bytes
    kind: int
    packed: bytes
    index: tuple[bytes, ...] = ()


class Counts(Struct, frozen=True):
    """The number of rows of a store. `moves` are those of the reflog."""

    objects: int
    references: int
    moves: int
    requests: int


class ListedObject(Struct, frozen=True):
    """An object without its bytes.

    `number` grows in the order of writing, `written` is when it was last written in seconds since
    1970, `size` is the length of its packed bytes.
    """

    id: bytes
    kind: int
    number: int
    written: int
    size: int


class Deleted(Struct, frozen=True):
    """How many objects were deleted, and the length of their packed bytes."""

    objects: int = 0
    size: int = 0


class Expired(Struct, frozen=True):
    """How many rows of the reflog and how many request ids have expired."""

    moves: int = 0
    requests: int = 0


class StoreSize(Struct, frozen=True):
    """Bytes that a store takes on disk; `free` of them will be used again (None: not known)."""

    total: int
    free: int | None = None


# -- the decision on writes ------------------------------------------------------------------------

DONE = Done()


class WriteDecision:
    """Decides writes in order, each on the state after those before it.

    The state is read once, before the first decision, for everything that `Needs` lists. After the
    last decision, `references` is the new state, and `done`, `moves`, `requests` and `settings` are
    what to write.
    """

    def __init__(
        self,
        references: dict[str, StoredReference | None],
        requests: dict[str, RequestRecord],
        objects: set[bytes],
        settings_version: int,
    ) -> None:
        self.references = references
        self.done: list[Write] = []
        self.settings: dict[str, tuple[str | None, int]] = {}
        """The value and the version of each setting that changes."""
        self._settings_version = settings_version
        self._requests = requests
        self._objects = objects

    def decide(self, write: Write) -> Outcome:
        """Returns the outcome of one write."""
        # First: the references of a repeated request have been moved by the first one.
        if recorded := self._requests.get(write.request.id):
            return Repeated(recorded)
        moved: dict[str, StoredReference | None] = {}
        for move in write.moves:
            name = move.name
            current = moved[name] if name in moved else self.references[name]
            if not _is_at(current, move):
                return Stale(Requirement.REFERENCE, name, current)
            moved[name] = (
                None if move.after is None else StoredReference(name, move.kind, move.after)
            )
        if write.required and not all(self._exists(id_, write) for id_ in write.required):
            return Stale(Requirement.OBJECT)
        if write.settings_version not in (None, self._settings_version):
            return Stale(Requirement.SETTINGS)
        self.references |= moved
        self._settings_version += bool(write.settings)
        self.settings |= {
            name: (value, self._settings_version) for name, value in write.settings.items()
        }
        if write.records_request:
            self._requests[write.request.id] = write.request
        self.done.append(write)
        return DONE

    @property
    def moves(self) -> list[Move]:
        """The moves of the writes that are done, in order."""
        return [move for write in self.done for move in write.moves]

    @property
    def requests(self) -> list[RequestRecord]:
        """The requests to record."""
        return [write.request for write in self.done if write.records_request]

    def _exists(self, id_: bytes, write: Write) -> bool:
        added = chain.from_iterable(added_write.objects for added_write in (write, *self.done))
        return id_ in self._objects or any(id_ == stored.id for stored in added)


class Needs:
    """The part of the state that deciding some writes needs."""

    def __init__(self, writes: Sequence[Write]) -> None:
        self.references = {move.name for write in writes for move in write.moves}
        self.requests = {write.request.id for write in writes if write.records_request}
        self.objects = {id_ for write in writes for id_ in write.required}


def _is_at(current: StoredReference | None, move: Move) -> bool:
    """Returns whether a reference is where a move requires it."""
    if current is None:
        return move.before is None
    return current.target == move.before and current.kind == move.kind
