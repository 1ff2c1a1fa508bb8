"""Drafts of changes on a server: by a dry run, or by what the server's references are now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import structs

from nessie_cli.errors import NessieError, NotAllowed, ReferenceConflict
from nessie_cli.model import MergeResult, Reference, ReferenceType
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
from nessie_cli.repository.draft import Draft, ReferenceChange
from nessie_cli.repository.remote import references, revisions, settings
from nessie_cli.repository.remote.sending import send
from nessie_cli.repository.remote.session import Session
from nessie_cli.revisions import Revision


def draft(session: Session, change: Change) -> Draft[Any]:
    """See `Repository.draft`."""
    if isinstance(change, Commit):
        return _commit(session, structs.replace(change, operations=list(change.operations)))
    if isinstance(change, Merge | Transplant):
        return _combine(session, change)
    if isinstance(change, PutSettings):
        known = settings.config(session).settings if session.server.extensions else {}
        return Draft(
            change, [], answer={name: known.get(name) for name in change.values}, exact=False
        )
    return _reference(session, change)


def _commit(session: Session, change: Commit) -> Draft[Any]:
    result, refuse = _tried(lambda: send(session, structs.replace(change, dry_run=True)))
    head = result.reference if result is not None else references.get(session, change.branch)
    moved = ReferenceChange(ReferenceType.BRANCH, head.name, head.hash, None)
    return Draft(change, [moved], answer=result, refuse=refuse, exact=False)


def _combine(session: Session, change: Merge | Transplant) -> Draft[Any]:
    sources: tuple[str, ...] = ()
    if isinstance(change, Merge):
        # The source stays what is drafted, even if its branch moves on.
        source = revisions.resolve(session, change.source)
        sources = (source.hash,)
        change = structs.replace(change, source=Revision(source.name or None, source.hash))
    trial = structs.replace(change, options=structs.replace(change.options, dry_run=True))
    result, refuse = _tried(lambda: send(session, trial))
    if isinstance(result, MergeResult):
        moved = ReferenceChange(
            ReferenceType.BRANCH, result.target_branch, result.effective_target_hash, None
        )
    else:
        target = references.get(session, change.branch)
        moved = ReferenceChange(ReferenceType.BRANCH, target.name, target.hash, None)
    return Draft(change, [moved], answer=result, refuse=refuse, exact=False, sources=sources)


def _reference(
    session: Session, change: CreateReference | AssignReference | RenameReference | DeleteReference
) -> Draft[Any]:
    """References move by compare-and-swap on the server as well, so these drafts are exact."""
    if isinstance(change, CreateReference):
        references.check_message(session, change.message)
        target = revisions.resolve(session, Revision(None, change.target)).hash
        created = Reference(change.type, change.name, target)
        return Draft(
            change,
            [ReferenceChange(change.type, change.name, None, target)],
            answer=created,
            sources=(target,),
        )
    found = references.get(
        session, change.old if isinstance(change, RenameReference) else change.name
    )
    expected = change.expected_hash
    if isinstance(change, AssignReference):
        target = revisions.resolve(session, Revision(None, change.target)).hash
        moved = ReferenceChange(found.type, found.name, expected, target)
        return Draft(change, [moved], answer=structs.replace(found, hash=target), sources=(target,))
    gone = ReferenceChange(found.type, found.name, expected, None)
    if isinstance(change, DeleteReference):
        return Draft(change, [gone], answer=found)
    renamed = ReferenceChange(found.type, change.new, None, expected)
    return Draft(change, [renamed, gone], answer=structs.replace(found, name=change.new))


def _tried(attempt: Callable[[], Any]) -> tuple[Any, Callable[[], NessieError] | None]:
    """The answer of a dry run, or what the server has against the change."""
    try:
        return attempt(), None
    except (ReferenceConflict, NotAllowed) as error:
        refusal = error
        return None, lambda: refusal
