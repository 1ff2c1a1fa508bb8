"""Tables of PyIceberg's catalog: their metadata as JSON, which the metadata builder changes.

PyIceberg's own classes cannot write format version 3 and drop the members that they do not know.
So its objects are only made from the JSON, never the other way round.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

from pydantic import BaseModel
from pyiceberg.partitioning import PartitionSpec, assign_fresh_partition_spec_ids
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table import TableProperties
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.sorting import SortOrder, assign_fresh_sort_order_ids

from nessie_cli.iceberg.builder import table
from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.errors import pyiceberg_errors, reading_metadata
from nessie_cli.iceberg.metadata import in_state, read_document
from nessie_cli.model import IcebergTable

LOCATION_PROVIDER = TableProperties.WRITE_PY_LOCATION_PROVIDER_IMPL


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
        return dict(in_state(read_document(content.metadata_location, properties), content))


def parsed(document: Document, location: str) -> TableMetadata:
    """Returns metadata as PyIceberg's object. `location` is its file, for the error.

    It has no property that names code; see `without_code`. Raises `ValidationError` if PyIceberg
    does not know a part of it, such as the type variant.
    """
    with reading_metadata(location):
        return TableMetadataUtil.parse_raw(json.dumps(without_code(document)))


def without_code(document: Document) -> Document:
    """Returns metadata without the property that names a class for the locations of files.

    PyIceberg would call any function with this name when it writes, such as `exec` with the
    location of the table, and everybody who writes a table chooses its properties.
    """
    properties = document.get("properties")
    if not isinstance(properties, dict) or LOCATION_PROVIDER not in properties:
        return document
    harmless = {name: value for name, value in properties.items() if name != LOCATION_PROVIDER}
    return {**document, "properties": harmless}
