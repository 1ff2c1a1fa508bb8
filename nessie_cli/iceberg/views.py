"""Views of PyIceberg's catalog: their metadata as JSON, which the metadata builder makes."""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.view import View
from pyiceberg.view.metadata import ViewMetadata, ViewVersion

from nessie_cli.iceberg.builder import view
from nessie_cli.iceberg.builder.values import Document, by_id
from nessie_cli.iceberg.errors import pyiceberg_errors, reading_metadata
from nessie_cli.iceberg.metadata import read_document
from nessie_cli.iceberg.tables import as_json, now
from nessie_cli.model import ContentKey, IcebergView


def new(
    schema: Schema, version: ViewVersion, location: str, properties: Mapping[str, str]
) -> Document:
    """Returns the metadata of a new view with one version. Its schema gets fresh field ids."""
    fresh = as_json(assign_fresh_schema_ids(schema))
    with pyiceberg_errors():
        return view.new_view(fresh, as_json(version), location, properties, now())


def load(key: ContentKey, content: IcebergView, properties: Mapping[str, str]) -> View:
    """Returns a view in the version that its content names.

    Raises `FileNotFoundError` or `ValidationError`, which name the file.
    """
    with reading_metadata(content.metadata_location):
        document = dict(read_document(content.metadata_location, properties))
    if content.version_id in by_id(document["versions"], "version-id"):
        document["current-version-id"] = content.version_id
    return loaded(key, document, content.metadata_location)


def loaded(key: ContentKey, document: Document, location: str) -> View:
    """Returns the view of metadata. `location` is its file, for the error `ValidationError`."""
    with reading_metadata(location):
        return View(key.elements, ViewMetadata.model_validate(document))
