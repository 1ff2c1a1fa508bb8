"""The metadata builder: updates and requirements of Iceberg REST, on metadata as JSON."""

from __future__ import annotations

from typing import Any

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder import table, view
from nessie_cli.iceberg.builder.document import RequirementFailed, check_requirements

NOW = 1_800_000_000_000
COLUMN = {"id": 1, "name": "id", "required": True, "type": "long"}
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [COLUMN]}


def made(**properties: str) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in properties.items()}
    return table.new_table({"schema": SCHEMA, "properties": named}, "s3://lake/t", NOW)


def snapshot(id_: int, sequence: int = 1, **members: Any) -> dict[str, Any]:
    given = {name.replace("_", "-"): value for name, value in members.items()}
    return {
        "action": "add-snapshot",
        "snapshot": {
            "snapshot-id": id_,
            "sequence-number": sequence,
            "timestamp-ms": NOW,
            "manifest-list": f"s3://lake/t/{id_}.avro",
            "summary": {"operation": "append"},
            **given,
        },
    }


def main_at(id_: int) -> dict[str, Any]:
    return {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": id_}


def test_a_new_table_gets_field_ids_that_begin_with_1() -> None:
    inner = {"id": 90, "name": "x", "required": False, "type": "int"}
    nested = {
        "type": "struct",
        "fields": [
            {
                "id": 70,
                "name": "a",
                "required": False,
                "type": {"type": "struct", "fields": [inner]},
            },
            {"id": 30, "name": "b", "required": True, "type": "DECIMAL(9,2)"},
        ],
        "identifier-field-ids": [30],
    }
    spec = {"fields": [{"source-id": 90, "name": "x_bucket", "transform": "bucket[4]"}]}
    order = {
        "fields": [
            {
                "source-id": 30,
                "transform": "identity",
                "direction": "asc",
                "null-order": "nulls-first",
            }
        ]
    }
    found = table.new_table(
        {"schema": nested, "partition-spec": spec, "write-order": order}, "s3://lake/t", NOW
    )
    first, second = found["schemas"][0]["fields"]
    assert (first["id"], second["id"], first["type"]["fields"][0]["id"]) == (1, 2, 3)
    assert second["type"] == "decimal(9, 2)"
    assert found["schemas"][0]["identifier-field-ids"] == [2]
    assert found["partition-specs"][0]["fields"][0] == {
        "source-id": 3,
        "name": "x_bucket",
        "transform": "bucket[4]",
        "field-id": 1000,
    }
    assert found["sort-orders"][0]["fields"][0]["source-id"] == 2
    assert (found["last-column-id"], found["last-partition-id"]) == (3, 1000)


def test_the_property_format_version_chooses_it_and_is_not_stored() -> None:
    found = made(format_version="3", owner="ann")
    assert (found["format-version"], found["next-row-id"], found["current-snapshot-id"]) == (
        3,
        0,
        None,
    )
    assert found["properties"] == {"write.parquet.compression-codec": "zstd", "owner": "ann"}


@pytest.mark.parametrize("version", ["4", "0", "x"])
def test_a_format_version_that_is_not_supported_is_refused(version: str) -> None:
    with pytest.raises(InvalidInput, match=r"format.version"):
        made(format_version=version)


def test_unknown_members_are_preserved() -> None:
    base = made() | {"vendor": {"a": 1}}
    base["schemas"][0]["fields"][0]["vendor-type"] = "u64"
    found = table.updated(base, [{"action": "set-properties", "updates": {"a": "b"}}], NOW)
    assert found["vendor"] == {"a": 1}
    assert found["schemas"][0]["fields"][0]["vendor-type"] == "u64"


def test_updates_that_change_nothing_return_the_base() -> None:
    base = made()
    update = {"action": "set-location", "location": "s3://lake/t"}
    assert table.updated(base, [update], NOW + 1, "old.json") is base


def test_schemas_and_specs_are_checked_if_an_update_changes_one_of_them() -> None:
    sources = {"source-id": 9, "field-id": 1000, "name": "p", "transform": "identity"}
    base = made() | {"partition-specs": [{"spec-id": 0, "fields": [sources]}]}
    properties = {"action": "set-properties", "updates": {"a": "b"}}
    assert table.updated(base, [properties, snapshot(7)], NOW)["properties"]["a"] == "b"
    column = {"id": 2, "name": "b", "required": False, "type": "int"}
    schema = {**SCHEMA, "schema-id": 1, "fields": [COLUMN, column]}
    with pytest.raises(InvalidInput, match="the schema has no field 9"):
        table.updated(base, [properties, {"action": "add-schema", "schema": schema}], NOW)


def test_the_base_is_not_modified() -> None:
    base = made()
    before = repr(base)
    table.updated(
        base, [snapshot(7), main_at(7), {"action": "set-properties", "updates": {"a": "b"}}], NOW
    )
    assert repr(base) == before


def test_snapshots_advance_the_log_the_sequence_number_and_the_current_snapshot() -> None:
    base = table.updated(made(), [snapshot(7), main_at(7)], NOW + 1, "0.json")
    assert (base["current-snapshot-id"], base["last-sequence-number"]) == (7, 1)
    assert [one["snapshot-id"] for one in base["snapshot-log"]] == [7]
    assert base["metadata-log"] == [{"timestamp-ms": NOW, "metadata-file": "0.json"}]


def test_a_snapshot_that_was_current_between_two_updates_is_not_in_the_log() -> None:
    updates = [snapshot(7), main_at(7), snapshot(8, 2, parent_snapshot_id=7), main_at(8)]
    found = table.updated(made(), updates, NOW)
    assert [one["snapshot-id"] for one in found["snapshot-log"]] == [8]


def test_removing_a_snapshot_removes_its_references_and_the_earlier_history() -> None:
    base = made()
    for number, id_ in enumerate((7, 8, 9), 1):
        parent = {"parent_snapshot_id": id_ - 1} if number > 1 else {}
        base = table.updated(base, [snapshot(id_, number, **parent), main_at(id_)], NOW)
    tag = {"action": "set-snapshot-ref", "ref-name": "v1", "type": "tag", "snapshot-id": 8}
    found = table.updated(base, [tag, {"action": "remove-snapshots", "snapshot-ids": [8]}], NOW)
    assert [one["snapshot-id"] for one in found["snapshot-log"]] == [9]
    assert list(found["refs"]) == ["main"]


def test_a_snapshot_id_is_used_once() -> None:
    base = table.updated(made(), [snapshot(7)], NOW)
    with pytest.raises(InvalidInput, match="snapshot 7 already exists"):
        table.updated(base, [snapshot(7, 2)], NOW)


def test_a_stale_sequence_number_can_be_retried() -> None:
    base = table.updated(made(), [snapshot(7), main_at(7)], NOW)
    with pytest.raises(RequirementFailed, match="sequence number 1"):
        table.updated(base, [snapshot(8, 1, parent_snapshot_id=7)], NOW)


def test_a_snapshot_without_a_sequence_number_has_number_0() -> None:
    update = snapshot(7)
    del update["snapshot"]["sequence-number"]
    assert table.updated(made(), [update], NOW)["last-sequence-number"] == 0
    base = table.updated(made(), [snapshot(7), main_at(7)], NOW)
    with pytest.raises(RequirementFailed, match="sequence number 0"):
        table.updated(base, [update | {"snapshot": {**update["snapshot"], "snapshot-id": 8}}], NOW)


def test_format_version_1_has_no_sequence_numbers() -> None:
    base = made(format_version="1")
    with pytest.raises(InvalidInput, match="must be 0 in format version 1"):
        table.updated(base, [snapshot(7, 1)], NOW)
    found = table.updated(base, [snapshot(7, 0)], NOW)
    assert "sequence-number" not in found["snapshots"][0]
    assert "last-sequence-number" not in found


def test_an_upgrade_to_format_version_3_begins_row_ids_with_0() -> None:
    base = table.updated(made(), [snapshot(7), main_at(7)], NOW)
    upgraded = table.updated(
        base, [{"action": "upgrade-format-version", "format-version": 3}], NOW, "0.json"
    )
    assert (upgraded["next-row-id"], upgraded["snapshots"]) == (0, base["snapshots"])
    found = table.updated(upgraded, [snapshot(8, 2, first_row_id=0, added_rows=4)], NOW)
    assert found["next-row-id"] == 4
    assert found["current-snapshot-id"] == 7, "the snapshot is on no branch"


def test_a_snapshot_that_only_deletes_adds_no_row_ids() -> None:
    base = table.updated(made(format_version="3"), [snapshot(7, first_row_id=0, added_rows=5)], NOW)
    found = table.updated(base, [snapshot(8, 2, first_row_id=5, added_rows=0)], NOW)
    assert found["next-row-id"] == 5


@pytest.mark.parametrize("missing", ["first-row-id", "added-rows"])
def test_a_snapshot_of_format_version_3_needs_its_row_ids(missing: str) -> None:
    update = snapshot(7, first_row_id=0, added_rows=5)
    del update["snapshot"][missing]
    with pytest.raises(InvalidInput, match=f"{missing} is missing"):
        table.updated(made(format_version="3"), [update], NOW)


def test_row_lineage_of_format_version_3() -> None:
    base = made(format_version="3")
    found = table.updated(base, [snapshot(7, first_row_id=0, added_rows=5)], NOW)
    assert found["next-row-id"] == 5
    with pytest.raises(RequirementFailed, match="first-row-id 4"):
        table.updated(found, [snapshot(8, 2, first_row_id=4, added_rows=1)], NOW)
    with pytest.raises(InvalidInput, match="first-row-id is missing"):
        table.updated(found, [snapshot(8, 2)], NOW)


@pytest.mark.parametrize(
    "type_",
    ["variant", "timestamp_ns", "timestamptz_ns", "unknown", "geometry(srid:4326)", "geography"],
)
def test_types_of_format_version_3(type_: str) -> None:
    column = {"id": 2, "name": "v", "required": False, "type": type_}
    update = {"action": "add-schema", "schema": {"type": "struct", "fields": [COLUMN, column]}}
    with pytest.raises(InvalidInput, match="format version 3"):
        table.updated(made(), [update], NOW)
    found = table.updated(made(format_version="3"), [update], NOW)
    assert found["schemas"][1]["fields"][1]["type"] == type_


def test_defaults_of_columns_need_format_version_3() -> None:
    column = {"id": 2, "name": "v", "required": True, "type": "int", "initial-default": 5}
    update = {"action": "add-schema", "schema": {"type": "struct", "fields": [COLUMN, column]}}
    with pytest.raises(InvalidInput, match="initial-default needs format version 3"):
        table.updated(made(), [update], NOW)
    found = table.updated(made(format_version="3"), [update], NOW)
    assert found["schemas"][1]["fields"][1]["initial-default"] == 5


def test_an_equal_schema_is_not_added_again() -> None:
    base = made()
    assert table.updated(base, [{"action": "add-schema", "schema": SCHEMA}], NOW) is base


def test_format_version_1_without_the_newer_members() -> None:
    old = {
        "format-version": 1,
        "location": "s3://lake/t",
        "last-updated-ms": NOW,
        "last-column-id": 1,
        "schema": {"type": "struct", "fields": [COLUMN]},
        "partition-spec": [{"name": "id_bucket", "transform": "bucket[4]", "source-id": 1}],
        "properties": {},
    }
    found = table.updated(
        old,
        [
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "assign-uuid", "uuid": "u"},
        ],
        NOW,
    )
    assert (found["current-schema-id"], found["default-spec-id"], found["last-partition-id"]) == (
        0,
        0,
        1000,
    )
    assert found["partition-specs"][0]["fields"][0]["field-id"] == 1000
    assert "schema" not in found
    assert "partition-spec" not in found


