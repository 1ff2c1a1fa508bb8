"""Canonical bytes and ids of the three kinds of objects, and of content keys.

An id is the SHA-256 of a domain prefix (format and kind) and the object's raw bytes. Raw bytes are
MessagePack arrays, so every field is framed by its length. The store decides how it packs the
bytes.
"""

# No postponed annotations: msgspec would evaluate those of every field at each start.
from collections.abc import Callable
from enum import IntEnum
from functools import cache
from itertools import chain
from struct import Struct as Packing
from typing import Any, Protocol

from msgspec import MsgspecError, Struct, msgpack
from msgspec import json as msgspec_json

from nessie_cli.errors import NessieError
from nessie_cli.model import (
    NO_ANCESTOR,
    TYPE_OF_PAYLOAD,
    Content,
    ContentKey,
    IcebergTable,
    IcebergView,
    KeyRange,
    Namespace,
    content_from,
)

Id = bytes

NO_COMMIT: Id = bytes.fromhex(NO_ANCESTOR)
"""The id of the empty history."""


class _Digest(Protocol):
    def digest(self) -> bytes: ...


class Kind(IntEnum):
    """The kind of an object. The number is part of every id."""

    VALUE = 1
    NODE = 2
    COMMIT = 3


UNDECODABLE = (
    MsgspecError,
    NessieError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
)
"""The errors of decoding invalid bytes."""

_DOMAIN = [b"nessie\x00\x01" + bytes([kind]) for kind in range(len(Kind) + 1)]


def object_id(kind: Kind, data: bytes) -> Id:
    """Returns the id of an object of this kind with these raw bytes."""
    return _sha256()(_DOMAIN[kind] + data).digest()


@cache
def _sha256() -> Callable[[bytes], _Digest]:
    # hashlib loads OpenSSL, which a command that only reads does not need.
    from hashlib import sha256

    return sha256


# -- keys: bytes whose order is the order of the specification, element by element -----------------

SEPARATOR = "\x00"
"""Between the elements of a key.

It sorts below every character of an element, so a key precedes its extensions.
"""


def encode_key(key: ContentKey) -> bytes:
    """Returns the key as the tree stores it."""
    return SEPARATOR.join(key.elements).encode()


def decode_key(raw: bytes) -> ContentKey:
    """Returns the key that `encode_key` encoded."""
    return ContentKey(tuple(raw.decode().split(SEPARATOR)))


def below(raw: bytes) -> tuple[bytes, bytes]:
    """Returns the half-open range of tree keys that contains a key and everything below it."""
    return raw, raw + b"\x01"


def bounds(keys: KeyRange) -> tuple[bytes, bytes | None]:
    """Returns the half-open range of tree keys within the bounds and the prefix of a key range."""
    if keys.prefix is not None and keys.prefix.elements:
        return below(encode_key(keys.prefix))
    start = encode_key(keys.minimum) if keys.minimum else b""
    stop = encode_key(keys.maximum) + b"\x00" if keys.maximum else None
    return start, stop


# -- values ----------------------------------------------------------------------------------------


def encode_value(content: Content) -> bytes:
    """Returns the canonical JSON of a content without its id.

    Two contents that differ only in their id have the same value.
    """
    attributes = content.attributes()
    attributes["type"] = content.type_name
    if content.payload:
        return _encode_json(attributes)
    # An unknown type may contain numbers that only Python's own encoder writes without loss.
    import json

    return json.dumps(
        attributes, ensure_ascii=False, sort_keys=True, separators=(",", ":")
    ).encode()


def decode_value(data: bytes, content_id: str | None, payload: int = 0) -> Content:
    """Returns the content of a value under a content id; a known payload number makes it faster."""
    if payload:
        attributes = _decode_json(data)
    else:
        import json

        attributes = json.loads(data)
    type_name = attributes.pop("type")
    return content_from(type_name, content_id, attributes)


_encode_json = msgspec_json.Encoder(order="deterministic").encode
_decode_json = msgspec_json.Decoder(dict[str, Any]).decode


class StoredValue(Struct, frozen=True, gc=False):
    """A value as stored: its raw bytes."""

    data: bytes

    def weight(self) -> int:
        """Returns the approximate size in memory, in bytes."""
        return 200 + len(self.data)


# -- records: the entry of a key in a leaf of the key tree -----------------------------------------

RECORD_SIZE = 49
"""Bytes of a record: payload number 1, content id 16, value id 32."""

DELETED = 0x80
"""Flag in the payload number of a record of a commit's operations: the key was deleted.

The rest of the record describes the deleted content.
"""


NO_ID = bytes(16)
"""Stands for a content id that is not assigned yet."""


def record_of(payload: int, content_id: bytes, value_id: Id) -> bytes:
    """Returns a record with these fields."""
    return bytes((payload,)) + content_id + value_id


def payload_of(record: bytes) -> int:
    """Returns the payload number of a record, which stands for the type of its content."""
    return record[0] & ~DELETED


def content_id_of(record: bytes) -> bytes:
    """Returns the content id of a record."""
    return record[1:17]


