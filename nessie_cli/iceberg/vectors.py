"""Deletion vectors: positions of deleted rows of data files, in blobs of Puffin files.

https://iceberg.apache.org/puffin-spec/#deletion-vector-v1-blob-type
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple
from zlib import crc32

import msgspec
from pyroaring import BitMap64

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.combination.states import TableFile
from nessie_cli.iceberg.locations import shown

_VECTOR_MAGIC = bytes.fromhex("d1d33964")
_PUFFIN_MAGIC = b"PFA1"
_NUMBER = 4
"""The bytes of the length before the magic, and of the checksum after the bitmap."""
_ROW_POSITION = 2147483645
"""The field id of the column `_pos`."""
_NO_FLAGS = bytes(4)


class Blob(NamedTuple):
    """Where a vector is in a Puffin file."""

    offset: int
    size: int


def read_vector(blob: bytes, file: TableFile) -> BitMap64:
    """Returns the positions in the blob of a vector. Raises `InvalidInput` if it is damaged."""
    if file.row.get("key_metadata") is not None:
        raise InvalidInput(f"{shown(file.path)} is encrypted, which is not supported")
    length, body, checksum = blob[:_NUMBER], blob[_NUMBER:-_NUMBER], blob[-_NUMBER:]
    if (
        len(blob) == file.identity.size
        and int.from_bytes(length, "big") == len(body)
        and int.from_bytes(checksum, "big") == crc32(body)
        and body.startswith(_VECTOR_MAGIC)
    ):
        with suppress(IndexError, ValueError):
            positions = BitMap64.deserialize(body.removeprefix(_VECTOR_MAGIC))
            if len(positions) == file.records:
                return positions
    offset = file.identity.offset
    raise InvalidInput(f"{shown(file.path)} has no valid deletion vector at byte {offset}")


def puffin_file(vectors: Iterable[tuple[str, BitMap64]]) -> tuple[bytes, list[Blob]]:
    """Returns the bytes of a Puffin file, and where the vector of each data file is in it."""
    data = bytearray(_PUFFIN_MAGIC)
    places, described = [], []
    for path, positions in vectors:
        content = _blob(positions)
        place = Blob(len(data), len(content))
        places.append(place)
        data += content
        described.append(
            {
                "type": "deletion-vector-v1",
                "fields": [_ROW_POSITION],
                # The vector belongs to the snapshot of its manifest entry.
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": place.offset,
                "length": place.size,
                "properties": {
                    "referenced-data-file": path,
                    "cardinality": str(len(positions)),
                },
            }
        )
    footer = msgspec.json.encode({"blobs": described, "properties": {"created-by": "nessie"}})
    data += _PUFFIN_MAGIC + footer + len(footer).to_bytes(4, "little") + _NO_FLAGS + _PUFFIN_MAGIC
    return bytes(data), places


def _blob(positions: BitMap64) -> bytes:
    compact = positions.copy()
    compact.run_optimize()
    body = _VECTOR_MAGIC + compact.serialize()
    return len(body).to_bytes(_NUMBER, "big") + body + crc32(body).to_bytes(_NUMBER, "big")
