"""The objects of a repository: read through a store, decoded once, and collected by a draft.

Objects never change, so a decoded one may be cached for ever. All readers of a store share one
cache, which is bounded in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from operator import methodcaller
from typing import TypeVar

from msgspec import MsgspecError

from nessie_cli.errors import DamagedObject
from nessie_cli.kernel.forms import (
    NO_ID,
    Id,
    Kind,
    Node,
    StoredCommit,
    StoredValue,
    content_id_of,
    decode_commit,
    decode_node,
    decode_value,
    encode_commit,
    encode_node,
    encode_value,
    format_content_id,
    object_id,
    payload_of,
    record_of,
    value_id_of,
)
from nessie_cli.model import Content
from nessie_cli.model.progress import FEW, Progress

Fetch = Callable[[Sequence[Id]], Mapping[Id, bytes]]
FetchSome = Callable[[Sequence[Id], int], Mapping[Id, bytes]]
"""Maps ids to the raw bytes of the first objects, which end after a number of bytes."""
WrittenBefore = Callable[[Id, int, int], Mapping[Id, bytes]]
"""Maps (id, kind, limit) to raw bytes of the object and of those written before it, by id."""

N = TypeVar("N", Node, StoredCommit)
Values = tuple[dict[Id, tuple[Kind, bytes]], dict[Id, bytes]]
"""Values by id: those to be stored, and those that are only compared."""

FEW_VALUES, SMALL_VALUE = 32, 1 << 14
"""The most values read or written together that are cached, and the largest in bytes.

