"""`nessie undo`."""

import sys
from typing import Annotated

import typer
from msgspec import UNSET, Struct, UnsetType

from nessie_cli.cli.app.arguments import refuse_empty
from nessie_cli.cli.app.global_options import carried
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.questions import is_yes
from nessie_cli.cli.app.result import Document, Result
from nessie_cli.cli.errors.resolutions import command_line
from nessie_cli.cli.references.moves import follow_rename
from nessie_cli.errors import Interrupted, InvalidInput, NotFound, ReferenceMoved
from nessie_cli.inspection.text import short_hash
from nessie_cli.inspection.undo import (
    UndoStep,
    Values,
    has_expired,
    last_operation,
    last_operation_of,
    operation_number,
    operations_since,
    plan,
)
from nessie_cli.model import (
    CommitMeta,
    Reference,
    ReferenceType,
    ReflogEntry,
    described_setting,
)
from nessie_cli.render.spans import Span
from nessie_cli.repository.base import Repository
from nessie_cli.revisions import Revision
from nessie_cli.wire.references import AnyReference, reference_struct
from nessie_cli.wire.scalars import Hash

EXAMPLES = (
    "nessie undo",
    "nessie undo feature",
    "nessie undo main --to 12",
    "nessie undo --dry-run",
)

_BY_COMMIT = {"commit": "on", "merge": "into", "transplant": "onto"}
"""The operations that move a branch by new commits, and the word before the branch."""
_PREVIEWS = {
    "deleted": "would delete",
    "moved": "would move",
    "removed": "would remove",
    "renamed": "would rename",
    "restored": "would restore",
}


class Options(Struct, frozen=True, kw_only=True):
    """Undo your last operation on the store, or the last operation on a reference.

    Without REF, undoes your own last operation: a commit, a merge, a deletion, a change of a
    setting, ... On a server with authentication, your operations are those of the authenticated
    caller, otherwise those of the author. It fails (exit 5) if another user has changed the
    reference since, and for a rename if the new name has changed since. With REF, undoes the newest
    operation on REF, by any user. `nessie undo` again redoes the operation. `nessie revert` undoes
    older commits.

    If an operation to be undone may be another user's, the command asks for confirmation; with
    --json or without a terminal, it fails unless --yes is given. A server without authentication
    does not record users, so there this applies to every operation.

    For 90 days after an operation (setting reflog-expiry), `nessie store maintain` and `nessie gc`
    keep the commits and table files that are needed to undo it.
    """

    reference: Annotated[
        str | None,
        typer.Argument(
            metavar="[REF]",
            help="A branch or tag, possibly a deleted one, or setting:NAME.",
        ),
    ] = None
    to: Annotated[
        int | None,
        typer.Option(
            "--to",
            metavar="N",
            help="Restore REF (default: the reference of operation N) to its state after operation"
            " N of the reflog. This undoes all later operations on it.",
        ),
    ] = None
    yes: Annotated[
        bool,
        typer.Option("--yes", "-y", help="Undo the operation without confirmation."),
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be undone, and do nothing.")
    ] = False


class Undone(Document, frozen=True):
    """A reference and its undone operation: from `before` to `after`, null if nonexistent.

    For a setting, `setting` is its name, from `valueBefore` to `valueAfter`; a value is left out
    where it is not set.
    """

    reference: AnyReference | None
    was_applied: bool
    before: Hash | None
    after: Hash | None
    setting: str | UnsetType = UNSET
    value_before: str | UnsetType = UNSET
    value_after: str | UnsetType = UNSET


class UndoneResult(Result, frozen=True):
    """The undone operation, and the step that undid it."""

    document: Undone
    step: UndoStep


def run(options: Options, app: Invocation) -> UndoneResult:
    """Undoes one operation."""
    refuse_empty("nessie undo [REF]", options.reference)
    repository = app.repository()
    callers = _names(app, repository)
    entry = _operation(options, repository, callers)
    step = plan(repository, entry.reference, options.to)
    title = "last operation"
    if options.to is not None and options.reference is None:
        title = f"operation {options.to}"
    app.output.note(f"{title}: {_described(entry, step, repository, app.output)}")
    if step.after is None and app.workspace and app.workspace.current_reference() == step.name:
        raise InvalidInput(
            f"this would delete '{step.name}', the current reference of this workspace",
            hint="`nessie switch` to another one first",
        )
    if not (options.dry_run or options.yes):
        # Without --to, only the last operation is undone.
        first = entry.number if options.to is None else options.to + 1
        for later in operations_since(repository, entry.reference, first):
            if not later.who or later.who not in callers:
                _confirm(later, app.output)
                break
    expired = has_expired(repository, step, app.now)
    done = _preview(step) if options.dry_run else _do(repository, step)
    if step.renamed and not options.dry_run:
        follow_rename(app, step.renamed, step.name)
    if expired:
        app.output.note(
            "table files of this commit may be deleted, because `nessie gc` keeps only those within"
            f" the reflog's expiry. Hint: `nessie audit {step.name}` checks them"
        )
    values = step.values or Values("", None, None)
    document = Undone(
        reference_struct(done) if done else None,
        not options.dry_run,
        step.before,
        step.after,
        values.setting or UNSET,
        UNSET if values.before is None else values.before,
        UNSET if values.after is None else values.after,
    )
    return UndoneResult(document, step)


def _do(repository: Repository, step: UndoStep) -> Reference | None:
    """Undoes an operation. Returns the resulting reference; None for a setting."""
    answer = repository.submit(step.change)
    return answer if isinstance(answer, Reference) else None


