"""Commits to a server without our extensions: the rules are checked here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice

from msgspec import structs

from nessie_cli.errors import CommitNotFound, InvalidInput, ReferenceConflict
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitResult,
    ContentKey,
    Delete,
    LogEntry,
    Namespace,
    Operation,
    Put,
    Reference,
    ReferenceType,
    type_label,
)
from nessie_cli.repository.changes import Commit
from nessie_cli.repository.commits import AddedIds
from nessie_cli.repository.remote import references
from nessie_cli.repository.remote.ancestry import Ancestry
from nessie_cli.repository.remote.bodies import (
    REQUEST_ID,
    commit_body,
    commit_result,
    with_request_id,
)
from nessie_cli.repository.remote.conflicts import check_commit, diagnosed
from nessie_cli.repository.remote.contents import contents
from nessie_cli.repository.remote.history import commit_at, log_down_to
from nessie_cli.repository.remote.lost_answers import look_up_outcome
from nessie_cli.repository.remote.plain.sent_commits import is_commit_of, state_after
from nessie_cli.repository.remote.revisions import existing
from nessie_cli.repository.remote.server import Server
from nessie_cli.repository.remote.session import RestSession, understood
from nessie_cli.repository.remote.transport import Lost, segment
from nessie_cli.repository.remote.write_request import WriteRequest

_TRIES = 5
"""How often a commit without an expected hash is tried on a branch that moves."""
_MOST_NEWER = 10_000
"""Commits of others that are searched for a write whose answer was lost."""
_SEARCHED = 100
"""Newest commits of a branch that are searched for a request id of unknown time."""


def commit(server: Server, change: Commit, request_id: str | None) -> CommitResult:
    """Commits operations, or checks them in a dry run.

    The request expects the HEAD that the rules were checked against, so no commit comes between.
    """
    session = server.session
    change = structs.replace(change, operations=list(map(_without_id, change.operations)))
    for number in range(_TRIES):
        target = branch_to_write(session, change.branch, "commit")
        if request_id and (
            earlier := find_committed(session, target, request_id, change.expected_hash)
        ):
            return earlier
        checked = structs.replace(
            change,
            branch=target.name,
            expected_hash=_expected(session, target, change.expected_hash),
        )
        try:
            result = _checked(server, target, checked)
            return result if change.dry_run else _send(server, target, checked, request_id)
        except ReferenceConflict as conflict:
            # Without an expected hash, HEAD is meant, even if it moves.
            if (
                change.expected_hash is not None
                or conflict.head == target.hash
                or number == _TRIES - 1
            ):
                raise
    raise AssertionError


def _without_id(operation: Operation) -> Operation:
    """Returns an operation without the id of a restored content: only our servers accept it."""
    if not isinstance(operation, Put) or operation.restored_from is None:
        return operation
    return Put(operation.key, operation.content.with_id(None), operation.expected_content)


def branch_to_write(session: RestSession, name: str, verb: str) -> Reference:
    """Returns a branch. Raises `InvalidInput` for a tag."""
    reference = references.get(session, name)
    if reference.type is not ReferenceType.BRANCH:
        raise InvalidInput(f"Reference to {verb} into must be a branch.")
    return reference


def _expected(session: RestSession, target: Reference, hash_: str | None) -> str:
    """Returns the expected hash, which must be on the branch."""
    if hash_ is None or hash_.lower() in (target.hash, NO_ANCESTOR):
        return target.hash if hash_ is None else hash_.lower()
    with suppress(CommitNotFound):
        if existing(session, hash_) in Ancestry(session).first_parents(target.hash):
            return hash_.lower()
    raise CommitNotFound(f"Could not find commit '{hash_}' in reference '{target.name}'.", hash_)


def _checked(server: Server, target: Reference, change: Commit) -> CommitResult:
    expected = change.expected_hash or target.hash
    operations = list(change.operations)
    check = check_commit(server, operations, expected, target.hash)
    if check.conflicts:
        raise check.refusal(target.name, target.hash, expected)
    _refuse_other_types(session=server.session, operations=operations, head=target.hash)
    _refuse_other_ids(server.session, operations, expected)
    return CommitResult(target, AddedIds(check.applied.added), applied=False)


def _refuse_other_types(session: RestSession, operations: Sequence[Operation], head: str) -> None:
    """Raises `InvalidInput` if one commit replaces a content by one of another type.

    The original server (0.99.0) stores such a commit, answers 400 without a message, and cannot
    read the branch afterwards. It replaces only namespaces correctly.
    """
    deleted = {each.key for each in operations if isinstance(each, Delete)}
    puts = [each for each in operations if isinstance(each, Put) and each.key in deleted]
    present = contents(session, head, [put.key for put in puts]) if puts else {}
    for put in puts:
        before = present.get(put.key)
        if before is None or isinstance(before, Namespace):
            continue
        if before.type_name != put.content.type_name:
            old, new = type_label(before.type_name), type_label(put.content.type_name)
            raise InvalidInput(
                f"server {session.transport.url} cannot replace '{put.key}' in one commit: it is"
                f" of type {old}, and would be of type {new}",
                hint=f"commit the deletion of '{put.key}' first",
            )


def _refuse_other_ids(session: RestSession, operations: Sequence[Operation], at: str) -> None:
    """Raises `InvalidInput` if a Put moves a content to a key that has another one.

    The original server (0.99.0) refuses it, also with a Delete of the key in the same commit. Our
    servers accept it, for example to swap two names.
    """
    puts = [each for each in operations if isinstance(each, Put) and each.content.id is not None]
    present = contents(session, at, [put.key for put in puts]) if puts else {}
    for put in puts:
        before = present.get(put.key)
        if before is not None and before.id != put.content.id:
            raise InvalidInput(
                f"server {session.transport.url} cannot move another content to '{put.key}' in"
                " the commit that removes the present one",
                hint=f"rename or delete '{put.key}' in a commit of its own first",
            )


def _send(
    server: Server, target: Reference, change: Commit, request_id: str | None
) -> CommitResult:
    session = server.session
    body = commit_body(change.meta, list(change.operations))
    if request_id:
        body["commitMeta"] = with_request_id(body["commitMeta"], request_id)
    path = f"trees/{segment(f'{target.name}@{target.hash}')}/history/commit"
    try:
        answer = WriteRequest("POST", path, body).send(session, request_id=request_id or "")
        return understood(answer, commit_result, "commit")
    except ReferenceConflict as conflict:
        raise diagnosed(server, conflict, change) from None
    except Lost as lost:
        return look_up_outcome(lost, lambda: _find_sent(session, target, change, request_id))


def _find_sent(
    session: RestSession, target: Reference, change: Commit, request_id: str | None
) -> CommitResult | None:
    """Returns the commit that was sent, found by its request id, or by metadata and operations."""
    if request_id:
        return find_committed(session, target, request_id, target.hash)
    state = state_after(change.operations)
    for entry in newer_commits(session, target, operations=True):
        if is_commit_of(entry, change.meta, state):
            return _result_of(session, target.name, entry)
    return None


def newer_commits(
    session: RestSession, target: Reference, *, operations: bool
) -> Iterator[LogEntry]:
    """Yields the commits of a branch after `target`, newest first."""
    head = references.get(session, target.name).hash
    newer = islice(log_down_to(session, head, target.hash, operations=operations), _MOST_NEWER + 1)
    return (entry for entry in list(newer) if entry.hash != target.hash)


def find_committed(
    session: RestSession, branch: Reference, request_id: str, since: str | None
) -> CommitResult | None:
    """Returns the result of a request on a branch, or None.

    It can have happened only after its expected hash `since`, if there is one.
    """
    if since == branch.hash:
        head = references.get(session, branch.name).hash
        if head == since:
            return None
        branch = Reference(branch.type, branch.name, head)
    commits = log_down_to(session, branch.hash, since, operations=False)
    for entry in commits if since else islice(commits, _SEARCHED):
        if entry.meta.properties.get(REQUEST_ID) == (request_id,):
            return _result_of(session, branch.name, entry)
    return None


def _result_of(session: RestSession, branch: str, entry: LogEntry) -> CommitResult:
    reference = Reference(ReferenceType.BRANCH, branch, entry.hash)
    return CommitResult(reference, _added_by(session, entry))


def _added_by(session: RestSession, entry: LogEntry) -> Mapping[ContentKey, str]:
    """Returns the ids that a commit gave to new contents."""
    if len(entry.meta.parents) > 1:
        return {}
    operations = commit_at(session, entry.hash).operations or ()
    before = contents(session, entry.parent, [operation.key for operation in operations])
    ids_before = {content.id for content in before.values()}
    puts = [operation for operation in operations if isinstance(operation, Put)]
    return {
        put.key: put.content.id
        for put in puts
        if put.content.id is not None and put.content.id not in ids_before
    }
