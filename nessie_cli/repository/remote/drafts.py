"""Drafts of changes on a server: by a dry run, or from the current references."""

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
from nessie_cli.repository.remote import references, revisions
from nessie_cli.repository.remote.sending import send
from nessie_cli.repository.remote.server import Server
from nessie_cli.revisions import Revision


def draft(server: Server, change: Change[Any]) -> Draft[Any]:
    """Drafts a change, as `Repository.draft` describes."""
    if isinstance(change, Commit):
        return _commit(server, change.repeatable())
    if isinstance(change, Merge | Transplant):
        return _combine(server, change)
    if isinstance(change, PutSettings):
        settings = server.settings().values
        change.check_expected(settings)
        return Draft(
            change, [], answer={name: settings.get(name) for name in change.values}, exact=False
        )
    return _reference(server, change)


def _commit(server: Server, change: Commit) -> Draft[Any]:
    result, refuse = _tried(lambda: send(server, structs.replace(change, dry_run=True)))
    head = result.reference if result is not None else references.get(server.session, change.branch)
    moved = ReferenceChange(ReferenceType.BRANCH, head.name, head.hash, None)
    return Draft(change, [moved], answer=result, refuse=refuse, exact=False)


def _combine(server: Server, change: Merge | Transplant) -> Draft[Any]:
    sources: tuple[str, ...] = ()
    if isinstance(change, Merge):
        # The source stays what is drafted, even if its branch moves on.
        source = revisions.resolve(server.session, change.source)
        sources = (source.hash,)
        change = structs.replace(change, source=Revision(source.name or None, source.hash))
    trial = structs.replace(change, options=structs.replace(change.options, dry_run=True))
    result, refuse = _tried(lambda: send(server, trial))
    if isinstance(result, MergeResult):
        moved = ReferenceChange(
            ReferenceType.BRANCH, result.target_branch, result.effective_target_hash, None
        )
    else:
        target = references.get(server.session, change.branch)
        moved = ReferenceChange(ReferenceType.BRANCH, target.name, target.hash, None)
    return Draft(change, [moved], answer=result, refuse=refuse, exact=False, sources=sources)


def _reference(server: Server, change: Change[Any]) -> Draft[Any]:
    """Drafts a move of a reference. A server moves by compare-and-swap, so the draft is exact."""
    if isinstance(change, CreateReference):
        server.check_supported(change)
        target = revisions.resolve(server.session, Revision(None, change.target)).hash
        created = Reference(change.type, change.name, target)
        return Draft(
            change,
            [ReferenceChange(change.type, change.name, None, target)],
            answer=created,
            sources=(target,),
        )
    assert isinstance(change, AssignReference | RenameReference | DeleteReference)
    current = references.get(
        server.session, change.old if isinstance(change, RenameReference) else change.name
    )
    expected = change.expected_hash
    if isinstance(change, AssignReference):
        target = revisions.resolve(server.session, Revision(None, change.target)).hash
        moved = ReferenceChange(current.type, current.name, expected, target)
        return Draft(
            change, [moved], answer=structs.replace(current, hash=target), sources=(target,)
        )
    gone = ReferenceChange(current.type, current.name, expected, None)
    if isinstance(change, DeleteReference):
        return Draft(change, [gone], answer=current)
    renamed = ReferenceChange(current.type, change.new, None, expected)
    return Draft(change, [renamed, gone], answer=structs.replace(current, name=change.new))


def _tried(attempt: Callable[[], Any]) -> tuple[Any, Callable[[], NessieError] | None]:
    """Returns the answer of a dry run, or the refusal of the server."""
    try:
        return attempt(), None
    except (ReferenceConflict, NotAllowed) as error:
        refusal = error
        return None, lambda: refusal
