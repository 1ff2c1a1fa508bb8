"""`nessie commit`."""

from contextlib import AbstractContextManager, nullcontext
from typing import Annotated

import typer

from nessie_cli.cli.commit_meta import message_of, meta_of
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.errors.resolutions import resolving, with_current_hash
from nessie_cli.cli.once import once
from nessie_cli.cli.submission import NOTHING_STAGED, Submission, Submitted, head_of_branch, new_request_id, submit_staged
from nessie_cli.errors import InvalidInput
from nessie_cli.model import CommitMeta, ContentKey, Delete, Operation, Put

EXAMPLES = (
    "nessie commit -m 'nightly load'",
    "nessie commit -F message.txt --author 'Ada <ada@example.org>' --property run=42 --dry-run",
    "nessie commit --batch operations.json -m 'bulk load' --ref main",
)
Texts = list[str] | None


def commit(
    ctx: typer.Context,
    *,
    message: Annotated[Texts, typer.Option("-m", "--message", metavar="MSG", help="The message; several are paragraphs.", show_default=False)] = None,
    file: Annotated[str | None, typer.Option("-F", "--file", metavar="FILE|-", help="Read the message from a file.")] = None,
    batch: Annotated[str | None, typer.Option(metavar="FILE|-", help="Commit the operations of a file instead of the staged ones.")] = None,
    author: Annotated[Texts, typer.Option(metavar="A", help="An author; repeat it.", show_default=False)] = None,
    signed_off_by: Annotated[Texts, typer.Option(metavar="S", help="Who signed it off; repeat it.", show_default=False)] = None,
    properties: Annotated[Texts, typer.Option("--property", metavar="K=V", help="A property; repeat it.", show_default=False)] = None,
    author_time: Annotated[str | None, typer.Option(metavar="TIME", help="When the change was made, such as 2026-01-31T12:00:00Z.")] = None,
    expected_hash: Annotated[str | None, typer.Option(metavar="HASH", help="The commit you started from; what changed since conflicts.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would happen, write nothing.")] = False,
) -> None:
    """Commit the staged batch: all of it, or, when there is a conflict, nothing, and the batch stays.

    Without a message your editor is opened on a terminal (NESSIE_EDITOR, VISUAL, EDITOR); an empty message gives up.
    --batch takes REST JSON ({"commitMeta": ..., "operations": [...]} or a list) or JSON lines, one operation a line.
    """
    call = Invocation.of(ctx)
    written, operations = _read_batch(call, batch) if batch is not None else (None, None)
    text = message_of(message, file) or (written.message if written else None)
    authors = author or (written.authors if written else None)
    branch = call.reference_name()
    if operations is not None:
        _refuse_twice(batch or "", operations)

    with _message(call, text, branch, batch, dry_run=dry_run) as said:
        meta = meta_of(call, said, authors=authors, signed_off_by=signed_off_by, properties=properties, author_time=author_time)
        expected = call.repository().resolve(call.revision(expected_hash)).hash if expected_hash else None
        submission = Submission(branch, _over(written, meta) if written else meta, expected, dry_run)
        submitted = submit_staged(call, submission) if operations is None else _submit_file(call, submission, operations)
    from nessie_cli.cli.committed import print_committed

    print_committed(call, submitted, branch)


def _message(call: Invocation, text: str | None, branch: str, batch: str | None, *, dry_run: bool) -> AbstractContextManager[str]:
    """The message of the options or of the batch, else that which the user writes; a dry run needs none."""
    if text is not None or dry_run:
        return nullcontext(text or "")
    from nessie_cli.cli.editing import message_from_editor

    if batch is not None:
        return message_from_editor(call, branch, None)
    staged = call.batch_file().read()
    if staged is None:
        raise InvalidInput(NOTHING_STAGED)
    return message_from_editor(call, branch, staged.staged)


def _read_batch(call: Invocation, name: str) -> tuple[CommitMeta | None, list[Operation]]:
    from nessie_cli.cli.input import read_bytes
    from nessie_cli.wire.decode import decode_batch

    data = read_bytes(name, "--batch")
    with call.at_work("reading the operations") as progress:
        return decode_batch(data, "stdin" if name == "-" else name, allow_unknown=True, progress=progress)


def _refuse_twice(name: str, operations: list[Operation]) -> None:
    """Raise `InvalidInput` that says which two operations are about one key; a deletion may be followed by a new content, without an id."""
    seen: dict[ContentKey, int] = {}
    for number, operation in enumerate(operations, 1):
        first = seen.setdefault(operation.key, number)
        if first != number and not (isinstance(operations[first - 1], Delete) and isinstance(operation, Put) and operation.content.id is None):
            place = "stdin" if name == "-" else name
            raise InvalidInput(f"{place}: operations {first} and {number} are both about key {operation.key}; a commit changes a key once")


def _over(written: CommitMeta, said: CommitMeta) -> CommitMeta:
    """What the options say in the place of what the batch says itself."""
    return CommitMeta(
        message=said.message,
        authors=said.authors,
        signed_off_by=said.signed_off_by or written.signed_off_by,
        author_time=said.author_time or written.author_time,
        properties={**written.properties, **said.properties},
    )


def _submit_file(call: Invocation, submission: Submission, operations: list[Operation]) -> Submitted:
    repository = call.repository()
    head_of_branch(repository, submission.branch)
    again = resolving(lambda error: with_current_hash(call, error))
    with again, once(call, "commit", submission, operations, dry_run=submission.dry_run) as request_id:
        result = repository.commit(
            submission.branch,
            operations,
            submission.meta,
            expected_hash=submission.expected_hash,
            request_id=request_id or new_request_id(),
            dry_run=submission.dry_run,
        )
    return Submitted(result, len({operation.key for operation in operations}))
