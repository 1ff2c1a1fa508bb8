"""Checks a whole metadata file of a table or view.

A view is read like by Iceberg's `ViewMetadataParser`: https://iceberg.apache.org/view-spec/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.validity.nodes import DocumentNode
from nessie_cli.iceberg.validity.schemas import check_schema
from nessie_cli.iceberg.validity.tables import check_table


def check_metadata(document: Mapping[str, Any]) -> None:
    """Refuses metadata of a table or view that Iceberg's own parser refuses.

    Engines could not read it, and no change could be committed to it. Raises `InvalidInput`, which
    names the place in the file.
    """
    check = _check_view if "view-uuid" in document else check_table
    try:
        check(DocumentNode(document))
    except RecursionError:
        raise InvalidInput("not valid Iceberg metadata: it is nested too deeply") from None


def _check_view(view: DocumentNode) -> None:
    view.need("view-uuid").text()
    view.need("location").text()
    if properties := view.find("properties"):
        properties.text_map()
    for schema in view.need("schemas").items():
        check_schema(schema)
    view.need("current-version-id").integer()
    for version in view.need("versions").items():
        _check_version(version)
    for entry in view.need("version-log").items():
        entry.need("version-id").integer()
        entry.need("timestamp-ms").long()


def _check_version(version: DocumentNode) -> None:
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
