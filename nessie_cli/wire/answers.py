"""Decodes the answers of any server that speaks REST v2 to values of the model.

Unknown attributes are ignored, attributes that are not necessary may be missing, a content of an
unknown type is kept unchanged, and an unknown conflict type becomes UNKNOWN. A fault means that the
server's answer is invalid, never that the user made a mistake.

msgspec checks the types, because it is loaded anyway: importing pydantic would take a third of the
time of a command that asks a server.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct, field, structs

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
    CollidingFile,
    Collision,
    CombinedTable,
    CommitMeta,
    Conflict,
    ConflictType,
    Content,
    ContentKey,
    ContentPlace,
    Delete,
    IcebergTable,
    LogEntry,
    MergeBehavior,
    MergeDetail,
    MergeOption,
    Operation,
    Put,
    Reference,
    ReferenceMetadata,
    ReferenceType,
    ReflogEntry,
    ReflogType,
    Rename,
    RowConflict,
    RowConflictKind,
    TableCombination,
)
from nessie_cli.wire import commits, contents, merges, references
from nessie_cli.wire.json_text import fault, join
from nessie_cli.wire.validation import checked
from nessie_cli.wire.values import content_of, decode_instant, key_of

T = TypeVar("T")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Represents an instant that the server did not send."""


class MergeAnswer(NamedTuple):
    """A server's answer to a merge or transplant; its details have no contents."""

    resultant_hash: str | None
    common_ancestor: str | None
    target_branch: str
    effective_target_hash: str
    applied: bool
    successful: bool
    details: tuple[MergeDetail, ...]
    skipped: tuple[str, ...] = ()
    has_several_bases: bool = False
    decided: MergeOption | None = None


_INVALID = (InvalidInput, LookupError, TypeError, AttributeError, ValueError, RecursionError)
"""The errors of a decoder if an answer has another structure than expected."""


def understood(decode: Callable[[], T], answer_name: str) -> T:
    """Returns the result of `decode`. A fault in it is the server's: a `StoreUnavailable`."""
    try:
        return decode()
    except _INVALID as fault:
        raise StoreUnavailable(f"the server's answer is invalid ({answer_name}): {fault}") from None


# -- answers of any server -------------------------------------------------------------------------


class _Page(Struct, rename="camel"):
    has_more: bool = False
    token: str | None = None


class _RecordedHead(Struct, rename="camel"):
    commit_hash: str
    meta: commits.CommitMeta | None = None


class _History(Struct):
    reference: dict[str, Any]
    current: _RecordedHead | None = None
    previous: list[_RecordedHead | None] = []


# Other servers may send null for a parent and for the type of a conflict.


class _AnyLogEntry(commits.LogEntry):
    parent_commit_hash: str | None = None  # type: ignore[assignment]


class _AnyConflict(merges.ConflictOfOurs):
    conflict_type: str | None = None  # type: ignore[assignment]


class _AnyMergeDetail(merges.MergeDetailOfOurs, omit_defaults=True):
    conflict: _AnyConflict | None = None


class _AnyMerge(merges.MergeOfOurs, kw_only=True):
    details: list[_AnyMergeDetail] = field(default_factory=list)  # type: ignore[assignment]


def decode_meta(data: Any, path: str = "commitMeta") -> CommitMeta:
    """Decodes commit metadata, with the attributes that the server sets."""
    return _commit_meta(checked(commits.CommitMeta, data, path), path)


def _commit_meta(meta: commits.CommitMeta, path: str) -> CommitMeta:
    author_time, commit_time = (
        None if text is None else decode_instant(text, join(path, name))
        for name, text in (("authorTime", meta.author_time), ("commitTime", meta.commit_time))
    )
    return CommitMeta(
        message=meta.message,
        authors=tuple(meta.authors),
        signed_off_by=tuple(meta.all_signed_off_by),
        author_time=author_time,
        properties={name: tuple(values) for name, values in meta.all_properties.items()},
        committer=meta.committer,
        commit_time=commit_time,
        hash=meta.hash,
        parents=tuple(meta.parent_commit_hashes),
    )


def _reference_metadata(
    metadata: references.ReferenceMetadata | None, path: str
) -> ReferenceMetadata | None:
    if metadata is None:
        return None
    head = metadata.commit_meta_of_head
    return ReferenceMetadata(
        None if head is None else _commit_meta(head, join(path, "commitMetaOfHEAD")),
        metadata.num_total_commits,
        metadata.num_commits_ahead,
        metadata.num_commits_behind,
        metadata.common_ancestor_hash,
    )


def decode_reference(data: Any, path: str = "reference") -> Reference:
    """Decodes a branch, tag or detached commit."""
    reference = checked(references.NamedReference, data, path)
    metadata = _reference_metadata(reference.metadata, join(path, "metadata"))
    return Reference(ReferenceType(reference.type), reference.name, reference.hash, metadata)


