"""Sends changes to a server: each by the request of its verb, to our servers with its id."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import structs

from nessie_cli.errors import InvalidInput
from nessie_cli.kernel.drafting import check_client_meta
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
from nessie_cli.repository.remote import commit, merge, plain, references, revisions, settings
from nessie_cli.repository.remote.session import Session


def send(session: Session, change: Change, request_id: str | None = None) -> Any:
    """Have the server make a change, or work it out if it is a dry run.

    Returns the answer of the verb.
    """
    return _VERBS[type(change)](session, change, request_id)


def _commit(session: Session, change: Commit, request_id: str | None) -> CommitResult:
    check_client_meta(change.meta)
    words = (
        change.branch,
        list(change.operations),
        change.meta,
        change.expected_hash,
        request_id,
        change.dry_run,
    )
    request = commit.CommitRequest(*words)
    return (
        commit.commit(session, request)
        if session.server.extensions
        else plain.commit(session, request)
    )


def _merge(session: Session, change: Merge, request_id: str | None) -> MergeResult:
    options = structs.replace(change.options, request_id=request_id)
    if options.meta is not None:
        check_client_meta(options.meta)
    combine = merge.merge if session.server.extensions else plain.merge
    return combine(session, change.branch, revisions.resolve(session, change.source), options)


def _transplant(session: Session, change: Transplant, request_id: str | None) -> MergeResult:
    options = structs.replace(change.options, request_id=request_id)
    if options.meta is not None:
        check_client_meta(options.meta)
    if not change.commits:
        raise InvalidInput("No hashes given to transplant.")
    combine = merge.transplant if session.server.extensions else plain.transplant
    return combine(
        session,
        change.branch,
        [revisions.existing(session, hash_) for hash_ in change.commits],
        options,
    )


def _create(session: Session, change: CreateReference, request_id: str | None) -> Reference:
    target = revisions.existing(session, change.target)
    words = (change.type, change.name, target)
    return references.create(session, *words, message=change.message, request_id=request_id)


def _assign(session: Session, change: AssignReference, request_id: str | None) -> Reference:
    target = revisions.existing(session, change.target)
    return references.assign(
        session, change.name, target, expected_hash=change.expected_hash, request_id=request_id
    )


def _rename(session: Session, change: RenameReference, request_id: str | None) -> Reference:
    if session.server.extensions:
        return references.rename(
            session,
            change.old,
            change.new,
            expected_hash=change.expected_hash,
            request_id=request_id,
        )
    return plain.rename_reference(
        session, change.old, change.new, expected_hash=change.expected_hash
    )


def _delete(session: Session, change: DeleteReference, request_id: str | None) -> Reference:
    return references.delete(
        session, change.name, expected_hash=change.expected_hash, request_id=request_id
    )


def _put_settings(
    session: Session, change: PutSettings, request_id: str | None
) -> Mapping[str, str | None]:
    if session.server.extensions:
        return settings.put(session, change.values, request_id)
    return plain.put_settings(change.values)


_VERBS: Mapping[type[Change], Callable[[Session, Any, str | None], Any]] = {
    Commit: _commit,
    Merge: _merge,
    Transplant: _transplant,
    CreateReference: _create,
    AssignReference: _assign,
    RenameReference: _rename,
    DeleteReference: _delete,
    PutSettings: _put_settings,
}