A listing of contents would replace all nodes in the cache.
"""

_AT_ONCE = 1000
"""The number of contents that are read together for a dictionary."""

READ_TOGETHER = 1 << 20
"""Bytes of values in memory while contents are read one after the other."""

# Looking an enum member up costs as much as hashing a short text.
_VALUE, _NODE, _COMMIT = Kind

SPILL_AT = 5_000
"""The number of objects that a draft keeps in memory before the store gets them."""


class Objects:
    """Reads, decodes and caches objects, and collects those that a draft adds.

    `pending` contains the added objects until the caller has stored them, and `index_terms` the
    terms of new commits for the commit index. A large load calls `spill` with what is pending.
    Contents that are only compared with stored ones are kept apart. `written_before` reads
    neighbours together, and `fetch_some` a limited number of bytes. `node_reads` and `node_writes`
    count fetched and added nodes; tests assert costs with them.
    """

    def __init__(
        self,
        fetch: Fetch,
        cache: Cache | None = None,
        spill: Callable[[dict[Id, tuple[Kind, bytes]]], None] | None = None,
        written_before: WrittenBefore | None = None,
        fetch_some: FetchSome | None = None,
    ) -> None:
        self._fetch = fetch
        self._fetch_some = fetch_some
        self._written_before = written_before
        self._cache = cache or Cache()
        self._spill = spill
        self._added: dict[Id, DecodedObject] = {}
        self._small: dict[Id, DecodedObject] = {}
        self._contents = 0
        self._compared: dict[Id, bytes] = {}
        self.pending: dict[Id, tuple[Kind, bytes]] = {}
        self.index_terms: dict[Id, tuple[bytes, ...]] = {}
        self.node_reads = 0
        self.node_writes = 0
        self.commit_reads = 0

    # -- reading --

    def node(self, id_: Id) -> Node:
        """Returns a node of the key tree."""
        decoded = self._added.get(id_) or self._cache.get(id_)
        return decoded if type(decoded) is Node else self.nodes([id_])[0]

    def nodes(self, ids: Sequence[Id]) -> list[Node]:
        """Returns nodes in the order of `ids`. Those not known yet take one round trip."""
        nodes, missing = self._known(ids, Node)
        if missing:
            self.node_reads += len(missing)
            self._read(missing, decode_node, nodes)
        return [nodes[id_] for id_ in ids]

    def commit(self, id_: Id) -> StoredCommit:
        """Returns a commit."""
        decoded = self._added.get(id_) or self._cache.get(id_)
        return decoded if type(decoded) is StoredCommit else self.commits([id_])[0]

    def known_commit(self, id_: Id) -> StoredCommit | None:
        """Returns a commit if it needs no read."""
        decoded = self._added.get(id_) or self._cache.get(id_)
        return decoded if type(decoded) is StoredCommit else None

    def read_commits_before(self, id_: Id, limit: int) -> bool:
        """Caches a commit and some that were written before it.

        Returns False if the store has no fast path for that.
        """
        raw = self._written_before(id_, Kind.COMMIT, limit) if self._written_before else {}
        self.commit_reads += len(raw)
        try:
            self._cache.put_all({near: decode_commit(data) for near, data in raw.items()})
        except MsgspecError:
            # Reading the damaged commit itself raises the error.
            return False
        return bool(raw)

    def read_nodes_before(self, id_: Id, limit: int) -> None:
        """Caches a node and some that were written before it, if the store has a fast path."""
        if self._cache.get(id_) is not None or self._written_before is None:
            return
        raw = self._written_before(id_, Kind.NODE, limit)
        self.node_reads += len(raw)
        # Reading a damaged node itself raises the error.
        with suppress(MsgspecError):
            self._cache.put_all({near: decode_node(data) for near, data in raw.items()})

    def commits(self, ids: Sequence[Id]) -> list[StoredCommit]:
        """Returns commits in the order of `ids`. Those not known yet take one round trip."""
        commits, missing = self._known(ids, StoredCommit)
        if missing:
            self.commit_reads += len(missing)
            self._read(missing, decode_commit, commits)
        return [commits[id_] for id_ in ids]

    def find_commit(self, id_: Id) -> StoredCommit | None:
        """Returns a commit, or None if there is none with this id."""
        return self.find_commits([id_]).get(id_)

    def find_commits(self, ids: Sequence[Id]) -> dict[Id, StoredCommit]:
        """Returns the commits among `ids`, without unknown ids and ids of other objects."""
        commits, missing = self._known(ids, StoredCommit)
        for id_, raw in self._fetch(missing).items() if missing else ():
            # Values and nodes are not arrays of as many fields as a commit.
            with suppress(MsgspecError):
                commits[id_] = commit = decode_commit(raw)
                self._cache.put(id_, commit)
        return commits

    def _known(self, ids: Sequence[Id], type_: type[N]) -> tuple[dict[Id, N], list[Id]]:
        """Returns the decoded objects, and the ids that must be fetched."""
        decoded_objects: dict[Id, N] = {}
        missing = []
        for id_ in ids:
            decoded = self._added.get(id_) or self._cache.get(id_)
            if type(decoded) is type_:
                decoded_objects[id_] = decoded
            else:
                missing.append(id_)
        return decoded_objects, missing

    def _read(
        self, ids: Sequence[Id], decode: Callable[[bytes], N], decoded_objects: dict[Id, N]
    ) -> None:
        """Fetches and decodes objects into `decoded_objects`."""
        for id_, data in self._raw(ids).items():
            try:
                decoded_objects[id_] = decoded = decode(data)
            except MsgspecError:
                raise DamagedObject(
                    f"object {id_.hex()[:16]} is not of the expected kind;"
                    " nessie fsck lists what is affected",
                    id_.hex(),
                ) from None
            self._cache.put(id_, decoded)

    def contents(self, records: Sequence[bytes]) -> list[Content]:
        """Returns the contents of records, deletions included. Their values take one round trip."""
        values = self._values(set(map(value_id_of, records)))
        return [
            decode_value(values[value_id_of(record)], _shown_id(record), payload_of(record))
            for record in records
        ]

    def contents_by_record(
        self, records: Sequence[bytes], progress: Progress | None = None
    ) -> dict[bytes | None, Content]:
        """Returns the contents of records, which are read in batches, so that other threads run.

        A batch ends after `READ_TOGETHER` bytes, too.
        """
        records = list(dict.fromkeys(records))
        contents: dict[bytes | None, Content] = {}
        for start in range(0, len(records), _AT_ONCE):
            if progress is not None and len(records) >= FEW:
                progress(start, len(records))
            batch = records[start : start + _AT_ONCE]
            contents.update(zip(batch, self.each_content(batch), strict=True))
        return contents

    def each_content(self, records: Sequence[bytes]) -> Iterator[Content]:
        """Yields the contents of records, deletions included.

        Their values are read together as far as they are small, `READ_TOGETHER` bytes at a time.
        """
        ids = list(map(value_id_of, records))
        values: Mapping[Id, bytes] = {}
        for number, (id_, record) in enumerate(zip(ids, records, strict=True)):
            if id_ not in values:
                # Drops the last values before the next ones are read.
                values = {}
                values = self._first_values(list(dict.fromkeys(ids[number:])))
            yield decode_value(values[id_], _shown_id(record), payload_of(record))

    def _first_values(self, ids: Sequence[Id]) -> Mapping[Id, bytes]:
        """Returns at least the first value."""
        if self._fetch_some is None:
            return self._values(set(ids))
        values, missing = self._cached_values(ids)
        if missing:
            raw = self._fetch_some(missing, READ_TOGETHER)
            self._cache_values(raw, len(missing))
            values.update(raw)
        return values if ids[0] in values else self._raw(ids[:1])

    def _values(self, ids: AbstractSet[Id]) -> Mapping[Id, bytes]:
        """Returns raw values."""
        values, missing = self._cached_values(ids)
        if missing:
            values.update(raw := self._raw(missing))
            self._cache_values(raw, len(missing))
        return values

    def _cached_values(self, ids: Iterable[Id]) -> tuple[dict[Id, bytes], list[Id]]:
        """Returns the values in memory: of the draft and cached ones; and the ids of the others.

        Contents may be mutable, so only their bytes are cached.
        """
        values: dict[Id, bytes] = {}
        missing = []
        for id_ in ids:
            cached = self._cache.get(id_)
            if type(cached) is StoredValue:
                values[id_] = cached.data
            elif id_ in self.pending:
                values[id_] = self.pending[id_][1]
            elif id_ in self._compared:
                values[id_] = self._compared[id_]
            else:
                missing.append(id_)
        return values, missing

    def _cache_values(self, raw: Mapping[Id, bytes], together: int) -> None:
        """Caches small values, if only few are read `together`."""
        if together <= FEW_VALUES:
            self._cache.put_all(
                {id_: StoredValue(data) for id_, data in raw.items() if len(data) <= SMALL_VALUE}
            )

    def _raw(self, ids: Sequence[Id]) -> Mapping[Id, bytes]:
        pending, compared = self.pending, self._compared
        own = {id_: pending[id_][1] for id_ in ids if id_ in pending} if pending else {}
        if compared:
            own.update((id_, compared[id_]) for id_ in ids if id_ in compared)
        rest = [id_ for id_ in ids if id_ not in own] if own else ids
        raw = dict(self._fetch(rest)) if rest else {}
        raw.update(own)
        for id_ in ids:
            if id_ not in raw:
                raise DamagedObject(
                    f"object {id_.hex()[:16]} is missing from the store;"
                    " nessie fsck lists what is affected",
                    id_.hex(),
                )
        return raw

    # -- adding --

    def add_node(self, node: Node) -> Id:
        """Adds a node to the draft. Returns its id."""
        id_ = self._add(_NODE, encode_node(node))
        self._added[id_] = node
        self.node_writes += 1
        return id_

    def add_commit(self, commit: StoredCommit) -> Id:
        """Adds a commit to the draft. Returns its id."""
        data = encode_commit(commit)
        id_ = object_id(_COMMIT, data)
        self._added[id_] = commit
        # A commit never spills: its index terms are part of the write.
        self.pending[id_] = (_COMMIT, data)
        return id_

    def add_content(self, content: Content, content_id: bytes) -> bytes:
        """Adds a content's value to the draft. Returns the record for a leaf."""
        data = encode_value(content)
        id_ = self._add(_VALUE, data)
        self._contents += 1
        if self._contents <= FEW_VALUES and len(data) <= SMALL_VALUE:
            # Engines read a table again soon after they have written it.
            self._small[id_] = StoredValue(data)
        return record_of(content.payload, content_id, id_)

    def compared(self, content: Content, content_id: bytes) -> bytes:
        """Returns the record of a content that is only compared. Diagnostics can read its value."""
        data = encode_value(content)
        if len(self._compared) < SPILL_AT:
            id_ = object_id(_VALUE, data)
            self._compared[id_] = data
        else:
            id_ = self._add(_VALUE, data)
        return record_of(content.payload, content_id, id_)

    def _add(self, kind: Kind, data: bytes) -> Id:
        id_ = object_id(kind, data)
        pending = self.pending
        pending[id_] = (kind, data)
        if len(pending) >= SPILL_AT and self._spill:
            self._spill(pending)
            self._added = {}
            self.pending = {}
        return id_

    def discard_node(self, id_: Id) -> None:
        """Removes a node from the draft that nothing refers to."""
        if self.pending.pop(id_, None):
            self._added.pop(id_, None)
            self.node_writes -= 1

    @property
    def added(self) -> Mapping[Id, DecodedObject]:
        """The decoded nodes and commits of this draft, and its small values if it has few."""
        return self._added | self._small if self._contents <= FEW_VALUES else self._added

    def values(self) -> Values:
        """Returns the values that a later draft of the same operations needs again."""
        return self.pending.copy(), self._compared

    def add_values(self, values: Values) -> None:
        """Starts with the values of an earlier draft of the same operations."""
        self.pending = values[0].copy()
        self._compared = values[1]


