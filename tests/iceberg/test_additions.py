"""Iceberg's parser reads whatever the builders make of a request, or the request is refused."""

import copy
import json

import pytest

from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.iceberg.builder import table, view
from nessie_cli.iceberg.validity.metadata import check_additions, check_metadata

NOW = 1_900_000_000_000
UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
LOCATION = "/w/t"
WRONG = (
    "x", "", None, True, -1, 0, 1.5, 2**31, 2**63, [], [1], ["x"], {}, {"a": 1}, {"a": "b"}, [[]],
    [None], "fixed[0]", "decimal(99,2)", "2020-13-01",
)  # fmt: skip
NESTED = [
    {"id": 2, "name": "b", "required": False, "type": {"type": "struct", "fields": [
        {"id": 3, "name": "c", "type": "string", "required": False, "doc": "d"}]}},
    {"id": 4, "name": "l", "required": False, "type": {
        "type": "list", "element-id": 5, "element": "string", "element-required": False}},
    {"id": 8, "name": "m", "required": False, "type": {
        "type": "map", "key-id": 9, "key": "string", "value-id": 10, "value": "date",
        "value-required": True}},
]  # fmt: skip
FIELDS = [
    {"id": 1, "name": "a", "required": False, "type": "long", "initial-default": 1},
    {"id": 6, "name": "d", "required": False, "type": "decimal(9,2)", "write-default": "1.00"},
    {"id": 7, "name": "x", "required": False, "type": "binary", "initial-default": "00"},
    *NESTED,
]
SCHEMA = {"type": "struct", "schema-id": 0, "identifier-field-ids": [], "fields": FIELDS}
SPEC = {
    "spec-id": 0,
    "fields": [{"source-id": 1, "field-id": 1000, "name": "p", "transform": "bucket[4]"}],
}
SORTING = {"transform": "identity", "direction": "asc", "null-order": "nulls-first"}
ORDER = {"order-id": 1, "fields": [{"source-id": 1, **SORTING}]}
NEW_TABLE = {
    "schema": SCHEMA,
    "partition-spec": SPEC,
    "write-order": ORDER,
    "properties": {"format-version": "3", "a": "b"},
}
NEW_FIELD = {"id": 20, "name": "new", "required": False, "type": "date", "doc": "d"}
SNAPSHOT = {
    "snapshot-id": 5,
    "sequence-number": 1,
    "timestamp-ms": NOW,
    "manifest-list": "/w/t/m",
    "summary": {"operation": "append", "a": "b"},
    "schema-id": 0,
    "first-row-id": 0,
    "added-rows": 1,
    "key-id": "k",
}
STATISTICS = {
    "snapshot-id": 5,
    "statistics-path": "/w/t/s",
    "file-size-in-bytes": 1,
    "file-footer-size-in-bytes": 1,
    "blob-metadata": [
        {"type": "a", "snapshot-id": 5, "sequence-number": 1, "fields": [1], "properties": {}}
    ],
}
KEY = {"key-id": "k", "encrypted-key-metadata": "YQ==", "encrypted-by-id": "x", "properties": {}}
AGES = {"max-ref-age-ms": 5, "max-snapshot-age-ms": 4, "min-snapshots-to-keep": 2}
UPDATES = [
    {"action": "add-schema", "schema": {**SCHEMA, "fields": [*FIELDS, NEW_FIELD]}},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-encryption-key", "encryption-key": KEY},
    {"action": "add-snapshot", "snapshot": SNAPSHOT},
    {"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 5, **AGES},
    {"action": "set-statistics", "statistics": STATISTICS},
    {
        "action": "set-partition-statistics",
        "partition-statistics": {
            "snapshot-id": 5,
            "statistics-path": "/w/t/p",
            "file-size-in-bytes": 1,
        },
    },
    {"action": "set-properties", "updates": {"q": "b"}},
    {"action": "set-location", "location": "/w/t2"},
]
VERSION = {
    "version-id": 1,
    "timestamp-ms": NOW,
    "schema-id": 0,
    "summary": {"a": "b"},
    "default-catalog": "c",
    "default-namespace": ["a"],
    "representations": [{"type": "sql", "dialect": "spark", "sql": "SELECT 1"}],
}
NEW_VIEW = {"schema": SCHEMA, "version": VERSION, "properties": {"a": "b"}}
VIEW_UPDATES = [
    {"action": "add-schema", "schema": {**SCHEMA, "fields": [*FIELDS, NEW_FIELD]}},
    {"action": "add-view-version", "view-version": {**VERSION, "version-id": 2, "schema-id": -1}},
    {"action": "set-current-view-version", "view-version-id": -1},
    {"action": "set-properties", "updates": {"x": "y"}},
]


def new_table(request):
    return {**table.new_table(request, LOCATION, NOW), "table-uuid": UUID}


def new_view(request):
    made = view.new_view(
        request["schema"], request["version"], LOCATION, request["properties"], NOW
    )
    return {**made, "view-uuid": UUID}


TABLE, VIEW = new_table(NEW_TABLE), new_view(NEW_VIEW)
BUILDERS = {
    "a new table": (NEW_TABLE, None, new_table),
    "updates of a table": (UPDATES, TABLE, lambda updates: table.updated(TABLE, updates, NOW)),
    "a new view": (NEW_VIEW, None, new_view),
    "updates of a view": (VIEW_UPDATES, VIEW, lambda updates: view.updated(VIEW, updates, NOW)),
}


def places(value, place=()):
    members = value.items() if isinstance(value, dict) else enumerate(value)
    for name, member in members:
        yield (*place, name)
        if isinstance(member, dict | list):
            yield from places(member, (*place, name))


def variants(request):
    """Yields the request with each of its parts replaced or left out."""
    for *around, name in places(request):
        for wrong in (*WRONG, ...):
            changed = copy.deepcopy(request)
            part = changed
            for step in around:
                part = part[step]
            if wrong is ...:
                del part[name]
            else:
                part[name] = wrong
            yield (*around, name), wrong, changed


@pytest.mark.parametrize("what", BUILDERS)
def test_accepted_requests_make_metadata_that_iceberg_reads(what):
    request, base, build = BUILDERS[what]
    check_metadata(build(request))
    refused, accepted = 0, 0
    for place, wrong, changed in variants(request):
        if len(place) == 1 and isinstance(request, dict):
            # The handler of a request checks its members itself.
            continue
        try:
            document = build(changed)
            check_additions(document, base)
        except NessieError:
            refused += 1
            continue
        accepted += 1
        try:
            check_metadata(json.loads(json.dumps(document)))
        except InvalidInput as error:
            pytest.fail(f"{place} = {wrong!r}: {error.message}")
    assert refused > accepted / 10 > 1


def test_an_error_names_the_place():
    updates = [{"action": "add-snapshot", "snapshot": SNAPSHOT | {"summary": {"a": 1}}}]
    with pytest.raises(InvalidInput, match=r"snapshots\[0\].summary.a is not a string"):
        check_additions(table.updated(TABLE, updates, NOW), TABLE)


@pytest.mark.parametrize("member", ["initial-default", "write-default"])
def test_a_large_default_is_refused_before_schemas_are_compared(member):
    many = {f"k{number}": "v" for number in range(100_000)}
    schema = {**SCHEMA, "fields": [*FIELDS, NEW_FIELD | {member: many}]}
    with pytest.raises(InvalidInput, match=f"field new: {member} must be a single value"):
        table.updated(TABLE, [{"action": "add-schema", "schema": schema}], NOW)


def test_earlier_parts_are_not_checked_again():
    old = {**TABLE, "schemas": [{**TABLE["schemas"][0], "identifier-field-ids": ""}]}
    updates = [{"action": "set-properties", "updates": {"a": "c"}}]
    check_additions(table.updated(old, updates, NOW), old)
