"""Everything in a store, in lists: the dump of a memory store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from nessie_cli.store.base import Dump
from nessie_cli.store.codec import pack, unpack
from nessie_cli.store.records import (
    Counts,
    Move,
    PackedObject,
    Request,
    Settings,
    StoredObject,
    StoredReference,
)


class MemoryDump(Struct, frozen=True):
    """A `Dump` made of values. The objects are in the order of their numbers."""

    all_settings: Settings
    all_references: Sequence[StoredReference]
    all_moves: Sequence[Move]
    all_requests: Sequence[Request]
    all_objects: Sequence[StoredObject]

    @property
    def counts(self) -> Counts:
        """See `Dump`."""
        return Counts(
            len(self.all_objects),
            len(self.all_references),
            len(self.all_moves),
            len(self.all_requests),
        )

    def settings(self) -> Settings:
        """See `Dump`."""
        return self.all_settings

    def references(self) -> Iterator[StoredReference]:
        """See `Dump`."""
        return iter(self.all_references)

    def moves(self) -> Iterator[Move]:
        """See `Dump`."""
        return iter(self.all_moves)

    def requests(self) -> Iterator[Request]:
        """See `Dump`."""
        return iter(self.all_requests)

    def objects(self) -> Iterator[PackedObject]:
        """See `Dump`."""
        for one in self.all_objects:
            yield PackedObject(one.id, one.kind, pack(one.id, one.kind, one.data), one.index)


def unpacked(dump: Dump) -> MemoryDump:
    """Returns everything in a dump."""
    objects = [
        StoredObject(one.id, one.kind, unpack(one.id, one.kind, one.packed), one.index)
        for one in dump.objects()
    ]
    return MemoryDump(
        dump.settings(),
        list(dump.references()),
        list(dump.moves()),
        list(dump.requests()),
        objects,
    )
