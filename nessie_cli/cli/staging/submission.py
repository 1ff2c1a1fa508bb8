"""Commits the staged batch: never twice, and without losing staged changes.

Each staged operation records the state of its key on which it was staged. This module compares that
state with HEAD, for all keys at once. If they agree, it submits the operations with HEAD as the
expected hash, so that the repository detects later changes. The batch file receives a request id
before the submission, and is deleted only after the store has responded. A batch with a request id
may be committed already, so the store is asked about the request first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from nessie_cli.cli.app.global_options import carried
from nessie_cli.cli.errors.resolutions import command_line
from nessie_cli.cli.staging.renamed import (
    departures,
    old_keys_of,
    places_of_restored,
    second_entries_of_restored,
)
from nessie_cli.cli.staging.resolutions import (
    BatchResolutions,
    contents_below,
    first_below,
    staged_below,
)
from nessie_cli.cli.staging.restaging import Restager
from nessie_cli.errors import InvalidInput, NotFound, NothingStaged, ReferenceConflict
from nessie_cli.inspection.text import short_hash
from nessie_cli.model import (
    CommitMeta,
    CommitResult,
    Conflict,
    ConflictType,
    Content,
    ContentKey,
    MergeBehavior,
    MergeOption,
    Put,
    Reference,
    ReferenceType,
    Rename,
)
from nessie_cli.model.conflicts import (
    commit_message,
    conflict_text,
    same_file_text,
    second_key_text,
)
from nessie_cli.revisions import Revision
from nessie_cli.workspace.content_edits import ContentEdit, content_edits
from nessie_cli.workspace.folder import absolute_store
from nessie_cli.workspace.staging import proposed, without

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.repository.base import Repository
    from nessie_cli.workspace.batch import BatchFile, Staged, StagedBatch


def nothing_staged(more: str = "") -> NothingStaged:
    """Returns the error for an empty batch. `more` is the rest of the message."""
    return NothingStaged(
        f"nothing is staged{more}",
        hint="commands such as `nessie content put KEY ...` stage operations",
    )


class Submission(NamedTuple):
    """How to submit a batch: the branch and the metadata. `expected_hash` replaces HEAD."""

    branch: str
    meta: CommitMeta
    expected_hash: str | None = None
    dry_run: bool = False


class Submitted(NamedTuple):
    """The commit. `repeated` is true if an earlier attempt without a response had created it."""

    result: CommitResult
    operations: int
    repeated: bool = False


def head_of_branch(repository: Repository, name: str) -> str:
    """Returns the hash of a branch.

    Raises `InvalidInput` for a tag, which cannot be committed to.
    """
    reference = repository.reference(name)
    if reference.type is not ReferenceType.BRANCH:
        raise InvalidInput(
            f"{name} is a tag, and commits need a branch",
            hint="`nessie switch BRANCH` or --ref BRANCH",
        )
    return reference.hash


def new_request_id() -> str:
    """Returns a new, unique request id."""
    return os.urandom(16).hex()


def read_batch(call: Invocation, file: BatchFile) -> tuple[StagedBatch | None, CommitResult | None]:
    """Returns the batch, or the commit if a submission without a response has succeeded.

    In that case, the batch is removed. A commit that the branch no longer contains does not
    count: it was undone. The caller holds the workspace lock.
    """
    batch = file.read()
    if batch is None or batch.request_id is None or batch.store not in (None, call.store.name()):
        return batch, None
    done = call.repository().find_request(batch.request_id, branch=batch.branch)
    if done is None:
        return batch, None
    if not _is_on_branch(call.repository(), done.reference):
        call.output.note(
            f"an earlier attempt had committed the batch as {short_hash(done.reference.hash)},"
            f" which '{done.reference.name}' no longer contains"
        )
        return replace(batch, request_id=None), None
    file.write(None)
    return None, done


def _is_on_branch(repository: Repository, committed: Reference) -> bool:
    """Returns whether a branch contains its commit of an earlier time."""
    try:
        now = repository.reference(committed.name)
        return repository.is_ancestor(Revision(None, committed.hash), Revision(None, now.hash))
    except NotFound:
        return False


def refuse_elsewhere(call: Invocation, batch: StagedBatch, branch: str) -> None:
    """Raises `InvalidInput` if a batch is for another store or branch than this invocation."""
    store = call.store.name()
    here = carried(call.options, ("store", "profile"))
    stash = command_line(*carried(call.options, ()), "stash")
    if batch.store is not None and batch.store != store:
        raise InvalidInput(
            f"the staged batch is for the store {batch.store}, not for {store}",
            hint=f"`{commit_there(call, batch)}` commits it there; `{stash}` stashes it",
        )
    if batch.branch is not None and batch.branch != branch:
        raise InvalidInput(
            f"the staged batch is for '{batch.branch}', not for '{branch}'",
            hint=(
                f"`{commit_there(call, batch)}` commits it there; "
                f"`{command_line(*here, 'switch', branch)}` moves it along;"
                f" `{stash}` stashes it"
            ),
        )


def commit_there(call: Invocation, batch: StagedBatch) -> str:
    """Returns the command line that commits a batch on its own branch of its own store."""
    is_there = batch.store is not None and batch.store != call.store.name()
    arguments = carried(call.options, () if is_there else ("store", "profile"))
    arguments += ["--ref", batch.branch] if batch.branch else []
    if batch.store is not None and is_there:
        arguments += ["--store", absolute_store(batch.store, call.store.need_workspace().root)]
    return command_line(*arguments, "commit")


def is_for(batch: StagedBatch, store: str, branch: str) -> bool:
    """Whether a batch is for this branch of this store."""
    return batch.store in (None, store) and batch.branch in (None, branch)


def submit_staged(call: Invocation, submission: Submission) -> Submitted:
    """Commits the workspace's batch. Raises `ReferenceConflict` with every conflict.

    The batch is kept if an error is raised.
    """
    with call.batch_file().changing() as file:
        return submit_file(call, file, submission)


def submit_file(call: Invocation, file: BatchFile, submission: Submission) -> Submitted:
    """Commits the batch as `submit_staged` does. The caller holds the workspace lock."""
    count = len(before.keys) if (before := file.read()) else 0
    batch, done = read_batch(call, file)
    if done is not None:
        return Submitted(done, count, repeated=True)
    if batch is None:
        raise nothing_staged()
    refuse_elsewhere(call, batch, submission.branch)
    # If the store cannot be opened, nothing was submitted.
    call.repository()
    if submission.dry_run:
        return Submitted(submit(call, batch, submission), count)
    request_id = batch.request_id or new_request_id()
    batch = replace(batch, request_id=request_id, branch=submission.branch, store=call.store.name())
    file.write(batch)
    result = submit(call, batch, submission)
    file.write(None)
    return Submitted(result, count)


def submit(call: Invocation, batch: StagedBatch, submission: Submission) -> CommitResult:
    """Commits the operations of a batch.

    Raises `ReferenceConflict` with every conflict and its resolutions.
    """
    try:
        return _submit(call.repository(), batch, submission)
    except ReferenceConflict as error:
        error.conflicts = tuple(
            _with_contents(call, batch, conflict) for conflict in error.conflicts
        )
        error.ways_out = BatchResolutions(call, batch.staged, error)
        raise


def _with_contents(call: Invocation, batch: StagedBatch, conflict: Conflict) -> Conflict:
    """Names the contents of a namespace that is not empty in its conflict.

    The message names the first ones. The option to keep its deletion names all of them, and is
    missing if there are too many. A missing namespace can have another content staged at its key.
    """
    if conflict.type is ConflictType.NAMESPACE_ABSENT:
        puts = (i.operation for i in batch.staged if isinstance(i.operation, Put))
        staged = (put.content for put in puts if put.key == conflict.key)
        return replace(conflict, proposed=next(staged, None))
    key = conflict.key
    if conflict.type is not ConflictType.NAMESPACE_NOT_EMPTY or key is None:
        return conflict
    edits = content_edits(batch.staged)
    new = next((edit.new for edit in edits if edit.old == key and edit.is_rename), None)
    if new is not None:
        conflict = replace(conflict, source_rename=Rename(key, new))
    names = first_below(call, call.head, key, batch.keys)
    if not names:
        return conflict
    can_empty = key in batch.keys and not staged_below(batch.staged, key)
    left = contents_below(call, call.head, key, batch.keys) if can_empty else []
    deletion = [MergeOption(MergeBehavior.FORCE, deletes=tuple(left))] if left else []
    return replace(
        conflict,
        message=f"{conflict.message}: {names}",
        options=(*deletion, MergeOption(MergeBehavior.DROP)),
    )


def _submit(repository: Repository, batch: StagedBatch, submission: Submission) -> CommitResult:
    branch = submission.branch
    head = head_of_branch(repository, branch)
    conflicts = changed_since(repository, batch, head)
    if submission.expected_hash:
        conflicts += changed_after(
            repository, batch.staged, submission.expected_hash, head, conflicts
        )
    if conflicts:
        conflicts += _other_conflicts(repository, batch, submission, head, conflicts)
        raise refusal(conflicts, branch, head, submission.expected_hash or batch.begun_at)
    try:
        return repository.commit(
            branch,
            batch.operations,
            submission.meta,
            expected_hash=submission.expected_hash or head,
            request_id=batch.request_id,
            dry_run=submission.dry_run,
        )
    except ReferenceConflict as error:
        error.expected_hash = batch.begun_at
        raise


def changed_since(repository: Repository, batch: StagedBatch, head: str) -> list[Conflict]:
    """Returns the keys whose state at `head` differs from the one on which they were staged.

    If a content was renamed since, its state is that under the new key. A conflict of a restored
    content that came back already names its other key. A restored table that was registered again
    since is a conflict, too.
    """
    staged = batch.staged
    states = repository.contents(head, batch.keys)
    edits = content_edits(staged)
    leaving = {edit.old: edit for edit in edits if edit.old is not None}
    arriving = {edit.new: edit for edit in edits if edit.new is not None}
    # A Put after a Delete of the same key builds on that Delete, not on the store.
    first = {item.key: item for item in reversed(staged)}
    changed = [first[key] for key in batch.keys if states.get(key) != first[key].seen]
    others = [item for item in changed if _id_of(states.get(item.key)) != _id_of(item.seen)]
    left = {item.key: item.seen for item in others if item.seen is not None}
    places = departures(repository, head, batch.begun_at, left).places
    arrived = {
        item.key: states[item.key] for item in others if item.seen is None and item.key in states
    }
    old_keys = old_keys_of(repository, head, arrived)
    back = places_of_restored(repository, head, staged) if changed else {}
    conflicts: list[Conflict] = []
    for item in changed:
        key, place = item.key, places.get(item.key)
        edit = leaving.get(key)
        if edit is None or edit.new is None:
            edit = arriving.get(key, edit)
        after = edit.after if edit is not None else proposed(item)
        conflict = _conflict(repository, key, (item.seen, states.get(key), after), head)
        if place is not None:
            rename = Rename(key, place.key)
            conflict = replace(conflict, actual=place.content, target_rename=rename)
        elif key in old_keys:
            conflict = replace(conflict, target_rename=Rename(old_keys[key], key))
        if key in back and back[key].key != key:
            conflict = _with_other_key(conflict, key, back[key].key)
        if edit is not None and edit.is_rename and edit.old and edit.new:
            conflict = replace(conflict, source_rename=Rename(edit.old, edit.new))
        conflicts.append(conflict)
    if head != batch.begun_at:
        reported = {conflict.key for conflict in conflicts}
        for key, other in second_entries_of_restored(repository, head, staged):
            if key not in reported:
                conflicts.append(_with_same_file(repository, arriving[key], other, head))
    return conflicts


def _with_other_key(conflict: Conflict, key: ContentKey, other: ContentKey) -> Conflict:
    """Returns the conflict of a content that has another key already."""
    type_ = ConflictType.KEY_EXISTS
    message = conflict_text(type_, key) + second_key_text(other)
    return replace(conflict, type=type_, message=message, other_key=other)


def _with_same_file(
    repository: Repository, edit: ContentEdit, other: ContentKey, head: str
) -> Conflict:
    """Returns the conflict of a restored table that the branch has at another key."""
    key, type_ = edit.new, ConflictType.KEY_EXISTS
    assert key is not None
    return Conflict(
        type=type_,
        key=key,
        message=conflict_text(type_, key) + same_file_text(other),
        proposed=edit.after,
        changed_by=repository.last_change(head, other),
        same_file_key=other,
    )


def _id_of(content: Content | None) -> str | None:
    return content.id if content is not None else None


def changed_after(
    repository: Repository,
    staged: Iterable[Staged],
    expected_hash: str,
    head: str,
    conflicts: Sequence[Conflict] = (),
) -> list[Conflict]:
    """Returns the updated keys whose states at `expected_hash` and `head` differ.

    The store itself compares only operations without an expected content with the state at
    `expected_hash`. Keys of `conflicts` are left out, and a commit that the branch does
    not contain is left to the store.
    """
    reported = {conflict.key for conflict in conflicts}
    updates = {
        item.key: item
        for item in staged
        if isinstance(item.operation, Put) and item.operation.expected_content is not None
    }
    items = [item for key, item in updates.items() if key not in reported]
    if not items or expected_hash == head or not repository.is_ancestor(expected_hash, head):
        return []
    keys = [item.key for item in items]
    before, after = repository.contents(expected_hash, keys), repository.contents(head, keys)
    return [
        _conflict(
            repository, item.key, (before.get(item.key), after.get(item.key), proposed(item)), head
        )
        for item in items
        if before.get(item.key) != after.get(item.key)
    ]


def _conflict(
    repository: Repository,
    key: ContentKey,
    states: tuple[Content | None, Content | None, Content | None],
    head: str,
) -> Conflict:
    """Returns the conflict of a key with its expected, current and proposed state."""
    expected, actual, proposed = states
    type_ = _difference(expected, actual)
    return Conflict(
        type=type_,
        key=key,
        message=conflict_text(type_, key),
        expected=expected,
        actual=actual,
        proposed=proposed,
        changed_by=repository.last_change(head, key),
    )


def _difference(expected: Content | None, actual: Content | None) -> ConflictType:
    if expected is None:
        return ConflictType.KEY_EXISTS
    if actual is None:
        return ConflictType.KEY_DOES_NOT_EXIST
    if expected.type_name != actual.type_name:
        return ConflictType.PAYLOAD_DIFFERS
    return (
        ConflictType.CONTENT_ID_DIFFERS if expected.id != actual.id else ConflictType.VALUE_DIFFERS
    )


def _other_conflicts(
    repository: Repository,
    batch: StagedBatch,
    submission: Submission,
    head: str,
    conflicts: list[Conflict],
) -> list[Conflict]:
    """Returns the conflicts that remain if the staged changes are kept, to report all together."""
    keys = [conflict.key for conflict in conflicts if conflict.key]
    restager = Restager(repository, submission.branch, head, batch.begun_at)
    try:
        rest = restager.restaged(batch.staged, dict.fromkeys(keys)).staged
    except InvalidInput:
        rest = without(batch.staged, keys)
    if not any(isinstance(item.operation, Put) or item.seen for item in rest):
        return []
    try:
        repository.commit(
            submission.branch,
            [item.operation for item in rest],
            submission.meta,
            expected_hash=head,
            dry_run=True,
        )
    except ReferenceConflict as error:
        return [conflict for conflict in error.conflicts if conflict.key not in keys]
    except InvalidInput:
        # A server without our extensions refuses some replacements, once they are committed.
        return []
    return []


def refusal(
    conflicts: list[Conflict], branch: str, head: str, expected_hash: str
) -> ReferenceConflict:
    """Returns the error for conflicts that were found before the commit."""
    return ReferenceConflict(
        commit_message(conflicts),
        conflicts,
        reference=branch,
        head=head,
        expected_hash=expected_hash,
    )
