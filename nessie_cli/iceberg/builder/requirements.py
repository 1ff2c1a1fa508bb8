"""The requirements of an Iceberg REST commit, checked against the metadata that is current.

The messages of requirements that fail are those of Iceberg's own library, for its clients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.iceberg.builder import values
from nessie_cli.iceberg.builder.document import normalized
from nessie_cli.iceberg.builder.values import Document


class RequirementFailed(NessieError):
    """The metadata has changed since the client read it. A client reads it again and retries."""

    code = "CommitFailedException"
    status = 409


def check(
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
    """Checks requirements like `check`, on metadata with the members of all versions."""
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


def creates(requirements: Sequence[Document]) -> bool:
    """Whether the requirements say that there is no table yet."""
    return any(one.get("type") == "assert-create" for one in requirements)


def _create(_: Document, metadata: Document) -> None:
    if metadata:
        raise RequirementFailed("Requirement failed: table already exists")


def _uuid(member: str, what: str) -> Callable[[Document, Document], None]:
    def check_uuid(one: Document, metadata: Document) -> None:
        wanted, found = values.text(one, "uuid", "requirement"), metadata.get(member) or ""
        if wanted.lower() != str(found).lower():
            raise RequirementFailed(
                f"Requirement failed: {what} does not match: expected {wanted} != {found}"
            )

    return check_uuid


def _ref(one: Document, metadata: Document) -> None:
    name = values.text(one, "ref", "requirement")
    wanted = one.get("snapshot-id")
    if wanted is not None:
        wanted = values.long(one, "snapshot-id", "requirement")
    found = metadata.get("refs", {}).get(name)
    if found is None:
        if wanted is not None:
            raise RequirementFailed(
                f"Requirement failed: branch or tag {name} is missing, expected {wanted}"
            )
    elif wanted is None:
        raise RequirementFailed(
            f"Requirement failed: {found['type']} {name} was created concurrently"
        )
    elif wanted != found["snapshot-id"]:
        raise RequirementFailed(
            f"Requirement failed: {found['type']} {name} has changed: "
            f"expected id {wanted} != {found['snapshot-id']}"
        )


def _number(wanted: str, member: str, what: str) -> Callable[[Document, Document], None]:
    def check_number(one: Document, metadata: Document) -> None:
        expected = values.integer(one, wanted, "requirement")
        if metadata.get(member) != expected:
            raise RequirementFailed(
                f"Requirement failed: {what} changed: "
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
