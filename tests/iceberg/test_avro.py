"""Avro files of any writer are read within limits."""

from __future__ import annotations

import gc
import io
import json
import os
import tracemalloc
import zlib
from random import Random
from typing import Any

import fastavro
import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.avro import MOST_LEVELS, OF_MERGES, AvroLimits, read_avro
from nessie_cli.iceberg.combination.manifests import read_list
from tests.server.longest_call import ATTEMPTS, MOST_SECONDS, LongestCall

SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [{"name": "path", "type": "string"}, {"name": "n", "type": ["null", "long"]}],
}
ROWS = [{"path": f"p{number}", "n": number if number % 3 else None} for number in range(5000)]


def number(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    data = b""
    while value > 0x7F:
        data += bytes([value & 0x7F | 0x80])
        value >>= 7
    return data + bytes([value])


def container(schema: Any, *blocks: tuple[int, bytes], codec: str = "deflate") -> bytes:
    sync = os.urandom(16)
    members = {b"avro.schema": json.dumps(schema).encode(), b"avro.codec": codec.encode()}
    data = b"Obj\x01" + number(len(members))
    for name, value in members.items():
        data += number(len(name)) + name + number(len(value)) + value
    data += number(0) + sync
    for count, block in blocks:
        data += number(count) + number(len(block)) + block + sync
    return data


def deflated(data: bytes) -> bytes:
    packing = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packing.compress(data) + packing.flush()


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_rows_are_read_as_they_were_written(codec: str) -> None:
    file = io.BytesIO()
    fastavro.writer(file, SCHEMA, ROWS, codec=codec, metadata={"format-version": "2"})
    read = read_avro(file.getvalue())
    assert read.rows == ROWS
    assert read.metadata == {"format-version": "2"}
    names = {"type": "record", "name": "r", "fields": [SCHEMA["fields"][0]]}
    projected = read_avro(file.getvalue(), projected=lambda _: names)
    assert projected.rows == [{"path": row["path"]} for row in ROWS]
    with pytest.raises(ValueError, match="more than 4,999 rows"):
        read_avro(file.getvalue(), AvroLimits(rows=4999))
    with pytest.raises(ValueError, match="unpacks to more than 0 MiB"):
        read_avro(file.getvalue(), AvroLimits(unpacked=20_000))


NEXT = {"name": "next", "type": ["null", "m"]}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "record", "name": "m", "fields": [NEXT]},
        {"type": "record", "name": "m", "namespace": "a.b", "fields": [NEXT]},
        {
            "type": "record",
            "name": "top",
            "fields": [
                {
                    "name": "list",
                    "type": {
                        "type": "array",
                        "items": {"type": "record", "name": "m", "fields": [NEXT]},
                    },
                }
            ],
        },
        {"type": "record", "name": "m", "fields": [{"name": "x", "type": {"type": ["null", "m"]}}]},
        {
            "type": "record",
            "name": "m",
            "fields": [{"name": "x", "type": {"type": "map", "values": "m"}}],
        },
    ],
)
def test_a_schema_that_contains_itself_is_refused(schema: Any) -> None:
    nested = (number(0) + number(1)) * 5000 + number(0) + number(0)
    data = container(schema, (1, deflated(nested)))
    with pytest.raises(InvalidInput, match="contains itself"):
        read_list(data, "list.avro")


def test_a_schema_with_many_levels_is_refused() -> None:
    schema: Any = "long"
    for _ in range(MOST_LEVELS + 5):
        schema = {"type": "array", "items": schema}
    record = {"type": "record", "name": "m", "fields": [{"name": "x", "type": schema}]}
    with pytest.raises(InvalidInput, match="levels"):
        read_list(container(record, (1, deflated(b"\0"))), "list.avro")
    text = b'{"type": "array", "items": ' * 100_000 + b'"long"' + b"}" * 100_000
    deep = b"Obj\x01" + number(1) + number(11) + b"avro.schema" + number(len(text)) + text
    with pytest.raises(InvalidInput):
        read_list(deep + number(0) + bytes(16), "list.avro")


def test_small_blocks_that_unpack_to_much_are_refused() -> None:
    many = deflated(b"\0\0" * (8 << 20))
    with pytest.raises(ValueError, match="unpacks to more than 4 MiB"):
        read_avro(container(SCHEMA, (8 << 20, many)), AvroLimits(unpacked=4 << 20))
    empty = {"type": "record", "name": "m", "fields": []}
    with pytest.raises(ValueError, match="more than 10,000,000 rows"):
        read_avro(container(empty, (1 << 40, b""), codec="null"))
    with pytest.raises(ValueError, match="rows"):
        read_avro(container(empty, (1 << 40, b""), (-(1 << 40), b""), codec="null"))