def show(result: UndoneResult, output: Output) -> None:
    """Prints the reference with its hash, or its hashes before and after a move."""
    step, was_applied = result.step, result.document.was_applied
    action = step.verb if was_applied else _PREVIEWS[step.verb]
    if step.values is not None:
        after = described_setting(step.values.setting, step.values.after)
        value = "" if step.values.after is None else f" = {after}"
        output.say(f"{action} setting ", Span(step.values.setting, "name"), value)
        if was_applied:
            _note_redo(output)
        return
    parts: list[Span | str] = [
        f"{action} {step.type.lower()} ",
        Span(step.renamed or step.name, "name"),
    ]
    if step.renamed:
        parts += [" back to ", Span(step.name, "name")]
    elif step.before and step.after:
        before, after = (short_hash(hash_) for hash_ in (step.before, step.after))
        parts += [" back from ", Span(before, "hash"), " to ", Span(after, "hash")]
    elif step.before and was_applied:
        parts += [" (was ", Span(short_hash(step.before), "hash"), ")"]
    else:
        parts += [" at ", Span(short_hash(step.before or step.after or ""), "hash")]
    output.say(*parts)
    if was_applied:
        _note_redo(output)


def _note_redo(output: Output) -> None:
    undo = command_line(*carried(output.options, ("store", "profile")), "undo")
    output.note(f"`{undo}` again redoes it")


def _names(app: Invocation, repository: Repository) -> set[str]:
    """Returns the names under which the reflog may have operations of this user.

    A server knows whom it authenticated. Only without authentication the author counts, and an
    empty name: such a server records none.
    """
    caller = repository.caller()
    return {app.who(), app.author() or "", ""} if caller is None else {caller}


def _operation(options: Options, repository: Repository, callers: set[str]) -> ReflogEntry:
    """Returns the operation. Raises `ReferenceMoved` if it is not the last one of its reference."""
    if options.reference is not None:
        return last_operation(repository, options.reference)
    if options.to is not None:
        return operation_number(repository, options.to)
    entry = last_operation_of(repository, callers)
    if entry is None:
        names = " or ".join(sorted(filter(None, callers))) or "this user"
        raise InvalidInput(
            f"the reflog has no operation of {names}",
            hint="`nessie reflog --all` lists all"
            " operations; `nessie undo REF` undoes the last one of REF",
        )
    last = next(repository.reflog(entry.reference), entry)
    if last.number != entry.number:
        raise ReferenceMoved(
            (
                f"your last operation was {entry.operation} on '{entry.reference}', "
                f"and '{entry.reference}' has moved since ({last.operation} by"
                f" {last.who or 'an unknown user'})"
            ),
            hint="`nessie revert` reverts a commit by a new commit"
            if entry.setting is None
            else f"`nessie config set {entry.setting} VALUE --repository` changes it again; `nessie"
            f" undo {entry.reference}` takes back the last change",
        )
    return entry


def _described(entry: ReflogEntry, step: UndoStep, repository: Repository, output: Output) -> str:
    """Returns an operation in words: `moved branch main from 2e1cfa82 to 8f31c0de, by ...`."""
    meta = _commit(entry, repository) if entry.operation in _BY_COMMIT else None
    who = entry.who or (meta.author if meta else "") or "an unknown user"
    name, kind = entry.reference, entry.type.lower()
    before, after = (short_hash(hash_ or "") for hash_ in (entry.before, entry.after))
    if entry.setting is not None:
        name = entry.setting
        values = (
            described_setting(name, value) for value in (entry.value_before, entry.value_after)
        )
        done = f"changed setting {name} from {' to '.join(values)}"
    elif step.renamed:
        done = f"renamed {kind} {step.name} to {step.renamed}"
    elif entry.after is None:
        done = f"deleted {kind} {name} (was {before})"
    elif entry.operation in _BY_COMMIT:
        subject = f' "{meta.subject}"' if meta else ""
        done = f"{entry.operation} {after}{subject} {_BY_COMMIT[entry.operation]} {name}"
    elif entry.before is None:
        done = f"created {kind} {name} at {after}"
    else:
        done = f"moved {kind} {name} from {before} to {after}"
    return f"{done}, by {who}, {output.err.time(entry.time)}"


def _commit(entry: ReflogEntry, repository: Repository) -> CommitMeta | None:
    if entry.after is None:
        return None
    try:
        return repository.commit_at(Revision(None, entry.after)).meta
    except NotFound:
        return None


def _confirm(entry: ReflogEntry, output: Output) -> None:
    """Asks on a terminal. Raises `Interrupted` if the answer is no.

    Raises `InvalidInput` if there is no terminal.
    """
    if output.is_json or not sys.stdin.isatty():
        reason = (
            f"operation {entry.number} is by {entry.who}, not by you"
            if entry.who
            else f"operation {entry.number} may be another user's, because the store did not record"
            " a user (a server without authentication does not)"
        )
        raise InvalidInput(f"{reason}", hint="--yes undoes it")
    who = f"is by {entry.who}" if entry.who else "has no recorded user and may be another user's"
    if not is_yes(output.err, f"Operation {entry.number} {who}. Undo it?"):
        raise Interrupted("not confirmed, so nothing was done", hint="--yes skips the question")


def _preview(step: UndoStep) -> Reference | None:
    if step.values is not None:
        return None
    return Reference(ReferenceType(step.type), step.name, step.after or step.before or "")