@pytest.mark.parametrize(
    "member",
    ["schemas", "partition-specs", "sort-orders", "last-partition-id", "last-updated-ms"],
)
def test_metadata_of_format_version_2_needs_its_members(member: str) -> None:
    base = {name: value for name, value in made().items() if name != member}
    with pytest.raises(InvalidInput, match=f"table metadata: {member} is missing"):
        table.updated(base, [{"action": "set-properties", "updates": {"a": "b"}}], NOW)


def test_a_new_table_begins_with_the_first_format_version_of_its_updates() -> None:
    base = made()
    updates: list[dict[str, Any]] = [
        {"action": "upgrade-format-version", "format-version": 1},
        {"action": "assign-uuid", "uuid": "u"},
        {"action": "set-location", "location": "s3://lake/t"},
        {"action": "add-schema", "schema": base["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]
    assert table.updated(None, updates, NOW)["format-version"] == 1
    later = {"action": "upgrade-format-version", "format-version": 3}
    found = table.updated(None, [*updates, later], NOW)
    assert (found["format-version"], found["next-row-id"]) == (3, 0)


@pytest.mark.parametrize(
    ("update", "words"),
    [
        ({"action": "fly"}, "no update 'fly'"),
        ({"action": "upgrade-format-version", "format-version": 1}, "cannot be downgraded"),
        ({"action": "upgrade-format-version", "format-version": 4}, "not supported"),
        ({"action": "set-current-schema", "schema-id": 5}, "no schema 5"),
        ({"action": "set-default-spec", "spec-id": -1}, "no spec has been added"),
        ({"action": "set-default-spec", "spec-id": 3}, "no partition spec 3"),
        ({"action": "set-default-sort-order", "sort-order-id": 3}, "no sort order 3"),
        ({"action": "remove-schemas", "schema-ids": [0]}, "current-schema"),
        ({"action": "remove-partition-specs", "spec-ids": [0]}, "default-spec"),
        ({"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 5}, "no snapshot 5"),
        ({"action": "set-snapshot-ref", "ref-name": "a", "type": "twig", "snapshot-id": 5}, "branch or tag"),
        ({"action": "set-properties", "updates": {"a": 1}}, "strings only"),
        ({"action": "set-location"}, "location is missing"),
        ({"action": "add-spec", "spec": {"fields": [{"source-id": 9, "name": "a", "transform": "day"}]}}, "no field 9"),
        ({"action": "add-spec", "spec": {"fields": [{"source-id": 1, "name": "a", "transform": "day"}]}}, "day cannot transform"),
        ({"action": "add-schema", "schema": {"type": "struct", "fields": [COLUMN, COLUMN]}}, "same id 1"),
        ({"action": "add-schema", "schema": {"type": "struct", "fields": [COLUMN | {"type": "u64"}]}}, "no type 'u64'"),
        ({}, "action is missing"),
    ],
)  # fmt: skip
def test_an_update_that_cannot_be_applied_says_why(update: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        table.updated(made(), [update], NOW)


@pytest.mark.parametrize(
    ("requirement", "words"),
    [
        ({"type": "assert-create"}, "already exists"),
        ({"type": "assert-table-uuid", "uuid": "other"}, "UUID does not match"),
        ({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}, "created concurrently"),
        ({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 8}, "has changed"),
        ({"type": "assert-ref-snapshot-id", "ref": "x", "snapshot-id": 8}, "is missing"),
        ({"type": "assert-last-assigned-field-id", "last-assigned-field-id": 5}, "field id"),
        ({"type": "assert-current-schema-id", "current-schema-id": 5}, "schema"),
        ({"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 5}, "partition id"),
        ({"type": "assert-default-spec-id", "default-spec-id": 5}, "partition spec"),
        ({"type": "assert-default-sort-order-id", "default-sort-order-id": 5}, "sort order"),
    ],
)  # fmt: skip
def test_requirements_that_do_not_hold(requirement: dict[str, Any], words: str) -> None:
    metadata = table.updated(made(), [snapshot(7), main_at(7)], NOW)
    with pytest.raises(RequirementFailed, match=words):
        check_requirements([requirement], metadata)


def test_requirements_that_hold() -> None:
    metadata = table.updated(made(), [snapshot(7), main_at(7)], NOW)
    check_requirements(
        [
            {"type": "assert-table-uuid", "uuid": metadata["table-uuid"].upper()},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7},
            {"type": "assert-ref-snapshot-id", "ref": "other", "snapshot-id": None},
            {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 1},
            {"type": "assert-current-schema-id", "current-schema-id": 0},
            {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999},
            {"type": "assert-default-spec-id", "default-spec-id": 0},
            {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
        ],
        metadata,
    )
    check_requirements([{"type": "assert-create"}], None)


def test_requirements_of_format_version_1_without_the_newer_members() -> None:
    old = {
        "format-version": 1,
        "location": "s3://lake/t",
        "last-updated-ms": NOW,
        "last-column-id": 1,
        "schema": {"type": "struct", "fields": [COLUMN]},
        "partition-spec": [],
    }
    check_requirements(
        [
            {"type": "assert-current-schema-id", "current-schema-id": 0},
            {"type": "assert-default-spec-id", "default-spec-id": 0},
            {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999},
            {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
        ],
        old,
    )


def test_an_unknown_requirement_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no requirement 'assert-luck'"):
        check_requirements([{"type": "assert-luck"}], made())


# -- views ---------------------------------------------------------------------------------------
def version(sql: str, dialect: str = "spark", **members: Any) -> dict[str, Any]:
    return {
        "version-id": 1,
        "timestamp-ms": NOW,
        "schema-id": -1,
        "summary": {"engine-name": "spark"},
        "default-namespace": ["db"],
        "representations": [{"type": "sql", "sql": sql, "dialect": dialect}],
        **members,
    }


def new_view(**properties: str) -> dict[str, Any]:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return view.new_view(SCHEMA, version("SELECT 1"), "s3://lake/v", named, NOW)


def replaced(base: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    updates = [
        {"action": "add-schema", "schema": SCHEMA},
        {"action": "add-view-version", "view-version": given},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    return view.updated(base, updates, NOW + 1)


def test_a_new_view() -> None:
    found = new_view()
    assert (found["format-version"], found["current-version-id"]) == (1, 1)
    assert found["version-log"] == [{"timestamp-ms": NOW, "version-id": 1}]
    assert found["versions"][0]["schema-id"] == 0


def test_a_replaced_view_gets_the_next_version() -> None:
    found = replaced(new_view(), version("SELECT 2"))
    assert found["current-version-id"] == 2
    assert [one["version-id"] for one in found["version-log"]] == [1, 2]


def test_an_equal_version_is_reused() -> None:
    base = new_view()
    given = version("SELECT 1", **{"schema-id": 0, "timestamp-ms": NOW + 5})
    assert view.updated(base, [{"action": "add-view-version", "view-version": given}], NOW) is base


def test_a_dialect_is_dropped_only_if_the_view_allows_it() -> None:
    with pytest.raises(InvalidInput, match="no query for spark"):
        replaced(new_view(), version("SELECT 2", "trino"))
    allowed = view.new_view(
        SCHEMA, version("SELECT 1"), "s3://lake/v", {"replace.drop-dialect.allowed": "true"}, NOW
    )
    assert replaced(allowed, version("SELECT 2", "trino"))["current-version-id"] == 2


def test_the_history_is_limited() -> None:
    base = view.new_view(
        SCHEMA, version("SELECT 1"), "s3://lake/v", {"version.history.num-entries": "2"}, NOW
    )
    for number in range(2, 6):
        base = replaced(base, version(f"SELECT {number}"))
    assert [one["version-id"] for one in base["versions"]] == [4, 5]
    assert [one["version-id"] for one in base["version-log"]] == [4, 5]


def test_the_schema_of_a_view_is_checked() -> None:
    column = COLUMN | {"required": False}
    schema = {"type": "struct", "fields": [column], "identifier-field-ids": [1]}
    with pytest.raises(InvalidInput, match="must be primitive and required"):
        view.updated(new_view(), [{"action": "add-schema", "schema": schema}], NOW)


def test_a_view_keeps_its_uuid() -> None:
    base = new_view()
    with pytest.raises(InvalidInput, match="UUID"):
        view.updated(base, [{"action": "assign-uuid", "uuid": "other"}], NOW)
    with pytest.raises(RequirementFailed, match="view UUID"):
        check_requirements([{"type": "assert-view-uuid", "uuid": "other"}], base, of_view=True)
