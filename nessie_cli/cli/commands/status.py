"""`nessie status`."""

from typing import Annotated, NamedTuple

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.submission import Submission, commit_there, is_for, settle, submit
from nessie_cli.errors import ReferenceConflict, ReferenceNotFound
from nessie_cli.model import CommitMeta, Reference, ReferenceType
from nessie_cli.repository.base import AheadBehind
from nessie_cli.workspace.batch import Batch, BatchFile

EXAMPLES = ("nessie status", "nessie status --short --branch", "nessie status --json")


class Status(NamedTuple):
    """All that `status` tells."""

    reference: Reference
    default_branch: str
    distance: AheadBehind | None
    batch: Batch | None
    refusal: ReferenceConflict | None


def status(
    ctx: typer.Context,
    *,
    short: Annotated[bool, typer.Option("-s", "--short", "--porcelain", help="One line for each staged key: letter, C for a conflict, key.")] = False,
    branch: Annotated[bool, typer.Option("-b", "--branch", help="With --short the current reference as well, in a line of its own.")] = False,
) -> None:
    """Show the current reference, the staged batch, and what would conflict if it were committed now.

    The letters of --short are A created, M updated or replaced, D deleted, R renamed and = unmodified.
    """
    call = Invocation.of(ctx)
    found = _status(call)
    if call.wants_json:
        call.answer(_document(found))
    elif short:
        _print_short(found, call, branch=branch)
    else:
        _print(found, call)


def _status(call: Invocation) -> Status:
    repository = call.repository()
    default = repository.config().default_branch
    reference = _current(call)
    distance = repository.ahead_behind(reference.hash, default) if reference.name != default else None
    batch = _batch(call)
    is_here = batch and reference.type is ReferenceType.BRANCH and is_for(batch, call.store.name(), reference.name)
    refusal = _refusal(call, reference, batch) if batch and is_here else None
    return Status(reference, default, distance, batch, refusal)


def _current(call: Invocation) -> Reference:
    name = call.reference_name()
    try:
        return call.repository().reference(name)
    except ReferenceNotFound as error:
        raise ReferenceNotFound(
            f"the current reference '{name}' does not exist (any more). "
            f"Hint: `nessie switch REF` chooses another one; `nessie undo {name}` restores it if it was deleted",
            name,
        ) from error


def _batch(call: Invocation) -> Batch | None:
    """What is staged; what an earlier, unanswered submission has committed is no longer."""
    if call.workspace is None:
        return None
    file = BatchFile(call.workspace)
    batch = file.read()
    if batch is None or batch.request_id is None:
        return batch
    with file.changing_if_free() as free:
        # Otherwise it is being submitted now: by another process, or by the one whose hook this is.
        batch, done = settle(call, file) if free else (batch, None)
    if done is not None:
        call.note(f"the batch was committed already, as {done.reference.hash} on {done.reference.name}")
    return batch


def _refusal(call: Invocation, reference: Reference, batch: Batch) -> ReferenceConflict | None:
    """The conflicts of a dry run. It carries no request id: that belongs to submissions."""
    trial = Batch(batch.begun_at, batch.staged)
    try:
        submit(call, trial, Submission(reference.name, CommitMeta(""), dry_run=True))
    except ReferenceConflict as error:
        return error
    return None


def _document(found: Status) -> dict[str, object]:
    from nessie_cli.cli.batch_view import batch_document
    from nessie_cli.wire.encode import encode_reference
    from nessie_cli.wire.facts import conflict_with_facts

    refusal = found.refusal
    conflicts = [conflict_with_facts(c, refusal.resolutions(c)) for c in refusal.conflicts] if refusal else []
    return {
        "reference": encode_reference(found.reference),
        "defaultBranch": found.default_branch,
        "ahead": found.distance.ahead if found.distance else 0,
        "behind": found.distance.behind if found.distance else 0,
        "batch": batch_document(found.batch, found.reference.name),
        "conflicts": conflicts,
    }


def _print(found: Status, call: Invocation) -> None:
    from nessie_cli.render.spans import Span

    kind = found.reference.type.value.lower()
    call.say(f"on {kind} ", Span(found.reference.name, "name"), " at ", Span(call.out.hash(found.reference.hash), "hash"))
    if found.distance:
        call.say(f"{found.distance.ahead} ahead, {found.distance.behind} behind {found.default_branch}")
    if found.batch is None:
        call.say("nothing is staged")
        return
    _print_batch(found.batch, call)
    if found.refusal:
        from nessie_cli.cli.errors.conflicts import conflict_report
        from nessie_cli.render.conflicts import conflict_lines

        call.out.print_lines(conflict_lines(conflict_report(found.refusal, call)._replace(would=True), call.out))


def _print_short(found: Status, call: Invocation, *, branch: bool) -> None:
    from nessie_cli.cli.batch_view import changes_of, print_short
    from nessie_cli.render.spans import Span

    if branch:
        call.say("## ", Span(found.reference.name, "name"))
    conflicts = found.refusal.conflicts if found.refusal else ()
    staged = found.batch.staged if found.batch else ()
    keys = {conflict.key for conflict in conflicts if conflict.key}
    # A missing namespace is a conflict of the keys below it.
    in_conflict = {item.key for item in staged if any(item.key.starts_with(key) for key in keys)}
    print_short(call, changes_of(staged), set(map(str, in_conflict)))


def _print_batch(batch: Batch, call: Invocation) -> None:
    from nessie_cli.cli.batch_view import changes_of, print_changes
    from nessie_cli.render.spans import Span

    where = [Span(batch.branch, "name"), f" of {batch.store}"] if batch.branch and batch.store else ["this branch"]
    call.say("staged for ", *where, " since ", Span(call.out.hash(batch.begun_at), "hash"), ":")
    print_changes(call, changes_of(batch.staged), "  ")
    if not is_for(batch, call.store.name(), call.reference_name()):
        here = f"{call.reference_name()} of {call.store.name()}"
        call.note(f"this batch is not for {here}; `{commit_there(call, batch)}` commits it")
