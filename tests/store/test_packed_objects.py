"""The stored form of objects: every flipped byte is found, small objects are not compressed."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from random import Random
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nessie_cli.store.rows import RAW, SMALL, ZSTD, pack, unpack

HEADER = 5
ID = bytes(range(32))
TEXT = b"metadata/00012-a.json, metadata/00013-b.json, " * 40


@given(st.binary(max_size=2000) | st.binary(max_size=40).map(lambda part: part * 100))
@settings(print_blob=True)
def test_packed_objects_are_unpacked_unchanged(data: bytes) -> None:
    assert unpack(ID, 1, pack(ID, 1, data)) == data


@pytest.mark.parametrize(
    "data", [b"", b"x", b"a commit " * 30, TEXT], ids=["empty", "one byte", "raw", "compressed"]
)
def test_every_flipped_byte_is_found(data: bytes) -> None:
    blob = pack(ID, 1, data)
    for position in range(len(blob)):
        for flip in (1, 0x80, 0xFF, blob[position] or 2):
            damaged = bytearray(blob)
            damaged[position] ^= flip
            with pytest.raises(ValueError, match=r"its checksum is wrong|no codec has the number"):
                unpack(ID, 1, bytes(damaged))


@pytest.mark.parametrize("data", [b"", b"a commit " * 30, TEXT], ids=["empty", "raw", "compressed"])
def test_every_shortened_or_lengthened_form_is_found(data: bytes) -> None:
    blob = pack(ID, 1, data)
    for length in range(len(blob)):
        with pytest.raises(ValueError, match=r"checksum|bytes are left"):
            unpack(ID, 1, blob[:length])
    with pytest.raises(ValueError, match="checksum"):
        unpack(ID, 1, blob + b"\0")


def test_bytes_of_another_id_or_kind_are_found() -> None:
    blob = pack(ID, 1, TEXT)
    for id_, kind in ((ID[:-1] + b"x", 1), (ID, 2), (b"", 1)):
        with pytest.raises(ValueError, match="its checksum is wrong"):
            unpack(id_, kind, blob)


def test_objects_are_compressed_only_if_it_helps() -> None:
    assert pack(ID, 1, b"a" * (SMALL - 1))[0] == RAW
    assert pack(ID, 1, b"a" * SMALL)[0] == ZSTD
    assert len(pack(ID, 1, TEXT)) < len(TEXT) / 4
    noise = Random(7).randbytes(3000)
    assert pack(ID, 1, noise)[0] == RAW
    assert len(pack(ID, 1, noise)) == len(noise) + HEADER


def test_a_payload_that_cannot_be_decompressed_is_damaged() -> None:
    payload = b"no zstd frame"
    blob = bytes([ZSTD]) + crc32(payload, crc32(ID + bytes([1, ZSTD]))).to_bytes(4, "big") + payload
    with pytest.raises(ValueError, match="cannot be decompressed"):
        unpack(ID, 1, blob)


def test_small_objects_need_no_zstandard() -> None:
    code = f"""import sys; from nessie_cli.store.rows import pack, unpack
unpack(b'i', 1, pack(b'i', 1, b'a' * {SMALL - 1})); print('zstandard' in sys.modules)"""
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "False\n"
    )


def test_threads_do_not_share_a_compressor() -> None:
    def work(seed: int) -> None:
        data = [bytes([seed, n % 256]) * 900 for n in range(300)]
        assert [unpack(ID, 1, pack(ID, 1, d)) for d in data] == data

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
