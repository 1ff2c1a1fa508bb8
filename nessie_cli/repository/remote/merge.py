"""Merges and transplants on our own servers, and the details of their answers on any server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import structs

from nessie_cli.errors import MergeConflict, ReferenceConflict
from nessie_cli.kernel.conflicts import OF_NAMESPACES, merge_message
from nessie_cli.model import (
    NO_ANCESTOR,
    Conflict,
    ConflictType,
    Content,
    ContentKey,
    ContentPlace,
    LogEntry,
    MergeBehavior,
    MergeDetail,
    MergeOption,
    MergeResult,
    Put,
    Reference,
)
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.repository.remote import references
from nessie_cli.repository.remote.ancestry import Ancestry
from nessie_cli.repository.remote.bodies import client_meta, merge_body
from nessie_cli.repository.remote.commit import path_expecting
from nessie_cli.repository.remote.contents import contents
from nessie_cli.repository.remote.diagnosis import (
    State,
    changes_since,
    keys_of,
    with_details,
    with_namespaces,
)
from nessie_cli.repository.remote.history import commit_at, entries_of
from nessie_cli.repository.remote.once import Sent, send_once
from nessie_cli.repository.remote.session import Session
from nessie_cli.wire import answers
from nessie_cli.wire.extensions import ANY_ORDER


def merge(session: Session, branch: str, source: Reference, options: MergeOptions) -> MergeResult:
    """See `Repository`."""
    body = {"fromRefName": source.name or "DETACHED", "fromHash": source.hash}
    return _combine(session, "merge", branch, body, sources=[source.hash], options=options)


def transplant(
    session: Session, branch: str, hashes: Sequence[str], options: MergeOptions
) -> MergeResult:
    """See `Repository`."""
    body = {"fromRefName": "DETACHED", "hashesToTransplant": hashes, ANY_ORDER: options.any_order}
    return _combine(session, "transplant", branch, body, sources=hashes, options=options)


def _combine(
    session: Session,
    verb: str,
    branch: str,
    body: dict[str, Any],
    *,
    sources: Sequence[str],
    options: MergeOptions,
) -> MergeResult:
    body = {
        **body,
        **merge_body(options),
        "perContent": not options.per_key,
        "allowUnrelatedHistories": options.unrelated,
    }
    if options.meta is not None:
        body["commitMeta"] = client_meta(options.meta)
    path = f"{path_expecting(session, branch, options.expected_hash)}/history/{verb}"
    try:
        answer = send_once(
            session,
            Sent("POST", path, body),
            options.request_id,
            answers.decode_merge,
            safe=options.dry_run,
        )
    except ReferenceConflict as conflict:
        raise with_current_namespaces(
            session, conflict, verb, references.full_name(session, branch), sources[-1]
        ) from None
    return completed(session, answer, sources, options)


def with_current_namespaces(
    session: Session, conflict: ReferenceConflict, verb: str, branch: str, source: str
) -> ReferenceConflict:
    """The conflict that prevents a merge before keys are compared, with the current namespaces."""
    keys = keys_of(conflict.conflicts)
    if not keys:
        return conflict
    head = references.get(session, branch).hash
    base = NO_ANCESTOR if verb == "transplant" else Ancestry(session).merge_base(head, source)
    now = contents(session, head, keys)
    details = with_namespaces(
        conflict.conflicts, now, changes_since(session, keys, base, head, now)
    )
    return ReferenceConflict(
        conflict.message, details, reference=branch, head=head, expected_hash=base
    )


def completed(
    session: Session, answer: answers.MergeAnswer, sources: Sequence[str], options: MergeOptions
) -> MergeResult:
    """The answer with the contents of both sides and the details of its conflicts.

    Raises `MergeConflict` if it has any.
    """
    conflicts = [detail.conflict for detail in answer.details if detail.conflict is not None]
    if conflicts:
        conflicts = _explained(session, answer, sources, options, conflicts)
    result = MergeResult(
        target_branch=answer.target_branch,
        effective_target_hash=answer.effective_target_hash,
        resultant_hash=answer.resultant_hash,
        common_ancestor=answer.common_ancestor,
        expected_hash=options.expected_hash,
        applied=answer.applied,
        successful=answer.successful,
        details=_details(session, answer, sources, options, conflicts),
        skipped=answer.skipped,
    )
    if not answer.successful:
        raise MergeConflict(merge_message(conflicts), conflicts, result)
    return result


def _details(
    session: Session,
    answer: answers.MergeAnswer,
    sources: Sequence[str],
    options: MergeOptions,
    conflicts: Sequence[Conflict],
) -> tuple[MergeDetail, ...]:
    """The keys of an answer with their contents."""
    head, keys = answer.effective_target_hash, [detail.key for detail in answer.details]
    at_target = contents(session, head, keys) if keys else {}
    by_key = {conflict.key: conflict for conflict in conflicts}
    if not options.per_key and session.server.extensions:
        return _of_contents(session, answer.details, at_target, options, by_key)
    if options.any_order and len(sources) > 1 and keys:
        _, at_source = _of_commits(session, reversed(entries_of(session, sources)), keys)
    else:
        at_source = contents(session, sources[-1], keys) if keys else {}
    resolved = {behavior.key: behavior.resolved for behavior in options.behaviors}

    def completed(detail: MergeDetail) -> MergeDetail:
        key, target = detail.key, at_target.get(detail.key)
        source, conflict = at_source.get(key), by_key.get(key)
        is_ours = detail.behavior is MergeBehavior.DROP
        result = None if conflict else target if is_ours else resolved.get(key) or source
        return structs.replace(
            detail, conflict=conflict, source=source, target=target, result=result
        )

    return tuple(map(completed, answer.details))


def _of_contents(
    session: Session,
    details: Sequence[MergeDetail],
    at_target: State,
    options: MergeOptions,
    conflicts: Mapping[ContentKey | None, Conflict],
) -> tuple[MergeDetail, ...]:
    """The keys of a merge per content, whose contents are in the places that the server names."""
    read = _Contents(session)
    for detail in details:
        for place in (detail.source_at, detail.result_at):
            if place is not None:
                read.want(place.hash, [place.key])
    resolved = {given.resolved.id: given.resolved for given in options.behaviors if given.resolved}

    def at(place: ContentPlace | None) -> Content | None:
        return read.content(place.hash, place.key) if place else None

    def completed(detail: MergeDetail) -> MergeDetail:
        target, conflict = at_target.get(detail.key), conflicts.get(detail.key)
        source = conflict.proposed if conflict else at(detail.source_at)
        result = at(detail.result_at)
        if detail.is_resolved and (content := source or target) is not None:
            result = resolved.get(content.id)
        return structs.replace(
            detail,
            conflict=conflict,
            source=source,
            target=target,
            result=None if conflict else result,
        )

    return tuple(map(completed, details))


def _explained(
    session: Session,
    answer: answers.MergeAnswer,
    sources: Sequence[str],
    options: MergeOptions,
    conflicts: Sequence[Conflict],
) -> list[Conflict]:
    """The conflicts of a merge with what both sides have made of their keys."""
    if not options.per_key and session.server.extensions:
        return _explained_contents(session, answer, sources, conflicts)
    head, keys = answer.effective_target_hash, keys_of(conflicts)
    before, proposed = _both_sides(session, answer.common_ancestor, sources, keys)
    expected = {
        **before,
        **{
            chosen.key: chosen.expected_target
            for chosen in options.behaviors
            if chosen.expected_target is not None
        },
    }
    now = contents(session, head, keys)
    explained = with_details(
        conflicts,
        expected,
        now,
        proposed,
        changes_since(session, keys, answer.common_ancestor, head, now),
    )
    if options.per_key:
        return list(explained)
    commit = sources[0] if answer.common_ancestor is None and len(sources) == 1 else None
    return [_of_unmoved_content(conflict, commit) for conflict in explained]


def _of_unmoved_content(conflict: Conflict, commit: str | None) -> Conflict:
    """The conflict of a content that has one key in all states, with its id and keys."""
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
    """The decisions about a conflict of unmoved contents."""
    key, ours, theirs = conflict.key, conflict.actual, conflict.proposed
    if key is None or conflict.type in OF_NAMESPACES:
        return ()
    is_other = ours is not None and theirs is not None and ours.id != theirs.id
    is_deleted = ours is not None and (theirs is None or is_other)
    return (
        MergeOption(MergeBehavior.FORCE, deletes=(key,) if is_deleted else ()),
        MergeOption(MergeBehavior.DROP, leaves_out=(key,) if is_other else ()),
    )


def _explained_contents(
    session: Session,
    answer: answers.MergeAnswer,
    sources: Sequence[str],
    conflicts: Sequence[Conflict],
) -> list[Conflict]:
    """The conflicts of a merge per content, with the contents in the three states."""
    head = answer.effective_target_hash
    read = _Contents(session)
    read.want(head, [conflict.key for conflict in conflicts])
    for conflict in conflicts:
        read.want(_base_of(session, answer, conflict), [conflict.base_key])
        read.want(conflict.commit or sources[-1], [conflict.theirs_key])
    keys = keys_of(conflicts)
    changed_by = changes_since(session, keys, answer.common_ancestor, head, read.state(head))

    def completed(conflict: Conflict) -> Conflict:
        if conflict.content_id is None:
            (complete,) = with_namespaces([conflict], read.state(head), changed_by)
            return complete
        return structs.replace(
            conflict,
            expected=read.content(_base_of(session, answer, conflict), conflict.base_key),
            actual=_on_ours(conflict, read.content(head, conflict.key)),
            proposed=read.content(conflict.commit or sources[-1], conflict.theirs_key),
            changed_by=changed_by.get(conflict.key) if conflict.key else None,
        )

    return list(map(completed, conflicts))


def _on_ours(conflict: Conflict, present: Content | None) -> Content | None:
    """The content of ours in a conflict: the one that is present at its key, or None.

    If ours does not have the content in conflict, another one may be present there. It counts only
    if both claim the key.
    """
    is_claim = conflict.type is ConflictType.KEY_EXISTS
    is_same = present is not None and present.id == conflict.content_id
    return present if is_claim or is_same else None


def _base_of(session: Session, answer: answers.MergeAnswer, conflict: Conflict) -> str:
    """The base of a conflict: the merge base, or the parent of the transplanted commit."""
    if conflict.commit is not None:
        return commit_at(session, conflict.commit).parent
    return answer.common_ancestor or NO_ANCESTOR


class _Contents:
    """Reads contents by commit and key, those of one commit together."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._keys: dict[str, set[ContentKey]] = {}
        self._states: dict[str, State] = {}

    def want(self, hash_: str, keys: Iterable[ContentKey | None]) -> None:
        """Adds keys that will be read. Nothing may have been read before."""
        self._keys.setdefault(hash_, set()).update(key for key in keys if key is not None)

    def state(self, hash_: str) -> State:
        """The contents of a commit under its keys."""
        if hash_ not in self._states:
            keys = self._keys.get(hash_, set())
            self._states[hash_] = contents(self._session, hash_, sorted(keys)) if keys else {}
        return self._states[hash_]

    def content(self, hash_: str, key: ContentKey | None) -> Content | None:
        """The content under a key, or None."""
        return None if key is None else self.state(hash_).get(key)


def _both_sides(
    session: Session, base: str | None, sources: Sequence[str], keys: Sequence[ContentKey]
) -> tuple[State, State]:
    """The contents that the source started from, and its own.

    In a transplant, of the first commit with an operation on the key.
    """
    if base is not None:
        return contents(session, base, keys), contents(session, sources[-1], keys)
    return _of_commits(session, entries_of(session, sources), keys)


def _of_commits(
    session: Session, entries: Iterable[LogEntry], keys: Sequence[ContentKey]
) -> tuple[State, State]:
    """The contents before and after the first of some commits with an operation on the key."""
    before: dict[ContentKey, Content] = {}
    proposed: dict[ContentKey, Content] = {}
    missing = set(keys)
    for entry in entries:
        touched = {
            operation.key: operation
            for operation in entry.operations or ()
            if operation.key in missing
        }
        if touched:
            before |= contents(session, entry.parent, touched)
            proposed |= {
                key: operation.content
                for key, operation in touched.items()
                if isinstance(operation, Put)
            }
            missing -= touched.keys()
    return before, proposed
