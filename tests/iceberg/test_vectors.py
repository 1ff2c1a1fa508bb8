"""The bytes of deletion vectors, compared with the reader of PyIceberg."""

from __future__ import annotations

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile
from pyroaring import BitMap64

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.combination.states import FileContent, Identity, TableFile
from nessie_cli.iceberg.vectors import Blob, puffin_file, read_vector

positions = st.sets(st.integers(0, 2**31 - 2) | st.integers(0, 300), max_size=40)


def entry(place: Blob, records: int) -> TableFile:
    id_ = Identity("s3://b/v.puffin", *place)
    return TableFile(id_, FileContent.POSITION_DELETES, 0, (), records, 1, 1, 1, {}, "s3://b/d")


def blob(data: bytes, place: Blob) -> bytes:
    return data[place.offset : place.offset + place.size]


@given(st.lists(positions, min_size=1, max_size=4))
def test_each_vector_is_read_as_it_was_written(vectors: list[set[int]]) -> None:
    named = [(f"s3://b/{number}", BitMap64(each)) for number, each in enumerate(vectors)]
    data, places = puffin_file(named)
    for place, (_, given_positions) in zip(places, named, strict=True):
        file = entry(place, len(given_positions))
        assert read_vector(blob(data, place), file) == given_positions
    read = PuffinFile(data)
    assert [each.properties["referenced-data-file"] for each in read.footer.blobs] == [
        path for path, _ in named
    ]
    there = deletion_vectors_from_puffin_file(read)
    for (_, given_positions), described, other in zip(named, read.footer.blobs, there, strict=True):
        assert described.properties["cardinality"] == str(len(given_positions))
        if given_positions:
            assert sorted(other.to_vector().to_pylist()) == sorted(given_positions)


def test_positions_beyond_32_bits() -> None:
    vector = BitMap64([0, 2**32, 2**40 + 7])
    data, (place,) = puffin_file([("s3://b/d", vector)])
    assert read_vector(blob(data, place), entry(place, 3)) == vector


def test_long_ranges_of_rows_are_small() -> None:
    data, _ = puffin_file([("s3://b/d", BitMap64(range(10_000_000)))])
    assert len(data) < 5_000


@pytest.mark.parametrize("index", range(46))
def test_no_damaged_byte_is_read(index: int) -> None:
    data, (place,) = puffin_file([("s3://b/d", BitMap64([1, 2, 9]))])
    assert place.size == 46
    damaged = bytearray(blob(data, place))
    damaged[index] ^= 1
    with pytest.raises(InvalidInput, match="has no valid deletion vector at byte 4"):
        read_vector(bytes(damaged), entry(place, 3))


def test_other_sizes_and_counts_are_damage() -> None:
    data, (place,) = puffin_file([("s3://b/d", BitMap64([1, 2, 9]))])
    content = blob(data, place)
    for bad, file in (
        (content[:-1], entry(place, 3)),
        (b"", entry(place, 3)),
        (b"", entry(Blob(4, 0), 0)),
        (content, entry(place, 4)),
        (content + b"x", entry(Blob(4, place.size + 1), 3)),
    ):
        with pytest.raises(InvalidInput, match="has no valid deletion vector"):
            read_vector(bad, file)


def test_an_invalid_bitmap_with_a_right_checksum_is_damage() -> None:
    body = bytes.fromhex("d1d33964") + b"\xff" * 40
    bad = len(body).to_bytes(4, "big") + body + crc32(body).to_bytes(4, "big")
    with pytest.raises(InvalidInput, match="has no valid deletion vector"):
        read_vector(bad, entry(Blob(4, len(bad)), 3))


def test_encrypted_vectors_are_not_supported() -> None:
    data, (place,) = puffin_file([("s3://b/d", BitMap64([1]))])
    file = structs.replace(entry(place, 1), row={"key_metadata": b"k"})
    with pytest.raises(InvalidInput, match="is encrypted, which is not supported"):
        read_vector(blob(data, place), file)
