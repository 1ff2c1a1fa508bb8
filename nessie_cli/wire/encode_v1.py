"""Values to the JSON of REST v1, where it differs from v2: singular attributes, bare objects, nothing that v2 added (reference 15.3)."""

from __future__ import annotations

from collections.abc import Mapping

from nessie_cli.model import (
    CommitMeta,
    Content,
    ContentKey,
    LogEntry,
    MergeDetail,
    MergeResult,
    Operation,
    Put,
    Reference,
    ReferenceMetadata,
    RepositoryConfig,
)
from nessie_cli.wire.encode import (
    Json,
    encode_content,
    encode_key,
    encode_merge_result,
    encode_operation,
    encode_reference,
    encode_reference_metadata,
    instant,
)


def commit_meta(meta: CommitMeta) -> Json:
    """Commit metadata, v1 view: the first author, the first signature, the first value of each property."""
    return {
        "properties": {name: values[0] for name, values in meta.properties.items() if values},
        "hash": meta.hash,
        "committer": meta.committer,
        "message": meta.message,
        "commitTime": instant(meta.commit_time),
        "authorTime": instant(meta.author_time),
        "author": meta.author,
        "signedOffBy": meta.signed_off_by[0] if meta.signed_off_by else None,
    }


def reference(found: Reference) -> Json:
    """A reference; the commit in its metadata in the v1 view."""
    body = encode_reference(found)
    if found.metadata is not None:
        body["metadata"] = _metadata(found.metadata)
    return body


def _metadata(metadata: ReferenceMetadata) -> Json:
    return encode_reference_metadata(metadata) | {"commitMetaOfHEAD": commit_meta(metadata.head) if metadata.head else None}


def _operation(operation: Operation) -> Json:
    body = encode_operation(operation)
    return body | {"expectedContent": None} if isinstance(operation, Put) else body


def log_entry(entry: LogEntry) -> Json:
    """One commit of a log."""
    return {
        "commitMeta": commit_meta(entry.meta),
        "parentCommitHash": entry.parent,
        "operations": [_operation(o) for o in entry.operations] if entry.operations else None,
    }


def entry(type_name: str, key: ContentKey) -> Json:
    """One key of a commit's state: its type and name."""
    return {"type": type_name, "name": encode_key(key)}


def contents(found: Mapping[ContentKey, Content]) -> Json:
    """Several contents."""
    return {"contents": [{"key": encode_key(key), "content": encode_content(content)} for key, content in found.items()]}


def _merge_detail(detail: MergeDetail) -> Json:
    return {
        "key": encode_key(detail.key),
        "mergeBehavior": detail.behavior.value,
        "conflictType": "UNRESOLVABLE" if detail.conflict else "NONE",
        "sourceCommits": [],
        "targetCommits": [],
    }


def merge_result(result: MergeResult) -> Json:
    """What a merge or transplant did, with the deprecated attributes that old clients demand."""
    return encode_merge_result(result, _merge_detail) | {"sourceCommits": [], "targetCommits": None}


def config(found: RepositoryConfig) -> Json:
    """The answer of the config endpoint; anything more breaks old clients."""
    return {"defaultBranch": found.default_branch, "maxSupportedApiVersion": 2}
