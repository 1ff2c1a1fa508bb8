"""Input: each value is decoded completely, or refused in one line that names its place."""

from __future__ import annotations

import copy
import json
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.model import (
    UDF,
    CommitMeta,
    ContentKey,
    Delete,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    Namespace,
    Put,
    Unchanged,
    UnknownContent,
)
from nessie_cli.wire.batches import decode_batch
from nessie_cli.wire.bodies import MOST_COPIED, MOST_DECISIONS, MOST_REQUESTED
from nessie_cli.wire.contents import MOST_ITEMS
from nessie_cli.wire.decode import (
    decode_commit_meta,
    decode_content,
    decode_content_value,
    decode_key,
    decode_merge,
    decode_namespace_update,
    decode_operation,
    decode_operations,
    decode_requested_keys,
    decode_transplant,
)
from nessie_cli.wire.values import MAX_DEPTH

TABLE = {
    "type": "ICEBERG_TABLE",
    "metadataLocation": "f",
    "snapshotId": 1,
    "schemaId": 2,
    "specId": 3,
    "sortOrderId": 4,
}
PUT = {"type": "PUT", "key": {"elements": ["db", "t"]}, "content": TABLE}
KEY = ContentKey(("db", "t"))
ABSENT: Any = object()


def changed(value: Any, **paths: Any) -> Any:
    """Returns a copy with one attribute changed; `__` steps into an object, `ABSENT` removes."""
    value = copy.deepcopy(value)
    for path, new in paths.items():
        *outer, last = path.split("__")
        inner = value
        for name in outer:
            inner = inner[name]
        inner.pop(last, None) if new is ABSENT else inner.update({last: new})
    return value


