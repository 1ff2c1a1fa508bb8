"""What the staging verbs (`nessie content put` and its like) share: look, combine with the batch, and commit in the same step with `-m`.

`-m` is refused while other keys are staged. Without a workspace there is no batch: then `-m` is needed, and
the operations of the one command are committed directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nessie_cli.cli.committed import print_committed
from nessie_cli.cli.submission import Submission, Submitted, head_of_branch, new_request_id, refuse_elsewhere, settle, submit, submit_file
from nessie_cli.errors import InvalidInput
from nessie_cli.model import Content, ContentKey, Put
from nessie_cli.workspace.batch import Batch, BatchFile
from nessie_cli.workspace.staging import StagedList, State, renames

if TYPE_CHECKING:
    from nessie_cli.cli.context import Invocation

Message = Annotated[
    list[str] | None,
    typer.Option("-m", "--message", metavar="MSG", help="Commit in the same step. Refused while other keys are staged.", show_default=False),
]
ExpectedHash = Annotated[
    str | None,
    typer.Option(metavar="HASH", help="Expect the key as it is at this commit, whatever was staged for it before; resolves a conflict."),
]
Author = Annotated[list[str] | None, typer.Option(metavar="A", help="With -m: an author; repeat it.", show_default=False)]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The key, such as db.sales.orders.", show_default=False)]
Keys = Annotated[list[str], typer.Argument(metavar="KEY...", help="The keys.", show_default=False)]

Change = Callable[[StagedList, State], StagedList]
"""What a verb does to what is staged."""


class Step(NamedTuple):
    """One staging step: the change, the keys it looks at, the message of `-m`, the commit whose state is expected, the authors of the commit."""

    change: Change
    keys: Iterable[ContentKey]
    message: list[str] | None
    expected_hash: str | None
    authors: list[str] | None = None


class _Place(NamedTuple):
    head: str
    state: State


def stage(call: Invocation, step: Step) -> None:
    """Do one step and print what came of it. With a message both halves happen under one lock: nobody else's operations slip in between."""
    from nessie_cli.cli.commit_meta import message_of, meta_of

    message = message_of(step.message, None)
    if step.authors and message is None:
        raise InvalidInput("--author belongs to -m: what is only staged has no author yet")
    meta = meta_of(call, message, authors=step.authors) if message is not None else None
    branch = call.reference_name()
    submission = Submission(branch, meta) if meta is not None else None
    if call.workspace is None and submission is not None:
        print_committed(call, _commit_directly(call, step, submission), branch)
        return
    with call.batch_file().changing() as file:
        if submission is not None:
            _refuse_other_keys(step, file)
        batch = _stage(call, step, file, branch)
        if submission is not None and batch is None:
            raise InvalidInput(f"nothing to commit: this changes nothing for {', '.join(map(str, step.keys))}")
        submitted = submit_file(call, file, submission) if submission else None
    if submitted is None:
        _print_batch(call, batch, branch, step)
    else:
        print_committed(call, submitted, branch)


def _place(call: Invocation, step: Step, branch: str) -> _Place:
    repository = call.repository()
    head = head_of_branch(repository, branch)
    at = repository.resolve(call.revision(step.expected_hash)).hash if step.expected_hash else head
    known: Mapping[ContentKey, Content] = repository.contents(at, step.keys)
    return _Place(head, known.get)


def _stage(call: Invocation, step: Step, file: BatchFile, branch: str) -> Batch | None:
    place = _place(call, step, branch)
    batch, done = settle(call, file)
    if done is not None:
        call.note(f"the batch was committed already, as {done.reference.hash} on {done.reference.name}; a new one begins")
    if batch is not None:
        refuse_elsewhere(call, batch, branch)
    staged = _without_no_changes(step.change(batch.staged if batch else (), place.state), step)
    begun_at = batch.begun_at if batch else place.head
    changed = Batch(begun_at, staged, branch=branch, store=call.store.name())
    file.write(changed)
    return changed if staged else None


def _refuse_other_keys(step: Step, file: BatchFile) -> None:
    """Raises `InvalidInput` if keys are staged that `-m` would commit along with those of the step."""
    batch = file.read()
    meant = set(step.keys)
    for pair in renames(batch.staged).items() if batch else ():
        # Both keys of a rename are one change.
        meant |= set(pair) if meant & set(pair) else set()
    others = [str(key) for key in batch.keys if key not in meant] if batch else []
    if others:
        shown = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")  # noqa: PLR2004 - three names fit a line
        raise InvalidInput(
            f"-m: other keys are staged too: {shown}. "
            "Hint: stage this one without -m and commit all by `nessie commit`, "
            "or put the others aside by `nessie stash`"
        )


def _without_no_changes(staged: StagedList, step: Step) -> StagedList:
    """The operations without those of this step that put the very content that is there."""
    same = {item.key for item in staged if isinstance(item.operation, Put) and item.operation.content == item.seen}
    return tuple(item for item in staged if item.key not in same.intersection(step.keys))


def _commit_directly(call: Invocation, step: Step, submission: Submission) -> Submitted:
    place = _place(call, step, submission.branch)
    batch = Batch(place.head, step.change((), place.state), new_request_id())
    return Submitted(submit(call, batch, submission), len(batch.keys))


def _print_batch(call: Invocation, batch: Batch | None, branch: str, step: Step) -> None:
    from nessie_cli.cli.batch_view import batch_document, changes_of, print_changes

    if call.wants_json:
        call.answer(batch_document(batch, branch))
        return
    touched = {str(key) for key in step.keys}
    changes = changes_of(batch.staged) if batch else []
    print_changes(call, (change for change in changes if change.key in touched))
    if not touched & {change.key for change in changes}:
        call.say("nothing to stage for ", ", ".join(sorted(touched)))
    call.note(f"{len(changes)} staged for {branch}; `nessie commit -m MSG` commits" if changes else "nothing is staged")
