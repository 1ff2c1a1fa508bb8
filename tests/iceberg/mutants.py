"""Metadata files with one fault each, made from valid ones.

`verdicts.txt` has what Iceberg's own parser says about each of them: R refused, U accepted but no
property can be set, A accepted. `python -m tests.interop.verdicts` writes it.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

Document = dict[str, Any]
VERDICTS = Path(__file__).with_name("verdicts.txt")
DROPPED = object()
VALUES: tuple[Any, ...] = (
    DROPPED, None, "x", "", 0, -1, 7, 2**31, 2**63, 1.5, True, [], {}, [{}], ["x"], {"x": 1},
)  # fmt: skip
"""What each value of a valid file is replaced with, in the order of the letters in the file."""

_FIELDS: list[Document] = [
    {"id": 1, "name": "id", "required": True, "type": "long", "doc": "the key"},
    {"id": 2, "name": "day", "required": False, "type": "date"},
    {"id": 3, "name": "name", "required": False, "type": "string"},
    {
        "id": 4,
        "name": "place",
        "required": True,
        "type": {
            "type": "struct",
            "fields": [
                {"id": 5, "name": "code", "required": True, "type": "int"},
                {"id": 6, "name": "price", "required": False, "type": "decimal(9, 2)"},
            ],
        },
    },
    {
        "id": 7,
        "name": "tags",
        "required": False,
        "type": {"type": "list", "element-id": 8, "element": "string", "element-required": True},
    },
    {
        "id": 9,
        "name": "scores",
        "required": False,
        "type": {
            "type": "map",
            "key-id": 10,
            "key": "string",
            "value-id": 11,
            "value": "double",
            "value-required": False,
        },
    },
]
_SCHEMA: Document = {
    "type": "struct",
    "schema-id": 1,
    "identifier-field-ids": [1, 5],
    "fields": _FIELDS,
}
_SPEC: list[Document] = [
    {"name": "day", "transform": "identity", "source-id": 2, "field-id": 1000},
    {"name": "id_bucket", "transform": "bucket[8]", "source-id": 1, "field-id": 1001},
]
_OLD_SPEC: list[Document] = [
    {"name": "year", "transform": "year", "source-id": 2, "field-id": 1002},
    {"name": "gone", "transform": "identity", "source-id": 77, "field-id": 1003},
]
_SORTED: list[Document] = [
    {"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}
]
_SNAPSHOT: Document = {
    "snapshot-id": 11,
    "timestamp-ms": 1_700_000_000_000,
    "summary": {"operation": "append", "added-records": "3"},
    "manifest-list": "s3://b/t/metadata/snap-11.avro",
    "schema-id": 1,
}
_COMMON: Document = {
    "table-uuid": "11111111-2222-4333-8444-555555555555",
    "location": "s3://b/t",
    "last-updated-ms": 1_700_000_200_000,
    "last-column-id": 11,
    "current-schema-id": 1,
    "schemas": [{"type": "struct", "schema-id": 0, "fields": _FIELDS[:1]}, _SCHEMA],
    "default-spec-id": 1,
    "partition-specs": [{"spec-id": 0, "fields": _OLD_SPEC}, {"spec-id": 1, "fields": _SPEC}],
    "last-partition-id": 1003,
    "default-sort-order-id": 1,
    "sort-orders": [{"order-id": 0, "fields": []}, {"order-id": 1, "fields": _SORTED}],
    "properties": {"owner": "ada"},
    "current-snapshot-id": 12,
    "refs": {
        "main": {"snapshot-id": 12, "type": "branch", "min-snapshots-to-keep": 3},
        "old": {"snapshot-id": 11, "type": "tag", "max-ref-age-ms": 5},
    },
    "snapshots": [
        _SNAPSHOT,
        {**_SNAPSHOT, "snapshot-id": 12, "parent-snapshot-id": 11},
    ],
    "snapshot-log": [
        {"timestamp-ms": 1_700_000_000_000, "snapshot-id": 11},
        {"timestamp-ms": 1_700_000_100_000, "snapshot-id": 12},
    ],
    "metadata-log": [
        {"timestamp-ms": 1_700_000_000_000, "metadata-file": "s3://b/t/metadata/0.metadata.json"}
    ],
}
_STATISTICS: Document = {
    "snapshot-id": 12,
    "statistics-path": "s3://b/t/metadata/12.puffin",
    "file-size-in-bytes": 413,
    "file-footer-size-in-bytes": 42,
    "blob-metadata": [
        {
            "type": "apache-datasketches-theta-v1",
            "snapshot-id": 12,
            "sequence-number": 2,
            "fields": [1],
            "properties": {"ndv": "3"},
        }
    ],
}
_DEFAULTS: list[Document] = [
    {"id": 20, "name": "d1", "type": "boolean", "initial-default": True},
    {"id": 21, "name": "d2", "type": "int", "write-default": 1},
    {"id": 22, "name": "d3", "type": "double", "initial-default": 1.5},
    {"id": 23, "name": "d4", "type": "decimal(9, 2)", "initial-default": "1.25"},
    {"id": 24, "name": "d5", "type": "string", "initial-default": "a"},
    {"id": 25, "name": "d6", "type": "date", "initial-default": "2024-02-29"},
    {"id": 26, "name": "d7", "type": "timestamptz", "write-default": "2024-02-29T01:02:03+00:00"},
    {"id": 27, "name": "d8", "type": "fixed[2]", "initial-default": "00ff"},
    {"id": 28, "name": "d9", "type": "timestamp_ns"},
    {"id": 29, "name": "d10", "type": "variant"},
    {"id": 30, "name": "d11", "type": "unknown"},
    {"id": 31, "name": "d12", "type": "geometry(srid:3857)"},
    {"id": 32, "name": "d13", "type": "geography(OGC:CRS84, karney)"},
]


def _numbered(document: Document) -> Document:
    """Returns metadata whose snapshots have sequence numbers."""
    snapshots = [
        {**one, "sequence-number": number}
        for number, one in enumerate(document["snapshots"], start=1)
    ]
    return {**document, "snapshots": snapshots, "last-sequence-number": 2}


def _version_3() -> Document:
    made = deepcopy({**_numbered(_COMMON), "format-version": 3, "next-row-id": 6})
    made["schemas"][1]["fields"] += [{"required": False, **one} for one in _DEFAULTS]
    made["last-column-id"] = 32
    for number, one in enumerate(made["snapshots"]):
        one |= {"first-row-id": 3 * number, "added-rows": 3, "key-id": "k"}
    made["encryption-keys"] = [
        {
            "key-id": "k",
            "encrypted-key-metadata": "aGk=",
            "encrypted-by-id": "m",
            "properties": {"a": "b"},
        }
    ]
    made["partition-statistics"] = [
        {
            "snapshot-id": 12,
            "statistics-path": "s3://b/t/metadata/12.parquet",
            "file-size-in-bytes": 413,
        }
    ]
    return made


def bases() -> dict[str, Document]:
    """Returns valid metadata by name."""
    old = {
        "format-version": 1,
        "location": "s3://b/t",
        "last-updated-ms": 1_700_000_200_000,
        "last-column-id": 11,
        "schema": {"type": "struct", "fields": _FIELDS},
        "partition-spec": [
            {name: one[name] for name in one if name != "field-id"} for one in _SPEC
        ],
        "current-snapshot-id": 11,
        "snapshots": [
            {
                "snapshot-id": 11,
                "timestamp-ms": 1_700_000_000_000,
                "manifests": ["s3://b/t/metadata/a.avro"],
            }
        ],
    }
    view_version = {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 1,
        "summary": {"engine": "spark"},
        "default-catalog": "c",
        "default-namespace": ["db"],
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    }
    view = {
        "view-uuid": "11111111-2222-4333-8444-555555555555",
        "format-version": 1,
        "location": "s3://b/v",
        "properties": {"owner": "ada"},
        "schemas": [_SCHEMA],
        "current-version-id": 1,
        "versions": [view_version],
        "version-log": [{"timestamp-ms": 1_700_000_000_000, "version-id": 1}],
    }
    first = {**_COMMON, "format-version": 1, "schema": _SCHEMA, "partition-spec": _SPEC}
    second = {**_numbered(_COMMON), "format-version": 2, "statistics": [_STATISTICS]}
    made = {"v1-old": old, "v1": first, "v2": second, "v3": _version_3(), "view": view}
    # A copy by JSON has nothing twice, so that a change changes one place.
    found: dict[str, Document] = json.loads(json.dumps(made))
    return found


class Mutant(NamedTuple):
    """A faulty file: the name of its valid origin, the place, the number of the value."""

    base: str
    place: str
    number: int
    document: Document


def mutants(step: int = 1) -> Iterator[Mutant]:
    """Yields every valid file with every value replaced, and the edits; or one of every `step`."""
    return (make() for make in islice(_makers(), 0, None, step))


def _makers() -> Iterator[Callable[[], Mutant]]:
    """Yields functions that make the files, because only some of them may be needed."""
    for base, document in bases().items():
        yield partial(Mutant, base, "-", 0, document)
        packed = pickle.dumps(document)
        for path in _paths(document, ()):
            for number, value in enumerate(VALUES):
                if not _is_same(document, path, value):
                    yield partial(_mutant, base, packed, path, number)
    for name, edit in EDITS.items():
        for base in ("v1", "v2", "v3"):
            yield partial(_edited, base, name, edit)


def _mutant(base: str, packed: bytes, path: tuple[str | int, ...], number: int) -> Mutant:
    document = pickle.loads(packed)
    _replace(document, path, VALUES[number])
    return Mutant(base, _place(path), number, document)


def _edited(base: str, name: str, edit: Callable[[Document], None]) -> Mutant:
    document = bases()[base]
    edit(document)
    return Mutant(base, f"edit:{name}", 0, document)


def _paths(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for name, member in inside:
        yield (*path, name)
        if isinstance(member, dict | list):
            yield from _paths(member, (*path, name))


def _place(path: tuple[str | int, ...]) -> str:
    return "/".join(map(str, path))


def _is_same(document: Document, path: tuple[str | int, ...], value: Any) -> bool:
    around: Any = document
    for name in path[:-1]:
        around = around[name]
    return value is not DROPPED and json.dumps(around[path[-1]]) == json.dumps(value)


def _replace(document: Document, path: tuple[str | int, ...], value: Any) -> None:
    around: Any = document
    for name in path[:-1]:
        around = around[name]
    if value is DROPPED:
        del around[path[-1]]
    else:
        around[path[-1]] = deepcopy(value)


def _field(document: Document, **changes: Any) -> None:
    document["schemas"][1]["fields"].append(
        {"id": 99, "name": "extra", "required": False, "type": "int", **changes}
    )


def _spec(number: int, **changes: Any) -> Callable[[Document], None]:
    return lambda document: document["partition-specs"][number]["fields"][0].update(changes)


def _typed(type_: str, **changes: Any) -> Callable[[Document], None]:
    return lambda document: _field(document, type=type_, **changes)


def _sort(**changes: Any) -> Callable[[Document], None]:
    return lambda document: document["sort-orders"][1]["fields"][0].update(changes)


def _without_field_ids(document: Document) -> None:
    for spec in document["partition-specs"]:
        for field in spec["fields"]:
            del field["field-id"]


def _twice(member: str) -> Callable[[Document], None]:
    return lambda document: document[member].append(deepcopy(document[member][0]))


_TYPES = (
    "INT", " int", "int ", "fixed[3]", "fixed[ 3 ]", "fixed(3)", "fixed [3]", "fixed[-1]", "fixed[0]",
    "fixed[99999999999]", "FIXED[3]", "decimal(38,38)", "decimal(39, 2)", "decimal( 9 , 2 )",
    "decimal(9)", "decimal[9, 2]", "Decimal(9,2)", "decimal(2, 9)", "decimal(9, 99999999999)",
    "geometry", "geometry()", "geometry( srid:1 )", "geometry(a,b)", "geometry(a", "geography(a)",
    "geography", "geography()", "geography(a, spherical)", "geography(a, Vincenty)",
    "geography(a, wrong)", "geography(a, )", "geography(, karney)", "geography(a, b, c)", "GEOMETRY",
    "struct", "list", "timestamp_ns", "timestamptz_ns", "unknown", "variant", "nothing", "uuid",
    "string", "binary", "bigint", "decimal(\u0661, 1)",
)  # fmt: skip
_DEFAULT_VALUES: tuple[tuple[str, Any], ...] = (
    ("int", 2**31), ("long", 2**31), ("long", 2**63), ("float", 1), ("float", 1.5), ("double", 1e300),
    ("decimal(9, 2)", "1.5"), ("decimal(9, 2)", "1.50"), ("decimal(9, 2)", "+1.50"),
    ("decimal(9, 2)", "150e-2"), ("decimal(9, 2)", "NaN"), ("decimal(9, 2)", ".50"),
    ("decimal(9, 0)", "5."), ("decimal(9, 2)", 1.5), ("uuid", "x"),
    ("uuid", "11111111-2222-4333-8444-555555555555"), ("uuid", "11111111-2222-4333-8444-55555555555g"),
    ("date", "2023-02-29"), ("date", "20230228"), ("date", "2023-2-28"), ("time", "01:02"),
    ("time", "01:02:03.123456789"), ("time", "25:00:00"), ("time", "01:02:03Z"),
    ("timestamp", "2024-02-29T01:02:03.5"), ("timestamp", "2024-02-29 01:02:03"),
    ("timestamp", "2024-02-29T01:02:03+00:00"), ("timestamptz", "2024-02-29T01:02:03"),
    ("timestamptz", "2024-02-29T01:02:03+01:00"), ("timestamptz", "2024-02-29T01:02:03Z"),
    ("timestamp_ns", "2024-02-29T01:02:03.123456789"), ("timestamptz_ns", "2024-02-29T01:02:03Z"),
    ("binary", "0"), ("binary", "0g"), ("binary", ""), ("binary", "AbCd"), ("fixed[2]", "00"),
    ("variant", 1), ("unknown", 1), ("geometry", "x"),
)  # fmt: skip
EDITS: dict[str, Callable[[Document], None]] = {
    **{f"type {one}": _typed(one) for one in _TYPES},
    **{
        f"{name} {type_} {json.dumps(value)}": _typed(type_, **{name: value})
        for type_, value in _DEFAULT_VALUES
        for name in ("initial-default", "write-default")
    },
    "required unknown": lambda one: _field(one, type="unknown", required=True),
    "the same field id": lambda one: _field(one, id=6),
    "the same name": lambda one: _field(one, name="day"),
    "the same full name": lambda one: _field(one, name="place.code"),
    "the same name in another case": lambda one: _field(one, name="DAY"),
    "negative field id": lambda one: _field(one, id=-5),
    "identifier of a type float": lambda one: (
        _field(one, type="float", required=True),
        one["schemas"][1]["identifier-field-ids"].append(99),
    )[0],
    "optional identifier": lambda one: one["schemas"][1]["identifier-field-ids"].append(2),
    "unknown identifier": lambda one: one["schemas"][1]["identifier-field-ids"].append(98),
    "identifier in a list": lambda one: one["schemas"][1]["identifier-field-ids"].append(8),
    "the same identifier": lambda one: one["schemas"][1]["identifier-field-ids"].append(1),
    "last column id too low": lambda one: one.update({"last-column-id": 1}),
    "specs without field ids": _without_field_ids,
    "the current schema has no id": lambda one: (
        one.update({"current-schema-id": 0, "schemas": one["schemas"][1:]}),
        one["schemas"][0].pop("schema-id"),
    )[0],
    "the current schema has the id null": lambda one: (
        one.update({"current-schema-id": 0, "schemas": one["schemas"][1:]}),
        one["schemas"][0].update({"schema-id": None}),
    )[0],
    "a spec without field ids": lambda one: [
        field.pop("field-id") for field in one["partition-specs"][1]["fields"]
    ],
    "the same schema": _twice("schemas"),
    "the same spec": _twice("partition-specs"),
    "the same order": _twice("sort-orders"),
    "the same snapshot": _twice("snapshots"),
    "one field id twice": _spec(1, **{"field-id": 1001}),
    "one partition name twice": _spec(1, name="id_bucket"),
    "empty partition name": _spec(1, name=""),
    "earlier empty partition name": _spec(0, name=""),
    "partition name of another column": _spec(1, name="name"),
    "earlier partition name of another column": _spec(0, name="name"),
    **{
        f"{when} {transform} of {source}": _spec(
            number, name="p", transform=transform, **{"source-id": source}
        )
        for number, when in ((0, "earlier"), (1, "default"))
        for transform in (
            "year",
            "YEAR",
            "hour",
            "identity",
            "void",
            "bucket[2]",
            "bucket[0]",
            "truncate[0]",
            "truncate[3]",
            "bucket[99999999999]",
            "zorder",
            "zorder[99999999999]",
            "bucket[-1]",
        )
        for source in (1, 2, 3, 4, 7, 8, 77)
    },
    **{
        f"order by {transform} of {source}": _sort(transform=transform, **{"source-id": source})
        for transform in ("year", "identity", "void", "bucket[2]", "bucket[0]", "zorder")
        for source in (1, 2, 4, 7, 8, 77)
    },
    "order in capitals": _sort(direction="DESC", **{"null-order": "NULLS-LAST"}),
    "a sequence number too high": lambda one: one["snapshots"][0].update({"sequence-number": 3}),
    "main elsewhere": lambda one: one["refs"]["main"].update({"snapshot-id": 11}),
    "main and no current snapshot": lambda one: one.update({"current-snapshot-id": -1}),
    "current snapshot and no refs": lambda one: one.pop("refs"),
    "refs and no current snapshot": lambda one: (
        one["refs"].pop("main"),
        one.update({"current-snapshot-id": -1}),
    )[1],
    "no main": lambda one: one["refs"].pop("main"),
    "a tag with a branch's limit": lambda one: one["refs"]["old"].update(
        {"min-snapshots-to-keep": 1}
    ),
    "a ref in capitals": lambda one: one["refs"]["old"].update(type="TAG"),
    "an unsorted log": lambda one: one["snapshot-log"].reverse(),
    "a log from the future": lambda one: one["snapshot-log"][1].update(
        {"timestamp-ms": 1_700_000_900_000}
    ),
    "a metadata log from the future": lambda one: one["metadata-log"][0].update(
        {"timestamp-ms": 1_700_000_900_000}
    ),
    "rows without a first row": lambda one: one["snapshots"][0].update({"added-rows": 1}),
    "a first row without rows": lambda one: one["snapshots"][0].update(
        {"first-row-id": 1, "added-rows": None}
    ),
    "negative rows": lambda one: one["snapshots"][0].update({"first-row-id": 0, "added-rows": -1}),
    "negative rows alone": lambda one: one["snapshots"][0].update(
        {"first-row-id": None, "added-rows": -1}
    ),
    "a summary without operation": lambda one: one["snapshots"][0].update(summary={"a": "b"}),
    "an empty summary": lambda one: one["snapshots"][0].update(summary={}),
    "encryption keys": lambda one: one.update(
        {"encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "aGk"}]}
    ),
    "encryption keys that are not Base64": lambda one: one.update(
        {"encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "a*k="}]}
    ),
    "an unknown member": lambda one: one.update(more={"a": [1]}),
    "format version 4": lambda one: one.update({"format-version": 4}),
}


def recorded() -> dict[tuple[str, str, int], str]:
    """Returns Iceberg's verdicts by base, place and number."""
    found = {}
    for line in VERDICTS.read_text(encoding="utf-8").splitlines():
        base, letters, place = line.split(" ", 2)
        for number, letter in enumerate(letters):
            found[base, place, number] = letter
    return found
