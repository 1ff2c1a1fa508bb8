"""Deleting references."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from nessie_cli.cli.app.global_options import carried
from nessie_cli.cli.app.questions import confirm
from nessie_cli.cli.errors.messages import message_for_people
from nessie_cli.cli.errors.resolutions import command_line
from nessie_cli.cli.references.lookup import GLOB, existing, expected_hash
from nessie_cli.cli.references.preview import preview
from nessie_cli.cli.references.results import (
    DELETED,
    DeletedReferencesResult,
    SingleReferenceResult,
)
from nessie_cli.errors import (
    InvalidInput,
    NessieError,
    NotAllowed,
    NotFound,
    ReferenceConflict,
    ReferenceNotFound,
)
from nessie_cli.model import Reference, ReferenceType
from nessie_cli.repository.changes import DeleteReference

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.cli.references.options import ReferenceOptions


def delete(
    options: ReferenceOptions,
    app: Invocation,
    type_: ReferenceType,
) -> SingleReferenceResult | DeletedReferencesResult:
    """Deletes the named references.

    If some of them cannot be deleted, the others still are.
    """
    from nessie_cli.inspection.references import is_only_way_to

    if not options.arguments or (options.expected_hash and len(options.arguments) > 1):
        raise InvalidInput("-d needs the names to delete; with --expected-hash exactly one")
    _refuse_patterns(options, type_)
    failures: list[NessieError] = []
    # All of them are looked up before the first one is deleted.
    references = list(_named(options, app, type_, failures))
    names = {reference.name for reference in references}
    _keep_current(app, names)
    lost = {
        reference.name
        for reference in references
        if is_only_way_to(app.repository(), reference.hash, names)
    }
    if lost and not options.dry_run:
        listed = ", ".join(reference.name for reference in references if reference.name in lost)
        confirm(
            app,
            f"Some commits are reachable only from {listed}. Delete anyway?",
            yes=options.yes or options.force_delete,
        )
    deleted = list(_deleted(options, app, references, failures))
    if failures and not deleted:
        for other in failures[1:]:
            app.output.note(message_for_people(other))
        raise failures[0]
    deletions = [_deletion(app, reference, lost, dry_run=options.dry_run) for reference in deleted]
    if len(deletions) == 1 and not failures:
        return deletions[0]
    return DeletedReferencesResult(deleted, failures, deletions)


def _named(
    options: ReferenceOptions,
    app: Invocation,
    type_: ReferenceType,
    failures: list[NessieError],
) -> Iterator[Reference]:
    default = app.repository().config().default_branch
    for name in dict.fromkeys(options.arguments):
        if name == default:
            raise InvalidInput(
                f"'{name}' is the default branch of this repository; it cannot be deleted",
            )
        try:
            yield existing(app, type_, name)
        except ReferenceNotFound as error:
            if not options.if_exists:
                failures.append(error)


def _refuse_patterns(options: ReferenceOptions, type_: ReferenceType) -> None:
    for name in options.arguments:
        if GLOB & set(name):
            hint = f"`nessie {type_.lower()} -l '{name}'` lists the names"
            message = "-d deletes references by their names, not by a pattern"
            raise InvalidInput(message, hint=hint)


def _keep_current(app: Invocation, names: Collection[str]) -> None:
    current = app.workspace.current_reference() if app.workspace else None
    if current in names:
        way = "`nessie switch` to another one first"
        raise InvalidInput(f"'{current}' is the current reference of this workspace; {way}")


def _deleted(
    options: ReferenceOptions,
    app: Invocation,
    references: list[Reference],
    failures: list[NessieError],
) -> Iterator[Reference]:
    for reference in references:
        try:
            hash_ = expected_hash(options, app, reference)
            if options.dry_run:
                yield preview(app.repository(), DeleteReference(reference.name, hash_))
            else:
                yield app.repository().delete_reference(reference.name, expected_hash=hash_)
        except (NotAllowed, NotFound, ReferenceConflict) as error:
            failures.append(error)


def _deletion(
    app: Invocation, reference: Reference, lost: Collection[str], *, dry_run: bool
) -> SingleReferenceResult:
    if dry_run:
        return SingleReferenceResult(reference, "would delete")
    only = " (no other reference reaches its last commits)" if reference.name in lost else ""
    undo = command_line(*carried(app.options, ("store", "profile")), "undo", reference.name)
    return SingleReferenceResult(
        reference,
        DELETED,
        f"`{undo}` restores it{only}",
    )