def message_of(decode: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        decode(*args, **options)
    assert "\n" not in caught.value.message
    return caught.value.message


# -- contents ------------------------------------------------------------------------------------
ACCEPTED = [
    (TABLE, IcebergTable(metadata_location="f", snapshot_id=1, schema_id=2, spec_id=3, sort_order_id=4)),
    (TABLE | {"id": None, "metadata": {"x": 1}, "later": []},
     IcebergTable(metadata_location="f", snapshot_id=1, schema_id=2, spec_id=3, sort_order_id=4)),
    (changed(TABLE, metadataLocation=" "), IcebergTable(metadata_location=" ", snapshot_id=1, schema_id=2, spec_id=3, sort_order_id=4)),
    ({"type": "ICEBERG_VIEW", "id": "i", "metadataLocation": "f", "versionId": 2**63 - 1, "schemaId": -(2**31), "sqlText": None, "dialect": "d"},
     IcebergView(id="i", metadata_location="f", version_id=2**63 - 1, schema_id=-(2**31), dialect="d")),
    ({"type": "DELTA_LAKE_TABLE", "metadataLocationHistory": None, "checkpointLocationHistory": ["a", "b"]},
     DeltaLakeTable(checkpoint_location_history=("a", "b"))),
    ({"type": "NAMESPACE", "elements": ["a"], "properties": None}, Namespace(elements=("a",))),
    ({"type": "NAMESPACE"}, Namespace(elements=())),
    ({"type": "UDF"}, UDF()),
    ({"type": "UDF", "versionId": "1"}, UDF(version_id="1")),
]  # fmt: skip


@pytest.mark.parametrize(("body", "content"), ACCEPTED, ids=[str(n) for n in range(len(ACCEPTED))])
def test_each_type_is_read_with_defaults_and_without_unknown_attributes(body, content):
    assert decode_content_value(body) == content
    assert decode_content(json.dumps(body), "x.json") == content


REFUSED = [
    (changed(TABLE, snapshotId="1"), 'content.snapshotId: must be an integer, not "1"'),
    (changed(TABLE, snapshotId=True), "content.snapshotId: must be an integer, not true"),
    (changed(TABLE, snapshotId=1.0), "content.snapshotId: must be an integer, not 1.0"),
    (changed(TABLE, snapshotId=None), "content.snapshotId: must be an integer, not null"),
    (changed(TABLE, snapshotId=2**63), "content.snapshotId: is out of range: 9223372036854775808 does not fit into 64 bits"),
    (changed(TABLE, snapshotId=-(2**63) - 1), "content.snapshotId: is out of range: -9223372036854775809 does not fit into 64 bits"),
    (changed(TABLE, schemaId=2**31), "content.schemaId: is out of range: 2147483648 does not fit into 32 bits"),
    (changed(TABLE, specId=ABSENT), "content.specId: is missing"),
    (changed(TABLE, metadataLocation=12), "content.metadataLocation: must be a string, not 12"),
    (changed(TABLE, id=["i"]), "content.id: must be a string, not a list"),
    (changed(TABLE, type=ABSENT), "content.type: is missing (ICEBERG_TABLE, DELTA_LAKE_TABLE, ICEBERG_VIEW, NAMESPACE, UDF)"),
    (changed(TABLE, type=7), "content.type: must be a string, not 7"),
    (changed(TABLE, type="iceberg_table"), 'content.type: "iceberg_table" is not a content type (write ICEBERG_TABLE)'),
    (changed(TABLE, type="HUDI"),
     'content.type: "HUDI" is not a content type (known are ICEBERG_TABLE, DELTA_LAKE_TABLE, ICEBERG_VIEW, NAMESPACE, UDF)'),
    ({"type": "NAMESPACE", "elements": "a"}, 'content.elements: must be a list, not "a"'),
    ({"type": "NAMESPACE", "elements": ["a", 1]}, "content.elements[1]: must be a string, not 1"),
    ({"type": "NAMESPACE", "elements": ["a", "."]}, "content.elements: the last element must not be '.'"),
    ({"type": "NAMESPACE", "elements": [], "properties": {"a": 1}}, "content.properties.a: must be a string, not 1"),
    ({"type": "NAMESPACE", "elements": [], "properties": []}, "content.properties: must be an object, not a list"),
    ({"type": "DELTA_LAKE_TABLE", "metadataLocationHistory": [None]}, "content.metadataLocationHistory[0]: must be a string, not null"),
    ("x" * 100, 'content: must be an object, not "' + "x" * 56 + "..."),
    ([], "content: must be an object, not a list"),
    (None, "content: must be an object, not null"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message"), REFUSED, ids=[m[:50] for _, m in REFUSED])
def test_the_message_for_an_invalid_content_has_place_and_fault(body, message):
    assert message_of(decode_content_value, body) == message


def test_an_unknown_type_is_kept_completely_if_allowed():
    body = {"type": "HUDI", "id": "i", "x": {"y": [1.5, None]}, "snapshotId": "1"}
    assert decode_content_value(body, allow_unknown=True) == UnknownContent(
        id="i", foreign_type="HUDI", foreign_attributes={"x": {"y": [1.5, None]}, "snapshotId": "1"}
    )
    assert (
        message_of(decode_content_value, {"type": "HUDI", "id": 5}, allow_unknown=True)
        == "content.id: must be a string, not 5"
    )
    assert (
        message_of(decode_content_value, {"type": " "}, allow_unknown=True)
        == "content.type: must not be blank"
    )
    assert message_of(
        decode_content_value, changed(TABLE, snapshotId="1"), allow_unknown=True
    ).startswith("content.snapshotId")


def test_the_depth_of_an_unknown_type_is_limited():
    def nested(levels: int) -> dict[str, Any]:
        body: Any = 1
        for _ in range(levels - 1):
            body = [body]
        return {"type": "HUDI", "x": body}

    assert decode_content_value(nested(MAX_DEPTH), allow_unknown=True).attributes()
    assert (
        message_of(decode_content_value, nested(MAX_DEPTH + 1), allow_unknown=True)
        == f"content: is nested more than {MAX_DEPTH} levels deep"
    )


# -- keys and operations -------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"elements": []}, "key: Content key must not be empty"),
        ({"elements": ["a", ""]}, "key: Content key '[a, ]' must not contain an empty element"),
        (
            {"elements": ["a\x05"]},
            "key: Content key ['a\\x05'] must not contain characters less than 0x20",
        ),
        (
            {"elements": ["x"] * 21},
            f"key: Key '{'.'.join('x' * 21)}' has 21 elements, max allowed number of elements: 20",
        ),
        ({"elements": ["\U0001f680" * 251]}, "key: Content key too long, max allowed length: 500"),
        ({"elements": "a"}, 'key.elements: must be a list, not "a"'),
        ({"elements": [["a"]]}, "key.elements[0]: must be a string, not a list"),
        ({"elements": None}, "key: Content key must not be empty"),
        ({}, "key: Content key must not be empty"),
        ("a.b", 'key: must be an object, not "a.b"'),
        (["a"], "key: must be an object, not a list"),
    ],
)
def test_the_message_for_an_invalid_key_has_place_and_fault(body, message):
    assert message_of(decode_key, body) == message


def test_operations_are_read_with_all_attributes():
    content = decode_content_value(TABLE)
    assert decode_operation(PUT) == Put(KEY, content)
    put = PUT | {
        "expectedContent": TABLE | {"id": "i"},
        "metadata": [{"variant": "x"}],
        "documentation": {"mimeType": "m", "text": "t"},
        "later": 1,
    }
    assert decode_operation(put) == Put(KEY, content, content.with_id("i"))
    assert decode_operation(
        PUT | {"expectedContent": None, "metadata": None, "documentation": None}
    ) == Put(KEY, content)
    assert decode_operation({"type": "DELETE", "key": PUT["key"]}) == Delete(KEY)
    assert decode_operation({"type": "UNCHANGED", "key": PUT["key"]}) == Unchanged(KEY)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            changed(PUT, type="UNMODIFIED"),
            'operation.type: "UNMODIFIED" is not an operation (write UNCHANGED)',
        ),
        (changed(PUT, type="put"), 'operation.type: "put" is not an operation (write PUT)'),
        (
            changed(PUT, type="X"),
            'operation.type: "X" is not an operation (known are PUT, DELETE, UNCHANGED)',
        ),
        (changed(PUT, type=ABSENT), "operation.type: is missing (PUT, DELETE, UNCHANGED)"),
        (changed(PUT, key=ABSENT), "operation.key: is missing"),
        (changed(PUT, key__elements=[]), "operation.key: Content key must not be empty"),
        (changed(PUT, content=ABSENT), "operation.content: is missing"),
        (changed(PUT, content=None), "operation.content: must be an object, not null"),
        (
            changed(PUT, content__snapshotId="1"),
            'operation.content.snapshotId: must be an integer, not "1"',
        ),
        (
            changed(PUT, expectedContent={"type": "UDF", "versionId": 1}),
            "operation.expectedContent.versionId: must be a string, not 1",
        ),
        (changed(PUT, metadata={}), "operation.metadata: must be a list, not an object"),
        (changed(PUT, documentation="x"), 'operation.documentation: must be an object, not "x"'),
        ([], "operation: must be an object, not a list"),
    ],
)
def test_the_message_for_an_invalid_operation_has_place_and_fault(body, message):
    assert message_of(decode_operation, body) == message


