"""The steps of a staging verb: read states of keys, change the batch, commit with `-m`.

Without a workspace there is no batch. Then `-m` is required, and the operations are committed
directly.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from nessie_cli.cli.app.global_options import carried
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.errors.resolutions import command_line
from nessie_cli.cli.staging.batch import BatchResult, changes_of, print_changes
from nessie_cli.cli.staging.commit_meta import message_of_paragraphs, meta_of
from nessie_cli.cli.staging.committed import CommittedResult, print_committed
from nessie_cli.cli.staging.submission import (
    Submission,
    Submitted,
    head_of_branch,
    new_request_id,
    read_batch,
    refuse_elsewhere,
    submit,
    submit_file,
)
from nessie_cli.errors import InvalidInput
from nessie_cli.model import Content, ContentKey, Put
from nessie_cli.workspace import batch as workspace
from nessie_cli.workspace.batch import BatchFile
from nessie_cli.workspace.staging import (
    StagedList,
    State,
    doubles_of,
    origins_of,
    renames,
    with_origins,
)

_SHOWN = 3
"""The number of other staged keys that an error lists."""


class Step(NamedTuple):
    """The step of one staging verb."""

    change: Callable[[StagedList, State], StagedList]
    """Returns the staged operations after the step."""
    keys: tuple[ContentKey, ...]
    """The keys whose state the change reads."""
    expected_hash: str | None = None
    """The commit whose state is expected; HEAD of the branch if it is None."""


class _Place(NamedTuple):
    head: str
    state: State


def stage(
    app: Invocation, step: Step, message: Sequence[str] | None, authors: Sequence[str] | None
) -> BatchResult | CommittedResult:
    """Stages the operations of a step, or commits them if there is a message, in paragraphs.

    Holds one lock, so that no other operations can be staged between staging and committing.
    """
    branch = app.reference_name()
    submission = None
    if message:
        meta = meta_of(app, message_of_paragraphs(message), authors=authors)
        submission = Submission(branch, meta)
    elif authors:
        raise InvalidInput("--author needs -m: staged operations have no author")
    elif app.options.no_verify:
        raise InvalidInput("--no-verify needs -m: hooks run only for a commit")
    if app.store.workspace is None and submission is not None:
        return CommittedResult.of(_commit_directly(app, step, submission))
    with app.batch_file().changing() as file:
        if submission is not None:
            _refuse_other_keys(step, file)
        batch = _staged(app, step, file, branch)
        if submission is not None and not batch.staged:
            raise _nothing_to_commit(step)
        file.write(batch)
        if submission is None:
            return BatchResult.of(batch if batch.staged else None, branch, step.keys)
        return CommittedResult.of(submit_file(app, file, submission))


def print_step(result: BatchResult | CommittedResult, output: Output) -> None:
    """Prints the changes of a step, or its commit."""
    if isinstance(result, CommittedResult):
        print_committed(result, output)
        return
    touched = {str(key) for key in result.touched}
    changes = changes_of(result.staged)
    shown = [
        change
        for change in changes
        if change.key in touched or (change.verb == "rename" and change.what in touched)
    ]
    print_changes(output, shown)
    if not shown:
        output.say(
            f"nothing to stage for {', '.join(sorted(touched))}" if touched else "nothing to stage"
        )
    count = len(changes)
    commit = command_line(*carried(output.options), "commit", "-m", "MSG")
    output.note(
        f"{count} staged for {result.reference}; `{commit}` commits"
        if count
        else "nothing is staged"
    )


def _place(app: Invocation, step: Step, branch: str) -> _Place:
    repository = app.repository()
    head = head_of_branch(repository, branch)
    at = repository.resolve(app.revision(step.expected_hash)).hash if step.expected_hash else head
    contents: Mapping[ContentKey, Content] = repository.contents(at, step.keys)
    return _Place(head, contents.get)


def _staged(app: Invocation, step: Step, file: BatchFile, branch: str) -> workspace.StagedBatch:
    """Returns the batch with the operations of the step. It may be empty then."""
    place = _place(app, step, branch)
    batch, done = read_batch(app, file)
    if done is not None:
        app.output.note(
            f"the batch was committed already, as {done.reference.hash} on {done.reference.name};"
            " a new one begins"
        )
    if batch is not None:
        refuse_elsewhere(app, batch, branch)
    before = batch.staged if batch else ()
    staged = with_origins(step.change(before, place.state), origins_of(before))
    _refuse_second_key(app, place.head, before, staged)
    staged = _without_unchanged(staged, step.keys)
    begun_at = batch.begun_at if batch else place.head
    return workspace.StagedBatch(begun_at, staged, branch=branch, store=app.store.name())


def _refuse_second_key(app: Invocation, head: str, before: StagedList, staged: StagedList) -> None:
    """Raises `InvalidInput` if an operation gives a content a key beside that of the batch.

    The branch has renamed the content since its change was staged, or has restored it.
    """
    for double in doubles_of(before, staged):
        origin = double.origin or double.key
        present = app.repository().contents(head, [origin]).get(origin)
        if present is not None and present.id == double.content_id:
            # A branch that older versions wrote can have one content id at both keys.
            continue
        here = carried(app.options)
        resolve = command_line(*here, "resolve")
        reset = command_line(*here, "reset", str(double.key))
        raise InvalidInput(
            f"{double.new_key} has a change staged as {double.key} already, from before it got"
            " this key on the branch",
            hint=f"`{resolve}` decides about the staged change, and `{reset}` unstages it",
        )


def _refuse_other_keys(step: Step, file: BatchFile) -> None:
    """Raises `InvalidInput` if `-m` would commit other staged keys along with those of the step."""
    batch = file.read()
    meant = set(step.keys)
    for pair in renames(batch.staged).items() if batch else ():
        # A rename is one change of two keys.
        meant |= set(pair) if meant & set(pair) else set()
    others = [str(key) for key in batch.keys if key not in meant] if batch else []
    if others:
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        raise InvalidInput(
            f"-m: other keys are staged too: {', '.join(others[:_SHOWN])}{more}",
            hint=(
                "omit -m and commit all keys with `nessie commit`, or stash the others with"
                " `nessie stash`"
            ),
        )


def _without_unchanged(staged: StagedList, keys: Iterable[ContentKey]) -> StagedList:
    """Returns the operations without Puts of some keys that change nothing."""
    same = {
        item.key
        for item in staged
        if isinstance(item.operation, Put) and item.operation.content == item.seen
    }
    return tuple(item for item in staged if item.key not in same.intersection(keys))


def _commit_directly(app: Invocation, step: Step, submission: Submission) -> Submitted:
    place = _place(app, step, submission.branch)
    staged = _without_unchanged(step.change((), place.state), step.keys)
    if not staged:
        raise _nothing_to_commit(step)
    batch = workspace.StagedBatch(place.head, staged, new_request_id())
    return Submitted(submit(app, batch, submission), len(batch.keys))


def _nothing_to_commit(step: Step) -> InvalidInput:
    names = ", ".join(map(str, step.keys))
    return InvalidInput(
        f"nothing to commit: the operation has no effect{f' for {names}' if names else ''}"
    )
