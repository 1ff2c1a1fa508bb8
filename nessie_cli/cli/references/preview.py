"""Dry runs of changes to references."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nessie_cli.errors import AlreadyExists, ReferenceMoved, ReferenceNotFound
from nessie_cli.model import Conflict, ConflictType, Reference, check_new_reference_name
from nessie_cli.repository.changes import (
    AssignReference,
    CreateReference,
    DeleteReference,
    RenameReference,
)

if TYPE_CHECKING:
    from nessie_cli.repository.base import Repository


def preview(
    repository: Repository,
    change: CreateReference | AssignReference | RenameReference | DeleteReference,
) -> Reference:
    """Returns the reference that a change would return, without writing.

    Raises the error that the change would raise.
    """
    # A remote repository checks neither names nor hashes in a draft.
    if isinstance(change, CreateReference):
        _check_is_free(repository, change.name)
    elif isinstance(change, RenameReference):
        _check_is_free(repository, change.new)
        _check_hash(repository, change.old, change.expected_hash)
    else:
        _check_hash(repository, change.name, change.expected_hash)
    reference: Reference = repository.draft(change).answer()
    return reference


def _check_is_free(repository: Repository, name: str) -> None:
    check_new_reference_name(name)
    try:
        repository.reference(name)
    except ReferenceNotFound:
        return
    raise AlreadyExists(f"Named reference '{name}' already exists.", name)


def _check_hash(repository: Repository, name: str, expected: str) -> None:
    head = repository.reference(name).hash
    if head == expected:
        return
    text = f"'{name}' is not at expected hash '{expected}', but at '{head}'"
    raise ReferenceMoved(
        f"Named-reference {text}.",
        [Conflict(ConflictType.UNEXPECTED_HASH, None, f"named-reference {text}")],
        reference=name,
        head=head,
        expected_hash=expected,
    )
