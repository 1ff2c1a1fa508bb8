"""A server's answers to the values of the model: what any server that speaks REST v2 may send, ours or another.

Guarded like everything from outside, but open: unknown attributes are passed over, an unknown content type is kept as it came, an unknown conflict
type becomes UNKNOWN. A fault says that the server's answer is not understood, never that the user did something wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from nessie_cli.errors import (
    AlreadyExists,
    CommitNotFound,
    ContentNotFound,
    InvalidInput,
    NessieError,
    NotAllowed,
    NotFound,
    ReferenceConflict,
    ReferenceMoved,
    ReferenceNotFound,
    StoreUnavailable,
)
from nessie_cli.model import (
    CommitMeta,
    Conflict,
    ConflictType,
    Content,
    ContentKey,
    Delete,
    LogEntry,
    MergeBehavior,
    Operation,
    Put,
    Reference,
    ReferenceMetadata,
    ReferenceType,
    ReflogEntry,
    Rename,
)
from nessie_cli.wire.decode import decode_content_value, decode_instant, decode_key
from nessie_cli.wire.guards import Guard, JsonObject, check

T = TypeVar("T")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Stands for an instant that the server did not tell."""


class _MetaGuard(Guard):
    message: str = ""
    hash: str | None = None
    committer: str | None = None
    authors: list[str] | None = None
    all_signed_off_by: list[str] | None = None
    author_time: str | None = None
    commit_time: str | None = None
    all_properties: dict[str, list[str]] | None = None
    parent_commit_hashes: list[str] | None = None


class _ReferenceMetadataGuard(Guard):
    num_commits_ahead: int | None = None
    num_commits_behind: int | None = None
    commit_meta_of_head: JsonObject | None = None
    common_ancestor_hash: str | None = None
    num_total_commits: int | None = None


class _ReferenceGuard(Guard):
    type: str
    name: str = ""
    hash: str
    metadata: JsonObject | None = None


class _OperationGuard(Guard):
    type: str
    key: JsonObject
    content: JsonObject | None = None


class _LogEntryGuard(Guard):
    commit_meta: JsonObject
    parent_commit_hash: str | None = None
    operations: list[JsonObject] | None = None
    height: int = 0


class _PageGuard(Guard):
    has_more: bool = False
    token: str | None = None


class _ConflictGuard(Guard):
    conflict_type: str | None = None
    key: JsonObject | None = None
    message: str = ""
    source_rename: JsonObject | None = None
    target_rename: JsonObject | None = None


class _StateGuard(Guard):
    commit_hash: str
    meta: JsonObject | None = None


class _RecentChangesGuard(Guard):
    reference: JsonObject
    current: JsonObject | None = None
    previous: list[JsonObject] | None = None


class _ReflogGuard(Guard):
    number: int
    reference: str
    type: str
    before: str | None
    after: str | None
    time: str
    who: str
    operation: str
    message: str
    request_id: str


class _MergeGuard(Guard):
    resultant_target_hash: str | None = None
    common_ancestor: str | None = None
    target_branch: str
    effective_target_hash: str
    expected_hash: str | None = None
    details: list[JsonObject] | None = None
    was_applied: bool = False
    was_successful: bool = False


class MergeAnswer(NamedTuple):
    """A server's answer to a merge or transplant; `details` are key, behavior, conflict."""

    resultant_hash: str | None
    common_ancestor: str | None
    target_branch: str
    effective_target_hash: str
    applied: bool
    successful: bool
    details: tuple[tuple[ContentKey, MergeBehavior, Conflict | None], ...]


def understood(decode: Callable[[], T], what: str) -> T:
    """What `decode` answers; a fault in it is the server's, a `StoreUnavailable`."""
    try:
        return decode()
    except (InvalidInput, KeyError, TypeError, ValueError) as fault:
        raise StoreUnavailable(f"the server's answer is not understood ({what}): {fault}") from None


def _instant(text: str | None, path: str) -> datetime | None:
    return None if text is None else decode_instant(text, path)


