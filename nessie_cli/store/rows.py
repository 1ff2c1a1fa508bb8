"""The stored form of everything in a store: rows with checksums, and packed objects.

A wrong checksum or field of a row raises `DamagedRow`. An object has a codec byte, a checksum and a
payload. The checksum covers the object's id and kind, the codec byte and the payload. So a flipped
byte, or bytes stored under another id, are detected before decompression. Small objects are stored
raw, so commands that read only history, or a small catalog, do not load zstandard.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from hashlib import blake2b
from types import UnionType
from typing import TYPE_CHECKING, Any
from zlib import crc32

from msgspec.msgpack import Encoder

from nessie_cli.errors import DamagedObject, InvalidInput
from nessie_cli.model import ReferenceType, ReflogType
from nessie_cli.store.base import MOVES_TOGETHER
from nessie_cli.store.records import (
    DamagedId,
    Move,
    ReflogRow,
    RequestRecord,
    StoredObject,
    StoredReference,
    StoredSettings,
)

if TYPE_CHECKING:
    import zstandard

Row = tuple[Any, ...]

_FEW_MOVES = 8
"""The number of moves of one statement, whose size is not known before."""

REFERENCE = "SELECT name, kind, target, newest, check_sum FROM refs"
REFLOG = """SELECT number, name, kind, before, after, time, who, operation, message, request_id,
previous, digest FROM reflog"""
ANCHOR = "SELECT name, digest, check_sum FROM anchors"
SETTINGS = "SELECT name, value, version, newest, check_sum FROM settings"
REQUEST = "SELECT id, caller, digest, result, time, check_sum FROM requests"
BASIS = """SELECT 0, max(version), NULL, NULL, NULL, NULL, NULL FROM settings
UNION ALL SELECT 1, name, kind, target, newest, check_sum, NULL FROM refs WHERE name = ?
UNION ALL SELECT 2, id, caller, digest, result, time, check_sum FROM requests WHERE id = ?"""
"""The settings version, a reference and a request, in one statement."""

_TYPES: Mapping[str, tuple[type | UnionType, ...]] = {
    "refs": (str, str, bytes, bytes),
    "reflog": (int, str, str, *[bytes | None] * 2, int, *[str] * 4, bytes, bytes),
    "anchors": (str, bytes),
    "settings": (str, str | None, int, bytes),
    "requests": (str, str, bytes, bytes, int),
}
"""The types of columns before the checksum."""
_MICROSECONDS = range(253_402_300_800 * 10**6)
"""The times until the end of the year 9999, the last one that Python has."""
_VALUES: Mapping[str, Mapping[int, Container[object]]] = {
    "refs": {1: tuple(ReferenceType)},
    "reflog": {2: tuple(ReflogType), 5: _MICROSECONDS},
    "requests": {4: _MICROSECONDS},
}
"""The values of columns, by place, whose types have others."""

_MOST_SHOWN = 100
"""The most characters or bytes of a name in a message. References have up to 1,024."""
_encode = Encoder().encode


class DamagedRow(Exception):
    """A row whose checksum or fields are wrong."""


def reference_of(row: Row) -> StoredReference:
    """Returns the value of a row of `REFERENCE`."""
    return StoredReference(*checked_row("refs", row)[:3])


def first_moves(
    read: Callable[[int, int], list[ReflogRow]], before: int, limit: int | None
) -> list[ReflogRow]:
    """Returns moves with numbers below `before`, until their texts have `MOVES_TOGETHER`.

    `read` returns at most as many below a number, newest first.
    """
    moves: list[ReflogRow] = []
    size = 0
    while size < MOVES_TOGETHER and (limit is None or len(moves) < limit):
        most = _FEW_MOVES if limit is None else min(_FEW_MOVES, limit - len(moves))
        moves += (group := read(before, most))
        if len(group) < most:
            break
        before = group[-1].number
        size += sum(len(row.move.message) for row in group)
    return moves


def reflog_row_of(row: Row) -> ReflogRow:
    """Returns the value of a row of `REFLOG`."""
    *fields, previous, digest = row
    try:
        valid = entry_digest(previous, *fields) == digest
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise DamagedRow(f"table reflog, row {shown(row[0])}: its checksum is wrong")
    check_fields("reflog", row)
    return ReflogRow(row[0], Move(*fields[1:]))


def anchor_of(row: Row) -> tuple[str, bytes]:
    """Returns the name of a reference and the digest of its last expired entry."""
    name, digest = checked_row("anchors", row)
    return name, digest


def request_of(row: Row) -> RequestRecord:
    """Returns the value of a row of `REQUEST`."""
    return RequestRecord(*checked_row("requests", row))


def settings_of(rows: Iterable[Row]) -> StoredSettings:
    """Returns the value of the rows of `SETTINGS`."""
    return settings_of_fields(checked_row("settings", row) for row in rows)


def settings_of_fields(rows: Iterable[Row]) -> StoredSettings:
    """Returns the value of verified rows of settings.

    One without a value keeps a removal's version.
    """
    values, newest = {}, 0
    for name, value, version, *_ in rows:
        newest = max(newest, version)
        if value is not None:
            values[name] = value
    return StoredSettings(values, newest)


def reference_row(reference: StoredReference, newest: bytes) -> Row:
    """Returns the row of a reference, with the digest of its newest entry in the reflog."""
    return with_check("refs", reference.name, reference.kind, reference.target, newest)


def request_row(request: RequestRecord) -> Row:
    """Returns the row of a request."""
    return with_check(
        "requests", request.id, request.caller, request.digest, request.result, request.time
    )


def log_rows(
    numbers: Iterable[int], moves: Sequence[Move], newest: dict[str, bytes]
) -> list[tuple[Any, ...]]:
    """Returns the rows of moves with these numbers, each chained to the one before it.

    `numbers` may be longer than `moves`. `newest` has the digest of the newest entry of each
    reference, and is brought up to date.
    """
    rows = []
    for number, move in zip(numbers, moves, strict=False):
        fields = (
            number,
            move.name,
            move.kind,
            move.before,
            move.after,
            move.time,
            move.who,
            move.operation,
            move.message,
            move.request_id,
        )
        previous = newest.get(move.name, b"")
        newest[move.name] = digest = entry_digest(previous, *fields)
        rows.append((*fields, previous, digest))
    return rows


def with_check(table: str, *fields: str | bytes | int | None) -> Row:
    """Returns the fields of a row of a table, followed by their checksum."""
    return (*fields, row_check(table, fields))


def row_check(table: str, fields: Sequence[object]) -> int:
    """Returns the checksum of a row that is not an object.

    It covers the table, because a damaged file may show rows of another one with the same columns.
    """
    return crc32(_encode((table, fields)))


def entry_digest(previous: bytes, *fields: str | bytes | int | None) -> bytes:
    """Returns the digest of a reflog entry, which covers the digest of the one before it."""
    return blake2b(_encode((previous, fields)), digest_size=16).digest()


def checked_row(table: str, row: Row) -> Row:
    """Returns the fields of a row without its checksum, after verifying them."""
    *fields, check_sum = row
    if row_check(table, fields) != check_sum:
        raise DamagedRow(f"table {table}, row {shown(row[0])}: its checksum is wrong")
    return check_fields(table, tuple(fields))


def check_fields(table: str, row: Row) -> Row:
    """Returns a row. Raises `DamagedRow` unless its fields are values of their columns.

    A file from a stranger may have any values, with right checksums.
    """
    check_types(table, row, _TYPES[table])
    for place, values in _VALUES.get(table, {}).items():
        if row[place] not in values:
            raise DamagedRow(
                f"table {table}, row {shown(row[0])}: {shown(row[place])} is not valid there"
            )
    return row


def shown(name: object) -> str:
    """Returns a name in a store, which may have any size and type, for a message."""
    if isinstance(name, (str, bytes)) and len(name) > _MOST_SHOWN:
        return f"{name[:_MOST_SHOWN]!r}..."
    return repr(name)


def check_order(
    table: str, places: Iterable[Any], last: Any = None, *, descending: bool = False
) -> None:
    """Raises `DamagedRow` unless places grow, or fall if `descending`, from `last` on.

    A damaged tree of a file may be in no order. Reading it page by page would never end.
    """
    for place in places:
        try:
            in_order = last is None or (place < last if descending else place > last)
        except TypeError:
            in_order = False
        if not in_order:
            raise DamagedRow(f"table {table}, row {shown(place)}: out of order")
        last = place


def check_types(table: str, row: Row, types: Sequence[type | UnionType]) -> Row:
    """Returns a row. Raises `DamagedRow` unless its fields have these types.

    SQLite stores any type in any column.
    """
    if not all(map(isinstance, row, types)):
        raise DamagedRow(f"table {table}, row {shown(row[0])}: its fields have the wrong types")
    return row


def index_row_of(row: Row) -> tuple[bytes, int, bytes]:
    """Returns an index entry with the number and the id of its object."""
    entry, number, id_ = check_types("object_index", row, (bytes, int, bytes))
    return entry, number, id_


# -- packed objects --------------------------------------------------------------------------------

RAW, ZSTD = 0, 1
SMALL = 512
"""The size in bytes below which objects are stored raw."""
LONGEST_OBJECT = 64 << 20
"""The most bytes of an object, also decompressed.

