"""Renaming references and moving them to another commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from nessie_cli.cli.app.global_options import carried
from nessie_cli.cli.app.questions import confirm
from nessie_cli.cli.errors.resolutions import command_line
from nessie_cli.cli.references.lookup import existing, expected_hash
from nessie_cli.cli.references.preview import preview
from nessie_cli.cli.references.results import ReferencesResult, SingleReferenceResult
from nessie_cli.errors import InvalidInput, NotFound
from nessie_cli.inspection.text import short_hash
from nessie_cli.model import Reference, ReferenceType
from nessie_cli.repository.changes import AssignReference, RenameReference

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.cli.references.options import ReferenceOptions

_NOTHING = ReferencesResult(references=(), current=None, verbose=False)
"""The result of `--if-exists` if the reference does not exist."""


def rename(
    options: ReferenceOptions, app: Invocation, type_: ReferenceType
) -> SingleReferenceResult | ReferencesResult:
    """Renames OLD, or the current reference, to NEW."""
    old, new = options.old_and_new(app.reference_name, f"{options.WORDS['rename']} [OLD] NEW")
    repository = app.repository()
    try:
        reference = _to_rename(app, type_, old)
    except NotFound:
        if not options.if_exists:
            raise
        return _NOTHING
    hash_ = expected_hash(options, app, reference)
    if options.dry_run:
        renamed = preview(repository, RenameReference(old, new, hash_))
        return SingleReferenceResult(renamed, f"would rename {old} to")
    renamed = repository.rename_reference(old, new, expected_hash=hash_)
    follow_rename(app, old, new)
    return SingleReferenceResult(renamed, f"renamed {old} to")


def _to_rename(app: Invocation, type_: ReferenceType, name: str) -> Reference:
    reference = existing(app, type_, name)
    if name == app.repository().config().default_branch:
        raise InvalidInput(f"Default branch '{name}' cannot be renamed.")
    return reference


def follow_rename(app: Invocation, old: str, new: str) -> None:
    """Updates the workspace and its batch to the new name of a reference."""
    if not app.workspace:
        return
    app.workspace.follow_rename(old, new)
    with app.batch_file().changing() as file:
        batch = file.read()
        if batch is not None and batch.branch == old and batch.store in (None, app.store.name()):
            file.write(replace(batch, branch=new))


def assign(
    options: ReferenceOptions,
    app: Invocation,
    type_: ReferenceType,
) -> SingleReferenceResult | ReferencesResult:
    """Moves NAME to TARGET."""
    from nessie_cli.inspection.references import is_only_way_to

    name, to = options.between(2, 2, "-f NAME TARGET")
    repository = app.repository()
    try:
        reference = existing(app, type_, name)
    except NotFound:
        if not options.if_exists:
            raise
        return _NOTHING
    target = repository.resolve(app.revision(to)).hash
    hash_ = expected_hash(options, app, reference)
    if options.dry_run:
        change = AssignReference(name, target, hash_, options.allow_failed_run)
        return SingleReferenceResult(preview(repository, change), "would assign")
    backwards = not repository.is_ancestor(reference.hash, target)
    if backwards and is_only_way_to(repository, reference.hash, [name]):
        question = f"Some commits are reachable only from {name}. Move it anyway?"
        confirm(app, question, yes=options.yes)
    assigned = repository.assign_reference(
        name, target, expected_hash=hash_, allow_failed_run=options.allow_failed_run
    )
    undo = command_line(*carried(app.options, ("store", "profile")), "undo", name)
    hint = f"`{undo}` restores it at {short_hash(reference.hash)}"
    return SingleReferenceResult(assigned, "assigned", hint if backwards else None)