def decode_meta(data: Any, path: str = "commitMeta") -> CommitMeta:
    """Commit metadata with what the server has set."""
    guard = check(_MetaGuard, data, path)
    return CommitMeta(
        message=guard.message,
        authors=tuple(guard.authors or ()),
        signed_off_by=tuple(guard.all_signed_off_by or ()),
        author_time=_instant(guard.author_time, f"{path}.authorTime"),
        properties={name: tuple(values) for name, values in (guard.all_properties or {}).items()},
        committer=guard.committer,
        commit_time=_instant(guard.commit_time, f"{path}.commitTime"),
        hash=guard.hash,
        parents=tuple(guard.parent_commit_hashes or ()),
    )


def decode_reference(data: Any, path: str = "reference") -> Reference:
    """A branch, tag or detached commit."""
    guard = check(_ReferenceGuard, data, path)
    metadata = None
    if guard.metadata is not None:
        found = check(_ReferenceMetadataGuard, guard.metadata, f"{path}.metadata")
        # The attribute ends in capitals, which no rule of names gives.
        head = guard.metadata.get("commitMetaOfHEAD")
        metadata = ReferenceMetadata(
            head=None if head is None else decode_meta(head, f"{path}.metadata.commitMetaOfHEAD"),
            total=found.num_total_commits,
            ahead=found.num_commits_ahead,
            behind=found.num_commits_behind,
            common_ancestor=found.common_ancestor_hash,
        )
    return Reference(ReferenceType(guard.type), guard.name, guard.hash, metadata)


def decode_content(data: Any, path: str = "content") -> Content:
    """A content, also of a type that this program does not know."""
    return decode_content_value(data, path, allow_unknown=True)


def decode_log_entry(data: Any) -> LogEntry:
    """One commit; the height is 0 where the server does not tell it."""
    guard = check(_LogEntryGuard, data, "logEntries")
    meta = decode_meta(guard.commit_meta)
    if not meta.parents and guard.parent_commit_hash:
        meta = _with_parent(meta, guard.parent_commit_hash)
    operations = None if guard.operations is None else tuple(decode_logged_operation(o) for o in guard.operations)
    return LogEntry(meta, guard.height, operations)


def _with_parent(meta: CommitMeta, parent: str) -> CommitMeta:
    from msgspec import structs

    return structs.replace(meta, parents=(parent,))


def decode_logged_operation(data: Any) -> Operation:
    """PUT or DELETE of a log."""
    guard = check(_OperationGuard, data, "operations")
    key = decode_key(guard.key)
    return Delete(key) if guard.type == "DELETE" else Put(key, decode_content(guard.content))


def decode_page(data: Any) -> str | None:
    """The token of the next page, None on the last one."""
    guard = check(_PageGuard, data, "")
    return guard.token if guard.has_more else None


def decode_conflict(data: Any) -> Conflict:
    """One conflict; of its facts, only renames are on the wire, and only of our own servers."""
    guard = check(_ConflictGuard, data, "conflict")
    name = (guard.conflict_type or "").upper()
    return Conflict(
        type=ConflictType(name) if name in ConflictType.__members__ else ConflictType.UNKNOWN,
        key=None if guard.key is None else decode_key(guard.key),
        message=guard.message,
        source_rename=_decode_rename(guard.source_rename),
        target_rename=_decode_rename(guard.target_rename),
    )


def _decode_rename(data: Any) -> Rename | None:
    if data is None:
        return None
    by = data.get("by")
    return Rename(decode_key(data["from"]), decode_key(data["to"]), None if by is None else decode_meta(by, "by"))


def decode_merge(data: Any) -> MergeAnswer:
    """The answer to a merge or transplant."""
    guard = check(_MergeGuard, data, "")
    details = []
    for detail in guard.details or ():
        conflict = detail.get("conflict")
        behavior = str(detail.get("mergeBehavior", "NORMAL"))
        details.append((decode_key(detail["key"]), MergeBehavior(behavior), None if conflict is None else decode_conflict(conflict)))
    return MergeAnswer(
        guard.resultant_target_hash,
        guard.common_ancestor,
        guard.target_branch,
        guard.effective_target_hash,
        guard.was_applied,
        guard.was_successful,
        tuple(details),
    )