# -- commit metadata -----------------------------------------------------------------------------
AUTHOR_TIME = datetime(2020, 2, 3, 4, 5, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("body", "meta"),
    [
        ({"message": ""}, CommitMeta("")),
        ({"message": "m", "author": "Ann"}, CommitMeta("m", ("Ann",))),
        (
            {"message": "m", "author": "Cid", "authors": ["Ann", "Bob"]},
            CommitMeta("m", ("Ann", "Bob")),
        ),
        ({"message": "m", "author": "Cid", "authors": []}, CommitMeta("m")),
        ({"message": "m", "author": None, "authors": None}, CommitMeta("m")),
        (
            {"message": "m", "signedOffBy": "Xi", "allSignedOffBy": ["Sue"]},
            CommitMeta("m", signed_off_by=("Sue",)),
        ),
        ({"message": "m", "signedOffBy": "Xi"}, CommitMeta("m", signed_off_by=("Xi",))),
        ({"message": "m", "properties": {"a": "b"}}, CommitMeta("m", properties={"a": ("b",)})),
        (
            {"message": "m", "properties": {"a": "x"}, "allProperties": {"a": ["y", "z"]}},
            CommitMeta("m", properties={"a": ("y", "z")}),
        ),
        (
            {"message": "m", "allProperties": {"a": ["b"], "none": []}},
            CommitMeta("m", properties={"a": ("b",)}),
        ),
        (
            {"message": "m", "authorTime": "2020-02-03T04:05:06Z"},
            CommitMeta("m", author_time=AUTHOR_TIME),
        ),
        (
            {"message": "m", "authorTime": "2020-02-03T06:05:06+02:00"},
            CommitMeta("m", author_time=AUTHOR_TIME),
        ),
        (
            {"message": "m", "authorTime": "2020-02-03T04:05:06.5Z"},
            CommitMeta("m", author_time=AUTHOR_TIME.replace(microsecond=500_000)),
        ),
        (
            {"message": "m", "authorTime": "2020-02-03T04:05:06.123456789Z"},
            CommitMeta("m", author_time=AUTHOR_TIME.replace(microsecond=123_456)),
        ),
        (
            {
                "message": "m",
                "hash": None,
                "committer": None,
                "commitTime": None,
                "parentCommitHashes": [],
            },
            CommitMeta("m"),
        ),
    ],
)
def test_commit_metadata_has_two_names_and_the_plural_wins(body, meta):
    assert decode_commit_meta(body) == meta


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "commitMeta.message: is missing"),
        ({"message": None}, "commitMeta.message: must be a string, not null"),
        ({"message": 5}, "commitMeta.message: must be a string, not 5"),
        ({"message": "m", "authors": "Ann"}, 'commitMeta.authors: must be a list, not "Ann"'),
        ({"message": "m", "authors": ["Ann", 1]}, "commitMeta.authors[1]: must be a string, not 1"),
        ({"message": "m", "properties": {"a": ["b"]}}, "commitMeta.properties.a: must be a string, not a list"),
        ({"message": "m", "allProperties": {"a": "b"}}, 'commitMeta.allProperties.a: must be a list, not "b"'),
        ({"message": "m", "authorTime": 1600000000}, "commitMeta.authorTime: must be a string, not 1600000000"),
        ({"message": "m", "authorTime": "yesterday"},
         'commitMeta.authorTime: must be an ISO instant such as 2026-01-31T12:00:00Z, not "yesterday"'),
        ({"message": "m", "authorTime": "2020-02-30T00:00:00Z"},
         'commitMeta.authorTime: must be an ISO instant such as 2026-01-31T12:00:00Z, not "2020-02-30T00:00:00Z"'),
        ({"message": "m", "authorTime": "0001-01-01T00:00:00+14:00"},
         'commitMeta.authorTime: must be an ISO instant such as 2026-01-31T12:00:00Z, not "0001-01-01T00:00:00+14:00"'),
        ({"message": "m", "committer": ""}, "Cannot set the committer on the client side. It is set by the server."),
        ({"message": "m", "commitTime": "2020-02-03T04:05:06Z"}, "Cannot set the commit time on the client side. It is set by the server."),
        ({"message": "m", "hash": "11"}, "Cannot set the commit hash on the client side. It is set by the server."),
        ({"message": "m", "parentCommitHashes": ["11"]}, "Cannot set the parent commit hashes on the client side. It is set by the server."),
        ("m", 'commitMeta: must be an object, not "m"'),
    ],
)  # fmt: skip
def test_the_message_for_invalid_commit_metadata_has_place_and_fault(body, message):
    assert message_of(decode_commit_meta, body) == message


