"""Canonical bytes and ids of the three kinds of objects, and the reader that decodes them.

An id is the SHA-256 of a domain prefix (format and kind) and the object's raw bytes; raw bytes are MessagePack arrays, so every field is framed
by its length. Objects never change, so a decoded one may be cached for ever. How the bytes are packed on disk is the store's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from functools import cache
from itertools import chain
from struct import Struct as Packing
from typing import Any, Protocol, TypeVar

from msgspec import MsgspecError, Struct, msgpack
from msgspec import json as msgspec_json

from nessie_cli.errors import DamagedObject
from nessie_cli.kernel.cache import Cache
from nessie_cli.model import NO_ANCESTOR, TYPE_OF_PAYLOAD, Content, content_from

Id = bytes
Fetch = Callable[[Sequence[Id]], Mapping[Id, bytes]]
WrittenBefore = Callable[[Id, int, int], Mapping[Id, bytes]]
"""Of a store: (id, kind, limit) to the raw bytes of that object and of some of its kind that were written before it."""

NO_COMMIT: Id = bytes.fromhex(NO_ANCESTOR)
"""The id of the empty history."""


class _Digest(Protocol):
    def digest(self) -> bytes: ...


class Kind(IntEnum):
    """What an object is. The number is part of every id."""

    VALUE = 1
    NODE = 2
    COMMIT = 3


_VALUE, _NODE, _COMMIT = Kind  # looking a member up costs as much as hashing a short text
_DOMAIN = [b"nessie\x00\x01" + bytes([kind]) for kind in range(len(Kind) + 1)]


def object_id(kind: Kind, data: bytes) -> Id:
    """The id of an object of this kind with these raw bytes."""
    return _sha256()(_DOMAIN[kind] + data).digest()


@cache
def _sha256() -> Callable[[bytes], _Digest]:
    # hashlib loads OpenSSL; a command that only reads does without.
    from hashlib import sha256

    return sha256


# -- values -----------------------------------------------------------------------------------------------------------------------------


def encode_value(content: Content) -> bytes:
    """Canonical JSON of a content without its id: two contents that differ only in their id have the same value."""
    attributes = content.attributes()
    attributes["type"] = content.type_name
    if content.payload:
        return _encode_json(attributes)
    # A foreign type may hold numbers that only Python's own encoder writes without loss.
    import json

    return json.dumps(attributes, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def decode_value(data: bytes, content_id: str | None, payload: int = 0) -> Content:
    """The content of a value under the given content id; a known payload number makes it faster."""
    if payload:
        attributes = _decode_json(data)
    else:
        import json

        attributes = json.loads(data)
    type_name = attributes.pop("type")
    return content_from(type_name, content_id, attributes)


_encode_json = msgspec_json.Encoder(order="deterministic").encode
_decode_json = msgspec_json.Decoder(dict[str, Any]).decode


# -- records: what a leaf of the key tree holds for a key ---------------------------------------------------------------------------------

RECORD_SIZE = 49
"""Bytes of a record: payload number 1, content id 16, value id 32."""

DELETED = 0x80
"""Set in the payload number of a record in a commit's list of operations: the key was deleted; the rest says what was there."""


NO_ID = bytes(16)
"""Stands for a content id that is still to be given."""


def format_content_id(raw: bytes) -> str:
    """The text form of a content id, a UUID."""
    digits = raw.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


# -- commits ------------------------------------------------------------------------------------------------------------------------------


class Commit(Struct, frozen=True, array_like=True, gc=False):
    """A commit as stored. Times are microseconds since 1970.

    `parents` holds the first parent (`NO_COMMIT` for a first commit), then merge parents. `height` counts commits along first parents,
    `generation` is one more than the largest generation of all parents. `jump` is the skew-binary jump pointer: an ancestor along first parents
    whose height depends on `height` alone. `operations` is the root of a key tree of records: a small one stands inside, as the bytes of its
    only node, a large one is named by its id (32 bytes); nothing for no operations.
    """

    parents: tuple[Id, ...]
    height: int
    generation: int
    jump: Id
    root: Id
    operations: bytes
    operation_count: int
    time: int
    author_time: int
    message: str
    committer: str
    authors: tuple[str, ...]
    signed_off_by: tuple[str, ...]
    properties: tuple[tuple[str, tuple[str, ...]], ...]

    def weight(self) -> int:
        """The bytes of memory that it takes, about."""
        return 1000 + len(self.operations) + len(self.message)


_encode = msgpack.Encoder().encode
_decode_commit = msgpack.Decoder(Commit).decode

decode_commit = _decode_commit
"""The commit of raw bytes; raises `msgspec.MsgspecError` for bytes that are none."""


def encode_commit(commit: Commit) -> bytes:
    """Canonical bytes of a commit."""
    return _encode(commit)


