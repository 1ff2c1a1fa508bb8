"""A heap of objects that counts reads, and key sets that are difficult for a tree."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

from nessie_cli.kernel.forms import RECORD_SIZE
from nessie_cli.kernel.objects import Cache, Objects

State = dict[bytes, bytes]


def record(number: int) -> bytes:
    """Returns a record of a leaf, different for every number."""
    return b"\x01" + number.to_bytes(RECORD_SIZE - 1, "big")


def state(keys: Iterable[bytes], first: int = 0) -> State:
    return {key: record(first + n) for n, key in enumerate(keys)}


class Heap:
    """All objects by id.

    `reads` counts the fetched objects, `trips` the round trips, `writes` the stored objects.
    """

    def __init__(self) -> None:
        self.data: dict[bytes, bytes] = {}
        self.marks: list[tuple[bytes, bytes]] = []
        self.reads = self.trips = self.writes = 0

    def _fetch(self, ids: Sequence[bytes]) -> Mapping[bytes, bytes]:
        self.reads += len(ids)
        self.trips += 1
        return {id_: self.data[id_] for id_ in ids if id_ in self.data}

    def objects(self, cache: Cache | None = None) -> Objects:
        """Returns a reader with an empty cache, and resets the counts."""
        self.reads = self.trips = self.writes = 0
        return Objects(self._fetch, cache or Cache())

    def keep(self, objects: Objects) -> None:
        """Stores the objects of a draft.

        Its reader has them in its cache from then on, as a repository's reader has.
        """
        self.writes += sum(id_ not in self.data for id_ in objects.pending)
        self.marks += [
            (mark, id_)
            for id_ in objects.pending
            if id_ not in self.data
            for mark in objects.index_terms.get(id_, ())
        ]
        self.data.update((id_, data) for id_, (_, data) in objects.pending.items())
        for id_, decoded in objects.added.items():
            objects._cache.put(id_, decoded)
        objects.pending, objects._added = {}, {}

    def find_indexed(self, mark: bytes, before: int | None, limit: int) -> list[tuple[int, bytes]]:
        """See a store's method."""
        found = [
            (number, id_)
            for number, (mark_, id_) in enumerate(self.marks)
            if mark_ == mark and (before is None or number < before)
        ]
        return found[::-1][:limit]


KINDS = (
    "sequential",
    "random",
    "common prefix",
    "chain of prefixes",
    "very long",
    "nested",
    "one byte",
    "binary",
)


def key_set(kind: str, size: int, seed: int) -> list[bytes]:
    """Returns `size` distinct keys (fewer if a kind has not so many), in their own order."""
    chance = random.Random(seed)
    match kind:
        case "sequential":
            keys = [b"table-%06d" % n for n in range(size)]
        case "random":
            keys = [b"%x" % chance.getrandbits(96) for _ in range(size)]
        case "common prefix":
            keys = [b"warehouse.sales.region.very-long-name." * 4 + b"%d" % n for n in range(size)]
        case "chain of prefixes":
            keys = [b"a" * n for n in range(1, min(size, 600) + 1)]
        case "very long":
            keys = [
                b"%d" % chance.getrandbits(40) + b"x" * chance.randrange(400, 2500)
                for _ in range(min(size, 400))
            ]
        case "nested":
            keys = [
                b"\x00".join(b"n%d" % chance.randrange(9) for _ in range(chance.randrange(1, 7)))
                + b"\x00%d" % n
                for n in range(size)
            ]
        case "one byte":
            keys = [bytes([n]) for n in range(min(size, 256))]
        case _:
            keys = [chance.randbytes(chance.randrange(1, 12)) for _ in range(size)]
    keys = list(dict.fromkeys(keys))
    chance.shuffle(keys)
    return keys