# -- where references have been ---------------------------------------------------------------------------------------------------------------


def decode_recent_changes(data: Any) -> list[ReflogEntry]:
    """The former hashes of a reference, newest first. Who moved it and how is not on the wire: what is known is who made the commits, and when."""
    guard = check(_RecentChangesGuard, data, "")
    reference = decode_reference(guard.reference)
    states = [check(_StateGuard, state, "previous") for state in (guard.current, *(guard.previous or ())) if state is not None]
    found = []
    for index, state in enumerate(states):
        meta = None if state.meta is None else decode_meta(state.meta, "meta")
        found.append(
            ReflogEntry(
                number=len(states) - index,
                reference=reference.name,
                type=reference.type,
                before=states[index + 1].commit_hash if index + 1 < len(states) else None,
                after=state.commit_hash,
                time=(meta.commit_time if meta else None) or EPOCH,
                who=(meta.committer if meta else None) or "",
                operation="",
                message=meta.subject if meta else "",
                request_id="",
            )
        )
    return found


def decode_reflog_entry(data: Any) -> ReflogEntry:
    """One move of a reference, as our own servers tell it."""
    guard = check(_ReflogGuard, data, "reflog")
    return ReflogEntry(
        number=guard.number,
        reference=guard.reference,
        type=ReferenceType(guard.type),
        before=guard.before,
        after=guard.after,
        time=decode_instant(guard.time, "time"),
        who=guard.who,
        operation=guard.operation,
        message=guard.message,
        request_id=guard.request_id,
    )


# -- errors -------------------------------------------------------------------------------------------------------------------------------


def decode_error(status: int, body: Any, what: str) -> NessieError:
    """The error of an answer outside of 200 to 299; `what` was asked for. An answer that is no Nessie error is judged by its status."""
    if not isinstance(body, dict) or not isinstance(body.get("message"), str):
        return _by_status(status, f"{what}: the server answered {status}")
    message = body["message"].partition("\n")[0]
    details = body.get("errorDetails")
    details = details if isinstance(details, dict) else {}
    if body.get("errorCode") == "REFERENCE_CONFLICT":
        return _conflict(message, details)
    if body.get("errorCode") == "CONTENT_NOT_FOUND":
        return ContentNotFound(message, _key(details) or message)
    if body.get("errorCode") == "REFERENCE_NOT_FOUND":
        return ReferenceNotFound(message, _quoted(message)) if message.startswith("Named reference") else CommitNotFound(message, _quoted(message))
    if body.get("errorCode") == "REFERENCE_ALREADY_EXISTS":
        return AlreadyExists(message, _quoted(message))
    return _by_status(status, message)


def _conflict(message: str, details: Mapping[str, Any]) -> ReferenceConflict:
    found = [decode_conflict(item) for item in details.get("conflicts") or () if isinstance(item, dict)]
    if found and all(conflict.type is ConflictType.UNEXPECTED_HASH for conflict in found):
        return ReferenceMoved(message, found)
    return ReferenceConflict(message, found)


def _key(details: Mapping[str, Any]) -> ContentKey | None:
    key = details.get("contentKey")
    return decode_key(key) if isinstance(key, dict) else None


def _quoted(message: str) -> str:
    """What stands in the first single quotes: the name that a message is about."""
    parts = message.split("'")
    return parts[1] if len(parts) > 2 else ""  # noqa: PLR2004 - before, between and behind the quotes


_KINDS: Mapping[int, Callable[[str], NessieError]] = {
    400: InvalidInput,
    401: NotAllowed,
    403: NotAllowed,
    404: NotFound,
    409: ReferenceConflict,
    413: InvalidInput,
    415: InvalidInput,
}


def _by_status(status: int, message: str) -> NessieError:
    return _KINDS.get(status, StoreUnavailable)(message)
