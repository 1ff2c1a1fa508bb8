"""Table metadata of PyIceberg and the contents that stand for it, in both directions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType

from nessie_cli.iceberg.failures import reading_metadata
from nessie_cli.iceberg.metadata import NO_SNAPSHOT, read_document
from nessie_cli.model import IcebergTable

GC_ENABLED = "gc.enabled"
"""The property that tells engines whether they may delete files. Other branches, tags and older commits need them, so it is false for new tables."""


def content_of(
    metadata: TableMetadata, location: str, content_id: str | None = None
) -> IcebergTable:
    """The content of a table whose metadata file lies at a location."""
    snapshot = metadata.current_snapshot_id
    return IcebergTable(
        id=content_id,
        metadata_location=location,
        snapshot_id=NO_SNAPSHOT if snapshot is None else snapshot,
        schema_id=metadata.current_schema_id,
        spec_id=metadata.default_spec_id,
        sort_order_id=metadata.default_sort_order_id,
    )


def read(content: IcebergTable, properties: Mapping[str, str]) -> TableMetadata:
    """The metadata of a table as its content tells it; raises `FileNotFoundError` or `ValidationError` that names the file."""
    with reading_metadata(content.metadata_location):
        metadata = TableMetadataUtil.parse_obj(
            dict(read_document(content.metadata_location, properties))
        )
    return _as_told(metadata, content)


def _as_told(metadata: TableMetadata, content: IcebergTable) -> TableMetadata:
    """One file holds many states; which of its schemas, specs, orders and snapshots count is told by the content, as it is for every engine."""
    told: dict[str, Any] = {}
    if content.schema_id != metadata.current_schema_id and content.schema_id in {
        schema.schema_id for schema in metadata.schemas
    }:
        told["current_schema_id"] = content.schema_id
    if content.spec_id != metadata.default_spec_id and content.spec_id in metadata.specs():
        told["default_spec_id"] = content.spec_id
    if content.sort_order_id != metadata.default_sort_order_id and metadata.sort_order_by_id(
        content.sort_order_id
    ):
        told["default_sort_order_id"] = content.sort_order_id
    if content.snapshot_id not in (
        NO_SNAPSHOT,
        metadata.current_snapshot_id,
    ) and metadata.snapshot_by_id(content.snapshot_id):
        main = SnapshotRef.model_validate(
            {"snapshot-id": content.snapshot_id, "type": SnapshotRefType.BRANCH}
        )
        told["current_snapshot_id"] = content.snapshot_id
        told["refs"] = {**metadata.refs, MAIN_BRANCH: main}
    return metadata.model_copy(update=told) if told else metadata
