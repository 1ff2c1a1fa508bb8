"""API v1: commit, merge, transplant."""

from __future__ import annotations

from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.model import CommitMeta
from nessie_cli.repository.changes import Commit
from nessie_cli.server.nessie.v1.requests import Verb, target_and_body
from nessie_cli.server.nessie.v2.writing import commit_to, merge, merge_body, transplant
from nessie_cli.server.pipeline.call import Answer, Call
from nessie_cli.server.pipeline.targets import plain_hash
from nessie_cli.wire.decode import (
    MergeBody,
    TransplantBody,
    decode_merge,
    decode_operations,
    decode_transplant,
)
from nessie_cli.wire.merges import MergeResponseV1
from nessie_cli.wire.references import reference_struct


def post_commit(call: Call) -> Answer:
    """Commits, and returns the branch."""
    target, (meta, operations) = target_and_body(
        call, Verb("commitMultipleOperations", "branchName", "operations"), decode_operations
    )
    result = commit_to(
        call, target, lambda branch: call.submit(Commit(branch, operations, meta, target.hash))
    )
    return Answer(reference_struct(result.reference))


def _without(body: Any, *v2_attributes: str) -> Any:
    """Returns a body of v1 without attributes of v2, which mean nothing there."""
    return (
        {name: value for name, value in body.items() if name not in v2_attributes}
        if isinstance(body, dict)
        else body
    )


def _keep_individual(body: dict[str, Any]) -> Any:
    return body.get("keepIndividualCommits")


def _check_keep_individual(keep_individual: Any, allowed: bool, rule: str) -> None:
    if keep_individual is not None and keep_individual is not allowed:
        raise InvalidInput(f"The parameter 'keepIndividualCommits' is deprecated. {rule}")


def _decode_merge(body: Any) -> tuple[MergeBody, Any]:
    decoded = decode_merge(merge_body(_without(body, "message", "commitMeta")))
    plain_hash(decoded.source_hash, "fromHash")
    return decoded, _keep_individual(body)


def _decode_transplant(body: Any) -> tuple[TransplantBody, Any]:
    decoded = decode_transplant(merge_body(_without(body, "message")))
    for hash_ in decoded.hashes:
        plain_hash(hash_, "hashesToTransplant")
    return decoded, _keep_individual(body)


def post_merge(call: Call) -> Answer:
    """Merges."""
    target, (body, keep_individual) = target_and_body(
        call, Verb("mergeRefIntoBranch", "branchName", "merge"), _decode_merge
    )
    _check_keep_individual(keep_individual, False, "Merge operations only support squashed now.")
    return Answer(MergeResponseV1.of(merge(call, target, body, None)))


def post_transplant(call: Call) -> Answer:
    """Transplants; the message is in the query."""
    target, (body, keep_individual) = target_and_body(
        call, Verb("transplantCommitsIntoBranch", "branchName", "transplant"), _decode_transplant
    )
    _check_keep_individual(
        keep_individual, True, "Transplant operations only support unsquashed now."
    )
    message = call.text("message")
    return Answer(
        MergeResponseV1.of(transplant(call, target, body, CommitMeta(message) if message else None))
    )
