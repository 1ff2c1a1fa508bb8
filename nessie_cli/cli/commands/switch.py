"""`nessie switch`."""

from typing import Annotated

import typer
from msgspec.structs import replace

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.submission import refuse_elsewhere, settle
from nessie_cli.commitspec import HEAD, CommitSpec
from nessie_cli.errors import InvalidInput, NessieError, ReferenceNotFound
from nessie_cli.model import Reference, ReferenceType, check_new_reference_name, check_reference_name
from nessie_cli.repository.base import Repository
from nessie_cli.workspace.folder import Workspace, store_name

EXAMPLES = ("nessie switch main", "nessie switch -c experiment", "nessie switch -", "nessie switch -c hotfix v1.2")


IS_A_COMMIT = "is a commit, and the current reference is a branch or a tag; `nessie switch -c NAME '{name}'` creates a branch there"


def switch(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="REF | - | -c NAME [START]", help="The reference; - is the one before.", show_default=False)
    ] = None,
    *,
    create: Annotated[str | None, typer.Option("-c", "--create", metavar="NAME", help="Make this branch first, at START or HEAD.")] = None,
) -> None:
    """Change the workspace's current reference.

    What is staged comes along: every operation still expects the state of its key that it was staged on, and `nessie status` tells what would
    conflict on the new reference.
    """
    call = Invocation.of(ctx)
    given = words or []
    workspace = call.need_workspace()
    if len(given) > 1 or (create is None and not given):
        raise InvalidInput("write `nessie switch REF`, `nessie switch -`, or `nessie switch -c NAME [START]`")
    _refuse_other_store(call, workspace)
    with call.batch_file().changing() as file:
        # A batch that cannot be read, or is for another store, is reported before anything changes.
        batch, _ = settle(call, file)
        if batch is not None:
            refuse_elsewhere(call, batch, batch.branch or "")
        reference = _create(call, create, given[0] if given else None) if create is not None else _existing(call, given[0])
        workspace.set_current_reference(reference.name)
        if batch is not None:
            file.write(replace(batch, branch=reference.name, store=call.store.name()))
    staged = len(batch.staged) if batch else 0
    if call.wants_json:
        from nessie_cli.wire.encode import encode_single_reference

        call.answer(encode_single_reference(reference) | {"staged": staged})
        return
    call.say(f"now on {reference.type.value.lower()} {reference.name} at {call.out.hash(reference.hash)}")
    if staged:
        comes = "operation comes" if staged == 1 else "operations come"
        call.say(f"{staged} staged {comes} along, now for {reference.name}; `nessie status` shows what would conflict")
    _warn_of_overrides(call, reference.name)


def _refuse_other_store(call: Invocation, workspace: Workspace) -> None:
    """The current reference belongs to the store of the workspace."""
    named, own = call.store.name(), store_name(workspace.store(), workspace.root)
    if named != own:
        raise InvalidInput(
            f"the current reference belongs to the store of this workspace, {own}, not to {named}. Hint: --ref names a reference for one command"
        )


def _existing(call: Invocation, name: str) -> Reference:
    if name == "-":
        before = call.need_workspace().previous_reference()
        if before is None:
            raise InvalidInput("switch -: this workspace has had no other reference yet")
        name = before
    if name == HEAD or set("~^*@") & set(name):
        raise InvalidInput(f"{name}: {IS_A_COMMIT.format(name=name)}")
    repository = call.repository()
    try:
        return repository.reference(check_reference_name(name))
    except (InvalidInput, ReferenceNotFound):
        if _is_commit(repository, name):
            raise InvalidInput(f"{name}: {IS_A_COMMIT.format(name=name)}") from None
        raise


def _is_commit(repository: Repository, name: str) -> bool:
    try:
        return repository.resolve(CommitSpec(None, name)).hash.startswith(name.lower())
    except NessieError:
        return False


def _create(call: Invocation, name: str, start: str | None) -> Reference:
    check_new_reference_name(name)
    target = call.repository().resolve(call.revision(start)).hash
    return call.repository().create_reference(ReferenceType.BRANCH, name, target)


def _warn_of_overrides(call: Invocation, name: str) -> None:
    from nessie_cli.workspace import environment as env

    named = env.variable(env.REFERENCE)
    if named and named != name:
        call.note(f"NESSIE_REF is set and wins over the workspace: commands go on working on {named}")
