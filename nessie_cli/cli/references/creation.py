"""Creating references."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nessie_cli.cli.references.lookup import GLOB, existing
from nessie_cli.cli.references.preview import preview
from nessie_cli.cli.references.results import SingleReferenceResult
from nessie_cli.errors import AlreadyExists, InvalidInput
from nessie_cli.model import Reference, ReferenceType
from nessie_cli.repository.changes import CreateReference

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.cli.references.options import ReferenceOptions


def create(
    options: ReferenceOptions,
    app: Invocation,
    type_: ReferenceType,
    message: str = "",
) -> SingleReferenceResult:
    """Creates NAME at START, or at the current reference."""
    name, *rest = options.between(1, 2, "NAME [START]")
    start = rest[0] if rest else None
    if options.hash_on_ref:
        start = f"{start or app.reference_name()}@{options.hash_on_ref}"
    target = app.repository().resolve(app.revision(start)).hash
    return create_at(options, app, Reference(type_, name, target), message)


def copy(options: ReferenceOptions, app: Invocation) -> SingleReferenceResult:
    """Creates the branch NEW at the head of OLD, or of the current branch."""
    old, new = options.old_and_new(app.reference_name, "-c [OLD] NEW")
    source = app.repository().reference(old)
    if source.type is not ReferenceType.BRANCH:
        raise InvalidInput(
            f"'{old}' is a tag, and -c copies a branch",
            hint=f"`nessie branch {new} {old}` creates a branch there",
        )
    return create_at(options, app, Reference(ReferenceType.BRANCH, new, source.hash))


def create_at(
    options: ReferenceOptions,
    app: Invocation,
    reference: Reference,
    message: str = "",
) -> SingleReferenceResult:
    """Creates a reference, or reports it in a dry run. Raises `AlreadyExists`."""
    if GLOB & set(reference.name):
        hint = f"`nessie {reference.type.lower()} -l '{reference.name}'` lists them"
        raise InvalidInput(f"'{reference.name}' is a pattern, not a name", hint=hint)
    try:
        if options.dry_run:
            change = CreateReference(reference.type, reference.name, reference.hash, message)
            return SingleReferenceResult(preview(app.repository(), change), "would create")
        created = app.repository().create_reference(
            reference.type,
            reference.name,
            reference.hash,
            message=message,
        )
    except AlreadyExists:
        if not options.if_not_exists:
            raise
        return SingleReferenceResult(
            existing(app, reference.type, reference.name), "already exists:"
        )
    return SingleReferenceResult(created, "created")