# -- nodes --------------------------------------------------------------------------------------------------------------------------------


class Node(Struct, frozen=True, array_like=True, gc=False):
    """A node of the key tree. `keys` ascend; `payload` holds one fixed-size slice per key.

    At level 0 a slice is a record. Above, a key is the last key of a child, and the slice the child's id and the number of keys below it.
    """

    level: int
    keys: tuple[bytes, ...]
    payload: bytes

    def weight(self) -> int:
        """The bytes of memory that it takes, about."""
        return 200 + len(self.payload) + 80 * len(self.keys)

    def slice(self, index: int) -> bytes:
        """The payload slice of one key."""
        size = RECORD_SIZE if self.level == 0 else CHILD_SIZE
        return self.payload[index * size : (index + 1) * size]

    def child(self, index: int) -> Id:
        """The id of a child of an inner node."""
        start = index * CHILD_SIZE
        return self.payload[start : start + 32]

    def children(self) -> list[Id]:
        """The ids of all children of an inner node."""
        payload = self.payload
        return [payload[i : i + 32] for i in range(0, len(payload), CHILD_SIZE)]

    def count_of(self, index: int) -> int:
        """How many keys lie below a child of an inner node."""
        return int.from_bytes(self.payload[index * CHILD_SIZE + 32 : (index + 1) * CHILD_SIZE])

    def count(self) -> int:
        """How many keys lie at or below this node."""
        return sum(chain.from_iterable(_COUNTS.iter_unpack(self.payload))) if self.level else len(self.keys)


N = TypeVar("N", Node, Commit)
Decoded = Cache[Node | Commit]
"""What was decoded once, shared by all readers of one store."""

CHILD_SIZE = 36
"""Bytes of a child slice of an inner node: id 32, number of keys below it 4."""

_COUNTS = Packing(">32xI")

_decode_node = msgpack.Decoder(Node).decode


def encode_node(node: Node) -> bytes:
    """Canonical bytes of a node."""
    return _encode(node)


decode_node = _decode_node
"""The node of raw bytes; raises `msgspec.MsgspecError` for bytes that are none."""