A few bytes of a file from a stranger could expand to terabytes.
"""

# Nodes of key trees: levels -1, 1 and 3 compress 4,080 bytes to 3,439 in 9, 18 and 28 microseconds.
# Long texts get 17 % larger than by level 1.
_LEVEL = -1
_HEADER = 5


def pack(id_: bytes, kind: int, data: bytes) -> bytes:
    """Returns the form to store.

    It has five bytes more than `data`, or less if compressing helps. Costs about 15 microseconds
    for 4 KB. Raises `InvalidInput` for an object that is too large for a store.
    """
    if len(data) > LONGEST_OBJECT:
        raise InvalidInput(
            f"a content or commit takes more than {LONGEST_OBJECT >> 20} MiB, the limit of a store"
        )
    if len(data) >= SMALL:
        packed = _contexts.compressor.compress(data)
        if len(packed) < len(data):
            return _sealed(id_, kind, ZSTD, packed)
    return _sealed(id_, kind, RAW, data)


def unpack(id_: bytes, kind: int, blob: bytes) -> bytes:
    """Returns the object that was packed.

    Raises `ValueError` with the reason if anything changed.
    """
    payload = verified(id_, kind, blob)
    return payload if blob[0] == RAW else _decompress(payload)


def verified(id_: bytes, kind: int, blob: bytes) -> bytes:
    """Returns the compressed payload.

    Raises `ValueError` with the reason for a wrong checksum, and for an object that is too large.
    """
    if len(blob) < _HEADER:
        raise ValueError(f"only {len(blob)} bytes are left of it")
    codec, payload = blob[0], blob[_HEADER:]
    if codec not in (RAW, ZSTD):
        raise ValueError(f"no codec has the number {codec}")
    try:
        checksum = _check(id_, kind, codec, payload)
    except (TypeError, OverflowError):
        raise ValueError("its id, kind or bytes have the wrong type") from None
    if checksum != int.from_bytes(blob[1:_HEADER], "big"):
        raise ValueError("its checksum is wrong")
    if (len(payload) if codec == RAW else _expanded_size(payload)) > LONGEST_OBJECT:
        raise ValueError(f"it takes more than {LONGEST_OBJECT >> 20} MiB, the limit of a store")
    return payload


def _sealed(id_: bytes, kind: int, codec: int, payload: bytes) -> bytes:
    return b"%c%b%b" % (codec, _check(id_, kind, codec, payload).to_bytes(4, "big"), payload)


def _check(id_: bytes, kind: int, codec: int, payload: bytes) -> int:
    return crc32(payload, crc32(b"%b%c%c" % (id_, kind, codec)))


def _expanded_size(payload: bytes) -> int:
    """Returns the size in the frame's header. Decompressing fails if it is missing or wrong."""
    import zstandard

    try:
        return zstandard.frame_content_size(payload)
    except zstandard.ZstdError as error:
        raise ValueError(f"it cannot be decompressed ({error})") from None


