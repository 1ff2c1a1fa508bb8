"""Merges and transplants by a server without our extensions, which merges key by key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from msgspec import structs

from nessie_cli.errors import (
    CommitNotFound,
    InvalidInput,
    MergeConflict,
    ReferenceConflict,
    StoreUnavailable,
)
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    Conflict,
    KeyBehavior,
    MergeBehavior,
    MergeOption,
    MergeResult,
    Reference,
)
from nessie_cli.model.conflicts import OF_NAMESPACES
from nessie_cli.repository.changes import Merge, MergeOptions, Transplant
from nessie_cli.repository.expected import changed_since
from nessie_cli.repository.remote.ancestry import Ancestry
from nessie_cli.repository.remote.bodies import (
    REQUEST_ID,
    client_meta,
    merge_body,
    with_request_id,
)
from nessie_cli.repository.remote.contents import contents, diff
from nessie_cli.repository.remote.history import commit_at
from nessie_cli.repository.remote.lost_answers import look_up_outcome
from nessie_cli.repository.remote.merge_answers import AnswerByKey, with_current_namespaces
from nessie_cli.repository.remote.plain.commit import branch_to_write, find_committed, newer_commits
from nessie_cli.repository.remote.plain.merge_plan import Combination, replayed
from nessie_cli.repository.remote.plain.sent_commits import run_of
from nessie_cli.repository.remote.server import Server
from nessie_cli.repository.remote.session import RestSession, understood
from nessie_cli.repository.remote.transport import Lost, segment
from nessie_cli.repository.remote.write_request import WriteRequest
from nessie_cli.wire import answers

MOST_TRIED = 10
"""The most conflicts whose decisions are tried: each costs two requests or more."""

SendCombination = Callable[[Combination], MergeResult]


def merge(server: Server, change: Merge, source: Reference, request_id: str | None) -> MergeResult:
    """Merges `source`, or returns the result of the request if it was merged before."""
    session, options = server.session, change.options
    target = branch_to_write(session, change.branch, "merge")
    if request_id and (
        earlier := find_committed(session, target, request_id, options.expected_hash)
    ):
        return _merge_of(session, target, earlier.reference.hash, options)
    combination = Combination(target, [source.hash], options, is_transplant=False, source=source)
    return _send_planned(
        server, combination, lambda planned: _send_merge(server, planned, request_id)
    )


def _send_merge(server: Server, combination: Combination, request_id: str | None) -> MergeResult:
    session, options, source = server.session, combination.options, combination.source
    assert source is not None
    body: dict[str, Any] = {
        "fromRefName": source.name or "DETACHED",
        "fromHash": source.hash,
        **merge_body(_bound(server, combination)),
    }
    # The server generates a message if it is empty.
    meta = client_meta(options.meta or CommitMeta(""))
    if request_id:
        body["commitMeta"] = with_request_id(meta, request_id)
    elif options.meta is not None:
        body["commitMeta"] = meta
    return _combine(
        server,
        "merge",
        combination,
        body,
        look_up=lambda: _find_sent_merge(session, combination, request_id),
        request_id=request_id,
    )


def _bound(server: Server, combination: Combination) -> MergeOptions:
    """Returns options whose FORCE decisions hold only for the contents that the target has.

    So nothing is overwritten or deleted that another client writes meanwhile. The server compares
    only the content that the source changed, not another one at its key. With several commits, it
    compares each with what the commits before it have written, so nothing is added.
    """
    session, options, target = server.session, combination.options, combination.target
    keys = [each.key for each in options.behaviors if each.behavior is MergeBehavior.FORCE]
    if not keys or len(combination.sources) > 1:
        return options
    (source,) = combination.sources
    base = (
        commit_at(session, source).parent
        if combination.is_transplant
        else Ancestry(session).merge_base(target.hash, source)
    )
    changed = {
        key: content
        for at in (base, source)
        if at != NO_ANCESTOR
        for key, content in contents(session, at, keys).items()
    }
    at_target = {
        key: content
        for key, content in contents(session, target.hash, keys).items()
        if key in changed and content.id == changed[key].id
    }
    behaviors = [
        structs.replace(each, expected_target=at_target.get(each.key))
        if each.behavior is MergeBehavior.FORCE and each.expected_target is None
        else each
        for each in options.behaviors
    ]
    return structs.replace(options, behaviors=behaviors)


def transplant(server: Server, change: Transplant) -> MergeResult:
    """Transplants commits. Unlike a commit or a merge, a repeated request is carried out again.

    The copies have no request id, because they have the metadata of their sources. Equal copies do
    not prove that the request happened: it may have been undone before it is repeated. After a
    lost answer, only commits after `target` are searched.
    """
    session, hashes = server.session, change.commits
    target = branch_to_write(session, change.branch, "transplant")
    if NO_ANCESTOR in hashes:
        raise CommitNotFound(f"Commit '{NO_ANCESTOR}' not found", NO_ANCESTOR)
    if change.options.any_order and not _are_neighbours(session, hashes):
        raise session.too_old("transplant commits that are not neighbours")
    combination = Combination(target, hashes, change.options, is_transplant=True)
    return _send_planned(server, combination, lambda planned: _send_transplant(server, planned))


def _send_transplant(server: Server, combination: Combination) -> MergeResult:
    session, options = server.session, combination.options
    body: dict[str, Any] = {
        "fromRefName": combination.target.name,
        "hashesToTransplant": combination.sources,
        **merge_body(_bound(server, combination)),
    }
    if options.meta is not None:
        body["message"] = options.meta.message
    # A transplant leaves no trace of its request, so an error must not name an id to look for.
    return _combine(
        server,
        "transplant",
        combination,
        body,
        look_up=lambda: _find_sent_transplant(session, combination),
    )


def _send_planned(server: Server, combination: Combination, send: SendCombination) -> MergeResult:
    """Sends a merge or transplant as `_planned` does.

    The decisions about conflicts of a transplant of several commits are tried: the original server
    (0.99.0) fails if one leaves out a content that a later commit changes.
    """
    try:
        return _planned(server, combination, send)
    except MergeConflict as error:
        if len(combination.sources) > 1 and not combination.options.per_key:
            tried, others = error.conflicts[:MOST_TRIED], error.conflicts[MOST_TRIED:]
            possible = (_with_possible_options(server, combination, send, c) for c in tried)
            error.conflicts = (*possible, *others)
        raise


def _with_possible_options(
    server: Server, combination: Combination, send: SendCombination, conflict: Conflict
) -> Conflict:
    """Returns a conflict with those decisions that the server does not fail to carry out."""
    key, options = conflict.key, combination.options
    if key is None:
        return conflict

    def is_possible(behavior: MergeBehavior) -> bool:
        decision = KeyBehavior(
            key, behavior, content_id=conflict.content_id, commit=conflict.commit
        )
        behaviors = [*options.behaviors, decision]
        trial = structs.replace(options, behaviors=behaviors, dry_run=True)
        try:
            _planned(server, combination._replace(options=trial), send)
        except (InvalidInput, StoreUnavailable):
            return False
        except ReferenceConflict:
            # Other conflicts are left, or the error says what to do first.
            return True
        return True

    possible = tuple(each for each in conflict.options if is_possible(each.behavior))
    return structs.replace(conflict, options=possible)


def _planned(server: Server, combination: Combination, send: SendCombination) -> MergeResult:
    """Sends a merge or transplant, if necessary with decisions per key that follow renames.

    Raises `ReferenceMoved` if a key that is changed or decided has changed since the expected hash.
    """
    options = combination.options
    if options.expected_hash not in (None, combination.target.hash) and not options.per_key:
        _refuse_changed(server, combination, send)
    replay = replayed(server, combination)
    planned = None if replay is None else replay.plan()
    try:
        result = send(combination._replace(options=planned.options) if planned else combination)
    except ReferenceConflict as error:
        # The same rename on both sides shows only in a conflict.
        if planned is None and isinstance(error, MergeConflict):
            replay = replay or replayed(server, combination, is_refused=True)
            planned = None if replay is None else replay.plan()
        else:
            planned = None
        error.decided = None if replay is None else replay.decided
        if planned is None:
            if replay is not None:
                error.decided = _with_deleted(server.session, combination, replay.decided)
            raise
        result = send(combination._replace(options=planned.options))
    if planned is None or not result.details:
        return result
    return structs.replace(result, details=planned.details)


def _with_deleted(
    session: RestSession, combination: Combination, decided: MergeOption | None
) -> MergeOption | None:
    """Returns the effect of decisions, with all contents of the target that theirs deletes.

    The server decides about a key, also if another content has been created there since.
    """
    behaviors = combination.options.behaviors
    keys = [each.key for each in behaviors if each.behavior is MergeBehavior.FORCE]
    ours = contents(session, combination.target.hash, keys) if keys else {}
    theirs = contents(session, combination.sources[-1], keys) if keys else {}
    deleted = [k for k in ours if k not in theirs or theirs[k].id != ours[k].id]
    if not deleted:
        return decided
    decided = decided or MergeOption(MergeBehavior.NORMAL)
    return structs.replace(decided, deletes=tuple(dict.fromkeys((*decided.deletes, *deleted))))


def _refuse_changed(server: Server, combination: Combination, send: SendCombination) -> None:
    """Raises `ReferenceMoved` if the branch has changed a key since the expected hash.

    The server compares no keys with it. The keys are those of a dry run on the present state, and
    those of decided contents at both times: one can have been renamed or deleted since.
    """
    options, target = combination.options, combination.target
    expected = options.expected_hash
    assert expected is not None
    on_head = structs.replace(options, expected_hash=None, dry_run=True)
    ids = {behavior.content_id for behavior in options.behaviors}
    try:
        preview = _send_planned(server, combination._replace(options=on_head), send)
        keys = {detail.key for detail in preview.details}
        ids |= {
            detail.source.id
            for detail in preview.details
            if detail.source is not None and detail.behavior is not MergeBehavior.NORMAL
        }
    except MergeConflict as error:
        keys = {conflict.key for conflict in error.conflicts if conflict.key is not None}
    keys |= {behavior.key for behavior in options.behaviors if behavior.content_id is None}
    ids.discard(None)
    changed = [
        entry.key
        for entry in diff(server.session, expected, target.hash)
        if entry.key in keys or any(side and side.id in ids for side in (entry.before, entry.after))
    ]
    if changed:
        raise changed_since(target.name, expected, target.hash, changed)


def _are_neighbours(session: RestSession, hashes: Sequence[str]) -> bool:
    return all(commit_at(session, child).parent == parent for parent, child in pairwise(hashes))


def _combine(
    server: Server,
    verb: str,
    combination: Combination,
    body: dict[str, Any],
    *,
    look_up: Callable[[], MergeResult | None],
    request_id: str | None = None,
) -> MergeResult:
    session, options = server.session, combination.options
    target, sources = combination.target, combination.sources
    at = segment(f"{target.name}@{options.expected_hash or target.hash}")
    request = WriteRequest("POST", f"trees/{at}/history/{verb}", body)
    try:
        answer = request.send(session, request_id=request_id or "", safe=options.dry_run)
    except Lost as lost:
        return look_up_outcome(lost, look_up)
    except ReferenceConflict as conflict:
        raise with_current_namespaces(server, conflict, verb, target.name, sources[-1]) from None
    decoded = understood(answer, answers.decode_merge, verb)
    detailed = AnswerByKey if options.per_key else AnswerOfUnmovedContents
    return detailed(server, decoded, sources, options).result()


class AnswerOfUnmovedContents(AnswerByKey):
    """An answer to a merge per content in which each content has one key in all states."""

    def explained(self, conflicts: Sequence[Conflict]) -> list[Conflict]:
        """Returns conflicts with the ids and keys of their contents, and the decisions."""
        is_one_commit = self.answer.common_ancestor is None and len(self.sources) == 1
        commit = self.sources[0] if is_one_commit else None
        return [_of_unmoved_content(each, commit) for each in super().explained(conflicts)]


def _of_unmoved_content(conflict: Conflict, commit: str | None) -> Conflict:
    base, ours, theirs = conflict.expected, conflict.actual, conflict.proposed
    content = theirs or ours or base
    return structs.replace(
        conflict,
        content_id=content.id if content else None,
        base_key=conflict.key if base else None,
        theirs_key=conflict.key if theirs else None,
        commit=commit,
        options=_options(conflict),
    )


def _options(conflict: Conflict) -> tuple[MergeOption, ...]:
    """Returns the decisions about a conflict of unmoved contents."""
    key, ours, theirs = conflict.key, conflict.actual, conflict.proposed
    if key is None or conflict.type in OF_NAMESPACES:
        return ()
    is_other = ours is not None and theirs is not None and ours.id != theirs.id
    is_deleted = ours is not None and (theirs is None or is_other)
    return (
        MergeOption(MergeBehavior.FORCE, deletes=(key,) if is_deleted else ()),
        MergeOption(MergeBehavior.DROP, leaves_out=(key,) if is_other else ()),
    )


# -- lost answers --------------------------------------------------------------------------------


def _find_sent_merge(
    session: RestSession, combination: Combination, request_id: str | None
) -> MergeResult | None:
    """Returns the merge that was sent, found by its request id, or by second parent and message."""
    target, options = combination.target, combination.options
    for entry in newer_commits(session, target, operations=False):
        if request_id:
            is_sent = entry.meta.properties.get(REQUEST_ID) == (request_id,)
        else:
            is_sent = entry.meta.parents[1:] == (combination.sources[-1],) and (
                options.meta is None or options.meta.message in ("", entry.meta.message)
            )
        if is_sent:
            return _merge_of(session, target, entry.hash, options)
    return None


def _find_sent_transplant(session: RestSession, combination: Combination) -> MergeResult | None:
    """Returns the transplant that was sent, found by all of its commits, in order."""
    target, sources, options = combination.target, combination.sources, combination.options
    originals = [commit_at(session, source) for source in sources]
    message = options.meta.message if options.meta is not None and len(sources) == 1 else None
    last = run_of(list(newer_commits(session, target, operations=True)), originals, message)
    return None if last is None else _applied(target, target.hash, last.hash, None, options)


def _merge_of(
    session: RestSession, target: Reference, hash_: str, options: MergeOptions
) -> MergeResult:
    """Returns the result of an earlier merge, as far as its commit contains it."""
    commit = commit_at(session, hash_)
    parents = commit.meta.parents or (commit.parent,)
    base = Ancestry(session).merge_base(parents[0], parents[-1])
    return _applied(target, parents[0], hash_, base, options)


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