def test_a_file_that_is_cut_off_is_damaged() -> None:
    data = container(SCHEMA, (1, deflated(number(1) + b"a" + number(0))))
    header = len(container(SCHEMA))
    for end in range(len(data) - 16):
        if end != header:
            with pytest.raises(InvalidInput):
                read_list(data[:end], "list.avro")


def test_compression_without_a_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="compression"):
        read_avro(container(SCHEMA, codec="other"))


def with_field(type_: Any) -> dict[str, Any]:
    return {**SCHEMA, "fields": [*SCHEMA["fields"], {"name": "more", "type": type_}]}


EMPTY: dict[str, Any] = {"type": "record", "name": "e", "fields": []}
FIELDS = {"fields": [{"name": "n", "type": "long"}]}
WITHOUT_BYTES: dict[str, Any] = {
    "null": "null",
    "null as a type": {"type": "null"},
    "empty record": EMPTY,
    "error": {**EMPTY, "type": "error"},
    "record of nulls": {**EMPTY, "fields": [{"name": "n", "type": "null"}]},
    "fixed": {"type": "fixed", "name": "f", "size": 0},
}


@pytest.mark.parametrize("what", WITHOUT_BYTES)
def test_an_array_of_values_without_a_byte_is_refused_before_it_is_read(what: str) -> None:
    """A decoder would make all of them while no other thread runs: for a minute, or for ever."""
    items = WITHOUT_BYTES[what]
    block = number(1) + b"a" + number(0) + number(1 << 50) + number(0)
    for schema in (
        with_field({"type": "array", "items": items}),
        with_field(["null", {"type": "array", "items": items}]),
        with_field(
            {
                **EMPTY,
                "name": "x",
                "fields": [{"name": "y", "type": {"type": "map", "values": items}}],
            }
        ),
    ):
        with pytest.raises(ValueError, match="an array of values without a byte"):
            read_avro(container(schema, (1, deflated(block))))


def test_an_array_of_named_values_without_a_byte_is_refused() -> None:
    schema = with_field({"type": "array", "items": "a.e"})
    schema["fields"].insert(0, {"name": "first", "type": {**EMPTY, "namespace": "a"}})
    with pytest.raises(ValueError, match="an array of values without a byte"):
        read_avro(container(schema))
    # A later name with the same end does not hide it.
    schema["fields"].insert(1, {"name": "b", "type": {"type": "error", "name": "b.e", **FIELDS}})
    with pytest.raises(ValueError, match="an array of values without a byte"):
        read_avro(container(schema))


def test_a_schema_with_many_fields_without_a_byte_is_refused() -> None:
    fields = [{"name": f"n{place}", "type": "null"} for place in range(20)]
    with pytest.raises(ValueError, match="more than 10 fields without a byte"):
        read_avro(container({**EMPTY, "fields": fields}))
    large = {**SCHEMA, "doc": "x" * (1 << 18)}
    with pytest.raises(ValueError, match="larger than 256 KiB"):
        read_avro(container(large))


def test_a_block_has_any_number_of_rows() -> None:
    """PyIceberg writes a manifest list as one block."""
    row = number(300) + b"a" * 300 + number(0)
    data = container(SCHEMA, (20_000, deflated(row * 20_000)))
    assert read_avro(data, OF_MERGES).rows == [{"path": "a" * 300, "n": None}] * 20_000


def test_other_threads_run_while_a_large_row_is_read() -> None:
    many = 1_900_000
    block = number(1) + b"a" + number(0) + number(many) + bytes(many) + number(0)
    data = container(with_field({"type": "array", "items": "int"}), (1, deflated(block)))
    longest: list[float] = []
    gc.disable()
    try:
        while len(longest) < ATTEMPTS and not (longest and min(longest) < MOST_SECONDS):
            with LongestCall() as call:
                assert len(read_avro(data, OF_MERGES).rows[0]["more"]) == many
            longest.append(call.seconds)
    finally:
        gc.enable()
    assert min(longest) < MOST_SECONDS


def test_a_large_row_is_refused() -> None:
    schema = with_field({"type": "array", "items": "int"})
    many = 3 << 20
    block = number(1) + b"a" + number(0) + number(many) + bytes(many) + number(0)
    data = container(schema, (1, deflated(block)))
    assert len(read_avro(data).rows[0]["more"]) == many
    with pytest.raises(ValueError, match="a row has more than 2 MiB"):
        read_avro(data, OF_MERGES)
    nested = with_field({"type": "array", "items": {"type": "array", "items": "int"}})
    with pytest.raises(ValueError, match="an array in an array"):
        read_avro(container(nested))