def _decompress(payload: bytes) -> bytes:
    import zstandard

    try:
        return _contexts.decompressor.decompress(payload)
    except zstandard.ZstdError as error:
        raise ValueError(f"it cannot be decompressed ({error})") from None


class _Contexts(threading.local):
    """One compressor and one decompressor per thread, which cannot be shared."""

    @property
    def compressor(self) -> zstandard.ZstdCompressor:
        compressor: zstandard.ZstdCompressor | None = self.__dict__.get("_compressor")
        if compressor is None:
            import zstandard

            compressor = self.__dict__["_compressor"] = zstandard.ZstdCompressor(level=_LEVEL)
        return compressor

    @property
    def decompressor(self) -> zstandard.ZstdDecompressor:
        decompressor: zstandard.ZstdDecompressor | None = self.__dict__.get("_decompressor")
        if decompressor is None:
            import zstandard

            decompressor = self.__dict__["_decompressor"] = zstandard.ZstdDecompressor(
                max_window_size=LONGEST_OBJECT
            )
        return decompressor


_contexts = _Contexts()


# -- objects that are read together ----------------------------------------------------------------

_MOST_EXPANDED = 1 << 30
_LARGEST_RATIO = 100
"""Objects that are read together may take a gigabyte, or this many times their packed bytes."""


