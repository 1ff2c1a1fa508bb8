"""The form of an object in files: a codec byte, a checksum, the payload.

The checksum covers the object's id and kind, the codec byte and the payload. So a flipped byte, or
bytes stored under another id, are detected before decompression. Small objects are stored raw, so
commands that read only history, or a small catalog, do not load zstandard.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING
from zlib import crc32

from msgspec.msgpack import Encoder

from nessie_cli.errors import InvalidInput

if TYPE_CHECKING:
    import zstandard

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
_encode = Encoder().encode


def row_check(table: str, fields: Sequence[object]) -> int:
    """Returns the checksum of a row that is not an object.

    It covers the table, because a damaged file may show rows of another one with the same columns.
    """
    return crc32(_encode((table, fields)))


def entry_digest(previous: bytes, *fields: str | bytes | int | None) -> bytes:
    """Returns the digest of a reflog entry, which covers the digest of the one before it."""
    return blake2b(_encode((previous, fields)), digest_size=16).digest()


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
        found: zstandard.ZstdCompressor | None = self.__dict__.get("_compressor")
        if found is None:
            import zstandard

            found = self.__dict__["_compressor"] = zstandard.ZstdCompressor(level=_LEVEL)
        return found

    @property
    def decompressor(self) -> zstandard.ZstdDecompressor:
        found: zstandard.ZstdDecompressor | None = self.__dict__.get("_decompressor")
        if found is None:
            import zstandard

            found = self.__dict__["_decompressor"] = zstandard.ZstdDecompressor(
                max_window_size=LONGEST_OBJECT
            )
        return found


_contexts = _Contexts()
