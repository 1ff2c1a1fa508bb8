"""Checks the parts of metadata that an update adds, as Iceberg's parser reads them.

A whole check of each new metadata file would cost as much as its history is long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.validity import tables, views
from nessie_cli.iceberg.validity.nodes import DocumentNode
from nessie_cli.iceberg.validity.schemas import check_schema

_Check = Callable[[DocumentNode], object]


def check_additions(document: Mapping[str, Any], base: Mapping[str, Any] | None = None) -> None:
    """Refuses metadata of a table or view with a new part that Iceberg's own parser refuses.

    `base` is the metadata before the update, of which `document` has the same unchanged objects.
    Raises `InvalidInput`, which names the place.
    """
    root, before = DocumentNode(document), base or {}
    try:
        if not root.need("location").text():
            root.need("location").refuse("is empty")
        for name, check in _checks(root).items():
            _check_items(root, name, before, check)
        if references := root.find("refs"):
            earlier = before.get("refs") or {}
            for reference in references.members():
                if earlier.get(reference.name) != reference.value:
                    tables.check_reference(reference)
    except RecursionError:
        raise InvalidInput("not valid Iceberg metadata: it is nested too deeply") from None


def _checks(root: DocumentNode) -> dict[str, _Check]:
    """Returns the checks of the items of lists."""
    if "view-uuid" in root.object():
        return {"schemas": check_schema, "versions": views.check_version}
    last = root.find("last-sequence-number")
    return {
        "schemas": check_schema,
        "snapshots": partial(tables.check_snapshot, newest=0 if last is None else last.long()),
        "statistics": tables.check_statistics,
        "partition-statistics": tables.check_statistics_file,
        "encryption-keys": tables.check_key,
    }


def _check_items(root: DocumentNode, name: str, before: Mapping[str, Any], check: _Check) -> None:
    listed = root.find(name)
    if listed is None:
        return
    earlier = set(map(id, before.get(name) or ()))
    for number, value in enumerate(listed.value):
        if id(value) not in earlier:
            check(DocumentNode(value, number, listed))
