"""The methods that differ on a server without our extensions, in plain REST v2.

The commit rules are checked here, because each version of the original server has other ones. A
request id is a property of the commit, and after a lost answer the log of the branch is searched.
Conflicts and answers get their details as on our servers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from heapq import merge as merge_sorted
from itertools import islice, pairwise
from typing import Any

from msgspec import structs

from nessie_cli.errors import (
    CommitNotFound,
    InvalidInput,
    MergeConflict,
    NotAllowed,
    OutcomeUnknown,
    ReferenceConflict,
)
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    CommitResult,
    ContentKey,
    KeyRange,
    LogEntry,
    MergeResult,
    Operation,
    Put,
    Reference,
    ReferenceType,
    ReflogEntry,
    check_new_reference_name,
)
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.repository.commits import AddedIds
from nessie_cli.repository.remote import references
from nessie_cli.repository.remote.ancestry import Ancestry
from nessie_cli.repository.remote.bodies import (
    REQUEST_ID,
    client_meta,
    commit_body,
    merge_body,
    with_request_id,
)
from nessie_cli.repository.remote.commit import CommitRequest, commit_result
from nessie_cli.repository.remote.contents import contents, entries
from nessie_cli.repository.remote.diagnosis import check_commit, diagnosed
from nessie_cli.repository.remote.history import commit_at, log_down_to
from nessie_cli.repository.remote.key_plan import Combination, plan
from nessie_cli.repository.remote.lost import is_commit_of, look_up_outcome, run_of, state_after
from nessie_cli.repository.remote.merge import completed, with_current_namespaces
from nessie_cli.repository.remote.revisions import existing
from nessie_cli.repository.remote.session import Session, understood
from nessie_cli.repository.remote.transport import Lost, segment
from nessie_cli.wire import answers

_TRIES = 5
"""How often a commit without an expected hash is tried on a branch that moves."""
_MOST_NEWER = 10_000
"""Commits of others that are searched for a write whose answer was lost."""
_SEARCHED = 100
"""Newest commits of a branch that are searched for a request id of unknown time."""


# -- commit --------------------------------------------------------------------------------------


def commit(session: Session, request: CommitRequest) -> CommitResult:
    """See `Repository`.

    Sent with the HEAD that the rules were checked against, so nothing comes between.
    """
    for number in range(_TRIES):
        target = _branch(session, request.branch, "commit")
        if request.request_id and (
            earlier := _committed(session, target, request.request_id, request.expected_hash)
        ):
            return earlier
        expected = _expected(session, target, request.expected_hash)
        try:
            checked = _checked(session, target, request.operations, expected)
            return checked if request.dry_run else _send_commit(session, target, request, expected)
        except ReferenceConflict as conflict:
            # Without an expected hash HEAD is meant, wherever it is by now.
            if (
                request.expected_hash is not None
                or conflict.head == target.hash
                or number == _TRIES - 1
            ):
                raise
    raise AssertionError


def _branch(session: Session, name: str, verb: str) -> Reference:
    found = references.get(session, name)
    if found.type is not ReferenceType.BRANCH:
        raise InvalidInput(f"Reference to {verb} into must be a branch.")
    return found


def _expected(session: Session, target: Reference, hash_: str | None) -> str:
    """The expected hash, which must be on the branch."""
    if hash_ is None or hash_.lower() in (target.hash, NO_ANCESTOR):
        return target.hash if hash_ is None else hash_.lower()
    with suppress(CommitNotFound):
        if existing(session, hash_) in Ancestry(session).first_parents(target.hash):
            return hash_.lower()
    raise CommitNotFound(f"Could not find commit '{hash_}' in reference '{target.name}'.", hash_)


def _checked(
    session: Session, target: Reference, operations: Sequence[Operation], expected: str
) -> CommitResult:
    applied, conflicts, message = check_commit(session, operations, expected, target.hash)
    if conflicts:
        raise ReferenceConflict(
            message, conflicts, reference=target.name, head=target.hash, expected_hash=expected
        )
    return CommitResult(target, AddedIds(applied.added), applied=False)


def _send_commit(
    session: Session, target: Reference, request: CommitRequest, expected: str
) -> CommitResult:
    body = commit_body(request.meta, request.operations)
    if request.request_id:
        body["commitMeta"] = with_request_id(body["commitMeta"], request.request_id)
    path = f"trees/{segment(f'{target.name}@{target.hash}')}/history/commit"
    try:
        return understood(
            session.transport.send("POST", path, None, body, request_id=request.request_id or ""),
            commit_result,
            "commit",
        )
    except ReferenceConflict as conflict:
        raise diagnosed(session, conflict, target.name, request.operations, expected) from None
    except Lost as lost:
        return look_up_outcome(lost, lambda: _sent_commit(session, target, request))


def _sent_commit(
    session: Session, target: Reference, request: CommitRequest
) -> CommitResult | None:
    """Find the commit that was sent: by its request id, else by its metadata and operations."""
    if request.request_id:
        return _committed(session, target, request.request_id, target.hash)
    wanted = state_after(request.operations)
    for entry in _newer(session, target, operations=True):
        if is_commit_of(entry, request.meta, wanted):
            return CommitResult(
                Reference(ReferenceType.BRANCH, target.name, entry.hash), _added_by(session, entry)
            )
    return None


def _newer(session: Session, target: Reference, *, operations: bool) -> Iterator[LogEntry]:
    """The commits of a branch after `target`, newest first."""
    head = references.get(session, target.name).hash
    newer = islice(log_down_to(session, head, target.hash, operations=operations), _MOST_NEWER + 1)
    return (entry for entry in list(newer) if entry.hash != target.hash)


# -- request ids ---------------------------------------------------------------------------------


def find_request(session: Session, request_id: str, branch: str | None) -> CommitResult | None:
    """See `Repository`; searches the newest commits of the branch.

    If the branch is unknown or gone, every branch is searched. A transplant leaves no trace of its
    request.
    """
    known = references.find(session, branch) if branch else None
    for candidate in [known] if known else list(references.list_all(session, ReferenceType.BRANCH)):
        if found := _committed(session, candidate, request_id, None):
            return found
    return None


def _committed(
    session: Session, branch: Reference, request_id: str, since: str | None
) -> CommitResult | None:
    """The result of a request on a branch.

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
            return CommitResult(
                Reference(ReferenceType.BRANCH, branch.name, entry.hash), _added_by(session, entry)
            )
    return None


