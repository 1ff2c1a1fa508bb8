"""Values to the JSON of REST v2, as plain dictionaries.

The functions give the exact shapes of the REST API, nothing added (its Java clients refuse unknown attributes). What the command line adds for
diagnostics stands in `facts`. Sources: reference 2, 4.1, 5 to 8, 9.2, 10.1, 11 to 13; nulls and left-out attributes follow recorded answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Raw

from nessie_cli.errors import ContentNotFound, MergeConflict, NessieError, ReferenceConflict
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    CommitResult,
    Conflict,
    ConflictType,
    Content,
    ContentKey,
    Delete,
    DiffEntry,
    Entry,
    LogEntry,
    MergeDetail,
    MergeResult,
    Operation,
    Put,
    Reference,
    ReferenceMetadata,
    ReferenceType,
    RepositoryConfig,
)

Json = dict[str, Any]

SPEC_VERSION = "2.2.0"
"""The version of the Nessie specification that is announced (reference 13.1)."""

REASONS: Mapping[int, str] = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    408: "Request Timeout",
    409: "Conflict",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    499: "Client Closed Request",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
"""Reason phrases of the statuses that errors carry."""

_LEFT_OUT_WHEN_NULL = frozenset({"sqlText", "dialect", "versionId", "signatureId", "metadataLocation"})
"""Attributes of known content types that are not written when they have no value; `lastCheckpoint` is written as null."""


def instant(when: datetime | None) -> str | None:
    """An ISO instant in UTC ending in `Z`, with no fraction, three or six digits: as many as the value has."""
    if when is None:
        return None
    # Most are in UTC already, and are written a hundred to a page.
    text = (when if when.tzinfo is UTC else when.astimezone(UTC)).isoformat().removesuffix("+00:00")
    return text.removesuffix("000") + "Z" if when.microsecond else text + "Z"


# -- parts --------------------------------------------------------------------------------------------------------------------------


def encode_key(key: ContentKey) -> Json:
    """A content key."""
    return {"elements": list(key.elements)}


def encode_content(content: Content) -> Json:
    """A content: `type` and `id` first (`id` null when unknown), then its attributes; those of unknown types as they came."""
    body: Json = {"type": content.type_name, "id": content.id}
    attributes = content.attributes()
    if content.payload:
        if not attributes.get("properties", True):
            del attributes["properties"]
        attributes = {name: value for name, value in attributes.items() if value is not None or name not in _LEFT_OUT_WHEN_NULL}
    return body | attributes


def encode_optional_content(content: Content | None) -> Json | None:
    """A content or null."""
    return None if content is None else encode_content(content)


def encode_operation(operation: Operation) -> Json:
    """An operation as a client sends it: `expectedContent` only where it is set. `decode_operation` gives the operation back."""
    key = encode_key(operation.key)
    if not isinstance(operation, Put):
        return {"type": "DELETE" if isinstance(operation, Delete) else "UNCHANGED", "key": key}
    body: Json = {"type": "PUT", "key": key, "content": encode_content(operation.content)}
    if operation.expected_content is not None:
        body["expectedContent"] = encode_content(operation.expected_content)
    return body


def encode_logged_operation(operation: Operation) -> Json:
    """An operation as a log entry shows it: a Put has `documentation`, always null, and no expected content."""
    body = encode_operation(operation)
    if isinstance(operation, Put):
        body.pop("expectedContent", None)
        body["documentation"] = None
    return body


def encode_commit_meta(meta: CommitMeta) -> Json:
    """Commit metadata, v2 view: plural attributes; `allProperties` and `parentCommitHashes` are left out when empty."""
    body: Json = {
        "hash": meta.hash,
        "committer": meta.committer,
        "authors": list(meta.authors),
        "allSignedOffBy": list(meta.signed_off_by),
        "message": meta.message,
        "commitTime": instant(meta.commit_time),
        "authorTime": instant(meta.author_time),
    }
    if meta.properties:
        body["allProperties"] = {name: list(values) for name, values in meta.properties.items()}
    if meta.parents:
        body["parentCommitHashes"] = list(meta.parents)
    return body


def encode_reference(reference: Reference) -> Json:
    """A reference; a detached one has no `name`, `metadata` is left out when unknown."""
    body: Json = {"type": reference.type.value}
    if reference.type is not ReferenceType.DETACHED:
        body["name"] = reference.name
    body["hash"] = reference.hash
    if reference.metadata is not None:
        body["metadata"] = encode_reference_metadata(reference.metadata)
    return body


def encode_reference_metadata(metadata: ReferenceMetadata) -> Json:
    """What is known of a reference beside its hash; nulls are written."""
    return {
        "numCommitsAhead": metadata.ahead,
        "numCommitsBehind": metadata.behind,
        "commitMetaOfHEAD": encode_commit_meta(metadata.head) if metadata.head else None,
        "commonAncestorHash": metadata.common_ancestor,
        "numTotalCommits": metadata.total,
    }


def encode_log_entry(entry: LogEntry) -> Json:
    """One commit of a log; `operations` is null where there are none or they were not asked for."""
    return {
        "commitMeta": encode_commit_meta(entry.meta),
        "parentCommitHash": entry.parent,
        "operations": [encode_logged_operation(o) for o in entry.operations] if entry.operations else None,
    }


def encode_entry(entry: Entry) -> Json:
    """One key of a commit's state; the attribute of the key is `name`."""
    return {
        "type": entry.type,
        "name": encode_key(entry.key),
        "contentId": entry.content_id,
        "content": encode_optional_content(entry.content),
    }


def encode_diff_entry(entry: DiffEntry) -> Json:
    """One key whose content differs."""
    return {"key": encode_key(entry.key), "from": encode_optional_content(entry.before), "to": encode_optional_content(entry.after)}


