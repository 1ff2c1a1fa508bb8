"""The JSON of metadata files: read within limits, whole and at its head, never quoted."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.metadata import MAX_DEPTH, MOST_MEMBERS, MOST_VALUES_OF_ITEM, parse_document
from nessie_cli.iceberg.warehouses.metadata_files import check_values, head_of, parsed, plain
from nessie_cli.wire.large_json import MOST_VALUES

LOCATION = "file:///lake/db/t_1/metadata/a.metadata.json"
DOCUMENT = {
    "format-version": 2,
    "location": "file:///lake/db/t_1",
    "current-schema-id": 3,
    "unknown": {"é": [1, 2**63 - 1, 0.1, None, True]},
}
TEXT = json.dumps(DOCUMENT, ensure_ascii=False).encode()
BOTH = [parsed, head_of]


def nested(depth: int) -> bytes:
    return b'{"format-version": 2, "a": ' + b"[" * depth + b"]" * depth + b"}"


def test_a_text_is_read_as_a_whole_and_at_its_head() -> None:
    assert parsed(TEXT, LOCATION) == DOCUMENT
    head = head_of(TEXT, LOCATION)
    assert (head.format_version, head.location) == (2, "file:///lake/db/t_1")
    assert (head.current_schema_id, head.current_snapshot_id) == (3, None)


@pytest.mark.parametrize("read", BOTH)
@pytest.mark.parametrize(
    "text",
    [
        b"root:x:0:0:root:/root:/bin/bash\n",
        b"",
        b"\xff\xfe{}",
        b'{"s3cret": "root:x"}',
        b'["root:x"]',
        b'{"format-version": 2, "a": root:x}',
        b'{"format-version": 2, "a": "root:x\xff"}',
        b'{"format-version": 2, "a": "root:x"',
        b"PAR1 root:x",
        gzip.compress(TEXT, mtime=0),
        b'{"format-version": 2, "a": "' + b"x" * 2**20 + b'\xff"}',
        b" " * 2**20,
    ],
)
def test_what_is_no_metadata_is_refused_and_not_quoted(
    read: Callable[[bytes, str], Any], text: bytes
) -> None:
    with pytest.raises(InvalidInput) as error:
        read(text, LOCATION)
    assert error.value.message == f"{LOCATION} is not an Iceberg metadata file"
    assert error.value.__cause__ is None


@pytest.mark.parametrize("text", [nested(100_000), nested(1_000_000)])
@pytest.mark.parametrize("read", BOTH)
def test_deep_json_is_refused(read: Callable[[bytes, str], Any], text: bytes) -> None:
    with pytest.raises(InvalidInput, match="has more than 200 levels"):
        read(text, LOCATION)


def test_nesting_up_to_the_limit_is_read() -> None:
    assert parsed(nested(MAX_DEPTH - 1), LOCATION)["format-version"] == 2
    with pytest.raises(InvalidInput, match="has more than 200 levels"):
        parsed(nested(MAX_DEPTH + 1), LOCATION)


def test_the_number_of_values_of_a_file_is_bounded() -> None:
    items = b"0," * (MOST_VALUES + 1)
    with pytest.raises(InvalidInput, match="4,000,000 JSON values"):
        parsed(b'{"format-version": 2, "a": [%b0]}' % items, LOCATION)


@pytest.mark.parametrize("member", [b'[{"fields": [%b0]}]', b'{"x": [[[%b0]]]}'])
def test_the_number_of_values_of_an_item_is_bounded(member: bytes) -> None:
    form = b'{"format-version": 2, "schemas": %b}' % member
    assert parsed(form % (b"0," * (MOST_VALUES_OF_ITEM - 10)), LOCATION)["schemas"]
    with pytest.raises(InvalidInput, match="500,000 JSON values"):
        parsed(form % (b"0," * MOST_VALUES_OF_ITEM), LOCATION)


# -- the command line and the server ---------------------------------------------------------------

TABLE = json.dumps(
    {
        "format-version": 1,
        "location": "file:///lake/db/t",
        "last-column-id": 0,
        "schema": {"type": "struct", "fields": []},
    }
).encode()
HALF = len(TABLE) // 2
OTHER_SPELLINGS = {
    "byte order mark": b"\xef\xbb\xbf" + TABLE,
    "compressed": gzip.compress(TABLE),
    "compressed byte order mark": gzip.compress(b"\xef\xbb\xbf" + TABLE),
    "two members": gzip.compress(TABLE[:HALF]) + gzip.compress(TABLE[HALF:]),
    "many members": b"".join(gzip.compress(TABLE[n : n + 1]) for n in range(len(TABLE))),
    "bytes behind it": gzip.compress(TABLE) + b"junk",
    "zeros behind it": gzip.compress(TABLE) + bytes(512),
    "a large member": gzip.compress(TABLE + b" " * 2**20, 0),
}


def added(value: bytes) -> bytes:
    return TABLE[:-1] + b', "x": %b}' % value


REFUSED = {
    "NaN": added(b"NaN"),
    "Infinity": added(b"-Infinity"),
    "number out of range": added(b"1e999"),
    "digits": added(b"9" * 5000),
    "half of a surrogate pair": added(rb'"\ud800"'),
    "half of a surrogate pair in a name": added(rb'{"\ud800": 1}'),
    "levels": added(b"[" * 400 + b"]" * 400),
    "control character": added(b'"a\tb"'),
    "comment": b"/* */" + TABLE,
    "trailing comma": TABLE[:-1] + b",}",
    "two values": TABLE + TABLE,
    "UTF-16": TABLE.decode().encode("utf-16"),
    "compressed twice": gzip.compress(gzip.compress(TABLE)),
    "cut": gzip.compress(TABLE)[:-5],
    "second member cut": gzip.compress(TABLE) + gzip.compress(b" " * 99)[:-5],
    "second member damaged": gzip.compress(TABLE) + b"\x1f\x8b" + b"x" * 40,
    "too many members": gzip.compress(b" ") * MOST_MEMBERS + gzip.compress(TABLE),
}


def read_by_the_server(data: bytes) -> Any:
    text = plain(data, LOCATION)
    assert head_of(text, LOCATION).format_version == 1
    return parsed(text, LOCATION)


def read_by_the_command_line(data: bytes) -> Any:
    return parse_document(data, LOCATION)


READERS = [read_by_the_server, read_by_the_command_line]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("spelling", OTHER_SPELLINGS)
def test_each_spelling_that_iceberg_reads_is_read(
    read: Callable[[bytes], Any], spelling: str
) -> None:
    assert read(OTHER_SPELLINGS[spelling]) == json.loads(TABLE)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("spelling", REFUSED)
def test_each_other_spelling_is_refused(read: Callable[[bytes], Any], spelling: str) -> None:
    with pytest.raises(InvalidInput) as error:
        read(REFUSED[spelling])
    assert error.value.message.startswith(LOCATION)


def test_a_text_that_is_compressed_twice_is_refused() -> None:
    """It could have many times the content that was counted."""
    twice = gzip.compress(gzip.compress(TEXT, mtime=0), mtime=0)
    with pytest.raises(InvalidInput, match="not an Iceberg metadata file"):
        check_values(plain(twice, LOCATION), LOCATION)
    check_values(plain(gzip.compress(TEXT, mtime=0), LOCATION), LOCATION)
