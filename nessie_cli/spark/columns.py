"""The columns of the tables with types and comments, and their values for contents and keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import structs
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from nessie_cli.errors import InvalidInput
from nessie_cli.model import (
    CONTENT_TYPES,
    CommitMeta,
    Content,
    ContentKey,
    Rename,
    UnknownContent,
    content_from,
)
from nessie_cli.wire.json_text import parse_json

TEXT, LONG, INT, TIME, FLAG = (
    StringType(),
    LongType(),
    IntegerType(),
    TimestampType(),
    BooleanType(),
)
TEXTS = ArrayType(TEXT, containsNull=False)


def column(name: str, type_: DataType, comment: str, *, nullable: bool = True) -> StructField:
    """Returns a column with a comment."""
    return StructField(name, type_, nullable, {"comment": comment})


CONTENT = StructType(
    [
        column(
            "type",
            TEXT,
            (
                "ICEBERG_TABLE, ICEBERG_VIEW, DELTA_LAKE_TABLE, NAMESPACE, UDF, or a type that"
                " this version does not know"
            ),
        ),
        column("id", TEXT, "The content id: constant, through renames and merges"),
        column(
            "metadata_location",
            TEXT,
            "The location of the current metadata file (Iceberg tables and views, UDFs)",
        ),
        column("snapshot_id", LONG, "The current snapshot of an Iceberg table; -1 for none"),
        column("schema_id", INT, "The current schema of an Iceberg table or view"),
        column("spec_id", INT, "The current partition spec of an Iceberg table"),
        column("sort_order_id", INT, "The current sort order of an Iceberg table"),
        column("version_id", TEXT, "The current version of a view (an integer) or of a UDF"),
        column("sql_text", TEXT, "The SQL of a view or UDF, if the catalog has it"),
        column("dialect", TEXT, "The dialect of that SQL"),
        column("signature_id", TEXT, "The signature of a UDF"),
        column("metadata_location_history", TEXTS, "The metadata files of a Delta table"),
        column("checkpoint_location_history", TEXTS, "The checkpoints of a Delta table"),
        column("last_checkpoint", TEXT, "The last checkpoint of a Delta table"),
        column("elements", TEXTS, "The path of a namespace"),
        column(
            "properties",
            MapType(TEXT, TEXT, valueContainsNull=False),
            "The properties of a namespace",
        ),
        column("attributes", TEXT, "The attributes of a content of an unknown type, as JSON"),
    ]
)
"""A content of any type. Fields that the type does not have are null."""

COMMIT = StructType(
    [
        column("hash", TEXT, "The commit"),
        column("author", TEXT, "Its first author"),
        column("commit_time", TIME, "The time of the commit"),
        column("message", TEXT, "The commit message"),
    ]
)
RENAME = StructType(
    [
        column("old", TEXT, "The key before"),
        column("new", TEXT, "The key after"),
        column("hash", TEXT, "The commit that renamed it"),
    ]
)

_NAMES = tuple(field.name for field in CONTENT.fields)


def content_row(content: Content | None) -> dict[str, Any] | None:
    """Returns a content as a value of `CONTENT` for Arrow."""
    if content is None:
        return None
    row: dict[str, Any] = dict.fromkeys(_NAMES)
    row["type"] = content.type_name
    if isinstance(content, UnknownContent):
        row |= {
            "id": content.id,
            "attributes": json.dumps(dict(content.foreign_attributes), ensure_ascii=False),
        }
        return row
    for name, value in structs.asdict(content).items():
        row[name] = (
            list(value)
            if isinstance(value, tuple)
            else list(value.items())
            if isinstance(value, Mapping)
            else value
        )
    if row["version_id"] is not None:
        row["version_id"] = str(row["version_id"])
    return row


def content_of(row: Mapping[str, Any], place: str) -> Content:
    """Returns the content of a value of `CONTENT`. Raises `InvalidInput`, which names the field."""
    given = {name: value for name, value in row.items() if value is not None}
    unknown = given.keys() - set(_NAMES)
    if unknown:
        raise InvalidInput(f"{place}: a content has no field {min(unknown)}")
    type_name = given.pop("type", None)
    if not isinstance(type_name, str):
        raise InvalidInput(f"{place}.type: is missing ({', '.join(CONTENT_TYPES)})")
    content_id = given.pop("id", None)
    try:
        return _content(type_name, content_id, given)
    except InvalidInput as error:
        raise InvalidInput(f"{place}: {error.message}") from None


def _content(type_name: str, content_id: str | None, given: dict[str, Any]) -> Content:
    cls = CONTENT_TYPES.get(type_name)
    names = {"attributes"} if cls is None else set(cls.__struct_fields__)
    wrong = given.keys() - names
    if wrong:
        raise InvalidInput(f"{type_name} has no {min(wrong)}")
    if cls is None:
        attributes = parse_json(given.get("attributes", "{}"), "attributes")
        return content_from(type_name, content_id, attributes)
    for name, value in given.items():
        if isinstance(value, list):
            given[name] = dict(value) if name == "properties" else tuple(value)
    if type_name == "ICEBERG_VIEW" and "version_id" in given:
        text = str(given["version_id"])
        if not text.removeprefix("-").isdigit():
            raise InvalidInput(f"version_id: {text!r} is not an integer")
        given["version_id"] = int(text)
    missing = [
        field.name for field in structs.fields(cls) if field.required and field.name not in given
    ]
    if missing:
        raise InvalidInput(f"{type_name}.{missing[0]}: is missing")
    return cls(id=content_id, **given)


def commit_row(meta: CommitMeta | None) -> dict[str, Any] | None:
    """Returns a commit as a value of `COMMIT`."""
    if meta is None:
        return None
    return {
        "hash": meta.hash,
        "author": meta.author,
        "commit_time": meta.commit_time,
        "message": meta.message,
    }


def rename_row(rename: Rename | None) -> dict[str, Any] | None:
    """Returns a rename as a value of `RENAME`."""
    return (
        None
        if rename is None
        else {
            "old": str(rename.old),
            "new": str(rename.new),
            "hash": rename.by.hash if rename.by else None,
        }
    )


KEY_COLUMNS = [
    column(
        "key",
        TEXT,
        'The content key, elements joined with dots; those with dots are quoted (db."order.lines")',
        nullable=False,
    ),
    column("elements", TEXTS, "The elements of the key", nullable=False),
]


def key_values(key: ContentKey) -> tuple[str, list[str]]:
    """Returns the values of `KEY_COLUMNS`."""
    return str(key), list(key.elements)
