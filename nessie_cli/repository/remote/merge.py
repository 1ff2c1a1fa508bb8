"""Merges and transplants on our own servers, and the details of their answers on any server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from nessie_cli.errors import MergeConflict, ReferenceConflict
from nessie_cli.kernel.conflicts import merge_message
from nessie_cli.model import (
    NO_ANCESTOR,
    Conflict,
    Content,
    ContentKey,
    LogEntry,
    MergeDetail,
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
from nessie_cli.repository.remote.history import commit_at, log
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
        "followRenames": options.follow_renames,
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
    head, keys = answer.effective_target_hash, [key for key, _, _ in answer.details]
    at_target = contents(session, head, keys) if keys else {}
    if options.any_order and len(sources) > 1 and keys:
        _, at_source = _of_commits(session, reversed(_entries(session, sources)), keys)
    else:
        at_source = contents(session, sources[-1], keys) if keys else {}
    conflicts = [conflict for _, _, conflict in answer.details if conflict is not None]
    if conflicts:
        conflicts = _explained(session, answer, sources, options, conflicts)
    by_key = {conflict.key: conflict for conflict in conflicts}
    result = MergeResult(
        target_branch=answer.target_branch,
        effective_target_hash=head,
        resultant_hash=answer.resultant_hash,
        common_ancestor=answer.common_ancestor,
        expected_hash=options.expected_hash,
        applied=answer.applied,
        successful=answer.successful,
        details=tuple(
            MergeDetail(key, behavior, by_key.get(key), at_source.get(key), at_target.get(key))
            for key, behavior, _ in answer.details
        ),
    )
    if not answer.successful:
        raise MergeConflict(merge_message(conflicts), conflicts, result)
    return result


def _explained(
    session: Session,
    answer: answers.MergeAnswer,
    sources: Sequence[str],
    options: MergeOptions,
    conflicts: Sequence[Conflict],
) -> list[Conflict]:
    """The conflicts of a merge with what both sides have made of their keys."""
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
    return list(
        with_details(
            conflicts,
            expected,
            now,
            proposed,
            changes_since(session, keys, answer.common_ancestor, head, now),
        )
    )


def _both_sides(
    session: Session, base: str | None, sources: Sequence[str], keys: Sequence[ContentKey]
) -> tuple[State, State]:
    """The contents that the source started from, and its own.

    In a transplant, of the first commit with an operation on the key.
    """
    if base is not None:
        return contents(session, base, keys), contents(session, sources[-1], keys)
    return _of_commits(session, _entries(session, sources), keys)


def _entries(session: Session, hashes: Sequence[str]) -> list[LogEntry]:
    """Returns the transplanted commits in order, with their operations."""
    found = list(islice(log(session, hashes[-1], operations=True), len(hashes)))[::-1]
    if [entry.hash for entry in found] == list(hashes):
        return found
    return [commit_at(session, hash_) for hash_ in hashes]


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