def value_id_of(record: bytes) -> Id:
    """Returns the id of the value of a record."""
    return record[17:]


def with_content_id(record: bytes, content_id: bytes) -> bytes:
    """Returns the record with another content id."""
    return record[:1] + content_id + record[17:]


def with_value_of(record: bytes, other: bytes) -> bytes:
    """Returns the record with the value of another record."""
    return record[:17] + other[17:]


def new_content_id(random: Callable[[int], bytes]) -> bytes:
    """Returns a new content id, a UUID of version 4. `random` returns random bytes."""
    raw = bytearray(random(len(NO_ID)))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    return bytes(raw)


def format_content_id(raw: bytes) -> str:
    """Returns the text form of a content id, a UUID."""
    digits = raw.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def type_name(record: bytes, value: Callable[[], Content]) -> str:
    """Returns the content type of a record. `value` is called only for an unknown type."""
    return TYPE_OF_PAYLOAD.get(payload_of(record)) or value().type_name


def is_namespace(record: bytes | None) -> bool:
    """Returns whether a record is that of a namespace."""
    return record is not None and payload_of(record) == Namespace.payload


def has_metadata_file(record: bytes) -> bool:
    """Returns whether a record is that of a content with a `metadata_file`."""
    return payload_of(record) in (IcebergTable.payload, IcebergView.payload)


# -- commits ---------------------------------------------------------------------------------------


class StoredCommit(Struct, frozen=True, array_like=True, gc=False):
    """A commit as stored. Times are microseconds since 1970.

    `parents` contains the first parent (`NO_COMMIT` for a first commit), then merge parents.
    `height` counts commits along first parents. `generation` is one more than the largest
    generation of all parents. `jump` is the skew-binary jump pointer: an ancestor along first
    parents whose height depends on `height` alone. `operations` is a key tree of records: the
    bytes of its only node if it is small, the id of its root (32 bytes) if it is large, and empty
    if there are no operations.
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
        """Returns the approximate size in memory, in bytes."""
        properties = chain.from_iterable((name, *values) for name, values in self.properties)
        texts = (self.message, *self.authors, *self.signed_off_by, *properties)
        return 1000 + len(self.operations) + sum(map(len, texts))


def jump_height(height: int) -> int:
    """Returns the height of the target of the jump pointer of a commit at this height.

    If a height is written as a sum of numbers 2^k - 1, each the largest that fits, the target's
    height lacks the last summand.
    """
    rest = height
    summand = 0
    while rest:
        summand = (1 << ((rest + 1).bit_length() - 1)) - 1
        rest -= summand
    return height - summand


_encode = msgpack.Encoder().encode

decode_commit = msgpack.Decoder(StoredCommit).decode
"""Decodes a commit; raises `msgspec.MsgspecError` for other bytes."""


def encode_commit(commit: StoredCommit) -> bytes:
    """Returns the canonical bytes of a commit."""
    return _encode(commit)


# -- nodes -----------------------------------------------------------------------------------------


class Node(Struct, frozen=True, array_like=True, gc=False):
    """A node of the key tree. `keys` ascend; `payload` contains one slice of fixed size per key.

    At level 0, a slice is a record. Above, each key is the last key of a child, and its slice
    contains the child's id and the number of keys below the child.
    """

    level: int
    keys: tuple[bytes, ...]
    payload: bytes

    def weight(self) -> int:
        """Returns the approximate size in memory, in bytes."""
        return 200 + len(self.payload) + 80 * len(self.keys)

    def slice(self, index: int) -> bytes:
        """Returns the payload slice of one key."""
        size = RECORD_SIZE if self.level == 0 else CHILD_SIZE
        return self.payload[index * size : (index + 1) * size]

    def child(self, index: int) -> Id:
        """Returns the id of a child of an inner node."""
        start = index * CHILD_SIZE
        return self.payload[start : start + 32]

    def children(self) -> list[Id]:
        """Returns the ids of all children of an inner node."""
        payload = self.payload
        return [payload[i : i + 32] for i in range(0, len(payload), CHILD_SIZE)]

    def count_of(self, index: int) -> int:
        """Returns the number of keys below a child of an inner node."""
        return int.from_bytes(self.payload[index * CHILD_SIZE + 32 : (index + 1) * CHILD_SIZE])

    def count(self) -> int:
        """Returns the number of keys in or below this node."""
        return (
            sum(chain.from_iterable(_COUNTS.iter_unpack(self.payload)))
            if self.level
            else len(self.keys)
        )


CHILD_SIZE = 36
"""Bytes of a child slice of an inner node: id 32, number of keys below it 4."""

_COUNTS = Packing(">32xI")


def child_slice(child: Id, count: int) -> bytes:
    """Returns the payload slice for a child with `count` keys in or below it."""
    return child + count.to_bytes(4, "big")


def child_id_of(child: bytes) -> Id:
    """Returns the id in the payload slice of an inner node."""
    return child[:32]


def encode_node(node: Node) -> bytes:
    """Returns the canonical bytes of a node."""
    return _encode(node)


decode_node = msgpack.Decoder(Node).decode
"""Decodes a node; raises `msgspec.MsgspecError` for other bytes."""
