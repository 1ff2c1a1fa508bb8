"""Commits of very many updates take time in proportion to their size."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg import messages
from nessie_cli.iceberg.builder import schemas, table, view
from nessie_cli.iceberg.builder.document import RequirementFailed
from nessie_cli.iceberg.builder.values import Definitions
from nessie_cli.model import ContentKey
from tests.server.longest_call import ATTEMPTS, MOST_SECONDS, LongestCall

NOW = 1_800_000_000_000
MANY = 20_000
SOON = 30.0
"""Seconds of processor time. Work that grows with the square of the updates takes minutes."""
Update = dict[str, Any]
COLUMN = {"id": 1, "name": "id", "required": True, "type": "long"}


def base_table() -> Update:
    return table.new_table(
        {"schema": {"type": "struct", "fields": [COLUMN]}, "properties": {"format-version": "3"}},
        "s3://lake/t",
        NOW,
    )


def schema(n: int) -> Update:
    fields = [{"id": 1, "name": f"c{n}", "required": False, "type": "int"}]
    return {"action": "add-schema", "schema": {"type": "struct", "fields": fields}}


def spec(n: int) -> Update:
    field = {"source-id": 1, "name": f"p{n}", "transform": f"bucket[{n + 1}]"}
    return {"action": "add-spec", "spec": {"fields": [field]}}


def order(n: int) -> Update:
    ascending = {"direction": "asc", "null-order": "nulls-first"}
    field = {"source-id": 1, "transform": f"bucket[{n + 1}]", **ascending}
    return {"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": [field]}}


def snapshot(n: int) -> Update:
    return {
        "action": "add-snapshot",
        "snapshot": {
            "snapshot-id": n,
            "sequence-number": n + 1,
            "timestamp-ms": NOW,
            "manifest-list": f"s3://lake/t/{n}.avro",
            "summary": {"operation": "append", "added-records": "1"},
            "first-row-id": 0,
            "added-rows": 0,
        },
    }


def ref(n: int) -> Update:
    name = "main" if n % 2 else f"r{n}"
    return {"action": "set-snapshot-ref", "ref-name": name, "type": "branch", "snapshot-id": n}


def statistics(n: int) -> Update:
    file = {"snapshot-id": n, "statistics-path": "x", "file-size-in-bytes": 1, "blob-metadata": []}
    return {"action": "set-statistics", "statistics": file}


def partition_statistics(n: int) -> Update:
    file = {"snapshot-id": n, "statistics-path": "x", "file-size-in-bytes": 1}
    return {"action": "set-partition-statistics", "partition-statistics": file}


def key(n: int) -> Update:
    return {
        "action": "add-encryption-key",
        "encryption-key": {"key-id": str(n), "encrypted-key-metadata": "AA=="},
    }


def removal(action: str, member: str, value: Callable[[int], Any]) -> Callable[[int], Update]:
    return lambda n: {"action": action, member: value(n)}


def each(*updates: Callable[[int], Update]) -> Iterator[Update]:
    return (update(n) for update in updates for n in range(MANY))


def alternating(add: Callable[[int], Update], remove: Callable[[int], Update]) -> Iterator[Update]:
    """Yields additions, then a removal of the newest and another addition in turns."""
    for n in range(MANY // 2):
        yield add(n)
    for n in range(MANY // 2, MANY):
        yield remove(MANY // 2)
        yield add(n)


WIDE = [{"id": n + 1, "name": f"c{n}", "required": False, "type": "int"} for n in range(MANY)]
remove_schema = removal("remove-schemas", "schema-ids", lambda n: [n + 1])
remove_spec = removal("remove-partition-specs", "spec-ids", lambda n: [n + 1])
remove_snapshot = removal("remove-snapshots", "snapshot-ids", lambda n: [n])
remove_ref = removal("remove-snapshot-ref", "ref-name", lambda n: f"r{n}")
remove_statistics = removal("remove-statistics", "snapshot-id", lambda n: n)
remove_key = removal("remove-encryption-key", "key-id", str)
OF_TABLES = {
    "schemas": lambda: each(schema, remove_schema),
    "the same schema": lambda: each(lambda _: schema(1)),
    "schemas in turns": lambda: alternating(schema, remove_schema),
    "specs": lambda: each(spec, remove_spec),
    "specs of a wide schema": lambda: [
        {"action": "add-schema", "schema": {"type": "struct", "fields": WIDE}},
        {"action": "set-current-schema", "schema-id": -1},
        *each(spec, order),
    ],
    "sort orders": lambda: each(order),
    "snapshots": lambda: each(snapshot, remove_snapshot),
    "references": lambda: each(snapshot, ref, remove_ref),
    "snapshots with references and statistics": lambda: each(
        snapshot, ref, statistics, partition_statistics, remove_snapshot
    ),
    "statistics": lambda: each(statistics, statistics, remove_statistics),
    "encryption keys": lambda: each(key, remove_key),
    "properties": lambda: each(
        lambda n: {"action": "set-properties", "updates": {str(n): ""}},
        lambda n: {"action": "remove-properties", "removals": [str(n)]},
    ),
}


@pytest.mark.parametrize("what", OF_TABLES)
def test_many_updates_of_a_table_take_little_time(what: str) -> None:
    base, updates = base_table(), list(OF_TABLES[what]())
    begun = time.process_time()
    made = table.updated(base, updates, NOW)
    assert made is not base
    assert len(messages.changed(ContentKey(("db", "t")), updates)) < 1000
    assert time.process_time() - begun < SOON


def version(n: int) -> Update:
    given = {
        "version-id": 1,
        "timestamp-ms": NOW,
        "schema-id": -1,
        "summary": {},
        "default-namespace": ["db"],
        "representations": [{"type": "sql", "sql": f"SELECT {n}", "dialect": "spark"}],
    }
    return {"action": "add-view-version", "view-version": given}


def base_view() -> Update:
    fields = {"type": "struct", "fields": [COLUMN]}
    return view.new_view(fields, version(-1)["view-version"], "s3://lake/v", {}, NOW)


@pytest.mark.parametrize("updates", [[schema], [schema, version]], ids=["schemas", "versions"])
def test_many_updates_of_a_view_take_little_time(updates: list[Callable[[int], Update]]) -> None:
    base = base_view()
    begun = time.process_time()
    made = view.updated(base, list(each(*updates)), NOW)
    assert made is not base
    assert time.process_time() - begun < SOON


def test_a_long_version_log_of_a_view_is_shortened_in_little_time() -> None:
    base = base_view()
    base["version-log"] *= 50_000
    base["versions"] = [{**base["versions"][0], "version-id": n} for n in range(1, 12)]
    begun = time.process_time()
    made = view.updated(base, [version(1) | {"schema-id": 0}, schema(1)][1:], NOW)
    assert time.process_time() - begun < SOON
    assert len(made["version-log"]) == 50_000


def test_removed_snapshots_take_their_references_and_statistics_along() -> None:
    several = [one(n) for one in (snapshot, statistics, partition_statistics) for n in range(4)]
    base = table.updated(base_table(), [*several, ref(1), ref(2), ref(0)], NOW)
    made = table.updated(base, [remove_snapshot(0), remove_snapshot(1)], NOW)
    for member in ("snapshots", "statistics", "partition-statistics"):
        assert [one["snapshot-id"] for one in made[member]] == [2, 3]
    assert list(made["refs"]) == ["r2"]
    assert made["current-snapshot-id"] is None


def test_a_moved_reference_stays_when_its_earlier_snapshot_is_removed() -> None:
    base = table.updated(base_table(), [*map(snapshot, range(4)), ref(1)], NOW)
    made = table.updated(base, [ref(3), remove_snapshot(1)], NOW)
    assert made["refs"]["main"]["snapshot-id"] == 3
    assert made["current-snapshot-id"] == 3


def test_new_statistics_replace_those_of_the_same_snapshot() -> None:
    base = table.updated(base_table(), [*map(statistics, (1, 2, 3))], NOW)
    twice = {**base, "statistics": [*base["statistics"], base["statistics"][1]]}
    made = table.updated(twice, [statistics(2)], NOW)
    assert [one["snapshot-id"] for one in made["statistics"]] == [1, 3, 2]
    made = table.updated(twice, [remove_statistics(2)], NOW)
    assert [one["snapshot-id"] for one in made["statistics"]] == [1, 3]


STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=30)


@given(st.lists(st.integers(0, 3), max_size=5), STEPS, st.integers(0, 3))
def test_definitions_are_found_as_by_a_search(
    documents: list[int], steps: list[tuple[bool, int]], first: int
) -> None:
    listed = [{"id": 2 * n, "value": value} for n, value in enumerate(documents)]
    definitions = Definitions(listed, "id", lambda one: one["value"])
    for adds, value in steps:
        if not adds:
            listed = [one for one in listed if one["id"] != value]
            definitions.remove([value])
            continue
        same = [one["id"] for one in listed if one["value"] == value]
        found = definitions.id_of({"value": value}, first)
        assert found == (same[0] if same else max([first, *(one["id"] + 1 for one in listed)]))
        if not same:
            listed.append({"id": found, "value": value})
            definitions.add(listed[-1])
    assert list(definitions) == listed


def test_names_of_fields_that_grow_with_their_depth_are_limited() -> None:
    inner = [{"id": n + 2, "name": f"x{n}", "required": False, "type": "int"} for n in range(1000)]
    outer = {"id": 1, "required": False, "type": {"type": "struct", "fields": inner}}
    named = {"type": "struct", "fields": [{**outer, "name": "y" * 10_000}]}
    assert len(schemas.fields(named)) == 1001
    named = {"type": "struct", "fields": [{**outer, "name": "y" * 1_000_000}]}
    with pytest.raises(InvalidInput, match="full names"):
        schemas.fields(named)


def test_identifiers_lie_in_required_structs_at_any_depth() -> None:
    def nested(*required: bool) -> Update:
        type_: Any = "int"
        for depth, one in enumerate(reversed(required)):
            field = {"id": len(required) - depth, "name": "x", "required": one, "type": type_}
            type_ = {"type": "struct", "fields": [field]}
        return type_ | {"identifier-field-ids": [len(required)]}

    schemas.check(nested(True, True, True), 2)
    for required in ((False, True, True), (True, False, True)):
        with pytest.raises(InvalidInput, match="required structs only"):
            schemas.check(nested(*required), 2)


def test_requirements_are_checked_between_updates() -> None:
    builder = table.builder_for(base_table(), [], NOW)
    at = {"type": "assert-ref-snapshot-id", "ref": "main"}
    builder.require([{**at, "snapshot-id": None}])
    for update in (snapshot(1), ref(1)):
        builder.apply(update)
    builder.require([{**at, "snapshot-id": 1}])
    with pytest.raises(RequirementFailed):
        builder.require([{**at, "snapshot-id": None}])


def test_a_builder_of_a_new_table_requires_that_there_is_none() -> None:
    creation = [{"type": "assert-create"}]
    builder = table.builder_for(None, [], NOW)
    builder.require(creation)
    with pytest.raises(RequirementFailed, match="does not exist"):
        builder.require([{"type": "assert-table-uuid", "uuid": "x"}])
    builder.apply({"action": "assign-uuid", "uuid": "x"})
    builder.require([{"type": "assert-table-uuid", "uuid": "x"}])
    with pytest.raises(RequirementFailed, match="already exists"):
        builder.require(creation)


@pytest.mark.parametrize("rows", ["9" * 5000, "9" * 20, "x", -1, None])
def test_an_unreadable_number_of_rows_counts_as_none(rows: Any) -> None:
    update = snapshot(1)
    update["snapshot"]["summary"]["added-records"] = rows
    assert messages.changed(ContentKey(("t",)), [update]) == "append to t: 0 rows"


TOO_MANY = [f"{n:06}" for n in range(10_001)]
VERSION = {
    "version-id": 1,
    "timestamp-ms": NOW,
    "schema-id": -1,
    "summary": {},
    "default-namespace": ["a"],
    "representations": [{"type": "sql", "dialect": "spark", "sql": "SELECT 1"}],
}
SCHEMA = {"type": "struct", "fields": [COLUMN]}


@pytest.mark.parametrize(
    ("member", "items"),
    [
        ("summary", dict.fromkeys(TOO_MANY, "")),
        ("default-namespace", TOO_MANY),
        ("representations", [{"type": "sql", "dialect": n, "sql": "1"} for n in TOO_MANY]),
    ],
)
def test_a_version_of_a_view_with_many_items_is_refused(member: str, items: Any) -> None:
    with pytest.raises(InvalidInput, match=f"{member} has more than 10,000 items"):
        view.new_view(SCHEMA, VERSION | {member: items}, "s3://lake/v", {}, NOW)


def test_a_snapshot_with_many_items_is_refused() -> None:
    update = snapshot(7)
    update["snapshot"]["summary"] |= dict.fromkeys(TOO_MANY, "")
    with pytest.raises(InvalidInput, match="summary has more than 10,000 items"):
        table.updated(base_table(), [update], NOW)


def test_statistics_with_many_items_are_refused() -> None:
    statistics = {"snapshot-id": 7, "statistics-path": "s", "blob-metadata": [{}] * len(TOO_MANY)}
    update = {"action": "set-statistics", "statistics": statistics}
    with pytest.raises(InvalidInput, match="blob-metadata has more than 10,000 items"):
        table.updated(base_table(), [update], NOW)


def _references() -> Update:
    base = {**base_table(), "snapshots": [snapshot(0)["snapshot"]]}
    random = Random(1)
    refs = {f"{random.randrange(1 << 60):x}": {"snapshot-id": 0} for _ in range(300_000)}
    return {**base, "refs": refs, "last-sequence-number": 1}


def _type(type_: str) -> Update:
    field = {"id": 1, "name": "c", "required": True, "type": type_}
    return {"action": "add-schema", "schema": {"type": "struct", "fields": [field]}}


def _identifiers() -> Update:
    schema = {"type": "struct", "fields": [COLUMN], "identifier-field-ids": [1] * 400_000}
    return {"action": "add-schema", "schema": schema}


LONG: dict[str, tuple[Callable[[], Update], Callable[[], Update]]] = {
    "references": (_references, lambda: {"action": "remove-snapshots", "snapshot-ids": [0]}),
    "type": (base_table, lambda: _type(f"geometry({'(' * 2_000_000})")),
    "identifiers": (base_table, _identifiers),
    "properties": (
        base_table,
        lambda: {
            "action": "set-properties",
            "updates": {f"{number * 7919 % 490_019:x}": "" for number in range(490_000)},
        },
    ),
}


@pytest.mark.parametrize("what", LONG)
def test_no_call_is_long_while_an_update_is_applied(what: str) -> None:
    base, update = (make() for make in LONG[what])
    longest: list[float] = []
    gc.disable()
    try:
        while len(longest) < ATTEMPTS and not (longest and min(longest) < MOST_SECONDS):
            with LongestCall() as call, suppress(InvalidInput):
                table.updated(base, [update], NOW)
            longest.append(call.seconds)
    finally:
        gc.enable()
    assert min(longest) < MOST_SECONDS