def decode_key(data: Any, path: str = "key") -> ContentKey:
    """Decodes a content key."""
    return key_of(checked(contents.Key, data, path), path, allow_empty=True)


def decode_content(data: Any, path: str = "content") -> Content:
    """Decodes a content, including one of an unknown type."""
    return content_of(data, path, allow_unknown=True)


def decode_log_entry(data: Any) -> LogEntry:
    """Decodes a commit; the height is 0 if the server does not send it."""
    entry = checked(_AnyLogEntry, data, "logEntries")
    meta = _commit_meta(entry.commit_meta, "logEntries.commitMeta")
    if not meta.parents and entry.parent_commit_hash:
        meta = structs.replace(meta, parents=(entry.parent_commit_hash,))
    operations = None if entry.operations is None else tuple(map(_operation, entry.operations))
    return LogEntry(meta, entry.height or 0, operations)


def _operation(operation: commits.LoggedPut | commits.LoggedDelete) -> Operation:
    key = key_of(operation.key, "key", allow_empty=True)
    if isinstance(operation, commits.LoggedDelete):
        return Delete(key)
    return Put(key, decode_content(operation.content))


def decode_page(data: Any) -> str | None:
    """Returns the token of the next page, or None on the last one."""
    page = checked(_Page, data, "")
    return page.token if page.has_more else None


def decode_conflict(data: Any) -> Conflict:
    """Decodes a conflict. Renames are present only between our own servers and clients."""
    return _conflict_of(checked(_AnyConflict, data, "conflict"), "conflict")


def _conflict_of(conflict: _AnyConflict, path: str) -> Conflict:
    name = (conflict.conflict_type or "").upper()
    return Conflict(
        type=ConflictType(name) if name in ConflictType.__members__ else ConflictType.UNKNOWN,
        key=_optional_key(conflict.key, path),
        message=conflict.message,
        source_rename=_rename(conflict.source_rename, join(path, "sourceRename")),
        target_rename=_rename(conflict.target_rename, join(path, "targetRename")),
        content_id=conflict.content_id,
        base_key=_optional_key(conflict.base_key or None, path),
        theirs_key=_optional_key(conflict.theirs_key or None, path),
        value_key=_optional_key(conflict.value_key, path),
        is_ambiguous=conflict.key_is_ambiguous is True,
        commit=conflict.commit,
        same_file_key=_optional_key(conflict.same_file_key, path),
        blocking_namespace=_optional_key(conflict.blocking_namespace, path),
        options=tuple(_option(option, join(path, "options")) for option in conflict.options),
        collisions=tuple(map(_collision, conflict.collisions)),
        actual_at=_place(conflict.actual_at, path),
        proposed_at=_place(conflict.proposed_at, path),
        actual=_optional_content(conflict.actual, path),
        proposed=_optional_content(conflict.proposed, path),
        changed_key=_optional_key(conflict.changed_key, path),
    )


def _collision(collision: merges.Collision) -> Collision:
    files = tuple(CollidingFile(f.path, f.partition, f.rows) for f in collision.files)
    rows = tuple(
        RowConflict(RowConflictKind(row.kind), row.key, row.column, row.base, row.ours, row.theirs)
        for row in collision.rows
    )
    return Collision(collision.reason, files, rows)


def _any_key(key: contents.Key, path: str) -> ContentKey:
    return key_of(key, join(path, "key"), allow_empty=True)


def _optional_key(key: contents.Key | None, path: str) -> ContentKey | None:
    return None if key is None else _any_key(key, path)


def _optional_content(content: contents.AnyContent | None, path: str) -> Content | None:
    return None if content is None else decode_content(content, path)


def _rename(rename: merges.Rename | None, path: str) -> Rename | None:
    if rename is None:
        return None
    by = None if rename.by is None else _commit_meta(rename.by, join(path, "by"))
    return Rename(_any_key(rename.old, path), _any_key(rename.new, path), by)


def _option(option: merges.MergeOption, path: str) -> MergeOption:
    return MergeOption(
        MergeBehavior(option.behavior),
        tuple(_any_key(key, path) for key in option.deletes),
        tuple(
            (_any_key(rename.old, path), _any_key(rename.new, path)) for rename in option.renames
        ),
        tuple(_any_key(key, path) for key in option.leaves_out),
    )


def decode_merge(data: Any) -> MergeAnswer:
    """Decodes the answer to a merge or transplant."""
    merge = checked(_AnyMerge, data, "")
    if merge.effective_target_hash is None:
        raise fault("effectiveTargetHash", "is missing")
    return MergeAnswer(
        merge.resultant_target_hash,
        merge.common_ancestor,
        merge.target_branch,
        merge.effective_target_hash,
        merge.was_applied,
        merge.was_successful,
        tuple(
            _merge_detail(detail, join("details", index))
            for index, detail in enumerate(merge.details)
        ),
        tuple(merge.skipped_commits),
        merge.has_several_bases,
        None if merge.decided is None else _option(merge.decided, "decided"),
    )


