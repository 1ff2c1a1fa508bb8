"""The choice of the action of `nessie branch` or `nessie tag`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nessie_cli.cli.app.arguments import refuse_empty
from nessie_cli.cli.errors.resolutions import repeating
from nessie_cli.cli.references.creation import create
from nessie_cli.cli.references.deletion import delete
from nessie_cli.cli.references.listing import list_references
from nessie_cli.cli.references.moves import assign, rename
from nessie_cli.cli.references.results import (
    DeletedReferencesResult,
    ReferencesResult,
    SingleReferenceResult,
)
from nessie_cli.errors import InvalidInput
from nessie_cli.model import ReferenceType

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.cli.references.options import ReferenceOptions


def work(
    options: ReferenceOptions,
    app: Invocation,
    type_: ReferenceType,
    message: str | None = None,
) -> ReferencesResult | SingleReferenceResult | DeletedReferencesResult | None:
    """Performs the action that the options select. `message` is that of a new tag.

    Raises `InvalidInput` if the options contradict each other.
    """
    with repeating(app):
        return _perform(options, app, type_, message)


def _perform(
    options: ReferenceOptions,
    app: Invocation,
    type_: ReferenceType,
    message: str | None,
) -> ReferencesResult | SingleReferenceResult | DeletedReferencesResult | None:
    refuse_empty("NAME [START]", *options.texts)
    if len(options.actions) > 1:
        raise InvalidInput(f"{' and '.join(options.actions)} cannot be used together")
    refuse_without_effect(options)
    if options.show_current:
        return _show_current(app)
    if options.lists or not (options.actions or options.arguments):
        return list_references(options, app, type_)
    if options.deletes:
        return delete(options, app, type_)
    if options.rename:
        return rename(options, app, type_)
    if options.assign:
        return assign(options, app, type_)
    return create(options, app, type_, message or "")


def refuse_without_effect(options: ReferenceOptions) -> None:
    """Raises `InvalidInput` for arguments that the selected action does not use."""
    if options.show_current and (
        options.arguments or options.list_ or options.extended or options.selects
    ):
        raise InvalidInput("--show-current takes no names, and no options of a list")
    changes = options.deletes or options.rename or options.assign
    conditions = {
        "--if-exists": options.if_exists and not changes,
        "--expected-hash": options.expected_hash and not changes,
        "--if-not-exists": options.if_not_exists
        and (changes or options.lists or not options.arguments),
    }
    for option, has_no_effect in conditions.items():
        if has_no_effect:
            needs = (
                "a NAME to create"
                if option == "--if-not-exists"
                else f"-d, {options.WORDS['rename']} or -f"
            )
            raise InvalidInput(f"{option} needs {needs}")


def _show_current(app: Invocation) -> SingleReferenceResult | None:
    name = app.reference_name()
    if app.output.is_json:
        return SingleReferenceResult(app.repository().reference(name))
    # Shell prompts print the name, so it is read without opening the store.
    app.output.out.print_text(name)
    return None