def _added_by(session: Session, entry: LogEntry) -> Mapping[ContentKey, str]:
    """The ids that a commit gave to new contents."""
    if len(entry.meta.parents) > 1:
        return {}
    operations = commit_at(session, entry.hash).operations or ()
    before = contents(session, entry.parent, [operation.key for operation in operations])
    known = {content.id for content in before.values()}
    puts = [operation for operation in operations if isinstance(operation, Put)]
    return {
        put.key: put.content.id
        for put in puts
        if put.content.id is not None and put.content.id not in known
    }


# -- merge, transplant ---------------------------------------------------------------------------


def merge(session: Session, branch: str, source: Reference, options: MergeOptions) -> MergeResult:
    """See `Repository`."""
    _check_options(session, options)
    target = _branch(session, branch, "merge")
    if options.request_id and (
        done := _committed(session, target, options.request_id, options.expected_hash)
    ):
        return _merge_of(session, target, done.reference.hash, options)
    combination = Combination(target, [source.hash], options, is_transplant=False, source=source)
    return _planned(session, combination, _send_merge)


def _send_merge(session: Session, combination: Combination, options: MergeOptions) -> MergeResult:
    source = combination.source
    assert source is not None
    body: dict[str, Any] = {
        "fromRefName": source.name or "DETACHED",
        "fromHash": source.hash,
        **merge_body(options),
    }
    # An empty message is none: the server makes one up.
    meta = client_meta(options.meta or CommitMeta(""))
    if options.meta is not None or options.request_id:
        body["commitMeta"] = (
            with_request_id(meta, options.request_id) if options.request_id else meta
        )
    return _combine(session, "merge", combination, body, options)


def transplant(
    session: Session, branch: str, hashes: Sequence[str], options: MergeOptions
) -> MergeResult:
    """See `Repository`. Unlike a commit or a merge, a repeated request is carried out again.

    The copies bear no request id, because they have the metadata of their sources, and copies alone
    prove nothing: the transplant may have been undone before it is repeated. After a lost
    answer it is known since when to search for them.
    """
    _check_options(session, options)
    target = _branch(session, branch, "transplant")
    if NO_ANCESTOR in hashes:
        raise CommitNotFound(f"Commit '{NO_ANCESTOR}' not found", NO_ANCESTOR)
    if options.any_order and not _are_neighbours(session, hashes):
        raise session.too_old("transplant commits that are not neighbours")
    combination = Combination(target, hashes, options, is_transplant=True)
    return _planned(session, combination, _send_transplant)


def _send_transplant(
    session: Session, combination: Combination, options: MergeOptions
) -> MergeResult:
    body: dict[str, Any] = {
        "fromRefName": combination.target.name,
        "hashesToTransplant": combination.sources,
        **merge_body(options),
    }
    if options.meta is not None:
        body["message"] = options.meta.message
    return _combine(session, "transplant", combination, body, options)


def _planned(
    session: Session,
    combination: Combination,
    send: Callable[[Session, Combination, MergeOptions], MergeResult],
) -> MergeResult:
    """Sends a merge or transplant, if necessary with decisions per key that follow renames."""
    planned = plan(session, combination)
    try:
        result = send(session, combination, planned.options if planned else combination.options)
    except MergeConflict:
        # The same rename on both sides shows only in a conflict.
        planned = None if planned else plan(session, combination, is_refused=True)
        if planned is None:
            raise
        result = send(session, combination, planned.options)
    if planned is None or not result.details:
        return result
    return structs.replace(result, details=planned.details)


def _are_neighbours(session: Session, hashes: Sequence[str]) -> bool:
    return all(commit_at(session, child).parent == parent for parent, child in pairwise(hashes))


def _check_options(session: Session, options: MergeOptions) -> None:
    if options.unrelated:
        raise session.too_old("merge unrelated histories")


