"""Sends each type of change by its request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec import structs

from nessie_cli.errors import InvalidInput
from nessie_cli.kernel.commits import check_client_meta
from nessie_cli.model import CommitResult, MergeResult, Reference
from nessie_cli.repository.changes import (
    AssignReference,
    Change,
    Commit,
    CreateReference,
    DeleteReference,
    Merge,
    PutSettings,
    RenameReference,
    Transplant,
)
from nessie_cli.repository.remote import revisions
from nessie_cli.repository.remote.server import Server

A = TypeVar("A")


def send(server: Server, change: Change[A], request_id: str | None = None) -> A:
    """Returns the answer of the server to a change, or to its dry run."""
    server.check_supported(change)
    answer: A = _VERBS[type(change)](server, change, request_id)
    return answer


def _commit(server: Server, change: Commit, request_id: str | None) -> CommitResult:
    check_client_meta(change.meta)
    return server.commit(change, request_id)


def _merge(server: Server, change: Merge, request_id: str | None) -> MergeResult:
    if change.options.meta is not None:
        check_client_meta(change.options.meta)
    source = revisions.resolve(server.session, change.source)
    return server.merge(change, source, request_id)


def _transplant(server: Server, change: Transplant, request_id: str | None) -> MergeResult:
    if change.options.meta is not None:
        check_client_meta(change.options.meta)
    if not change.commits:
        raise InvalidInput("No hashes given to transplant.")
    commits = [revisions.existing(server.session, hash_) for hash_ in change.commits]
    return server.transplant(structs.replace(change, commits=commits), request_id)


def _create(server: Server, change: CreateReference, request_id: str | None) -> Reference:
    target = revisions.existing(server.session, change.target)
    return server.create_reference(structs.replace(change, target=target), request_id)


def _assign(server: Server, change: AssignReference, request_id: str | None) -> Reference:
    target = revisions.existing(server.session, change.target)
    return server.assign_reference(structs.replace(change, target=target), request_id)


def _rename(server: Server, change: RenameReference, request_id: str | None) -> Reference:
    return server.rename_reference(change, request_id)


def _delete(server: Server, change: DeleteReference, request_id: str | None) -> Reference:
    return server.delete_reference(change, request_id)


def _put_settings(
    server: Server, change: PutSettings, request_id: str | None
) -> Mapping[str, str | None]:
    return server.put_settings(change, request_id)


_VERBS: Mapping[type[Change[Any]], Callable[[Server, Any, str | None], Any]] = {
    Commit: _commit,
    Merge: _merge,
    Transplant: _transplant,
    CreateReference: _create,
    AssignReference: _assign,
    RenameReference: _rename,
    DeleteReference: _delete,
    PutSettings: _put_settings,
}