def test_the_error_for_an_unknown_attribute_of_commit_metadata_lists_the_known_ones():
    message = message_of(decode_commit_meta, {"message": "m", "autor": "Ann"})
    assert message.startswith(
        "commitMeta.autor: is not a known attribute (allProperties, allSignedOffBy, author, "
    )


# -- bodies of commits ---------------------------------------------------------------------------
def test_a_commit_requires_metadata_and_an_operation():
    body = {"commitMeta": {"message": "m"}, "operations": [PUT]}
    assert decode_operations(body) == (CommitMeta("m"), [decode_operation(PUT)])
    assert message_of(decode_operations, changed(body, commitMeta=None)) == "commitMeta: is missing"
    assert (
        message_of(decode_operations, changed(body, operations=ABSENT)) == "operations: is missing"
    )
    assert (
        message_of(decode_operations, changed(body, operations=[]))
        == "operations: holds no operation"
    )
    assert (
        message_of(decode_operations, changed(body, operations={}))
        == "operations: must be a list, not an object"
    )
    assert message_of(decode_operations, []) == "must be an object, not a list"


# -- batches -------------------------------------------------------------------------------------
def thousand(bad: Any) -> list[Any]:
    """Returns a thousand operations of which number 500 is invalid."""
    return [bad if n == 500 else changed(PUT, key__elements=["db", f"t{n}"]) for n in range(1000)]


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (
            changed(PUT, content__snapshotId="1"),
            'content.snapshotId: must be an integer, not "1"',
        ),
        (
            changed(PUT, content__snapshotId=float("inf")),
            "content.snapshotId: Infinity is not a valid JSON number",
        ),
        (
            changed(PUT, content__metadataLocation="\ud800"),
            "content.metadataLocation: is not valid Unicode text: half a surrogate pair",
        ),
        (
            changed(PUT, type="HUDI"),
            'type: "HUDI" is not an operation (known are PUT, DELETE, UNCHANGED)',
        ),
    ],
)
def test_one_invalid_operation_in_a_thousand_is_reported_by_index_or_line(bad, fault):
    operations = thousand(bad)
    assert message_of(decode_batch, json.dumps(operations), "b.json") == f"b.json: [500].{fault}"
    assert (
        message_of(decode_batch, json.dumps({"operations": operations}), "b.json")
        == f"b.json: operations[500].{fault}"
    )
    assert (
        message_of(decode_batch, "\n".join(map(json.dumps, operations)), "b.json")
        == f"b.json: line 501: {fault}"
    )


