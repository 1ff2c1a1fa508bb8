"""What reclaims the space of a store: expiry of the reflog and of request ids, and the deletion of objects.

A store does not know which objects are reachable. The caller marks them and has the rest deleted in
batches; `Upkeep.delete` tells it, under a lock, which moves were committed since the mark.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from nessie_cli.store.base import ReflogRow


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


Reached = Callable[[Sequence[ReflogRow]], Container[bytes]]
"""Given the moves since the mark, newest first, returns the ids that must stay. It may read the store."""


class Upkeep(Protocol):
    """Upkeep of one store, safe beside readers and writers of any process.

    Errors: `StoreUnavailable`; `DamagedObject` if the store itself is damaged.
    """

    def size(self) -> StoreSize:
        """Returns the size of the store on disk."""

    def objects(self) -> Iterator[ListedObject]:
        """Returns every object, the highest number of its kind first, in bounded memory.

        Objects that are written meanwhile may be missing.
        """

    def last_move(self) -> int:
        """Returns the highest number in the reflog. Each move committed after this call has a higher one."""

    def delete(self, ids: Sequence[bytes], written_before: int, since: int, reached: Reached) -> Deleted:
        """Deletes those objects last written before this second, except those that are `reached`.

        One transaction, in which no reference moves: writers wait. `reached` gets the moves numbered
        above `since`. The object with the highest number stays, so that no number is used twice.
        """

    def expire(self, moves_before: int, requests_before: int, *, dry_run: bool = False) -> Expired:
        """Deletes moves and request ids older than these microseconds since 1970, or only counts them.

        The newest row of the reflog stays, so that no number is used twice.
        """

    def compact(self, *, full: bool = False) -> None:
        """Makes the space of deleted rows usable; `full` returns it to the file system while writers wait."""
