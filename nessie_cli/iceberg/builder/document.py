"""Table metadata: its members in all format versions, and the requirements of a commit.

The messages of requirements that fail are those of Iceberg's own library, for its clients.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.iceberg.builder import partitions, values
from nessie_cli.iceberg.builder.values import Document, by_id, current_schema
from nessie_cli.model.contents import MOST_PROPERTIES

NEWEST_VERSION = 3
NO_SNAPSHOT = -1
MAIN = "main"
ROW_LINEAGE = 3
"""The format version since which rows have ids."""
GC_ENABLED = "gc.enabled"
"""The property that allows engines to delete files.

It is false for new tables, because other branches, tags and older commits need their files.
"""
_MOST_METADATA_FILES = "write.metadata.previous-versions-max"
_MOST_METADATA_FILES_DEFAULT = 100
_ORDER = (
    "format-version", "table-uuid", "location", "last-sequence-number", "last-updated-ms",
    "last-column-id", "schema", "current-schema-id", "schemas", "partition-spec", "default-spec-id",
    "partition-specs", "last-partition-id", "default-sort-order-id", "sort-orders", "properties",
    "current-snapshot-id", "next-row-id", "encryption-keys", "refs", "snapshots", "statistics",
    "partition-statistics", "snapshot-log", "metadata-log",
)  # fmt: skip


def version_of(document: Mapping[str, Any]) -> int:
    """Returns the format version of metadata. Raises `InvalidInput` if it is not supported."""
    return supported(values.integer(document, "format-version", "table metadata"))


def supported(version: int) -> int:
    """Returns a format version. Raises `InvalidInput` if it is not supported."""
    if not 1 <= version <= NEWEST_VERSION:
        raise InvalidInput(
            f"format version {version} is not supported; supported: 1 to {NEWEST_VERSION}"
        )
    return version


def empty(version: int) -> Document:
    """Returns the metadata that the updates of a new table are applied to."""
    made: Document = {
        "format-version": version,
        "table-uuid": str(uuid.uuid4()),
        "last-sequence-number": 0,
        "last-column-id": 0,
        "current-schema-id": 0,
        "default-spec-id": 0,
        "last-partition-id": 0,
        "default-sort-order-id": 0,
        "current-snapshot-id": NO_SNAPSHOT,
        "properties": {},
        "refs": {},
    }
    lists = ("schemas", "partition-specs", "sort-orders", "snapshots", "statistics",
             "partition-statistics", "snapshot-log", "metadata-log")  # fmt: skip
    made |= {name: [] for name in lists}
    return made | ({"next-row-id": 0} if version >= ROW_LINEAGE else {})


def normalized(document: Document) -> Document:
    """Returns a copy of metadata with the members that older format versions may leave out.

    The copy shares everything below its lists and objects with the original.
    """
    made = {name: copy(value) for name, value in document.items()}
    version = version_of(made)
    where = "table metadata"
    _complete_definitions(made, version)
    _complete_snapshots(made)
    for member in ("current-schema-id", "default-spec-id", "default-sort-order-id",
                   "last-sequence-number"):  # fmt: skip
        made.setdefault(member, 0)
    for member in ("last-column-id", "last-updated-ms"):
        values.long(made, member, where)
    if version >= ROW_LINEAGE:
        values.long(made, "next-row-id", where)
    return made


def _complete_definitions(made: Document, version: int) -> None:
    where = "table metadata"
    if version > 1:
        for member in ("schemas", "partition-specs", "sort-orders"):
            values.objects(made, member, where)
        values.integer(made, "last-partition-id", where)
    if "schemas" not in made:
        made["schemas"] = with_ids([values.object_(made, "schema", where)])
        made["current-schema-id"] = made["schemas"][0]["schema-id"]
    if "partition-specs" not in made:
        made["partition-specs"] = [{"spec-id": 0, "fields": made.get("partition-spec") or []}]
        made["default-spec-id"] = 0
    made["schemas"] = with_ids(made["schemas"])
    made["partition-specs"] = list(map(_with_field_ids, made["partition-specs"]))
    if made.get("last-partition-id") is None:
        made["last-partition-id"] = max(map(partitions.last_field_id, made["partition-specs"]))
    if "sort-orders" not in made:
        made["sort-orders"] = [{"order-id": partitions.UNSORTED_ORDER_ID, "fields": []}]
        made["default-sort-order-id"] = partitions.UNSORTED_ORDER_ID


def with_ids(schemas: Sequence[Document]) -> list[Document]:
    """Returns schemas of a metadata file. The schema without an id has the id 0."""
    return [
        schema if schema.get("schema-id") is not None else {**schema, "schema-id": 0}
        for schema in schemas
    ]


def _with_field_ids(spec_: Document) -> Document:
    """Returns a spec whose fields have ids. Old files leave them out: they follow the order."""
    given = spec_["fields"]
    if all("field-id" in field for field in given):
        return spec_
    numbered = [
        {**field, "field-id": partitions.FIRST_FIELD_ID + n} for n, field in enumerate(given)
    ]
    return {**spec_, "fields": numbered}


def _complete_snapshots(made: Document) -> None:
    current = made.get("current-snapshot-id")
    if made.get("refs") is None:
        has_snapshot = current not in (None, NO_SNAPSHOT)
        made["refs"] = {MAIN: {"snapshot-id": current, "type": "branch"}} if has_snapshot else {}
    if current is None:
        made["current-snapshot-id"] = NO_SNAPSHOT
    made["properties"] = made.get("properties") or {}
    for name in ("snapshots", "statistics", "partition-statistics", "snapshot-log", "metadata-log"):
        made[name] = made.get(name) or []


def written(made: Document) -> Document:
    """Returns metadata as the file of its format version holds it."""
    version = made["format-version"]
    for member in ("schema", "partition-spec"):
        made.pop(member, None)
    if version == 1:
        del made["last-sequence-number"]
        schema = current_schema(made)
        spec = by_id(made["partition-specs"], "spec-id")[made["default-spec-id"]]
        made |= {"schema": schema, "partition-spec": spec["fields"]}
    if version >= ROW_LINEAGE and made["current-snapshot-id"] == NO_SNAPSHOT:
        made["current-snapshot-id"] = None
    if not made.get("encryption-keys", True):
        del made["encryption-keys"]
    return {name: made[name] for name in (*_ORDER, *(made.keys() - set(_ORDER))) if name in made}


def set_properties(properties: dict[str, str], given: Mapping[str, str]) -> bool:
    """Sets properties of a table or view, and returns whether any were given.

    Raises `InvalidInput` if there are too many then.
    """
    # One call would add all.
    if len(given) <= MOST_PROPERTIES:
        properties.update(given)
    if max(len(given), len(properties)) > MOST_PROPERTIES:
        raise InvalidInput(f"properties: there are more than {MOST_PROPERTIES:,}")
    return bool(given)


def most_metadata_files(properties: Mapping[str, str]) -> int:
    """Returns how many earlier metadata files the log of a table names, by its property."""
    given = properties.get(_MOST_METADATA_FILES, str(_MOST_METADATA_FILES_DEFAULT))
    try:
        return max(1, int(given))
    except ValueError:
        raise InvalidInput(
            f"property {_MOST_METADATA_FILES}: must be an integer, not {given!r}"
        ) from None


# -- the requirements of a commit ------------------------------------------------------------------


class RequirementFailed(NessieError):
    """The metadata has changed since the client read it. A client reads it again and retries."""

    code = "CommitFailedException"
    status = 409


def check_requirements(
    requirements: Sequence[Document], metadata: Document | None, *, of_view: bool = False
) -> None:
    """Checks the requirements of a table, or of a view.

    `metadata` is None if there is no table. Raises `RequirementFailed` for the first requirement
    that does not hold, and `InvalidInput` for an unknown one.
    """
    if metadata is not None and not of_view:
        metadata = normalized(metadata)
    check_normalized(requirements, metadata, of_view=of_view)


def check_normalized(
    requirements: Sequence[Document], metadata: Document | None, *, of_view: bool = False
) -> None:
    """Like `check_requirements`, on metadata with the members of all versions."""
    checks = _OF_VIEW if of_view else _OF_TABLE
    for requirement in requirements:
        kind = values.text(requirement, "type", "requirement")
        holds = checks.get(kind)
        if holds is None:
            raise InvalidInput(
                f"requirement: there is no requirement {kind!r}; known: {', '.join(sorted(checks))}"
            )
        if kind != "assert-create" and metadata is None:
            raise RequirementFailed(
                f"Requirement failed: {'view' if of_view else 'table'} does not exist"
            )
        holds(requirement, metadata or {})


def creates_table(requirements: Sequence[Document]) -> bool:
    """Whether the requirements say that there is no table yet."""
    return any(requirement.get("type") == "assert-create" for requirement in requirements)


def _create(_: Document, metadata: Document) -> None:
    if metadata:
        raise RequirementFailed("Requirement failed: table already exists")


def _uuid(member: str, name: str) -> Callable[[Document, Document], None]:
    def check_uuid(requirement: Document, metadata: Document) -> None:
        expected = values.text(requirement, "uuid", "requirement")
        current = metadata.get(member) or ""
        if expected.lower() != str(current).lower():
            raise RequirementFailed(
                f"Requirement failed: {name} does not match: expected {expected} != {current}"
            )

    return check_uuid


def _ref(requirement: Document, metadata: Document) -> None:
    name = values.text(requirement, "ref", "requirement")
    expected = requirement.get("snapshot-id")
    if expected is not None:
        expected = values.long(requirement, "snapshot-id", "requirement")
    ref = metadata.get("refs", {}).get(name)
    if ref is None:
        if expected is not None:
            raise RequirementFailed(
                f"Requirement failed: branch or tag {name} is missing, expected {expected}"
            )
    elif expected is None:
        raise RequirementFailed(
            f"Requirement failed: {ref['type']} {name} was created concurrently"
        )
    elif expected != ref["snapshot-id"]:
        raise RequirementFailed(
            f"Requirement failed: {ref['type']} {name} has changed: "
            f"expected id {expected} != {ref['snapshot-id']}"
        )


def _number(attribute: str, member: str, name: str) -> Callable[[Document, Document], None]:
    def check_number(requirement: Document, metadata: Document) -> None:
        expected = values.integer(requirement, attribute, "requirement")
        if metadata.get(member) != expected:
            raise RequirementFailed(
                f"Requirement failed: {name} changed: "
                f"expected id {expected} != {metadata.get(member)}"
            )

    return check_number


_Check = Callable[[Document, Document], Any]
_OF_TABLE: Mapping[str, _Check] = {
    "assert-create": _create,
    "assert-table-uuid": _uuid("table-uuid", "UUID"),
    "assert-ref-snapshot-id": _ref,
    "assert-last-assigned-field-id": _number(
        "last-assigned-field-id", "last-column-id", "last assigned field id"
    ),
    "assert-current-schema-id": _number("current-schema-id", "current-schema-id", "current schema"),
    "assert-last-assigned-partition-id": _number(
        "last-assigned-partition-id", "last-partition-id", "last assigned partition id"
    ),
    "assert-default-spec-id": _number(
        "default-spec-id", "default-spec-id", "default partition spec"
    ),
    "assert-default-sort-order-id": _number(
        "default-sort-order-id", "default-sort-order-id", "default sort order"
    ),
}
_OF_VIEW: Mapping[str, _Check] = {"assert-view-uuid": _uuid("view-uuid", "view UUID")}