def test_an_invalid_line_of_json_lines_is_reported_by_number():
    lines = [json.dumps(PUT)] * 5
    lines[3] = lines[3][:-4]
    assert message_of(decode_batch, "\n".join(lines), "b.jsonl").startswith(
        "b.jsonl: line 4: column "
    )
    lines[3] = "[]"
    assert (
        message_of(decode_batch, "\n".join(lines), "b.jsonl")
        == "b.jsonl: line 4: must be an object, not a list"
    )
    lines[3] = json.dumps(PUT) + " x"
    assert message_of(decode_batch, "\n".join(lines), "b.jsonl") == (
        'b.jsonl: line 4: more text follows the end of the JSON value: "x"'
    )


def test_json_lines_may_have_any_line_ends():
    separator = changed(PUT, content__metadataLocation="a\u2028b\x85c")
    text = "\r\n".join(["", json.dumps(PUT), " ", json.dumps(separator, ensure_ascii=False), ""])
    meta, operations = decode_batch(text.encode(), "b.jsonl")
    assert meta is None
    assert operations == [decode_operation(PUT), decode_operation(separator)]


def test_a_single_operation_is_a_batch_in_any_layout():
    assert (
        decode_batch(json.dumps(PUT), "b")
        == decode_batch(json.dumps(PUT, indent=2), "b")
        == (None, [decode_operation(PUT)])
    )


def test_a_batch_object_may_leave_out_its_metadata():
    assert decode_batch(json.dumps({"operations": [PUT]}), "b") == (None, [decode_operation(PUT)])
    assert decode_batch(json.dumps({"commitMeta": {"message": "m"}, "operations": [PUT]}), "b")[
        0
    ] == CommitMeta("m")
    assert message_of(
        decode_batch,
        json.dumps({"commitMeta": {"message": "m", "hash": "aa"}, "operations": [PUT]}),
        "b",
    ) == ("b: Cannot set the commit hash on the client side. It is set by the server.")


def test_a_byte_order_mark_is_ignored():
    assert decode_batch(b"\xef\xbb\xbf" + json.dumps([PUT]).encode(), "b") == (
        None,
        [decode_operation(PUT)],
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "b: the text is empty; JSON is expected"),
        (b" \n", "b: the text is empty; JSON is expected"),
        ("[]", "b: holds no operation"),
        ("{}", "b: operations: is missing"),
        ("null", "b: must be an object, not null"),
        ("[1]", "b: [0]: must be an object, not 1"),
        (
            '{"operations": [1]} 2',
            'b: line 1: more text follows the end of the JSON value: "2"',
        ),
        ("[]\n[]", 'b: line 2: more text follows the end of the JSON value: "[]"'),
        ('{"operations": [', "b: line 1 column 17 is not JSON: the text ends too early"),
        ("PUT a.b", "b: line 1 column 1 is not JSON: expecting value"),
        ('{"operations": [], "operations": []}', 'b: the attribute "operations" occurs twice'),
    ],
)
def test_an_invalid_batch_is_refused(text, message):
    assert message_of(decode_batch, text, "b") == message


def test_all_faults_of_a_batch_are_reported_at_once():
    operations = [PUT, changed(PUT, key=ABSENT), 7, changed(PUT, content__specId="x")]
    faults = (
        "operations[1].key: is missing; operations[2]: must be an object, not 7;"
        ' operations[3].content.specId: must be an integer, not "x"'
    )
    assert message_of(decode_batch, json.dumps({"operations": operations}), "b") == f"b: {faults}"
    assert message_of(
        decode_batch, json.dumps({"commitMeta": {}, "operations": operations}), "b"
    ) == (f"b: commitMeta.message: is missing; {faults}")
    assert message_of(decode_batch, json.dumps(operations), "b") == (
        f"b: {faults.replace('operations', '')}"
    )
    assert message_of(decode_batch, "\n".join(map(json.dumps, operations)), "b") == (
        "b: line 2: key: is missing; line 3: must be an object, not 7;"
        ' line 4: content.specId: must be an integer, not "x"'
    )


