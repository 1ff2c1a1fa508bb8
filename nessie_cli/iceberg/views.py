"""View metadata of PyIceberg, and its files. PyIceberg itself writes none."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping

from pyiceberg.io import FileIO
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.view import View
from pyiceberg.view.metadata import ViewMetadata, ViewVersion

from nessie_cli.iceberg.failures import reading_metadata
from nessie_cli.iceberg.metadata import content_of, read_document
from nessie_cli.model import ContentKey, IcebergView


def new_metadata(
    schema: Schema, version: ViewVersion, location: str, properties: Mapping[str, str]
) -> ViewMetadata:
    """The metadata of a new view with one version; the ids of its schema are given anew."""
    fresh = assign_fresh_schema_ids(schema)
    current = version.model_copy(update={"schema_id": fresh.schema_id})
    return ViewMetadata.model_validate(
        {
            "view-uuid": str(uuid.uuid4()),
            "format-version": 1,
            "location": location,
            "schemas": [fresh],
            "current-version-id": current.version_id,
            "versions": [current],
            "version-log": [
                {"timestamp-ms": current.timestamp_ms, "version-id": current.version_id}
            ],
            "properties": dict(properties),
        }
    )


def content(metadata: ViewMetadata, location: str) -> IcebergView:
    """The content of a view whose metadata file lies at a location."""
    found = content_of(json.loads(metadata.model_dump_json()), location)
    assert isinstance(found, IcebergView)
    return found


def write(metadata: ViewMetadata, io: FileIO, location: str) -> None:
    """Write a metadata file."""
    with io.new_output(location).create() as file:
        file.write(metadata.model_dump_json().encode())


def read(key: ContentKey, told: IcebergView, properties: Mapping[str, str]) -> View:
    """A view in the version that its content tells; raises `FileNotFoundError` or `ValidationError` that names the file."""
    with reading_metadata(told.metadata_location):
        metadata = ViewMetadata.model_validate(read_document(told.metadata_location, properties))
    if told.version_id in {version.version_id for version in metadata.versions}:
        metadata = metadata.model_copy(update={"current_version_id": told.version_id})
    return View(key.elements, metadata)
