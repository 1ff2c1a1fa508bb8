"""The values that stores and their callers exchange: rows, writes and their outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from nessie_cli import store as _package

STORE_FORMAT = _package.STORE_FORMAT
"""The format version that this program writes.

A store of another format is refused.
"""


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


class Settings(Struct, frozen=True):
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


class Request(Struct, frozen=True):
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

    request: Request
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

    request: Request


Outcome = Done | Stale | Repeated


class Basis(Struct, frozen=True):
    """The state with which a draft begins: a reference, the settings, and a recorded request."""

    reference: StoredReference | None
    settings: Settings
    request: Request | None


class PackedObject(Struct, frozen=True):
    """An object in its stored form: `packed` is the result of `codec.pack`, with checksum."""

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
