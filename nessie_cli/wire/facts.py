"""Encodes the JSON of the command line: the shapes of REST v2 with facts for diagnostics.

Each function returns the shape of its namesake in `encode` with attributes added, none renamed or
removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import to_builtins

from nessie_cli.errors import (
    AlreadyExists,
    AmbiguousHash,
    DamagedObject,
    MergeConflict,
    NessieError,
    NotFound,
    OutcomeUnknown,
    ReferenceConflict,
    Resolution,
)
from nessie_cli.model import (
    CommitResult,
    Conflict,
    ContentKey,
    Entry,
    LogEntry,
    MergeDetail,
    MergeResult,
    Problem,
    ReflogEntry,
    Rename,
)
from nessie_cli.wire import commits, entries, references
from nessie_cli.wire.encode import (
    ENCODERS,
    Json,
    encode_commit_meta,
    encode_commit_result,
    encode_conflict,
    encode_entry,
    encode_error_line,
    encode_key,
    encode_log_entry,
    encode_merge_detail,
    encode_merge_result,
    encode_optional_content,
    error_details,
    instant,
)


def conflict_with_facts(
    conflict: Conflict, resolutions: Sequence[Resolution] = (), *, is_merge: bool = False
) -> Json:
    """Encodes a conflict with its contents, the changing commit, and its resolutions.

    A merge also names the contents `base`, `ours` and `theirs`. `sourceRename` and `targetRename`
    are present only if one side of a merge renamed the content.
    """
    states = {
        "expected": encode_optional_content(conflict.expected),
        "actual": encode_optional_content(conflict.actual),
        "proposed": encode_optional_content(conflict.proposed),
    }
    of_merge = (
        dict(zip(("base", "ours", "theirs"), states.values(), strict=True)) if is_merge else {}
    )
    body = {
        **encode_conflict(conflict),
        **states,
        **of_merge,
        "changedBy": encode_commit_meta(conflict.changed_by) if conflict.changed_by else None,
        "resolutions": [resolution.command for resolution in resolutions],
        "effects": [resolution.effect for resolution in resolutions],
    }
    return body | content_of_conflict(conflict)


def content_of_conflict(conflict: Conflict) -> Json:
    """Encodes the content behind a conflict of a merge: its id, its keys and its renames."""
    sides = (("sourceRename", conflict.source_rename), ("targetRename", conflict.target_rename))
    body: Json = {name: _rename(rename) for name, rename in sides if rename}
    if conflict.content_id is None:
        return body
    body |= {
        "contentId": conflict.content_id,
        "baseKey": _optional_key(conflict.base_key),
        "theirsKey": _optional_key(conflict.theirs_key),
        "keyIsAmbiguous": conflict.is_ambiguous,
    }
    return body | ({"commit": conflict.commit} if conflict.commit else {})


def options_of_conflict(conflict: Conflict) -> Json:
    """Encodes the possible decisions about a conflict, and what they do to other contents."""
    if not conflict.options:
        return {}
    return {
        "options": [
            {
                "behavior": option.behavior.value,
                "deletes": list(map(encode_key, option.deletes)),
                "renames": [
                    {"from": encode_key(old), "to": encode_key(new)} for old, new in option.renames
                ],
                "leavesOut": list(map(encode_key, option.leaves_out)),
            }
            for option in conflict.options
        ]
    }


def places_of_detail(detail: MergeDetail) -> Json:
    """Encodes where the contents of a detail can be read, or that the caller has the result."""
    places = (("sourceAt", detail.source_at), ("resultAt", detail.result_at))
    body: Json = {
        name: {"hash": place.hash, "key": encode_key(place.key)} for name, place in places if place
    }
    return body | ({"isResolved": True} if detail.is_resolved else {})


def _optional_key(key: ContentKey | None) -> Json | None:
    return encode_key(key) if key is not None else None


def _rename(rename: Rename) -> Json:
    by = encode_commit_meta(rename.by) if rename.by else None
    return {"from": encode_key(rename.old), "to": encode_key(rename.new), "by": by}


def error_with_facts(error: NessieError) -> Json:
    """Encodes an error as the command line prints it, with the facts of its conflicts."""
    body = encode_error_line(error)
    details = _details(error)
    return body | {"errorDetails": details} if details else body


def _details(error: NessieError) -> Json | None:
    if isinstance(error, ReferenceConflict) and (error.conflicts or error.reference):
        conflicts = [
            conflict_with_facts(c, error.resolutions(c), is_merge=error.is_merge)
            for c in error.conflicts
        ]
        where = {
            "reference": error.reference,
            "hash": error.head,
            "expectedHash": error.expected_hash,
        }
        merge = (
            {"mergeResult": encode_merge_result(error.result)}
            if isinstance(error, MergeConflict)
            else {}
        )
        return {"type": "REFERENCE_CONFLICTS", "conflicts": conflicts} | where | merge
    if isinstance(error, AmbiguousHash):
        return {
            "type": "HASH_CANDIDATES",
            "candidates": [{"hash": h, "message": subject} for h, subject in error.candidates],
        }
    if isinstance(error, OutcomeUnknown):
        return {"type": "REQUEST", "requestId": error.request_id}
    if isinstance(error, DamagedObject) and error.object_id:
        return {"type": "OBJECT", "objectId": error.object_id}
    found = error_details(error)
    return (
        {"type": "NAME", "name": error.name}
        if found is None and isinstance(error, NotFound | AlreadyExists) and error.name
        else found
    )


def merge_with_facts(result: MergeResult) -> Json:
    """Encodes the result of a merge: each key with the contents of both sides and its conflict."""

    def detail(of: MergeDetail) -> Json:
        body = encode_merge_detail(of) | {
            "source": encode_optional_content(of.source),
            "target": encode_optional_content(of.target),
            "result": encode_optional_content(of.result),
        }
        if of.conflict:
            body["conflict"] = conflict_with_facts(of.conflict, is_merge=True)
        return body

    return encode_merge_result(result, detail) | skipped_commits(result)


def skipped_commits(result: MergeResult) -> Json:
    """Encodes the transplanted commits whose changes the branch already had."""
    return {"skippedCommits": list(result.skipped)} if result.skipped else {}


def commit_with_facts(result: CommitResult) -> Json:
    """Encodes the result of a commit, and whether it was applied (false for a dry run)."""
    return encode_commit_result(result) | {"wasApplied": result.applied}


def log_entry_with_facts(entry: LogEntry) -> Json:
    """Encodes a commit of a log with its height."""
    return encode_log_entry(entry) | {"height": entry.height}


def entry_with_facts(entry: Entry) -> Json:
    """Encodes a key of a commit's state with its value hash and cache key."""
    return encode_entry(entry) | {"valueHash": entry.value_hash, "cacheKey": entry.cache_key}


ENCODERS |= {
    commits.CommitOutcome: commit_with_facts,
    commits.LogEntry: log_entry_with_facts,
    entries.Entry: entry_with_facts,
}


def reflog_entry(entry: ReflogEntry) -> Json:
    """Encodes an entry of the reflog."""
    body: Json = to_builtins(
        references.ReflogEntry(
            number=entry.number,
            reference=entry.reference,
            type=entry.type.value,
            before=entry.before,
            after=entry.after,
            time=instant(entry.time) or "",
            who=entry.who,
            operation=entry.operation,
            message=entry.message,
            request_id=entry.request_id,
            value_before=entry.value_before,
            value_after=entry.value_after,
        )
    )
    return body


ENCODERS[references.ReflogEntry] = reflog_entry


def problem(found: Problem) -> dict[str, Any]:
    """Encodes a problem that `fsck` found."""
    return {"kind": found.kind.value, "where": found.where, "message": found.message}
