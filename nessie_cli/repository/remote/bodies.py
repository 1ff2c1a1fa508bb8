"""The bodies of the requests that commit, merge and transplant, and the answer to a commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nessie_cli.model import CommitMeta, CommitResult, Content, KeyBehavior, Operation
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.wire import answers
from nessie_cli.wire.bodies import encode_operation
from nessie_cli.wire.contents import Key, content_struct
from nessie_cli.wire.scalars import instant

REQUEST_ID = "nessie-request-id"
"""The property of a commit that holds its request id: plain v2 has no other place for it."""


def commit_body(meta: CommitMeta, operations: Sequence[Operation]) -> dict[str, Any]:
    """Returns the body of a commit."""
    return {
        "commitMeta": client_meta(meta),
        "operations": [encode_operation(operation) for operation in operations],
    }


def commit_result(answer: Any) -> CommitResult:
    """Decodes the answer to a commit or to its dry run."""
    added = {
        answers.decode_key(item["key"]): str(item["contentId"])
        for item in answer.get("addedContents") or ()
    }
    reference = answers.decode_reference(answer["targetBranch"])
    return CommitResult(reference, added, applied=bool(answer.get("wasApplied", True)))


def client_meta(meta: CommitMeta) -> dict[str, Any]:
    """Returns the metadata that a client may set."""
    sent: dict[str, Any] = {
        "message": meta.message,
        "allProperties": {name: list(values) for name, values in meta.properties.items()},
    }
    if meta.authors:
        sent["authors"] = list(meta.authors)
    if meta.signed_off_by:
        sent["allSignedOffBy"] = list(meta.signed_off_by)
    if meta.author_time is not None:
        sent["authorTime"] = instant(meta.author_time)
    return sent


def with_request_id(meta: dict[str, Any], value: str) -> dict[str, Any]:
    """Returns the metadata with the request id."""
    return {**meta, "allProperties": {**meta.get("allProperties", {}), REQUEST_ID: [value]}}


def merge_body(options: MergeOptions) -> dict[str, Any]:
    """Returns the attributes that merge and transplant share."""
    return {
        "keyMergeModes": [_encode_behavior(behavior) for behavior in options.behaviors],
        "defaultKeyMergeMode": options.default_behavior.value,
        "isDryRun": options.dry_run,
        "isReturnConflictAsResult": True,
    }


def _encode_behavior(behavior: KeyBehavior) -> dict[str, Any]:
    sent: dict[str, Any] = {
        "key": Key.of(behavior.key),
        "mergeBehavior": behavior.behavior.value,
    }
    if behavior.content_id is not None:
        sent["contentId"] = behavior.content_id
    if behavior.commit is not None:
        sent["commit"] = behavior.commit
    contents: Mapping[str, Content | None] = {
        "expectedTargetContent": behavior.expected_target,
        "resolvedContent": behavior.resolved,
    }
    return sent | {
        name: content_struct(content) for name, content in contents.items() if content is not None
    }