def object_of(row: Sequence[Any]) -> StoredObject | DamagedId:
    """Returns an object from its row: id, kind, packed bytes."""
    id_, kind, blob = row
    try:
        return StoredObject(id_, kind, unpack(id_, kind, blob))
    except (ValueError, TypeError, OverflowError) as error:
        return DamagedId(id_ or b"", kind, str(error))


def objects_of(url: str, rows: Iterable[Sequence[Any]]) -> dict[bytes, bytes]:
    """Returns the bytes of objects that are read together, by id, from the rows of `object_of`.

    Raises `DamagedObject`, also if a file from a stranger would expand without a limit.
    """
    objects: dict[bytes, bytes] = {}
    size = packed = 0
    for row in rows:
        stored = object_of(row)
        if isinstance(stored, StoredObject):
            objects[stored.id] = stored.data
            size += len(stored.data)
            packed += len(row[2])
            if size <= max(_MOST_EXPANDED, _LARGEST_RATIO * packed):
                continue
            reason = f"with others it takes more than {_MOST_EXPANDED >> 30} GiB decompressed"
        else:
            reason = stored.reason
        name = row[0].hex()
        raise DamagedObject(f"store {url}: object {name} is damaged: {reason}", name)
    return objects


def read_ahead_of(rows: Iterable[Sequence[Any]]) -> dict[bytes, bytes]:
    """Returns undamaged objects by id, until they take more bytes than the largest one may.

    The error about a damaged object is raised when it is needed.
    """
    objects: dict[bytes, bytes] = {}
    size = 0
    for stored in map(object_of, rows):
        if isinstance(stored, StoredObject):
            size += len(stored.data)
            if size > LONGEST_OBJECT:
                break
            objects[stored.id] = stored.data
    return objects


# -- ranges of names and ids -----------------------------------------------------------------------

_FIRST_SURROGATE, _AFTER_SURROGATES = 0xD800, 0xE000


def after_prefix(prefix: str) -> str | None:
    """Returns the first text after all that begin with `prefix`, or None if there is none."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return None
    code = ord(stem[-1]) + 1
    # Surrogates have no bytes that could be compared.
    return stem[:-1] + chr(_AFTER_SURROGATES if code == _FIRST_SURROGATE else code)


def hex_range(prefix: str) -> tuple[bytes, bytes] | None:
    """Returns the lowest and the highest id with this prefix of the lower-case hex form."""
    try:
        low = bytes.fromhex(prefix + "0" * (len(prefix) % 2))
        high = bytes.fromhex(prefix.ljust(64, "f"))
    except ValueError:
        return None
    return (low, high) if prefix == prefix.lower() else None
