"""A staged batch survives writing and reading: every content type, unknown types, expected
contents, any Unicode."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import to_builtins

from nessie_cli.model import (
    CONTENT_TYPES,
    UDF,
    CommitMeta,
    Content,
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
from nessie_cli.wire import commits
from nessie_cli.wire.batches import decode_batch
from nessie_cli.wire.bodies import encode_operation
from nessie_cli.wire.contents import content_json
from nessie_cli.wire.decode import (
    decode_commit_meta,
    decode_content,
    decode_content_value,
    decode_operation,
)

ROUND_TRIP = settings(
    max_examples=200, print_blob=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def meta_json(meta):
    return to_builtins(commits.CommitMeta.of(meta))


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NOT_BLANK = TEXT.filter(str.strip)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
IDS = st.none() | TEXT
KEYS = st.lists(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=10),
    min_size=1,
    max_size=5,
).map(lambda elements: ContentKey(tuple(elements)))
JSON = st.recursive(
    st.none() | st.booleans() | INT64 | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
LISTS = st.lists(TEXT, max_size=3).map(tuple)
CONTENTS: st.SearchStrategy[Content] = st.one_of(
    st.builds(
        IcebergTable,
        id=IDS,
        metadata_location=NOT_BLANK,
        snapshot_id=INT64,
        schema_id=INT32,
        spec_id=INT32,
        sort_order_id=INT32,
    ),
    st.builds(
        IcebergView,
        id=IDS,
        metadata_location=NOT_BLANK,
        version_id=INT64,
        schema_id=INT32,
        sql_text=st.none() | TEXT,
        dialect=st.none() | TEXT,
    ),
    st.builds(
        DeltaLakeTable,
        id=IDS,
        metadata_location_history=LISTS,
        checkpoint_location_history=LISTS,
        last_checkpoint=st.none() | TEXT,
    ),
    st.builds(
        Namespace,
        id=IDS,
        elements=(KEYS.map(lambda key: key.elements) | st.just(())).filter(
            lambda e: not e or e[-1] != "."
        ),
        properties=st.dictionaries(TEXT, TEXT, max_size=3),
    ),
    st.builds(
        UDF,
        id=IDS,
        **dict.fromkeys(
            ("sql_text", "dialect", "version_id", "signature_id", "metadata_location"),
            st.none() | TEXT,
        ),
    ),
    st.builds(
        UnknownContent,
        id=IDS,
        foreign_type=NOT_BLANK.filter(lambda name: name not in CONTENT_TYPES),
        foreign_attributes=st.dictionaries(
            TEXT.filter(lambda name: name not in ("type", "id")), JSON, max_size=4
        ),
    ),
)
OPERATIONS = st.one_of(
    st.builds(Put, KEYS, CONTENTS, st.none() | CONTENTS),
    st.builds(Delete, KEYS),
    st.builds(Unchanged, KEYS),
)


def rewritten(value: Any, *, ensure_ascii: bool) -> Any:
    return json.loads(json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=False).encode())


@ROUND_TRIP
@given(CONTENTS, st.booleans())
def test_a_content_survives_writing_and_reading(content, ensure_ascii):
    body = rewritten(content_json(content), ensure_ascii=ensure_ascii)
    assert decode_content_value(body, allow_unknown=True) == content
    text = json.dumps(content_json(content), ensure_ascii=ensure_ascii)
    assert (
        decode_content(text, "x", allow_unknown=True)
        == decode_content(text.encode(), "x", allow_unknown=True)
        == content
    )


@ROUND_TRIP
@given(OPERATIONS, st.booleans())
def test_an_operation_survives_writing_and_reading(operation, ensure_ascii):
    body = rewritten(encode_operation(operation), ensure_ascii=ensure_ascii)
    assert decode_operation(body, allow_unknown=True) == operation


@ROUND_TRIP
@given(st.lists(OPERATIONS, min_size=1, max_size=5))
def test_a_batch_survives_each_of_its_forms(operations):
    bodies = [encode_operation(operation) for operation in operations]
    forms = [
        json.dumps(bodies, indent=1),
        json.dumps({"operations": bodies}),
        "\n".join(map(json.dumps, bodies)),
    ]
    assert [decode_batch(form, "x", allow_unknown=True) for form in forms] == [
        (None, operations)
    ] * 3


INSTANTS = st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)).map(
    lambda t: t.replace(tzinfo=UTC)
)


@ROUND_TRIP
@given(
    st.builds(
        CommitMeta,
        TEXT,
        authors=LISTS,
        signed_off_by=LISTS,
        author_time=st.none() | INSTANTS,
        properties=st.dictionaries(
            TEXT, st.lists(TEXT, min_size=1, max_size=3).map(tuple), max_size=3
        ),
    )
)
def test_commit_metadata_survives_writing_and_reading(meta):
    assert decode_commit_meta(rewritten(meta_json(meta), ensure_ascii=True)) == meta


@ROUND_TRIP
@given(
    INSTANTS,
    st.integers(-18 * 60, 18 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
def test_an_instant_is_written_in_utc(when, zone):
    written = meta_json(CommitMeta("m", author_time=when.astimezone(zone)))
    assert written == meta_json(CommitMeta("m", author_time=when))