def _shown_id(record: bytes) -> str | None:
    content_id = content_id_of(record)
    return None if content_id == NO_ID else format_content_id(content_id)


# -- the cache -------------------------------------------------------------------------------------

CACHE_LIMIT = 24 << 20
"""Approximate bytes of the recently used half of the cache; the older half is as large."""


_LARGE = 4
"""Objects above this fraction of the cache belong to a load and are not cached."""

DecodedObject = Node | StoredCommit | StoredValue

_weight = methodcaller("weight")


class Cache:
    """Cache objects, shared by all readers of one store.

    The cache drops an object that was not used while `limit` bytes of others were.
    """

    def __init__(self, limit: int = CACHE_LIMIT) -> None:
        self._limit = limit
        self._room = limit
        self._young: dict[Id, DecodedObject] = {}
        self._old: dict[Id, DecodedObject] = {}

    def get(self, id_: Id) -> DecodedObject | None:
        """Returns a cached object, or None."""
        value = self._young.get(id_)
        if value is None:
            value = self._old.get(id_)
            if value is not None:
                self.put(id_, value)
        return value

    def put(self, id_: Id, decoded: DecodedObject) -> None:
        """Caches an object."""
        # Concurrent threads may drop objects a little too early or too late.
        self._room -= decoded.weight()
        if self._room < 0:
            self._old, self._young = self._young, {}
            self._room = self._limit
        self._young[id_] = decoded

    def put_all(self, values: Mapping[Id, DecodedObject]) -> None:
        """Caches objects that belong together, unless they would replace most others."""
        weight = sum(map(_weight, values.values()))
        if weight > self._limit // _LARGE:
            return
        self._room -= weight
        if self._room < 0:
            self._old, self._young = self._young, {}
            self._room = self._limit
        self._young.update(values)

    def clear(self) -> None:
        """Forgets everything."""
        self._young, self._old = {}, {}
        self._room = self._limit


class LayeredCache(Cache):
    """A cache with some decoded objects on top that are not stored yet.

    What is put goes to the cache below.
    """

    def __init__(self, below: Cache, on_top: Mapping[Id, DecodedObject]) -> None:
        super().__init__()
        self._below = below
        self._on_top = on_top

    def get(self, id_: Id) -> DecodedObject | None:
        """Returns an object of the upper layer, a cached one, or None."""
        return self._on_top.get(id_) or self._below.get(id_)

    def put(self, id_: Id, decoded: DecodedObject) -> None:
        """Caches an object in the cache below."""
        self._below.put(id_, decoded)

    def put_all(self, values: Mapping[Id, DecodedObject]) -> None:
        """Caches objects in the cache below."""
        self._below.put_all(values)

    def clear(self) -> None:
        """Clears the cache below. The upper layer stays."""
        self._below.clear()