def _merge_detail(detail: _AnyMergeDetail, path: str) -> MergeDetail:
    return MergeDetail(
        _any_key(detail.key, path),
        MergeBehavior(detail.merge_behavior),
        conflict=None
        if detail.conflict is None
        else _conflict_of(detail.conflict, join(path, "conflict")),
        source_at=_place(detail.source_at, path),
        result_at=_place(detail.result_at, path),
        is_resolved=detail.is_resolved,
        result=_optional_content(detail.resolved_content, path),
        combination=None if detail.combination is None else _combination(detail.combination),
    )


def decode_combined_table(data: Any) -> CombinedTable:
    """Decodes a combined table. It is empty if the server has no access to its files."""
    table = checked(merges.CombinedTable, data, "")
    content = None if table.content is None else decode_content(table.content)
    if content is not None and not isinstance(content, IcebergTable):
        raise fault("content", "is not a table")
    return CombinedTable(
        content,
        None if table.combination is None else _combination(table.combination),
        tuple(map(_collision, table.collisions)),
    )


def _combination(combination: merges.TableCombination) -> TableCombination:
    return TableCombination(
        combination.added_files,
        combination.removed_files,
        combination.added_rows,
        combination.removed_rows,
        tuple(combination.notes),
    )


def _place(place: merges.ContentPlace | None, path: str) -> ContentPlace | None:
    return None if place is None else ContentPlace(place.hash, _any_key(place.key, path))


# -- former hashes of references -------------------------------------------------------------------


def decode_recent_changes(data: Any) -> list[ReflogEntry]:
    """Decodes the former hashes of a reference, newest first.

    The answer does not contain who moved the reference and how, only who made the commits.
    """
    history = checked(_History, data, "")
    reference = decode_reference(history.reference)
    states = [state for state in (history.current, *history.previous) if state is not None]
    entries = []
    for index, state in enumerate(states):
        meta = None if state.meta is None else _commit_meta(state.meta, "previous.meta")
        entries.append(
            ReflogEntry(
                number=len(states) - index,
                reference=reference.name,
                type=ReflogType(reference.type),
                before=states[index + 1].commit_hash if index + 1 < len(states) else None,
                after=state.commit_hash,
                time=(meta.commit_time if meta else None) or EPOCH,
                who=(meta.committer if meta else None) or "",
                operation="",
                message=meta.subject if meta else "",
                request_id="",
            )
        )
    return entries


def decode_reflog_entry(data: Any) -> ReflogEntry:
    """Decodes an entry of the reflog, as our own servers send it."""
    entry = checked(references.ReflogEntry, data, "reflog")
    return ReflogEntry(
        **structs.asdict(entry)
        | {
            "type": ReflogType(entry.type),
            "time": decode_instant(entry.time, "reflog.time"),
        }
    )


# -- errors ----------------------------------------------------------------------------------------


def decode_error(status: int, body: Any, request: str) -> NessieError:
    """Returns the error of an answer outside of 200 to 299. `request` names the request.

    The status decides if the answer is not a Nessie error.
    """
    if not isinstance(body, dict) or not isinstance(body.get("message"), str):
        return _by_status(status, f"{request}: the server answered {status}")
    message = body["message"].partition("\n")[0]
    details = body.get("errorDetails")
    details = details if isinstance(details, dict) else {}
    if body.get("errorCode") == "REFERENCE_CONFLICT":
        return _conflict(message, details)
    if body.get("errorCode") == "CONTENT_NOT_FOUND":
        return ContentNotFound(message, _key(details) or message)
    if body.get("errorCode") == "REFERENCE_NOT_FOUND":
        return (
            ReferenceNotFound(message, _quoted(message))
            if message.startswith("Named reference")
            else CommitNotFound(message, _quoted(message))
        )
    if body.get("errorCode") == "REFERENCE_ALREADY_EXISTS":
        return AlreadyExists(message, _quoted(message))
    return _by_status(status, message)


def _conflict(message: str, details: Mapping[str, Any]) -> ReferenceConflict:
    conflicts = [
        decode_conflict(item) for item in details.get("conflicts") or () if isinstance(item, dict)
    ]
    if conflicts and all(conflict.type is ConflictType.UNEXPECTED_HASH for conflict in conflicts):
        return ReferenceMoved(message, conflicts)
    return ReferenceConflict(message, conflicts)


def _key(details: Mapping[str, Any]) -> ContentKey | None:
    key = details.get("contentKey")
    return decode_key(key) if isinstance(key, dict) else None


def _quoted(message: str) -> str:
    """Returns the text in the first single quotes: the name that a message is about."""
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
