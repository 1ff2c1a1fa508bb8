"""`nessie switch`."""

from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace

from nessie_cli.cli.app.arguments import refuse_empty
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document, Result
from nessie_cli.cli.staging.submission import read_batch, refuse_elsewhere
from nessie_cli.errors import InvalidInput, NessieError, ReferenceNotFound
from nessie_cli.inspection.text import short_hash
from nessie_cli.model import (
    Reference,
    ReferenceType,
    check_new_reference_name,
    check_reference_name,
)
from nessie_cli.render.text import counted
from nessie_cli.repository.base import Repository
from nessie_cli.revisions import HEAD, Revision
from nessie_cli.wire.references import AnyReference, reference_struct
from nessie_cli.wire.scalars import Count
from nessie_cli.workspace import environment as env
from nessie_cli.workspace.folder import Workspace, store_name

EXAMPLES = (
    "nessie switch main",
    "nessie switch -c experiment",
    "nessie switch -",
    "nessie switch -c hotfix v1.2",
)
_USAGE = "`nessie switch REF`, `nessie switch -`, or `nessie switch -c NAME [START]`"


class Options(Struct, frozen=True, kw_only=True):
    """Change the workspace's current reference.

    The staged batch moves to the new reference. On a branch, `nessie status` shows the conflicts
    that a commit there would cause.
    """

    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="REF | - | -c NAME [START]",
            help="The branch or tag to switch to; - is the previous one.",
        ),
    ] = None
    create: Annotated[
        str | None,
        typer.Option(
            "-c",
            "--create",
            metavar="NAME",
            help="Create this branch at START (default: HEAD), and switch to it.",
        ),
    ] = None


class Switched(Document, frozen=True):
    """The current reference, and the number of staged operations that moved to it."""

    reference: AnyReference
    staged: Count


class SwitchedResult(Result, frozen=True):
    """The current reference, and a variable that overrides it."""

    document: Switched
    reference: Reference
    override: str | None
    """The reference of NESSIE_REF, which overrides the current one."""


def run(options: Options, app: Invocation) -> SwitchedResult:
    """Changes the current reference, and the branch of the batch."""
    arguments = options.arguments or []
    refuse_empty("nessie switch REF", *arguments, options.create)
    workspace = app.store.need_workspace()
    if len(arguments) > 1 or (options.create is None and not arguments):
        raise InvalidInput(f"write {_USAGE}")
    _refuse_other_store(app, workspace)
    with app.batch_file().changing() as file:
        # A batch that is damaged or for another store is reported before anything changes.
        batch, _ = read_batch(app, file)
        if batch is not None:
            refuse_elsewhere(app, batch, batch.branch or "")
        reference = _reference(options, app, workspace)
        workspace.set_current_reference(reference.name)
        if batch is not None:
            file.write(replace(batch, branch=reference.name, store=app.store.name()))
    named = env.variable(env.REFERENCE)
    override = named if named != reference.name else None
    document = Switched(reference_struct(reference), len(batch.staged) if batch else 0)
    return SwitchedResult(document, reference, override)


def show(result: SwitchedResult, output: Output) -> None:
    """Prints the current reference, and the number of operations that moved to it."""
    reference = result.reference
    type_ = reference.type.value.lower()
    output.say(f"now on {type_} {reference.name} at {short_hash(reference.hash)}")
    if count := result.document.staged:
        staged = f"{counted(count, 'staged operation')} moved to {reference.name}"
        is_tag = reference.type is ReferenceType.TAG
        output.say(staged if is_tag else f"{staged}; `nessie status` shows what would conflict")
    if result.override:
        output.note(f"NESSIE_REF overrides the workspace: commands still work on {result.override}")


def _refuse_other_store(app: Invocation, workspace: Workspace) -> None:
    """Raises `InvalidInput` if the store is not the workspace's."""
    named, own = app.store.name(), store_name(workspace.store(), workspace.root)
    if named != own:
        belongs = f"belongs to the store of this workspace, {own}, not to {named}"
        hint = "--ref names a reference for one command"
        raise InvalidInput(f"the current reference {belongs}", hint=hint)


def _reference(options: Options, app: Invocation, workspace: Workspace) -> Reference:
    arguments = options.arguments or []
    if options.create is not None:
        return _create(app, options.create, arguments[0] if arguments else None)
    return _existing(app, arguments[0], workspace)


def _existing(app: Invocation, name: str, workspace: Workspace) -> Reference:
    if name == "-":
        previous = workspace.previous_reference()
        if previous is None:
            raise InvalidInput("switch -: this workspace has had no other reference yet")
        name = previous
    if name == HEAD or set("~^*@") & set(name):
        raise _is_a_commit(name)
    repository = app.repository()
    try:
        return repository.reference(check_reference_name(name))
    except (InvalidInput, ReferenceNotFound):
        if _is_hash(repository, name):
            raise _is_a_commit(name) from None
        raise


def _is_a_commit(name: str) -> InvalidInput:
    way = f"`nessie switch -c NAME '{name}'` creates a branch there"
    return InvalidInput(
        f"{name} is a commit, and the current reference is a branch or a tag; {way}",
    )


def _is_hash(repository: Repository, name: str) -> bool:
    try:
        return repository.resolve(Revision(None, name)).hash.startswith(name.lower())
    except NessieError:
        return False


def _create(app: Invocation, name: str, start: str | None) -> Reference:
    check_new_reference_name(name)
    target = app.repository().resolve(app.revision(start)).hash
    return app.repository().create_reference(ReferenceType.BRANCH, name, target)