def _combine(
    session: Session,
    verb: str,
    combination: Combination,
    body: dict[str, Any],
    options: MergeOptions,
) -> MergeResult:
    target, sources = combination.target, combination.sources
    path = (
        f"trees/{segment(f'{target.name}@{options.expected_hash or target.hash}')}/history/{verb}"
    )
    # A transplant leaves no trace of its request, so an error must not name an id to look for.
    request_id = options.request_id if verb == "merge" else None
    try:
        found = session.transport.send(
            "POST", path, None, body, request_id=request_id or "", safe=options.dry_run
        )
    except Lost as lost:
        look = _sent_merge if verb == "merge" else _sent_transplant
        return look_up_outcome(lost, lambda: look(session, target, sources, options))
    except ReferenceConflict as conflict:
        raise with_current_namespaces(session, conflict, verb, target.name, sources[-1]) from None
    return completed(session, understood(found, answers.decode_merge, verb), sources, options)


def _sent_merge(
    session: Session, target: Reference, sources: Sequence[str], options: MergeOptions
) -> MergeResult | None:
    """Find the merge that was sent: by its request id, else by its second parent and message."""
    for entry in _newer(session, target, operations=False):
        if options.request_id:
            fits = entry.meta.properties.get(REQUEST_ID) == (options.request_id,)
        else:
            fits = entry.meta.parents[1:] == (sources[-1],) and (
                options.meta is None or options.meta.message in ("", entry.meta.message)
            )
        if fits:
            return _merge_of(session, target, entry.hash, options)
    return None


def _sent_transplant(
    session: Session, target: Reference, sources: Sequence[str], options: MergeOptions
) -> MergeResult | None:
    """Find the transplant that was sent: all of its commits, in order."""
    copied = [commit_at(session, source) for source in sources]
    message = options.meta.message if options.meta is not None and len(sources) == 1 else None
    last = run_of(list(_newer(session, target, operations=True)), copied, message)
    return None if last is None else _applied(target, target.hash, last.hash, None, options)


def _merge_of(
    session: Session, target: Reference, hash_: str, options: MergeOptions
) -> MergeResult:
    """The result of an earlier merge, as far as its commit says it."""
    commit = commit_at(session, hash_)
    parents = commit.meta.parents or (commit.parent,)
    return _applied(
        target, parents[0], hash_, Ancestry(session).merge_base(parents[0], parents[-1]), options
    )


def _applied(
    target: Reference, before: str, after: str, base: str | None, options: MergeOptions
) -> MergeResult:
    return MergeResult(
        target_branch=target.name,
        effective_target_hash=before,
        resultant_hash=after,
        common_ancestor=base,
        expected_hash=options.expected_hash,
        applied=True,
        successful=True,
    )


# -- references, settings, divisions -------------------------------------------------------------


def rename_reference(session: Session, old: str, new: str, *, expected_hash: str) -> Reference:
    """See `Repository`; two requests.

    If the second one certainly failed, the first one is undone.
    """
    check_new_reference_name(new)
    found = references.get(session, old)
    if found.name == session.server.default_branch:
        raise InvalidInput(f"Default branch '{found.name}' cannot be renamed.")
    created = references.create(session, found.type, new, existing(session, expected_hash))
    try:
        references.delete(session, old, expected_hash=expected_hash)
    except OutcomeUnknown:
        raise
    except BaseException:
        # Interrupted in the middle, the old one may be gone: then the new one is all that there is.
        if references.find(session, old) is not None:
            references.delete(session, new, expected_hash=created.hash)
        raise
    return created


def reflog(session: Session, name: str | None) -> Iterator[ReflogEntry]:
    """See `Repository`; only a few recent hashes of existing references, without who moved them."""
    names = (
        [name]
        if name is not None
        else [reference.name for reference in references.list_all(session)]
    )

    def by_time(entry: ReflogEntry) -> tuple[datetime, int]:
        return entry.time, entry.number

    return merge_sorted(
        *(_recent_changes(session, each) for each in names), key=by_time, reverse=True
    )


def _recent_changes(session: Session, name: str) -> list[ReflogEntry]:
    path = f"trees/{segment(references.full_name(session, name))}/recent-changes"
    found = session.optional(
        lambda: session.transport.get(path), "where references have been (recent-changes)"
    )
    return understood(found, answers.decode_recent_changes, "recent-changes")


def put_settings(values: Mapping[str, str | None]) -> Mapping[str, str | None]:
    """See `Repository`; refused."""
    shown = ", ".join(f"{name} = {value}" for name, value in values.items())
    raise NotAllowed(
        f"setting {shown}: the settings of a server are kept where its store is; set it there"
    )


def divisions(session: Session, at: str, most: int, prefix: ContentKey | None) -> list[ContentKey]:
    """See `Repository`; lists all keys."""
    if most < 1:
        raise InvalidInput(f"a part holds one key or more, not {most}")
    keys = [entry.key for entry in entries(session, at, KeyRange(prefix=prefix))]
    return keys[most - 1 : len(keys) - 1 : most]
