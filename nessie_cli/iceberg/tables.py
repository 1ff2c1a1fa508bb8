"""Tables of PyIceberg's catalog: their metadata as JSON, which the metadata builder changes.

PyIceberg's own classes cannot write format version 3 and drop the members that they do not know.
So its objects are only made from the JSON, never the other way round.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pyiceberg.partitioning import PartitionSpec, assign_fresh_partition_spec_ids
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.sorting import SortOrder, assign_fresh_sort_order_ids

from nessie_cli.iceberg.builder import table
from nessie_cli.iceberg.builder.document import by_id
from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.errors import pyiceberg_errors, reading_metadata
from nessie_cli.iceberg.metadata import NO_SNAPSHOT, read_document
from nessie_cli.model import IcebergTable

GC_ENABLED = "gc.enabled"
"""The property that allows engines to delete files.

It is false for new tables, because other branches, tags and older commits need their files.
"""


def now() -> int:
    """Returns the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def as_json(model: BaseModel) -> Document:
    """Returns an object of PyIceberg as JSON."""
    document: Document = json.loads(model.model_dump_json(by_alias=True, exclude_none=True))
    return document


def new(
    schema: Schema,
    spec: PartitionSpec,
    order: SortOrder,
    location: str,
    properties: Mapping[str, str],
) -> Document:
    """Returns the metadata of a new table."""
    fresh = assign_fresh_schema_ids(schema)
    request = {
        "schema": as_json(fresh),
        "partition-spec": as_json(assign_fresh_partition_spec_ids(spec, schema, fresh)),
        "write-order": as_json(assign_fresh_sort_order_ids(order, schema, fresh)),
        "properties": properties,
    }
    with pyiceberg_errors():
        return table.new_table(request, location, now())


def read(content: IcebergTable, properties: Mapping[str, str]) -> Document:
    """Returns the metadata of a table, in the state that its content names.

    Raises `FileNotFoundError` or `ValidationError`, which name the file.
    """
    with reading_metadata(content.metadata_location):
        return _in_state(dict(read_document(content.metadata_location, properties)), content)


def parsed(document: Document, location: str) -> TableMetadata:
    """Returns metadata as PyIceberg's object. `location` is its file, for the error.

    Raises `ValidationError` if PyIceberg does not know a part of it, such as the type variant.
    """
    with reading_metadata(location):
        return TableMetadataUtil.parse_raw(json.dumps(document))


def _in_state(document: Document, content: IcebergTable) -> Document:
    """Returns metadata with the current ids of a content.

    A metadata file holds many states of a table. The content says which one is current.
    """
    members = (
        ("current-schema-id", content.schema_id, "schemas", "schema-id"),
        ("default-spec-id", content.spec_id, "partition-specs", "spec-id"),
        ("default-sort-order-id", content.sort_order_id, "sort-orders", "order-id"),
        ("current-snapshot-id", content.snapshot_id, "snapshots", "snapshot-id"),
    )
    changed: dict[str, Any] = {
        member: id_
        for member, id_, known, id_member in members
        if id_ != document.get(member) and id_ in by_id(document.get(known) or (), id_member)
    }
    snapshot = changed.get("current-snapshot-id", NO_SNAPSHOT)
    if snapshot != NO_SNAPSHOT:
        main = {"snapshot-id": snapshot, "type": "branch"}
        changed["refs"] = {**(document.get("refs") or {}), "main": main}
    return {**document, **changed}