KEY_AND_VALUE = {
    "type": "record",
    "name": "kv",
    "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}],
}
WIDE = {
    "type": "record",
    "name": "wide",
    "fields": [{"name": f"f{number}", "type": "boolean"} for number in range(6_000)],
}


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ({"type": "array", "items": KEY_AND_VALUE}, number(10_000) + bytes(20_000) + number(0)),
        (WIDE, bytes(6_000)),
    ],
    ids=["items", "fields"],
)
def test_values_of_few_bytes_do_not_fill_the_memory(part: Any, value: bytes) -> None:
    """Each takes up to 200 times as much in memory."""
    row = number(1) + b"a" + number(0) + value
    data = container(with_field(part), (60, deflated(row * 60)))
    assert len(data) < 1 << 20
    small = OF_MERGES._replace(file=16 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="takes more than 16 MiB of memory"):
            read_avro(data, small)
        reduced = read_avro(data, small, reduced=lambda row: {"path": row["path"]})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert reduced.rows == [{"path": "a"}] * 60
    assert peak < 48 << 20


def test_rows_of_any_size_are_read_a_part_at_a_time() -> None:
    """The ends of rows are at, before and behind the end of a part, also within fixed values."""
    fields = [*SCHEMA["fields"], {"name": "f", "type": {"type": "fixed", "name": "x", "size": 9}}]
    random = Random(1)
    sizes = [*range(4060, 4100), *(random.randrange(9000) for _ in range(300)), 60_000, 0]
    rows = [{"path": "p" * size, "n": size, "f": random.randbytes(9)} for size in sizes]
    file = io.BytesIO()
    fastavro.writer(file, {**SCHEMA, "fields": fields}, rows, sync_interval=1 << 30)
    assert read_avro(file.getvalue(), OF_MERGES).rows == rows
    damaged = container(SCHEMA, (2, deflated(number(5000) + b"a" * 5000 + number(0))))
    with pytest.raises(InvalidInput):
        read_list(damaged, "list.avro", limits=OF_MERGES)


def test_no_call_is_long_while_a_small_block_is_read() -> None:
    """A decoder takes some microseconds for a record of one byte."""
    fields = [{"name": f"n{place}", "type": "null"} for place in range(9)]
    items = {"type": "record", "name": "i", "fields": [*fields, {"name": "i", "type": "int"}]}
    block = number(1) + b"a" + number(0) + number(100_000) + bytes(100_000) + number(0)
    data = container(with_field({"type": "array", "items": items}), (1, deflated(block)))
    longest: list[float] = []
    gc.disable()
    try:
        while len(longest) < ATTEMPTS and not (longest and min(longest) < MOST_SECONDS):
            with LongestCall() as call:
                read_avro(data, OF_MERGES, lambda schema: {**schema})
            longest.append(call.seconds)
    finally:
        gc.enable()
    assert min(longest) < MOST_SECONDS


def test_a_header_with_many_members_is_refused() -> None:
    many = 200_000
    data = b"Obj\x01" + number(many) + (number(1) + b"a" + number(0)) * many + number(0)
    with pytest.raises(ValueError, match="header has more than 1,000 members"):
        read_avro(data + bytes(16))


DECIMAL = {"logicalType": "decimal", "precision": 9, "scale": 2}


@pytest.mark.parametrize(
    "type_",
    [
        {"type": "bytes", **DECIMAL},
        {"type": "fixed", "name": "d", "size": 17, **DECIMAL},
        ["null", {"type": "array", "items": {"type": "bytes", **DECIMAL}}],
    ],
)
def test_a_server_refuses_decimals_of_any_size(type_: Any) -> None:
    """The time that one takes grows with the square of its length: 2 MB take minutes."""
    with pytest.raises(ValueError, match="decimal that may have more than 16 bytes"):
        read_avro(container(with_field(type_)), OF_MERGES)
    assert read_avro(container(with_field(type_))).rows == []
    largest = {"type": "fixed", "name": "d", "size": 16, **DECIMAL}
    assert read_avro(container(with_field(largest)), OF_MERGES).rows == []


def test_a_union_of_many_types_is_refused() -> None:
    types = [{"type": "fixed", "name": f"x{place}", "size": 1} for place in range(11)]
    with pytest.raises(ValueError, match="union of more than 10 types"):
        read_avro(container(with_field(types)))


def test_an_enum_of_many_symbols_is_refused() -> None:
    """A decoder that reads by another schema searches them for each value."""
    symbols = [f"s{place}" for place in range(101)]
    enum = {"type": "enum", "name": "e", "symbols": symbols}
    for type_ in (enum, ["null", enum], {"type": "array", "items": enum}):
        with pytest.raises(ValueError, match="enum of more than 100 symbols"):
            read_avro(container(with_field(type_)))
    read_avro(container(with_field({**enum, "symbols": symbols[:100]})))


def test_empty_blocks_count_as_rows() -> None:
    blocks = [(0, b"")] * 11
    with pytest.raises(ValueError, match="more than 10 rows"):
        read_avro(container(SCHEMA, *blocks, codec="null"), AvroLimits(rows=10))
