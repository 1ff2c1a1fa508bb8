"""`nessie status`."""

from typing import Annotated

import typer
from msgspec import Struct

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document, Result
from nessie_cli.cli.staging.batch import Batch, BatchResult, changes_of, list_changes, print_short
from nessie_cli.cli.staging.submission import Submission, commit_there, is_for, read_batch, submit
from nessie_cli.errors import NotAllowed, ReferenceConflict, ReferenceNotFound
from nessie_cli.inspection.text import short_hash
from nessie_cli.model import CommitMeta, Reference, ReferenceType
from nessie_cli.render.spans import Span
from nessie_cli.wire import documents
from nessie_cli.wire.references import AnyReference, reference_struct
from nessie_cli.wire.scalars import Count
from nessie_cli.workspace import batch as workspace
from nessie_cli.workspace.batch import BatchFile

EXAMPLES = ("nessie status", "nessie status --short --branch", "nessie status --json")


class Options(Struct, frozen=True, kw_only=True):
    """Show the current reference, the staged batch, and the conflicts that a commit would cause.

    The letters of --short are A created, M updated or replaced, D deleted, R renamed (OLD -> NEW),
    and = for a check that the key is unmodified (see nessie-content-unmodified(1)).
    """

    short: Annotated[
        bool,
        typer.Option(
            "-s",
            "--short",
            "--porcelain",
            help="Show one line per staged change: a letter, then C if the key conflicts, then the"
            " key.",
        ),
    ] = False
    branch: Annotated[
        bool,
        typer.Option(
            "-b", "--branch", help="With --short: first show a line with the current reference."
        ),
    ] = False


class Status(Document, frozen=True):
    """The current reference, the staged changes, and the conflicts of a commit at this moment."""

    reference: AnyReference
    default_branch: str
    ahead: Count
    behind: Count
    batch: Batch
    conflicts: list[documents.Conflict]


class StatusResult(Result, frozen=True):
    """The current reference, the staged changes, and how they are printed."""

    document: Status
    reference: Reference
    batch: BatchResult
    conflict: ReferenceConflict | None
    options: Options
    elsewhere: str
    """A remark about a batch for another store or branch."""


def run(options: Options, app: Invocation) -> StatusResult:
    """Reads the current reference and the batch, and commits in a dry run."""
    repository = app.repository()
    default = repository.config().default_branch
    reference = _current(app)
    ahead, behind = 0, 0
    if reference.name != default:
        distance = repository.ahead_behind(reference.hash, default)
        ahead, behind = distance.ahead, distance.behind
    batch, store = _batch(app), app.store.name()
    is_branch = reference.type is ReferenceType.BRANCH
    is_here = batch is not None and is_for(batch, store, reference.name or "")
    conflict = _conflicts(app, reference, batch) if batch and is_here and is_branch else None
    elsewhere = ""
    if batch is not None and not is_here:
        elsewhere = (
            f"this batch is not for {reference.name} of {store}; `{commit_there(app, batch)}`"
            " commits it"
        )
    staged = BatchResult.of(batch, reference.name or "")
    document = Status(
        reference_struct(reference),
        default,
        ahead,
        behind,
        staged.document,
        _documents_of(conflict) if conflict else [],
    )
    return StatusResult(document, reference, staged, conflict, options, elsewhere)


def _documents_of(conflict: ReferenceConflict) -> list[documents.Conflict]:
    from nessie_cli.cli.errors.conflicts import conflict_report

    report = conflict_report(conflict)
    return [documents.Conflict.of(each, report.ways_out.of(each)) for each in report.conflicts]


def show(result: StatusResult, output: Output) -> None:
    """Prints the reference, the staged changes and the conflicts."""
    if result.options.short:
        _print_short(result, output)
        return
    reference, batch = result.reference, result.batch
    kind = reference.type.value.lower()
    output.out.print_text(
        f"on {kind} ",
        Span(reference.name or "", "name"),
        " at ",
        Span(short_hash(reference.hash), "hash"),
    )
    status = result.document
    if reference.name != status.default_branch:
        output.out.print_text(
            f"{status.ahead} ahead, {status.behind} behind {status.default_branch}"
        )
    if batch.begun_at is None:
        output.out.print_text("nothing is staged")
        return
    place = (
        [Span(batch.reference, "name"), f" of {batch.store}"] if batch.store else ["this branch"]
    )
    output.out.print_text(
        "staged for ", *place, " since ", Span(short_hash(batch.begun_at), "hash"), ":"
    )
    list_changes(output, changes_of(batch.staged), "  ")
    if result.elsewhere:
        output.note(result.elsewhere)
    if result.conflict:
        from nessie_cli.cli.errors.conflicts import conflict_report
        from nessie_cli.render.conflicts import conflict_lines

        output.out.print_lines(conflict_lines(conflict_report(result.conflict), output.out))


def _print_short(result: StatusResult, output: Output) -> None:
    if result.options.branch:
        output.out.print_text("## ", Span(result.reference.name or "", "name"))
    conflicts = result.conflict.conflicts if result.conflict else ()
    keys = {conflict.key for conflict in conflicts if conflict.key}
    staged = result.batch.staged
    # A missing namespace is a conflict of the keys below it.
    in_conflict = {
        str(item.key) for item in staged if any(item.key.starts_with(key) for key in keys)
    }
    print_short(output, changes_of(staged), in_conflict)


def _current(app: Invocation) -> Reference:
    name = app.reference_name()
    try:
        return app.repository().reference(name)
    except ReferenceNotFound as error:
        raise ReferenceNotFound(
            f"the current reference '{name}' does not exist (it may have been deleted)",
            name,
            hint=f"`nessie switch REF` selects another one; `nessie undo {name}` restores it if it"
            " was deleted",
        ) from error


def _batch(app: Invocation) -> workspace.StagedBatch | None:
    """Returns the staged batch, unless a submission without a response has committed it."""
    if app.store.workspace is None:
        return None
    file = BatchFile(app.store.workspace)
    batch = file.read()
    if batch is None or batch.request_id is None:
        return batch
    with file.changing_if_free() as free:
        # Otherwise it is being submitted: by another process, or by the parent of a hook.
        batch, done = read_batch(app, file) if free else (batch, None)
    if done is not None:
        where = f"{short_hash(done.reference.hash)} on {done.reference.name}"
        app.output.note(f"the batch was committed already, as {where}")
    return batch


def _conflicts(
    app: Invocation, reference: Reference, batch: workspace.StagedBatch
) -> ReferenceConflict | None:
    """Returns the conflicts of a dry run.

    It has no request id, because that belongs to a submission.
    """
    trial = workspace.StagedBatch(batch.begun_at, batch.staged)
    submission = Submission(reference.name or "", CommitMeta(""), dry_run=True)
    try:
        submit(app, trial, submission)
    except ReferenceConflict as error:
        return error
    except NotAllowed as error:
        # Such as a protected branch. The batch is shown nevertheless.
        app.output.note(error.message)
    return None
