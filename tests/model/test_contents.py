"""Contents: every type with all its fields survives JSON, and values that the REST API
refuses are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nessie_cli.errors import InvalidInput
from nessie_cli.model import (
    CONTENT_TYPES,
    TYPE_OF_PAYLOAD,
    UDF,
    Content,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    Namespace,
    UnknownContent,
    content_from,
)

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LOCATION = TEXT.filter(str.strip)
MAYBE = st.none() | TEXT
ID = st.none() | st.uuids().map(str)
LOCATIONS = st.lists(TEXT, max_size=3).map(tuple)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)

TABLES = st.builds(
    IcebergTable,
    id=ID,
    metadata_location=LOCATION,
    snapshot_id=INT64,
    schema_id=INT32,
    spec_id=INT32,
    sort_order_id=INT32,
)
VIEWS = st.builds(
    IcebergView,
    id=ID,
    metadata_location=LOCATION,
    version_id=INT64,
    schema_id=INT32,
    sql_text=MAYBE,
    dialect=MAYBE,
)
DELTAS = st.builds(
    DeltaLakeTable,
    id=ID,
    metadata_location_history=LOCATIONS,
    checkpoint_location_history=LOCATIONS,
    last_checkpoint=MAYBE,
)
NAMESPACES = st.builds(
    Namespace,
    id=ID,
    elements=st.lists(TEXT.filter(lambda e: e != "."), max_size=4).map(tuple),
    properties=st.dictionaries(TEXT, TEXT, max_size=3),
)
UDFS = st.builds(
    UDF,
    id=ID,
    sql_text=MAYBE,
    dialect=MAYBE,
    version_id=MAYBE,
    signature_id=MAYBE,
    metadata_location=MAYBE,
)
UNKNOWN = st.builds(
    UnknownContent,
    id=ID,
    foreign_type=LOCATION.filter(lambda t: t not in CONTENT_TYPES),
    foreign_attributes=st.dictionaries(
        TEXT.filter(lambda n: n not in ("id", "type")), JSON, max_size=4
    ),
)
CONTENTS = TABLES | VIEWS | DELTAS | NAMESPACES | UDFS | UNKNOWN


@given(CONTENTS)
def test_a_content_survives_json(content: Content) -> None:
    attributes = json.loads(json.dumps(content.attributes()))
    assert content_from(content.type_name, content.id, attributes) == content


@given(CONTENTS, ID)
def test_changing_the_id_changes_nothing_else(content: Content, content_id: str | None) -> None:
    other = content.with_id(content_id)
    assert other.id == content_id
    assert other.attributes() == content.attributes()
    assert other.type_name == content.type_name
    assert other.with_id(content.id) == content


ATTRIBUTES: dict[str, dict[str, Any]] = {
    "ICEBERG_TABLE": {
        "metadataLocation": "s3://b/1.json",
        "snapshotId": -1,
        "schemaId": 2,
        "specId": 3,
        "sortOrderId": 4,
    },
    "ICEBERG_VIEW": {
        "metadataLocation": "s3://b/v.json",
        "versionId": 2**40,
        "schemaId": 1,
        "sqlText": "select 1",
        "dialect": "spark",
    },
    "DELTA_LAKE_TABLE": {
        "metadataLocationHistory": ["a", "b"],
        "checkpointLocationHistory": ["c"],
        "lastCheckpoint": "c",
    },
    "NAMESPACE": {"elements": ["a", "b"], "properties": {"owner": "ann"}},
    "UDF": {
        "sqlText": "x",
        "dialect": "spark",
        "versionId": "1",
        "signatureId": "s",
        "metadataLocation": "s3://b/u.json",
    },
}
PAYLOADS = {"ICEBERG_TABLE": 1, "DELTA_LAKE_TABLE": 2, "ICEBERG_VIEW": 3, "NAMESPACE": 4, "UDF": 5}


@pytest.mark.parametrize("type_name", ATTRIBUTES)
def test_the_attributes_of_each_type_have_the_names_of_the_specification(type_name: str) -> None:
    content = content_from(type_name, "3fa04e73-8056-40bd-8242-ab37c04973c4", ATTRIBUTES[type_name])
    assert content.attributes() == ATTRIBUTES[type_name]
    assert content.id == "3fa04e73-8056-40bd-8242-ab37c04973c4"
    assert type(content) is CONTENT_TYPES[type_name]


def test_types_have_the_payload_numbers_of_the_specification() -> None:
    assert {name: cls.payload for name, cls in CONTENT_TYPES.items()} == PAYLOADS
    assert {name: number for number, name in TYPE_OF_PAYLOAD.items()} == PAYLOADS


REQUIRED = {
    "ICEBERG_TABLE": ("metadataLocation",),
    "ICEBERG_VIEW": ("metadataLocation", "versionId", "schemaId"),
}


@pytest.mark.parametrize(
    ("type_name", "name"), [(t, n) for t, names in REQUIRED.items() for n in names]
)
def test_a_missing_required_attribute_is_reported(type_name: str, name: str) -> None:
    attributes = {k: v for k, v in ATTRIBUTES[type_name].items() if k != name}
    with pytest.raises(InvalidInput, match=f"{type_name}.{name}"):
        content_from(type_name, None, attributes)


@pytest.mark.parametrize(
    ("type_name", "attributes"),
    [
        ("DELTA_LAKE_TABLE", {}),
        ("UDF", {}),
        ("NAMESPACE", {"elements": []}),
        ("ICEBERG_VIEW", {"metadataLocation": "x", "versionId": 1, "schemaId": 1}),
        (
            "ICEBERG_VIEW",
            {
                "metadataLocation": "x",
                "versionId": 1,
                "schemaId": 1,
                "sqlText": None,
                "dialect": None,
            },
        ),
        ("DELTA_LAKE_TABLE", {"lastCheckpoint": None}),
    ],
)
def test_optional_attributes_may_be_left_out(type_name: str, attributes: dict[str, Any]) -> None:
    assert content_from(type_name, None, attributes).type_name == type_name


NO_TEXT: tuple[Any, ...] = (1, 1.5, [], {})
WRONG_VALUES: dict[str, tuple[Any, ...]] = {
    "metadataLocation": (None, 1, ["a"], {"a": 1}),
    "snapshotId": (None, "1", 1.0, True, 2**63, -(2**63) - 1, [1]),
    "schemaId": (None, "1", 1.5, False, 2**31, -(2**31) - 1),
    "specId": (None, "1", 2**31),
    "sortOrderId": (None, {}, 2**31),
    "versionId": (None, 1.0, 2**63, [1]),
    "sqlText": (1, ["x"], {}),
    "dialect": (1, ["x"], True),
    "metadataLocationHistory": ("abc", [1], [None], {"a": "b"}, 7),
    "checkpointLocationHistory": ("abc", [["a"]], 7),
    "lastCheckpoint": (1, ["x"]),
    "elements": ("abc", [1], [None], {"a": "b"}, ["a", "."], 7),
    "properties": ([], "abc", {"a": 1}, {"a": None}, 7),
    "signatureId": (1, []),
}


@pytest.mark.parametrize(
    ("type_name", "name", "value"),
    [
        (type_name, name, value)
        for type_name, attributes in ATTRIBUTES.items()
        for name in attributes
        for value in WRONG_VALUES[name]
        if not (type_name == "UDF" and (name in ("versionId", "metadataLocation")))
    ]
    + [("UDF", name, value) for name in ("versionId", "metadataLocation") for value in NO_TEXT],
)
def test_the_error_for_a_wrong_value_names_its_attribute(
    type_name: str, name: str, value: Any
) -> None:
    with pytest.raises(InvalidInput, match=name) as fault:
        content_from(type_name, None, ATTRIBUTES[type_name] | {name: value})
    assert "\n" not in fault.value.message


@pytest.mark.parametrize("type_name", ATTRIBUTES)
def test_the_limits_of_integers_are_allowed(type_name: str) -> None:
    bits = {"snapshotId": 63, "versionId": 63, "schemaId": 31, "specId": 31, "sortOrderId": 31}
    for name, value in ATTRIBUTES[type_name].items():
        if type(value) is int:
            for limit in (-(2 ** bits[name]), 2 ** bits[name] - 1):
                assert (
                    content_from(
                        type_name, None, ATTRIBUTES[type_name] | {name: limit}
                    ).attributes()[name]
                    == limit
                )


BAD_TEXT: dict[type, Any] = {str: "a\ud800b", list: ["a\ud800b"], dict: {"a": "\ud800"}}


@pytest.mark.parametrize("type_name", ATTRIBUTES)
def test_text_that_cannot_be_stored_is_refused(type_name: str) -> None:
    for name, value in ATTRIBUTES[type_name].items():
        bad = BAD_TEXT.get(type(value))
        if bad is not None:
            with pytest.raises(InvalidInput, match=name):
                content_from(type_name, None, ATTRIBUTES[type_name] | {name: bad})


def test_attributes_that_a_known_type_does_not_have_are_left_out() -> None:
    content = content_from(
        "ICEBERG_TABLE", None, ATTRIBUTES["ICEBERG_TABLE"] | {"metadata": {"x": 1}}
    )
    assert content.attributes() == ATTRIBUTES["ICEBERG_TABLE"]


def test_types_are_matched_exactly() -> None:
    assert isinstance(content_from("iceberg_table", None, {}), UnknownContent)


def test_an_unknown_type_keeps_all_its_attributes() -> None:
    attributes = {"a": [1, {"b": None}], "c": "x", "d": 1.5, "e": True}
    content = content_from("PAIMON_TABLE", None, attributes)
    assert (content.type_name, content.payload, content.attributes()) == (
        "PAIMON_TABLE",
        0,
        attributes,
    )


@pytest.mark.parametrize("type_name", ["", " "])
def test_a_blank_type_is_refused(type_name: str) -> None:
    with pytest.raises(InvalidInput):
        content_from(type_name, None, {})


def test_contents_are_immutable() -> None:
    table = IcebergTable(metadata_location="x")
    with pytest.raises(AttributeError):
        table.snapshot_id = 3  # type: ignore[misc]


def test_no_snapshot_is_minus_one() -> None:
    assert IcebergTable(metadata_location="x").snapshot_id == -1