def test_a_message_lists_the_first_faults_of_many():
    message = message_of(decode_batch, json.dumps([changed(PUT, key=ABSENT)] * 9), "b")
    assert message.endswith("; [4].key: is missing; and 4 more")


def calls_to_decode(text: str) -> int:
    """Returns the number of function calls to decode a batch, a cost that does not depend on the
    load of the machine."""
    count = 0

    def profile(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        decode_batch(text, "b")
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("form", ["list", "lines"])
def test_the_cost_of_an_operation_does_not_grow_with_the_batch(form):
    def batch(size: int) -> str:
        lines = [json.dumps(changed(PUT, key__elements=["db", f"t{n}"])) for n in range(size)]
        return "\n".join(lines) if form == "lines" else f"[{','.join(lines)}]"

    decode_batch(batch(2), "b")  # initialisation is not counted
    per_operation = (calls_to_decode(batch(500)) - calls_to_decode(batch(100))) / 400
    assert per_operation < 120
    assert calls_to_decode(batch(4000)) < 1.1 * 4000 * per_operation


@pytest.mark.slow
def test_a_batch_may_have_a_hundred_thousand_operations():
    text = f"[{','.join([json.dumps(PUT)] * 100_000)}]"
    assert len(decode_batch(text, "b")[1]) == 100_000


@pytest.mark.parametrize("name", ["propertyUpdates", "propertyRemovals"])
def test_the_size_of_a_namespace_update_is_bounded(name: str) -> None:
    names = [str(number) for number in range(MOST_ITEMS + 1)]

    def update(count: int) -> dict[str, Any]:
        return {
            name: names[:count] if name == "propertyRemovals" else dict.fromkeys(names[:count], "v")
        }

    assert any(map(len, decode_namespace_update(update(MOST_ITEMS))))
    message = message_of(decode_namespace_update, update(MOST_ITEMS + 1))
    assert message == f"{name}: has more than 100,000 items"


NAMES = [str(number) for number in range(MOST_ITEMS + 1)]
VALUES = dict.fromkeys(NAMES, "v")
TOO_LONG = {
    "commitMeta.allProperties": {"allProperties": {name: ["v"] for name in NAMES}},
    "commitMeta.properties": {"properties": VALUES},
    "commitMeta.authors": {"authors": NAMES},
    "commitMeta.allSignedOffBy": {"allSignedOffBy": NAMES},
}


@pytest.mark.parametrize("place", TOO_LONG)
def test_long_lists_and_maps_are_refused_before_they_are_read(place: str) -> None:
    meta = {"message": "m", **TOO_LONG[place]}
    message = message_of(decode_operations, {"commitMeta": meta, "operations": [PUT]})
    assert message == f"{place}: has more than 100,000 items"


LONG_REQUESTS = {
    "keyMergeModes": (
        decode_merge,
        MOST_DECISIONS,
        {"fromRefName": "dev", "fromHash": "ab" * 32},
        lambda number: {"key": {"elements": [f"a{number}"]}, "mergeBehavior": "FORCE"},
    ),
    "hashesToTransplant": (
        decode_transplant,
        MOST_COPIED,
        {"fromRefName": "dev"},
        lambda number: f"{number:064x}",
    ),
    "requestedKeys": (
        decode_requested_keys,
        MOST_REQUESTED,
        {},
        lambda number: {"elements": [f"a{number}"]},
    ),
}


@pytest.mark.parametrize("name", LONG_REQUESTS)
def test_what_a_request_asks_for_is_bounded_before_it_is_done(name: str) -> None:
    decode, most, body, item = LONG_REQUESTS[name]
    items = [item(number) for number in range(most + 1)]
    decode({**body, name: items[:most]})
    message = message_of(decode, {**body, name: items})
    assert message == f"{name}: has more than {most:,} items"


def test_a_namespace_has_a_limited_number_of_properties() -> None:
    value = {"type": "NAMESPACE", "elements": ["a"], "properties": VALUES}
    assert (
        message_of(decode_content_value, value) == "content.properties: has more than 100,000 items"
    )
    value["properties"] = dict(list(VALUES.items())[1:])
    assert len(decode_content_value(value).properties) == MOST_ITEMS
