"""Checks the ids of a content against its metadata file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder.document import NO_SNAPSHOT
from nessie_cli.iceberg.locations import scheme_of, shown
from nessie_cli.iceberg.metadata import read_document
from nessie_cli.model import Content, ContentKey, IcebergTable


def check_ids(key: ContentKey, content: Content) -> None:
    """Raises `InvalidInput` if the metadata file of a table lacks its snapshot or its schema.

    It reads local files only, so that a put never waits for a network. It accepts a content if the
    file cannot be read or the table has no current snapshot.
    """
    if not isinstance(content, IcebergTable) or scheme_of(content.metadata_location) not in (
        "",
        "file",
    ):
        return
    try:
        document = read_document(content.metadata_location)
    except InvalidInput:
        return
    current = document.get("current-snapshot-id")
    if current in (None, NO_SNAPSHOT) or content.snapshot_id == NO_SNAPSHOT:
        return
    where = shown(content.metadata_location)
    if content.snapshot_id not in _ids(document, "snapshots", "snapshot-id"):
        raise InvalidInput(
            f"{key}: snapshot {content.snapshot_id} is not in {where}, "
            f"whose current snapshot is {current}"
        )
    schemas = _ids(document, "schemas", "schema-id")
    if schemas and content.schema_id not in schemas:
        raise InvalidInput(
            f"{key}: schema {content.schema_id} is not in {where}, "
            f"whose current schema is {document.get('current-schema-id')}"
        )


def _ids(document: Mapping[str, Any], items: str, item_id: str) -> list[int]:
    return [
        item[item_id]
        for item in document.get(items) or ()
        if isinstance(item, Mapping) and item_id in item
    ]
