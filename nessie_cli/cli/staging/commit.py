"""`nessie commit`."""

from contextlib import AbstractContextManager, nullcontext
from typing import Annotated

import typer
from msgspec import Struct

from nessie_cli.cli.app.input import read_bytes
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.errors.resolutions import repeating
from nessie_cli.cli.staging.commit_meta import message_of, meta_of
from nessie_cli.cli.staging.committed import CommittedResult, print_committed
from nessie_cli.cli.staging.editor import message_from_editor
from nessie_cli.cli.staging.once import once
from nessie_cli.cli.staging.submission import (
    Submission,
    Submitted,
    changed_after,
    head_of_branch,
    new_request_id,
    nothing_staged,
    refusal,
    submit_staged,
)
from nessie_cli.errors import InvalidInput
from nessie_cli.model import CommitMeta, ContentKey, Delete, Operation, Put
from nessie_cli.repository.base import Repository
from nessie_cli.workspace.batch import Staged

EXAMPLES = (
    "nessie commit -m 'nightly load'",
    "nessie commit -F message.txt --author 'Ada <ada@example.org>' --property run=42 --dry-run",
    "nessie commit --batch operations.json -m 'bulk load' --ref main",
)


class Options(Struct, frozen=True, kw_only=True):
    """Commit the staged batch, or the operations of a file.

    If any operation conflicts, nothing is committed and the batch stays staged. The message is that
    of -m, -F or --batch; otherwise your editor (NESSIE_EDITOR, VISUAL, EDITOR) opens, which needs a
    terminal. An empty message aborts the commit. --batch reads REST JSON ({"commitMeta": ...,
    "operations": [...]} or a list of operations) or JSON lines, one operation per line. Options
    take precedence over commitMeta, and commitMeta over defaults.
    """

    message: Annotated[
        list[str] | None,
        typer.Option("-m", "--message", metavar="MSG", help="The message; repeat for paragraphs."),
    ] = None
    file: Annotated[
        str | None,
        typer.Option("-F", "--file", metavar="FILE|-", help="Read the message from a file."),
    ] = None
    batch: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-", help="Commit the operations in FILE instead of the staged batch."
        ),
    ] = None
    author: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A",
            help="An author; repeatable. Default: NESSIE_AUTHOR, otherwise the setting author,"
            " otherwise the committer.",
        ),
    ] = None
    signed_off_by: Annotated[
        list[str] | None,
        typer.Option(metavar="S", help="A person who signed off the commit; repeatable."),
    ] = None
    properties: Annotated[
        list[str] | None, typer.Option("--property", metavar="K=V", help="A property; repeatable.")
    ] = None
    author_time: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="When the change was made, such as 2026-01-31T12:00:00Z. Default: the time of the"
            " commit.",
        ),
    ] = None
    expected_hash: Annotated[
        str | None,
        typer.Option(
            metavar="HASH",
            help="The commit on which the changes are based, in the first-parent history of the"
            " branch. An operation is refused if its key has another content now than at that"
            " commit.",
        ),
    ] = None
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check whether the store would accept the commit, and write nothing. Needs no"
            " message.",
        ),
    ] = False


def run(options: Options, app: Invocation) -> CommittedResult:
    """Commits."""
    written, operations = (None, None) if options.batch is None else _batch_from(app, options.batch)
    text = message_of(options.message, options.file)
    if text is None and written and written.message.strip():
        text = written.message
    branch = app.reference_name()
    with _message(app, options, text, branch) as message:
        meta = meta_of(
            app,
            message,
            authors=options.author or (written.authors if written else None),
            signed_off_by=options.signed_off_by,
            properties=options.properties,
            author_time=options.author_time,
        )
        expected = options.expected_hash
        submission = Submission(
            branch,
            _over(written, meta) if written else meta,
            app.repository().resolve(app.revision(expected)).hash if expected else None,
            options.dry_run,
        )
        if operations is None:
            return CommittedResult.of(submit_staged(app, submission))
        return CommittedResult.of(_submit(app, submission, operations))


show = print_committed


def _message(
    app: Invocation, options: Options, text: str | None, branch: str
) -> AbstractContextManager[str]:
    """Returns the given message, or the one from the user's editor. A dry run needs none."""
    if text is not None or options.dry_run:
        return nullcontext(text or "")
    if options.batch is not None:
        return message_from_editor(app, branch, None)
    staged = app.batch_file().read()
    if staged is None:
        raise nothing_staged()
    return message_from_editor(app, branch, staged.staged)


def _batch_from(app: Invocation, name: str) -> tuple[CommitMeta | None, list[Operation]]:
    """Reads the metadata and operations of a file. Raises `InvalidInput` for duplicate keys."""
    from nessie_cli.wire.batches import decode_batch

    place = "stdin" if name == "-" else name
    with app.at_work("reading the operations") as progress:
        written, operations = decode_batch(
            read_bytes(name, "--batch"), place, allow_unknown=True, progress=progress
        )
    _refuse_two_for_one_key(place, operations)
    return written, operations


def _refuse_two_for_one_key(place: str, operations: list[Operation]) -> None:
    """Raises `InvalidInput` if two operations have the same key.

    A deletion followed by a new content without an id is allowed.
    """
    seen: dict[ContentKey, int] = {}
    for number, operation in enumerate(operations, 1):
        first = seen.setdefault(operation.key, number)
        if first == number or _creates_again(operations[first - 1], operation):
            continue
        raise InvalidInput(
            f"{place}: operations {first} and {number} are both about key {operation.key}; a"
            " commit changes a key once"
        )


def _creates_again(first: Operation, second: Operation) -> bool:
    return isinstance(first, Delete) and isinstance(second, Put) and second.content.id is None


def _over(written: CommitMeta, given: CommitMeta) -> CommitMeta:
    """Returns the metadata of the batch file, overridden by that of the options."""
    return CommitMeta(
        message=given.message,
        authors=given.authors,
        signed_off_by=given.signed_off_by or written.signed_off_by,
        author_time=given.author_time or written.author_time,
        properties={**written.properties, **given.properties},
    )


def _submit(app: Invocation, submission: Submission, operations: list[Operation]) -> Submitted:
    repository = app.repository()
    head_of_branch(repository, submission.branch)
    with (
        repeating(app),
        once(app, "commit", submission, operations, dry_run=submission.dry_run) as request_id,
    ):
        _refuse_changed(repository, submission, operations)
        result = repository.commit(
            submission.branch,
            operations,
            submission.meta,
            expected_hash=submission.expected_hash,
            request_id=request_id or new_request_id(),
            dry_run=submission.dry_run,
        )
    return Submitted(result, len({operation.key for operation in operations}))


def _refuse_changed(
    repository: Repository, submission: Submission, operations: list[Operation]
) -> None:
    """Raises `ReferenceConflict` if an updated key has changed since `--expected-hash`."""
    if not submission.expected_hash:
        return
    head = head_of_branch(repository, submission.branch)
    staged = (
        Staged(operation, operation.expected_content)
        for operation in operations
        if isinstance(operation, Put)
    )
    if conflicts := changed_after(repository, staged, submission.expected_hash, head):
        raise refusal(conflicts, submission.branch, head, submission.expected_hash)
