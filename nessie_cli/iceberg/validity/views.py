"""View metadata, as Iceberg's `ViewMetadataParser` reads it.

https://iceberg.apache.org/view-spec/
"""

from __future__ import annotations

from nessie_cli.iceberg.validity.nodes import DocumentNode
from nessie_cli.iceberg.validity.schemas import check_schema


def check_view(view: DocumentNode) -> None:
    """Checks view metadata. Raises `InvalidInput` that names the place."""
    view.need("view-uuid").text()
    view.need("location").text()
    if properties := view.find("properties"):
        properties.text_map()
    for schema in view.need("schemas").items():
        check_schema(schema)
    view.need("current-version-id").integer()
    for version in view.need("versions").items():
        check_version(version)
    for entry in view.need("version-log").items():
        entry.need("version-id").integer()
        entry.need("timestamp-ms").long()


def check_version(version: DocumentNode) -> None:
    """Checks a version of a view."""
    version.need("version-id").integer()
    version.need("schema-id").integer()
    version.need("timestamp-ms").long()
    version.need("summary").text_map()
    for representation in version.need("representations").items():
        if representation.need("type").text().lower() == "sql":
            representation.need("sql").text()
            representation.need("dialect").text()
    if catalog := version.given("default-catalog"):
        catalog.text()
    for level in version.need("default-namespace").items():
        level.text()