class Objects:
    """Reads objects through a `fetch` of raw bytes, decodes and caches them, and collects those that a draft adds.

    What is added is in `pending` until the caller has stored it, `marks` says by which words the store shall find it; `spill`, where given,
    is called when much of it has gathered (a large load). Contents that are only compared with what is stored are kept beside.
    `written_before` reads neighbours together.
    `last_path` is the way to the last key that was found alone: who looks a key up often goes on to edit it.
    `node_reads` and `node_writes` count nodes that were fetched and added: the costs of the design are asserted on them.
    """

    def __init__(
        self,
        fetch: Fetch,
        cache: Decoded | None = None,
        spill: Callable[[dict[Id, tuple[Kind, bytes]]], None] | None = None,
        written_before: WrittenBefore | None = None,
    ) -> None:
        self._fetch = fetch
        self._written_before = written_before
        self._cache = cache or Cache()
        self._spill = spill
        self._added: dict[Id, Node | Commit] = {}
        self._compared: dict[Id, bytes] = {}
        self.last_path: tuple[Id, bytes, list[tuple[Node, int]]] = (b"", b"", [])
        self.pending: dict[Id, tuple[Kind, bytes]] = {}
        self.marks: dict[Id, tuple[bytes, ...]] = {}
        self.node_reads = 0
        self.node_writes = 0
        self.commit_reads = 0

    # -- reading --

    def node(self, id_: Id) -> Node:
        """One node of the key tree."""
        found = self._added.get(id_) or self._cache.get(id_)
        return found if type(found) is Node else self.nodes([id_])[0]

    def nodes(self, ids: Sequence[Id]) -> list[Node]:
        """Nodes in the order of their ids, the missing ones fetched in one round trip."""
        found, missing = self._known(ids, Node)
        if missing:
            self.node_reads += len(missing)
            self._read(missing, _decode_node, found)
        return [found[id_] for id_ in ids]

    def commit(self, id_: Id) -> Commit:
        """One commit."""
        found = self._added.get(id_) or self._cache.get(id_)
        return found if type(found) is Commit else self.commits([id_])[0]

    def known_commit(self, id_: Id) -> Commit | None:
        """One commit, where it needs no read."""
        found = self._added.get(id_) or self._cache.get(id_)
        return found if type(found) is Commit else None

    def read_commits_before(self, id_: Id, limit: int) -> bool:
        """Read a commit and some that were written before it, so that they are known; False where the store has no faster way for that."""
        raw = self._written_before(id_, Kind.COMMIT, limit) if self._written_before else {}
        self.commit_reads += len(raw)
        try:
            self._cache.put_all({near: _decode_commit(data) for near, data in raw.items()})
        except MsgspecError:
            # What is damaged is told to those who need it.
            return False
        return bool(raw)

    def commits(self, ids: Sequence[Id]) -> list[Commit]:
        """Commits in the order of their ids, the missing ones fetched in one round trip."""
        found, missing = self._known(ids, Commit)
        if missing:
            self.commit_reads += len(missing)
            self._read(missing, _decode_commit, found)
        return [found[id_] for id_ in ids]

    def find_commit(self, id_: Id) -> Commit | None:
        """One commit, None where there is none."""
        return self.find_commits([id_]).get(id_)

    def find_commits(self, ids: Sequence[Id]) -> dict[Id, Commit]:
        """Those of the ids that are commits of this store; unknown ids and ids of other objects are left out."""
        found, missing = self._known(ids, Commit)
        for id_, raw in self._fetch(missing).items() if missing else ():
            # No value and no node is an array of as many fields as a commit.
            with suppress(MsgspecError):
                found[id_] = commit = _decode_commit(raw)
                self._cache.put(id_, commit)
        return found

    def _known(self, ids: Sequence[Id], type_: type[N]) -> tuple[dict[Id, N], list[Id]]:
        """Those of the ids that are decoded already, and the rest."""
        found: dict[Id, N] = {}
        missing = []
        for id_ in ids:
            decoded = self._added.get(id_) or self._cache.get(id_)
            if type(decoded) is type_:
                found[id_] = decoded
            else:
                missing.append(id_)
        return found, missing

    def _read(self, ids: Sequence[Id], decode: Callable[[bytes], N], found: dict[Id, N]) -> None:
        """Fetch and decode objects, adding them to `found`."""
        for id_, data in self._raw(ids).items():
            try:
                found[id_] = decoded = decode(data)
            except MsgspecError:
                raise DamagedObject(f"object {id_.hex()[:16]} is not what it should be; nessie fsck lists what is affected", id_.hex()) from None
            self._cache.put(id_, decoded)

    def contents(self, records: Sequence[bytes]) -> list[Content]:
        """The contents of records (the deleted mark is ignored), their values fetched in one round trip."""
        values = self._raw(list({record[17:] for record in records}))
        return [
            decode_value(values[record[17:]], None if record[1:17] == NO_ID else format_content_id(record[1:17]), record[0] & ~DELETED)
            for record in records
        ]

    def _raw(self, ids: Sequence[Id]) -> Mapping[Id, bytes]:
        pending, compared = self.pending, self._compared
        own = {id_: pending[id_][1] for id_ in ids if id_ in pending} if pending else {}
        if compared:
            own.update((id_, compared[id_]) for id_ in ids if id_ in compared)
        rest = [id_ for id_ in ids if id_ not in own] if own else ids
        found = dict(self._fetch(rest)) if rest else {}
        found.update(own)
        for id_ in ids:
            if id_ not in found:
                raise DamagedObject(f"object {id_.hex()[:16]} is missing from the store; nessie fsck lists what is affected", id_.hex())
        return found

    # -- adding --

    def add_node(self, node: Node) -> Id:
        """Add a node to the draft; returns its id."""
        id_ = self._add(_NODE, _encode(node))
        self._added[id_] = node
        self.node_writes += 1
        return id_

    def add_commit(self, commit: Commit) -> Id:
        """Add a commit to the draft; returns its id."""
        data = _encode(commit)
        id_ = object_id(_COMMIT, data)
        self._added[id_] = commit
        # Never handed over early: its marks come with the write.
        self.pending[id_] = (_COMMIT, data)
        return id_

    def add_content(self, content: Content, content_id: bytes) -> bytes:
        """Add a content's value to the draft; returns the record of a leaf."""
        return bytes((content.payload,)) + content_id + self._add(_VALUE, encode_value(content))

    def compared(self, content: Content, content_id: bytes) -> bytes:
        """The record of a content that is not stored, only compared; it can be read for a diagnosis all the same."""
        data = encode_value(content)
        if len(self._compared) < SPILL_AT:
            id_ = object_id(_VALUE, data)
            self._compared[id_] = data
        else:
            id_ = self._add(_VALUE, data)
        return bytes((content.payload,)) + content_id + id_

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
        """Take back a node that nothing refers to."""
        if self.pending.pop(id_, None):
            self._added.pop(id_, None)
            self.node_writes -= 1

    def keep(self) -> None:
        """Tell that everything pending is stored now: what was decoded is remembered for the next reader."""
        put = self._cache.put
        for id_, decoded in self._added.items():
            put(id_, decoded)
        self._added = {}
        self.pending = {}


SPILL_AT = 20_000
"""Objects that a draft holds in memory before they are handed to the store."""


def type_name(record: bytes, value: Callable[[], Content]) -> str:
    """The content type of a record; only for a type that this program does not know is the value asked for."""
    return TYPE_OF_PAYLOAD.get(record[0] & ~DELETED) or value().type_name