def encode_conflict(conflict: Conflict) -> Json:
    """A conflict: type, key (null where the conflict is about a reference) and message."""
    return {
        "conflictType": conflict.type.value,
        "key": encode_key(conflict.key) if conflict.key else None,
        "message": conflict.message,
    }


def encode_merge_detail(detail: MergeDetail) -> Json:
    """One key of a merge; `conflict` is left out where there is none."""
    body: Json = {"key": encode_key(detail.key), "mergeBehavior": detail.behavior.value}
    if detail.conflict:
        body["conflict"] = encode_conflict(detail.conflict)
    return body


# -- answers ------------------------------------------------------------------------------------------------------------------------


def encode_page(name: str, items: Iterable[Json | Raw], token: str | None = None, **references: Reference) -> Json:
    """A page of a listing: `hasMore`, `token`, the items under `name`, and the references that the listing was read from.

    `name` is `references`, `logEntries`, `entries` or `diffs`; `references` are `effectiveReference` and its like. An item may be JSON text already.
    """
    body: Json = {"hasMore": token is not None, "token": token, name: list(items)}
    return body | {attribute: encode_reference(reference) for attribute, reference in references.items()}


def encode_references(references: Iterable[Reference], token: str | None = None) -> Json:
    """A page of references."""
    return encode_page("references", map(encode_reference, references), token)


def encode_log(entries: Iterable[LogEntry], token: str | None = None) -> Json:
    """A page of a log (LogResponse)."""
    return encode_page("logEntries", map(encode_log_entry, entries), token)


def encode_entries(entries: Iterable[Entry], effective: Reference, token: str | None = None) -> Json:
    """A page of entries (EntriesResponse)."""
    return encode_page("entries", map(encode_entry, entries), token, effectiveReference=effective)


def encode_diff(entries: Iterable[DiffEntry], before: Reference, after: Reference, token: str | None = None) -> Json:
    """A page of a difference (DiffResponse)."""
    return encode_page("diffs", map(encode_diff_entry, entries), token, effectiveFromReference=before, effectiveToReference=after)


def encode_single_reference(reference: Reference) -> Json:
    """The answer of the verbs that get, create, assign or delete a reference."""
    return {"reference": encode_reference(reference)}


def encode_content_response(content: Content, effective: Reference) -> Json:
    """One content (ContentResponse)."""
    return {"content": encode_content(content), "effectiveReference": encode_reference(effective)}


def encode_contents_response(contents: Mapping[ContentKey, Content], effective: Reference) -> Json:
    """Several contents (GetMultipleContentsResponse)."""
    found = [{"key": encode_key(key), "content": encode_content(content)} for key, content in contents.items()]
    return {"contents": found, "effectiveReference": encode_reference(effective)}


def encode_commit_result(result: CommitResult) -> Json:
    """What a commit did (CommitResponse); `addedContents` is null when nothing was created."""
    added = [{"key": encode_key(key), "contentId": content_id} for key, content_id in result.added.items()]
    return {"targetBranch": encode_reference(result.reference), "addedContents": added or None}


def encode_merge_result(result: MergeResult, detail: Callable[[MergeDetail], Json] = encode_merge_detail) -> Json:
    """What a merge or transplant did (MergeResponse); `detail` encodes each key."""
    return {
        "wasApplied": result.applied,
        "wasSuccessful": result.successful,
        "resultantTargetHash": result.resultant_hash,
        "commonAncestor": result.common_ancestor,
        "targetBranch": result.target_branch,
        "effectiveTargetHash": result.effective_target_hash,
        "expectedHash": result.expected_hash,
        "details": [detail(d) for d in result.details],
    }


def encode_config(config: RepositoryConfig) -> Json:
    """The answer of the config endpoint, v2."""
    body: Json = {
        "defaultBranch": config.default_branch,
        "minSupportedApiVersion": 1,
        "maxSupportedApiVersion": 2,
        "actualApiVersion": 2,
        "specVersion": SPEC_VERSION,
        "noAncestorHash": NO_ANCESTOR,
    }
    if config.created:
        body["repositoryCreationTimestamp"] = body["oldestPossibleCommitTimestamp"] = instant(config.created)
    return body


# -- errors -------------------------------------------------------------------------------------------------------------------------


def encode_error(error: NessieError, *, details: bool = True) -> Json:
    """The body of an error answer. `details=False` for clients that do not announce specification 2 (reference 8.1)."""
    body = encode_error_line(error)
    found = error_details(error) if details else None
    if found:
        body["errorDetails"] = found
    return body | {"serverStackTrace": None}


def encode_error_line(error: NessieError) -> Json:
    """Status, reason, message and code of an error."""
    reason = REASONS.get(error.status, "Error")
    return {"status": error.status, "reason": reason, "message": error.message, "errorCode": error.code}


def error_details(error: NessieError) -> Json | None:
    """`errorDetails` of an error, None where it has none (reference 8.3)."""
    if isinstance(error, ContentNotFound):
        return {"type": "CONTENT_KEY", "contentKey": encode_key(error.key)}
    conflicts = _reported(error)
    return {"type": "REFERENCE_CONFLICTS", "conflicts": [encode_conflict(c) for c in conflicts]} if conflicts else None


def _reported(error: NessieError) -> list[Conflict]:
    """The conflicts to report: a failed merge lists every key, those without an own conflict as KEY_CONFLICT (reference 9.2)."""
    if isinstance(error, MergeConflict):
        details = error.result.details
        if any(d.conflict for d in details):
            return [d.conflict or Conflict(ConflictType.KEY_CONFLICT, d.key, "UNKNOWN") for d in details]
    return list(error.conflicts) if isinstance(error, ReferenceConflict) else []
