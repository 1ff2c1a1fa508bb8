"""Checks metadata of a table or view: a whole file, or the parts that an update adds.

A whole check of each new metadata file would cost as much as its history is long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder.values import non_empty_text
from nessie_cli.iceberg.validity import tables, views
from nessie_cli.iceberg.validity.nodes import DocumentNode
from nessie_cli.iceberg.validity.schemas import check_schema

_Check = Callable[[DocumentNode], object]


def check_metadata(document: Mapping[str, Any]) -> None:
    """Refuses metadata of a table or view that Iceberg's own parser refuses.

    Engines could not read it, and no change could be committed to it. Raises `InvalidInput`, which
    names the place in the file.
    """
    check = views.check_view if "view-uuid" in document else tables.check_table
    with _depth_limit():
        check(DocumentNode(document))


def check_additions(document: Mapping[str, Any], base: Mapping[str, Any] | None = None) -> None:
    """Refuses metadata of a table or view with a new part that Iceberg's own parser refuses.

    `base` is the metadata before the update, of which `document` has the same unchanged objects.
    Raises `InvalidInput`, which names the place.
    """
    before = base or {}
    non_empty_text(document, "location")
    with _depth_limit():
        for name, check in _checks(document).items():
            for item in _added(document, before, name):
                check(item)
        earlier = before.get("refs") or {}
        for name, reference in (document.get("refs") or {}).items():
            if earlier.get(name) != reference:
                tables.check_reference(DocumentNode(document).need("refs").need(name))


def _checks(document: Mapping[str, Any]) -> dict[str, _Check]:
    """Returns the checks of the items of lists."""
    if "view-uuid" in document:
        return {"schemas": check_schema, "versions": views.check_version}

    def check_snapshot(snapshot: DocumentNode) -> None:
        last = DocumentNode(document).find("last-sequence-number")
        tables.check_snapshot(snapshot, newest=0 if last is None else last.long())

    return {
        "schemas": check_schema,
        "snapshots": check_snapshot,
        "statistics": tables.check_statistics,
        "partition-statistics": tables.check_statistics_file,
        "encryption-keys": tables.check_key,
    }


def _added(
    document: Mapping[str, Any], before: Mapping[str, Any], name: str
) -> Iterator[DocumentNode]:
    """Yields the items of a list that it did not have before."""
    earlier = set(map(id, before.get(name) or ()))
    for number, value in enumerate(document.get(name) or ()):
        if id(value) not in earlier:
            yield DocumentNode(value, number, DocumentNode(document).need(name))


@contextmanager
def _depth_limit() -> Iterator[None]:
    """Raises `InvalidInput` for metadata that is nested too deeply."""
    try:
        yield
    except RecursionError:
        raise InvalidInput("not valid Iceberg metadata: it is nested too deeply") from None


@contextmanager
def placed_faults(document: Mapping[str, Any], location: str) -> Iterator[None]:
    """Raises `InvalidInput` for an error that an invalid part of a metadata file has caused.

    A whole check takes long, so files of other programs are used without one. Errors that the
    document does not explain are raised unchanged.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        try:
            check_metadata(document)
        except InvalidInput as error:
            raise InvalidInput(f"{location}: {error.message}") from None
        raise
