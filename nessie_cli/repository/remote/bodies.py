"""The bodies of the requests that commit, merge and transplant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nessie_cli.model import CommitMeta, Content, KeyBehavior, Operation
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.wire.encode import encode_content, encode_key, encode_operation, instant

REQUEST_ID = "nessie-request-id"
"""The property of a commit that holds its request id: plain v2 has no other place for it."""


def commit_body(meta: CommitMeta, operations: Sequence[Operation]) -> dict[str, Any]:
    """The body of a commit."""
    return {
        "commitMeta": client_meta(meta),
        "operations": [encode_operation(operation) for operation in operations],
    }


def client_meta(meta: CommitMeta) -> dict[str, Any]:
    """The metadata that a client may set."""
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
    """The metadata with the request id."""
    return {**meta, "allProperties": {**meta.get("allProperties", {}), REQUEST_ID: [value]}}


def merge_body(options: MergeOptions) -> dict[str, Any]:
    """The attributes that merge and transplant share."""
    return {
        "keyMergeModes": [_behavior(wanted) for wanted in options.behaviors],
        "defaultKeyMergeMode": options.default_behavior.value,
        "isDryRun": options.dry_run,
        "isReturnConflictAsResult": True,
    }


def _behavior(wanted: KeyBehavior) -> dict[str, Any]:
    sent: dict[str, Any] = {"key": encode_key(wanted.key), "mergeBehavior": wanted.behavior.value}
    if wanted.content_id is not None:
        sent["contentId"] = wanted.content_id
    if wanted.commit is not None:
        sent["commit"] = wanted.commit
    contents: Mapping[str, Content | None] = {
        "expectedTargetContent": wanted.expected_target,
        "resolvedContent": wanted.resolved,
    }
    return sent | {
        name: encode_content(content) for name, content in contents.items() if content is not None
    }
