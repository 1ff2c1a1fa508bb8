"""The lower seam: opaque immutable objects by id, and references moved by compare-and-swap, atomically together.

A store knows no tree, no commit, no key. It keeps bytes, and one atomic write says: these objects, and these reference moves if every reference
still is where the writer saw it, and their reflog rows. A reader never needs a transaction: objects never change, so whoever has read one reference
has one consistent state of everything below it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from msgspec import Struct

from nessie_cli import store as _room

STORE_FORMAT = _room.STORE_FORMAT
"""The format version that this program writes. A store of a newer one is refused, one of an older one is migrated when it is opened."""


class StoredObject(Struct, frozen=True):
    """One immutable object: its 32-byte id, a small number that tells its kind (the kernel's business), its raw bytes.

    `marks` are short opaque words by which `find_marked` finds it again: an index beside the object, not a part of it. `plain` says that
    compressing it does not pay.
    """

    id: bytes
    kind: int
    data: bytes
    marks: tuple[bytes, ...] = ()
    plain: bool = False


class StoredReference(Struct, frozen=True):
    """Where a reference points. `kind` is an opaque word (`BRANCH`, `TAG`); names are unique over all kinds."""

    name: str
    kind: str
    target: bytes


class Move(Struct, frozen=True):
    """One compare-and-swap: `name` must stand at `before` (None: must not exist) and goes to `after` (None: is deleted).

    The remaining fields are the reflog row: time in microseconds since 1970, who, which verb, a message, and the request id of the caller.
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
    """A move that happened; `number` grows over the whole store."""

    number: int
    move: Move


class Write(Struct, frozen=True):
    """One atomic write. Moves are applied in order (two moves of one reference chain); settings replace values by name (None removes)."""

    objects: Sequence[StoredObject] = ()
    moves: Sequence[Move] = ()
    settings: Mapping[str, str | None] = {}


class Done(Struct, frozen=True):
    """Everything of the write is durable."""


class Stale(Struct, frozen=True):
    """Nothing was written: a reference is not where the writer saw it. `current` is what stands there now (None: no such reference)."""

    name: str
    current: StoredReference | None


class Held(Protocol):
    """The write lock of a store, held by this thread."""

    def written(self) -> tuple[int, str]:
        """A number that is another one once anything has been written, and the request id of the last move in this block. No round trip."""


class Store(Protocol):
    """What a backend has to do. All methods are safe to call from several threads and processes.

    Errors: `StoreUnavailable` (nothing was written), `DamagedObject` for bytes that fail their check sum, `OutcomeUnknown` where a write
    may or may not have happened; the caller then asks `find_request`.
    """

    @property
    def url(self) -> str:
        """The URL that opens this store again; no secrets in it."""

    def get(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """The raw bytes of those objects that exist, in one round trip; missing ids are not in the answer."""

    def written_before(self, id_: bytes, kind: int, limit: int) -> dict[bytes, bytes]:
        """An object and at most `limit` of its kind that were written shortly before it, in one round trip: who walks a history asks for them.

        Fewer, or none, where that would cost more than asking for each; damaged ones are left out.
        """

    def find_ids(self, kind: int, prefix: str, limit: int) -> list[bytes]:
        """At most `limit` ids of this kind whose lower-case hex form begins with `prefix`, in order."""

    def find_marked(self, mark: bytes, before: int | None, limit: int) -> list[tuple[int, bytes]]:
        """At most `limit` objects with this mark, the last written first: (number, id), numbers below `before`.

        Cost: those answered. A number grows from write to write; an object may be answered that was deleted meanwhile.
        """

    def scan_marks(self) -> Iterator[tuple[bytes, bytes]]:
        """Every mark and the id of the object that has it, in no order, for checking."""

    def scan(self, kind: int | None = None) -> Iterator[StoredObject | DamagedId]:
        """Every object (of a kind), for checking and cleaning; one that fails its check sum comes as `DamagedId`."""

    def count(self) -> int:
        """How many objects there are. Costs a millisecond for some ten thousand."""

    def put(self, objects: Iterable[StoredObject]) -> None:
        """Store objects that no reference needs yet (a large load). One that exists is only marked as young again."""

    def delete(self, ids: Sequence[bytes], written_before: int) -> int:
        """Delete those objects last written before this second since 1970; returns how many went."""

    def write(self, write: Write) -> Done | Stale:
        """Do all of it, durably, or nothing."""

    def exclusive(self) -> AbstractContextManager[Held]:
        """Hold the store's write lock: `write` inside cannot find a reference moved by others since the block was entered."""

    def reference(self, name: str) -> StoredReference | None:
        """One reference, or None."""

    def references(self, kind: str | None = None, prefix: str = "", start: str = "", limit: int | None = None) -> list[StoredReference]:
        """References in name order, one consistent state: of one kind, below a prefix, from the name `start` on (inclusive)."""

    def reflog(self, name: str | None = None, before: int | None = None, limit: int | None = None) -> list[ReflogRow]:
        """Moves of one reference (or all), newest first, below the number `before`."""

    def find_request(self, request_id: str) -> list[ReflogRow]:
        """The moves that carried this request id, oldest first."""

    def settings(self) -> dict[str, str]:
        """All settings by name; facts of the repository among them."""

    def standing(self, name: str) -> tuple[StoredReference | None, dict[str, str]]:
        """One reference and all settings, in one round trip: what a write begins with."""

    def close(self) -> None:
        """Let go of files and connections; calling it twice is harmless."""


@runtime_checkable
class Watched(Protocol):
    """A store that tells, without a read or a round trip, whether it has changed."""

    def version(self) -> Hashable | None:
        """A value that is another one once anything has been written; None when that cannot be told now. To be asked by one thread; never waits."""


class DamagedId(Struct, frozen=True):
    """An object whose stored bytes fail their check sum or cannot be unpacked."""

    id: bytes
    kind: int
    reason: str
